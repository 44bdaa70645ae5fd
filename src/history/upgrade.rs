//! Upgrades: a history of an older version of records, written anew in the newest (SPEC 13.8). An old history replays
//! for ever as it is, so nobody has to.
//!
//! | from | to | what changes |
//! |---|---|---|
//! | 1 | newest | nothing: there is no other version |

use serde::Deserialize;

use super::fault::{Fault, FaultCode};
use super::reader::{Lines, Next};
use super::record::VERSION;
use super::replay::{Policy, Summary, replay};

/// Writes one history anew, one version later.
type Upgrade = fn(&[u8]) -> Result<Vec<u8>, Fault>;

/// Every version, the oldest first, and how it comes to the next one; `None` for the newest.
const VERSIONS: &[(u32, Option<Upgrade>)] = &[(VERSION, None)];

/// What became of a history.
#[derive(Debug)]
pub enum Upgraded {
    /// It has the newest version already.
    Newest(Box<Summary>),
    /// It was written anew.
    Written {
        /// The version it had.
        from: u32,
        /// Its records in the newest version.
        lines: Vec<u8>,
        /// What a replay of them finds.
        summary: Box<Summary>,
    },
}

/// Upgrades a history, and replays what comes of it.
///
/// # Errors
/// Damage; `unknown_version` for one that this build does not know.
pub fn upgrade(history: &[u8]) -> Result<Upgraded, Fault> {
    upgrade_by(VERSIONS, history)
}

fn upgrade_by(versions: &[(u32, Option<Upgrade>)], history: &[u8]) -> Result<Upgraded, Fault> {
    let from = version(history)?;
    let Some(place) = versions.iter().position(|(version, _)| *version == from) else {
        let known: Vec<String> = versions.iter().map(|(version, _)| version.to_string()).collect();
        let reason = format!("version {from}; this build knows {}", known.join(", "));
        return Err(Fault { code: FaultCode::UnknownVersion, offset: 0, line: 1, reason });
    };
    let mut lines = None;
    for upgrade in versions.iter().skip(place).filter_map(|(_, upgrade)| *upgrade) {
        lines = Some(upgrade(lines.as_deref().unwrap_or(history))?);
    }
    let summary = Box::new(replay(lines.as_deref().unwrap_or(history), Policy::Stop)?);
    Ok(match lines {
        None => Upgraded::Newest(summary),
        Some(lines) => Upgraded::Written { from, lines, summary },
    })
}

/// The version of the first record. The others must have the same, which a replay sees.
fn version(history: &[u8]) -> Result<u32, Fault> {
    #[derive(Deserialize)]
    struct Version {
        v: u32,
    }
    let mut lines = Lines::new(history);
    let Next::Line(line) = lines.next_line()? else {
        return Err(Fault { code: FaultCode::Empty, offset: 0, line: 1, reason: "no whole record".to_owned() });
    };
    if super::redaction::is_marked(line.bytes) {
        let reason = "payloads are missing from it; only `verify` reads it".to_owned();
        return Err(Fault { code: FaultCode::Redacted, offset: 0, line: 1, reason });
    }
    match serde_json::from_slice::<Version>(line.bytes) {
        Ok(Version { v }) => Ok(v),
        Err(error) => Err(Fault { code: FaultCode::MalformedRecord, offset: 0, line: 1, reason: error.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEWEST: &[u8] = include_bytes!("../../tests/golden/v1/row-03-claims-without-looking.jsonl");

    fn from_0(history: &[u8]) -> Result<Vec<u8>, Fault> {
        Ok(String::from_utf8_lossy(history).replace("{\"v\":0,", "{\"v\":1,").into_bytes())
    }

    fn from_minus_1(history: &[u8]) -> Result<Vec<u8>, Fault> {
        Ok(String::from_utf8_lossy(history).replace("{\"v\":7,", "{\"v\":0,").into_bytes())
    }

    /// Two invented versions before the first.
    const INVENTED: &[(u32, Option<Upgrade>)] = &[(7, Some(from_minus_1)), (0, Some(from_0)), (VERSION, None)];

    fn aged(version: &str) -> Vec<u8> {
        String::from_utf8_lossy(NEWEST).replace("{\"v\":1,", &format!("{{\"v\":{version},")).into_bytes()
    }

    #[test]
    fn an_older_version_takes_every_step_to_the_newest_and_comes_out_replayed() {
        for old in ["7", "0"] {
            match upgrade_by(INVENTED, &aged(old)).unwrap() {
                Upgraded::Written { from, lines, summary } => {
                    assert_eq!((from.to_string().as_str(), &*lines), (old, NEWEST));
                    assert_eq!(summary.divergences, Vec::new());
                }
                Upgraded::Newest(_) => panic!("{old} passes for the newest"),
            }
        }
        assert!(matches!(upgrade_by(INVENTED, NEWEST), Ok(Upgraded::Newest(_))));
    }

    #[test]
    fn what_no_step_begins_with_is_an_unknown_version() {
        for history in [aged("0"), aged("2")] {
            assert_eq!(upgrade(&history).unwrap_err().code, FaultCode::UnknownVersion);
        }
        assert!(matches!(upgrade(NEWEST), Ok(Upgraded::Newest(_))));
    }

    #[test]
    fn the_table_of_versions_ends_with_the_newest_and_names_none_twice() {
        let (last, upgrade) = VERSIONS.last().unwrap();
        assert_eq!((*last, upgrade.is_none()), (VERSION, true));
        let steps = VERSIONS.iter().filter(|(_, upgrade)| upgrade.is_some()).count();
        assert_eq!(steps + 1, VERSIONS.len());
    }
}
