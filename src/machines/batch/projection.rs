//! How a successful result of an evidence tool becomes facts. Malformed facts are an observation, not a
//! lost call (SPEC 7, `PROJECTION_FAILED`).

use crate::vocabulary::fact::Statement;
use crate::vocabulary::json::{Json, Pointer};
use crate::vocabulary::spec::{Limits, Projection};

/// The facts in a result; the error is for the model.
pub(super) fn project(
    projection: &Projection,
    limits: &Limits,
    content: &str,
    reported: &[Json],
) -> Result<Vec<Statement>, String> {
    let facts = match projection {
        Projection::Reported => reported.iter().map(read_reported).collect::<Result<_, _>>()?,
        Projection::Text => plain([content]),
        Projection::Lines => plain(content.lines()),
        Projection::Pointers { pointers, fact_key } => pointed(content, pointers, fact_key.as_ref())?,
    };
    if facts.len() > limits.facts_in_result_max as usize {
        return Err(format!("{} facts, at most {} are taken", facts.len(), limits.facts_in_result_max));
    }
    let size = |fact: &Statement| fact.statement.len().max(fact.key.as_ref().map_or(0, String::len)) as u64;
    let too_large = |fact: &&Statement| size(fact) > limits.statement_bytes_max;
    match facts.iter().find(too_large) {
        Some(fact) => {
            Err(format!("a statement or key of {} bytes, at most {} are taken", size(fact), limits.statement_bytes_max))
        }
        None => Ok(facts),
    }
}

fn plain<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<Statement> {
    let filled = texts.into_iter().map(str::trim).filter(|text| !text.is_empty());
    filled.map(|text| Statement { statement: text.to_owned(), key: None }).collect()
}

fn read_reported(fact: &Json) -> Result<Statement, String> {
    let fields = fact.as_object().ok_or("a fact is an object with `statement`")?;
    if let Some(unknown) = fields.keys().find(|name| *name != "statement" && *name != "key") {
        return Err(format!("a fact has no field {unknown:?}"));
    }
    let statement = fields.get("statement").and_then(Json::as_str).map(str::trim).unwrap_or_default();
    if statement.is_empty() {
        return Err("a fact's statement is a text that is not empty".to_owned());
    }
    let key = match fields.get("key") {
        None => None,
        Some(key) => Some(key.as_str().ok_or("a fact's key is a text")?.to_owned()),
    };
    Ok(Statement { statement: statement.to_owned(), key })
}

fn pointed(content: &str, pointers: &[Pointer], fact_key: Option<&Pointer>) -> Result<Vec<Statement>, String> {
    let result =
        Json::parse(content).map_err(|error| format!("the result is no strict JSON: {}", error.kind.code()))?;
    let key = fact_key.and_then(|pointer| result.pointer(pointer)).map(shown);
    let found = pointers.iter().filter_map(|pointer| result.pointer(pointer)).map(shown);
    let filled = found.filter(|text| !text.trim().is_empty());
    Ok(filled.map(|statement| Statement { statement, key: key.clone() }).collect())
}

fn shown(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_text(), str::to_owned)
}
