//! The program around the runtime: it recovers what was lost, starts its runs, and holds them until they are done.

use std::io::Read;
use std::sync::Arc;

use portcullis::engine::Engine;
use portcullis::history::{FaultCode, Line, Replay};
use portcullis::runtime::execution::{Error, Trouble};
use portcullis::runtime::store::{Append, Claim, Standing, Store, StoreError, each_line};
use portcullis::runtime::{Event, OnDrop, Outcome, RunHandle, Runtime};
use portcullis::vocabulary::ids::RunId;
use portcullis::vocabulary::input::Input;

use crate::bugs::Bug;
use crate::faults::Fault;
use crate::people;
use crate::plugin::Watcher;
use crate::ports::Ports;
use crate::process::{Process, ProcessClock};
use crate::specs;
use crate::store::SimulatedStore;
use crate::told::Told;

/// A host in its process.
#[derive(Clone)]
pub(crate) struct Host {
    pub(crate) process: Arc<Process>,
    pub(crate) runtime: Runtime,
}

impl Host {
    pub(crate) fn new(process: &Arc<Process>) -> Self {
        let ports = Ports(Arc::clone(process));
        let runtime = Runtime::builder()
            .clock(ProcessClock(Arc::clone(process)))
            .store(SimulatedStore::new(process, process.world.medium.session()))
            .model(ports.clone())
            .tools(ports.clone())
            .judge(ports.clone())
            .gates(ports.clone())
            .plugin(Watcher(ports))
            .reproducible(process.world.seed)
            .build()
            .unwrap();
        Self { process: Arc::clone(process), runtime }
    }

    /// Lives until the power goes.
    pub(crate) fn live(self, takes_over: bool) {
        let world = &self.process.world;
        for run in world.runs.clone() {
            let at = format!("{run} p{}", self.process.number);
            tokio::spawn(self.clone().hold(run.clone(), takes_over));
            for (fault, by) in [(Fault::Cancel, "a caller"), (Fault::Cancel, "a second caller")] {
                if world.goes_wrong(fault, format!("{at} by {by}")) {
                    tokio::spawn(self.clone().cancel(run.clone(), by));
                }
            }
        }
        tokio::spawn(self.recover_now_and_then());
    }

    async fn cancel(self, run: RunId, by: &'static str) {
        let at = format!("{run} p{} by {by}", self.process.number);
        let after_ms = self.process.world.number("cancel_ms", at, 0, 12_000);
        self.process.pass(after_ms).await;
        let cancelled = self.runtime.cancel(&run, by).await;
        self.process.awake().await;
        self.told(&run, "cancel", cancelled.err());
    }

    /// Whoever has a process that stays looks after lost runs.
    async fn recover_now_and_then(self) {
        let world = &self.process.world;
        loop {
            if world.bug != Some(Bug::NeverRecovers) {
                match self.runtime.recover().await {
                    Ok(recovery) => {
                        for (run, error) in recovery.failed {
                            self.told(&run, "recover", Some(error));
                        }
                    }
                    Err(error) => self.told(&world.runs[0], "recover", Some(error)),
                }
            }
            self.process.pass(5_000).await;
        }
    }

    /// What a caller was told: it must be nothing that breaks a rule, and it must hold no private text.
    pub(crate) fn told(&self, run: &RunId, what: &str, error: Option<Error>) {
        let Some(error) = error else { return };
        let world = &self.process.world;
        world.note(format_args!("p{} {what} {run}: {error}", self.process.number));
        world.observe(|seen| seen.shown(run, &format!("{error} {error:?}")));
        match &error {
            Error::Execution(Trouble::Damaged { fault, .. }) if fault.code != FaultCode::Empty => {
                world.breach(format_args!("{run}: {error}"));
            }
            Error::Execution(Trouble::Diverged { .. } | Trouble::PluginTwice(_) | Trouble::Unequipped(_))
            | Error::Resolution { .. } => world.breach(format_args!("{run}: {error}")),
            Error::Execution(_) | Error::Commit(_) => {}
        }
    }

