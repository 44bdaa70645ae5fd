//! What is sent, dialect by dialect: a whole conversation, and what one dialect wants that others do not.

use libtest_mimic::Trial;
use portcullis::runtime::ports::{Model, ModelAnswer, ModelCall};
use portcullis::vocabulary::fact::{Origin, PriorFact};
use portcullis::vocabulary::ids::{FactId, ToolCallId};
use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::llm::{Code, Content, FinishReason, ToolRequest, Usage};
use portcullis::vocabulary::spec::{
    Api, Budgets, DraftSpec, ModelSpec, PriorMessage, PriorRole, Spec, ToolCalling, ToolSpec,
};

use super::asking::{asked, failure, first, json, model, providers};
use crate::components::test;
use crate::loopback::{self, Loopback, Received};
use crate::snapshot;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("models::requests::a_conversation_as_each_dialect_has_it", conversations),
        test("models::requests::withdrawn_tools_stay_declared_where_calls_stand", withdrawn),
        test("models::requests::a_schema_holds_the_answer_in_each_dialect", structured),
        test("models::requests::parameters_go_as_they_are_and_change_nothing_of_ours", parameters),
        test("models::requests::parameters_bring_nothing_that_the_engine_leaves_out", owned),
        test("models::requests::tools_that_would_share_a_name_are_not_sent", shared_names),
        test("models::requests::what_a_provider_wants_back_goes_to_that_model_at_that_address_alone", opaque),
        test("models::requests::addresses_and_headers", addresses),
    ]
}

const APIS: [Api; 4] = [Api::OpenAi, Api::Anthropic, Api::Gemini, Api::Ollama];

fn call(name: &str, arguments: &str) -> ToolRequest {
    ToolRequest { name: name.to_owned(), arguments: arguments.to_owned(), provider_id: Some("same".to_owned()) }
}

fn prior(role: PriorRole, text: &str) -> PriorMessage {
    PriorMessage { role, text: text.to_owned() }
}

