//! Audits of recorded runs: endings, inferred citations, findings.

use portcullis::adapters::audit::{Audit, Audited, Finding};
use portcullis::adapters::recording::Recording;
use portcullis::adapters::transcripts::Transcript;
use portcullis::history::{Policy, Recorder, replay};
use portcullis::vocabulary::spec::Settings;

fn settings(written: &[&str]) -> Settings {
    let mut settings = Settings::none();
    written.iter().try_for_each(|written| settings.set(written)).unwrap();
    settings
}

/// Audits a list of messages, every turn of it, and replays what each turn did.
fn audit(messages: &[String], rules: &[&str]) -> Vec<Audited> {
    let document = format!("[{}]", messages.join(","));
    let recording = Recording::new(Transcript::read(document.as_bytes()).unwrap());
    let rules = settings(rules);
    let mut audit = Audit::new(&recording, &rules);
    let mut audited = Vec::new();
    loop {
        let (mut recorder, mut history) = (Recorder::new(), Vec::new());
        let run = format!("turn-{}", audited.len() + 1).parse().unwrap();
        let turn = audit.turn(&run, |step, engine| history.extend_from_slice(recorder.record(engine, step)));
        let Some(turn) = turn else { return audited };
        let turn = turn.unwrap();
        let summary = replay(&*history, Policy::ReportAll).unwrap();
        assert_eq!((summary.divergences, &summary.ending), (Vec::new(), &turn.ending));
        audited.push(turn);
    }
}

fn one(messages: &[String]) -> Audited {
    audit(messages, &[]).remove(0)
}

fn user(text: &str) -> String {
    format!(r#"{{"role":"user","content":"{text}"}}"#)
}

fn says(text: &str) -> String {
    format!(r#"{{"role":"assistant","content":"{text}"}}"#)
}

fn calls(id: &str, name: &str, arguments: &str) -> String {
    let arguments = arguments.replace('"', "\\\"");
    format!(
        r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"{name}","arguments":"{arguments}"}}}}]}}"#
    )
}

fn gives(id: &str, text: &str) -> String {
    format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"{text}"}}"#)
}

fn row(audited: &Audited) -> Option<u8> {
    audited.ending.as_ref().map(|ending| ending.row)
}

fn second(audited: &Audited) -> Option<u8> {
    audited.grounded.as_ref().and_then(|grounded| grounded.row)
}

#[test]
fn an_answer_is_no_success_as_it_stands_and_one_if_its_literals_are_its_citations() {
    let run = one(&[user("when?"), calls("a", "look", "{}"), gives("a", "gate B52 at 17:30"), says("At 17:30.")]);
    assert_eq!((row(&run), second(&run), run.facts), (Some(2), Some(1), 1));
    assert!(run.findings.is_empty(), "{:?}", run.findings);
    let run = one(&[user("when?"), calls("a", "look", "{}"), gives("a", "gate B52"), says("At 17:30.")]);
    assert_eq!((row(&run), second(&run)), (Some(2), Some(2)), "17:30 was never observed");
}

#[test]
fn an_answer_without_a_look_is_released_without_evidence() {
    let run = one(&[user("delete it"), says("I deleted all 14 files.")]);
    assert_eq!((row(&run), second(&run)), (Some(3), Some(3)));
    assert_eq!(run.findings, [Finding::ReleasedWithoutEvidence]);
}

#[test]
fn a_later_turn_may_stand_on_what_an_earlier_one_observed() {
    let runs = audit(
        &[user("when?"), calls("a", "look", "{}"), gives("a", "17:30"), says("17:30"), user("again?"), says("17:30")],
        &[],
    );
    assert_eq!(runs.iter().map(row).collect::<Vec<_>>(), [Some(2), Some(2)]);
    assert_eq!(runs.iter().map(second).collect::<Vec<_>>(), [Some(1), Some(1)]);
    assert!(runs[1].findings.is_empty());
}

