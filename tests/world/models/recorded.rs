//! Exchanges that were recorded with real providers, served again.

use libtest_mimic::Trial;
use portcullis::runtime::ports::{Model, ModelAnswer};
use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::llm::{Code, FinishReason, ToolRequest, Usage};
use portcullis::vocabulary::spec::{Api, ModelSpec, Spec, ToolSpec};
use serde_json::Value;

use super::asking::{ask, asked, failure, json, model, openai, providers};
use crate::components::test;
use crate::loopback::{Loopback, whole};
use crate::shared;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("models::recorded::a_provider_with_too_many_requests", rate_limited),
        test("models::recorded::a_provider_refuses_its_own_models_call", tool_use_failed),
        test("models::recorded::an_error_in_the_middle_of_a_stream", stream_error),
        test("models::recorded::arguments_that_were_cut_come_as_they_are", cut_arguments),
        test("models::recorded::a_turn_may_end_empty", empty_turn),
        test("models::recorded::an_answer_after_an_empty_one", after_empty),
    ]
}

/// One recorded exchange.
struct Exchange {
    request: Json,
    status: u16,
    content_type: &'static str,
    body: String,
}

fn exchanges(name: &str) -> Option<Vec<Exchange>> {
    let text = std::fs::read_to_string(shared::data()?.join("http-cassettes").join(name)).unwrap();
    let documents = text.split("\n---\n").map(|text| serde_saphyr::from_str::<Value>(text).unwrap());
    Some(documents.flat_map(|document| interactions(&document)).collect())
}

fn interactions(document: &Value) -> Vec<Exchange> {
    if let Some(list) = document["interactions"].as_array() {
        return list.iter().map(interaction).collect();
    }
    let (when, then) = (&document["when"], &document["then"]);
    vec![Exchange {
        request: json(when["body"].as_str().unwrap()),
        status: then["status"].as_u64().unwrap().try_into().unwrap(),
        content_type: "application/json",
        body: then["body"].as_str().unwrap().to_owned(),
    }]
}

fn interaction(recorded: &Value) -> Exchange {
    let response = &recorded["response"];
    let (content_type, body) = match response["body"]["string"].as_str() {
        Some(stream) => ("text/event-stream", stream.to_owned()),
        None => ("application/json", response["parsed_body"].to_string()),
    };
    Exchange {
        request: json(&recorded["request"]["parsed_body"].to_string()),
        status: response["status"]["code"].as_u64().unwrap().try_into().unwrap(),
        content_type,
        body,
    }
}

/// Serves what was recorded, in order. `None` where the recordings are not there.
async fn served(name: &str) -> Option<(Loopback, Vec<Json>)> {
    let exchanges = exchanges(name)?;
    let requests = exchanges.iter().map(|exchange| exchange.request.clone()).collect();
    let server = Loopback::serve(move |nth, _| {
        let exchange = &exchanges[nth];
        whole(exchange.status, &[("content-type", exchange.content_type)], &exchange.body)
    });
    Some((server.await, requests))
}

fn usage(input: u64, output: u64) -> Usage {
    Usage { input_tokens: Some(input), output_tokens: Some(output) }
}

fn member<'a>(json: &'a Json, name: &str) -> &'a Json {
    &json.as_object().unwrap()[name]
}

async fn rate_limited() {
    let Some((server, _)) = served("test_openrouter_errors_raised.yaml").await else { return };
    let (error, _) = failure(ask(openai(&server)).await);
    assert_eq!((error.code(), error.retry_after_ms()), (Code::RateLimited, None));
    assert_eq!(error.message(), "HTTP 429 (429): Provider returned error");
    assert_eq!(server.received().len(), 1);
}

