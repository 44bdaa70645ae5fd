//! The plugins that are shipped, end to end.

use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::plugins::{AnswerPolicy, ToolPermission};
use portcullis::runtime::plugins::Plugin;
use portcullis::runtime::ports::ModelAnswer;
use portcullis::runtime::{Builder, Outcome, Question, VirtualClock};
use portcullis::vocabulary::input::Decision;
use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::spec::{PluginSpec, Spec, ToolSpec};
use portcullis::vocabulary::tool::ObservationCode;

use super::super::{Talker, Workshop, asks, runtime, spec};
use super::{Played, play, with};

fn shipped(builder: Builder) -> Builder {
    builder.plugin(ToolPermission).plugin(AnswerPolicy)
}

async fn permitted(config: &str, calls: &[&str]) -> Vec<(Option<ObservationCode>, String)> {
    let plugins = vec![PluginSpec { id: "tool-permission".to_owned(), config: Json::parse(config).unwrap() }];
    let tools = calls.iter().map(|name| ToolSpec { repeatable: true, ..ToolSpec::new(*name) }).collect();
    let spec = Spec { plugins, tools, ..spec() };
    let played = play(spec, [(1, Ok(asks(calls)))], shipped).await;
    played.observations().into_iter().map(|observation| (observation.code, observation.text)).collect()
}

#[tokio::test]
async fn the_first_rule_that_matches_decides_and_what_none_matches_is_blocked() {
    let config = r#"{"rules":[{"tool":"read_secret","action":"block","reason":"not that one"},
        {"tool":"read_*","action":"allow"},{"tool":"list?","action":"allow"},{"tool":"*_all","action":"allow"}]}"#;
    let seen = permitted(config, &["read_secret", "read_file", "list1", "list", "drop_all", "read", "other"]).await;
    let allowed: Vec<bool> = seen.iter().map(|(code, _)| code.is_none()).collect();
    assert_eq!(allowed, [false, true, true, false, true, false, false]);
    assert!(seen[0].1.contains("not that one") && seen[6].1.contains("no rule allows this tool"));
    assert!(seen.iter().all(|(code, _)| code.is_none_or(|code| code == ObservationCode::Blocked)));
}

