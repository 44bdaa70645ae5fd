//! Spans follow the conventions for generative AI, and hold no content unless it was asked for.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use portcullis::runtime::{Traces, VirtualClock};
use portcullis::vocabulary::llm::{self, Usage};
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
    let keeper = Keeper::default();
    let subscriber =
        tracing_subscriber::layer::SubscriberExt::with(tracing_subscriber::registry(), Layer(keeper.clone()));
    tracing::subscriber::with_default(subscriber, || {
        crate::stage::block_on(async {
            let clock = VirtualClock::default();
            let model = Talker::new(&clock, answers);
            let builder = runtime(&clock, MemoryStore::new(), model, Workshop::new(&clock, 5));
            let runtime = builder.traces(traces).build().unwrap();
            let run = runtime.start_as("r".parse().unwrap(), spec()).await.unwrap();
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
