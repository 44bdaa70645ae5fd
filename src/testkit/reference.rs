//! The closed table by another hand: written from section 3 of the rules alone, over the words of an ending
//! on the wire. It imports nothing of the machines or the engine, so that a mistake made there is not made
//! here as well (SPEC 13.10).

use crate::vocabulary::json::Json;

/// An ending that the closed table does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no legal ending: {0}")]
pub struct Illegal(pub String);

/// The columns of an ending, as words; `-` for a field that is absent or `null`.
///
/// `failure` is the cause's type; where the table or the vocabulary tells kinds of it apart, the kind follows
/// a slash: `resolution/routing`, `draft_contract/empty`, `inference/timeout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns<'a> {
    /// The row.
    pub row: u64,
    /// The execution layer.
    pub run_state: &'a str,
    /// The committed cause.
    pub failure: &'a str,
    /// The progress layer.
    pub stop_reason: &'a str,
    /// F: whether at least one fact was observed.
    pub observed: bool,
    /// The release layer.
    pub outcome: &'a str,
    /// Why a fallback stands in the report's place.
    pub fallback_type: &'a str,
    /// The protocol's word.
    pub failure_code: &'a str,
}

/// Whether an ending, as it stands on the wire, is in the closed table.
///
/// # Errors
/// What is wrong: a field that an ending does not have, or columns that no row has together.
pub fn is_legal(ending: &Json) -> Result<(), Illegal> {
    const FIELDS: [&str; 8] =
        ["row", "run_state", "failure", "stop_reason", "facts", "outcome", "fallback_type", "failure_code"];
    let illegal = |reason: &str| Illegal(format!("{reason}: {}", ending.to_text()));
    let fields = ending.as_object().ok_or_else(|| illegal("not an object"))?;
    if fields.keys().any(|name| !FIELDS.contains(&name.as_str())) {
        return Err(illegal("a field that an ending does not have"));
    }
    let count = |name: &str| {
        let number = fields.get(name).and_then(Json::as_integer);
        number.and_then(|number| number.to_string().parse::<u64>().ok())
    };
    let word = |name: &str| match fields.get(name) {
        None | Some(Json::Null) => Some("-"),
        Some(value) => value.as_str(),
    };
    let failure = cause(fields.get("failure")).ok_or_else(|| illegal("a failure of no known form"))?;
    let columns = || {
        Some(Columns {
            row: count("row")?,
            run_state: word("run_state")?,
            failure: &failure,
            stop_reason: word("stop_reason")?,
            observed: count("facts")? > 0,
            outcome: word("outcome")?,
            fallback_type: word("fallback_type")?,
            failure_code: word("failure_code")?,
        })
    };
    let columns = columns().ok_or_else(|| illegal("a column of another form"))?;
    if stands_in_table(&columns) { Ok(()) } else { Err(illegal("no row has these columns together")) }
}

/// The failure's type, and its kind where it has one of a closed list.
fn cause(failure: Option<&Json>) -> Option<String> {
    let Some(failure) = failure.filter(|failure| **failure != Json::Null) else {
        return Some("-".to_owned());
    };
    let fields = failure.as_object()?;
    let name = fields.get("type")?.as_str()?;
    let kind = match name {
        "inference" => Some("code"),
        "resolution" | "draft_contract" => Some("kind"),
        "blocked" => {
            fields.get("gate")?.as_str()?;
            None
        }
        _ => None,
    };
    match kind {
        Some(kind) => Some(format!("{name}/{}", fields.get(kind)?.as_str()?)),
        None => Some(name.to_owned()),
    }
}

