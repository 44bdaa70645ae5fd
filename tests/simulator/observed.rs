//! What the world saw of each run, and what must be true of it. It knows the records that reached the medium, and
//! who did what in the world; of the runtime's insides it knows nothing.

use std::collections::{BTreeMap, BTreeSet};

use portcullis::engine::Engine;
use portcullis::history::{Line, Replay, Replayed};
use portcullis::runtime::store::{Append, Lease, Standing, each_line};
use portcullis::testkit::audit::Audit;
use portcullis::testkit::reference;
use portcullis::vocabulary::digest::Digest;
use portcullis::vocabulary::ids::RunId;
use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::tool::Recovery;

/// A word that stands in every text that may never be seen before it is released.
pub(crate) const PRIVATE: &str = "PRIVATE";

/// What was seen.
#[derive(Default)]
pub(crate) struct Observed {
    runs: BTreeMap<RunId, Run>,
    /// Work of ports that is under way.
    under_way: BTreeMap<u64, Work>,
    begun: u64,
    /// Runs that wait for a person, in no driver's hands.
    parked: BTreeMap<RunId, Parked>,
}

/// Work of a port.
struct Work {
    run: RunId,
    process: u32,
    what: String,
    /// When its driver knew that it is not wanted any more.
    given_up_ms: Option<u64>,
}

/// A run that waits for a person, and whose timer is its process's to keep.
struct Parked {
    process: u32,
    /// When it is to be woken, as its process's clock shows it.
    own_ms: u64,
    /// The same, as the world's clock shows it.
    due_ms: u64,
    /// How often anything had been held up before it was claimed. A driver that could not store or read gives its run
    /// back as well, and leaves it to others.
    held_up: u64,
}

/// How late a run may be woken, in milliseconds. Nothing that wakes it takes any time of the world.
const LATE_MS_MAX: u64 = 100;

/// One run.
#[derive(Default)]
struct Run {
    lines: Vec<Vec<u8>>,
    audit: Audit,
    replay: Replay<Engine>,
    acknowledged: u64,
    /// The latest claim.
    epoch: u64,
    /// How often anything had been held up before it.
    held_up: u64,
    /// The latest claim of each process.
    claims: BTreeMap<u32, u64>,
    budgets: Option<Json>,
    /// Where it stands after its last record.
    standing: Option<Standing>,
    /// Whether work was lost with its last driver, so that the next one has to say so first.
    is_lost: bool,
    /// How often a person was asked each question.
    asked: BTreeMap<String, u64>,
    /// Effects that are on record, as `invoke_tool t1.0/1`.
    requested: BTreeSet<String>,
    end: Option<End>,
    entries: BTreeMap<String, Entry>,
    nested: BTreeMap<String, u64>,
    model_calls: BTreeSet<String>,
    nested_models: u64,
    recoveries: BTreeSet<String>,
    delivered: Option<String>,
    receipt: bool,
}

/// How it ended.
struct End {
    seq: u64,
    row: u64,
    by: u32,
    release: Json,
}

/// A tool call that was entered.
struct Entry {
    tool: String,
    operation: String,
    times: u64,
    answered: bool,
}

/// A tool call as it is entered.
pub(crate) struct Entered<'a> {
    pub(crate) process: u32,
    pub(crate) run: &'a RunId,
    pub(crate) call: String,
    pub(crate) attempt: u32,
    pub(crate) operation: String,
    pub(crate) tool: &'a str,
    pub(crate) recovery: Recovery,
}

fn require(holds: bool, reason: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(reason()) }
}

fn member<'a>(json: &'a Json, name: &str) -> &'a Json {
    json.as_object().and_then(|fields| fields.get(name)).unwrap_or(&Json::Null)
}

fn word<'a>(json: &'a Json, name: &str) -> &'a str {
    member(json, name).as_str().unwrap_or("")
}

fn number(json: &Json) -> Option<u64> {
    json.as_integer().and_then(|number| number.to_string().parse().ok())
}

