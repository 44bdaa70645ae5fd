//! What may stay as it is, as data, and the walk that lets nothing else through.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::vocabulary::ids::{FactId, JudgeCallId, ModelCallId, NestedCallId, ToolCallId};

/// What may stand in a place. A value that is not of its kind is a payload, and so is `null` under [`Rule::Payload`].
#[derive(Debug)]
pub(super) enum Rule {
    /// Whatever it is, it goes.
    Payload,
    /// A whole number that is not negative, or `null`.
    Number,
    /// `true`, `false` or `null`.
    Flag,
    /// A word of a closed vocabulary, or `null`.
    Word(fn(&str) -> bool),
    /// One of our ids for calls, questions and facts.
    Id,
    /// The id of the run itself.
    Run,
    /// What a timer belongs to: the run, or a call and its attempt. A ticket's name is a payload.
    Timer,
    /// An operation id: 32 hexadecimal digits, made of run and call alone.
    Operation,
    /// An object with these members and no other. One more makes all of it a payload.
    Object(&'static [(&'static str, Rule)]),
    /// The same, declared elsewhere: structures contain themselves.
    Shared(&'static Rule),
    /// A list.
    Array(&'static Rule),
}

/// Where the walk puts what it meets, in order.
pub(super) trait Sink {
    /// Whether this is the id of the run that is walked.
    fn is_run(&self, text: &str) -> bool;
    /// Structure.
    fn keep(&mut self, text: &str);
    /// A payload, as its JSON text.
    fn seal(&mut self, raw: &str);
}

/// Walks one value.
pub(super) fn walk(rule: &Rule, raw: &str, sink: &mut impl Sink) {
    let kept = match rule {
        Rule::Payload => false,
        Rule::Number => raw == "null" || is_number(raw),
        Rule::Flag => matches!(raw, "true" | "false" | "null"),
        Rule::Word(is_word) => raw == "null" || plain(raw).is_some_and(is_word),
        Rule::Id => plain(raw).is_some_and(is_id),
        Rule::Run => plain(raw).is_some_and(|text| sink.is_run(text)),
        Rule::Timer => plain(raw).is_some_and(is_timer),
        Rule::Operation => plain(raw).is_some_and(is_operation),
        Rule::Shared(rule) => return walk(rule, raw, sink),
        Rule::Object(fields) => return object(fields, raw, sink),
        Rule::Array(rule) => return array(rule, raw, sink),
    };
    if kept { sink.keep(raw) } else { sink.seal(raw) }
}

fn object(fields: &[(&str, Rule)], raw: &str, sink: &mut impl Sink) {
    let Ok(Members(members)) = serde_json::from_str(raw) else { return sink.seal(raw) };
    let known = |name: &str| fields.iter().find(|(field, _)| *field == name).map(|(_, rule)| rule);
    let mut ruled = Vec::with_capacity(members.len());
    for (name, value) in &members {
        let repeated = ruled.iter().any(|(other, _, _)| *other == name);
        match known(name) {
            Some(rule) if !repeated => ruled.push((name, rule, value)),
            Some(_) | None => return sink.seal(raw),
        }
    }
    sink.keep("{");
    for (index, (name, rule, value)) in ruled.into_iter().enumerate() {
        // A known name needs no escapes.
        sink.keep(if index == 0 { "\"" } else { ",\"" });
        sink.keep(name);
        sink.keep("\":");
        walk(rule, value.get(), sink);
    }
    sink.keep("}");
}

fn array(rule: &Rule, raw: &str, sink: &mut impl Sink) {
    let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(raw) else { return sink.seal(raw) };
    sink.keep("[");
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            sink.keep(",");
        }
        walk(rule, item.get(), sink);
    }
    sink.keep("]");
}

/// The members of an object, in the order in which they were written.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Members<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((Name(name), value)) = map.next_entry()? {
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

#[derive(Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// A string that is written without escapes. Words and ids need none.
fn plain(raw: &str) -> Option<&str> {
    let text = raw.strip_prefix('"')?.strip_suffix('"')?;
    (!text.contains(['"', '\\'])).then_some(text)
}

fn is_number(raw: &str) -> bool {
    raw.parse::<u64>().is_ok_and(|number| number.to_string() == raw)
}

fn is_id(text: &str) -> bool {
    text.parse::<ModelCallId>().is_ok()
        || text.parse::<JudgeCallId>().is_ok()
        || text.parse::<ToolCallId>().is_ok()
        || text.parse::<NestedCallId>().is_ok()
        || text.parse::<FactId>().is_ok()
}

fn is_timer(text: &str) -> bool {
    text == "run" || text.split_once('/').is_some_and(|(call, attempt)| is_id(call) && is_number(attempt))
}

fn is_operation(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No history that replays has another timer; whoever forges one gets nothing through.
    #[test]
    fn a_timer_is_of_the_run_or_of_one_attempt_of_a_call() {
        for timer in ["run", "m1/2", "t1.0/1"] {
            assert!(is_timer(timer), "{timer}");
        }
        for text in ["m1", "m1/", "m1/secret", "secret/1", "secret", "/1", "m1/01", ""] {
            assert!(!is_timer(text), "{text}");
        }
    }
}
