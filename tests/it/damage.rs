//! Every changed byte of a history is reported, and every cut is open or corrupt (SPEC 13).

use portcullis::history::{Fault, FaultCode, Line, Policy, Replay, Replayed, Summary, replay};

use crate::support::small_success;

fn replayed(bytes: &[u8]) -> Result<Summary, Fault> {
    replay(bytes, Policy::Stop)
}

fn lines(history: &[u8]) -> Vec<&[u8]> {
    history.split_inclusive(|byte| *byte == b'\n').collect()
}

#[test]
fn an_untouched_history_is_reproduced() {
    let history = small_success();
    let summary = replayed(&history).expect("it is whole");
    assert!(summary.divergences.is_empty() && summary.tail.is_none() && summary.delivered);
    assert_eq!(summary.ending.map(|ending| ending.row), Some(1));
    assert_eq!(summary.bytes, history.len() as u64);
}

#[test]
fn every_changed_byte_is_reported() {
    let history = small_success();
    let mut replay: Replay = Replay::default();
    let mut offset = 0;
    for (number, line) in (1..).zip(lines(&history)) {
        let line = line.strip_suffix(b"\n").expect("a whole line");
        for place in 0..line.len() {
            for change in [line[place] ^ 1, b'"', 0xFF] {
                let mut damaged = line.to_vec();
                damaged[place] = change;
                let seen = replay.clone().take(Line { bytes: &damaged, offset, number });
                let unchanged = change == line[place];
                assert_eq!(
                    matches!(seen, Ok(Replayed::Reproduced(_))),
                    unchanged,
                    "line {number}, byte {place} became {change:#x}"
                );
            }
        }
        assert!(matches!(replay.take(Line { bytes: line, offset, number }), Ok(Replayed::Reproduced(_))));
        offset += line.len() as u64 + 1;
    }
}

#[test]
fn every_changed_line_end_is_reported() {
    let history = small_success();
    for place in (0..history.len()).filter(|place| history[*place] == b'\n') {
        let mut damaged = history.clone();
        damaged[place] = b' ';
        let seen = replayed(&damaged).map_or(true, |summary| summary.tail.is_some());
        assert!(seen, "the line end at {place} is gone and nobody saw it");
    }
}

#[test]
fn every_cut_is_open_or_corrupt_or_pinned_by_the_head() {
    let history = small_success();
    let head = replayed(&history).expect("it is whole").head;
    for cut in 0..history.len() {
        match replayed(&history[..cut]) {
            Err(fault) => assert_eq!(fault.code, FaultCode::Empty, "cut at {cut}: {fault}"),
            Ok(summary) => {
                assert!(summary.divergences.is_empty(), "cut at {cut}");
                let open = summary.ending.is_none() || summary.tail.is_some() || !summary.delivered;
                assert!(open && summary.head != head, "cut at {cut} passes for the whole");
            }
        }
    }
}

#[test]
fn a_torn_tail_is_set_aside_with_its_place_and_digest() {
    let history = small_success();
    let whole: usize = lines(&history).iter().take(4).map(|line| line.len()).sum();
    let summary = replayed(&history[..whole + 50]).expect("whole lines before the tail are kept");
    let tail = summary.tail.expect("there is a tail");
    assert_eq!((tail.ordinal, tail.offset, tail.bytes), (4, whole as u64, 50));
    assert_eq!(summary.records, 4);
}

#[test]
fn a_tail_cut_inside_a_character_is_a_tail_all_the_same() {
    let mut history = small_success();
    history.extend_from_slice("{\"v\":1,\"run\":\"ü".as_bytes());
    history.pop();
    assert!(replayed(&history).expect("the whole lines stand").tail.is_some());
}

#[test]
fn a_repaired_tail_is_part_of_the_history() {
    use portcullis::engine::Engine;
    use portcullis::history::Recorder;
    let history = small_success();
    let kept = lines(&history)[..4].concat();
    let torn = [&kept[..], b"{\"v\":1,\"ru"].concat();
    let tail = replayed(&torn).expect("whole lines stand").tail.expect("there is a tail");
    let (mut engine, mut recorder) = (Engine::new(), Recorder::new());
    let mut rebuilt = Vec::new();
    for line in lines(&kept) {
        let record: portcullis::history::Envelope<'_> = serde_json::from_slice(line).expect("a record");
        let step = engine.step(record.at_ms, record.input).expect("it was accepted");
        rebuilt.extend_from_slice(recorder.record(&engine, &step));
    }
    assert_eq!(rebuilt, kept);
    let step = engine.step(4, tail.repair()).expect("the repair is accepted");
    assert!(step.effects.is_empty() && step.signals.is_empty());
    rebuilt.extend_from_slice(recorder.record(&engine, &step));
    let summary = replayed(&rebuilt).expect("it is whole");
    assert!(summary.divergences.is_empty() && summary.tail.is_none() && summary.records == 5);
    let again = engine.step(4, tail.repair()).expect_err("a repair happens once");
    assert_eq!(again.kind, portcullis::vocabulary::refusal::RefusalKind::Duplicate);
}

