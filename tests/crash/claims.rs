//! What must hold of a case when all its runs have ended, whatever died on the way.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use portcullis::adapters::stores::sqlite::SqliteStore;
use portcullis::engine::table::is_legal;
use portcullis::history::{Policy, Summary, replay};
use portcullis::runtime::store::{Owner, Standing, Store};
use portcullis::vocabulary::tool::Recovery;
use serde_json::Value;

use crate::book::Pages;
use crate::case::Case;
use crate::wire::{Entry, Plan, Said};
use crate::world::{script, tool};

/// The row of a run whose crash budget is used up.
const CRASHED: u8 = 19;

/// A history, read.
pub(crate) struct History {
    pub(crate) bytes: Vec<u8>,
    pub(crate) records: Vec<Value>,
    pub(crate) summary: Summary,
}

impl History {
    /// Out of the store, replayed.
    pub(crate) fn read(case: &Case, run: &str) -> Self {
        let store = SqliteStore::open_read_only(case.store()).unwrap();
        let mut bytes = Vec::new();
        wait(store.read(&run.parse().unwrap())).unwrap().read_to_end(&mut bytes).unwrap();
        let summary = replay(bytes.as_slice(), Policy::ReportAll).unwrap();
        assert!(summary.divergences.is_empty() && summary.tail.is_none(), "{run} replays: {summary:?}");
        let text = std::str::from_utf8(&bytes).unwrap();
        let records = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Self { bytes, records, summary }
    }

    /// The inputs of that type, oldest first.
    pub(crate) fn inputs<'a>(&'a self, tag: &'a str) -> impl Iterator<Item = &'a Value> {
        self.records.iter().map(|record| &record["input"]).filter(move |input| input["type"] == tag)
    }

    /// Whether some record asks for that effect.
    fn asks(&self, effect: impl Fn(&Value) -> bool) -> bool {
        let effects = |record: &Value| record["effects"].as_array().cloned().unwrap_or_default();
        self.records.iter().flat_map(effects).any(|asked| effect(&asked))
    }

    /// Whether a person said that this call was not applied.
    fn was_not_applied(&self, call: &str) -> bool {
        self.inputs("tool_reconciled").any(|said| said["call"] == call && said["outcome"]["type"] == "not_applied")
    }

    /// Whether this attempt was proved never to have begun.
    fn never_began(&self, call: &str, attempt: u32) -> bool {
        self.inputs("tool_failed").any(|failed| {
            failed["call"] == call
                && failed["attempt"] == attempt
                && failed["error"]["type"] == "unavailable_before_dispatch"
        })
    }
}

/// Waits for what a store answers, outside any runtime.
pub(crate) fn wait<T>(answer: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(answer)
}

/// All of it. Gives the rows in which the runs ended.
pub(crate) fn hold(case: &Case) -> BTreeMap<String, u8> {
    let pages = case.book.read();
    case.runs.iter().map(|plan| (plan.run.clone(), of_run(case, &pages, plan))).collect()
}

fn of_run(case: &Case, pages: &Pages, Plan { run, script: name }: &Plan) -> u8 {
    let history = History::read(case, run);
    let row = ended(case, &history, run, name);
    acknowledged_is_there(&history, pages, run);
    effects(&history, pages, run);
    offers(&history, pages, run);
    row
}

/// It ended in a row of the table that its script may come to, its receipt is stored, and nobody drives it.
fn ended(case: &Case, history: &History, run: &str, name: &str) -> u8 {
    let ending = history.summary.ending.clone().unwrap_or_else(|| panic!("{run} is open"));
    assert!(is_legal(&ending), "{run}: {ending:?}");
    let rows = script(name).rows;
    assert!(rows.contains(&ending.row) || ending.row == CRASHED, "{run}: {ending:?}");
    if ending.row == CRASHED && !rows.contains(&CRASHED) {
        let longest = history.records.iter().fold((0, 0), |(now, longest): (u32, u32), record| {
            match record["input"]["type"].as_str() {
                Some("run_recovered") => (now + 1, longest.max(now + 1)),
                _ => (0, longest),
            }
        });
        assert!(longest.1 >= 6, "{run} has ended in row 19 after {} recoveries in a row", longest.1);
    }
    assert!(history.summary.delivered, "{run} has no receipt");
    let store = SqliteStore::open_read_only(case.store()).unwrap();
    let listed = wait(store.find(&run.parse().unwrap())).unwrap().unwrap();
    assert_eq!(listed.head, history.summary.head, "{run}");
    assert!(!matches!(listed.owner, Owner::Living { .. }), "{run} is driven still");
    assert!(matches!(listed.standing, Standing::Ended { delivered: true, .. }), "{run}");
    ending.row
}

