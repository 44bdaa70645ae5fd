//! The audit as one self-contained page.

use std::io::Write;

use super::super::exit::Problem;
use super::super::histories::{HistoryFile, not_stored};
use super::total::Total;
use crate::adapters::audit::Audited;
use crate::adapters::transcripts::Format;
use crate::vocabulary::spec::Settings;

/// The page while it is written, run by run.
pub(crate) struct Page {
    file: HistoryFile,
}

impl Page {
    pub(crate) fn begin(file: HistoryFile, rules: &Settings) -> Result<Self, Problem> {
        let _ = rules;
        Ok(Self { file })
    }

    pub(crate) fn run(&mut self, file: &str, _: Format, audited: &Audited, timeline: &[u8]) -> Result<(), Problem> {
        let _ = (file, audited);
        self.file.write_all(timeline)?;
        Ok(())
    }

    pub(crate) fn unreadable(&mut self, file: &str, reason: &str) -> Result<(), Problem> {
        let _ = (file, reason);
        Ok(())
    }

    pub(crate) fn finish(self, _: &Total) -> Result<(), Problem> {
        let place = self.file.place().to_owned();
        self.file.keep().map_err(|error| not_stored(&place, &error))
    }
}
