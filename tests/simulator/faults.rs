//! What can go wrong, each kind by name.

macro_rules! faults {
    ($( $(#[$doc:meta])* $name:ident = $word:literal, one in $odds:literal ),* $(,)?) => {
        /// A kind of fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Fault { $( $(#[$doc])* $name ),* }

        impl Fault {
            pub(crate) const ALL: &[Self] = &[ $( Self::$name ),* ];

            /// Its word in traces and masks.
            pub(crate) const fn word(self) -> &'static str {
                match self { $( Self::$name => $word ),* }
            }

            /// It happens at one of so many occasions, in worlds that have it at all.
            pub(crate) const fn odds(self) -> u64 {
                match self { $( Self::$name => $odds ),* }
            }
        }
    };
}

impl Fault {
    /// Whether it comes between the runtime and its clock or its store: nothing is late while none of these happens.
    pub(crate) const fn holds_up(self) -> bool {
        matches!(
            self,
            Self::PowerCut
                | Self::Hang
                | Self::TakeOver
                | Self::ClockJump
                | Self::ClockBack
                | Self::TornLine
                | Self::TornBatch
                | Self::LostAcknowledgement
                | Self::NoAcknowledgement
                | Self::RefusedCommit
                | Self::SlowDisk
                | Self::StoreAway
                | Self::NotGivenBack
        )
    }
}

faults! {
    /// Every process dies at once, with everything that is in flight.
    PowerCut = "power_cut", one in 60,
    /// A process stands still for seconds and then goes on, as if nothing had been.
    Hang = "hang", one in 80,
    /// A second process takes a run over while the first one lives.
    TakeOver = "take_over", one in 1,
    /// A process's clock jumps ahead.
    ClockJump = "clock_jump", one in 40,
    /// The next process's clock begins before the last one's.
    ClockBack = "clock_back", one in 2,
    /// The power goes while a record is written: a part of its line stays.
    TornLine = "torn_line", one in 40,
    /// The power goes while several records are written: some stay whole.
    TornBatch = "torn_batch", one in 2,
    /// Stored, and reported as a failure.
    LostAcknowledgement = "lost_acknowledgement", one in 40,
    /// Stored, and nothing is reported until the faults stop.
    NoAcknowledgement = "no_acknowledgement", one in 60,
    /// Not stored, and reported so.
    RefusedCommit = "refused_commit", one in 40,
    /// The disk takes its time.
    SlowDisk = "slow_disk", one in 8,
    /// The store cannot be read, listed or claimed just now.
    StoreAway = "store_away", one in 20,
    /// A run cannot be given back.
    NotGivenBack = "not_given_back", one in 4,
    /// The model fails, in one of its classes.
    ModelFails = "model_fails", one in 6,
    /// The model fails in a way that nobody classified.
    ModelUnclassified = "model_unclassified", one in 30,
    /// The model's adapter panics.
    ModelPanics = "model_panics", one in 30,
    /// The model does not answer until the faults stop.
    ModelStalls = "model_stalls", one in 20,
    /// What a model answers is larger than the limits allow.
    ModelFloods = "model_floods", one in 20,
    /// There is no route to the tools, or they cannot be used together.
    NoRoute = "no_route", one in 12,
    /// A tool was not reached: a proof that nothing happened.
    ToolAway = "tool_away", one in 5,
    /// A tool fails on the way.
    ToolFails = "tool_fails", one in 8,
    /// A tool panics.
    ToolPanics = "tool_panics", one in 12,
    /// A tool does not return until the faults stop.
    ToolStalls = "tool_stalls", one in 12,
    /// A tool's result is larger than allowed, or its facts have no form.
    ToolFloods = "tool_floods", one in 12,
    /// A tool leaves a nested call open.
    NestedLeft = "nested_left", one in 4,
    /// The judge fails, or panics.
    JudgeFails = "judge_fails", one in 4,
    /// The judge does not answer until the faults stop.
    JudgeStalls = "judge_stalls", one in 6,
    /// A gate fails, or panics.
    GateFails = "gate_fails", one in 8,
    /// A gate does not answer until the faults stop.
    GateStalls = "gate_stalls", one in 12,
    /// A hook fails, or panics.
    HookFails = "hook_fails", one in 40,
    /// A hook does not answer until the faults stop.
    HookStalls = "hook_stalls", one in 25,
    /// A plugin breaks its bound, or two values meet in one exclusive key.
    PluginBreaks = "plugin_breaks", one in 40,
    /// A person answers long after they were asked.
    PersonLate = "person_late", one in 4,
    /// A person does not answer until the faults stop.
    PersonSilent = "person_silent", one in 4,
    /// A person answers twice, the second time otherwise.
    PersonTwice = "person_twice", one in 3,
    /// A person answers a question that nobody asked.
    PersonAstray = "person_astray", one in 3,
    /// The caller cancels.
    Cancel = "cancel", one in 6,
    /// The caller goes away, and with them the run.
    Disconnect = "disconnect", one in 16,
    /// The reader takes the release and sends no receipt.
    NoReceipt = "no_receipt", one in 2,
    /// The reader sends the receipt twice.
    ReceiptTwice = "receipt_twice", one in 2,
}
