//! How values stand in the cells of the tables.

use rusqlite::Row;

use super::fault::Trouble;
use crate::runtime::store::Standing;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::outcome::ReleaseOutcome;

/// A count or a time. Times behind 2^63 ms, which is in 292 million years, are kept as that.
pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A count or a time as it is read back.
pub(super) fn unsigned(row: &Row<'_>, column: &str) -> Result<u64, Trouble> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|_| Trouble::Damaged(format!("{column} is {value}")))
}

/// A hash as it is read back.
pub(super) fn digest(row: &Row<'_>, column: &str) -> Result<Digest, Trouble> {
    let bytes: Vec<u8> = row.get(column)?;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Digest::from_hex(&hex).ok_or_else(|| Trouble::Damaged(format!("{column} is no hash")))
}

/// A standing in its four cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct StandingCells {
    pub(super) word: &'static str,
    pub(super) due_ms: Option<i64>,
    pub(super) row: Option<u8>,
    pub(super) outcome: Option<&'static str>,
}

impl From<Standing> for StandingCells {
    fn from(standing: Standing) -> Self {
        let plain = |word| Self { word, due_ms: None, row: None, outcome: None };
        match standing {
            Standing::Running => plain("running"),
            Standing::Awaiting { due_ms } => Self { due_ms: due_ms.map(signed), ..plain("awaiting") },
            Standing::Ended { row, outcome, delivered } => Self {
                row: Some(row),
                outcome: Some(outcome.word()),
                ..plain(if delivered { "ended" } else { "undelivered" })
            },
        }
    }
}

/// A standing as it is read back.
pub(super) fn standing(row: &Row<'_>) -> Result<Standing, Trouble> {
    let word: String = row.get("standing")?;
    let ended = |delivered| {
        let written: String = row.get("outcome")?;
        let outcome = ReleaseOutcome::ALL.iter().find(|outcome| outcome.word() == written);
        let outcome = *outcome.ok_or_else(|| Trouble::Damaged(format!("outcome is {written:?}")))?;
        Ok(Standing::Ended { row: row.get("row")?, outcome, delivered })
    };
    match word.as_str() {
        "running" => Ok(Standing::Running),
        "awaiting" => {
            let due_ms: Option<i64> = row.get("due_ms")?;
            let due_ms = due_ms.map(|_| unsigned(row, "due_ms")).transpose()?;
            Ok(Standing::Awaiting { due_ms })
        }
        "undelivered" => ended(false),
        "ended" => ended(true),
        _ => Err(Trouble::Damaged(format!("standing is {word:?}"))),
    }
}
