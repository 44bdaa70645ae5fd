//! The search itself, level by level.

use std::collections::{BTreeMap, BTreeSet};

use super::offence::{Fault, Offence};
use super::{Bounds, Exploration, Figures, Reached};
use crate::engine::table::{self, Ending};
use crate::engine::{Engine, Step};
use crate::testkit::alphabet::{Report, answers, foreign};
use crate::testkit::reference;
use crate::testkit::world::World;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::json::Json;

/// How many states are visited between two reports of the figures.
const STRIDE: u64 = 256;

/// A state that is still to be expanded.
struct Node {
    engine: Engine,
    place: u32,
}

/// Every state's way: the state before it and the report between them.
#[derive(Default)]
struct Ways(Vec<Option<(u32, Report)>>);

impl Ways {
    fn add(&mut self, step: Option<(u32, Report)>) -> u32 {
        self.0.push(step);
        u32::try_from(self.0.len().saturating_sub(1)).unwrap_or(u32::MAX)
    }

    fn last(&self, place: u32) -> Option<&Report> {
        self.0.get(place as usize)?.as_ref().map(|(_, report)| report)
    }

    fn to(&self, place: u32) -> Vec<Report> {
        let mut reports = Vec::new();
        let mut here = self.0.get(place as usize);
        while let Some(Some((before, report))) = here {
            reports.push(report.clone());
            here = self.0.get(*before as usize);
        }
        reports.reverse();
        reports
    }
}

struct Search<'a> {
    world: &'a World,
    figures: &'a mut Figures,
    endings: &'a mut Vec<Reached>,
    tuples: BTreeSet<String>,
    ways: Ways,
    visited: BTreeSet<Digest>,
}

/// Visits every state of `world` within `bounds`.
pub(super) fn search(
    world: &World,
    bounds: Bounds,
    exploration: &mut Exploration,
    seen: &mut impl FnMut(&Figures),
) -> Result<(), Box<Offence>> {
    let tuples = exploration.endings.iter().map(|reached| tuple(&reached.ending)).collect();
    let Exploration { figures, endings } = exploration;
    let mut search = Search { world, figures, endings, tuples, ways: Ways::default(), visited: BTreeSet::default() };
    let place = search.ways.add(None);
    let mut level = vec![Node { engine: Engine::new(), place }];
    search.figures.states += 1;
    let mut depth = 0;
    while !level.is_empty() {
        let mut next = Vec::new();
        for mut node in level {
            search.refuse(&mut node)?;
            if depth < bounds.depth {
                search.expand(&node, &mut next)?;
            }
            if search.figures.states.is_multiple_of(STRIDE) {
                seen(search.figures);
            }
        }
        depth += 1;
        level = next;
    }
    seen(search.figures);
    Ok(())
}

impl Search<'_> {
    /// Every answer, from a copy of the state.
    fn expand(&mut self, node: &Node, next: &mut Vec<Node>) -> Result<(), Box<Offence>> {
        let before = node.engine.ending();
        for report in answers(&node.engine, self.world) {
            let mut engine = node.engine.clone();
            let step = match engine.step(report.at_ms, report.input.clone()) {
                Ok(step) => step,
                Err(refusal) => return Err(self.offence(Fault::AnswerRefused(refusal), node.place, report)),
            };
            self.count(&step);
            if let Some(fault) = self.judge(&engine, before) {
                return Err(self.offence(fault, node.place, report));
            }
            if let Some(ending) = engine.ending() {
                self.note(ending, node.place, &report);
            }
            if self.visited.insert(engine.decider().identity()) {
                self.figures.states += 1;
                let place = self.ways.add(Some((node.place, report)));
                next.push(Node { engine, place });
            }
        }
        Ok(())
    }

    /// Every report that fits nothing here: each is refused and changes nothing.
    fn refuse(&mut self, node: &mut Node) -> Result<(), Box<Offence>> {
        let identity = node.engine.decider().identity();
        let state = node.engine.decider().state_json();
        for report in foreign(&node.engine, self.world, self.ways.last(node.place)) {
            let first = node.engine.step(report.at_ms, report.input.clone());
            let Err(refusal) = first else {
                return Err(self.offence(Fault::ForeignAccepted, node.place, report));
            };
            if node.engine.decider().state_json() != state {
                return Err(self.offence(Fault::RefusalChangedState(refusal), node.place, report));
            }
            self.figures.refusals += 1;
            *self.figures.refusals_by_kind.entry(refusal.kind.word()).or_default() += 1;
        }
        if node.engine.decider().identity() != identity {
            let violations = node.engine.decider().violations();
            let reports = self.ways.to(node.place);
            return Err(Box::new(Offence { fault: Fault::Broken(violations), world: self.world.name, reports }));
        }
        Ok(())
    }

    fn count(&mut self, step: &Step) {
        self.figures.transitions += 1;
        for signal in &step.signals {
            count(&mut self.figures.signals, signal.tag());
        }
    }

    /// What is wrong with the state that was just reached; its ending is judged first.
    fn judge(&self, engine: &Engine, before: Option<&Ending>) -> Option<Fault> {
        let changed = before.filter(|before| engine.ending() != Some(before));
        let fault = changed.map(|before| Fault::EndingChanged(before.clone()));
        fault.or_else(|| engine.ending().and_then(|ending| self.judge_ending(ending))).or_else(|| {
            let violations = engine.decider().violations();
            (!violations.is_empty()).then_some(Fault::Broken(violations))
        })
    }

    fn judge_ending(&self, ending: &Ending) -> Option<Fault> {
        if !table::is_legal(ending) {
            return Some(Fault::OutsideTable(ending.clone()));
        }
        if self.tuples.contains(&tuple(ending)) {
            return None;
        }
        let wire = serde_json::to_string(ending).unwrap_or_default();
        let wire = Json::parse(&wire).unwrap_or(Json::Null);
        reference::is_legal(&wire).err().map(Fault::OutsideReference)
    }

    /// Keeps an ending that was not seen before, with the way to it.
    fn note(&mut self, ending: &Ending, place: u32, report: &Report) {
        if self.tuples.insert(tuple(ending)) {
            let mut reports = self.ways.to(place);
            reports.push(report.clone());
            self.endings.push(Reached { ending: ending.clone(), world: self.world.name, reports });
        }
    }

    fn offence(&self, fault: Fault, place: u32, report: Report) -> Box<Offence> {
        let mut reports = self.ways.to(place);
        reports.push(report);
        Box::new(Offence { fault, world: self.world.name, reports })
    }
}

fn count(counts: &mut BTreeMap<&'static str, u64>, name: &'static str) {
    *counts.entry(name).or_default() += 1;
}

/// The tuple that the table is checked against: how many facts there are counts only as none or some.
fn tuple(ending: &Ending) -> String {
    let ending = Ending { facts: ending.facts.min(1), ..ending.clone() };
    serde_json::to_string(&ending).unwrap_or_default()
}
