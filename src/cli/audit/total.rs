//! What all audited runs come to.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::adapters::audit::Audited;
use crate::adapters::transcripts::Format;

/// Counts of runs. Nothing else of a run is kept.
#[derive(Debug, Default)]
pub(crate) struct Total {
    pub(crate) files: u64,
    pub(crate) unreadable: u64,
    pub(crate) runs: u64,
    pub(crate) notes: u64,
    pub(crate) formats: BTreeMap<Format, u64>,
    /// By row; runs that the recording leaves open are not in it.
    pub(crate) rows: BTreeMap<u8, u64>,
    pub(crate) open: u64,
    /// By row, with inferred citations; runs without an answer are not in it.
    pub(crate) grounded: BTreeMap<u8, u64>,
    /// Runs that have a finding, by its type.
    pub(crate) findings: BTreeMap<&'static str, u64>,
    pub(crate) odd: u64,
}

impl Total {
    pub(crate) fn take(&mut self, format: Format, audited: &Audited) {
        self.runs += 1;
        *self.formats.entry(format).or_default() += 1;
        match &audited.ending {
            Some(ending) => *self.rows.entry(ending.row).or_default() += 1,
            None => self.open += 1,
        }
        if let Some(row) = audited.grounded.as_ref().and_then(|grounded| grounded.row) {
            *self.grounded.entry(row).or_default() += 1;
        }
        let mut types: Vec<_> = audited.findings.iter().map(|finding| finding.tag()).collect();
        types.sort_unstable();
        types.dedup();
        self.odd += u64::from(!types.is_empty());
        for kind in types {
            *self.findings.entry(kind).or_default() += 1;
        }
    }
}

/// The same, as the last line of `--json`.
#[derive(Serialize)]
pub(crate) struct TotalLine<'a> {
    is: &'static str,
    files: u64,
    unreadable: u64,
    runs: u64,
    open: u64,
    notes: u64,
    formats: &'a BTreeMap<Format, u64>,
    rows: &'a BTreeMap<u8, u64>,
    grounded: &'a BTreeMap<u8, u64>,
    with_findings: u64,
    findings: &'a BTreeMap<&'static str, u64>,
}

impl<'a> TotalLine<'a> {
    pub(crate) const fn new(total: &'a Total) -> Self {
        let Total { files, unreadable, runs, open, notes, formats, rows, grounded, odd, findings } = total;
        Self {
            is: "total",
            files: *files,
            unreadable: *unreadable,
            runs: *runs,
            open: *open,
            notes: *notes,
            formats,
            rows,
            grounded,
            with_findings: *odd,
            findings,
        }
    }
}
