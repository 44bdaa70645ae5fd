use portcullis::adapters::transcripts::Claim;
use portcullis::adapters::transcripts::Format::Otlp;
use serde_json::{Value, json};

use crate::support::{all, notes, one, refused, told};

fn attributes(list: &Value) -> Value {
    let object = list.as_object().expect("an object");
    object
        .iter()
        .map(|(key, value)| {
            let value = match value {
                Value::String(text) => json!({"stringValue":text}),
                Value::Array(items) => {
                    let values: Vec<_> = items.iter().map(|item| json!({"stringValue":item})).collect();
                    json!({"arrayValue":{"values":values}})
                }
                number => json!({"intValue":number.to_string()}),
            };
            json!({"key":key,"value":value})
        })
        .collect()
}

/// A span of trace `t`: id, parent, start, attributes, and more.
fn span(id: &str, parent: &str, start: u64, list: &Value, more: &Value) -> Value {
    let mut span = json!({"traceId":"t","spanId":id,"parentSpanId":parent,"name":format!("span {id}"),
        "startTimeUnixNano":start.to_string(),"endTimeUnixNano":start + 1,"attributes":attributes(list)});
    for (key, value) in more.as_object().expect("an object") {
        span[key] = value.clone();
    }
    span
}

fn document(spans: &[Value]) -> String {
    json!({"resourceSpans":[{"scopeSpans":[{"spans":spans}]}]}).to_string()
}

fn text(value: &Value) -> String {
    value.to_string()
}

fn chat(id: &str, parent: &str, start: u64, input: &Value, output: &Value) -> Value {
    let list = json!({"gen_ai.operation.name":"chat","gen_ai.request.model":"m",
        "gen_ai.input.messages":text(input),"gen_ai.output.messages":text(output)});
    span(id, parent, start, &list, &json!({}))
}

fn user(said: &str) -> Value {
    json!({"role":"user","parts":[{"type":"text","content":said}]})
}

fn assistant(said: &str) -> Value {
    json!({"role":"assistant","parts":[{"type":"text","content":said}]})
}

fn calling(id: &str) -> Value {
    json!({"role":"assistant","parts":[{"type":"tool_call","id":id,"name":"f","arguments":{"x":1}}]})
}

fn answered(id: &str, with: &str) -> Value {
    json!({"role":"tool","parts":[{"type":"tool_call_response","id":id,"response":with}]})
}