fn spec() -> Spec {
    let mut read = ToolSpec::evidence("files.read");
    read.description = "Reads a file.".to_owned();
    read.parameters = json(r#"{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}"#);
    let mut long = ToolSpec::new("7".repeat(100));
    long.parameters = true.into();
    Spec {
        instructions: "Be exact.".to_owned(),
        prior_messages: vec![
            prior(PriorRole::User, "Hello."),
            prior(PriorRole::Assistant, "Hello to you."),
            prior(PriorRole::Tool, "It rains."),
        ],
        prior_facts: vec![PriorFact {
            origin: Origin { run: "earlier".parse().unwrap(), fact: FactId(3) },
            call: ToolCallId { round: 1, index: 0 },
            tool: "files.read".to_owned(),
            statement: "the roof leaks".to_owned(),
            key: None,
        }],
        tools: vec![read, long],
        ..Spec::new("What is in /a?", "the-model")
    }
}

/// A model that calls a tool, one that is not there, and one with arguments that are cut.
fn calling() -> ModelAnswer {
    let calls =
        vec![call("files.read", r#"{"path":"/a"}"#), call("no such: tool", "{}"), call("files.read", r#"{"pa"#)];
    let content = Content { text: Some("Let me look.".to_owned()), calls, opaque: None };
    ModelAnswer { content, finish: FinishReason::Length, usage: Usage::default() }
}

/// What a server sees of a request.
async fn sent(asked: ModelCall, spec: ModelSpec) -> Received {
    let server = Loopback::serve(|_, _| loopback::json(500, "{}")).await;
    let base = server.url("/base");
    let model = ModelSpec { base_url: Some(base), ..spec };
    failure(providers().respond(ModelCall { model, ..asked }).await);
    server.received().remove(0)
}

async fn body(asked: ModelCall, spec: ModelSpec) -> Json {
    json(&sent(asked, spec).await.body)
}

fn pretty(json: &Json) -> String {
    serde_json::to_string_pretty(json).unwrap()
}

async fn conversations() {
    let asked = asked(spec(), [calling()]).await;
    for api in APIS {
        let body = body(asked[1].clone(), model(api, String::new())).await;
        snapshot!(format!("request_{api}"), pretty(&body));
    }
    let steps = ModelSpec { tool_calling: ToolCalling::JsonSteps, ..model(Api::OpenAi, String::new()) };
    let body = body(asked[1].clone(), steps).await;
    snapshot!("request_json_steps", pretty(&body));
}

async fn withdrawn() {
    let budgets = Budgets { model_calls: Some(2), final_call_reserve: 1, ..Budgets::default() };
    let asked = asked(Spec { budgets, ..spec() }, [calling()]).await;
    assert!(asked[1].tools.is_empty());
    let anthropic = body(asked[1].clone(), model(Api::Anthropic, String::new())).await;
    let members = anthropic.as_object().unwrap();
    assert_eq!(members["tool_choice"], json(r#"{"type":"none"}"#));
    let declared = json(
        r#"[{"input_schema":{"type":"object"},"name":"files_read"},{"input_schema":{"type":"object"},"name":"no_such__tool"}]"#,
    );
    assert_eq!(members["tools"], declared);
    for api in [Api::OpenAi, Api::Gemini, Api::Ollama] {
        let body = body(asked[1].clone(), model(api, String::new())).await;
        assert!(!body.as_object().unwrap().contains_key("tools"), "{api}");
    }
}

async fn structured() {
    let draft = DraftSpec { data_schema: Some(json(r#"{"type":"integer"}"#)), ..DraftSpec::default() };
    let without_tools = asked(Spec { draft, tools: Vec::new(), ..spec() }, []).await.remove(0);
    let schema = json(
        r#"{"type":"object","additionalProperties":false,"required":["citations","conclusion","data"],"properties":{
            "citations":{"type":"array","items":{"type":"string"}},
            "conclusion":{"anyOf":[{"type":"object","additionalProperties":false,"required":["statement"],
                "properties":{"statement":{"type":"string"}}},{"type":"null"}]},
            "data":{"type":"integer"}}}"#,
    );
    let held = [
        (Api::OpenAi, "/response_format/json_schema/schema"),
        (Api::Anthropic, "/output_config/format/schema"),
        (Api::Gemini, "/generationConfig/responseJsonSchema"),
        (Api::Ollama, "/format"),
    ];
    for (api, place) in held {
        let model = ModelSpec { structured_output: true, ..model(api, String::new()) };
        let body = body(without_tools.clone(), model).await;
        let place = portcullis::vocabulary::json::Pointer::parse(place).unwrap();
        assert_eq!(body.pointer(&place), Some(&schema), "{api}");
    }
    // Where a schema would forbid the calls, it is not sent silently.
    let with_tools = asked(spec(), []).await.remove(0);
    let model = ModelSpec { structured_output: true, ..model(Api::Ollama, "http://127.0.0.1:1".to_owned()) };
    let (error, _) = failure(providers().respond(ModelCall { model, ..with_tools }).await);
    assert_eq!(error.code(), Code::BindingRejected, "{error}");
}

async fn parameters() {
    let asked = first(ModelSpec::new("m")).await;
    let parameters = json(r#"{"temperature":0.5,"max_tokens":9,"big":18446744073709551615,"stream":false}"#);
    for api in APIS {
        let sent = body(asked.clone(), ModelSpec { parameters: parameters.clone(), ..model(api, String::new()) }).await;
        let sent = sent.as_object().unwrap();
        for (name, value) in parameters.as_object().unwrap() {
            assert_eq!(&sent[name], value, "{api}");
        }
    }
    for foreign in [r#"{"messages":[]}"#, r#"{"model":"other"}"#, r#"{"stream":true}"#, "[]", "7"] {
        let model = model(Api::OpenAi, "http://127.0.0.1:1".to_owned());
        let model = ModelSpec { parameters: json(foreign), ..model };
        let (error, _) = failure(providers().respond(ModelCall { model, ..asked.clone() }).await);
        assert_eq!(error.code(), Code::BindingRejected, "{foreign} {error}");
    }
    // Objects of both sides are joined.
    let joined = ModelSpec {
        parameters: json(r#"{"generationConfig":{"temperature":1}}"#),
        structured_output: true,
        ..model(Api::Gemini, String::new())
    };
    let sent = body(asked, joined).await;
    let config = sent.as_object().unwrap()["generationConfig"].as_object().unwrap();
    assert_eq!(config.keys().collect::<Vec<_>>(), ["responseJsonSchema", "responseMimeType", "temperature"]);
}

async fn owned() {
    let asked = first(ModelSpec::new("m")).await;
    let table: [(Api, &str, &[&str]); 4] = [
        (
            Api::OpenAi,
            r#"{"temperature":0,"parallel_tool_calls":false,"reasoning":{"effort":"low"},"stream_options":{"x":true}}"#,
            &[
                "tools",
                "tool_choice",
                "functions",
                "function_call",
                "response_format",
                "n",
                "stream_options.include_usage",
            ],
        ),
        (
            Api::Anthropic,
            r#"{"top_k":1,"output_config":{"effort":"low"},"thinking":{"type":"adaptive"}}"#,
            &["tools", "tool_choice", "mcp_servers", "output_config.format", "output_format"],
        ),
        (
            Api::Gemini,
            r#"{"generationConfig":{"temperature":1},"safetySettings":[]}"#,
            &[
                "tools",
                "toolConfig",
                "tool_config",
                "cachedContent",
                "system_instruction",
                "generationConfig.candidateCount",
                "generationConfig.responseJsonSchema",
                "generation_config.response_schema",
            ],
        ),
        (Api::Ollama, r#"{"options":{"seed":1},"keep_alive":"1m"}"#, &["tools", "format"]),
    ];
    let steps = |api: Api, base: &str, parameters: Json| ModelSpec {
        parameters,
        tool_calling: ToolCalling::JsonSteps,
        ..model(api, base.to_owned())
    };
    for (api, free, owned) in table {
        let free = json(free);
        let sent = body(asked.clone(), steps(api, "", free.clone())).await;
        for (name, value) in free.as_object().unwrap() {
            assert_eq!(sent.as_object().unwrap().get(name), Some(value), "{api}");
        }
        for path in owned {
            let members = path.split('.').rev().fold("[]".to_owned(), |inner, name| format!(r#"{{"{name}":{inner}}}"#));
            let model = steps(api, "http://127.0.0.1:1", json(&members));
            let (error, _) = failure(providers().respond(ModelCall { model, ..asked.clone() }).await);
            let told = format!("parameters.{path} belongs to the engine");
            assert_eq!((error.code(), error.message()), (Code::BindingRejected, told.as_str()), "{api}");
        }
    }
}

async fn shared_names() {
    let tools = vec![ToolSpec::new("files.read"), ToolSpec::new("files_read")];
    let asked = asked(Spec { tools, ..spec() }, []).await.remove(0);
    let call = ModelCall { model: model(Api::OpenAi, "http://127.0.0.1:1".to_owned()), ..asked.clone() };
    let (error, _) = failure(providers().respond(call).await);
    assert_eq!(error.code(), Code::BindingRejected, "{error}");
    // In text they have their own names.
    let steps = ModelSpec { tool_calling: ToolCalling::JsonSteps, ..model(Api::OpenAi, String::new()) };
    body(asked, steps).await;
}

/// An answer as a dialect reads it, the request that follows it, and that request as it arrives there.
async fn followed(api: Api, answer: &'static str) -> (ModelAnswer, ModelCall, Json) {
    let server = Loopback::serve(move |_, _| loopback::json(200, answer)).await;
    // A query may hold what is nobody's business, and is not the address.
    let model = model(api, server.url("/base?tenant=quiet"));
    let call = asked(Spec { model, ..spec() }, []).await.remove(0);
    let answer = providers().respond(call.clone()).await.unwrap();
    let next = asked(Spec { model: call.model, ..spec() }, [answer.clone()]).await.remove(1);
    let model = ModelSpec { base_url: Some(server.url("/base?tenant=quieter")), ..next.model.clone() };
    providers().respond(ModelCall { model, ..next.clone() }).await.unwrap();
    (answer, next, json(&server.received()[1].body))
}

async fn opaque() {
    let answers = [
        (
            Api::Anthropic,
            r#"{"stop_reason":"tool_use","content":[{"type":"thinking","thinking":"hm","signature":"s1"},
                {"type":"text","text":"t"},{"type":"redacted_thinking","data":"r"},
                {"type":"tool_use","id":"x","name":"files_read","input":{"path":"/a"}}]}"#,
            r#"[{"type":"thinking","thinking":"hm","signature":"s1"},{"type":"text","text":"t"},
                {"type":"redacted_thinking","data":"r"},
                {"type":"tool_use","id":"t00001000","name":"files_read","input":{"path":"/a"}}]"#,
            "/messages/3/content",
        ),
        (
            Api::Gemini,
            r#"{"candidates":[{"finishReason":"STOP","content":{"parts":[{"text":"hm","thought":true},
                {"functionCall":{"name":"files_read","args":{"path":"/a"}},"thoughtSignature":"s1"},
                {"functionCall":{"name":"files_read","args":{"path":"/b"}}}]}}]}"#,
            r#"[{"functionCall":{"name":"files_read","args":{"path":"/a"}},"thoughtSignature":"s1"},
                {"functionCall":{"name":"files_read","args":{"path":"/b"}}}]"#,
            "/contents/3/parts",
        ),
        (
            Api::OpenAi,
            r#"{"choices":[{"finish_reason":"tool_calls","message":{"content":null,"reasoning_content":"hm",
                "tool_calls":[{"id":"x","function":{"name":"files_read","arguments":"{}"}}]}}]}"#,
            r#""hm""#,
            "/messages/4/reasoning_content",
        ),
    ];
    for (api, answer, wanted, place) in answers {
        let (answer, next, again) = followed(api, answer).await;
        let kept = answer.content.opaque.unwrap().to_text();
        assert!(kept.contains(r#""at":"http://127.0.0.1:"#) && !kept.contains("quiet"), "{api} {kept}");
        assert_eq!(answer.content.calls[0].name, "files.read");
        let place = portcullis::vocabulary::json::Pointer::parse(place).unwrap();
        assert_eq!(again.pointer(&place), Some(&json(wanted)), "{api} {again}");
        // Neither another model nor another provider sees it, nor the same name at another address.
        let other = ModelSpec { name: "another".to_owned(), ..next.model.clone() };
        let others = APIS.into_iter().filter(|other| *other != api).map(|other| model(other, String::new()));
        for model in others.chain([other, next.model.clone()]) {
            let text = body(next.clone(), model).await.to_text();
            assert!(!text.contains("\"hm\"") && !text.contains("\"s1\""), "{api} {text}");
        }
    }
}

async fn addresses() {
    let table = [
        (Api::OpenAi, false, "POST /base/chat/completions", "authorization", "Bearer "),
        (Api::Anthropic, false, "POST /base/messages", "x-api-key", ""),
        (Api::Gemini, false, "POST /base/models/the-model:generateContent", "x-goog-api-key", ""),
        (Api::Gemini, true, "POST /base/models/the-model:streamGenerateContent?alt=sse", "x-goog-api-key", ""),
        (Api::Ollama, true, "POST /base/api/chat", "authorization", "Bearer "),
    ];
    let asked = first(ModelSpec::new("m")).await;
    for (api, streaming, line, header, before) in table {
        let sent = sent(asked.clone(), ModelSpec { streaming, ..model(api, String::new()) }).await;
        assert_eq!(sent.line, line);
        assert_eq!(sent.headers[header], format!("{before}{}", super::asking::KEY));
        assert_eq!(sent.headers["content-type"], "application/json");
        assert!(!sent.headers.contains_key("accept-encoding"), "{:?}", sent.headers);
    }
}
