//! The search itself, level by level.

use std::collections::{BTreeSet, HashMap};

use super::offence::{Fault, Offence};
use super::progress::{Progress, Standstill};
use super::twins::Twins;
use super::ways::Ways;
use super::{Bounds, Exploration, Explored, Figures, Reached};
use crate::engine::table::{self, Ending};
use crate::engine::{Decider, Engine, Step};
use crate::testkit::alphabet::{Acceptable, Report, acceptable, foreign};
use crate::testkit::reference;
use crate::testkit::world::World;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::json::Json;

/// How many states are visited between two reports of the figures.
const STRIDE: u64 = 256;

/// By what two states are told apart.
pub(super) type Identity = fn(&Decider) -> Digest;

/// A state that is still to be expanded.
struct Node {
    engine: Engine,
    identity: Digest,
    place: u32,
    /// The report that led here.
    last: Option<Report>,
}

/// What an answer leads to.
pub(super) struct Branch {
    pub(super) report: Report,
    /// Whether it answers something; else it interrupts.
    replies: bool,
}

/// Every report that the state must accept, in the order in which they are numbered.
pub(super) fn branches(engine: &Engine, world: &World) -> impl Iterator<Item = Branch> {
    let Acceptable { replies, interruptions } = acceptable(engine, world);
    let replies = replies.into_iter().map(|report| Branch { report, replies: true });
    replies.chain(interruptions.into_iter().map(|report| Branch { report, replies: false }))
}

struct Search<'a> {
    world: &'a World,
    identity: Identity,
    figures: &'a mut Figures,
    endings: &'a mut Vec<Reached>,
    tuples: BTreeSet<String>,
    ways: Ways,
    /// Only looked up, never walked: its order decides nothing.
    places: HashMap<Digest, u32>,
    progress: Progress,
    twins: Twins,
}

/// Visits every state of `world` within `bounds`.
pub(super) fn search(
    world: &World,
    identity: Identity,
    bounds: Bounds,
    exploration: &mut Exploration,
    seen: &mut impl FnMut(&Figures),
) -> Result<(), Box<Offence>> {
    let tuples = exploration.endings.iter().map(|reached| tuple(&reached.ending)).collect();
    let Exploration { figures, endings, worlds } = exploration;
    let before = (figures.states, figures.transitions, figures.refusals);
    let mut search = Search {
        world,
        identity,
        figures,
        endings,
        tuples,
        ways: Ways::default(),
        places: HashMap::default(),
        progress: Progress::default(),
        twins: Twins::default(),
    };
    let whole = search.levels(bounds, seen)?;
    if whole {
        search.stands_nowhere_still()?;
    }
    worlds.push(Explored {
        world: world.name,
        states: figures.states.saturating_sub(before.0),
        transitions: figures.transitions.saturating_sub(before.1),
        refusals: figures.refusals.saturating_sub(before.2),
        whole,
    });
    seen(figures);
    Ok(())
}

