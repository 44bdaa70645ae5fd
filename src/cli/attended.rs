//! A run with real parts on a terminal: a person who sits there is asked there (SPEC 7.8).

use std::io::{self, BufRead, IsTerminal, Write};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::answer::user;
use super::exit::{Problem, note, printable};
use super::interrupts::Interrupts;
use super::performance::{failed, watch};
use super::questions;
use super::screen::Screen;
use super::subject::visible;
use crate::adapters::scenario::Stage;
use crate::runtime::clock::{Clock, SystemClock};
use crate::runtime::execution::{Error, Trouble};
use crate::runtime::{Outcome, Question, Waiting};
use crate::vocabulary::ids::RunId;
use crate::vocabulary::input::{CancelOrigin, Decision, Input, Reconciliation};

/// How often it is looked whether somebody else has answered.
const LOOK: Duration = Duration::from_millis(500);

/// Plays a run until it has ended, or until a person has to answer who is not here or wants to answer later.
pub(crate) async fn attend(stage: &mut Stage, run: &RunId, screen: &Screen) -> Result<Outcome, Problem> {
    let mut keyboard = Keyboard::default();
    loop {
        screen.spin();
        let outcome = watch(stage, run).await?;
        screen.still();
        let Outcome::Awaiting(waiting) = &outcome else { return Ok(outcome) };
        if screen.is_json() || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Ok(outcome);
        }
        let Some(question) = waiting.questions.first() else { return Ok(outcome) };
        match ask(stage, question, waiting, &mut keyboard).await? {
            Said::This(input) => match stage.report(input).await {
                Ok(()) => {}
                // Somebody else answered meanwhile.
                Err(Error::Execution(Trouble::Refused(refusal))) => {
                    note!("portcullis: not taken: {}", printable(&refusal.to_string()));
                }
                Err(error) => return Err(failed(&error)),
            },
            Said::Nothing => return Ok(outcome),
            Said::TooLate => stage.wake().await.map_err(|error| failed(&error))?,
            Said::Already => {}
        }
    }
}

/// What came of a question.
enum Said {
    /// An answer.
    This(Input),
    /// Not now.
    Nothing,
    /// A timer came first.
    TooLate,
    /// Somebody else answered.
    Already,
}

async fn ask(stage: &Stage, question: &Question, waiting: &Waiting, keyboard: &mut Keyboard) -> Result<Said, Problem> {
    let mut interrupts = Interrupts::listen();
    note!("{}", printable(&questions::asked(question)));
    let (Question::Decision { call, .. } | Question::Reconciliation { call, .. }) = question;
    if let Some(plan) = stage.plan(*call).await.map_err(|error| failed(&error))? {
        note!("  arguments: {}", visible(&plan.arguments.canonical()));
    }
    let choices = match question {
        Question::Decision { .. } => "[a]llow, [d]eny, [l]ater",
        Question::Reconciliation { .. } => "[n]othing happened, [u]nknown, [l]ater",
    };
    loop {
        let asked = Instant::now();
        keyboard.forget();
        ask_for(&format!("{choices}? "));
        let line = tokio::select! {
            line = keyboard.line(asked) => line,
            by = interrupts.next() => {
                note!();
                let origin = CancelOrigin::Caller;
                return Ok(Said::This(Input::CancelRequested { by: by.to_owned(), origin }));
            }
            () = due(waiting.due_ms) => {
                note!();
                return Ok(Said::TooLate);
            }
            moved = moved_on(stage, waiting) => {
                note!();
                moved?;
                note!("portcullis: somebody else has moved the run on");
                return Ok(Said::Already);
            }
        };
        let Some(line) = line else { return Ok(Said::Nothing) };
        if let Some(said) = understood(question, line.trim()) {
            return Ok(said);
        }
    }
}

/// Comes back when the run is not where it was: somebody answered elsewhere, or cancelled it.
async fn moved_on(stage: &Stage, waiting: &Waiting) -> Result<(), Problem> {
    loop {
        tokio::time::sleep(LOOK).await;
        match stage.handle().outcome().await.map_err(|error| failed(&error))? {
            Outcome::Awaiting(now) if now.records == waiting.records => {}
            Outcome::Awaiting(_) | Outcome::Ended(_) => return Ok(()),
        }
    }
}

/// What a word says to a question; `None` for a word that says nothing.
fn understood(question: &Question, word: &str) -> Option<Said> {
    let by = user();
    match (question, word.to_ascii_lowercase().as_str()) {
        (Question::Decision { ticket, .. }, "a" | "allow") => {
            Some(Said::This(Input::DecisionGiven { ticket: ticket.clone(), by, decision: Decision::Allow }))
        }
        (Question::Decision { ticket, .. }, "d" | "deny") => {
            let decision = Decision::Deny { note: None };
            Some(Said::This(Input::DecisionGiven { ticket: ticket.clone(), by, decision }))
        }
        (Question::Reconciliation { call, .. }, "n" | "nothing") => {
            Some(Said::This(Input::ToolReconciled { call: *call, by, outcome: Reconciliation::NotApplied }))
        }
        (Question::Reconciliation { call, .. }, "u" | "unknown") => {
            Some(Said::This(Input::ToolReconciled { call: *call, by, outcome: Reconciliation::Unknown }))
        }
        (Question::Decision { .. } | Question::Reconciliation { .. }, "l" | "later") => Some(Said::Nothing),
        (Question::Decision { .. } | Question::Reconciliation { .. }, _) => None,
    }
}

/// What is typed, line by line, and when. A thread of its own reads it from the first question on, for nobody can be
/// kept from going on by a person who types nothing.
#[derive(Default)]
struct Keyboard(Option<mpsc::UnboundedReceiver<(Instant, String)>>);

impl Keyboard {
    /// What was typed before a question answers none.
    fn forget(&mut self) {
        if self.0.is_none() {
            forget_typed();
        }
    }

    /// The next line that is typed from that moment on; `None` when no more will come.
    async fn line(&mut self, asked: Instant) -> Option<String> {
        let lines = self.0.get_or_insert_with(listen);
        loop {
            let (typed, line) = lines.recv().await?;
            if typed >= asked {
                return Some(line);
            }
        }
    }
}

fn listen() -> mpsc::UnboundedReceiver<(Instant, String)> {
    let (tell, told) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if tell.send((Instant::now(), line)).is_err() {
                return;
            }
        }
    });
    told
}

/// Throws away what was typed and not read yet.
pub(super) fn forget_typed() {
    #[cfg(unix)]
    {
        use rustix::termios::{QueueSelector, tcflush};
        // What is no terminal has nothing of the kind.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    }
}

/// Asks without ending the line.
pub(super) fn ask_for(question: &str) {
    let mut out = io::stderr();
    // An error output that is closed asks nobody.
    let _ = write!(out, "{question}").and_then(|()| out.flush());
}

async fn due(due_ms: Option<u64>) {
    match due_ms {
        Some(due_ms) => {
            let left = due_ms.saturating_sub(SystemClock::new().now_ms());
            tokio::time::sleep(Duration::from_millis(left)).await;
        }
        None => std::future::pending().await,
    }
}
