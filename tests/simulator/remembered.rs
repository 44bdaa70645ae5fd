//! Seeds that failed once, each under a name that says what went wrong. They are always lived through.

use std::path::PathBuf;

/// The version of the world: it changes when the same seed leads to another world, and then what an older seed was
/// remembered for may not happen in it any more.
pub(crate) const VERSION: u32 = 1;

/// A remembered world.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Remembered {
    pub(crate) name: String,
    pub(crate) seed: u64,
    pub(crate) version: u32,
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/simulator/remembered.txt")
}

/// All of them: lines `name = seed/version`; `#` begins a comment.
pub(crate) fn all() -> Vec<Remembered> {
    let text = std::fs::read_to_string(file()).unwrap();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| read(line).unwrap_or_else(|| panic!("remembered.txt: no `name = seed/version`: {line}"))).collect()
}

fn read(line: &str) -> Option<Remembered> {
    let (name, place) = line.split_once(" = ")?;
    let (seed, version) = place.split_once('/')?;
    Some(Remembered { name: name.to_owned(), seed: seed.parse().ok()?, version: version.parse().ok()? })
}

/// Remembers one more, under a name of its own.
pub(crate) fn remember(name: &str, seed: u64) {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    assert!(!name.is_empty() && name.chars().all(plain), "REMEMBER={name}: a name is letters, digits and `_`");
    assert!(all().iter().all(|known| known.name != name), "REMEMBER={name}: another world has that name");
    let mut text = std::fs::read_to_string(file()).unwrap();
    text.push_str(&format!("{name} = {seed}/{VERSION}\n"));
    std::fs::write(file(), text).unwrap();
    println!("simulator: world {seed} is remembered as {name}");
}
