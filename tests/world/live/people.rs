//! Calls that need a person, in runs with real parts (SPEC 7.8, 14.20).

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::stand::{Stand, arg};
#[cfg(unix)]
use super::terminal::Terminal;
use crate::components::test;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        test("live::elsewhere_a_decision_is_exit_code_8_and_needs_the_scenario_again", elsewhere),
        test("live::with_json_nobody_is_prompted", with_json),
    ];
    #[cfg(unix)]
    trials.extend([
        test("live::a_decision_is_taken_at_the_prompt", allowed),
        test("live::a_call_is_denied_at_the_prompt", denied),
        test("live::later_leaves_the_run_in_the_store", later),
        test("live::a_ticket_that_expires_ends_the_prompt", expired),
        test("live::what_was_typed_before_a_question_answers_none", typed_before),
        test("live::an_interrupt_at_the_prompt_cancels_the_run", interrupted),
        test("live::a_run_that_somebody_else_moves_on_ends_the_prompt", moved_on),
    ]);
    trials
}

/// `echo` brings evidence, and a person confirms each call.
fn confirmed(expires_ms: Option<u64>) -> Value {
    json!({"echo": {
        "evidence": true, "projection": {"type": "text"}, "confirm": true, "confirm_expires_ms": expires_ms,
    }})
}

/// The ticket that a run waits for.
fn ticket(shown: &str) -> &str {
    let (_, after) = shown.split_once("run? ticket ").unwrap();
    after.split_whitespace().next().unwrap()
}

async fn elsewhere() {
    let mut stand = Stand::new().await;
    let scenario = stand.scripted(&["echo"], &confirmed(None));
    let waiting = stand.run(&["run", arg(&scenario), "--yes"]).await;
    assert_eq!(waiting.code, 8, "{waiting:?}");
    assert!(waiting.out.contains(&format!("allow|deny --with {}", arg(&scenario))), "{waiting:?}");
    let ticket = ticket(&waiting.out).to_owned();
    stand.ear.heard();

    let decide = |more: &[&'static str]| {
        let words = ["decide", "scenario", ticket.as_str(), "allow"];
        words
            .iter()
            .map(|word| (*word).to_owned())
            .chain(more.iter().map(|word| (*word).to_owned()))
            .collect::<Vec<_>>()
    };
    let said = async |words: Vec<String>| stand.run(&words.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let unnamed = said(decide(&[])).await;
    assert_eq!(unnamed.code, 2, "{unnamed:?}");
    assert!(unnamed.err.contains("--with FILE"), "{unnamed:?}");

    // Another spec is not this run's, whatever else the file says.
    let text = std::fs::read_to_string(&scenario).unwrap();
    let other = stand.path("other.json");
    std::fs::write(&other, text.replace("\"task\":\"t\"", "\"task\":\"u\"")).unwrap();
    let foreign = said([decide(&["--yes", "--with"]), vec![arg(&other).to_owned()]].concat()).await;
    assert_eq!(foreign.code, 2, "{foreign:?}");
    assert!(foreign.err.contains("spec.task"), "{foreign:?}");

    let unagreed = said([decide(&["--with"]), vec![arg(&scenario).to_owned()]].concat()).await;
    assert_eq!(unagreed.code, 2, "{unagreed:?}");
    let shown = stand.run(&["show", "scenario"]).await;
    assert_eq!(shown.code, 8);
    assert!(shown.out.contains("allow|deny --with FILE"), "{shown:?}");

    let ended = said([decide(&["--yes", "--with"]), vec![arg(&scenario).to_owned()]].concat()).await;
    assert_eq!(ended.code, 0, "{ended:?}");
    let mut stand = stand;
    let heard = stand.ear.heard();
    assert_eq!(heard.iter().filter(|line| line.starts_with("up ")).count(), 1, "only the agreed one: {heard:?}");
}

async fn with_json() {
    let stand = Stand::new().await;
    let scenario = stand.scripted(&["echo"], &confirmed(None));
    let waiting = stand.run(&["run", arg(&scenario), "--yes", "--json"]).await;
    assert_eq!(waiting.code, 8, "{waiting:?}");
    let line: Value = serde_json::from_str(&waiting.out).unwrap();
    assert_eq!(line["open"], true);
}

#[cfg(unix)]
async fn at_the_prompt(stand: &Stand, settings: &Value) -> Terminal {
    let scenario = stand.scripted(&["echo"], settings);
    let mut terminal = Terminal::start(stand.command(&["run", arg(&scenario), "--yes"]));
    terminal.see("may s__echo (t1.0) run?").await;
    terminal.see("arguments: {}").await;
    terminal.see("[a]llow, [d]eny, [l]ater? ").await;
    terminal
}

#[cfg(unix)]
async fn allowed() {
    let mut stand = Stand::new().await;
    let mut terminal = at_the_prompt(&stand, &confirmed(None)).await;
    assert!(stand.ear.heard().iter().all(|line| !line.starts_with("call")));
    terminal.say("perhaps");
    terminal.see("[a]llow, [d]eny, [l]ater? ").await;
    terminal.say("a");
    let (code, shown) = terminal.end().await;
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("kim decides: allow"), "{shown}");
    stand.ear.hear("call echo").await;
}

