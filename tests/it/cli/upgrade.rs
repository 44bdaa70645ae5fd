//! `upgrade`: nothing is to be done for the only version there is.

use std::fs;

use super::{bytes, expect, file, golden, json};
use crate::support::Scratch;

#[test]
fn the_newest_version_is_left_alone_and_nothing_is_written() {
    let folder = Scratch::new("upgrade-newest");
    let path = file(&folder, "h.jsonl", &bytes(&golden("diagnosis")));
    let out = folder.path().join("out.jsonl");
    let said = expect(0, &["upgrade", &path, "--out", out.to_str().unwrap()]).out;
    assert!(said.contains("has version 1, the newest; nothing is to be done"), "{said}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let fields = json(0, &["upgrade", &path]);
    assert_eq!((fields["from"].as_u64(), fields["to"].as_u64(), fields.get("out")), (Some(1), Some(1), None));
}

#[test]
fn an_unknown_version_says_which_are_known_and_damage_is_damage() {
    let folder = Scratch::new("upgrade-unknown");
    let text = String::from_utf8(bytes(&golden("diagnosis"))).unwrap();
    let later = file(&folder, "later.jsonl", text.replace("{\"v\":1,", "{\"v\":2,").as_bytes());
    let said = expect(7, &["upgrade", &later]);
    assert!(said.err.contains("unknown_version") && said.err.contains("this build knows 1"), "{}", said.err);
    let damaged = file(&folder, "damaged.jsonl", text.replace("92 sessions", "93 sessions").as_bytes());
    expect(7, &["upgrade", &damaged]);
    let empty = file(&folder, "empty.jsonl", b"");
    expect(7, &["upgrade", &empty]);
    expect(7, &["upgrade", "no-such-file.jsonl"]);
}
