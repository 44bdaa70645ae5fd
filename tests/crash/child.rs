//! The child program: a runtime over a fused store and fused ports, and the people who answer its questions by
//! looking into the ledger.

use std::process::ExitCode;
use std::sync::Arc;

use futures_util::future::join_all;
use portcullis::adapters::stores::sqlite::SqliteStore;
use portcullis::runtime::execution::{Error, Trouble};
use portcullis::runtime::store::{Filter, Owner, Standing, Store};
use portcullis::runtime::{Outcome, Question, RunHandle, Runtime};
use portcullis::vocabulary::ids::{RunId, Ticket, ToolCallId};
use portcullis::vocabulary::input::{Decision, Reconciliation};
use tokio::signal::unix::{SignalKind, signal};

use crate::fused::Fused;
use crate::points::Points;
use crate::wire::{Errand, Line, Meddling, Plan, Reply, Said, Task};
use crate::world::{World, output, spec};

/// Opened when a child may look for lost runs.
pub(crate) const MAY_RECOVER: u32 = 1;
/// Opened when a child may answer its first question.
pub(crate) const MAY_ANSWER: u32 = 2;
/// Opened when a child may say what it has to say to another's run.
pub(crate) const MAY_MEDDLE: u32 = 3;

pub(crate) fn main(task: &str) -> ExitCode {
    let task: Task = serde_json::from_str(task).unwrap();
    let line = Arc::new(Line::call(&task));
    let points = Points::new(line, task.fuse.clone());
    let mut builder = match task.threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        threads => {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(threads);
            builder
        }
    };
    builder.enable_all().build().unwrap().block_on(work(&task, &points));
    ExitCode::SUCCESS
}

/// One process at work.
struct Child {
    points: Arc<Points>,
    runtime: Runtime,
    store: Arc<SqliteStore>,
    errand: Errand,
}

async fn work(task: &Task, points: &Arc<Points>) {
    // As any embedder does who wants an error in the place of a signal when a file reaches its size limit.
    let _limit = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).unwrap();
    let store = match SqliteStore::create_or_open(&task.store) {
        Ok(store) => Arc::new(store),
        Err(error) => return points.line().say(&trouble("", &format!("{error:?}"))),
    };
    let world = World(Arc::clone(points));
    let runtime = Runtime::builder()
        .model(world.clone())
        .tools(world.clone())
        .judge(world.clone())
        .gates(world)
        .store(Fused::new(Shared(Arc::clone(&store)), Arc::clone(points)))
        .build()
        .unwrap();
    let child = Child { points: Arc::clone(points), runtime, store, errand: task.errand };
    match task.errand {
        Errand::Drive | Errand::DriveAndWait => child.drive(&task.runs).await,
        Errand::Recover => {
            child.line().ask(&Said::Ready { gate: MAY_RECOVER });
            let lost = child.recover().await;
            child.see_all_through(lost).await;
        }
        Errand::Attach => {
            for Plan { run, .. } in &task.runs {
                match child.runtime.attach(&id(run)).await {
                    Ok(_) => child.line().say(&Said::Driving { run: run.clone() }),
                    Err(error) => child.trouble(run, &error),
                }
            }
        }
        Errand::TakeOver => {
            for Plan { run, .. } in &task.runs {
                match child.runtime.take_over(&id(run)).await {
                    Ok(handle) => child.see_through(handle).await,
                    Err(error) => child.trouble(run, &error),
                }
            }
        }
        Errand::Meddle(what) => child.meddle(&id(&task.runs[0].run), what).await,
    }
}

fn id(run: &str) -> RunId {
    run.parse().unwrap()
}

fn trouble(run: &str, what: &str) -> Said {
    Said::Trouble { run: run.to_owned(), what: what.to_owned() }
}

impl Child {
    fn line(&self) -> &Line {
        self.points.line()
    }

    fn trouble(&self, run: &str, error: &Error) {
        self.line().say(&trouble(run, &format!("{error:?}")));
    }

    /// Recovers what is lost, attaches to what waits, starts what is missing, and sees all of it through.
    async fn drive(&self, runs: &[Plan]) {
        let mut handles = self.recover().await;
        let known = match self.store.list(Filter::All).await {
            Ok(known) => known,
            Err(error) => return self.line().say(&trouble("", &format!("{error:?}"))),
        };
        for Plan { run, script } in runs {
            // One that was recovered may wait for a person by now.
            if handles.iter().any(|handle| handle.run().as_str() == run) {
                continue;
            }
            let listed = known.iter().find(|listed| listed.run.as_str() == run);
            let begun = match listed.map(|listed| listed.standing) {
                None => self.runtime.start_as(id(run), spec(script)).await,
                Some(Standing::Awaiting { .. }) => self.runtime.attach(&id(run)).await,
                Some(Standing::Running | Standing::Ended { .. }) => continue,
            };
            match begun {
                Ok(handle) => handles.push(handle),
                Err(error) => self.trouble(run, &error),
            }
        }
        self.see_all_through(handles).await;
    }

    async fn recover(&self) -> Vec<RunHandle> {
        match self.runtime.recover().await {
            Ok(recovery) => {
                recovery.failed.iter().for_each(|(run, error)| self.trouble(run.as_str(), error));
                recovery.runs
            }
            Err(error) => {
                self.trouble("", &error);
                Vec::new()
            }
        }
    }

    async fn see_all_through(&self, handles: Vec<RunHandle>) {
        join_all(handles.into_iter().map(|handle| self.see_through(handle))).await;
    }

