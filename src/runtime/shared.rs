//! The runtime: who drives which run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tracing::Instrument;

use super::alarms::{self, Alarms};
use super::builder::Builder;
use super::chance::Chance;
use super::clock::Busy;
use super::driver::{Driver, Equipment, First, Seated, Stop};
use super::execution::{Error, Trouble};
use super::face::{Command, Face, Seat, Standpoint};
use super::handle::RunHandle;
use super::ports::caught;
use super::requests;
use super::store::{Beginning, Claim, Filter, Lease, Listed, RequestId, Standing, StoreError};
use super::thread::Thread;
use crate::engine::Engine;
use crate::history::Recorder;
use crate::machines::batch::Plan;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::ids::{RunId, Ticket, ToolCallId};
use crate::vocabulary::input::{CancelOrigin, Decision, Input, Reconciliation};
use crate::vocabulary::spec::Spec;

/// Commands that may wait at one driver's desk; further senders wait.
const COMMANDS_MAX: usize = 16;

/// Drives runs. Clones are the same runtime.
#[derive(Clone)]
pub struct Runtime(pub(super) Arc<Shared>);

pub(super) struct Shared {
    pub(super) equipment: Equipment,
    pub(super) chance: Chance,
    faces: Mutex<BTreeMap<RunId, Weak<Face>>>,
    /// The runs that nobody drives, though this session seems to.
    stranded: Mutex<BTreeMap<RunId, Stranded>>,
    permits: Arc<Semaphore>,
    pub(super) alarms: Arc<Alarms>,
    /// The requests of other sessions that are being dealt with.
    pub(super) requests: Mutex<BTreeSet<RequestId>>,
    /// Whether runs that wait for a person are woken when a timer of theirs is due.
    rings: bool,
    /// Where the runs are driven, once there are any.
    awake: OnceLock<tokio::runtime::Handle>,
}

impl fmt::Debug for Runtime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs: Vec<_> = self.0.faces().keys().cloned().collect();
        out.debug_struct("Runtime").field("runs", &runs).finish_non_exhaustive()
    }
}

/// How a run begins.
pub(crate) struct Start {
    pub(crate) run: RunId,
    pub(crate) spec: Box<Spec>,
    pub(crate) nonce: String,
    pub(crate) wall_time: String,
    pub(crate) origin: Option<Vec<u8>>,
}

/// A run that this session holds in the store, though nothing here drives it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stranded {
    /// It could not be given back.
    Kept {
        /// Under which claim.
        epoch: u64,
    },
    /// The store failed when it was begun. It may have begun it all the same, and then for us.
    Unanswered {
        /// The hash of its first record, which holds the run's nonce: nobody else has begun the same run.
        head: Digest,
    },
}

impl Stranded {
    /// Whether the store still has the run as it was stranded.
    fn is(&self, listed: Option<&Listed>) -> bool {
        listed.is_some_and(|listed| match self {
            Self::Kept { epoch } => listed.epoch == *epoch,
            Self::Unanswered { head } => listed.epoch == 1 && listed.head == *head,
        })
    }
}

/// Who took a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// A driver of this runtime.
    Here,
    /// The session that drives the run.
    There,
}

/// Whether a run waits for a place among those that are driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// It does, as a new one does.
    InTurn,
    /// It does not: a person has answered, or a timer is due.
    AtOnce,
}

/// Carries out what was begun, whether or not whoever asked for it still waits: nothing may be left half claimed.
async fn carried_out<T: Send + 'static>(
    run: RunId,
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    tokio::spawn(work.in_current_span()).await.unwrap_or_else(|_| Err(Trouble::Stopped(run).into()))
}

/// What a recovery found.
#[derive(Debug, Default)]
pub struct Recovery {
    /// The runs that are being driven again, or whose release is offered again.
    pub runs: Vec<RunHandle>,
    /// The runs that could not be, and why. Those that another session took meanwhile are not among them.
    pub failed: Vec<(RunId, Error)>,
}

