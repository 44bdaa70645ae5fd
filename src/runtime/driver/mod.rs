//! The driver of one run: append, make durable, then perform, then report (SPEC 1, 4).
//!
//! A run that is being driven is one task. It takes one arrival at a time: a report of the world, a timer, or a
//! command from outside. The engine steps, the record is made durable, and only then its effects begin. What is
//! under way goes on while a record is being written.

mod flight;
mod nested;
mod substitute;

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::clock::{Busy, Clock};
use super::event::{ends, events, question};
use super::execution::{Error, Trouble};
use super::face::{Command, Ended, Face, Standpoint, Waiting};
use super::ports::{TooLate, Wanted, Wish, Wished};
use super::store::{Append, Lease, Standing, Store, StoreError};
use super::trace::{Traces, blame};
use super::witness::Witness;
use super::world::{Interruption, Performed, World};
use crate::engine::{Engine, Request, Step};
use crate::history::Recorder;
use crate::machines::release::Progress;
use crate::vocabulary::effect::{Effect, TimerKind};
use crate::vocabulary::ids::ToolCallId;
use crate::vocabulary::input::Input;
use crate::vocabulary::refusal::{Refusal, RefusalKind};

use flight::{Arrival, Arrived, Flight};
use nested::Wishes;
use substitute::instead_of;

/// What a driver works with.
#[derive(Clone)]
pub(super) struct Equipment {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) world: Arc<dyn World>,
    pub(super) witness: Option<Arc<dyn Witness>>,
    pub(super) traces: Traces,
    /// Whether runs are claimed from living sessions too.
    pub(super) takes_over: bool,
}

impl Equipment {
    /// What performs the effects of one run.
    pub(super) fn world_of_a_run(&self) -> Arc<dyn World> {
        self.world.for_a_run().unwrap_or_else(|| Arc::clone(&self.world))
    }
}

/// One run while it is driven.
pub(super) struct Driver {
    equipment: Equipment,
    engine: Engine,
    recorder: Recorder,
    lease: Lease,
    /// The wall time at which the run's own time is 0.
    started_ms: u64,
    flight: Flight,
    /// What running tools ask for.
    wishes: Wishes,
    /// What has come while a record was being written, and what the driver reports itself.
    queue: VecDeque<Arrival>,
    desk: mpsc::Receiver<Command>,
    face: Arc<Face>,
    progress: Option<Progress>,
    /// Whether the person who is asked will not answer, so that the run waits for its timers here.
    unheard: bool,
    /// A place among the runs that are driven; a run that has ended needs none.
    permit: Option<OwnedSemaphorePermit>,
}

/// Why a driver stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// The run has ended, and its reader has taken the release or is gone.
    Ended,
    /// Only a person or a timer can move the run.
    Parked(Waiting),
    /// It could not go on. What is stored is whole.
    Broken(Error),
    /// A script let the process die.
    Died,
}

/// A run as it is handed to a driver.
pub(super) struct Seated {
    pub(super) engine: Engine,
    pub(super) recorder: Recorder,
    pub(super) lease: Lease,
    pub(super) started_ms: u64,
    pub(super) progress: Option<Progress>,
    /// What performs its effects.
    pub(super) world: Arc<dyn World>,
}