    /// Answers what a run asks until it has ended, and takes its release.
    async fn see_through(&self, handle: RunHandle) {
        let run = handle.run().to_string();
        self.line().say(&Said::Driving { run: run.clone() });
        let mut waits = self.errand == Errand::DriveAndWait;
        loop {
            match handle.outcome().await {
                Err(error) => return self.trouble(&run, &error),
                Ok(Outcome::Awaiting(waiting)) => {
                    if std::mem::take(&mut waits) {
                        self.line().ask(&Said::Ready { gate: MAY_ANSWER });
                    }
                    for question in &waiting.questions {
                        if let Err(error) = self.answer(&handle, question).await {
                            return self.trouble(&run, &error);
                        }
                    }
                }
                Ok(Outcome::Ended(ended)) => {
                    let release = serde_json::to_string(&ended.release).unwrap();
                    self.line().say(&Said::Offer { run: run.clone(), key: ended.key.to_string(), release });
                    self.points.pass("delivered.before");
                    let receipt = handle.delivered("read").await;
                    self.points.pass("delivered.after");
                    if let Err(error) = receipt {
                        return self.trouble(&run, &error);
                    }
                    self.line().say(&Said::Ended { run, row: ended.ending.row });
                    return self.given_back(handle.run()).await;
                }
            }
        }
    }

    /// Waits until the run was given back, or could not be, so that no point of that depends on which thread was
    /// faster.
    async fn given_back(&self, run: &RunId) {
        loop {
            let quiet = self.points.passed("release.before") == self.points.passed("release.after");
            if quiet && (self.points.passed("release.refused") > 0 || !self.holds(run).await) {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Whether the run is this process's own.
    async fn holds(&self, run: &RunId) -> bool {
        let own = format!("process {}", std::process::id());
        let listed = self.store.find(run).await;
        matches!(listed, Ok(Some(Listed { owner: Owner::Living { name }, .. })) if name == own)
    }

    /// A person answers: every confirmation is allowed, and what a call did stands in the ledger.
    async fn answer(&self, handle: &RunHandle, question: &Question) -> Result<(), Error> {
        self.points.pass("person.before");
        let answered = match question {
            Question::Decision { ticket, .. } => handle.decide(ticket.clone(), "a person", Decision::Allow).await,
            Question::Reconciliation { call, operation_id, tool } => {
                let look = Said::Look { operation: operation_id.to_string() };
                let outcome = match (self.line().ask(&look), tool) {
                    (Reply::Happened { arguments }, Some(tool)) => {
                        Reconciliation::Applied { output: output(tool, &arguments) }
                    }
                    _ => Reconciliation::NotApplied,
                };
                handle.reconcile(*call, "a person", outcome).await
            }
        };
        self.points.pass("person.after");
        match answered {
            // Another answer was faster.
            Err(Error::Execution(Trouble::Refused(_))) => Ok(()),
            answered => answered,
        }
    }

    /// Says something to a run that another process drives.
    async fn meddle(&self, run: &RunId, what: Meddling) {
        let handle = match self.runtime.attach(run).await {
            Ok(handle) => handle,
            Err(error) => return self.trouble(run.as_str(), &error),
        };
        let waiting = match handle.outcome().await {
            Ok(Outcome::Awaiting(waiting)) => waiting,
            other => return self.line().say(&trouble(run.as_str(), &format!("{other:?}"))),
        };
        self.line().ask(&Said::Ready { gate: MAY_MEDDLE });
        let ticket = waiting.questions.iter().find_map(|question| match question {
            Question::Decision { ticket, .. } => Some(ticket.clone()),
            Question::Reconciliation { .. } => None,
        });
        let told = match what {
            Meddling::Cancel => handle.cancel("a stranger").await,
            Meddling::Decide => {
                let ticket = ticket.unwrap_or(Ticket(String::new()));
                handle.decide(ticket, "a stranger", Decision::Deny { note: None }).await
            }
            Meddling::Reconcile => {
                let call = ToolCallId { round: 1, index: 0 };
                handle.reconcile(call, "a stranger", Reconciliation::NotApplied).await
            }
        };
        let answer = told.map_or_else(|error| format!("{error:?}"), |()| "accepted".to_owned());
        self.line().say(&Said::Told { run: run.to_string(), answer });
        // Whoever finds the owner dead becomes the owner.
        if self.holds(run).await {
            self.see_through(handle).await;
        }
    }
}

/// A store that the child looks into beside its runtime.
struct Shared(Arc<SqliteStore>);

macro_rules! forwarded {
    ($( $name:ident($( $argument:ident: $type:ty ),*) -> $answer:ty; )*) => {
        impl Store for Shared {
            $( fn $name(&self, $( $argument: $type ),*) -> portcullis::runtime::store::Stored<'_, $answer> {
                self.0.$name($( $argument ),*)
            } )*
        }
    };
}

use portcullis::runtime::store::{Append, Beginning, Claim, Lease, Listed, Posted, RequestId};

forwarded! {
    create(beginning: Beginning) -> Lease;
    append(append: Append) -> ();
    claim(run: &RunId, claim: Claim) -> Lease;
    release(lease: Lease) -> ();
    read(run: &RunId) -> Box<dyn std::io::BufRead + Send>;
    find(run: &RunId) -> Option<Listed>;
    list(filter: Filter) -> Vec<Listed>;
    origin(run: &RunId) -> Option<Vec<u8>>;
    post(run: &RunId, request: Vec<u8>) -> RequestId;
    posted() -> Vec<Posted>;
    answer(request: RequestId, answer: Vec<u8>) -> ();
    answered(request: RequestId) -> Option<Vec<u8>>;
}