#[test]
fn nothing_is_an_empty_history() {
    assert_eq!(replayed(b"").expect_err("nothing").code, FaultCode::Empty);
    assert_eq!(replayed(b"{\"v\":1").expect_err("no whole line").code, FaultCode::Empty);
}

#[test]
fn a_missing_line_is_a_gap_at_its_offset() {
    let history = small_success();
    let all = lines(&history);
    let damaged = [all[0], all[2]].concat();
    let fault = replayed(&damaged).expect_err("a line is missing");
    assert_eq!((fault.code, fault.offset, fault.line), (FaultCode::Gap, all[0].len() as u64, 2));
}

#[test]
fn a_repeated_line_is_a_fork() {
    let history = small_success();
    let all = lines(&history);
    assert_eq!(replayed(&[all[0], all[1], all[1]].concat()).expect_err("twice").code, FaultCode::Fork);
}

#[test]
fn a_line_of_another_run_is_named_so() {
    let history = small_success();
    let other = String::from_utf8(history.clone()).expect("text").replace("\"small\"", "\"other\"");
    let (mine, theirs) = (lines(&history), lines(other.as_bytes()));
    let resealed = reseal(theirs[1]);
    assert_eq!(replayed(&[mine[0], &resealed[..]].concat()).expect_err("another run").code, FaultCode::WrongRun);
}

#[test]
fn an_unknown_version_is_named_so() {
    let history = String::from_utf8(small_success()).expect("text").replace("{\"v\":1,", "{\"v\":2,");
    assert_eq!(replayed(history.as_bytes()).expect_err("version 2").code, FaultCode::UnknownVersion);
}

#[test]
fn nul_bytes_in_the_middle_are_fatal_at_their_offset() {
    let history = small_success();
    let all = lines(&history);
    let damaged = [all[0], &[0; 100], b"\n", all[1]].concat();
    let fault = replayed(&damaged).expect_err("NUL bytes");
    assert_eq!((fault.code, fault.offset), (FaultCode::MalformedRecord, all[0].len() as u64));
}

/// Whoever can hash can write any line that continues the chain: then stepping again tells.
#[test]
fn a_rehashed_edit_diverges_in_its_field() {
    let history = String::from_utf8(small_success()).expect("text");
    let edited = history.replacen("\"tool_calls\":1,", "\"tool_calls\":7,", 1);
    let all = lines(edited.as_bytes());
    let place = all.iter().zip(lines(history.as_bytes())).position(|(new, old)| *new != old).expect("one line changed");
    let damaged = [all[..place].concat(), reseal(all[place])].concat();
    let summary = replayed(&damaged).expect("the chain holds");
    let found = &summary.divergences[0];
    assert_eq!((found.seq, found.field.as_str()), (place as u64, "state.ledger.tool_calls"));
    assert_eq!((found.expected.as_str(), found.got.as_str()), ("7", "1"));
}

#[test]
fn all_divergences_are_reported_when_asked() {
    let history = String::from_utf8(small_success()).expect("text");
    let edited = history.replace("\"tool_calls\":1,", "\"tool_calls\":7,");
    let mut chain = portcullis::vocabulary::digest::Digest::ZERO.to_string();
    let mut damaged = Vec::new();
    for line in lines(edited.as_bytes()) {
        let line = String::from_utf8(line.to_vec()).expect("text");
        let at = line.find("\"prev\":\"").expect("a link") + 8;
        let relinked = format!("{}{chain}{}", &line[..at], &line[at + 64..]);
        let sealed = reseal(relinked.as_bytes());
        chain = String::from_utf8(sealed[sealed.len() - 67..sealed.len() - 3].to_vec()).expect("text");
        damaged.extend_from_slice(&sealed);
    }
    let all = replay(&damaged[..], Policy::ReportAll).expect("the chain holds");
    assert_eq!(all.divergences.len(), 6);
    assert_eq!(replay(&damaged[..], Policy::Stop).expect("the chain holds").divergences.len(), 1);
}

/// The line with a hash that covers its bytes.
fn reseal(line: &[u8]) -> Vec<u8> {
    let covered = &line[..line.len() - 76];
    let hash = portcullis::vocabulary::digest::Digest::of("portcullis.record.1", &[covered]);
    [covered, b",\"hash\":\"", hash.to_string().as_bytes(), b"\"}\n"].concat()
}