async fn tool_use_failed() {
    let Some((server, recorded)) = served("test_tool_use_failed_error.yaml").await else { return };
    let mut tool = ToolSpec::evidence("get_something_by_name");
    tool.parameters = json(
        r#"{"additionalProperties":false,"properties":{"name":{"type":"string"}},"required":["name"],"type":"object"}"#,
    );
    let spec = Spec { model: openai(&server), tools: vec![tool], ..Spec::new("call it", "") };
    let request = ToolRequest {
        name: "get_something_by_name".to_owned(),
        arguments: r#"{"foo":"bar"}"#.to_owned(),
        provider_id: None,
    };
    let asked = asked(spec, [ModelAnswer::calls([request])]).await;

    let (error, _) = failure(providers().respond(asked[0].clone()).await);
    // The same request may do better the next time.
    assert_eq!(error.code(), Code::ProviderError, "{error}");
    assert!(error.message().starts_with("HTTP 400 (tool_use_failed): Tool call validation failed"), "{error}");

    let called = providers().respond(asked[1].clone()).await.unwrap();
    assert_eq!(called.content.calls[0].arguments, r#"{"name":"test"}"#);
    assert_eq!((called.finish, called.usage), (FinishReason::ToolCalls, usage(301, 52)));
    let answer = providers().respond(asked[1].clone()).await.unwrap();
    assert!(answer.content.text.unwrap().starts_with("The first call failed"));
    assert_eq!((answer.finish, answer.usage), (FinishReason::Stop, usage(336, 96)));

    // Our requests say the same as the recorded ones.
    let sent = json(&server.received()[1].body);
    assert_eq!(member(&sent, "tools"), member(&recorded[1], "tools"));
    let ours = member(&sent, "messages").as_array().unwrap();
    let theirs = member(&recorded[1], "messages").as_array().unwrap();
    let [.., our_call, our_result] = ours else { panic!("{sent}") };
    let [.., their_call, their_result] = theirs else { panic!("{recorded:?}") };
    let function = |call: &Json| member(&member(call, "tool_calls").as_array().unwrap()[0], "function").clone();
    assert_eq!(function(our_call), function(their_call));
    assert_eq!(member(our_result, "role"), member(their_result, "role"));
    assert_eq!(
        member(our_result, "tool_call_id"),
        member(&member(our_call, "tool_calls").as_array().unwrap()[0], "id")
    );
}

async fn stream_error() {
    let Some((server, recorded)) = served("test_openrouter_stream_error.yaml").await else { return };
    let (error, used) = failure(ask(ModelSpec { streaming: true, ..openai(&server) }).await);
    assert_eq!(error.code(), Code::InvalidRequest, "{error}");
    assert_eq!(error.message(), "an error in the answer (400): Token limit reached");
    assert_eq!(used, Some(usage(43, 10)));
    let sent = json(&server.received()[0].body);
    for name in ["stream", "stream_options"] {
        assert_eq!(member(&sent, name), member(&recorded[0], name));
    }
}

async fn cut_arguments() {
    let Some((server, recorded)) = served("blocking_mistral_small_mid_agent.yaml").await else { return };
    let mut tool = ToolSpec::new("file_report");
    tool.description = "File an incident report".to_owned();
    tool.parameters = json(r#"{"properties":{"summary":{"type":"string"}},"required":["summary"],"type":"object"}"#);
    let mut model = openai(&server);
    model.parameters = json(r#"{"max_tokens":16}"#);
    let spec = Spec { model, tools: vec![tool], ..Spec::new("call it", "") };
    let answer = providers().respond(asked(spec, []).await.remove(0)).await.unwrap();
    assert_eq!(answer.content.text, None);
    assert_eq!(answer.content.calls[0].name, "file_report");
    assert_eq!(answer.content.calls[0].arguments, r#"{"summary": "The cache warmer raced the artifact uploader"#);
    assert_eq!((answer.finish, answer.usage), (FinishReason::Length, usage(137, 16)));
    let sent = json(&server.received()[0].body);
    for name in ["tools", "max_tokens"] {
        assert_eq!(member(&sent, name), member(&recorded[0], name));
    }
}

async fn empty_turn() {
    let name = "prompt_loop_accepts_empty_terminal_turn_after_tool_result.yaml";
    let Some((server, recorded)) = served(name).await else { return };
    let mut tool = ToolSpec::new("notify");
    tool.description = "Send a short notification for a user status update.".to_owned();
    tool.parameters = member(&member(&recorded[0], "tools").as_array().unwrap()[0], "input_schema").clone();
    let model = model(Api::Anthropic, server.url("/v1"));
    let spec = Spec { model, tools: vec![tool], ..Spec::new("I finished the deploy.", "") };
    let request = ToolRequest {
        name: "notify".to_owned(),
        arguments: r#"{"msg": "Deploy finished."}"#.to_owned(),
        provider_id: None,
    };
    let asked = asked(spec, [ModelAnswer::calls([request])]).await;

    let called = providers().respond(asked[0].clone()).await.unwrap();
    assert_eq!(called.content.calls[0].name, "notify");
    assert_eq!(json(&called.content.calls[0].arguments), json(r#"{"msg":"Deploy finished."}"#));
    assert_eq!((called.finish, called.usage), (FinishReason::ToolCalls, usage(628, 53)));
    let ended = providers().respond(asked[1].clone()).await.unwrap();
    assert_eq!((ended.content.text, ended.content.calls), (None, Vec::new()));
    assert_eq!((ended.finish, ended.usage), (FinishReason::Stop, usage(697, 2)));

    let received = server.received();
    assert_eq!(received[1].line, "POST /v1/messages");
    assert_eq!(received[1].headers["anthropic-version"], "2023-06-01");
    let sent = json(&received[1].body);
    assert_eq!(member(&sent, "tools"), member(&recorded[1], "tools"));
    let ours = member(&sent, "messages").as_array().unwrap();
    let theirs = member(&recorded[1], "messages").as_array().unwrap();
    assert_eq!(ours.len(), theirs.len());
    assert_eq!(ours[0], theirs[0]);
    let input = |messages: &[Json]| member(&member(&messages[1], "content").as_array().unwrap()[0], "input").clone();
    assert_eq!(input(ours), input(theirs));
    let result = &member(&ours[2], "content").as_array().unwrap()[0];
    assert_eq!(member(result, "type"), &Json::from("tool_result"));
    assert_eq!(member(result, "tool_use_id"), member(&member(&ours[1], "content").as_array().unwrap()[0], "id"));
}

async fn after_empty() {
    let Some((server, _)) = served("test_anthropic_model_retrying_after_empty_response.yaml").await else { return };
    let answer = ask(model(Api::Anthropic, server.url("/v1"))).await.unwrap();
    assert!(answer.content.text.unwrap().ends_with("How can I help you today?"));
    assert_eq!((answer.finish, answer.usage), (FinishReason::Stop, usage(26, 18)));
}
