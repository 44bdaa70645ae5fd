//! Spans follow the conventions for generative AI, and hold no content unless it was asked for.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use portcullis::runtime::{Builder, Traces, VirtualClock};
use portcullis::vocabulary::llm::{self, Usage};
use portcullis::vocabulary::spec::Spec;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};

use super::{Talker, Workshop, asks, ended, runtime, spec};
use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::runtime::ports::ModelAnswer;

type Fields = BTreeMap<&'static str, String>;

/// Keeps every span and what was recorded on it.
#[derive(Clone, Default)]
struct Keeper(Arc<Mutex<Vec<(&'static str, Fields)>>>);

struct Writer<'a>(&'a mut Fields);

impl Visit for Writer<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

fn spans(traces: Traces, answers: Vec<super::Answer>) -> Vec<(&'static str, Fields)> {
    spans_of(traces, answers, spec(), |builder| builder)
}

fn spans_of(
    traces: Traces,
    answers: Vec<super::Answer>,
    spec: Spec,
    build: impl FnOnce(Builder) -> Builder,
) -> Vec<(&'static str, Fields)> {
    // With nobody to listen, a span that another test makes first would be switched off for good.
    static LISTENS: std::sync::Once = std::sync::Once::new();
    LISTENS.call_once(|| tracing::subscriber::set_global_default(tracing_subscriber::registry()).unwrap());
    let keeper = Keeper::default();
    let subscriber =
        tracing_subscriber::layer::SubscriberExt::with(tracing_subscriber::registry(), Layer(keeper.clone()));
    tracing::subscriber::with_default(subscriber, || {
        crate::stage::block_on(async {
            let clock = VirtualClock::default();
            let model = Talker::new(&clock, answers);
            let builder = runtime(&clock, MemoryStore::new(), model, Workshop::new(&clock, 5));
            let runtime = build(builder.traces(traces)).build().unwrap();
            let run = runtime.start_as("r".parse().unwrap(), spec).await.unwrap();
            ended(&run).await;
            run.delivered("yes").await.unwrap();
        });
    });
    keeper.0.lock().unwrap().clone()
}

/// The keeper as a layer, so that the registry knows which span is current.
struct Layer(Keeper);

struct Place(usize);

impl<S> tracing_subscriber::Layer<S> for Layer
where
    S: Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: tracing_subscriber::layer::Context<'_, S>) {
        let mut fields = Fields::new();
        attributes.record(&mut Writer(&mut fields));
        let mut spans = self.0.0.lock().unwrap();
        spans.push((attributes.metadata().name(), fields));
        context.span(id).unwrap().extensions_mut().insert(Place(spans.len() - 1));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: tracing_subscriber::layer::Context<'_, S>) {
        let span = context.span(id).unwrap();
        let extensions = span.extensions();
        if let Some(Place(index)) = extensions.get::<Place>() {
            values.record(&mut Writer(&mut self.0.0.lock().unwrap()[*index].1));
        }
    }

    fn on_event(&self, event: &Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        let mut fields = Fields::new();
        event.record(&mut Writer(&mut fields));
        self.0.0.lock().unwrap().push(("event", fields));
    }
}

