//! What every machine has in common: a table, names, and one way to accept an event.

use statig::Outcome;

/// One line of a machine's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Transition {
    /// The state before.
    pub from: &'static str,
    /// The event.
    pub event: &'static str,
    /// The state after.
    pub to: &'static str,
}

/// A transition that a machine took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taken {
    /// The machine.
    pub machine: &'static str,
    /// What it did.
    pub transition: Transition,
}

/// A machine as data: what diagrams, matrices and their tests are made of.
#[derive(Debug, Clone, Copy)]
pub struct Chart {
    /// The machine's name.
    pub machine: &'static str,
    /// Its states, the first one first.
    pub states: &'static [&'static str],
    /// Its events.
    pub events: &'static [&'static str],
    /// Every transition. A pair of state and event without one is refused.
    pub transitions: &'static [Transition],
}

impl Chart {
    /// The states that nothing leaves.
    pub fn terminals(&self) -> impl Iterator<Item = &'static str> {
        let leaves = |state: &&str| self.transitions.iter().any(|line| line.from == *state && line.to != *state);
        self.states.iter().copied().filter(move |state| !leaves(state))
    }
}

/// What has a name in a machine's table.
pub(crate) trait Label {
    /// The name.
    fn label(&self) -> &'static str;
}

/// A machine under its chart.
pub(crate) trait Machine {
    /// Its states, with their data.
    type State: Clone + Label;
    /// Its events, with their data.
    type Event: Label;
    /// Its table.
    const CHART: Chart;

    /// Hands the event to the rules. `state` is a copy that may be spoilt.
    fn handle(state: &mut Self::State, event: &Self::Event) -> Outcome<Self::State>;
}

/// Offers `event` to a machine in `state`, and moves it. `None` means that the machine does not accept it;
/// nothing has changed then, since the rules worked on a copy.
pub(crate) fn offer<M: Machine>(state: &mut M::State, event: &M::Event) -> Option<Taken> {
    let from = state.label();
    match M::handle(&mut state.clone(), event) {
        Outcome::Transition(next) => *state = next,
        Outcome::Handled => {}
        Outcome::Super => return None,
    }
    let transition = Transition { from, event: event.label(), to: state.label() };
    debug_assert!(
        M::CHART.transitions.contains(&transition),
        "{}: {transition:?} is not in the table",
        M::CHART.machine
    );
    Some(Taken { machine: M::CHART.machine, transition })
}

/// Puts a state machine of this module, its `State`, `Event` and `CHART`, behind [`Machine`].
macro_rules! machine {
    ($name:ident) => {
        impl $crate::machines::Machine for $name {
            type State = State;
            type Event = Event;
            const CHART: $crate::machines::Chart = CHART;

            fn handle(state: &mut State, event: &Event) -> Outcome<State> {
                state.handle(&mut Self, event, &mut ())
            }
        }
    };
}
pub(crate) use machine;

/// Writes a table as lines `state, event => state;`.
macro_rules! transitions {
    ($( $from:ident, $event:ident => $to:ident; )*) => {
        &[ $( $crate::machines::Transition {
            from: stringify!($from), event: stringify!($event), to: stringify!($to),
        } ),* ]
    };
}
pub(crate) use transitions;

/// Names the variants of a state or event enum, for tables and refusals.
macro_rules! labels {
    ($name:ident, $vis:vis $list:ident: $( $variant:ident => $label:ident ),* $(,)?) => {
        $vis const $list: &[&str] = &[ $( stringify!($label) ),* ];

        impl $name {
            /// The name in the machine's table.
            #[must_use]
            pub const fn label(&self) -> &'static str {
                match self { $( Self::$variant { .. } => stringify!($label) ),* }
            }
        }

        impl $crate::machines::Label for $name {
            fn label(&self) -> &'static str {
                self.label()
            }
        }
    };
}
pub(crate) use labels;