#[cfg(unix)]
async fn denied() {
    let mut stand = Stand::new().await;
    let mut terminal = at_the_prompt(&stand, &confirmed(None)).await;
    terminal.say("deny");
    let (code, shown) = terminal.end().await;
    assert_eq!(code, 4, "{shown}");
    assert!(shown.contains("kim decides: deny") && shown.contains("row 3"), "{shown}");
    assert!(stand.ear.heard().iter().all(|line| !line.starts_with("call")));
}

#[cfg(unix)]
async fn later() {
    let stand = Stand::new().await;
    let mut terminal = at_the_prompt(&stand, &confirmed(None)).await;
    terminal.say("l");
    let (code, shown) = terminal.end().await;
    assert_eq!(code, 8, "{shown}");
    assert!(shown.contains("open: the run awaits a person"), "{shown}");
}

#[cfg(unix)]
async fn expired() {
    let stand = Stand::new().await;
    let terminal = at_the_prompt(&stand, &confirmed(Some(700))).await;
    let (code, shown) = terminal.end().await;
    assert_eq!(code, 4, "{shown}");
    assert!(shown.contains("nobody decided in time"), "{shown}");
}

#[cfg(unix)]
async fn typed_before() {
    let mut stand = Stand::new().await;
    // Two calls, and a person whose key repeats at the first question.
    let settings = json!({
        "echo": {"evidence": true, "projection": {"type": "text"}, "confirm": true},
        "pid": {"confirm": true},
    });
    let scenario = stand.scripted(&["echo", "pid"], &settings);
    let mut terminal = Terminal::start(stand.command(&["run", arg(&scenario), "--yes"]));
    // While nothing was asked yet.
    terminal.say("a");
    terminal.see("may s__echo (t1.0) run?").await;
    terminal.see("[l]ater? ").await;
    assert!(stand.ear.heard().iter().all(|line| !line.starts_with("call")));
    terminal.say("a\na\na");
    terminal.see("may s__pid (t2.0) run?").await;
    terminal.see("[l]ater? ").await;
    terminal.say("d");
    let (_, shown) = terminal.end().await;
    let heard = stand.ear.heard();
    assert!(heard.iter().any(|line| line.starts_with("call echo")), "{shown}");
    assert!(heard.iter().all(|line| !line.starts_with("call pid")), "nobody saw that question: {shown}");
}

#[cfg(unix)]
async fn interrupted() {
    let stand = Stand::new().await;
    let mut terminal = at_the_prompt(&stand, &confirmed(None)).await;
    super::whole::interrupt(terminal.id());
    terminal.see("an interrupt cancels").await;
    let (code, shown) = terminal.end().await;
    assert_eq!(code, 5, "{shown}");
}

#[cfg(unix)]
async fn moved_on() {
    let mut stand = Stand::new().await;
    let mut terminal = at_the_prompt(&stand, &confirmed(None)).await;
    let cancelled = stand.run(&["cancel", "scenario", "--by", "lee"]).await;
    assert_eq!(cancelled.code, 5, "{cancelled:?}");
    terminal.see("somebody else has moved the run on").await;
    let (code, shown) = terminal.end().await;
    assert_eq!(code, 5, "{shown}");
    assert!(stand.ear.heard().iter().all(|line| !line.starts_with("call")));
}