/// The records of one append.
impl Observed {
    /// Records have reached the medium.
    pub(crate) fn stored(&mut self, process: u32, append: &Append) -> Result<(), String> {
        let (id, epoch) = (&append.lease.run, append.lease.epoch);
        let run = self.runs.entry(id.clone()).or_default();
        let at = |seq: u64| format!("{id}: record {seq}");
        require(epoch == run.epoch, || {
            format!("a fenced owner's append landed: {} under epoch {epoch} of {}", at(append.seq), run.epoch)
        })?;
        for (seq, line) in (append.seq..).zip(each_line(&append.lines)) {
            match run.lines.get(usize::try_from(seq).unwrap()) {
                Some(there) => require(there == line, || format!("a stored record was replaced: {}", at(seq)))?,
                None => {
                    require(run.lines.len() as u64 == seq, || format!("records are missing before {}", at(seq)))?;
                    run.take(process, line).map_err(|reason| format!("{}: {reason}", at(seq)))?;
                }
            }
        }
        run.standing = Some(append.standing);
        Ok(())
    }

    /// Its driver knows that they are durable. A call that has timed out by then is given up by it.
    pub(crate) fn acknowledged(&mut self, process: u32, append: &Append, now_ms: u64) -> Result<(), String> {
        let id = &append.lease.run;
        let Some(run) = self.runs.get_mut(id) else { return Ok(()) };
        run.acknowledged = run.acknowledged.max(append.seq + append.records);
        for line in each_line(&append.lines) {
            let record = Json::parse(String::from_utf8_lossy(line).trim_end()).map_err(|error| error.to_string())?;
            let Some(timed_out) = timed_out(member(&record, "input")) else { continue };
            let its = |work: &&mut Work| work.run == *id && work.process == process && work.what == timed_out;
            self.under_way.values_mut().filter(its).for_each(|work| work.given_up_ms = Some(now_ms));
        }
        Ok(())
    }

    /// What had to happen by now has happened: who was given up is gone, and who was to be woken is awake. Time
    /// goes on only when everybody has done what there was to do.
    pub(crate) fn in_time(&self, now_ms: u64, held_up: u64) -> Result<(), String> {
        let late = |work: &&Work| work.given_up_ms.is_some_and(|given_up_ms| given_up_ms < now_ms);
        if let Some(Work { run, what, .. }) = self.under_way.values().find(late) {
            return Err(format!("{run}: {what} goes on though it was given up"));
        }
        let late = |parked: &Parked| parked.held_up == held_up && parked.due_ms + LATE_MS_MAX < now_ms;
        let asleep = self.parked.iter().find(|(_, parked)| late(parked));
        asleep.map_or(Ok(()), |(run, parked)| {
            Err(format!("{run}: it is not woken though its timer was due {} ms ago", now_ms - parked.due_ms))
        })
    }

    /// A driver has given its run back. If the run waits for a person, its process has to wake it when its timer is
    /// due.
    pub(crate) fn given_back(
        &mut self,
        process: u32,
        lease: &Lease,
        in_the_world: impl FnOnce(u64) -> u64,
    ) -> Result<(), String> {
        let run = self.runs.get(&lease.run).filter(|run| run.epoch == lease.epoch);
        let Some(run) = run else { return Ok(()) };
        if let Some(Standing::Awaiting { due_ms: Some(own_ms) }) = run.standing {
            let parked = Parked { process, own_ms, due_ms: in_the_world(own_ms), held_up: run.held_up };
            self.parked.insert(lease.run.clone(), parked);
        }
        Ok(())
    }

    /// Whether a run of that process is to be woken then.
    pub(crate) fn is_alarm(&self, process: u32, own_ms: u64) -> bool {
        self.parked.values().any(|parked| parked.process == process && parked.own_ms == own_ms)
    }

    /// Nobody is left who could wake anything.
    pub(crate) fn power_gone(&mut self) {
        self.parked.clear();
    }

