//! Histories that say what never happened, by somebody who can rehash.

use portcullis::vocabulary::digest::Digest;

/// The same records in an unbroken chain: what was changed in them stays changed.
pub(crate) fn rechained(history: &str) -> String {
    let mut prev = Digest::ZERO.to_string();
    let mut chained = String::new();
    for line in history.lines() {
        let (fields, _) = line.rsplit_once(r#","prev":""#).expect("a record has a link");
        let covered = format!(r#"{fields},"prev":"{prev}""#);
        let hash = Digest::of("portcullis.record.1", &[covered.as_bytes()]).to_string();
        chained.push_str(&format!("{covered},\"hash\":\"{hash}\"}}\n"));
        prev = hash;
    }
    chained
}
