//! What a child says to its parent, one JSON a line, over a loopback socket. What was sent arrives even if its
//! sender is dead by then; half a line is what a killed process leaves, and counts as not said.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

/// The variable that makes this program a child, and holds its task.
pub(crate) const TASK: &str = "PORTCULLIS_CRASH_TASK";

/// What a child is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Task {
    /// The case, in the parent's register.
    pub(crate) case: u64,
    /// The child's number in it.
    pub(crate) process: u32,
    /// Where the parent listens.
    pub(crate) parent: SocketAddr,
    pub(crate) store: PathBuf,
    /// The runs and the scripts they follow.
    pub(crate) runs: Vec<Plan>,
    pub(crate) errand: Errand,
    pub(crate) fuse: Option<Fuse>,
    /// Whether the runtime has two threads, or one, which makes the order of points the same every time.
    pub(crate) threads: usize,
}

/// A run and its script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) run: String,
    pub(crate) script: String,
}

/// What a child does with its runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Errand {
    /// Recovers what was lost, starts what is missing, and sees all of it through, people's answers included.
    Drive,
    /// Recovers what was lost and sees that through. Waits for the parent before it looks.
    Recover,
    /// The same, but waits for the parent before it answers the first question.
    DriveAndWait,
    /// Attaches to the runs, says how that went, and leaves.
    Attach,
    /// Takes the runs over from whoever drives them, and sees them through.
    TakeOver,
    /// Attaches to the first run while it waits, and says something to it when the parent says so. If it then
    /// drives the run, it sees it through.
    Meddle(Meddling),
}

/// What somebody from outside says to a run that another process drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Meddling {
    Cancel,
    Decide,
    Reconcile,
}

/// Where a child stops living, or is stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fuse {
    pub(crate) at: At,
    pub(crate) act: Act,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum At {
    /// The nth time at that point.
    Point { name: String, nth: u32 },
    /// The nth point of all.
    Any { nth: u32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Act {
    Kill,
    Stop,
}

/// What a child says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Said {
    Hello {
        case: u64,
        process: u32,
    },
    /// It is at a point, and goes on.
    Point {
        name: String,
        nth: u32,
    },
    /// It is at a point, and the next thing is a signal to itself.
    Fused {
        name: String,
        nth: u32,
    },
    /// Records are durable: the store has acknowledged them.
    Durable {
        run: String,
        seq: u64,
        lines: String,
    },
    /// A tool was entered: this is its effect. Answered.
    Enter(Entry),
    /// A person looks up what an operation did. Answered.
    Look {
        operation: String,
    },
    /// A release is shown to its reader.
    Offer {
        run: String,
        key: String,
        release: String,
    },
    /// The run's receipt is stored, or was before.
    Ended {
        run: String,
        row: u8,
    },
    /// A run is being driven here.
    Driving {
        run: String,
    },
    /// What somebody from outside said was accepted, or not.
    Told {
        run: String,
        answer: String,
    },
    /// A call of the runtime failed.
    Trouble {
        run: String,
        what: String,
    },
    /// It waits for the parent. Answered when the parent opens the gate of that number.
    Ready {
        gate: u32,
    },
}

/// One effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) run: String,
    pub(crate) call: String,
    pub(crate) operation: String,
    pub(crate) attempt: u32,
    pub(crate) tool: String,
    pub(crate) arguments: String,
}

/// What a parent answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// It is in the ledger.
    Entered,
    /// It is not: a person was told that it had not happened, and it must not happen any more.
    Void,
    /// It happened, with these arguments.
    Happened { arguments: String },
    /// It did not happen, and will not.
    Nothing,
    /// Go on.
    Go,
}

/// A child's end of the line.
pub(crate) struct Line(Mutex<Ends>);

struct Ends {
    out: TcpStream,
    into: BufReader<TcpStream>,
}

impl Line {
    /// Calls the parent.
    pub(crate) fn call(task: &Task) -> Self {
        let out = TcpStream::connect(task.parent).expect("the parent listens");
        out.set_nodelay(true).unwrap();
        let into = BufReader::new(out.try_clone().unwrap());
        let line = Self(Mutex::new(Ends { out, into }));
        line.say(&Said::Hello { case: task.case, process: task.process });
        line
    }

    /// Says something that needs no answer.
    pub(crate) fn say(&self, said: &Said) {
        let mut ends = self.0.lock().unwrap();
        send(&mut ends.out, said);
    }

    /// Says something and waits for the answer.
    pub(crate) fn ask(&self, said: &Said) -> Reply {
        let mut ends = self.0.lock().unwrap();
        send(&mut ends.out, said);
        let mut line = String::new();
        let read = ends.into.read_line(&mut line);
        // Without a parent nobody is left to whom anything could matter.
        if !matches!(read, Ok(1..)) {
            std::process::exit(1);
        }
        serde_json::from_str(&line).unwrap()
    }
}

fn send(out: &mut TcpStream, said: &impl Serialize) {
    let mut line = serde_json::to_vec(said).unwrap();
    line.push(b'\n');
    if out.write_all(&line).is_err() {
        std::process::exit(1);
    }
}

/// The parent's answer.
pub(crate) fn reply(out: &mut TcpStream, reply: &Reply) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(reply).unwrap();
    line.push(b'\n');
    out.write_all(&line)
}