/// The closed table, a row an arm (SPEC 3.1 to 3.20). `is` reads IS; F is the fifth column.
#[must_use]
#[rustfmt::skip]
pub fn stands_in_table(ending: &Columns<'_>) -> bool {
    let Columns { row, run_state, failure, stop_reason, observed, outcome, fallback_type, failure_code } = *ending;
    match (row, run_state, failure, stop_reason, observed, outcome, fallback_type, failure_code) {
        (1, "success", "-", stop, true, "success", "-", "-") => is(stop),

        (2, "success", "-", stop, true, "fallback", violation, "-") => is(stop) && is_evidence(violation),
        (3, "failed", "no_observed_facts", stop, false, "failed", "-", "INTERNAL_FAILURE") => is(stop),

        (4, "success", "-", stop, true, "fallback", refusal, "-") => is(stop) && is_semantic(refusal),

        (5, "success", "-", stop, true, "fallback", "insufficient_evidence", "-") => is(stop),
        (6, "failed", "no_observed_facts", stop, false, "failed", "-", "INTERNAL_FAILURE") => is(stop),

        (7, "success", "-", stop, true, "fallback", "insufficient_evidence", "-") => is(stop),
        (8, "failed", bad, stop, false, "failed", "-", "INTERNAL_FAILURE") => is(stop) && is_bad_draft(bad),

        (9, "success", "-", "information_saturated", true, "fallback", "insufficient_evidence", "-") => true,
        (10, "failed", "no_observed_facts", "information_saturated", false, "failed", "-", "INTERNAL_FAILURE") => true,

        (11, "success", "-", "protocol_violation", true, "fallback", "insufficient_evidence", "-") => true,
        (12, "failed", "no_observed_facts", "protocol_violation", false, "failed", "-", "INTERNAL_FAILURE") => true,

        (13, "budget_exhausted", "-", "budget_limit_reached", true, "fallback", "insufficient_evidence", "-") => true,
        (14, "budget_exhausted", "-", "budget_limit_reached", false, "failed", "-", "INTERNAL_FAILURE") => true,

        (15, "cancelled", "-", stop, _, "cancelled", "-", "RUN_CANCELLED") => is(stop),
        (16, "timed_out", "-", stop, _, "failed", "-", "INTERNAL_FAILURE") => is(stop),
        (17, "failed", cause, stop, _, "failed", "-", "INTERNAL_FAILURE") => is(stop) && is_execution(cause),

        (18, "failed", "resolution/routing", "-", false, "failed", "-", "ROUTING_UNAVAILABLE") => true,
        (18, "failed", "capability_bound", "-", false, "failed", "-", "INTERNAL_FAILURE") => true,
        (18, "failed", merge, "-", false, "failed", "-", "INTERNAL_FAILURE") => is_merge(merge),

        (19, "failed", "indeterminate", stop, _, "failed", "-", "INTERNAL_FAILURE") => is(stop),
        (20, "failed", "blocked", stop, true, "failed", "-", "INTERNAL_FAILURE") => is(stop),
        _ => false,
    }
}

/// IS: saturated, or no stop at all.
fn is(stop_reason: &str) -> bool {
    stop_reason == "-" || stop_reason == "information_saturated"
}

fn is_evidence(fallback: &str) -> bool {
    ["evidence_missing", "evidence_unknown_reference", "evidence_mismatch"].contains(&fallback)
}

fn is_semantic(fallback: &str) -> bool {
    ["semantic_unsupported", "semantic_contradicted", "semantic_unavailable"].contains(&fallback)
}

fn is_bad_draft(failure: &str) -> bool {
    let kind = failure.strip_prefix("draft_contract/");
    kind.is_some_and(|kind| ["empty", "truncated", "invalid_json", "schema"].contains(&kind))
}

/// Row 17: a model beyond recovery, a bound, a conflict, or something that nobody classified.
fn is_execution(failure: &str) -> bool {
    const MODEL: [&str; 12] = [
        "provider_error",
        "rate_limited",
        "overloaded",
        "timeout",
        "binding_rejected",
        "context_overflow",
        "invalid_request",
        "unauthorized",
        "usage_limit",
        "login_required",
        "model_not_found",
        "content_filtered",
    ];
    match failure.strip_prefix("inference/") {
        Some(code) => MODEL.contains(&code),
        None => ["capability_bound", "state_conflict", "internal"].contains(&failure),
    }
}

/// Row 18 without routing: the merge errors, and a tool whose declaration cannot be used.
fn is_merge(failure: &str) -> bool {
    const MERGE: [&str; 7] = [
        "duplicate_tool",
        "duplicate_action_kind",
        "missing_dependency",
        "dependency_cycle",
        "duplicate_plugin",
        "config",
        "invalid_tool",
    ];
    failure.strip_prefix("resolution/").is_some_and(|kind| MERGE.contains(&kind))
}