impl Runtime {
    /// Takes the ports of a new runtime.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(super) fn new(equipment: Equipment, chance: Chance, driven_max: usize, rings: bool) -> Self {
        Self(Arc::new(Shared {
            equipment,
            chance,
            faces: Mutex::default(),
            stranded: Mutex::default(),
            permits: Arc::new(Semaphore::new(driven_max.min(Semaphore::MAX_PERMITS))),
            alarms: Arc::default(),
            requests: Mutex::default(),
            rings,
            awake: OnceLock::new(),
        }))
    }

    /// Starts a run under an id of its own. It goes on when the handle is dropped.
    ///
    /// # Errors
    /// `Resolution` when the spec is not one, `Commit` when its first record could not be stored. Then there is
    /// no run; only when the medium failed the store may have begun it all the same, and then
    /// [`recover`](Self::recover) drives it.
    pub async fn start(&self, spec: Spec) -> Result<RunHandle, Error> {
        let run = uuid::Uuid::now_v7().to_string().parse().map_err(|_| Trouble::Unequipped("ids"))?;
        self.start_as(run, spec).await
    }

    /// Starts a run under an id of yours.
    ///
    /// # Errors
    /// As [`start`](Self::start); also `Commit` when the store has a run of that id.
    pub async fn start_as(&self, run: RunId, spec: Spec) -> Result<RunHandle, Error> {
        let now_ms = self.0.equipment.clock.now_ms();
        let wall_time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(now_ms);
        let start = Start {
            nonce: self.0.chance.nonce(&run),
            run,
            spec: Box::new(spec),
            wall_time: humantime::format_rfc3339_millis(wall_time).to_string(),
            origin: None,
        };
        self.begin(start).await
    }

    pub(crate) async fn begin(&self, start: Start) -> Result<RunHandle, Error> {
        self.0.begin(start).await
    }

    /// A handle to a run of the store. A run that nobody drives is driven again where it can go on.
    ///
    /// # Errors
    /// `Execution` when there is no such run, when a living session drives it, or when its history is damaged.
    pub async fn attach(&self, run: &RunId) -> Result<RunHandle, Error> {
        self.0.attach(run, Admission::InTurn).await
    }

    /// A handle to a run of the store that is driven here from now on, whoever drives it: for when somebody knows
    /// that its owner hangs. What that owner does from then on is refused as fenced, and it releases nothing.
    /// An effect that it had begun is not undone, and one whose record was durable may still begin when it wakes:
    /// whoever reconciles such a call makes sure of it on the other side, by its operation id.
    ///
    /// A run that this runtime drives already goes on as it is.
    ///
    /// # Errors
    /// `Execution` when there is no such run, or when its history is damaged.
    pub async fn take_over(&self, run: &RunId) -> Result<RunHandle, Error> {
        self.0.attach_by(run, Claim::TakeOver, Admission::InTurn).await
    }

    /// Takes over every run whose driver died, and offers every release again that has no receipt. Also waits
    /// from now on for the timers of the store's runs that await a person.
    ///
    /// # Errors
    /// `Commit` when the store cannot be read. What happened to single runs is in the [`Recovery`].
    pub async fn recover(&self) -> Result<Recovery, Error> {
        let store = &self.0.equipment.store;
        for listed in store.list(Filter::Due { now_ms: u64::MAX }).await? {
            if let Standing::Awaiting { due_ms: Some(due_ms) } = listed.standing {
                self.0.set_alarm(&listed.run, due_ms);
            }
        }
        self.attach_all(Filter::Lost).await
    }

    /// Carries on every run that awaits a person and whose timer has come due, for those who have no process
    /// that stays.
    ///
    /// # Errors
    /// As [`recover`](Self::recover).
    pub async fn wake(&self) -> Result<Recovery, Error> {
        let now_ms = self.0.equipment.clock.now_ms();
        self.attach_all(Filter::Due { now_ms }).await
    }

    async fn attach_all(&self, filter: Filter) -> Result<Recovery, Error> {
        let listed = self.0.equipment.store.list(filter).await?;
        let listed: Vec<RunId> = listed.into_iter().map(|listed| listed.run).collect();
        let stranded: Vec<RunId> = self.0.stranded().keys().filter(|run| !listed.contains(run)).cloned().collect();
        let mut recovery = Recovery::default();
        for run in listed.iter().chain(&stranded).cloned() {
            match self.attach(&run).await {
                Ok(handle) => recovery.runs.push(handle),
                Err(Error::Execution(Trouble::Driven { .. })) => {}
                // It was never begun.
                Err(Error::Execution(Trouble::UnknownRun(_))) if stranded.contains(&run) => {}
                Err(error) => recovery.failed.push((run, error)),
            }
        }
        Ok(recovery)
    }

    /// Reports something from outside to a run of the store, whoever drives it.
    /// Cancels a run of the store, whoever drives it. As [`RunHandle::cancel`], without a handle.
    ///
    /// # Errors
    /// As there; `Unanswered` when the session that drives the run did not answer.
    pub async fn cancel(&self, run: &RunId, by: impl Into<String>) -> Result<(), Error> {
        let input = Input::CancelRequested { by: by.into(), origin: CancelOrigin::Caller };
        self.report(run, input).await.map(|_| ())
    }

    /// Decides on a call of a run of the store, whoever drives it. As [`RunHandle::decide`], without a handle.
    ///
    /// # Errors
    /// As there; `Unanswered` when the session that drives the run did not answer.
    pub async fn decide(
        &self,
        run: &RunId,
        ticket: Ticket,
        by: impl Into<String>,
        decision: Decision,
    ) -> Result<(), Error> {
        self.report(run, Input::DecisionGiven { ticket, by: by.into(), decision }).await.map(|_| ())
    }

    /// Says what an interrupted call did. As [`RunHandle::reconcile`], without a handle.
    ///
    /// # Errors
    /// As there; `Unanswered` when the session that drives the run did not answer.
    pub async fn reconcile(
        &self,
        run: &RunId,
        call: ToolCallId,
        by: impl Into<String>,
        outcome: Reconciliation,
    ) -> Result<(), Error> {
        self.report(run, Input::ToolReconciled { call, by: by.into(), outcome }).await.map(|_| ())
    }

    /// The exact tool and arguments of an open call: what a person has to see before they decide. Privileged: a
    /// model wrote them, and nothing released them. It reads and replays the run's history.
    ///
    /// # Errors
    /// As [`attach`](Self::attach), whoever drives the run.
    pub async fn plan(&self, run: &RunId, call: ToolCallId) -> Result<Option<Arc<Plan>>, Error> {
        self.0.plan(run, call).await
    }

    /// What a run leaves to the next run of its thread: the state of the thread's scope as it is committed, and
    /// every fact with where it was observed. A run that still goes on leaves what it has so far. Privileged: no
    /// release holds it, so it belongs into the next spec and nowhere else. It reads and replays the run's history.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub async fn thread(&self, run: &RunId) -> Result<Thread, Error> {
        self.0.thread(run).await
    }

    /// The runs of the store, by the order in which they were created.
    ///
    /// # Errors
    /// `Commit` when the store cannot be read.
    pub async fn runs(&self, filter: Filter) -> Result<Vec<Listed>, Error> {
        Ok(self.0.equipment.store.list(filter).await?)
    }

    pub(crate) async fn report(&self, run: &RunId, input: Input) -> Result<Taken, Error> {
        self.0.report(run, input).await
    }

    /// A handle to a run that need not be driven yet.
    pub(crate) fn hold(&self, run: &RunId) -> RunHandle {
        self.0.hold(run)
    }
}

