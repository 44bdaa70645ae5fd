//! A run out of the store: claimed, replayed, and ready to go on (SPEC 7, after a crash).

use std::io::BufRead;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::driver::{First, Seated};
use super::event::{Event, events};
use super::execution::{Error, Trouble};
use super::face::{Command, Face, Seat};
use super::requests;
use super::shared::Shared;
use super::store::{Claim, Standing};
use crate::engine::Engine;
use crate::history::{Lines, Next, Recorder, Replay, Replayed, Tail};
use crate::machines::release::Progress;
use crate::vocabulary::ids::RunId;
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
    /// other sessions have left for it in the store.
    pub(super) async fn seat(
        self: &Arc<Self>,
        face: &Arc<Face>,
        claim: Claim,
        report: Option<Report>,
    ) -> Result<Seat, Error> {
        // Whoever waits for a place does not hold time up.
        let permit = self.permit().await;
        let busy = self.equipment.clock.busy();
        let store = &self.equipment.store;
        let known = store.find(&face.run).await?.ok_or_else(|| Trouble::UnknownRun(face.run.clone()))?;
        let lease = self.claim(&face.run, claim).await?;
        let loaded = match self.load(&face.run).await {
            Ok(loaded) => loaded,
            Err(error) => {
                self.give_back(lease).await;
                return Err(error);
            }
        };
        let told = usize::try_from(face.told()).unwrap_or(usize::MAX);
        face.tell(loaded.events.iter().skip(told).cloned().collect());
        let Loaded { engine, recorder, tail, progress, .. } = loaded;
        let mut reports: Vec<Input> = tail.iter().map(Tail::repair).collect();
        if needs_recovery(&engine) {
            let epoch = lease.epoch.max(engine.decider().epoch().saturating_add(1));
            let tools = self.equipment.world.live(&engine).await;
            reports.push(Input::RunRecovered { epoch, tools });
        }
        let command = |(input, reply)| Command { input, reply, busy: self.equipment.clock.busy() };
        let mut orders: Vec<Command> = report.map(command).into_iter().collect();
        orders.extend(requests::waiting(self, &face.run).await?);
        let seated = Seated { engine, recorder, lease, started_ms: known.started_ms, progress };
        Ok(self.spawn(seated, First::Reports(reports), orders, face, busy, permit))
    }

    async fn load(&self, run: &RunId) -> Result<Loaded, Error> {
        let source = self.equipment.store.read(run).await?;
        let named = run.clone();
        let loaded = tokio::task::spawn_blocking(move || replayed(&named, source)).await;
        loaded.unwrap_or_else(|_| Err(Trouble::Stopped(run.clone()).into()))
    }
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