    pub(crate) fn claimed(&mut self, process: u32, lease: &Lease, held_up: u64) -> Result<(), String> {
        let run = self.runs.entry(lease.run.clone()).or_default();
        require(lease.epoch > run.epoch || lease.epoch == 1, || format!("{}: an epoch was given twice", lease.run))?;
        (run.epoch, run.held_up) = (lease.epoch, held_up);
        run.claims.insert(process, lease.epoch);
        run.is_lost = matches!(run.standing, Some(Standing::Running | Standing::Ended { delivered: false, .. }));
        self.parked.remove(&lease.run);
        Ok(())
    }

    /// The medium was read.
    pub(crate) fn read(&mut self, id: &RunId, bytes: &[u8]) -> Result<(), String> {
        let Some(run) = self.runs.get(id) else { return Ok(()) };
        let count = each_line(bytes).count() as u64;
        require(count >= run.acknowledged, || {
            format!("{id}: an acknowledged record vanished: {count} records of {}", run.acknowledged)
        })?;
        let mut there = each_line(bytes);
        for (seq, line) in run.lines.iter().enumerate() {
            let kept = there.next() == Some(line.as_slice());
            require(kept, || format!("{id}: a stored record vanished or changed: {seq} of {}", run.lines.len()))?;
        }
        require(there.next().is_none(), || format!("{id}: there is a record that nobody stored"))
    }

    pub(crate) fn epoch(&self, run: &RunId) -> u64 {
        self.runs.get(run).map_or(0, |run| run.epoch)
    }

    /// Whether there is such a run.
    pub(crate) fn has(&self, run: &RunId) -> bool {
        self.runs.get(run).is_some_and(|run| !run.lines.is_empty())
    }
}

impl Run {
    /// One more record: it replays, it may have happened, and its ending stands in the table.
    fn take(&mut self, process: u32, line: &[u8]) -> Result<(), String> {
        let text = std::str::from_utf8(line).map_err(|error| error.to_string())?;
        let bytes = line.strip_suffix(b"\n").ok_or("no whole line")?;
        let number_of = self.lines.len() as u64 + 1;
        match self.replay.take(Line { bytes, offset: 0, number: number_of }) {
            Ok(Replayed::Reproduced(_)) => {}
            Ok(Replayed::Diverged(divergence)) => return Err(format!("it does not replay: {divergence:?}")),
            Err(fault) => return Err(format!("it cannot be read back: {fault}")),
        }
        self.audit.take(text).map_err(|breach| breach.to_string())?;
        let record = Json::parse(text.trim_end()).map_err(|error| error.to_string())?;
        self.follow(process, &record)?;
        self.lines.push(line.to_vec());
        Ok(())
    }

    fn follow(&mut self, process: u32, record: &Json) -> Result<(), String> {
        let (input, state) = (member(record, "input"), member(record, "state"));
        self.carried_on(input)?;
        if self.lines.is_empty() {
            self.budgets = Some(member(member(input, "spec"), "budgets").clone());
        }
        for effect in member(record, "effects").as_array().unwrap_or_default() {
            self.requested.insert(requested(effect));
            asked(effect).into_iter().for_each(|asked| *self.asked.entry(asked).or_default() += 1);
            self.recover(input, effect);
        }
        self.receipt |= word(input, "type") == "release_delivered";
        let ending = member(state, "ending");
        if *ending != Json::Null && self.end.is_none() {
            reference::is_legal(ending).map_err(|illegal| illegal.to_string())?;
            let publish = member(record, "effects").as_array().unwrap_or_default();
            let publish = publish.iter().find(|effect| word(effect, "type") == "publish");
            let release = publish.map_or(Json::Null, |publish| member(publish, "release").clone());
            let seq = number(member(record, "seq")).unwrap_or_default();
            self.end = Some(End { seq, row: number(member(ending, "row")).unwrap_or(0), by: process, release });
        }
        Ok(())
    }

