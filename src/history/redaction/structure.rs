//! The closed list of what a redacted record keeps: types, ids, codes, words of closed vocabularies and numbers
//! of ours. What is not named here goes; a field that is added to the wire goes until it is named here.
//!
//! Digests of payloads go too: whoever guesses a short payload could check the guess by them.

use super::rule::Rule::{self, Array, Flag, Id, Number, Object, Operation, Payload, Run, Shared, Timer, Word};
use crate::engine::Request;
use crate::machines::CHARTS;
use crate::machines::consultation::THEN;
use crate::vocabulary::draft::DraftFault;
use crate::vocabulary::effect::{Purpose, TimerKind, ToolOffer};
use crate::vocabulary::environment::{GateOf, HookPoint, MergePolicy, StateScope};
use crate::vocabulary::failure::{Failure, ResolutionError, ResolutionKind};
use crate::vocabulary::input::{
    CancelOrigin, Decision, GateAnswer, Input, NestedKind, Reconciliation, StagedCommand, Verdict,
};
use crate::vocabulary::llm;
use crate::vocabulary::outcome::{
    EvidenceViolation, FailureCode, FallbackType, ReleaseOutcome, RunStatus, SemanticRefusal, StopReason,
};
use crate::vocabulary::signal::{BudgetLimit, RepairFailure, RepairOf, Signal};
use crate::vocabulary::spec::{Assessment, DraftFormat, JudgePolicy};
use crate::vocabulary::tool::{Concurrency, ObservationCode, OnIndeterminate, Recovery, ToolError, ToolOutput};

/// A word of one of these vocabularies.
macro_rules! words {
    ($($vocabulary:ty),+) => {
        Word(|text| $( <$vocabulary>::ALL.iter().any(|word| word.word() == text) )||+)
    };
}

/// A `type` of one of these tagged enums.
macro_rules! tags {
    ($($tagged:ty),+) => { Word(|text| $( <$tagged>::TAGS.contains(&text) )||+) };
}

/// A word that a machine's chart names.
const STATE_NAME: Rule = Word(|text| CHARTS.iter().any(|chart| chart.states.contains(&text)));

pub(super) static INPUT: Rule = Object(&[
    ("type", tags!(Input)),
    ("run_id", Run),
    ("spec", SPEC),
    ("nonce", Payload),
    ("wall_time", Payload),
    ("forked_from", Object(&[("run", Payload), ("seq", Number), ("head", Payload)])),
    ("environment", ENVIRONMENT),
    ("error", ERROR),
    ("call", Id),
    ("attempt", Number),
    ("content", CONTENT),
    ("finish", words!(llm::FinishReason)),
    ("usage", Object(&[("input_tokens", Number), ("output_tokens", Number)])),
    ("calls", Array(&Id)),
    ("output", OUTPUT),
    ("parent", Id),
    ("nested", Id),
    ("kind", words!(NestedKind)),
    ("tool", Payload),
    ("arguments", Payload),
    ("ask", Number),
    ("answer", ANSWER),
    ("commands", Array(&COMMAND)),
    ("context", Payload),
    ("ticket", Payload),
    ("by", Payload),
    ("decision", Object(&[("type", tags!(Decision)), ("arguments", Payload), ("note", Payload)])),
    ("draft", Payload),
    ("verdict", words!(Verdict)),
    // A word where somebody cancels, and a text where something crashed.
    ("origin", words!(CancelOrigin)),
    ("displaced", Shared(&INPUT)),
    ("epoch", Number),
    ("tools", Array(&Object(&[("name", Payload), ("recovery", words!(Recovery))]))),
    ("outcome", Object(&[("type", tags!(Reconciliation)), ("output", OUTPUT)])),
    ("receipt", Payload),
    ("ordinal", Number),
    ("bytes", Number),
    ("digest", Payload),
]);

