//! Takes the events of one workflow in order.

use std::collections::{BTreeMap, BTreeSet};

use super::super::draft::Draft;
use super::super::error::TranscriptError;
use super::super::failure::classed;
use super::super::format::Format;
use super::super::line::Line;
use super::super::node::{Fields, Form, Node};
use super::super::note::{NoteKind, Notes};
use super::super::thread::Thread;
use super::super::transcript::Claim;
use super::activity::{Activity, Role, answer, request, result, told};
use super::kind::Kind;
use super::payload;

/// The conversations of a workflow in the making: the agent's first, then those beside it.
pub(super) struct Reader {
    threads: Vec<Thread>,
    /// The thread of a conversation beside the agent's, by its instructions.
    asides: BTreeMap<String, usize>,
    /// Activities that have not ended, by the id of the event that scheduled them.
    open: BTreeMap<u64, Activity>,
    /// Model requests of the agent's own that have not ended.
    asked: usize,
    /// The instructions of the latest of them.
    instructions: String,
    /// User messages that no request has held yet.
    pending: Vec<(usize, String)>,
    claim: Option<(usize, Claim)>,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self {
            threads: vec![Thread::new(None, Notes::new(Format::Temporal))],
            asides: BTreeMap::new(),
            open: BTreeMap::new(),
            asked: 0,
            instructions: String::new(),
            pending: Vec::new(),
            claim: None,
        }
    }

    fn notes(&mut self) -> &mut Notes {
        &mut self.threads[0].notes
    }

    pub(super) fn event(&mut self, node: &Node<'_, '_>, place: usize) -> Result<(), TranscriptError> {
        let event = node.fields()?;
        let at = event.number(&["eventId"]).and_then(|id| usize::try_from(id).ok()).unwrap_or(place);
        let recorded = event.loose(&["eventType"])?.unwrap_or_default();
        let kind = Kind::of(&recorded);
        let attributes = event.iter().find(|(name, raw)| name.ends_with("Attributes") && Form::of(raw) == Form::Object);
        let attributes = attributes.map(|(_, raw)| node.key("attributes", raw));
        let Some(attributes) = attributes else {
            return if kind == Kind::Bookkeeping { Ok(()) } else { self.ended(kind, None, at) };
        };
        let fields = attributes.fields()?;
        match kind {
            Kind::Bookkeeping => Ok(()),
            Kind::WorkflowStarted => {
                self.threads[0].id = fields.loose(&["workflowId", "originalExecutionRunId"])?;
                self.hear(&fields, "input", at)
            }
            Kind::Signaled => self.hear(&fields, "input", at),
            Kind::UpdateAccepted => self.update(&fields, at),
            Kind::ActivityScheduled => self.scheduled(&fields, at),
            Kind::ActivityStarted => self.started(&fields, at),
            Kind::ActivityCompleted => self.completed(&fields, at),
            Kind::ActivityFailed | Kind::ActivityTimedOut | Kind::ActivityCanceled => self.failed(&fields, kind, at),
            Kind::UpdateCompleted => self.updated(&fields, at),
            Kind::Other => {
                self.notes().at(at, NoteKind::LeftOut { what: format!("an event of type {recorded:?}") });
                Ok(())
            }
            Kind::WorkflowCompleted
            | Kind::WorkflowFailed
            | Kind::WorkflowTimedOut
            | Kind::WorkflowTerminated
            | Kind::WorkflowCancelRequested
            | Kind::WorkflowCanceled => self.ended(kind, Some(&fields), at),
        }
    }

    fn hear(&mut self, fields: &Fields<'_, '_>, key: &'static str, at: usize) -> Result<(), TranscriptError> {
        for payload in payload::texts(fields, key, at, self.notes())? {
            let texts = told(&payload, at, self.notes());
            self.pending.extend(texts.into_iter().map(|text| (at, text)));
        }
        Ok(())
    }

    fn update(&mut self, fields: &Fields<'_, '_>, at: usize) -> Result<(), TranscriptError> {
        let Some(request) = fields.of("acceptedRequest", Form::Object) else { return Ok(()) };
        let request = request.fields()?;
        let Some(input) = request.of("input", Form::Object) else { return Ok(()) };
        self.hear(&input.fields()?, "args", at)
    }

    /// An update's outcome repeats what the model said; only that it failed is news.
    fn updated(&mut self, fields: &Fields<'_, '_>, at: usize) -> Result<(), TranscriptError> {
        let Some(outcome) = fields.of("outcome", Form::Object) else { return Ok(()) };
        if let Some(failure) = outcome.fields()?.of("failure", Form::Object) {
            let said = failure.fields()?.text("message")?.unwrap_or_default();
            self.notes().at(at, NoteKind::LeftOut { what: format!("an update that failed: {said}") });
        }
        Ok(())
    }

    fn scheduled(&mut self, fields: &Fields<'_, '_>, at: usize) -> Result<(), TranscriptError> {
        let kind = fields.of("activityType", Form::Object);
        let name = kind.map(|kind| kind.fields()?.text("name")).transpose()?.flatten().unwrap_or_default();
        let payloads = payload::texts(fields, "input", at, self.notes())?;
        let asked = payloads.first().and_then(|payload| request(payload, &name, at, self.notes()));
        let role = match asked {
            None => Role::Tool,
            Some(asked) => {
                let thread = self.thread(&asked.instructions, at);
                if thread == 0 {
                    self.asked += 1;
                    self.instructions.clone_from(&asked.instructions);
                    self.heard_in(&asked.context);
                }
                let of = &mut self.threads[thread];
                of.model = of.model.take().or(asked.model);
                of.ask(at, asked.context);
                Role::Model { thread }
            }
        };
        self.open.insert(at as u64, Activity { name, role, started: false });
        Ok(())
    }

    /// The thread that a request belongs to: the agent's, unless it runs beside a request of the agent's.
    fn thread(&mut self, instructions: &str, at: usize) -> usize {
        if let Some(aside) = self.asides.get(instructions) {
            return *aside;
        }
        if self.asked == 0 || self.instructions == instructions {
            return 0;
        }
        let mut notes = Notes::new(Format::Temporal);
        notes.at(at, NoteKind::Aside { of: "requests beside the agent's, under other instructions".to_owned() });
        let id = self.threads[0].id.clone();
        self.threads.push(Thread::new(id, notes));
        self.asides.insert(instructions.to_owned(), self.threads.len() - 1);
        self.threads.len() - 1
    }

    /// Messages that a request holds need not be told of otherwise.
    fn heard_in(&mut self, context: &[Line]) {
        let users: BTreeSet<_> = context
            .iter()
            .filter_map(|line| if let Line::User(text) = line { Some(text.as_str()) } else { None })
            .collect();
        self.pending.retain(|(_, text)| !users.contains(text.as_str()));
    }

    fn activity(&self, fields: &Fields<'_, '_>) -> Option<(u64, Activity)> {
        let id = fields.number(&["scheduledEventId"])?;
        self.open.get(&id).map(|activity| (id, activity.clone()))
    }

    fn started(&mut self, fields: &Fields<'_, '_>, at: usize) -> Result<(), TranscriptError> {
        let id = fields.number(&["scheduledEventId"]);
        if let Some(activity) = id.and_then(|id| self.open.get_mut(&id)) {
            activity.started = true;
        }
        if fields.number(&["attempt"]).is_some_and(|attempt| attempt > 1) {
            self.notes().at(at, NoteKind::LeftOut { what: "the failed attempts before this one".to_owned() });
        }
        Ok(())
    }

    fn close(&mut self, fields: &Fields<'_, '_>, at: usize) -> Option<Activity> {
        let Some((id, activity)) = self.activity(fields) else {
            self.notes().at(at, NoteKind::LeftOut { what: "the end of an activity that is not there".to_owned() });
            return None;
        };
        self.open.remove(&id);
        self.asked = self.asked.saturating_sub(usize::from(activity.role == Role::Model { thread: 0 }));
        Some(activity)
    }

    fn completed(&mut self, fields: &Fields<'_, '_>, at: usize) -> Result<(), TranscriptError> {
        let Some(activity) = self.close(fields, at) else { return Ok(()) };
        let payloads = payload::texts(fields, "result", at, self.notes())?;
        match activity.role {
            Role::Model { thread } => {
                let of = &mut self.threads[thread];
                let lines = payloads.first().map(|payload| answer(payload, at, &mut of.notes)).unwrap_or_default();
                of.reply(at, lines);
            }
            Role::Tool => self.threads[0].give_named(result(payloads.first(), &activity.name, at, false)),
        }
        Ok(())
    }

    fn failed(&mut self, fields: &Fields<'_, '_>, kind: Kind, at: usize) -> Result<(), TranscriptError> {
        let Some(activity) = self.close(fields, at) else { return Ok(()) };
        let (said, class) = failure(fields)?;
        if kind == Kind::ActivityCanceled {
            self.notes().at(at, NoteKind::LeftOut { what: format!("{:?}, which was canceled", activity.name) });
            return Ok(());
        }
        let class = if kind == Kind::ActivityTimedOut { Some("timeout".to_owned()) } else { class };
        match activity.role {
            Role::Model { thread } => {
                let (error, known) = classed(None, class.as_deref(), said);
                let of = &mut self.threads[thread];
                if !known {
                    of.notes.at(at, NoteKind::FailureUnclassed);
                }
                of.fail(at, error);
            }
            Role::Tool => {
                let mut failed = result(None, &activity.name, at, true);
                failed.text = said;
                self.threads[0].give_named(failed);
            }
        }
        Ok(())
    }

    fn ended(&mut self, kind: Kind, fields: Option<&Fields<'_, '_>>, at: usize) -> Result<(), TranscriptError> {
        let said = fields.map(|fields| failure(fields)).transpose()?.map(|(said, _)| said).unwrap_or_default();
        let claim = match kind {
            Kind::WorkflowCompleted => Claim::Success,
            Kind::WorkflowFailed => Claim::Failed { said },
            Kind::WorkflowTimedOut => Claim::Failed { said: "timed out".to_owned() },
            Kind::WorkflowTerminated => Claim::Failed { said: "terminated".to_owned() },
            Kind::WorkflowCancelRequested | Kind::WorkflowCanceled => Claim::Cancelled,
            Kind::WorkflowStarted
            | Kind::ActivityScheduled
            | Kind::ActivityStarted
            | Kind::ActivityCompleted
            | Kind::ActivityFailed
            | Kind::ActivityTimedOut
            | Kind::ActivityCanceled
            | Kind::Signaled
            | Kind::UpdateAccepted
            | Kind::UpdateCompleted
            | Kind::Bookkeeping
            | Kind::Other => {
                self.notes().at(at, NoteKind::LeftOut { what: "an event without attributes".to_owned() });
                return Ok(());
            }
        };
        self.claim = Some((at, claim));
        Ok(())
    }

    pub(super) fn finish(mut self) -> Vec<Draft> {
        for (id, activity) in std::mem::take(&mut self.open) {
            let at = usize::try_from(id).unwrap_or(usize::MAX);
            let of = match activity.role {
                Role::Model { thread } => thread,
                Role::Tool => 0,
            };
            let name = activity.name;
            let kind = if activity.started {
                NoteKind::NeverEnded { activity: name }
            } else {
                NoteKind::NeverStarted { activity: name }
            };
            self.threads[of].notes.at(at, kind);
        }
        for (at, text) in std::mem::take(&mut self.pending) {
            self.notes().at(at, NoteKind::UnheardUser);
            self.threads[0].hear(at, text);
        }
        let claim = self.claim.take();
        let mut threads = self.threads.into_iter();
        let agent = threads.next().map(|thread| thread.finish(claim));
        agent.into_iter().chain(threads.map(|thread| thread.finish(None))).collect()
    }
}

/// The message of a failure, and its type.
fn failure(fields: &Fields<'_, '_>) -> Result<(String, Option<String>), TranscriptError> {
    let Some(failure) = fields.of("failure", Form::Object) else { return Ok((String::new(), None)) };
    let fields = failure.fields()?;
    let mut class = None;
    // The first of the chain that names a type decides; a cause is looked at once.
    if let Some(info) = fields.of("applicationFailureInfo", Form::Object) {
        class = info.fields()?.text("type")?;
    } else if let Some(cause) = fields.of("cause", Form::Object)
        && let Some(info) = cause.fields()?.of("applicationFailureInfo", Form::Object)
    {
        class = info.fields()?.text("type")?;
    }
    if class.is_none() && fields.get("timeoutFailureInfo").is_some() {
        class = Some("timeout".to_owned());
    }
    Ok((fields.text("message")?.unwrap_or_default(), class))
}