impl Shared {
    fn faces(&self) -> MutexGuard<'_, BTreeMap<RunId, Weak<Face>>> {
        // The map is whole between any two calls, so a panic elsewhere does not spoil it.
        self.faces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run from outside: one for all its handles.
    pub(super) fn face(self: &Arc<Self>, run: &RunId) -> Arc<Face> {
        let mut faces = self.faces();
        if let Some(face) = faces.get(run).and_then(Weak::upgrade) {
            return face;
        }
        let face = Face::new(run.clone(), Arc::downgrade(self));
        faces.insert(run.clone(), Arc::downgrade(&face));
        face
    }

    /// A handle to a run, counted before anything is done about the run: a driver that stops meanwhile knows of it.
    pub(super) fn hold(self: &Arc<Self>, run: &RunId) -> RunHandle {
        RunHandle::new(Arc::clone(self), self.face(run))
    }

    /// Forgets a run that nobody holds and nobody drives.
    pub(super) fn forget(&self, run: &RunId) {
        let mut faces = self.faces();
        // Somebody may have begun to look at it again.
        if faces.get(run).is_some_and(|face| face.strong_count() == 0) {
            faces.remove(run);
        }
    }

    fn stranded(&self) -> MutexGuard<'_, BTreeMap<RunId, Stranded>> {
        self.stranded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims a run that nobody drives here. One that is stranded with us is taken from ourselves, and from nobody
    /// else.
    pub(super) async fn claim(&self, run: &RunId, claim: Claim) -> Result<Lease, Error> {
        let stranded = self.stranded().get(run).cloned();
        let claim = match stranded {
            Some(stranded) if stranded.is(self.equipment.store.find(run).await?.as_ref()) => Claim::TakeOver,
            Some(_) | None => claim,
        };
        let claimed = self.equipment.store.claim(run, claim).await;
        // Whoever has it now, or that there is no such run, is known.
        if matches!(claimed, Ok(_) | Err(StoreError::UnknownRun { .. } | StoreError::Owned { .. })) {
            self.stranded().remove(run);
        }
        Ok(claimed?)
    }

