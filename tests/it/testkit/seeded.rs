//! Engines with a bug that breaks one invariant each.

use portcullis::engine::{Decider, Engine, Step};
use portcullis::history::Stepper;
use portcullis::testkit::invariants::Subject;
use portcullis::vocabulary::digest::Digest;
use portcullis::vocabulary::input::Input;
use portcullis::vocabulary::refusal::Refusal;

macro_rules! seeded {
    ($(#[$doc:meta])* $name:ident, |$engine:ident, $at_ms:ident, $input:ident| $step:expr) => {
        $(#[$doc])*
        #[derive(Clone, Default)]
        pub(crate) struct $name(Engine);

        impl Stepper for $name {
            fn step(&mut self, $at_ms: u64, $input: Input) -> Result<Step, Refusal> {
                let $engine = &mut self.0;
                $step
            }

            fn decider(&self) -> &Decider {
                self.0.decider()
            }
        }

        impl Subject for $name {
            fn engine(&self) -> &Engine {
                &self.0
            }
        }
    };
}

seeded! {
    /// Counts refused reports as repairs of its history.
    CountsRefusals, |engine, at_ms, input| {
        let refused = engine.step(at_ms, input);
        if refused.is_err() {
            let ordinal = engine.decider().records();
            let _counted = engine.step(at_ms, Input::TailRepaired { ordinal, bytes: 1, digest: Digest::ZERO });
        }
        refused
    }
}

seeded! {
    /// Takes a report of a call that nobody made for a crash.
    TakesWhatIsForeign, |engine, at_ms, input| {
        let late = matches!(&input, Input::ToolCompleted { call, .. } if call.round == 9_999);
        let open = engine.ending().is_none();
        if late && open { engine.step(at_ms, Input::ExecutionCrashed { origin: "late".to_owned() }) } else { engine.step(at_ms, input) }
    }
}

seeded! {
    /// Does not hear a second model call's answer.
    IsDeaf, |engine, at_ms, input| {
        let deaf = |call: u32| call == 2;
        match &input {
            Input::ModelResponded { call, .. } | Input::ModelFailed { call, .. } if deaf(call.0) => {
                engine.step(at_ms, Input::ToolTimedOut { call: "t9.0".parse().unwrap(), attempt: 1 })
            }
            _ => engine.step(at_ms, input),
        }
    }
}

seeded! {
    /// Its deadline wins over a cancellation that came before.
    LetsTheDeadlineWin, |engine, at_ms, input| {
        match input {
            Input::CancelRequested { .. } => engine.step(at_ms, Input::DeadlineElapsed { displaced: None })
                .or_else(|_| engine.step(engine.decider().clock().and_then(|clock| clock.deadline_ms()).unwrap_or(at_ms), Input::DeadlineElapsed { displaced: None })),
            input => engine.step(at_ms, input),
        }
    }
}

seeded! {
    /// Answers a second cancellation as if it had ended the run.
    CancelsTwice, |engine, at_ms, input| {
        let again = engine.ending().is_some() && matches!(input, Input::CancelRequested { .. });
        if again { engine.step(at_ms, Input::TailRepaired { ordinal: engine.decider().records(), bytes: 1, digest: Digest::ZERO }) } else { engine.step(at_ms, input) }
    }
}
