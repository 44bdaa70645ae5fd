//! Two histories side by side: where do they differ first, apart from what must differ? (SPEC 13.14)
//!
//! A record follows from the records before it and from its input. So two histories of one engine differ first in an
//! input, or in when it came. The run's id, its nonce and what derives from them are no difference: tickets are
//! compared by their place, and the delay before a model attempt is not compared. Where the specs differ, equal inputs
//! may lead elsewhere; then signals and effects are compared too.

use serde::Serialize;

use super::difference::{Found, differences};
use super::identity::{OpenTickets, renamed};
use super::redaction::{self, Part};
use crate::engine::{Engine, Step};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::ids::{RunId, Ticket};
use crate::vocabulary::input::{Input, Parent};
use crate::vocabulary::json::Json;
use crate::vocabulary::signal::Signal;
use crate::vocabulary::spec::Spec;

/// The texts of a spec: what a person wrote, as against how the run is set.
const TEXTS: [&str; 5] = ["instructions", "prior_messages", "prior_state", "prior_facts", "task"];

/// A history as it is compared.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    start: Option<Start>,
    records: Vec<Seen>,
    open: OpenTickets,
}

/// What a run was started with.
#[derive(Debug, Clone)]
struct Start {
    run: RunId,
    nonce: String,
    wall_time: String,
    forked_from: Option<Parent>,
    spec: Box<Spec>,
}

/// A record, without what belongs to its run alone.
#[derive(Debug, Clone)]
struct Seen {
    at_ms: u64,
    input: Input,
    signals: Vec<Signal>,
    effects: Vec<&'static str>,
}

impl Reading {
    /// Takes the next step of the history, and the engine after it.
    pub fn see(&mut self, step: &Step, engine: &Engine) {
        if let Input::RunStarted { run_id, spec, nonce, wall_time, forked_from } = &step.input {
            let (run, nonce, wall_time) = (run_id.clone(), nonce.clone(), wall_time.clone());
            self.start = Some(Start { run, nonce, wall_time, forked_from: forked_from.clone(), spec: spec.clone() });
        }
        let input = match self.open.about(&step.input) {
            Some(call) => renamed(step.input.clone(), &Ticket(format!("the ticket of {call}"))),
            None => step.input.clone(),
        };
        self.records.push(Seen {
            at_ms: step.at_ms,
            input: untorn(input),
            signals: step.signals.iter().map(undelayed).collect(),
            effects: step.effects.iter().map(crate::engine::Request::tag).collect(),
        });
        self.open = OpenTickets::of(engine);
    }
}

/// A torn line is made of the run's bytes.
fn untorn(mut input: Input) -> Input {
    if let Input::TailRepaired { bytes, digest, .. } = &mut input {
        (*bytes, *digest) = (0, Digest::ZERO);
    }
    input
}

/// The delay before an attempt is made of the nonce.
fn undelayed(signal: &Signal) -> Signal {
    let mut signal = signal.clone();
    if let Signal::RetryScheduled { delay_ms, .. } = &mut signal {
        *delay_ms = 0;
    }
    signal
}

/// What is compared, and shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct Manner {
    /// A record that comes at another time is a difference.
    pub times: bool,
    /// Payloads are shown, and not only how long they are.
    pub payloads: bool,
}

/// One difference. A payload is `{"redacted":DIGEST,"bytes":N}`; its digest says within this comparison alone whether
/// two are equal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Where: a path.
    pub field: String,
    /// In the first history; absent where there is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<Json>,
    /// In the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b: Option<Json>,
}

/// The first record that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Parting {
    /// The record.
    pub seq: u64,
    /// How.
    #[serde(flatten)]
    pub difference: Difference,
}

/// How two histories differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// What of the run's own identity differs. It is looked through.
    pub ids: Vec<&'static str>,
    /// The first record that came at another time; looked through unless times are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Parting>,
    /// The settings that differ.
    pub settings: Vec<Difference>,
    /// Where they part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parting: Option<Parting>,
}

impl Comparison {
    /// Whether they are the same, but for what is looked through.
    #[must_use]
    pub fn same(&self) -> bool {
        self.settings.is_empty() && self.parting.is_none()
    }
}

/// Compares two histories that were read to their ends.
#[must_use]
pub fn compare(a: &Reading, b: &Reading, manner: Manner) -> Comparison {
    let Manner { times, payloads } = manner;
    let (ids, settings) = match (&a.start, &b.start) {
        (Some(a), Some(b)) => (ids(a, b), settings(a, b, payloads)),
        (_, _) => (Vec::new(), Vec::new()),
    };
    let time = a.records.iter().zip(&b.records).zip(0..).find(|((a, b), _)| a.at_ms != b.at_ms);
    let eye = Eye { key: key(a), run: a.start.as_ref().map(|start| &start.run), payloads };
    let parting = eye.parting(a, b);
    // After they have parted there is nothing to compare times of.
    let time = time.filter(|(_, seq)| parting.as_ref().is_none_or(|parting| *seq <= parting.seq));
    let time = time.map(|((a, b), seq)| {
        let (a, b) = (Some(Json::from(a.at_ms)), Some(Json::from(b.at_ms)));
        Parting { seq, difference: Difference { field: "at_ms".to_owned(), a, b } }
    });
    let parting = time.clone().filter(|_| times).or(parting);
    Comparison { ids, time, settings, parting }
}