const CONTENT: Rule = Object(&[("text", Payload), ("calls", Array(&ASKED)), ("opaque", Payload)]);
const ASKED: Rule = Object(&[("name", Payload), ("arguments", Payload), ("provider_id", Payload)]);
const OUTPUT: Rule =
    Object(&[("type", tags!(ToolOutput)), ("content", Payload), ("facts", Payload), ("commands", Array(&COMMAND))]);
const ANSWER: Rule =
    Object(&[("type", tags!(GateAnswer)), ("reason", Payload), ("content", Payload), ("expires_ms", Number)]);
const COMMAND: Rule = Object(&[
    ("type", tags!(StagedCommand)),
    ("scope", words!(StateScope)),
    ("key", Payload),
    ("value", Payload),
    ("action", Payload),
    ("payload", Payload),
]);

const ERROR: Rule = Object(&[
    ("type", tags!(llm::Error, ToolError, ResolutionError)),
    ("message", Payload),
    ("retry_after_ms", Number),
    ("reset_after_ms", Number),
    ("plugin", Payload),
    ("contribution", Payload),
    ("id", Payload),
    ("first", Payload),
    ("second", Payload),
    ("missing", Payload),
    ("plugins", Payload),
]);

const SPEC: Rule = Object(&[
    ("instructions", Payload),
    ("prior_messages", Payload),
    ("prior_state", Payload),
    ("prior_facts", Payload),
    ("task", Payload),
    ("model", Payload),
    ("fallbacks", Payload),
    ("tools", Array(&TOOL)),
    ("tool_sources", Payload),
    ("budgets", BUDGETS),
    ("deadline_ms", Number),
    ("deadline_pauses_while_awaiting", Flag),
    ("retry", RETRY),
    ("collection", COLLECTION_SPEC),
    ("draft", Object(&[("format", words!(DraftFormat)), ("repairs", Number), ("data_schema", Payload)])),
    ("release", Object(&[("evidence_repairs", Number), ("judge", words!(JudgePolicy)), ("judge_model", Payload)])),
    ("plugins", Payload),
    ("limits", LIMITS),
]);

const BUDGETS: Rule = Object(&[
    ("model_calls", Number),
    ("tool_calls", Number),
    ("tool_calls_by_tool", Payload),
    ("total_tokens", Number),
    ("cost_micros", Number),
    ("prices", Payload),
    ("final_call_reserve", Number),
]);

const RETRY: Rule = Object(&[
    ("retries_max", Number),
    ("base_ms", Number),
    ("overloaded_base_ms", Number),
    ("delay_ms_max", Number),
    ("retry_after_ms_max", Number),
]);

const COLLECTION_SPEC: Rule =
    Object(&[("saturation_after", Number), ("assessment", words!(Assessment)), ("violation_limit", Number)]);

const LIMITS: Rule = Object(&[
    ("line_bytes_max", Number),
    ("response_bytes_max", Number),
    ("statement_bytes_max", Number),
    ("note_bytes_max", Number),
    ("calls_in_response_max", Number),
    ("facts_in_result_max", Number),
    ("transcript_bytes_max", Number),
    ("schema_bytes_max", Number),
    ("state_bytes_max", Number),
]);

const TOOL: Rule = Object(&[
    ("name", Payload),
    ("description", Payload),
    ("parameters", Payload),
    ("evidence", Flag),
    ("scope", Payload),
    ("projection", Payload),
    ("repeatable", Flag),
    ("confirm", Flag),
    ("confirm_expires_ms", Number),
    ("concurrency", words!(Concurrency)),
    ("result_bytes_max", Number),
    ("timeout_ms", Number),
    ("recovery", words!(Recovery)),
    ("attempts_max", Number),
    ("on_indeterminate", words!(OnIndeterminate)),
]);