    /// Holds a run until it is done, whatever happens to it.
    async fn hold(self, run: RunId, mut takes_over: bool) {
        let world = Arc::clone(&self.process.world);
        self.enter_again(&run);
        self.deliver_unrecovered(&run).await;
        let mut tries = 0_u32;
        while !world.lock().observed.is_delivered(&run) {
            self.process.awake().await;
            tries += 1;
            let handle = match self.reach(&run, takes_over).await {
                Ok(handle) => handle,
                Err(error) => {
                    self.told(&run, "reach", Some(error));
                    self.process.pass(700).await;
                    continue;
                }
            };
            takes_over = false;
            self.watch(&run, handle, tries).await;
            self.process.pass(300).await;
        }
        world.note(format_args!("p{} {run} is done", self.process.number));
        world.done.notify_one();
    }

    async fn reach(&self, run: &RunId, takes_over: bool) -> Result<RunHandle, Error> {
        let (world, number) = (&self.process.world, self.process.number);
        let stored = world.lock().observed.has(run);
        if !stored {
            let spec = specs::spec(world, run.as_str());
            return match self.runtime.start_as(run.clone(), spec).await {
                // An earlier try had begun it after all.
                Err(Error::Commit(StoreError::RunExists { .. })) => self.runtime.attach(run).await,
                started => started,
            };
        }
        if world.bug == Some(Bug::NeverRecovers) {
            return Ok(std::future::pending().await);
        }
        world.note(format_args!("p{number} reaches {run}, takes over: {takes_over}"));
        let reached = if takes_over { self.runtime.take_over(run).await } else { self.runtime.attach(run).await };
        if let Err(error @ Error::Execution(Trouble::UnknownRun(_))) = &reached {
            world.breach(format_args!("{run}: {error}, though it is stored"));
        }
        reached
    }

    /// Watches a run until it has ended, waits for a person, or its driver had to stop.
    async fn watch(&self, run: &RunId, handle: RunHandle, tries: u32) {
        let at = format!("{run} p{} {tries}", self.process.number);
        let leaves = self.process.world.goes_wrong(Fault::Disconnect, &at);
        let leaves_ms = if leaves { self.process.world.number("leaves_ms", &at, 0, 4_000) } else { 86_400_000 };
        let handle = if leaves { handle.on_drop(OnDrop::Cancel) } else { handle };
        let outcome = tokio::select! {
            biased;
            outcome = self.seen(run, &handle) => Some(outcome),
            () = self.process.pass(leaves_ms) => None,
        };
        self.process.awake().await;
        match outcome {
            None => self.process.world.note(format_args!("p{} lets {run} go", self.process.number)),
            Some(Ok(Outcome::Awaiting(waiting))) => people::asked(self, run, &waiting).await,
            Some(Ok(Outcome::Ended(_))) => self.deliver(run, &handle, &at).await,
            Some(Err(error)) => {
                self.told(run, "outcome", Some(error));
                self.is_over(run).await;
            }
        }
    }

    /// What a holder sees: each event, and where the run comes to.
    async fn seen(&self, run: &RunId, handle: &RunHandle) -> Result<Outcome, Error> {
        let world = &self.process.world;
        let mut events = handle.events();
        let (mut more, mut told) = (true, Told::default());
        // In one task, one after the other: who is told first is no matter of chance.
        let mut outcome = std::pin::pin!(handle.outcome());
        loop {
            tokio::select! {
                biased;
                event = events.next(), if more => match event {
                    Some(event) => {
                        let twice = world.bug == Some(Bug::TellsTwice) && matches!(event, Event::ToolResult { .. });
                        (0..=u8::from(twice)).for_each(|_| self.told_of(run, &event, &mut told));
                    }
                    None => more = false,
                },
                outcome = &mut outcome => {
                    if let Ok(Outcome::Ended(ended)) = &outcome {
                        let mut release = serde_json::to_string(&ended.release).unwrap();
                        if world.bug == Some(Bug::RendersAnew) {
                            release = release.replacen('{', &format!("{{\"rendered\":{},", world.now_ms()), 1);
                        }
                        let key = ended.key.to_string();
                        world.note(format_args!("p{} {run} released {key} {release}", self.process.number));
                        world.observe(|seen| seen.released(run, &release, &key, &ended.head));
                    }
                    if let Ok(Outcome::Awaiting(waiting)) = &outcome {
                        world.observe(|seen| seen.shown(run, &format!("{waiting:?}")));
                    }
                    return outcome;
                }
            }
        }
    }