    /// Gives a run back to the store.
    pub(super) async fn give_back(&self, lease: Lease) {
        let (run, epoch) = (lease.run.clone(), lease.epoch);
        if let Err(error) = self.equipment.store.release(lease).await {
            tracing::warn!(%run, %error, "a run could not be given back; `recover` takes it again");
            self.stranded().insert(run, Stranded::Kept { epoch });
        }
    }

    fn set_alarm(self: &Arc<Self>, run: &RunId, due_ms: u64) {
        if self.rings {
            self.wake_up();
            self.alarms.set(run, due_ms, self.equipment.clock.busy());
        }
    }

    async fn begin(self: &Arc<Self>, start: Start) -> Result<RunHandle, Error> {
        let (shared, run) = (Arc::clone(self), start.run.clone());
        carried_out(run, async move { shared.begin_run(start).await }).await
    }

    async fn begin_run(self: &Arc<Self>, start: Start) -> Result<RunHandle, Error> {
        let Start { run, spec, nonce, wall_time, origin } = start;
        // Whoever waits for a place does not hold time up.
        let permit = self.permit().await;
        let busy = self.equipment.clock.busy();
        let (mut engine, mut recorder) = (Engine::new(), Recorder::new());
        let input = Input::RunStarted { run_id: run.clone(), spec, nonce, wall_time, forked_from: None };
        let step = engine.step(0, input).map_err(|refusal| Error::Resolution {
            reason: refusal.reason.clone().unwrap_or_else(|| refusal.to_string()),
        })?;
        let started_ms = self.equipment.clock.now_ms();
        let beginning = Beginning {
            run: run.clone(),
            started_ms,
            lines: recorder.record(&engine, &step).to_vec(),
            records: 1,
            head: recorder.head(),
            standing: Standing::Running,
            origin,
        };
        let head = beginning.head;
        let lease = match self.equipment.store.create(beginning).await {
            Ok(lease) => lease,
            Err(error) => {
                if matches!(error, StoreError::Medium { .. }) {
                    self.stranded().insert(run, Stranded::Unanswered { head });
                }
                return Err(error.into());
            }
        };
        let handle = self.hold(&run);
        let face = Arc::clone(handle.face());
        let mut seat = face.seat.lock().await;
        let world = self.equipment.world_of_a_run();
        let seated = Seated { engine, recorder, lease, started_ms, progress: None, world };
        *seat = self.spawn(seated, First::Step(Box::new(step)), Vec::new(), &face, busy, permit);
        drop(seat);
        Ok(handle)
    }