#[tokio::test]
async fn a_configuration_that_says_nothing_blocks_everything_and_another_default_is_heeded() {
    assert_eq!(permitted("{}", &["act"]).await[0].0, Some(ObservationCode::Blocked));
    assert_eq!(permitted(r#"{"default":"allow"}"#, &["act"]).await[0].0, None);
}

#[tokio::test]
async fn a_tool_that_is_to_be_confirmed_waits_for_a_person_and_no_longer_than_its_rule_says() {
    let config = r#"{"rules":[{"tool":"act","action":"confirm","expires_ms":500},{"tool":"look","action":"allow"}]}"#;
    for decision in [Some(Decision::Allow), Some(Decision::Deny { note: None }), None] {
        let clock = VirtualClock::default();
        let model = Talker::new(&clock, [(0, Ok(asks(&["look", "act"])))]);
        let (asked, workshop) = (std::sync::Arc::clone(&model.asked), Workshop::new(&clock, 5));
        let builder = runtime(&clock, MemoryStore::new(), model, workshop.clone());
        let runtime = shipped(builder).build().unwrap();
        let hold = portcullis::runtime::clock::Clock::busy(&clock);
        let handle = runtime.start(with(&[("tool-permission", config)])).await.unwrap();
        let Outcome::Awaiting(waiting) = handle.outcome().await.unwrap() else { panic!("nobody was asked") };
        let [Question::Decision { ticket, tool, .. }] = &waiting.questions[..] else { panic!("{waiting:?}") };
        assert_eq!((tool.as_deref(), workshop.entered.lock().unwrap().len()), (Some("act"), 0));
        if let Some(decision) = &decision {
            handle.decide(ticket.clone(), "me", decision.clone()).await.unwrap();
        }
        drop(hold);
        let ended = loop {
            // It may be seen waiting once more before its timer wakes it.
            if let Outcome::Ended(ended) = handle.outcome().await.unwrap() {
                break ended;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(ended.ending.row, 1);
        let shown = format!("{:?}", asked.lock().unwrap()[1].messages);
        let code = match decision {
            Some(Decision::Deny { .. }) => "Denied",
            Some(_) => "code: None",
            None => "DecisionExpired",
        };
        assert!(shown.contains(code), "{shown}");
        assert_eq!(workshop.entered.lock().unwrap().len(), if code == "code: None" { 2 } else { 1 });
    }
}

async fn answered(config: &str, draft: &str) -> Played {
    let answers = [(1, Ok(asks(&["look"]))), (1, Ok(ModelAnswer::text(draft)))];
    play(with(&[("answer-policy", config)]), answers, shipped).await
}

#[tokio::test]
async fn an_answer_that_says_what_is_forbidden_is_held_back_and_the_reason_does_not_repeat_it() {
    let config = r#"{"forbidden":["never","(?i)hunter2|\\b1234\\b|^fact of t1"]}"#;
    let draft = |statement: &str, data: &str, quotes: &str| {
        format!(r#"{{"conclusion":{{"statement":"{statement}"}},"citations":["f1"],"quotes":{quotes},"data":{data}}}"#)
    };
    // The observed fact is shown to the reader as well: nothing that cites it may pass here.
    let strict = answered(config, &draft("fine", "{}", "{}")).await;
    assert_eq!(strict.end(), (20, r#"{"type":"blocked","gate":"answer-policy"}"#.to_owned()));
    let config = r#"{"forbidden":["never","(?i)hunter2|\\b1234\\b|^of t1"]}"#;
    let drafts = [
        draft("it is HUNTER2", "{}", "{}"),
        draft("s", r#"{"a":[{"b":"hunter2"}]}"#, "{}"),
        draft("s", r#"{"Hunter2":true}"#, "{}"),
        draft("s", r#"{"pin":1234}"#, "{}"),
        draft("s", "{}", r#"{"f1":"of t1.0"}"#),
    ];
    for draft in drafts {
        let played = answered(config, &draft).await;
        assert_eq!(played.end().0, 20, "{draft}");
        let gate = played.history.lines().find(|line| line.contains(r#""type":"gate_answered""#)).unwrap();
        // The answer alone: an id or a hash may hold any digits.
        let answer = gate.split(r#""answer":"#).nth(1).and_then(|rest| rest.split(r#","signals""#).next()).unwrap();
        assert_eq!(answer, r#"{"type":"block","reason":"the answer matches forbidden/1"}}"#);
        assert!(!serde_json::to_string(&played.ended.release).unwrap().contains("unter2"));
    }
    assert_eq!(answered(config, &draft("fine", r#"{"pin":12345}"#, r#"{"f1":"fact"}"#)).await.end().0, 1);
}

#[tokio::test]
async fn an_answer_without_a_required_field_or_over_its_size_is_held_back() {
    let draft = r#"{"conclusion":{"statement":"12345"},"citations":["f1"],"data":{"a":{"b":0},"c":null}}"#;
    let cases = [
        (r#"{"required":["/a/b"]}"#, 1, ""),
        (r#"{"required":["/a/b","/d"]}"#, 20, "the answer's data lacks required/1"),
        (r#"{"required":["/c"]}"#, 20, "the answer's data lacks required/0"),
        (r#"{"max_bytes":27}"#, 1, ""),
        (r#"{"max_bytes":26}"#, 20, "the answer has 27 bytes, over max_bytes 26"),
        ("{}", 1, ""),
    ];
    for (config, row, reason) in cases {
        let played = answered(config, draft).await;
        assert_eq!(played.end().0, row, "{config}");
        assert!(played.history.contains(reason), "{config}");
    }
    let bare = r#"{"conclusion":{"statement":"s"},"citations":["f1"]}"#;
    assert_eq!(answered(r#"{"required":["/a"]}"#, bare).await.end().0, 20, "an answer without data has no field");
}

#[test]
fn a_configuration_that_could_not_be_heeded_is_refused_with_its_place() {
    let faults: [(&dyn Plugin, &str, &str); 10] = [
        (&AnswerPolicy, r#"{"forbidden":["ok","("]}"#, "/forbidden/1"),
        (&AnswerPolicy, r#"{"forbidden":["(\\w{100}){100}"]}"#, "/forbidden/0"),
        (&AnswerPolicy, r#"{"forbidden":["(a)\\1"]}"#, "/forbidden/0"),
        (&AnswerPolicy, r#"{"required":["a"]}"#, "/required/0"),
        (&AnswerPolicy, r#"{"forbiden":[]}"#, ""),
        (&AnswerPolicy, r#"{"max_bytes":0}"#, "/max_bytes"),
        (&ToolPermission, r#"{"rules":[{"tool":"a","action":"allow","reason":"r"}]}"#, "/rules/0"),
        (&ToolPermission, r#"{"rules":[{"tool":"a","action":"block","expires_ms":5}]}"#, "/rules/0"),
        (&ToolPermission, r#"{"rules":[{"tool":"{a,b}","action":"block"}]}"#, "/rules/0/tool"),
        (&ToolPermission, r#"{"default":"ask"}"#, "/default"),
    ];
    for (plugin, config, place) in faults {
        let config = Json::parse(config).unwrap();
        let checked = plugin.manifest().check_config(&config).and_then(|()| plugin.activate(&config).map(|_| ()));
        let error = checked.unwrap_err();
        assert_eq!(error.pointer.map(|pointer| pointer.to_string()).as_deref(), Some(place), "{}", error.reason);
    }
    for plugin in [&AnswerPolicy as &dyn Plugin, &ToolPermission] {
        assert!(plugin.manifest().config.is_some(), "its schema can be read");
    }
}

#[tokio::test]
async fn a_bad_pattern_in_a_spec_ends_the_run_in_row_18() {
    let played = answered(r#"{"forbidden":["("]}"#, "never asked for").await;
    assert_eq!(played.end(), (18, r#"{"type":"resolution","kind":"config"}"#.to_owned()));
}