    fn told_of(&self, run: &RunId, event: &Event, told: &mut Told) {
        let world = &self.process.world;
        world.observe(|seen| seen.shown(run, &format!("{event:?}")).and_then(|()| told.take(run, event, seen)));
        if matches!(event, Event::Finished(_)) {
            let ended = world.lock().observed.has_ended(run);
            world.check(if ended { Ok(()) } else { Err(format!("{run}: its end was told before it was durable")) });
        }
    }

    /// The run is over in this process: what it had under way here is dropped.
    async fn is_over(&self, run: &RunId) {
        self.process.pass(1).await;
        let number = self.process.number;
        let over_here = self.process.world.lock().observed.has_heard(number, run);
        if over_here {
            self.process.world.observe(|seen| seen.all_dropped(number, run));
        }
    }

    /// Hands the release on, and says so.
    async fn deliver(&self, run: &RunId, handle: &RunHandle, at: &str) {
        self.is_over(run).await;
        if self.process.world.goes_wrong(Fault::NoReceipt, at) {
            return self.process.world.until_healed().await;
        }
        self.process.act(format!("delivered {at}")).await;
        self.told(run, "receipt", handle.delivered("read").await.err());
        if self.process.world.goes_wrong(Fault::ReceiptTwice, at) {
            self.told(run, "receipt", handle.delivered("read again").await.err());
        }
    }

    /// The seeded bug of a host that knows better than to recover a run that has ended.
    async fn deliver_unrecovered(&self, run: &RunId) {
        let world = &self.process.world;
        let is_undelivered = world.lock().observed.has_ended(run) && !world.lock().observed.is_delivered(run);
        if world.bug != Some(Bug::DeliversUnrecovered) || !is_undelivered {
            return;
        }
        let store = SimulatedStore::new(&self.process, world.medium.session());
        let Ok(lease) = store.claim(run, Claim::TakeOver).await else { return };
        let Ok(mut source) = store.read(run).await else { return };
        let mut bytes = Vec::new();
        source.read_to_end(&mut bytes).unwrap();
        let mut replay = Replay::<Engine>::default();
        for (number, line) in (1..).zip(each_line(&bytes)) {
            let Some(bytes) = line.strip_suffix(b"\n") else { return };
            replay.take(Line { bytes, offset: 0, number }).unwrap();
        }
        let (mut engine, mut recorder) = replay.into_parts();
        let receipt = Input::ReleaseDelivered { receipt: "read".to_owned() };
        let at_ms = engine.decider().clock().unwrap().at_ms();
        let step = engine.step(at_ms, receipt).unwrap();
        let lines = recorder.record(&engine, &step).to_vec();
        let (head, standing) = (recorder.head(), Standing::of(&engine, 0));
        let _ = store.append(Append { lease, seq: step.seq, lines, records: 1, head, standing }).await;
    }

    /// The seeded bug of a host that finishes by itself what a crash interrupted.
    fn enter_again(&self, run: &RunId) {
        let world = &self.process.world;
        if world.bug != Some(Bug::EntersAgain) || self.process.number == 1 {
            return;
        }
        let calls = world.lock().observed.unanswered(run, "pay");
        for call in calls {
            world.observe(|seen| seen.entered_again(run, &call));
        }
    }
}