#[test]
fn children_before_parents_are_taken_by_their_time() {
    let tool = json!({"gen_ai.operation.name":"execute_tool","gen_ai.tool.name":"f","gen_ai.tool.call.id":"a","gen_ai.tool.call.result":"seen"});
    let agent = json!({"gen_ai.operation.name":"invoke_agent","gen_ai.agent.name":"ann","gen_ai.system_instructions":text(&json!([{"type":"text","content":"rules"}]))});
    let read = one(
        Otlp,
        &document(&[
            chat("3", "0", 30, &json!([user("q"), calling("a"), answered("a", "seen")]), &json!([assistant("done")])),
            span("2", "0", 20, &tool, &json!({})),
            chat("1", "0", 10, &json!([user("q")]), &json!([calling("a")])),
            span("0", "", 5, &agent, &json!({})),
        ]),
    );
    assert_eq!(told(&read), [r#"q: f({"x":1})=seen; done"#]);
    assert_eq!(
        (read.id.as_deref(), read.model.as_deref(), read.system.as_deref()),
        (Some("t"), Some("m"), Some("rules"))
    );
    assert_eq!(notes(&read), Vec::<String>::new());
}

#[test]
fn a_context_that_holds_only_what_is_new_is_added_to_the_conversation() {
    let read = one(
        Otlp,
        &document(&[
            chat("1", "", 10, &json!([user("a")]), &json!([calling("i")])),
            chat("2", "", 20, &json!([answered("i", "one")]), &json!([assistant("x")])),
            chat("3", "", 30, &json!([user("a")]), &json!([assistant("y")])),
        ]),
    );
    assert_eq!(told(&read), [r#"a: f({"x":1})=one; x"#, "a: y"]);
}

#[test]
fn what_a_context_knows_beyond_the_spans_is_taken_from_it_with_a_note() {
    let input = json!([user("a"), assistant("x"), user("b")]);
    let read = one(Otlp, &document(&[chat("1", "", 10, &input, &json!([assistant("y")]))]));
    assert_eq!(told(&read), ["a: x", "b: y"]);
    assert_eq!(notes(&read), ["span 0: a reply known only from the context of this request"]);
    let rewritten = json!([user("summary"), assistant("short"), user("c")]);
    let spans = [
        chat("1", "", 10, &json!([user("a")]), &json!([assistant("x")])),
        chat("2", "", 20, &rewritten, &json!([assistant("z")])),
    ];
    let read = one(Otlp, &document(&spans));
    assert_eq!(told(&read), ["a: x", "c: z"]);
    assert!(notes(&read)[0].starts_with("span 1: its context is not the conversation so far"));
}

#[test]
fn traces_and_agents_are_conversations_of_their_own_and_an_agent_that_goes_on_is_one() {
    let agent = |id: &str, name: &str, start: u64| {
        span(id, "", start, &json!({"gen_ai.operation.name":"invoke_agent","gen_ai.agent.name":name}), &json!({}))
    };
    let mut other = chat("9", "", 1, &json!([user("other")]), &json!([assistant("o")]));
    other["traceId"] = json!("u");
    let read = all(
        Otlp,
        &document(&[
            agent("a1", "ann", 10),
            chat("1", "a1", 11, &json!([user("q")]), &json!([assistant("x")])),
            agent("b", "bob", 20),
            chat("2", "b", 21, &json!([user("rate x")]), &json!([assistant("good")])),
            agent("a2", "ann", 30),
            chat("3", "a2", 31, &json!([user("q"), assistant("x"), user("again")]), &json!([assistant("y")])),
            agent("a3", "ann", 40),
            chat("4", "a3", 41, &json!([user("fresh")]), &json!([assistant("z")])),
            other,
        ]),
    );
    let told: Vec<_> = read.iter().map(|read| told(read).join(" / ")).collect();
    assert_eq!(told, ["other: o", "q: x / again: y", "rate x: good", "fresh: z"]);
    assert_eq!(notes(&read[2]), [r#"span 3: a conversation of its own: agent "bob""#]);
}

#[test]
fn a_failed_request_is_classed_by_status_code_or_type_and_never_by_its_text() {
    let claim = |list: Value, more: Value| {
        let mut list = list;
        list["gen_ai.operation.name"] = json!("chat");
        list["gen_ai.input.messages"] = json!(text(&json!([user("q")])));
        let read = one(Otlp, &document(&[span("1", "", 1, &list, &more)]));
        match read.turns[0].claim.clone() {
            Claim::ModelFailed { error } => {
                (error.code().word(), notes(&read).iter().any(|note| note.contains("no known class")))
            }
            other => panic!("{other:?}"),
        }
    };
    let failed = |code: Value| json!({"status":{"code":code,"message":"rate limit exceeded"}});
    assert_eq!(claim(json!({"http.response.status_code":429}), failed(json!(2))), ("rate_limited", false));
    assert_eq!(claim(json!({"error.type":"timeout"}), failed(json!("STATUS_CODE_ERROR"))), ("timeout", false));
    assert_eq!(claim(json!({"error.type":"503"}), failed(json!("ERROR"))), ("overloaded", false));
    assert_eq!(claim(json!({}), failed(json!("2"))), ("provider_error", true));
    let thrown = json!({"status":{"code":2},"events":[{"name":"exception","attributes":attributes(&json!({"exception.type":"openai.NotFoundError"}))}]});
    assert_eq!(claim(json!({}), thrown), ("model_not_found", false));
}

#[test]
fn a_request_that_was_tried_again_is_noted_and_the_agents_error_is_the_turns() {
    let failed = |id: &str, start: u64| {
        let list = json!({"gen_ai.operation.name":"chat","gen_ai.input.messages":text(&json!([user("q")])),"error.type":"429"});
        span(id, "0", start, &list, &json!({"status":{"code":2}}))
    };
    let agent = |kind: &str| {
        let list = json!({"gen_ai.operation.name":"invoke_agent","error.type":kind});
        span("0", "", 1, &list, &json!({"status":{"code":2,"message":"it broke"}}))
    };
    let good = chat("3", "0", 30, &json!([user("q")]), &json!([assistant("a")]));
    let read = one(Otlp, &document(&[agent("x"), failed("1", 10), failed("2", 20), good.clone()]));
    assert_eq!(told(&read), ["q: a"]);
    assert_eq!(read.turns[0].claim, Claim::Failed { said: "it broke".to_owned() });
    let again = "a model request that failed (rate_limited) and was tried again, left out";
    assert_eq!(notes(&read), [format!("span 1: {again}"), format!("span 2: {again}")]);
    let read = one(Otlp, &document(&[agent("asyncio.CancelledError"), good]));
    assert_eq!(read.turns[0].claim, Claim::Cancelled);
}

#[test]
fn a_tool_that_failed_is_an_error_result_and_one_that_nobody_called_is_noted() {
    let failed = json!({"openinference.span.kind":"TOOL","tool.name":"f"});
    let thrown = json!({"status":{"code":2},"events":[{"name":"exception","attributes":attributes(&json!({"exception.message":"it broke"}))}]});
    let lost = json!({"gen_ai.operation.name":"execute_tool","gen_ai.tool.name":"g","gen_ai.tool.call.id":"z"});
    let read = one(
        Otlp,
        &document(&[
            chat("1", "", 10, &json!([user("q")]), &json!([calling("a")])),
            span("2", "", 20, &failed, &thrown),
            span("3", "", 21, &lost, &json!({})),
        ]),
    );
    assert_eq!(told(&read), [r#"q: f({"x":1})!it broke"#]);
    assert!(notes(&read).contains(&"span 2: a result without a call, left out".to_owned()));
}

#[test]
fn every_dialect_says_the_same() {
    let openinference = json!({"openinference.span.kind":"LLM","llm.model_name":"m",
        "llm.input_messages.0.message.role":"system","llm.input_messages.0.message.content":"rules",
        "llm.input_messages.1.message.role":"user","llm.input_messages.1.message.contents.0.message_content.text":"q",
        "llm.output_messages.0.message.role":"assistant",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id":"a",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name":"f",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments":"{\"x\":1}",
        "llm.token_count.prompt":7,"llm.token_count.completion":2});
    let traceloop = json!({"llm.request.type":"chat","gen_ai.request.model":"m",
        "gen_ai.prompt.0.role":"system","gen_ai.prompt.0.content":"rules",
        "gen_ai.prompt.1.role":"user","gen_ai.prompt.1.content":"q",
        "gen_ai.completion.0.role":"assistant","gen_ai.completion.0.tool_calls.0.id":"a",
        "gen_ai.completion.0.tool_calls.0.name":"f","gen_ai.completion.0.tool_calls.0.arguments":"{\"x\":1}",
        "gen_ai.usage.prompt_tokens":7,"gen_ai.usage.completion_tokens":2});
    let vercel = json!({"ai.operationId":"ai.generateText.doGenerate","ai.model.id":"m",
        "ai.prompt.messages":text(&json!([{"role":"system","content":"rules"},{"role":"user","content":[{"type":"text","text":"q"}]}])),
        "ai.response.toolCalls":text(&json!([{"toolCallType":"function","toolCallId":"a","toolName":"f","args":"{\"x\":1}"}])),
        "ai.response.finishReason":"tool-calls","ai.usage.promptTokens":7,"ai.usage.completionTokens":2});
    let listed = json!({"gen_ai.operation.name":"chat","gen_ai.request.model":"m","gen_ai.usage.input_tokens":7,"gen_ai.usage.output_tokens":2,
        "events":text(&json!([{"event.name":"gen_ai.system.message","role":"system","content":"rules"},
            {"event.name":"gen_ai.user.message","role":"user","content":"q"},
            {"event.name":"gen_ai.choice","message":{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]}}]))});
    for (name, list) in
        [("openinference", openinference), ("traceloop", traceloop), ("vercel", vercel), ("listed", listed)]
    {
        let read = one(Otlp, &document(&[span("1", "", 1, &list, &json!({}))]));
        assert_eq!(told(&read), [r#"q: f({"x":1})?"#], "{name}");
        assert_eq!((read.system.as_deref(), read.model.as_deref()), (Some("rules"), Some("m")), "{name}");
        let used = read.turns[0].replies[0].usage;
        assert_eq!((used.input_tokens, used.output_tokens), (Some(7), Some(2)), "{name}");
    }
}

#[test]
fn messages_told_as_events_of_the_span_are_read() {
    let event = |name: &str, list: Value| json!({"name":name,"attributes":attributes(&list)});
    let events = json!({"events":[
        event("gen_ai.user.message", json!({"content":"q"})),
        event("gen_ai.choice", json!({"message":text(&json!({"role":"assistant","content":"a"})),"finish_reason":"stop"})),
    ]});
    let read = one(Otlp, &document(&[span("1", "", 1, &json!({"gen_ai.operation.name":"chat"}), &events)]));
    assert_eq!(told(&read), ["q: a"]);
}

#[test]
fn values_may_be_structures_and_documents_may_stand_one_a_line() {
    let parts = json!({"kvlistValue":{"values":[{"key":"role","value":{"stringValue":"user"}},{"key":"content","value":{"stringValue":"q"}}]}});
    let input = json!({"key":"gen_ai.input.messages","value":{"arrayValue":{"values":[parts]}}});
    let mut one_span = span(
        "1",
        "",
        1,
        &json!({"gen_ai.operation.name":"chat","gen_ai.output.messages":text(&json!([assistant("a")]))}),
        &json!({}),
    );
    one_span["attributes"].as_array_mut().expect("a list").push(input);
    let lines = format!(
        "{}\n{{\"cut\n{{}}\n{}\n",
        document(&[one_span]),
        document(&[chat("2", "", 2, &json!([user("q"), assistant("a"), user("r")]), &json!([assistant("b")]))])
    );
    let read = one(Otlp, &lines);
    assert_eq!(told(&read), ["q: a", "r: b"]);
    assert!(notes(&read)[0].contains("2 lines skipped, the first since: not JSON"), "{:?}", notes(&read));
}

#[test]
fn a_chain_of_parents_that_leads_back_into_itself_has_no_agent() {
    let read = one(
        Otlp,
        &document(&[
            chat("1", "2", 1, &json!([user("q")]), &json!([assistant("a")])),
            span("2", "1", 1, &json!({}), &json!({})),
            span("3", "3", 1, &json!({}), &json!({})),
        ]),
    );
    assert_eq!(told(&read), ["q: a"]);
    assert_eq!(notes(&read), [r#"span 1: the span "span 2", left out"#, r#"span 2: the span "span 3", left out"#]);
}

#[test]
fn a_document_of_the_wrong_form_is_an_error_with_its_place() {
    let said = refused(r#"{"resourceSpans":[{"scopeSpans":[{"spans":[7]}]}]}"#).to_string();
    assert!(
        said.starts_with("line 1, column 44 (byte 43): $.resourceSpans[0].scopeSpans[0].spans[0]: expected an object"),
        "{said}"
    );
    let said = refused("{\"resourceSpans\":[\n{\"scopeSpans\":").to_string();
    assert!(said.starts_with("line 2, column 14 (byte 32): not JSON: EOF"), "{said}");
}