const ENVIRONMENT: Rule = Object(&[
    ("tools", Array(&TOOL)),
    ("gates", Array(&Object(&[("id", Payload), ("of", words!(GateOf)), ("tools", Payload)]))),
    ("hooks", Array(&Object(&[("plugin", Payload), ("point", words!(HookPoint))]))),
    ("state_keys", Array(&STATE_KEY)),
    ("action_kinds", Payload),
    ("plugins", Payload),
    ("capabilities", Payload),
]);
const STATE_KEY: Rule = Object(&[("scope", words!(StateScope)), ("key", Payload), ("policy", words!(MergePolicy))]);

pub(super) static SIGNALS: Rule = Array(&Object(&[
    ("type", tags!(Signal)),
    ("digest", Payload),
    ("error", ERROR),
    ("call", Id),
    ("nested", Id),
    ("calls", Number),
    ("attempt", Number),
    ("delay_ms", Number),
    ("model", Number),
    ("round", Number),
    ("code", words!(ObservationCode)),
    ("first", Id),
    ("count", Number),
    ("new", Number),
    ("limit", words!(BudgetLimit)),
    ("in_a_row", Number),
    ("conclusion", Flag),
    ("kind", words!(DraftFault, EvidenceViolation, SemanticRefusal)),
    ("bytes", Number),
    ("of", words!(RepairOf, GateOf)),
    ("reason", words!(RepairFailure)),
    ("failure", FAILURE),
    ("judged", Flag),
    ("gate", Payload),
    ("plugin", Payload),
    ("contribution", Payload),
    ("scope", words!(StateScope)),
    ("key", Payload),
    ("earlier", Payload),
    ("later", Payload),
    ("commands", Number),
    ("row", Number),
    ("outcome", words!(ReleaseOutcome)),
    ("state", words!(RunStatus)),
]));

const FAILURE: Rule = Object(&[
    ("type", tags!(Failure)),
    ("code", words!(llm::Code)),
    ("kind", words!(ResolutionKind, DraftFault)),
    ("gate", Payload),
]);

pub(super) static EFFECTS: Rule = Array(&Object(&[
    ("type", tags!(Request)),
    ("call", Id),
    ("attempt", Number),
    ("model", Payload),
    ("purpose", words!(Purpose)),
    ("tools", words!(ToolOffer)),
    ("request", Payload),
    ("kind", words!(TimerKind)),
    ("of", Timer),
    ("due_ms", Number),
    ("ask", Number),
    ("gate", Payload),
    ("about", Object(&[("type", GATE_SUBJECT), ("call", Id), ("nested", Id), ("draft", Payload)])),
    ("point", words!(HookPoint)),
    ("plugin", Payload),
    ("action", Payload),
    ("calls", Array(&Id)),
    ("operation_id", Operation),
    ("nested", Id),
    ("code", words!(ObservationCode)),
    ("ticket", Payload),
    ("draft", Payload),
    ("release", RELEASE),
    ("key", Payload),
]));

/// What a gate stands before: as the gate says it, or a nested call.
const GATE_SUBJECT: Rule = Word(|text| text == "nested" || GateOf::ALL.iter().any(|word| word.word() == text));

const RELEASE: Rule = Object(&[
    ("run", Run),
    ("outcome", words!(ReleaseOutcome)),
    ("statement", Payload),
    ("data", Payload),
    ("citations", Array(&FACT)),
    ("judged", Flag),
    ("fallback_type", words!(FallbackType)),
    ("facts", Array(&FACT)),
    ("failure_code", words!(FailureCode)),
    ("message", Payload),
]);
const FACT: Rule = Object(&[
    ("id", Id),
    ("call", Id),
    ("tool", Payload),
    ("statement", Payload),
    ("origin", Object(&[("run", Payload), ("fact", Id)])),
    ("quote", Payload),
]);

