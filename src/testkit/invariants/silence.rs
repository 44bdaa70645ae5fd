//! 13.I10: what only a model wrote stands in no signal, state or effect, until the release that it was verified
//! for. Read off the records alone.

use std::collections::BTreeSet;

use super::{Breach, Broken, Invariant};
use crate::testkit::audit::wire::{list, member, word};
use crate::vocabulary::json::Json;

/// Shorter texts cannot be told from the words of a record.
const BYTES_MIN: usize = 8;

pub(super) fn check(lines: &[&str]) -> Vec<Breach> {
    let records: Vec<Json> = lines.iter().map_while(|line| Json::parse(line).ok()).collect();
    let others: Vec<&str> = records.iter().flat_map(written_by_others).collect();
    let mut written = Written { texts: BTreeSet::new(), last: BTreeSet::new() };
    for (record, seq) in records.iter().zip(0..) {
        written.take(member(record, "input").unwrap_or(&Json::Null), &others);
        if let Some(place) = written.told_in(record) {
            let reason = format!("{place} holds what only a model wrote");
            return vec![Breach { broken: Broken::Invariant(Invariant::UnreleasedStaysInside), seq, reason }];
        }
    }
    Vec::new()
}

/// What the model has written so far.
struct Written {
    texts: BTreeSet<String>,
    /// What its last answer says as a draft: that alone may be released.
    last: BTreeSet<String>,
}

impl Written {
    /// Keeps what a model's answer says, whole and taken apart as a draft.
    fn take(&mut self, input: &Json, others: &[&str]) {
        let Some(content) = answer(input) else { return };
        self.last =
            Json::parse(unfenced(word(content, "text"))).map_or_else(|_| BTreeSet::new(), |draft| values(&draft));
        let written = values(content).into_iter().chain(self.last.iter().cloned());
        let own = |text: &String| text.len() >= BYTES_MIN && !others.iter().any(|other| other.contains(text.as_str()));
        self.texts.extend(written.filter(own));
    }

    /// Where the record shows something of it.
    fn told_in(&self, record: &Json) -> Option<&'static str> {
        let shows = |json: &Json, but: &dyn Fn(&String) -> bool| {
            let mut found = false;
            each_text(json, &mut |shown| {
                found |= self.texts.iter().any(|text| shown.contains(text.as_str()) && !but(text));
            });
            found
        };
        let all = |_: &String| false;
        let part = |name: &str| member(record, name).unwrap_or(&Json::Null);
        if shows(part("signals"), &all) {
            return Some("a signal");
        }
        if shows(part("state"), &all) {
            return Some("the state");
        }
        // A success holds the draft that was verified: the last one.
        let verified = |text: &String| self.last.iter().any(|last| last.contains(text.as_str()));
        let is_success = |effect: &Json| {
            word(effect, "type") == "publish"
                && member(effect, "release").is_some_and(|release| word(release, "outcome") == "success")
        };
        let told = |effect: &Json| if is_success(effect) { shows(effect, &verified) } else { shows(effect, &all) };
        list(record, "effects").iter().any(told).then_some("an effect")
    }
}

/// The content of a model's answer, when the input is one, or a deadline that displaced one.
fn answer(input: &Json) -> Option<&Json> {
    match word(input, "type") {
        "model_responded" => member(input, "content"),
        "deadline_elapsed" => answer(member(input, "displaced")?),
        _ => None,
    }
}

/// What stands in a record's input, when no model wrote it.
fn written_by_others(record: &Json) -> Vec<&str> {
    let input = member(record, "input").unwrap_or(&Json::Null);
    let mut texts = Vec::new();
    if answer(input).is_none() {
        each_text(input, &mut |text| texts.push(text));
    }
    texts
}

/// A draft without the one fence that may stand around it.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inner.and_then(|inner| inner.split_once('\n')).map_or(text, |(_, draft)| draft)
}

/// Every text in a value, names of members too.
fn each_text<'a>(json: &'a Json, take: &mut dyn FnMut(&'a str)) {
    match json {
        Json::String(text) => take(text),
        Json::Array(items) => items.iter().for_each(|item| each_text(item, take)),
        Json::Object(members) => members.iter().for_each(|(name, value)| {
            take(name);
            each_text(value, take);
        }),
        Json::Null | Json::Bool(_) | Json::Integer(_) | Json::Double(_) => {}
    }
}

/// Every text in a value, trimmed; not the names of members, for those of a draft are words of ours.
fn values(json: &Json) -> BTreeSet<String> {
    match json {
        Json::String(text) => BTreeSet::from([text.trim().to_owned()]),
        Json::Array(items) => items.iter().flat_map(values).collect(),
        Json::Object(members) => members.values().flat_map(values).collect(),
        Json::Null | Json::Bool(_) | Json::Integer(_) | Json::Double(_) => BTreeSet::new(),
    }
}
