//! What the real server answers.

use std::time::Duration;

use libtest_mimic::Trial;
use portcullis::runtime::ports::Model;
use portcullis::vocabulary::draft::Draft;
use portcullis::vocabulary::llm::{Code, FinishReason};
use portcullis::vocabulary::spec::{DraftFormat, DraftSpec, ModelSpec, Spec, ToolCalling, ToolSpec};

use super::asking::{ask, asked, failure, first, json, providers};
use super::llama;
use crate::components::{Component, real};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        real(Component::Llama, "models::real::a_small_model_answers_in_plain_text", plain_text),
        real(Component::Llama, "models::real::a_stream_is_taken_whole", a_stream),
        real(Component::Llama, "models::real::a_schema_holds_the_draft", a_schema),
        real(Component::Llama, "models::real::a_step_is_a_call", a_step_is_a_call),
        real(Component::Llama, "models::real::a_step_is_the_answer", a_step_is_the_answer),
        real(Component::Llama, "models::real::a_cut_answer_says_so", cut),
        real(Component::Llama, "models::real::a_prompt_that_is_too_long_overflows", overflow),
        real(Component::Llama, "models::real::a_wrong_path_is_no_model", wrong_path),
        real(Component::Llama, "models::real::an_answer_that_is_not_wanted_any_more_frees_the_server", dropped),
        real(Component::Llama, "models::real::time_that_is_up_is_a_timeout", timeout),
    ]
}

fn text_spec(model: ModelSpec) -> Spec {
    let draft = DraftSpec { format: DraftFormat::Text, ..DraftSpec::default() };
    Spec { model, draft, ..Spec::new("Say hello to Ada.", "") }
}

async fn plain_text() {
    let call = asked(text_spec(llama::model(r#"{"max_tokens":24,"temperature":0}"#)), []).await.remove(0);
    let answer = providers().respond(call).await.unwrap();
    assert!(!answer.content.text.unwrap().trim().is_empty());
    assert!(answer.usage.input_tokens.unwrap() > 10, "{:?}", answer.usage);
    assert!(answer.usage.output_tokens.unwrap() > 0, "{:?}", answer.usage);
}

async fn a_stream() {
    let parameters = r#"{"max_tokens":24,"temperature":0,"seed":7}"#;
    let piecemeal = ModelSpec { streaming: true, ..llama::model(parameters) };
    let whole = providers().respond(asked(text_spec(llama::model(parameters)), []).await.remove(0)).await.unwrap();
    let pieces = providers().respond(asked(text_spec(piecemeal), []).await.remove(0)).await.unwrap();
    assert_eq!(pieces.content.text, whole.content.text);
    assert_eq!(pieces.finish, whole.finish);
    assert_eq!(pieces.usage, whole.usage);
}

async fn a_schema() {
    let parameters = r#"{"max_tokens":600,"temperature":0,"repeat_penalty":1.5,"repeat_last_n":256}"#;
    let model = ModelSpec { structured_output: true, ..llama::model(parameters) };
    let answer = ask(model).await.unwrap();
    assert_eq!(answer.finish, FinishReason::Stop, "{answer:?}");
    let draft: Draft = serde_json::from_str(&answer.content.text.unwrap()).unwrap();
    assert!(draft.quotes.is_empty());
}

fn steps(model: ModelSpec, structured: bool) -> ModelSpec {
    ModelSpec { tool_calling: ToolCalling::JsonSteps, structured_output: structured, ..model }
}

async fn a_step_is_a_call() {
    // The model may only call, so that what it picks does not decide the test.
    let mut look = ToolSpec::evidence("weather.look");
    look.parameters = json(
        r#"{"type":"object","properties":{"city":{"enum":["Oslo","Rome"]}},"required":["city"],"additionalProperties":false}"#,
    );
    look.description = "Shows the weather in a city.".to_owned();
    let model = steps(llama::model(r#"{"max_tokens":200,"temperature":0}"#), true);
    let spec = Spec { model, tools: vec![look], ..Spec::new("What is the weather in Oslo? Call weather.look.", "") };
    let answer = providers().respond(asked(spec, []).await.remove(0)).await.unwrap();
    let [call] = answer.content.calls.as_slice() else { panic!("no call: {answer:?}") };
    assert_eq!(call.name, "weather.look");
    assert_eq!(answer.finish, FinishReason::ToolCalls);
    assert!(json(&call.arguments).as_object().unwrap().contains_key("city"), "{call:?}");
}

async fn a_step_is_the_answer() {
    // Left alone, the small model says the same for ever.
    let parameters = r#"{"max_tokens":600,"temperature":0,"repeat_penalty":1.5,"repeat_last_n":256}"#;
    let answer = ask(steps(llama::model(parameters), true)).await.unwrap();
    assert_eq!(answer.finish, FinishReason::Stop, "{answer:?}");
    assert_eq!(answer.content.calls, []);
    let text = answer.content.text.unwrap();
    let _: Draft = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
}

async fn cut() {
    let answer = ask(llama::model(r#"{"max_tokens":3,"temperature":0}"#)).await.unwrap();
    assert_eq!(answer.finish, FinishReason::Length);
    assert_eq!(answer.usage.output_tokens, Some(3));
}

async fn overflow() {
    let spec = Spec { task: "one two three four ".repeat(1_500), ..text_spec(llama::model("{}")) };
    let call = asked(spec, []).await.remove(0);
    let (error, _) = failure(providers().respond(call).await);
    assert_eq!(error.code(), Code::ContextOverflow, "{error}");
}

async fn wrong_path() {
    let mut model = llama::model("{}");
    model.base_url = model.base_url.map(|url| url.replace("/v1", "/nowhere"));
    let (error, _) = failure(ask(model).await);
    assert_eq!(error.code(), Code::ModelNotFound, "{error}");
}

/// The server has one slot: as long as it writes for nobody, the next request waits.
async fn dropped() {
    let endless = llama::model(r#"{"max_tokens":3000,"temperature":0,"ignore_eos":true}"#);
    let providers = providers();
    let long = first(endless).await;
    let begun = tokio::time::timeout(Duration::from_millis(1_500), providers.respond(long)).await;
    assert!(begun.is_err(), "3000 tokens took no time");
    let after = std::time::Instant::now();
    ask(llama::model(r#"{"max_tokens":1}"#)).await.unwrap();
    // 3000 tokens take more than a minute there.
    assert!(after.elapsed() < Duration::from_secs(30), "{:?}", after.elapsed());
}

async fn timeout() {
    let slow = llama::model(r#"{"max_tokens":3000,"ignore_eos":true}"#);
    let (error, _) = failure(ask(ModelSpec { timeout_ms: 300, ..slow }).await);
    assert_eq!(error.code(), Code::Timeout, "{error}");
}