/// Every record that was acknowledged is in the history, byte for byte.
fn acknowledged_is_there(history: &History, pages: &Pages, run: &str) {
    let mut starts = vec![0];
    starts.extend(history.bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(end, _)| end + 1));
    let mut seen = 0;
    for (process, said) in &pages.said {
        if let Said::Durable { run: of, seq, lines } = said
            && of == run
        {
            let start = starts.get(usize::try_from(*seq).unwrap()).copied();
            let there = start.is_some_and(|start| history.bytes[start..].starts_with(lines.as_bytes()));
            assert!(there, "{run}: what process {process} was told is durable at {seq} is not there");
            seen += lines.lines().count();
        }
    }
    assert!(seen > 0, "{run}: nobody was told that anything is durable");
}

/// The ledger: every effect was asked for by a record, under one operation id a call; and what must not happen
/// twice has not.
fn effects(history: &History, pages: &Pages, run: &str) {
    let entries: Vec<&Entry> = pages.ledger.iter().map(|(_, entry)| entry).filter(|entry| entry.run == run).collect();
    let (mut operations, mut attempts) = (BTreeMap::new(), BTreeSet::new());
    for entry in &entries {
        let asked = history.asks(|effect| {
            effect["type"] == "invoke_tool"
                && effect["call"] == *entry.call
                && effect["attempt"] == entry.attempt
                && effect["operation_id"] == *entry.operation
        });
        assert!(asked, "{run}: no record asks for {entry:?}");
        let operation = operations.entry(&entry.call).or_insert(&entry.operation);
        assert_eq!(*operation, &entry.operation, "{run}: {} has two operation ids", entry.call);
        assert!(attempts.insert((&entry.call, entry.attempt)), "{run}: an attempt was entered twice: {entry:?}");
    }
    let mut last: BTreeMap<(&str, &str), &Entry> = BTreeMap::new();
    for entry in entries.into_iter().filter(|entry| tool(&entry.tool).recovery_mode() == Recovery::NeverReplay) {
        if let Some(before) = last.insert((&entry.tool, &entry.arguments), entry) {
            let proved = history.was_not_applied(&before.call) || history.never_began(&before.call, before.attempt);
            assert!(
                proved,
                "{run}: done twice, and nobody said that the first had not happened: {before:?}, {entry:?}"
            );
        }
    }
}

/// The release was shown, always with the same bytes and key, and never after its receipt was stored.
fn offers(history: &History, pages: &Pages, run: &str) {
    let offered = |said: &Said| match said {
        Said::Offer { run: of, key, release } if of == run => Some((key.clone(), release.clone())),
        _ => None,
    };
    let offers: Vec<_> = pages.said.iter().filter_map(|(_, said)| offered(said)).collect();
    let different: BTreeSet<_> = offers.iter().collect();
    assert_eq!(different.len(), 1, "{run}: releases: {different:?}");
    let published = history.asks(|effect| effect["type"] == "publish" && effect["key"] == *offers[0].0);
    assert!(published, "{run}: no record publishes {}", offers[0].0);
    let receipts = |said: &Said| match said {
        Said::Durable { run: of, lines, .. } => of == run && lines.contains("\"type\":\"release_delivered\""),
        _ => false,
    };
    if let Some(stored) = pages.said.iter().position(|(_, said)| receipts(said)) {
        let late = pages.said[stored..].iter().filter_map(|(_, said)| offered(said)).count();
        assert_eq!(late, 0, "{run}: offered after its receipt was stored");
    }
}