    /// Whoever claims a run whose work was lost, or whose release nobody took, says so before anything else.
    fn carried_on(&mut self, input: &Json) -> Result<(), String> {
        // The deadline carries what comes too late.
        let displaced = member(input, "displaced");
        match word(if *displaced == Json::Null { input } else { displaced }, "type") {
            "tail_repaired" => {}
            "run_recovered" => self.is_lost = false,
            other => require(!self.is_lost, || format!("it goes on with {other} without being recovered"))?,
        }
        Ok(())
    }

    /// What a recovery asked for again.
    fn recover(&mut self, input: &Json, effect: &Json) {
        if word(input, "type") == "run_recovered" {
            let kind = word(effect, "type");
            let detail = if kind == "start_timer" { word(effect, "kind") } else { "" };
            self.recoveries.insert(format!("{kind} {detail}").trim_end().to_owned());
        }
    }

    /// Whether this process drove the run last. What another one had begun may still reach the world: its record
    /// is durable, and the rules say so.
    fn is_driven_by(&self, process: u32) -> bool {
        self.claims.get(&process) == Some(&self.epoch)
    }

    fn limit(&self, name: &str) -> u64 {
        self.budgets.as_ref().and_then(|budgets| number(member(budgets, name))).unwrap_or(u64::MAX)
    }

    /// Something that the run asks of the world begins.
    fn begins(&self, process: u32, effect: &str) -> Result<(), String> {
        require(self.requested.contains(effect), || format!("{effect} began before its record was durable"))?;
        // A driver that has not heard of the end yet may still begin what was asked for before.
        let heard = self.end.as_ref().is_some_and(|end| self.acknowledged > end.seq);
        let over = heard && self.is_driven_by(process);
        require(!over, || format!("{effect} began after the run had ended"))
    }
}

/// The work that an input declares too late.
fn timed_out(input: &Json) -> Option<String> {
    (word(input, "type") == "tool_timed_out")
        .then(|| format!("tool call {}/{}", word(input, "call"), number(member(input, "attempt")).unwrap_or(0)))
}

/// What a person is asked by an effect.
fn asked(effect: &Json) -> Option<String> {
    match word(effect, "type") {
        "await_decision" => Some(format!("decision {}", word(effect, "ticket"))),
        "reconcile_tool" => Some(format!("reconciliation {}", word(effect, "call"))),
        _ => None,
    }
}

fn requested(effect: &Json) -> String {
    let kind = word(effect, "type");
    match kind {
        "invoke_tool" | "call_model" | "judge_semantics" => {
            format!("{kind} {}/{}", word(effect, "call"), number(member(effect, "attempt")).unwrap_or(0))
        }
        "admit_nested" => format!("{kind} {}", word(effect, "nested")),
        "ask_gate" | "call_hook" | "perform_action" => {
            format!("{kind} {}", number(member(effect, "ask")).unwrap_or(0))
        }
        _ => kind.to_owned(),
    }
}

/// What was done in the world.
impl Observed {
    fn run(&mut self, id: &RunId) -> Result<&mut Run, String> {
        self.runs.get_mut(id).filter(|run| !run.lines.is_empty()).ok_or_else(|| format!("{id} has no record"))
    }

    /// Something that is not a tool begins: `judge_semantics j1/1`.
    pub(crate) fn begins(&mut self, process: u32, id: &RunId, effect: &str) -> Result<(), String> {
        self.run(id)?.begins(process, effect).map_err(|reason| format!("{id}: {reason}"))
    }

    pub(crate) fn model_asked(&mut self, process: u32, id: &RunId, call: &str, attempt: u32) -> Result<(), String> {
        let run = self.run(id)?;
        run.begins(process, &format!("call_model {call}/{attempt}")).map_err(|reason| format!("{id}: {reason}"))?;
        run.model_calls.insert(call.to_owned());
        run.within_budgets().map_err(|reason| format!("{id}: {reason}"))
    }