    pub(super) async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.permits).acquire_owned().await.ok()
    }

    /// How this runtime claims runs, unless somebody asks for more.
    const fn usual_claim(&self) -> Claim {
        if self.equipment.takes_over { Claim::TakeOver } else { Claim::Free }
    }

    /// Makes sure that a run which can go on is driven. Whoever has no time to wait for a place takes none.
    pub(super) async fn attach(self: &Arc<Self>, run: &RunId, admission: Admission) -> Result<RunHandle, Error> {
        self.attach_by(run, self.usual_claim(), admission).await
    }

    async fn attach_by(self: &Arc<Self>, run: &RunId, claim: Claim, admission: Admission) -> Result<RunHandle, Error> {
        let (shared, named) = (Arc::clone(self), run.clone());
        carried_out(run.clone(), async move {
            let handle = shared.hold(&named);
            let face = Arc::clone(handle.face());
            if matches!(*face.seat.lock().await, Seat::Taken(_)) {
                return Ok(handle);
            }
            let permit = match admission {
                Admission::InTurn => shared.permit().await,
                Admission::AtOnce => None,
            };
            let mut seat = face.seat.lock().await;
            if matches!(*seat, Seat::Empty) {
                *seat = shared.seat(&face, claim, None, permit).await?;
            }
            drop(seat);
            Ok(handle)
        })
        .await
    }

    /// Whether a run that was seen waiting with so many records has moved on since, in another session. Then it is
    /// looked at anew.
    pub(super) async fn moved_on(self: &Arc<Self>, run: &RunId, records: u64) -> Result<bool, Error> {
        let listed = self.equipment.store.find(run).await?;
        if listed.is_none_or(|listed| listed.records == records) {
            return Ok(false);
        }
        match self.attach(run, Admission::AtOnce).await {
            Ok(_) => {}
            Err(Error::Execution(Trouble::Driven { .. })) => tokio::time::sleep(requests::LOOK).await,
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// Reports something from outside to a run: to its driver here, to a new driver, or through the store to the
    /// session that drives it.
    pub(super) async fn report(self: &Arc<Self>, run: &RunId, input: Input) -> Result<Taken, Error> {
        let (shared, named) = (Arc::clone(self), run.clone());
        carried_out(run.clone(), async move { shared.report_to(&named, input).await }).await
    }

    async fn report_to(self: &Arc<Self>, run: &RunId, input: Input) -> Result<Taken, Error> {
        let held = self.hold(run);
        let face = Arc::clone(held.face());
        loop {
            let (reply, answer) = oneshot::channel();
            let mut seat = face.seat.lock().await;
            match &*seat {
                Seat::Taken(desk) => {
                    let desk = desk.clone();
                    drop(seat);
                    let command = Command { input: input.clone(), reply, busy: self.equipment.clock.busy() };
                    // A driver that has just stopped takes nothing: then the answer is lost, and asked for again.
                    let _ = desk.send(command).await;
                }
                Seat::Empty => match self.seat(&face, self.usual_claim(), Some((input.clone(), reply)), None).await {
                    Ok(taken) => {
                        *seat = taken;
                        drop(seat);
                    }
                    Err(error) => {
                        drop(seat);
                        let Error::Execution(Trouble::Driven { .. }) = error else { return Err(error) };
                        return requests::ask(self, run, &input).await.map(|()| Taken::There);
                    }
                },
            }
            match answer.await {
                Ok(Ok(())) => return Ok(Taken::Here),
                Ok(Err(refusal)) => return Err(Trouble::Refused(refusal).into()),
                Err(_) => {
                    // The driver stopped first. Why is known once it has left its seat, and not before.
                    let seat = face.seat.lock().await;
                    if let Standpoint::Broken(error) = face.standpoint() {
                        return Err(error);
                    }
                    drop(seat);
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    /// Gives a run its driver. `commands` are at its desk before it begins.
    pub(super) fn spawn(
        self: &Arc<Self>,
        seated: Seated,
        first: First,
        commands: Vec<Command>,
        face: &Arc<Face>,
        busy: Busy,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Seat {
        let (desk, orders) = mpsc::channel(COMMANDS_MAX.max(commands.len()));
        for command in commands {
            // There is room for all of them.
            let _ = desk.try_send(command);
        }
        self.wake_up();
        self.alarms.clear(&face.run);
        face.stand(Standpoint::Driven);
        let model = seated.engine.spec().map(|spec| spec.model.name.clone()).unwrap_or_default();
        let span = self.equipment.traces.invoke_agent(&face.run, &model);
        let mut driver = Driver::new(self.equipment.clone(), seated, orders, Arc::clone(face), permit);
        let (shared, face) = (Arc::clone(self), Arc::clone(face));
        let work = async move {
            let driven = caught(driver.drive(first, busy)).await;
            let (stop, busy) = driven.unwrap_or_else(|panic| {
                tracing::error!(run = %face.run, panic, "a store, a clock or the engine panicked");
                (Stop::Broken(Trouble::Stopped(face.run.clone()).into()), shared.equipment.clock.busy())
            });
            let epoch = driver.epoch();
            if let Err(panic) = caught(shared.stopped(stop, driver, &face)).await {
                tracing::error!(run = %face.run, panic, "a run could not be given back");
                shared.stranded().insert(face.run.clone(), Stranded::Kept { epoch });
                *face.seat.lock().await = Seat::Empty;
                face.stand(Standpoint::Broken(Trouble::Stopped(face.run.clone()).into()));
            }
            drop(busy);
        };
        tokio::spawn(work.instrument(span));
        Seat::Taken(desk)
    }

    /// A driver has stopped: the run is given back, and then its holders learn of it.
    async fn stopped(self: &Arc<Self>, stop: Stop, driver: Driver, face: &Arc<Face>) {
        let mut seat = face.seat.lock().await;
        let lease = driver.into_lease();
        let standpoint = match stop {
            Stop::Died => Some(Standpoint::Broken(Trouble::Stopped(face.run.clone()).into())),
            Stop::Ended => None,
            Stop::Parked(waiting) => {
                if let Some(due_ms) = waiting.due_ms {
                    self.set_alarm(&face.run, due_ms);
                }
                Some(Standpoint::Awaiting(Arc::new(waiting)))
            }
            Stop::Broken(error) => Some(Standpoint::Broken(error)),
        };
        self.give_back(lease).await;
        if let Some(standpoint) = standpoint {
            face.stand(standpoint);
        }
        *seat = Seat::Empty;
    }

    /// Whether any run is held or driven here.
    pub(super) fn is_idle(&self) -> bool {
        self.faces().is_empty()
    }

    /// The event loop that the runs are driven in, once there are any.
    pub(super) fn event_loop(&self) -> Option<&tokio::runtime::Handle> {
        self.awake.get()
    }

    /// Starts, once, what a runtime does beside its runs.
    fn wake_up(self: &Arc<Self>) {
        self.awake.get_or_init(|| {
            if self.rings {
                let clock = Arc::clone(&self.equipment.clock);
                tokio::spawn(alarms::ring(Arc::clone(&self.alarms), clock, Arc::downgrade(self)));
            }
            tokio::spawn(requests::serve(Arc::downgrade(self)));
            tokio::runtime::Handle::current()
        });
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.alarms.close();
    }
}