fn key(a: &Reading) -> Digest {
    let nonce = a.start.as_ref().map_or(&b""[..], |start| start.nonce.as_bytes());
    Digest::of("portcullis.compare.1", &[nonce])
}

fn ids(a: &Start, b: &Start) -> Vec<&'static str> {
    let differ = [
        ("run_id", a.run != b.run),
        ("nonce", a.nonce != b.nonce),
        ("wall_time", a.wall_time != b.wall_time),
        ("forked_from", a.forked_from != b.forked_from),
    ];
    differ.into_iter().filter(|(_, differ)| *differ).map(|(name, _)| name).collect()
}

/// The settings that differ. What a person wrote is sealed.
fn settings(a: &Start, b: &Start, payloads: bool) -> Vec<Difference> {
    let json = |start: &Start| {
        let text = serde_json::to_string(&start.spec).unwrap_or_default();
        Json::parse(&text).unwrap_or(Json::Null)
    };
    let (ours, theirs) = (json(a), json(b));
    let found = differences("", Some(&ours), Some(&theirs), |_| false);
    let key = Digest::of("portcullis.compare.1", &[a.nonce.as_bytes()]);
    let is_text = |path: &str| TEXTS.iter().any(|name| path.split('.').next() == Some(*name));
    let shown = |path: &str, value: Option<&Json>| {
        value.map(|value| if is_text(path) && !payloads { sealed(value, key) } else { value.clone() })
    };
    let difference = |found: Found<'_>| {
        let (a, b) = (shown(&found.path, found.left), shown(&found.path, found.right));
        Difference { field: found.path, a, b }
    };
    found.into_iter().map(difference).collect()
}

/// What stands in the place of a payload.
fn sealed(value: &Json, key: Digest) -> Json {
    let text = value.to_text();
    let redacted = Digest::of("portcullis.compare.value.1", &[key.as_bytes(), text.as_bytes()]);
    let members = [("redacted", Json::from(redacted.hex().as_str())), ("bytes", Json::from(text.len() as u64))];
    Json::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// Whether this is what stands in the place of a payload.
#[must_use]
pub fn is_sealed(value: &Json) -> bool {
    let members = value.as_object();
    members
        .is_some_and(|members| members.len() == 2 && members.contains_key("redacted") && members.contains_key("bytes"))
}

/// Compares records, and seals what may not be shown.
struct Eye<'a> {
    key: Digest,
    run: Option<&'a RunId>,
    payloads: bool,
}

impl Eye<'_> {
    /// The first record after the beginning that differs.
    fn parting(&self, a: &Reading, b: &Reading) -> Option<Parting> {
        let longest = a.records.len().max(b.records.len());
        (1..longest).zip(1..).find_map(|(at, seq)| {
            let difference = match (a.records.get(at), b.records.get(at)) {
                (Some(a), Some(b)) => self.difference(a, b)?,
                (a, b) => {
                    let name = |seen: Option<&Seen>| seen.map(|seen| Json::from(seen.input.tag()));
                    Difference { field: "record".to_owned(), a: name(a), b: name(b) }
                }
            };
            Some(Parting { seq, difference })
        })
    }

    fn difference(&self, a: &Seen, b: &Seen) -> Option<Difference> {
        if a.input != b.input {
            return self.first(Part::Input, "input", &a.input, &b.input);
        }
        if a.signals != b.signals {
            return self.first(Part::Signals, "signals", &a.signals, &b.signals);
        }
        let tags = |seen: &Seen| Json::Array(seen.effects.iter().map(|tag| Json::from(*tag)).collect());
        first("effects", &tags(a), &tags(b))
    }

    fn first(&self, part: Part, name: &str, a: &impl Serialize, b: &impl Serialize) -> Option<Difference> {
        first(name, &self.shown(part, a), &self.shown(part, b))
    }

    fn shown(&self, part: Part, value: &impl Serialize) -> Json {
        let text = serde_json::to_string(value).unwrap_or_default();
        let text = match self.run {
            Some(run) if !self.payloads => redaction::sealed(part, &text, run, self.key),
            Some(_) | None => text.into_bytes(),
        };
        // A payload may be as deep as any, and deeper in its place: then all of it counts as one.
        Json::parse_bytes(&text)
            .unwrap_or_else(|_| sealed(&Json::from(String::from_utf8_lossy(&text).as_ref()), self.key))
    }
}

fn first(name: &str, a: &Json, b: &Json) -> Option<Difference> {
    let found = differences(name, Some(a), Some(b), is_sealed).into_iter().next()?;
    Some(Difference { field: found.path, a: found.left.cloned(), b: found.right.cloned() })
}