impl Driver {
    pub(super) fn new(
        equipment: Equipment,
        run: Seated,
        desk: mpsc::Receiver<Command>,
        face: Arc<Face>,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Self {
        let flight = Flight::new(Arc::clone(&equipment.clock));
        let wishes = Wishes::new(Arc::clone(&equipment.clock));
        let Seated { engine, recorder, lease, started_ms, progress, world } = run;
        let equipment = Equipment { world, ..equipment };
        let queue = VecDeque::new();
        Self {
            equipment,
            engine,
            recorder,
            lease,
            started_ms,
            flight,
            wishes,
            queue,
            desk,
            face,
            progress,
            unheard: false,
            permit,
        }
    }

    /// The claim under which the run is driven.
    pub(super) const fn epoch(&self) -> u64 {
        self.lease.epoch
    }

    /// Gives the lease back when the driver has stopped.
    pub(super) fn into_lease(mut self) -> Lease {
        self.flight.abort();
        self.lease
    }

    /// Takes a run over: performs what `first` asks for, or reports that the run was recovered, or only arms the
    /// timers of a run that waits for a person.
    ///
    /// The clock's hold comes back, so that nobody's time goes on before the run was given back.
    pub(super) async fn drive(&mut self, first: First, mut busy: Busy) -> (Stop, Busy) {
        let mut taken = self.begin(first).await;
        loop {
            match taken {
                Ok(None) => {}
                Ok(Some(stop)) => return (stop, busy),
                Err(error) => return (Stop::Broken(error), busy),
            }
            if let Some(stop) = self.rest() {
                return (stop, busy);
            }
            taken = match self.next(busy).await {
                Next::Arrival(arrival) => {
                    busy = arrival.busy;
                    self.take(arrival.what, arrival.at_ms).await
                }
                Next::Command(command) => {
                    busy = command.busy;
                    self.obey(command.input, command.reply).await
                }
                Next::Wish(wish) => {
                    busy = wish.busy;
                    self.grant(wish.what).await
                }
                Next::Abandoned => return (Stop::Ended, self.equipment.clock.busy()),
            };
        }
    }

    async fn begin(&mut self, first: First) -> Result<Option<Stop>, Error> {
        for moment in self.equipment.world.moments() {
            self.flight.moment(moment, self.wall(moment.at_ms));
        }
        match first {
            First::Step(step) => self.committed(vec![*step]),
            First::Reports(inputs) => {
                let now_ms = self.equipment.clock.now_ms();
                let recovered = inputs.iter().any(|input| matches!(input, Input::RunRecovered { .. }));
                if !recovered && self.engine.ending().is_none() && !self.ask_again() {
                    return Ok(Some(self.died(now_ms)));
                }
                for input in inputs {
                    if let Some(stop) = self.report(input, now_ms).await? {
                        return Ok(Some(stop));
                    }
                }
                self.show_end();
                Ok(None)
            }
        }
    }

    /// A run that waits for a person lost nothing: its timers are armed, and the person is asked under the same
    /// id. What else was lost is asked for by the step that recovers it. False when the process dies before.
    fn ask_again(&mut self) -> bool {
        if let Some(due_ms) = self.deadline_ms() {
            self.flight.timer(TimerKind::Deadline, "run", self.wall(due_ms));
        }
        self.engine.outstanding().iter().all(|effect| self.perform(effect))
    }

    /// The run's deadline in its own time, while it runs.
    fn deadline_ms(&self) -> Option<u64> {
        self.engine.decider().clock().and_then(|clock| clock.deadline_ms())
    }

    fn wall(&self, at_ms: u64) -> u64 {
        self.started_ms.saturating_add(at_ms)
    }

    fn own(&self, wall_ms: u64) -> u64 {
        wall_ms.saturating_sub(self.started_ms)
    }

    /// Whether the driver has nothing to do here any more.
    fn rest(&mut self) -> Option<Stop> {
        let heard = self.desk.is_empty() && self.wishes.is_empty();
        if !heard || !self.queue.is_empty() || !self.flight.has_no_work() {
            return None;
        }
        match Standing::of(&self.engine, self.started_ms) {
            Standing::Ended { delivered, .. } => {
                self.face.hush();
                self.permit = None;
                return delivered.then_some(Stop::Ended);
            }
            // Without a timer there is nothing to wait for here, whoever stays silent.
            Standing::Awaiting { due_ms: Some(_) } if self.unheard => return None,
            Standing::Awaiting { due_ms } => {
                let over = due_ms.is_some_and(|due_ms| due_ms <= self.equipment.clock.now_ms());
                return (!over).then(|| Stop::Parked(self.waiting(due_ms)));
            }
            Standing::Running => self.unheard = false,
        }
        if self.flight.is_empty() {
            // An effect that nobody performs: fail closed instead of waiting for ever (SPEC 13.I11).
            let origin = "nothing is under way any more".to_owned();
            self.enqueue(Input::ExecutionCrashed { origin });
        }
        None
    }

    fn waiting(&self, due_ms: Option<u64>) -> Waiting {
        let questions = self.engine.outstanding().iter().filter_map(|effect| question(&self.engine, effect)).collect();
        Waiting {
            questions,
            due_ms,
            records: self.engine.decider().records(),
            spent: self.engine.ledger().cloned().unwrap_or_default(),
        }
    }

    /// Waits for what comes next. Nobody's time stands still meanwhile.
    async fn next(&mut self, busy: Busy) -> Next {
        if let Some(arrival) = self.queue.pop_front() {
            // The arrival has a hold of its own.
            drop(busy);
            return Next::Arrival(arrival);
        }
        // Whoever is told of the end is told, also when nobody looks at the run any more.
        let ended = self.engine.ending().is_some() && !self.flight.is_telling();
        // Polled once before the hold is let go, so that every new wait is known to the clock by then.
        let mut busy = Some(busy);
        let mut arrivals = std::pin::pin!(self.flight.next());
        let face = Arc::clone(&self.face);
        let abandoned = async {
            if ended {
                face.abandoned().await;
            } else {
                std::future::pending::<()>().await;
            }
        };
        let mut abandoned = std::pin::pin!(abandoned);
        let (desk, wishes) = (&mut self.desk, &mut self.wishes);
        std::future::poll_fn(move |context| {
            use std::future::Future;
            use std::task::Poll;
            if let Poll::Ready(Some(command)) = desk.poll_recv(context) {
                return Poll::Ready(Next::Command(command));
            }
            if let Poll::Ready(wish) = wishes.poll_next(context) {
                return Poll::Ready(Next::Wish(wish));
            }
            if let Poll::Ready(arrival) = arrivals.as_mut().poll(context) {
                return Poll::Ready(Next::Arrival(arrival));
            }
            if abandoned.as_mut().poll(context).is_ready() {
                return Poll::Ready(Next::Abandoned);
            }
            busy.take();
            Poll::Pending
        })
        .await
    }

    async fn take(&mut self, arrived: Arrived, now_ms: u64) -> Result<Option<Stop>, Error> {
        match arrived {
            Arrived::Report(input) => self.report(input, now_ms).await,
            Arrived::Timer(input) => match self.turn(self.own(now_ms), input).await? {
                Ok(stop) => Ok(stop),
                // A timer that is not wanted any more stays silent.
                Err(_) => Ok(None),
            },
            Arrived::Moment(moment) => match self.equipment.world.strike(moment) {
                Some(Interruption::Report(input)) => self.report(input, now_ms).await,
                Some(Interruption::Death) => Ok(Some(self.died(now_ms))),
                None => Ok(None),
            },
            Arrived::GivenUp => Ok(None),
            Arrived::Told => {
                self.flight.told();
                Ok(None)
            }
        }
    }

    /// Takes a report. One that is out of form is replaced by the failure of its call.
    async fn report(&mut self, input: Input, now_ms: u64) -> Result<Option<Stop>, Error> {
        let at_ms = self.own(now_ms);
        let mut input = input;
        for _ in 0..3 {
            match self.turn(at_ms, input.clone()).await? {
                Ok(stop) => return Ok(stop),
                Err(refusal) => {
                    self.refused(at_ms, input.tag(), &refusal);
                    if refusal.kind != RefusalKind::Malformed {
                        return Ok(None);
                    }
                    input = instead_of(&input, refusal.reason.unwrap_or_default());
                }
            }
        }
        Err(Trouble::Stopped(self.lease.run.clone()).into())
    }

    /// Takes a report from outside and tells its sender whether it was accepted.
    async fn obey(&mut self, input: Input, reply: oneshot::Sender<Result<(), Refusal>>) -> Result<Option<Stop>, Error> {
        let now_ms = self.equipment.clock.now_ms();
        let at_ms = self.own(now_ms);
        let (answer, stop) = match self.turn(at_ms, input.clone()).await? {
            Ok(stop) => (Ok(()), stop),
            Err(refusal) => {
                self.refused(at_ms, input.tag(), &refusal);
                (Err(refusal), None)
            }
        };
        // Whoever asked may have gone away meanwhile.
        let _ = reply.send(answer);
        Ok(stop)
    }

    /// Takes what a running tool says, and tells it what becomes of that.
    async fn grant(&mut self, wished: Wished) -> Result<Option<Stop>, Error> {
        let at_ms = self.own(self.equipment.clock.now_ms());
        match wished {
            Wished::Call(Wanted { parent, attempt, kind, tool, arguments }, reply) => {
                let nested = self.engine.next_nested(parent);
                self.wishes.expect(nested, reply);
                let input = Input::NestedCallRequested { parent, attempt, nested, kind, tool, arguments };
                let taken = self.turn(at_ms, input).await?;
                taken.or_else(|refusal| {
                    self.refused(at_ms, "nested_call_requested", &refusal);
                    self.wishes.refuse(nested, &refusal);
                    Ok(None)
                })
            }
            Wished::Completion { nested, usage, reply } => {
                let taken = self.turn(at_ms, Input::NestedCompleted { nested, usage }).await?;
                // A run whose deadline has passed takes the usage, and nothing else.
                let heard = taken.is_ok() && self.engine.ending().is_none();
                reply.send(if heard { Ok(()) } else { Err(TooLate) }, self.equipment.clock.busy());
                taken.or_else(|refusal| {
                    self.refused(at_ms, "nested_completed", &refusal);
                    Ok(None)
                })
            }
        }
    }

    fn refused(&self, at_ms: u64, input: &'static str, refusal: &Refusal) {
        tracing::debug!(run = %self.lease.run, input, kind = refusal.kind.word(), "refused");
        if let Some(witness) = &self.equipment.witness {
            witness.refused(at_ms, input, refusal);
        }
    }

    fn died(&self, now_ms: u64) -> Stop {
        if let Some(witness) = &self.equipment.witness {
            witness.lost(self.own(now_ms));
        }
        Stop::Died
    }

    /// Takes one input: step, record, durable, perform. A wave whose dispatch is asked for is dispatched in the
    /// same commit, for to make it durable is what is asked.
    async fn turn(&mut self, at_ms: u64, input: Input) -> Result<Result<Option<Stop>, Refusal>, Error> {
        let first = match self.engine.step(at_ms, input) {
            Ok(step) => step,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let seq = first.seq;
        let mut lines = self.recorder.record(&self.engine, &first).to_vec();
        let mut steps = vec![first];
        while let Some(calls) = steps.last().and_then(|step| self.dispatch(step)) {
            let Ok(step) = self.engine.step(at_ms, Input::ToolsDispatched { calls }) else { break };
            lines.extend_from_slice(self.recorder.record(&self.engine, &step));
            steps.push(step);
        }
        let append = Append {
            lease: self.lease.clone(),
            seq,
            lines,
            records: steps.len() as u64,
            head: self.recorder.head(),
            standing: Standing::of(&self.engine, self.started_ms),
        };
        self.append(append).await?;
        self.committed(steps).map(Ok)
    }

    /// The wave that this step wants dispatched, unless a script may interrupt there.
    fn dispatch(&self, step: &Step) -> Option<Vec<ToolCallId>> {
        if self.equipment.world.interrupts_dispatch() {
            return None;
        }
        step.effects
            .iter()
            .find_map(|effect| if let Effect::DispatchTools { calls } = effect { Some(calls.clone()) } else { None })
    }

    /// Makes records durable; what comes meanwhile waits its turn.
    async fn append(&mut self, append: Append) -> Result<(), StoreError> {
        let store = Arc::clone(&self.equipment.store);
        let mut durable = store.append(append);
        loop {
            tokio::select! {
                biased;
                done = &mut durable => return done,
                arrival = self.flight.next() => self.queue.push_back(arrival),
            }
        }
    }

    /// The steps are durable: they are told, and what they ask for begins.
    fn committed(&mut self, steps: Vec<Step>) -> Result<Option<Stop>, Error> {
        for step in &steps {
            if let Some(witness) = &self.equipment.witness {
                witness.stepped(&self.engine, step);
            }
            blame(&self.lease.run, &step.signals);
            self.face.tell(events(&self.engine, step, &mut self.progress));
            if let Input::ToolTimedOut { call, .. }
            | Input::ToolCompleted { call, .. }
            | Input::ToolFailed { call, .. } = &step.input
            {
                self.flight.give_up(*call);
            }
        }
        if steps.iter().any(ends) && self.equipment.world.gives_up() {
            // Whatever is still under way, nobody wants it any more. A gate before a nested call may be, whose parent
            // has timed out.
            self.flight.abort();
        }
        let last = steps.len().saturating_sub(1);
        for (index, step) in steps.iter().enumerate() {
            for effect in &step.effects {
                let dispatched = index < last && matches!(effect, Effect::DispatchTools { .. });
                if !dispatched && !self.perform(effect) {
                    return Ok(Some(self.died(self.wall(step.at_ms))));
                }
            }
        }
        for step in &steps {
            self.wishes.tell(&self.engine, step);
        }
        if self.engine.ending().is_some() {
            self.flight.abort_timers();
        }
        Ok(None)
    }

    /// Begins to perform an effect; false when the process dies before.
    fn perform(&mut self, effect: &Request) -> bool {
        let mut dies = false;
        for interruption in self.equipment.world.before(effect) {
            match interruption {
                Interruption::Report(input) => self.enqueue(input),
                Interruption::Death => dies = true,
            }
        }
        if dies {
            return false;
        }
        match effect {
            Effect::StartTimer { kind, of, due_ms } => self.flight.timer(*kind, of, self.wall(*due_ms)),
            Effect::DispatchTools { calls } => self.enqueue(Input::ToolsDispatched { calls: calls.clone() }),
            Effect::AbortInFlight if self.equipment.world.gives_up() => self.flight.abort(),
            Effect::Publish { .. } => {
                self.show_end();
                // It takes no place among the runs that are driven any more, however long its hooks take.
                self.permit = None;
            }
            Effect::ResolveEnvironment
            | Effect::CallModel { .. }
            | Effect::AskGate { .. }
            | Effect::CallHook { .. }
            | Effect::PerformAction { .. }
            | Effect::InvokeTool { .. }
            | Effect::AdmitNested { .. }
            | Effect::DenyNested { .. }
            | Effect::AwaitDecision { .. }
            | Effect::ReconcileTool { .. }
            | Effect::JudgeSemantics { .. }
            | Effect::AbortInFlight => {}
        }
        let line = self.wishes.line();
        match self.equipment.world.perform(&self.engine, effect, &line) {
            Performed::Reports(report) => {
                if let (Effect::InvokeTool { call, .. }, true) = (effect, self.equipment.world.gives_up()) {
                    self.flight.call(*call, report, line);
                } else {
                    self.flight.report(report);
                }
            }
            Performed::Tells(told) => self.flight.tell(told),
            Performed::HandedOn => {}
            Performed::Unheard => self.unheard = true,
        }
        true
    }

    fn enqueue(&mut self, input: Input) {
        let clock = &self.equipment.clock;
        let (at_ms, busy) = (clock.now_ms(), clock.busy());
        self.queue.push_back(Arrival { what: Arrived::Report(input), at_ms, busy });
    }

    /// Shows the release to whoever holds the run. Its record is durable (SPEC 13.I12).
    fn show_end(&self) {
        let (Some(ending), Some(release)) = (self.engine.ending(), self.engine.release()) else { return };
        self.equipment.traces.ended(ending);
        let ended = Ended {
            ending: ending.clone(),
            release: release.clone(),
            key: release.key(),
            spent: self.engine.ledger().cloned().unwrap_or_default(),
            records: self.engine.decider().records(),
            head: self.recorder.head(),
        };
        self.face.stand(Standpoint::Ended(Arc::new(ended)));
    }
}

/// How a driver begins.
pub(super) enum First {
    /// The run was just created: this is its first step, durable already.
    Step(Box<Step>),
    /// The run was loaded, and this is to be reported first. Without a recovery it waits for a person or its
    /// reader, or has no more to do.
    Reports(Vec<Input>),
}

enum Next {
    Arrival(Arrival),
    Command(Command),
    Wish(Wish),
    Abandoned,
}
