//! Text of servers, which nobody here vouches for.

use crate::adapters::printable::is_hidden;

/// The most characters that are quoted of a server in an error.
const REMARK_CHARACTERS_MAX: usize = 500;

/// Without characters that hide or reorder others, and no longer than that; line ends and tabs stay.
pub(super) fn plain(text: &str, characters_max: usize) -> String {
    let shown = |letter: &char| matches!(letter, '\n' | '\t') || !is_hidden(*letter);
    let mut shown = text.chars().filter(shown);
    let mut plain: String = shown.by_ref().take(characters_max).collect();
    if shown.next().is_some() {
        plain.push('…');
    }
    plain
}

/// In one line, short enough for an error.
pub(super) fn remark(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    plain(&words.join(" "), REMARK_CHARACTERS_MAX)
}
