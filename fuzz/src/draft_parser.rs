//! The reading of drafts: strict, whole, nothing guessed (SPEC 10), up to the release that it leads to.

use std::sync::LazyLock;

use portcullis::engine::{Engine, Request};
use portcullis::machines::release::Body;
use portcullis::vocabulary::draft::{Draft, DraftFault};
use portcullis::vocabulary::effect::Effect;
use portcullis::vocabulary::environment::Environment;
use portcullis::vocabulary::fact::Statement;
use portcullis::vocabulary::input::Input;
use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::llm::{Content, FinishReason, ToolRequest, Usage};
use portcullis::vocabulary::outcome::FallbackType;
use portcullis::vocabulary::signal::Signal;
use portcullis::vocabulary::spec::{DraftFormat, JudgePolicy, Spec, ToolSpec};
use portcullis::vocabulary::tool::ToolOutput;
use serde_json::Value;

/// What was observed before the draft: `f1` and `f2`.
const FACTS: [&str; 2] = ["orders-db uses 100 of 100 connections", "p99 is 4100 ms"];
/// A draft's `data`, where a schema asks for it.
const SCHEMA: &str = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;

/// What must hold of the bytes after the first, as the text of a model's answer. The first byte chooses the form
/// that is asked for (JSON, JSON with data, text) and how the answer ended.
///
/// - Any answer is accepted and ends the run in a legal row, for a draft or for a bad one.
/// - What was released stands in the text, word for word: read by `serde_json`, from the whole text or from inside
///   one fence around it, and from nowhere else.
/// - A success quotes and cites only what was observed.
/// - A JSON draft that was taken comes to the same when it is written by us and handed in again.
pub fn check(bytes: &[u8]) {
    let Some((choice, text)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let form = &FORMS[usize::from(*choice) % FORMS.len()];
    let finish = FinishReason::ALL[usize::from(*choice) / FORMS.len() % FinishReason::ALL.len()];
    let read = answered(&form.engine, text, finish);
    match (finish, read.fault) {
        // What a filter cut is no draft at all, whatever it looks like.
        (FinishReason::ContentFilter, fault) => {
            assert!(fault.is_none() && matches!(read.body, Body::Failed { .. }), "{:?}", read.body);
        }
        (_, Some(fault)) => check_bad(form, text, finish, fault),
        (_, None) => check_draft(form, text, finish, &read),
    }
}

/// What an answer is asked to be, and a run that waits for it.
struct Form {
    format: DraftFormat,
    has_schema: bool,
    engine: Engine,
}

static FORMS: LazyLock<[Form; 3]> = LazyLock::new(|| {
    [(DraftFormat::Json, false), (DraftFormat::Json, true), (DraftFormat::Text, false)]
        .map(|(format, has_schema)| Form { format, has_schema, engine: waiting(format, has_schema) })
});

/// A run that has observed its facts and asks the model for the second time.
fn waiting(format: DraftFormat, has_schema: bool) -> Engine {
    let mut spec = Spec::new("why?", "m");
    spec.draft.format = format;
    spec.draft.repairs = 0;
    spec.draft.data_schema = has_schema.then(|| Json::parse(SCHEMA).expect("a schema"));
    spec.release.judge = JudgePolicy::Off;
    spec.release.evidence_repairs = 0;
    let tools = vec![ToolSpec::evidence("look")];
    let call = ToolRequest { name: "look".to_owned(), arguments: "{}".to_owned(), provider_id: None };
    let content = Content { calls: vec![call], ..Content::default() };
    let facts = FACTS.map(|statement| Statement { statement: statement.to_owned(), key: None });
    let mut engine = Engine::new();
    let mut report = |input| drop(engine.step(0, input).expect("the report is accepted"));
    report(Input::RunStarted {
        run_id: "drafts".parse().expect("an id"),
        spec: Box::new(spec),
        nonce: "n".to_owned(),
        wall_time: String::new(),
        forked_from: None,
    });
    report(Input::EnvironmentResolved { environment: Box::new(Environment { tools, ..Environment::default() }) });
    let (call, attempt) = ("m1".parse().expect("an id"), 1);
    let usage = Usage::default();
    report(Input::ModelResponded { call, attempt, content, finish: FinishReason::ToolCalls, usage });
    let call = "t1.0".parse().expect("an id");
    report(Input::ToolsDispatched { calls: vec![call] });
    report(Input::ToolCompleted { call, attempt, output: ToolOutput::facts("seen", facts) });
    engine
}

/// What became of an answer.
struct Read {
    fault: Option<DraftFault>,
    body: Body,
}

fn answered(engine: &Engine, text: &str, finish: FinishReason) -> Read {
    let mut engine = engine.clone();
    let content = Content { text: Some(text.to_owned()), ..Content::default() };
    let (call, attempt, usage) = ("m2".parse().expect("an id"), 1, Usage::default());
    let step = engine
        .step(1, Input::ModelResponded { call, attempt, content, finish, usage })
        .unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!(engine.decider().violations(), Vec::new());
    let fault = step.signals.iter().find_map(|signal| match signal {
        Signal::DraftInvalid { kind, bytes, .. } => {
            assert_eq!(*bytes, text.len() as u64);
            Some(*kind)
        }
        _ => None,
    });
    let is_publish = |effect: &&Request| matches!(effect, Effect::Publish { .. });
    assert_eq!(step.effects.iter().filter(is_publish).count(), 1, "every answer ends this run");
    super::check_ending(engine.ending().expect("it has ended"));
    Read { fault, body: engine.release().expect("it has ended").body().clone() }
}

/// A bad draft has the fault that is asked for first, and leaves the facts alone.
fn check_bad(form: &Form, text: &str, finish: FinishReason, fault: DraftFault) {
    match fault {
        DraftFault::Empty => assert!(!text.bytes().any(|byte| byte.is_ascii_graphic()), "{text:?} is not empty"),
        DraftFault::Truncated => assert_eq!(finish, FinishReason::Length),
        DraftFault::InvalidJson => assert!(Json::parse(text.trim()).is_err(), "{text:?} is JSON"),
        DraftFault::Schema => {
            let json = json_in(text).expect("a schema is asked of JSON alone");
            let draft = serde_json::from_str::<Draft>(json).ok();
            assert!(draft.is_none_or(|draft| says_nothing(&draft) || form.has_schema), "{text:?} is a draft");
        }
    }
    assert!(form.format == DraftFormat::Json || !matches!(fault, DraftFault::InvalidJson | DraftFault::Schema));
}

/// Whether a statement or a quote shows nothing. Which characters are invisible is not told here a second time.
fn says_nothing(draft: &Draft) -> bool {
    let blank = |text: &String| !text.bytes().any(|byte| byte.is_ascii_graphic());
    draft.conclusion.as_ref().is_some_and(|conclusion| blank(&conclusion.statement)) || draft.quotes.values().any(blank)
}

fn check_draft(form: &Form, text: &str, finish: FinishReason, read: &Read) {
    assert_ne!(finish, FinishReason::Length, "what was cut is not known");
    if form.format == DraftFormat::Text {
        // It cites nothing, so it is not released.
        return assert!(matches!(read.body, Body::Fallback { fallback_type: FallbackType::EvidenceMissing, .. }));
    }
    let json = json_in(text).expect("a draft is JSON");
    let value: Value = serde_json::from_str(json).expect("it is JSON");
    let draft: Draft = serde_json::from_str(json).expect("it is a draft");
    let known = ["conclusion", "citations", "quotes", "data"];
    let members = value.as_object().expect("an object");
    assert!(members.keys().all(|key| known.contains(&key.as_str())) && members.contains_key("conclusion"));
    check_body(&draft, &value, &read.body);

    let written = serde_json::to_string(&draft).expect("a draft is written");
    let again = answered(&form.engine, &written, FinishReason::Stop);
    assert_eq!((again.fault, &again.body), (None, &read.body), "{written}");
    assert_eq!(serde_json::from_str::<Draft>(&written).expect("a draft"), draft);
}

/// The release says what the draft says, or gives the facts in its place.
fn check_body(draft: &Draft, value: &Value, body: &Body) {
    match body {
        Body::Success { statement, data, citations, judged, .. } => {
            assert_eq!(value.pointer("/conclusion/statement").and_then(Value::as_str), Some(statement.as_str()));
            assert_eq!(draft.data.as_ref(), data.as_ref());
            assert!(!judged && !citations.is_empty());
            for citation in citations {
                let fact = FACTS[citation.fact.id.0 as usize - 1];
                assert_eq!(citation.fact.statement, fact);
                assert!(draft.citations.contains(&citation.fact.id.to_string()));
                assert!(citation.quote.as_ref().is_none_or(|quote| fact.contains(quote)));
            }
        }
        Body::Fallback { facts, .. } => {
            assert_eq!(facts.len(), FACTS.len());
            let cites = |fact: &str| draft.citations.iter().any(|citation| citation == fact);
            let stands = |(fact, quote): (&String, &String)| {
                let observed = match fact.as_str() {
                    "f1" => FACTS[0],
                    "f2" => FACTS[1],
                    _ => return false,
                };
                cites(fact) && observed.contains(quote)
            };
            let known = draft.citations.iter().all(|citation| citation == "f1" || citation == "f2");
            let holds = draft.conclusion.is_some() && known && !draft.citations.is_empty();
            assert!(!holds || !draft.quotes.iter().all(stands), "its evidence holds: {draft:?}");
        }
        _ => panic!("facts were observed: {body:?}"),
    }
}

/// The only places where JSON is looked for: the whole text, or what one fence around it holds.
fn json_in(text: &str) -> Option<&str> {
    let is_json = |text: &&str| serde_json::from_str::<Value>(text).is_ok();
    let trimmed = text.trim();
    let fenced = || {
        let (_, inside) = trimmed.strip_prefix("```")?.split_once('\n')?;
        Some(inside.trim_end().strip_suffix("```")?.trim_end())
    };
    Some(trimmed).filter(is_json).or_else(|| fenced().filter(is_json))
}