impl Search<'_> {
    /// Breadth first; whether every state was expanded.
    fn levels(&mut self, bounds: Bounds, seen: &mut impl FnMut(&Figures)) -> Result<bool, Box<Offence>> {
        let engine = Engine::new();
        let identity = (self.identity)(engine.decider());
        self.places.insert(identity, 0);
        self.figures.states += 1;
        let mut level = vec![Node { engine, identity, place: 0, last: None }];
        let mut depth = 0;
        while !level.is_empty() {
            let mut next = Vec::new();
            let ahead = depth < bounds.depth;
            for mut node in level {
                self.refuse(&mut node)?;
                if ahead {
                    self.expand(&node, &mut next)?;
                }
                if self.figures.states.is_multiple_of(STRIDE) {
                    seen(self.figures);
                }
            }
            if !ahead {
                return Ok(false);
            }
            self.compare_twins()?;
            depth += 1;
            level = next;
        }
        Ok(true)
    }

    /// Every answer, from a copy of the state.
    fn expand(&mut self, node: &Node, next: &mut Vec<Node>) -> Result<(), Box<Offence>> {
        let (before, state) = (node.engine.ending(), node.engine.run_state().label());
        if before.is_some() {
            self.progress.end(node.place);
        }
        let mut future = Vec::new();
        for (choice, Branch { report, replies }) in branches(&node.engine, self.world).enumerate() {
            let mut engine = node.engine.clone();
            let step = match engine.step(report.at_ms, report.input.clone()) {
                Ok(step) => step,
                Err(refusal) => return Err(self.offence(Fault::AnswerRefused(refusal), node.place, report)),
            };
            self.count(state, &report, &step);
            if let Some(fault) = self.judge(&engine, before) {
                return Err(self.offence(fault, node.place, report));
            }
            let identity = (self.identity)(engine.decider());
            future.push(identity);
            let place = match self.places.get(&identity) {
                Some(place) => {
                    self.twins.meet(&engine, *place);
                    *place
                }
                None => {
                    // What ends a run is part of its state's identity, so each ending is met here first.
                    if let Some(ending) = engine.ending() {
                        self.note(ending, node.place, &report)?;
                    }
                    self.figures.states += 1;
                    let place = self.ways.add(node.place, choice);
                    self.places.insert(identity, place);
                    next.push(Node { engine, identity, place, last: Some(report) });
                    place
                }
            };
            if replies {
                self.progress.reply(node.place, place);
            }
        }
        self.twins.expanded(&future);
        Ok(())
    }

    /// Every report that fits nothing here: each is refused and changes nothing.
    fn refuse(&mut self, node: &mut Node) -> Result<(), Box<Offence>> {
        let before = Whole::of(&node.engine);
        let state = node.engine.run_state().label();
        for report in foreign(&node.engine, self.world, node.last.as_ref()) {
            let tag = report.input.tag();
            match node.engine.step(report.at_ms, report.input) {
                Ok(_) => return Err(self.accepted(node.place, tag)),
                Err(refusal) => self.figures.coverage.refuse(state, tag, refusal.kind),
            }
            self.figures.refusals += 1;
        }
        let unchanged = Whole::of(&node.engine) == before && (self.identity)(node.engine.decider()) == node.identity;
        if unchanged { Ok(()) } else { Err(self.changed(node.place)) }
    }

    /// The offence of a foreign report of that type that was accepted: the way is walked again to show it.
    fn accepted(&self, place: u32, tag: &str) -> Box<Offence> {
        let (engine, last) = self.walk(place);
        let all = foreign(&engine, self.world, last.as_ref());
        let accepted = |report: &Report| engine.clone().step(report.at_ms, report.input.clone()).is_ok();
        let found = all.into_iter().find(|report| report.input.tag() == tag && accepted(report));
        let mut reports = self.ways.to(place, self.world);
        reports.extend(found);
        Box::new(Offence { fault: Fault::ForeignAccepted, world: self.world.name, reports })
    }

    /// The offence of the first refused report that changed something.
    fn changed(&self, place: u32) -> Box<Offence> {
        let (mut engine, last) = self.walk(place);
        let before = Whole::of(&engine);
        for report in foreign(&engine, self.world, last.as_ref()) {
            if let Err(refusal) = engine.step(report.at_ms, report.input.clone())
                && Whole::of(&engine) != before
            {
                return self.offence(Fault::RefusalChangedState(refusal), place, report);
            }
        }
        let violations = engine.decider().violations();
        let reports = self.ways.to(place, self.world);
        Box::new(Offence { fault: Fault::Broken(violations), world: self.world.name, reports })
    }

    /// The state at a place, and the report that led there.
    fn walk(&self, place: u32) -> (Engine, Option<Report>) {
        let (mut engine, reports) = (Engine::new(), self.ways.to(place, self.world));
        for report in &reports {
            let _ = engine.step(report.at_ms, report.input.clone());
        }
        (engine, reports.into_iter().last())
    }

    /// States that count as one have one future.
    fn compare_twins(&mut self) -> Result<(), Box<Offence>> {
        let Some(place) = self.twins.first_unlike(self.world, self.identity) else { return Ok(()) };
        let reports = self.ways.to(place, self.world);
        Err(Box::new(Offence { fault: Fault::UnlikeTwin, world: self.world.name, reports }))
    }

    fn stands_nowhere_still(&self) -> Result<(), Box<Offence>> {
        let (fault, place) = match self.progress.standstill(self.ways.places()) {
            None => return Ok(()),
            Some(Standstill::NoWayOut(place)) => (Fault::NoWayOut, place),
            Some(Standstill::Circle(place)) => (Fault::Circle, place),
        };
        let reports = self.ways.to(place, self.world);
        Err(Box::new(Offence { fault, world: self.world.name, reports }))
    }

    fn count(&mut self, state: &'static str, report: &Report, step: &Step) {
        self.figures.transitions += 1;
        self.figures.coverage.accept(state, report.input.tag(), step);
        for signal in &step.signals {
            *self.figures.signals.entry(signal.tag()).or_default() += 1;
        }
    }

    /// What is wrong with the state that was just reached.
    fn judge(&self, engine: &Engine, before: Option<&Ending>) -> Option<Fault> {
        let after = engine.ending();
        if let Some(before) = before.filter(|before| after != Some(before)) {
            return Some(Fault::EndingChanged(before.clone()));
        }
        if let Some(outside) = after.filter(|after| !table::is_legal(after)) {
            return Some(Fault::OutsideTable(outside.clone()));
        }
        let violations = engine.decider().violations();
        (!violations.is_empty()).then_some(Fault::Broken(violations))
    }

    /// Keeps an ending that was not seen before, with the way to it, unless the other hand's table lacks it.
    fn note(&mut self, ending: &Ending, place: u32, report: &Report) -> Result<(), Box<Offence>> {
        if !self.tuples.insert(tuple(ending)) {
            return Ok(());
        }
        let wire = serde_json::to_string(ending).unwrap_or_default();
        let wire = Json::parse(&wire).unwrap_or(Json::Null);
        if let Err(illegal) = reference::is_legal(&wire) {
            return Err(self.offence(Fault::OutsideReference(illegal), place, report.clone()));
        }
        let mut reports = self.ways.to(place, self.world);
        reports.push(report.clone());
        self.endings.push(Reached { ending: ending.clone(), world: self.world.name, reports });
        Ok(())
    }

    fn offence(&self, fault: Fault, place: u32, report: Report) -> Box<Offence> {
        let mut reports = self.ways.to(place, self.world);
        reports.push(report);
        Box::new(Offence { fault, world: self.world.name, reports })
    }
}

/// What a refusal must not change (SPEC 13.I7). [`Shown`](crate::testkit::shown::Shown) has more; its digests of
/// what is outstanding cost a seventh of an exploration, and follow from what stands here and in the identity.
#[derive(PartialEq, Eq)]
struct Whole {
    state: Vec<u8>,
    records: u64,
    messages: usize,
}

impl Whole {
    fn of(engine: &Engine) -> Self {
        let decider = engine.decider();
        Self { state: decider.state_bytes(), records: decider.records(), messages: engine.transcript().len() }
    }
}

/// The tuple that the table is checked against: how many facts there are counts only as none or some.
fn tuple(ending: &Ending) -> String {
    let ending = Ending { facts: ending.facts.min(1), ..ending.clone() };
    serde_json::to_string(&ending).unwrap_or_default()
}
