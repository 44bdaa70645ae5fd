//! What the simulated model says: anything a model may say, chosen by the seed.

use portcullis::runtime::ports::{ModelAnswer, ModelCall};
use portcullis::vocabulary::effect::Purpose;
use portcullis::vocabulary::llm::{Content, FinishReason, ToolRequest, Usage};
use portcullis::vocabulary::message::Message;

use crate::observed::PRIVATE;
use crate::world::World;

/// The tools that it may call, and one that does not exist.
const TOOLS: [&str; 10] =
    ["look", "pay", "put", "job", "order", "mail", "wipe", "delegate", "probe", "nothing_like_it"];

/// The model's answer to one attempt.
pub(crate) fn answer(world: &World, call: &ModelCall) -> ModelAnswer {
    let place = format!("{} {}", call.run, call.call);
    let facts = facts(&call.messages);
    let calls = !call.tools.is_empty() && call.purpose == Purpose::Step;
    let wants_calls = match (calls, facts.is_empty()) {
        (true, true) => world.choose("answers_early", &place, &[9, 1]) == 0,
        (true, false) => world.choose("goes_on", &place, &[1, 1]) == 1,
        // It calls tools that it was not offered.
        (false, _) => world.choose("calls_all_the_same", &place, &[12, 1]) == 1,
    };
    let mut content = if wants_calls { calls_of(world, &place) } else { draft(world, &place, &facts) };
    if wants_calls && world.choose("comments", &place, &[2, 1]) == 1 {
        content.text = Some(format!("{PRIVATE} thoughts of {place}"));
    }
    let finish = match (wants_calls, world.choose("cut_short", &place, &[20, 1])) {
        (true, _) => FinishReason::ToolCalls,
        (false, 0) => FinishReason::Stop,
        (false, _) => FinishReason::Length,
    };
    let used = world.number("tokens", &place, 1, 200);
    let usage = Usage { input_tokens: Some(used), output_tokens: Some(used / 2) };
    ModelAnswer { content, finish, usage }
}

/// The facts that the model was shown, by id.
fn facts(messages: &[std::sync::Arc<Message>]) -> Vec<(String, String)> {
    let of = |message: &Message| match message {
        Message::Observation(seen) => {
            seen.facts.iter().map(|fact| (fact.id.to_string(), fact.statement.clone())).collect::<Vec<_>>()
        }
        _ => Vec::new(),
    };
    messages.iter().flat_map(|message| of(message)).collect()
}

fn calls_of(world: &World, place: &str) -> Content {
    let count = world.number("calls", place, 1, 4);
    let call = |index| {
        let at = format!("{place}.{index}");
        let tool = TOOLS[world.choose("tool", &at, &[10, 4, 4, 3, 3, 3, 1, 4, 3, 1])];
        let of = world.choose("of", &at, &[3, 2, 2, 2, 1]);
        let assessment = match world.choose("assesses", &at, &[2, 1]) {
            0 => r#","previous_observation":{"assessment":"informative"}"#,
            _ => "",
        };
        let arguments = match world.choose("arguments", &at, &[14, 1, 1]) {
            0 => format!(r#"{{"of":"thing {of}"{assessment}}}"#),
            1 => r#"{"of":7}"#.to_owned(),
            _ => format!("{{\"of\": {PRIVATE}"),
        };
        ToolRequest { name: tool.to_owned(), arguments, provider_id: Some("call".to_owned()) }
    };
    Content { calls: (0..count).map(call).collect(), ..Content::default() }
}

fn draft(world: &World, place: &str, facts: &[(String, String)]) -> Content {
    let cited: Vec<&str> = facts.iter().map(|(id, _)| id.as_str()).take(3).collect();
    let conclusion = format!("{PRIVATE} conclusion of {place}");
    let first = facts.first();
    let text = match world.choose("draft", place, &[10, 1, 1, 1, 1, 1, 1, 1, 1]) {
        0 => serde_json::json!({"conclusion": {"statement": conclusion}, "citations": cited}).to_string(),
        1 => serde_json::json!({"conclusion": {"statement": conclusion}, "citations": ["f99"]}).to_string(),
        2 => serde_json::json!({"conclusion": {"statement": conclusion}, "citations": []}).to_string(),
        3 => serde_json::json!({"conclusion": null, "citations": cited}).to_string(),
        4 => String::new(),
        5 => format!("{PRIVATE} words that are no draft"),
        6 => serde_json::json!({"conclusion": conclusion}).to_string(),
        7 => {
            let quotes = first.map(|(id, _)| (id.clone(), format!("{PRIVATE} that it never said")));
            let quotes: std::collections::BTreeMap<_, _> = quotes.into_iter().collect();
            serde_json::json!({"conclusion": {"statement": conclusion}, "citations": cited, "quotes": quotes})
                .to_string()
        }
        _ => {
            let draft = serde_json::json!({"conclusion": {"statement": conclusion}, "citations": cited,
                "data": {"n": 7}});
            format!("```json\n{draft}\n```")
        }
    };
    Content { text: Some(text), ..Content::default() }
}
