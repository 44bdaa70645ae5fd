//! The targets of `fuzz/`, as ordinary tests: over every input that was kept, over every one that once failed, and
//! over our own examples with a few changes each.
//!
//! `WRITE_SEEDS=1 cargo test --test corpora` puts the examples where a fuzzer begins.

#![allow(clippy::expect_used, clippy::panic, clippy::wildcard_enum_match_arm)] // a test, though shared with others
#![allow(unreachable_pub)]

mod seeds;
#[path = "../src/lib.rs"]
mod targets;

use std::fs;
use std::path::{Path, PathBuf};

use targets::{draft_parser, history_reader, mutator, simulate, store_recovery, strict_json, transcripts};

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The files of a folder, by name.
fn files(folder: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(project(folder)) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    paths
}

/// Runs a target over everything there is for it. `changes` is how often each seed is changed.
fn check(target: &str, check: fn(&[u8]), seeds: Vec<(String, Vec<u8>)>, changes: u32) {
    let kept = [format!("fuzz/corpus/{target}"), format!("fuzz/regressions/{target}")];
    for path in kept.iter().flat_map(|folder| files(folder)) {
        println!("{}", path.display());
        check(&fs::read(path).expect("it is there"));
    }
    assert!(!seeds.is_empty());
    for (name, seed) in seeds {
        println!("seed {name}");
        check(&seed);
        for change in 0..changes {
            let mut bytes = seed.clone();
            bytes.resize(seed.len() + 512, 0);
            if let Some(size) = mutator::mutate(&mut bytes, seed.len(), change) {
                check(&bytes[..size]);
            }
        }
        if std::env::var_os("WRITE_SEEDS").is_some() {
            let folder = project("fuzz/target/found").join(target);
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join(name), seed).expect("there is room");
        }
    }
}

#[test]
fn strict_json_holds() {
    check("strict_json", strict_json::check, seeds::payloads(), 40);
}

#[test]
fn draft_parser_holds() {
    check("draft_parser", draft_parser::check, seeds::answers(), 40);
}

#[test]
fn transcripts_hold() {
    check("transcripts", transcripts::check, seeds::conversations(), 40);
}

#[test]
fn history_reader_holds() {
    check("history_reader", history_reader::check, seeds::histories(), 2);
}

#[test]
fn simulate_holds() {
    check("simulate", simulate::check, seeds::inputs(), 4);
}

#[test]
fn store_recovery_holds() {
    check("store_recovery", store_recovery::check, seeds::damages(), 0);
}