    pub(crate) fn tool_entered(&mut self, entered: &Entered<'_>) -> Result<(), String> {
        let Entered { process, run: id, call, attempt, operation, tool, recovery } = entered;
        let run = self.run(id)?;
        run.begins(*process, &format!("invoke_tool {call}/{attempt}")).map_err(|reason| format!("{id}: {reason}"))?;
        let fresh = || Entry { tool: (*tool).to_owned(), operation: operation.clone(), times: 0, answered: false };
        let entry = run.entries.entry(call.clone()).or_insert_with(fresh);
        entry.times += 1;
        let times = entry.times;
        require(*recovery != Recovery::NeverReplay || times == 1, || {
            format!("{id}: {tool} may never be replayed, and {call} was entered {times} times")
        })?;
        require(entry.operation == *operation, || format!("{id}: {call} was entered under two operation ids"))?;
        run.within_budgets().map_err(|reason| format!("{id}: {reason}"))
    }

    pub(crate) fn tool_answered(&mut self, id: &RunId, call: &str) {
        let entry = self.runs.get_mut(id).and_then(|run| run.entries.get_mut(call));
        entry.into_iter().for_each(|entry| entry.answered = true);
    }

    /// Calls that were entered and never answered.
    pub(crate) fn unanswered(&self, id: &RunId, tool: &str) -> Vec<String> {
        let entries = self.runs.get(id).into_iter().flat_map(|run| &run.entries);
        entries.filter(|(_, entry)| !entry.answered && entry.tool == tool).map(|(call, _)| call.clone()).collect()
    }

    /// A call is entered by a host, around the runtime.
    pub(crate) fn entered_again(&mut self, id: &RunId, call: &str) -> Result<(), String> {
        let entry = self.run(id)?.entries.get_mut(call).ok_or("no such call")?;
        entry.times += 1;
        let (tool, times) = (&entry.tool, entry.times);
        Err(format!("{id}: {tool} may never be replayed, and {call} was entered {times} times"))
    }

    /// A tool makes a call of its own.
    pub(crate) fn nested_entered(
        &mut self,
        process: u32,
        id: &RunId,
        nested: Option<String>,
        tool: Option<&str>,
    ) -> Result<(), String> {
        let run = self.run(id)?;
        if let Some(nested) = nested {
            let began = run.begins(process, &format!("admit_nested {nested}"));
            began.map_err(|reason| format!("{id}: {reason}"))?;
        }
        match tool {
            Some(tool) => *run.nested.entry(tool.to_owned()).or_default() += 1,
            None => run.nested_models += 1,
        }
        run.within_budgets().map_err(|reason| format!("{id}: {reason}"))
    }

    /// What somebody who holds the run is shown.
    pub(crate) fn shown(&self, id: &RunId, what: &str) -> Result<(), String> {
        let shown: String = what.chars().take(300).collect();
        require(!what.contains(PRIVATE), || format!("{id}: text that was not released was shown: {shown}"))
    }

    /// A release is seen by somebody.
    pub(crate) fn released(&mut self, id: &RunId, release: &str, key: &str, head: &Digest) -> Result<(), String> {
        let run = self.run(id)?;
        let at = |reason: &str| format!("{id}: {reason}");
        let end = run.end.as_ref().ok_or_else(|| at("a release was seen before a durable ending"))?;
        let terminal = usize::try_from(end.seq).ok().and_then(|seq| run.lines.get(seq..)).unwrap_or_default();
        let head = format!("\"hash\":\"{}\"", head.hex().as_str());
        let on_record = terminal.iter().any(|line| String::from_utf8_lossy(line).contains(&head));
        require(on_record, || at("a release was seen whose record is not durable"))?;
        let parsed = Json::parse(release).map_err(|error| error.to_string())?;
        require(parsed == end.release, || at("the release that was seen is not the one on record"))?;
        let delivery = format!("{key} {release}");
        let first = run.delivered.get_or_insert_with(|| delivery.clone());
        require(*first == delivery, || format!("{id}: two deliveries differ: {first} and {delivery}"))?;
        let success = word(&parsed, "outcome") == "success";
        require(success || !release.contains(PRIVATE), || at("a release holds text that was not verified"))
    }

