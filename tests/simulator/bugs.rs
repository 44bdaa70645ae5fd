//! Bugs that are put in on purpose, to show that the simulator finds them.

/// Something around the runtime that breaks its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A store that takes an append under an earlier claim.
    ForgetsFencing,
    /// A store that acknowledges a record and does not have it.
    LosesARecord,
    /// A store that acknowledges first and writes later.
    AcknowledgesBeforeItStores,
    /// A tools' adapter that tries a failed call again by itself.
    RetriesByItself,
    /// A tools' adapter that goes on when it is given up.
    DetachesItsWork,
    /// A tool that makes calls of its own without asking.
    CallsUnasked,
    /// A host that enters interrupted calls again after a crash.
    EntersAgain,
    /// A host that shows a draft before it is released.
    ShowsTextEarly,
    /// A host that renders each delivery anew.
    RendersAnew,
    /// A host that never recovers its runs.
    NeverRecovers,
    /// A tools' adapter that goes on after a timeout, until the run is over.
    OutlastsItsTimeout,
    /// A clock that wakes no run that waits for a person.
    LosesAlarms,
    /// A host that hands the same event on twice.
    TellsTwice,
    /// A host that hands on what it finds released, and tells the history of the receipt alone.
    DeliversUnrecovered,
}

impl Bug {
    /// What is wrong, and a word of the breach that it must lead to.
    pub(crate) const ALL: &[(Self, &'static str, &'static str)] = &[
        (Self::ForgetsFencing, "a_store_that_forgets_fencing_is_found", "fenced owner"),
        (Self::LosesARecord, "a_store_that_loses_an_acknowledged_record_is_found", "vanished"),
        (Self::AcknowledgesBeforeItStores, "a_store_that_acknowledges_before_it_stores_is_found", "durable"),
        (Self::RetriesByItself, "an_adapter_that_retries_by_itself_is_found", "never be replayed"),
        (Self::DetachesItsWork, "an_adapter_that_ignores_being_given_up_is_found", "goes on though the run is over"),
        (Self::CallsUnasked, "a_tool_that_calls_unasked_is_found", "over the budget"),
        (Self::EntersAgain, "a_recovery_that_enters_a_call_again_is_found", "never be replayed"),
        (Self::ShowsTextEarly, "a_host_that_shows_a_draft_early_is_found", "not released was shown"),
        (Self::RendersAnew, "a_host_that_renders_each_delivery_anew_is_found", "the release that was seen"),
        (Self::NeverRecovers, "a_host_that_never_recovers_is_found", "does not end"),
        (Self::OutlastsItsTimeout, "an_adapter_that_ignores_a_timeout_is_found", "goes on though it was given up"),
        (Self::LosesAlarms, "a_clock_that_loses_alarms_is_found", "is not woken"),
        (Self::TellsTwice, "a_host_that_tells_events_twice_is_found", "was told twice"),
        (Self::DeliversUnrecovered, "a_host_that_delivers_without_recovering_is_found", "without being recovered"),
    ];
}