pub(super) static STATE: Rule = Object(&[
    ("run", RUN),
    ("inference", INFERENCE),
    ("batch", Object(&[("round", Number), ("calls", Array(&CALL)), ("announced", Array(&Id))])),
    ("nested", Array(&NESTED)),
    ("collection", COLLECTION),
    ("release", RELEASING),
    ("clock", Object(&[("at_ms", Number), ("deadline_ms", Number), ("paused_since_ms", Number)])),
    ("ledger", LEDGER),
    ("environment", Payload),
    ("model", Number),
    ("rounds", Number),
    ("asks", Number),
    ("consultation", CONSULTATION),
    ("context", SUM),
    ("shared", Object(&[("keys", Number), ("digest", Payload), ("staged", Number), ("staged_digest", Payload)])),
    ("actions", Number),
    ("facts", SUM),
    ("scopes", SUM),
    ("unknown_effects", Number),
    ("transcript", Object(&[("messages", Number), ("bytes", Number), ("digest", Payload)])),
    ("recoveries", Object(&[("epoch", Number), ("crashes", Number)])),
    ("ending", ENDING),
]);

const SUM: Rule = Object(&[("count", Number), ("digest", Payload)]);
const RUN: Rule = Object(&[
    ("state", words!(RunStatus)),
    ("phase", STATE_NAME),
    ("call", Id),
    ("round", Number),
    ("failure", FAILURE),
]);
const INFERENCE: Rule = Object(&[
    ("state", STATE_NAME),
    ("call", Id),
    ("attempt", Number),
    ("purpose", words!(Purpose)),
    ("tools", words!(ToolOffer)),
    ("model", Number),
    ("retries", Number),
    ("until_ms", Number),
]);
const CONSULTATION: Rule = Object(&[
    ("state", STATE_NAME),
    ("ask", Number),
    ("pending", Number),
    ("questions", Payload),
    ("then", Word(|text| THEN.contains(&text))),
    ("held", Payload),
]);
const CALL: Rule = Object(&[
    ("call", Id),
    ("phase", STATE_NAME),
    ("ask", Number),
    ("gate", Number),
    ("ticket", Payload),
    ("until_ms", Number),
    ("attempt", Number),
    ("due_ms", Number),
    ("code", words!(ObservationCode)),
    ("plan", Payload),
    ("confirm", Object(&[("expires_ms", Number)])),
    ("cleared", Number),
    ("attempt_lost", Flag),
    ("closing", Payload),
]);
const NESTED: Rule = Object(&[("call", Id), ("requested", Number), ("open", Number), ("digest", Payload)]);
const COLLECTION: Rule = Object(&[
    ("state", STATE_NAME),
    ("barren", Number),
    ("violations", Number),
    ("evidence", Word(|text| matches!(text, "none" | "published" | "delivered"))),
    ("reason", words!(StopReason)),
    ("saturated", Flag),
]);
const RELEASING: Rule = Object(&[
    ("state", STATE_NAME),
    ("fault", words!(DraftFault)),
    ("repair", Number),
    ("violation", words!(EvidenceViolation)),
    ("call", Id),
    ("attempt", Number),
    ("draft", Payload),
    ("ask", Number),
    ("gate", Number),
    ("outcome", words!(ReleaseOutcome)),
    ("key", Payload),
]);
const LEDGER: Rule = Object(&[
    ("model_calls", Number),
    ("model_attempts", Number),
    ("judge_calls", Number),
    ("tool_calls", Number),
    ("tool_calls_by_tool", Payload),
    ("tool_attempts", Number),
    ("input_tokens", Number),
    ("output_tokens", Number),
    ("usage_unknown", Number),
    ("cost_micros", Number),
    ("marked", Flag),
]);
const ENDING: Rule = Object(&[
    ("row", Number),
    ("run_state", words!(RunStatus)),
    ("failure", FAILURE),
    ("stop_reason", words!(StopReason)),
    ("facts", Number),
    ("outcome", words!(ReleaseOutcome)),
    ("fallback_type", words!(FallbackType)),
    ("failure_code", words!(FailureCode)),
]);