    /// Work of a port begins; the number ends it.
    pub(crate) fn work_begins(&mut self, process: u32, run: &RunId, what: String) -> u64 {
        self.begun += 1;
        self.under_way.insert(self.begun, Work { run: run.clone(), process, what, given_up_ms: None });
        self.begun
    }

    pub(crate) fn work_ends(&mut self, number: u64) {
        self.under_way.remove(&number);
    }

    /// The run was seen to be over in that process: nothing that it had begun there goes on.
    pub(crate) fn all_dropped(&self, process: u32, id: &RunId) -> Result<(), String> {
        let left = self.under_way.values().find(|work| work.run == *id && work.process == process);
        left.map_or(Ok(()), |work| Err(format!("{id}: {} goes on though the run is over", work.what)))
    }

    /// How often a person was asked that, by the records.
    pub(crate) fn times_asked(&self, id: &RunId, question: &str) -> u64 {
        self.runs.get(id).and_then(|run| run.asked.get(question)).copied().unwrap_or(0)
    }

    /// Whether the run has ended, and a receipt is on record.
    pub(crate) fn is_delivered(&self, id: &RunId) -> bool {
        self.runs.get(id).is_some_and(|run| run.end.is_some() && run.receipt)
    }

    /// Whether the run has ended, durably.
    pub(crate) fn has_ended(&self, id: &RunId) -> bool {
        self.runs.get(id).is_some_and(|run| run.end.is_some())
    }

    /// Whether that process ended the run, and knows that the end is durable.
    pub(crate) fn has_heard(&self, process: u32, id: &RunId) -> bool {
        self.runs
            .get(id)
            .is_some_and(|run| run.end.as_ref().is_some_and(|end| end.by == process && run.acknowledged > end.seq))
    }

    /// The rows in which the runs ended.
    pub(crate) fn rows(&self) -> impl Iterator<Item = u64> + '_ {
        self.runs.values().filter_map(|run| run.end.as_ref()).map(|end| end.row)
    }

    pub(crate) fn recoveries(&self) -> impl Iterator<Item = &str> {
        self.runs.values().flat_map(|run| run.recoveries.iter().map(String::as_str))
    }

    pub(crate) fn records(&self) -> u64 {
        self.runs.values().map(|run| run.lines.len() as u64).sum()
    }

    /// Every record of every run, byte by byte.
    pub(crate) fn histories(&self) -> impl Iterator<Item = &[u8]> {
        self.runs.values().flat_map(|run| run.lines.iter().map(Vec::as_slice))
    }

    /// Where a run stands that does not end, for people.
    pub(crate) fn standing(&self, id: &RunId) -> String {
        let Some(run) = self.runs.get(id) else { return "it never began".to_owned() };
        let last = run.lines.last().map(|line| String::from_utf8_lossy(line).into_owned()).unwrap_or_default();
        let state = last.find("\"state\":").map_or("", |at| &last[at..]);
        let state: String = state.chars().take(400).collect();
        format!("{} records, epoch {}, receipt {}, {state}", run.lines.len(), run.epoch, run.receipt)
    }
}

impl Run {
    /// What the world was really asked for, against the budgets of the spec.
    fn within_budgets(&self) -> Result<(), String> {
        let models = self.model_calls.len() as u64 + self.nested_models;
        require(models <= self.limit("model_calls"), || format!("{models} model calls, over the budget"))?;
        let mut by_tool = self.nested.clone();
        for entry in self.entries.values() {
            *by_tool.entry(entry.tool.clone()).or_default() += 1;
        }
        let all: u64 = by_tool.values().sum();
        require(all <= self.limit("tool_calls"), || format!("{all} tool calls, over the budget"))?;
        let limits = self.budgets.as_ref().map_or(&Json::Null, |budgets| member(budgets, "tool_calls_by_tool"));
        for (tool, times) in by_tool {
            let limit = number(member(limits, &tool)).unwrap_or(u64::MAX);
            require(times <= limit, || format!("{times} calls of {tool}, over its budget"))?;
        }
        Ok(())
    }
}