#[test]
fn a_limit_that_the_recording_does_not_show_is_found_under_a_policy() {
    let messages = [
        user("q"),
        calls("a", "look", "{}"),
        gives("a", "x"),
        calls("b", "look", "{\"n\":2}"),
        gives("b", "y"),
        says("ok"),
    ];
    let free = audit(&messages, &[]).remove(0);
    let met = audit(&messages, &["budgets.model_calls=3"]).remove(0);
    let limited = audit(&messages, &["budgets.model_calls=2"]).remove(0);
    assert_eq!([row(&free), row(&met), row(&limited)], [Some(2), Some(2), Some(13)]);
    assert_eq!(limited.findings, [Finding::LimitShownAsSuccess]);
    let none = audit(&messages, &["budgets.model_calls=0"]).remove(0);
    assert_eq!(
        (row(&none), &*none.findings),
        (Some(14), &[Finding::ReleasedWithoutEvidence, Finding::LimitShownAsSuccess][..])
    );
}

#[test]
fn a_recording_that_stops_is_open_and_says_where() {
    let run = one(&[user("q"), calls("a", "look", "{}"), gives("a", "x")]);
    assert_eq!((row(&run), run.unanswered, &*run.findings), (None, Some("call_model"), &[Finding::NoAnswer][..]));
    let run = one(&[user("q"), calls("a", "look", "{}")]);
    assert_eq!(run.unanswered, Some("invoke_tool"));
    assert_eq!(run.findings, [Finding::NoAnswer, Finding::OrphanCalls { calls: 1 }]);
}

#[test]
fn a_failed_write_is_claimed_as_done_unless_it_was_done_later_or_admitted() {
    let write = |id, path: &str| calls(id, "write_file", &format!("{{\"path\":\"{path}\"}}"));
    let failed = gives("a", "Error: denied");
    let claimed = Finding::FailedWriteClaimedDone { tool: "write_file".to_owned() };
    let found = |messages: &[String]| one(messages).findings.contains(&claimed);
    assert!(found(&[user("save"), write("a", "/app/x"), failed.clone(), says("Saved.")]));
    assert!(found(&[
        user("save"),
        write("a", "/app/x"),
        failed.clone(),
        write("b", "/tmp/x"),
        gives("b", "ok"),
        says("Saved.")
    ]));
    assert!(!found(&[
        user("save"),
        write("a", "/app/x"),
        failed.clone(),
        write("b", "/app/x"),
        gives("b", "ok"),
        says("Saved.")
    ]));
    assert!(!found(&[user("save"), write("a", "/app/x"), failed.clone(), says("I was unable to save it.")]));
    assert!(!found(&[user("save"), write("a", "/app/x"), failed]), "nobody claims anything");
    let read = calls("a", "read_file", "{\"path\":\"/app/x\"}");
    assert!(!found(&[user("look"), read, gives("a", "Error: denied"), says("Done.")]));
}

#[test]
fn what_is_odd_about_calls_is_counted() {
    let run = one(&[
        user("q"),
        calls("a", "look", "{\"x\": 1}"),
        gives("a", "1"),
        calls("a", "look", "{\"x\":1}"),
        gives("a", "1"),
        calls("b", "look", "{broken"),
        gives("b", "2"),
        says("It is 1 and 2 and 34."),
    ]);
    let expected = [
        Finding::MalformedArguments { calls: 1 },
        Finding::RepeatedCall { tool: "look".to_owned(), times: 2 },
        Finding::ReusedCallIds { calls: 1 },
    ];
    assert_eq!(run.findings, expected);
}

#[test]
fn results_without_a_call_and_work_after_the_end_belong_to_their_turn() {
    let runs = audit(
        &[user("one"), says("done 11"), user("two"), says("done 22"), says("and more"), gives("z", "from nowhere")],
        &[],
    );
    assert_eq!(runs[0].findings, [Finding::ReleasedWithoutEvidence]);
    let expected =
        [Finding::ReleasedWithoutEvidence, Finding::WorkAfterEnd { replies: 1 }, Finding::OrphanResults { results: 1 }];
    assert_eq!(runs[1].findings, expected);
}
