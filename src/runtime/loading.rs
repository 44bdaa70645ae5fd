//! A run out of the store: claimed, replayed, and ready to go on (SPEC 7, after a crash).

use std::io::BufRead;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::driver::{First, Seated};
use super::event::{Event, events};
use super::execution::{Error, Trouble};
use super::face::{Command, Face, Seat};
use super::ports::caught;
use super::requests;
use super::shared::Shared;
use super::store::{Claim, Lease, Listed, Owner, Standing};
use super::thread::Thread;
use super::world::World;
use crate::engine::Engine;
use crate::history::{Fault, FaultCode, Lines, Next, Recorder, Replay, Replayed, Tail};
use crate::machines::batch::Plan;
use crate::machines::release::Progress;
use crate::vocabulary::ids::{RunId, ToolCallId};
use crate::vocabulary::input::Input;
use crate::vocabulary::refusal::Refusal;

/// What somebody says of a run, and who wants to know whether it was accepted.
type Report = (Input, oneshot::Sender<Result<(), Refusal>>);

/// A run as its history left it.
struct Loaded {
    engine: Engine,
    recorder: Recorder,
    tail: Option<Tail>,
    events: Vec<Event>,
    progress: Option<Progress>,
}

impl Shared {
    /// Claims a run, loads it and gives it a driver. The report is at its desk before it begins, and so is what
    /// other sessions have left for it in the store. What cannot be driven is given back.
    pub(super) async fn seat(
        self: &Arc<Self>,
        face: &Arc<Face>,
        claim: Claim,
        report: Option<Report>,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Result<Seat, Error> {
        let busy = self.equipment.clock.busy();
        let lease = self.claim(&face.run, claim).await?;
        let prepared = caught(self.prepared(face, &lease, report)).await;
        match prepared.unwrap_or_else(|_| Err(Trouble::Stopped(face.run.clone()).into())) {
            Ok(Prepared { engine, recorder, progress, started_ms, world, reports, orders }) => {
                let seated = Seated { engine, recorder, lease, started_ms, progress, world };
                Ok(self.spawn(seated, First::Reports(reports), orders, face, busy, permit))
            }
            Err(error) => {
                self.give_back(lease).await;
                Err(error)
            }
        }
    }

    async fn prepared(
        self: &Arc<Self>,
        face: &Arc<Face>,
        lease: &Lease,
        report: Option<Report>,
    ) -> Result<Prepared, Error> {
        let unknown = || Trouble::UnknownRun(face.run.clone());
        let listed = self.equipment.store.find(&face.run).await?.ok_or_else(unknown)?;
        let Loaded { engine, recorder, tail, events, progress } = self.load(&face.run).await?;
        if tail.is_none()
            && let Err(disagreement) = agree(&listed, &engine, &recorder)
        {
            // Whoever took the run over since may have appended between the two looks.
            return Err(self.taken_over(lease).await?.unwrap_or(disagreement));
        }
        let told = usize::try_from(face.told()).unwrap_or(usize::MAX);
        face.tell(events.into_iter().skip(told).collect());
        let world = self.equipment.world_of_a_run();
        let mut reports: Vec<Input> = tail.iter().map(Tail::repair).collect();
        if needs_recovery(&engine) {
            let epoch = lease.epoch.max(engine.decider().epoch().saturating_add(1));
            let tools = world.live(&engine).await;
            reports.push(Input::RunRecovered { epoch, tools });
        }
        let command = |(input, reply)| Command { input, reply, busy: self.equipment.clock.busy() };
        let mut orders: Vec<Command> = report.map(command).into_iter().collect();
        orders.extend(requests::waiting(self, &face.run).await?);
        Ok(Prepared { engine, recorder, progress, started_ms: listed.started_ms, world, reports, orders })
    }

    /// Who has the run now, if that is not the holder of this lease any more.
    async fn taken_over(&self, lease: &Lease) -> Result<Option<Error>, Error> {
        let listed = self.equipment.store.find(&lease.run).await?.filter(|listed| listed.epoch != lease.epoch);
        let driven = |listed: Listed| {
            let by = match listed.owner {
                Owner::Living { name } | Owner::Dead { name } => name,
                Owner::Nobody => "another session until now".to_owned(),
            };
            Trouble::Driven { run: listed.run, by }.into()
        };
        Ok(listed.map(driven))
    }

    /// The plan of an open call, as the stored history has it.
    pub(super) async fn plan(&self, run: &RunId, call: ToolCallId) -> Result<Option<Arc<Plan>>, Error> {
        Ok(self.load(run).await?.engine.plan(call))
    }

    /// What the run leaves to its thread, as the stored history has it.
    pub(super) async fn thread(&self, run: &RunId) -> Result<Thread, Error> {
        Ok(Thread::of(run, &self.load(run).await?.engine))
    }

    async fn load(&self, run: &RunId) -> Result<Loaded, Error> {
        let source = self.equipment.store.read(run).await?;
        let named = run.clone();
        self.chance.work(run, move || replayed(&named, source)).await
    }
}

/// A run that is ready to be driven.
struct Prepared {
    engine: Engine,
    recorder: Recorder,
    progress: Option<Progress>,
    started_ms: u64,
    world: Arc<dyn World>,
    /// What the driver reports first.
    reports: Vec<Input>,
    /// What is at its desk before it begins.
    orders: Vec<Command>,
}

/// The history has to be the one that the store says it has: nothing is appended to another one.
fn agree(listed: &Listed, engine: &Engine, recorder: &Recorder) -> Result<(), Error> {
    let records = engine.decider().records();
    if (records, recorder.head()) == (listed.records, listed.head) {
        return Ok(());
    }
    let code = if records < listed.records { FaultCode::Gap } else { FaultCode::Fork };
    let reason = format!(
        "{records} records with head {}; the store says {} with {}",
        recorder.head(),
        listed.records,
        listed.head
    );
    let fault = Fault { code, offset: 0, line: records, reason };
    Err(Trouble::Damaged { run: listed.run.clone(), fault }.into())
}

/// Steps through the whole history. Blocking: it reads.
fn replayed(run: &RunId, source: Box<dyn BufRead + Send>) -> Result<Loaded, Error> {
    let damaged = |fault| Trouble::Damaged { run: run.clone(), fault };
    let mut lines = Lines::new(source);
    let mut replay = Replay::<Engine>::default();
    let (mut told, mut progress) = (Vec::new(), None);
    let tail = loop {
        match lines.next_line().map_err(damaged)? {
            Next::End => break None,
            Next::Tail(tail) => break Some(tail),
            Next::Line(line) => match replay.take(line).map_err(damaged)? {
                Replayed::Reproduced(step) => told.extend(events(replay.stepper(), &step, &mut progress)),
                Replayed::Diverged(divergence) => {
                    let divergence = Box::new(divergence);
                    return Err(Trouble::Diverged { run: run.clone(), divergence }.into());
                }
            },
        }
    };
    let (engine, recorder) = replay.into_parts();
    if engine.run_id() != Some(run) {
        return Err(Trouble::UnknownRun(run.clone()).into());
    }
    Ok(Loaded { engine, recorder, tail, events: told, progress })
}

/// Whether work was lost with the driver: then it is asked for again. A run that only waits for a person lost
/// nothing, and one whose release was delivered has nothing more to do.
fn needs_recovery(engine: &Engine) -> bool {
    match Standing::of(engine, 0) {
        Standing::Running => true,
        Standing::Awaiting { .. } => false,
        Standing::Ended { delivered, .. } => !delivered,
    }
}
