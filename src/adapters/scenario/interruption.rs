//! What comes in between: somebody cancels, the process dies and another takes over, something breaks.

use serde::Deserialize;

use super::written::written_as;
use crate::vocabulary::environment::Environment;
use crate::vocabulary::input::{CancelOrigin, LiveTool};
use crate::vocabulary::wire::words;

/// One interruption: a point, and what happens there.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "InterruptionFields")]
pub struct Interruption {
    /// When.
    pub point: Point,
    /// What.
    pub what: Moment,
}

/// When an interruption comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// At a virtual time, in milliseconds since the run started.
    At {
        /// The time.
        at_ms: u64,
    },
    /// When the record is stored and the effect is about to be performed.
    Before {
        /// The kind of effect.
        effect: EffectKind,
        /// Which of its kind in this run, from 1.
        nth: u32,
    },
}

/// What an interruption is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moment {
    /// Somebody cancels.
    Cancel(CancelOrigin),
    /// The process dies; a second later another one takes the run over. What was under way is lost, and so
    /// are the answers scripted for it.
    Restart(Restart),
    /// Driver or port fail in a way that nobody classified.
    Fault(String),
}

words! {
    /// The effects before which a run can be interrupted.
    pub enum EffectKind {
        /// Find and merge tools and gates.
        ResolveEnvironment = "resolve_environment",
        /// Ask a model.
        CallModel = "call_model",
        /// Ask a gate.
        AskGate = "ask_gate",
        /// Ask a hook, or tell one that the run has ended.
        CallHook = "call_hook",
        /// Perform a scheduled action.
        PerformAction = "perform_action",
        /// Make the dispatch of a wave durable.
        DispatchTools = "dispatch_tools",
        /// Enter a tool.
        InvokeTool = "invoke_tool",
        /// Ask a person.
        AwaitDecision = "await_decision",
        /// Find out what an interrupted call did.
        ReconcileTool = "reconcile_tool",
        /// Ask the judge.
        JudgeSemantics = "judge_semantics",
        /// Hand the release out.
        Publish = "publish",
    }
}

/// How the next process finds the world.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Restart {
    /// What the live tools declare now. Default: what the environment declares.
    pub tools: Option<Vec<LiveTool>>,
}

impl Restart {
    /// What the live tools declare.
    pub(super) fn live(self, environment: &Environment) -> Vec<LiveTool> {
        let declared = |tool: &crate::vocabulary::spec::ToolSpec| LiveTool {
            name: tool.name.clone(),
            recovery: tool.recovery_mode(),
        };
        self.tools.unwrap_or_else(|| environment.tools.iter().map(declared).collect())
    }
}

/// An interruption as it is written: a point (`at_ms`, or `before` with `nth`) and one of `cancel`, `restart`
/// and `fault`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename = "Interruption")]
struct InterruptionFields {
    /// The virtual time, in milliseconds since the run started.
    at_ms: Option<u64>,
    /// The kind of effect that is about to be performed; its record is stored already.
    before: Option<EffectKind>,
    /// Which effect of its kind, from 1. Default: 1.
    nth: Option<u32>,
    /// Somebody cancels, in this way.
    cancel: Option<CancelOrigin>,
    /// The process dies and another one takes over.
    restart: Option<Restart>,
    /// Driver or port fail; the text says where.
    fault: Option<String>,
}

written_as!(Interruption, InterruptionFields);

impl TryFrom<InterruptionFields> for Interruption {
    type Error = &'static str;

    fn try_from(fields: InterruptionFields) -> Result<Self, Self::Error> {
        let point = match (fields.at_ms, fields.before, fields.nth) {
            (Some(at_ms), None, None) => Point::At { at_ms },
            (None, Some(_), Some(0)) => return Err("`nth` counts from 1"),
            (None, Some(effect), nth) => Point::Before { effect, nth: nth.unwrap_or(1) },
            (Some(_), _, _) | (None, None, _) => return Err("an interruption comes `at_ms` or `before` an effect"),
        };
        let what = match (fields.cancel, fields.restart, fields.fault) {
            (Some(origin), None, None) => Moment::Cancel(origin),
            (None, Some(restart), None) => Moment::Restart(restart),
            (None, None, Some(origin)) => Moment::Fault(origin),
            _ => return Err("an interruption is one of `cancel`, `restart` and `fault`"),
        };
        Ok(Self { point, what })
    }
}