fn of<'a>(spans: &'a [(&'static str, Fields)], name: &str) -> Vec<&'a Fields> {
    spans.iter().filter(|(span, _)| *span == name).map(|(_, fields)| fields).collect()
}

#[test]
fn spans_name_what_was_done_what_it_used_and_how_it_failed() {
    let used = ModelAnswer { usage: Usage { input_tokens: Some(11), output_tokens: Some(5) }, ..asks(&["look"]) };
    let overloaded = llm::Error::Overloaded { message: "secret words".to_owned(), retry_after_ms: None };
    let spans = spans(Traces::Outline, vec![(1, Err(overloaded.into())), (1, Ok(used))]);
    let chats = of(&spans, "chat");
    assert_eq!(chats.len(), 3);
    assert_eq!(chats[0]["error.type"], "overloaded");
    let fields = [
        "gen_ai.operation.name",
        "gen_ai.request.model",
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens",
        "gen_ai.response.finish_reasons",
    ];
    let shown: Vec<_> = fields.iter().map(|field| chats[1][field].as_str()).collect();
    assert_eq!(shown, ["chat", "m", "11", "5", "tool_calls"]);
    let tools = of(&spans, "execute_tool");
    assert_eq!((tools[0]["gen_ai.tool.name"].as_str(), tools[0]["gen_ai.tool.call.id"].as_str()), ("look", "t1.0"));
    let agents = of(&spans, "invoke_agent");
    assert_eq!((agents[0]["gen_ai.conversation.id"].as_str(), agents[0]["portcullis.row"].as_str()), ("r", "1"));
    let all = format!("{spans:?}");
    for content in ["secret", "fact of", "\"n\"", "conclusion"] {
        assert!(!all.contains(content), "{content}: {all}");
    }
}

#[test]
fn content_is_shown_only_when_it_was_asked_for() {
    let spans = spans(Traces::Content, vec![(1, Ok(asks(&["look"])))]);
    let chat = of(&spans, "chat")[1];
    assert!(
        chat["gen_ai.input.messages"].contains("fact of t1.0") && chat["gen_ai.output.messages"].contains("conclusion")
    );
    assert_eq!(of(&spans, "execute_tool")[0]["gen_ai.tool.call.arguments"], r#"{\"n\":0}"#);
}

#[test]
fn plugins_have_spans_too_and_one_that_fails_is_named_with_its_reason() {
    use portcullis::runtime::plugins::{Contributions, HookAnswer, HookFailure};
    use portcullis::runtime::ports::GateFailure;
    use portcullis::vocabulary::environment::HookPoint::{BeforeRelease, RoundStart, RunEnd};
    use portcullis::vocabulary::input::{GateAnswer, StagedCommand};
    use portcullis::vocabulary::json::Json;

    let act = || StagedCommand::Schedule { action: "test.act".to_owned(), payload: Json::Null };
    let plugin = super::plugins::plugin("p", move || {
        Contributions::new()
            .hook(RoundStart, move |_| async move { Ok(HookAnswer::nothing().staging([act()])) })
            .action("test.act", |_| async { Ok(HookAnswer::nothing()) })
            .tool_gate("test.open", ["look"], |_| async { Ok(GateAnswer::Allow) })
            .tool_gate("test.shut", ["act"], |_| async { Err(GateFailure("no key".to_owned())) })
            .hook(BeforeRelease, |_| async { Err(HookFailure("no idea".to_owned())) })
            .hook(RunEnd, |_| async { panic!("no ink") })
    });
    let answers = vec![(1, Ok(asks(&["look", "act"])))];
    let spans = spans_of(Traces::Outline, answers, super::plugins::with(&[("p", "null")]), |b| b.plugin(plugin));
    let hooks: Vec<_> = of(&spans, "call_hook")
        .iter()
        .map(|hook| (hook["portcullis.point"].clone(), hook.get("error.type").cloned()))
        .collect();
    let ok = |point: &str| (point.to_owned(), None);
    let failed = |point: &str, how: &str| (point.to_owned(), Some(how.to_owned()));
    let expected =
        [ok("round_start"), ok("round_start"), failed("before_release", "failure"), failed("run_end", "panic")];
    assert_eq!(hooks, expected);
    assert_eq!(of(&spans, "perform_action")[0]["portcullis.action"], "test.act");
    let gates = of(&spans, "ask_gate");
    assert_eq!((gates[0]["portcullis.gate"].as_str(), gates[0]["portcullis.answer"].as_str()), ("test.open", "allow"));
    assert_eq!((gates[1]["portcullis.plugin"].as_str(), gates[1]["error.type"].as_str()), ("p", "failure"));
    let told = format!("{:?}", of(&spans, "event"));
    for reason in ["no key", "no idea", "no ink"] {
        assert!(told.contains(reason), "{reason}: {told}");
    }
}

/// What stands in no ending and no event is in the trace: whose plugin, and what it did.
#[test]
fn whoever_breaks_a_bound_meets_another_or_is_not_registered_is_named() {
    use portcullis::runtime::plugins::{Contributions, HookAnswer};
    use portcullis::vocabulary::environment::{HookPoint::RoundStart, StateScope};
    use portcullis::vocabulary::input::StagedCommand;
    use portcullis::vocabulary::json::Json;

    let told = |key: &'static str, sets: usize| {
        let set = || StagedCommand::Set { scope: StateScope::Run, key: key.to_owned(), value: Json::Null };
        let plugin = super::plugins::plugin("p", move || {
            Contributions::new().state_key(&ONCE).hook(RoundStart, move |_| async move {
                Ok(HookAnswer::nothing().staging(std::iter::repeat_with(set).take(sets)))
            })
        });
        let spec = super::plugins::with(&[("p", "null")]);
        format!("{:?}", of(&spans_of(Traces::Outline, Vec::new(), spec, |b| b.plugin(plugin)), "event"))
    };
    let beyond = told("elsewhere", 1);
    assert!(beyond.contains("beyond its bound") && beyond.contains("the run state key elsewhere"), "{beyond}");
    let twice = told("test.once", 2);
    assert!(twice.contains("do not go together") && twice.contains("test.once"), "{twice}");
    let nobody = spans_of(Traces::Outline, Vec::new(), super::plugins::with(&[("nobody", "null")]), |b| b);
    let nobody = format!("{:?}", of(&nobody, "event"));
    assert!(nobody.contains("does not resolve") && nobody.contains("nobody"), "{nobody}");
}

const ONCE: portcullis::composition::StateKey<Option<bool>> = portcullis::composition::StateKey::new(
    portcullis::vocabulary::environment::StateScope::Run,
    "test.once",
    portcullis::vocabulary::environment::MergePolicy::Exclusive,
);
