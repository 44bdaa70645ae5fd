//! Reading, replaying, auditing and redacting whatever calls itself a history (SPEC 13).

use portcullis::engine::Engine;
use portcullis::history::redaction::{self, Redactor};
use portcullis::history::replay;
use portcullis::history::{Chain, Envelope, Fault, FaultCode, Lines, Next, Policy, Recorder, Summary, Tail};
use portcullis::testkit::audit::{Audit, audit};
use portcullis::vocabulary::digest::Digest;

/// What must hold:
///
/// - Any bytes are replayed, followed, audited and redacted without a panic, and every fault names a line of them
///   and where it begins.
/// - Replay and the chain alone find the same damage.
/// - What replays comes out of a fresh engine with the same bytes, keeps every rule of the audit, and does so at
///   every prefix.
/// - A cut last line is repaired by one record, after which the history replays.
/// - A redacted export verifies as what it was made of, and never passes for a history.
///
/// The bytes are looked at twice: as they are, and with every line sealed anew, as somebody would who can rehash.
pub fn check(bytes: &[u8]) {
    let sealed = sealed(bytes);
    check_history(&sealed);
    if sealed != bytes {
        check_history(bytes);
    }
    if let Err(fault) = redaction::verify(bytes) {
        check_place(bytes, &fault);
    }
}

fn check_history(bytes: &[u8]) {
    // An audit believes what is written: it may find anything here, but it must come back.
    if let Ok(text) = std::str::from_utf8(bytes) {
        drop(audit(text.split_terminator('\n')));
    }
    let chain = followed(bytes);
    let replayed = replay(bytes, Policy::ReportAll);
    match (replayed, chain) {
        (Ok(summary), Ok((chain, tail))) => {
            assert_eq!((summary.records, summary.head), (chain.records(), chain.head()));
            assert_eq!((Some(&summary.run), &summary.tail), (chain.run(), &tail));
            check_redaction(bytes, &summary);
            if summary.divergences.is_empty() {
                check_reproduced(bytes, &summary);
            }
        }
        (Err(fault), Ok((chain, _))) => {
            assert_eq!((fault.code, chain.records()), (FaultCode::Empty, 0), "replay alone finds {fault}");
        }
        (Err(fault), Err(found)) => {
            assert_eq!(fault, found);
            check_place(bytes, &fault);
        }
        (Ok(_), Err(fault)) => panic!("the chain alone finds {fault}"),
    }
}

/// A fault names a line and the byte where it begins.
fn check_place(bytes: &[u8], fault: &Fault) {
    let begins =
        |line: u64| bytes.split_inclusive(|byte| *byte == b'\n').take(line as usize - 1).map(<[u8]>::len).sum();
    assert!(fault.line > 0 && !fault.reason.is_empty(), "{fault}");
    let begin: usize = begins(fault.line);
    assert_eq!(fault.offset, begin as u64, "{fault}");
}

/// Follows the chain without stepping.
fn followed(bytes: &[u8]) -> Result<(Chain, Option<Tail>), Fault> {
    let (mut lines, mut chain) = (Lines::new(bytes), Chain::new());
    loop {
        match lines.next_line()? {
            Next::End => return Ok((chain, None)),
            Next::Tail(tail) => return Ok((chain, Some(tail))),
            Next::Line(line) => drop(chain.take(line)?),
        }
    }
}

/// A fresh engine takes the inputs and gives the same bytes, and every prefix of them is a state as good.
fn check_reproduced(bytes: &[u8], summary: &Summary) {
    let (mut engine, mut recorder, mut audit) = (Engine::new(), Recorder::new(), Audit::default());
    let mut written = Vec::new();
    let mut lines = Lines::new(bytes);
    while let Next::Line(line) = lines.next_line().expect("it was read before") {
        let envelope: Envelope<'_> = serde_json::from_slice(line.bytes).expect("a record");
        let step = engine.step(envelope.at_ms, envelope.input).expect("it was accepted before");
        assert_eq!(engine.decider().violations(), Vec::new());
        let record = recorder.record(&engine, &step);
        audit.take(std::str::from_utf8(record).expect("JSON")).expect("a replayed record keeps the rules");
        written.extend_from_slice(record);
    }
    let end = summary.bytes as usize;
    assert!(written == bytes[..end], "other bytes came out");
    assert_eq!(summary.ending.as_ref(), engine.ending());
    if let Some(tail) = &summary.tail {
        assert_eq!((tail.offset, tail.offset + tail.bytes), (summary.bytes, bytes.len() as u64));
        let at_ms = engine.decider().clock().map_or(0, |clock| clock.at_ms());
        let step = engine.step(at_ms, tail.repair()).expect("a cut line is repaired");
        written.extend_from_slice(recorder.record(&engine, &step));
        let repaired = replay(&*written, Policy::Stop).expect("the repaired history is whole");
        assert_eq!((repaired.records, repaired.divergences, repaired.tail), (summary.records + 1, Vec::new(), None));
    } else if let Some(last) = written[..end.saturating_sub(1)].iter().rposition(|byte| *byte == b'\n') {
        let shorter = replay(&written[..=last], Policy::Stop).expect("a prefix is whole");
        assert_eq!((shorter.records, shorter.divergences), (summary.records - 1, Vec::new()));
    }
}

fn check_redaction(bytes: &[u8], summary: &Summary) {
    let (mut lines, mut redactor, mut export) = (Lines::new(bytes), Redactor::new(), Vec::new());
    while let Next::Line(line) = lines.next_line().expect("it was read before") {
        match redactor.redact(line) {
            Ok(redacted) => export.extend_from_slice(redacted),
            // Only a chain whose first record starts no run is whole and yet not redacted.
            Err(fault) => return assert_eq!((fault.code, fault.line), (FaultCode::MalformedRecord, 1), "{fault}"),
        }
    }
    export.extend_from_slice(redactor.close());
    let origin = redaction::verify(&*export).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!((&origin.run, origin.records, origin.head), (&summary.run, summary.records, summary.head));
    let passed = replay(&*export, Policy::Stop).expect_err("it is no history");
    assert_eq!(passed.code, FaultCode::Redacted);
}

/// The same lines, each sealed so that the chain holds: whatever stands in them, they are in order.
fn sealed(bytes: &[u8]) -> Vec<u8> {
    let (mut out, mut prev) = (Vec::with_capacity(bytes.len() + 256), Digest::ZERO);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let seam = line.windows(SEAM.len()).rposition(|window| window == SEAM);
        let (Some(end), true) = (seam, line.ends_with(b"\n")) else {
            out.extend_from_slice(line);
            continue;
        };
        let begin = out.len();
        out.extend_from_slice(&line[..end]);
        out.extend_from_slice(format!("{}{prev}\"", std::str::from_utf8(SEAM).expect("ASCII")).as_bytes());
        prev = Digest::of("portcullis.record.1", &[&out[begin..]]);
        out.extend_from_slice(format!(",\"hash\":\"{prev}\"}}\n").as_bytes());
    }
    out
}

/// What stands before the hash of the record before.
const SEAM: &[u8] = br#","prev":""#;
