//! Citations inferred by literal containment: a fact is cited when a literal of the answer stands in it.
//!
//! A literal is what can hardly be there by chance: a word with a digit in it (an amount, a date, an id, an
//! address), or what the answer puts in quotes. Words of a language are none. This measures how much of an answer
//! can be found in what was observed. It does not say that the answer follows from it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;

use crate::vocabulary::fact::Fact;
use crate::vocabulary::ids::FactId;

/// Literals of one answer that are looked for: the first ones.
const LITERALS_MAX: usize = 64;
/// Bytes of a literal, at least.
const BYTES_MIN: usize = 2;
/// Bytes of a quote, at least and at most.
const QUOTE_BYTES: std::ops::RangeInclusive<usize> = 3..=120;

/// How much of an answer stands in what was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Grounding {
    /// Different literals in the answer, at most 64.
    pub literals: usize,
    /// Those that stand in some fact.
    pub found: usize,
    /// Facts that hold one of them.
    pub cited: usize,
}

/// What was inferred.
#[derive(Debug)]
pub(super) struct Inferred {
    pub(super) grounding: Grounding,
    pub(super) cited: BTreeSet<FactId>,
}

impl Grounding {
    /// Infers what an answer cites.
    pub(super) fn infer(answer: &str, facts: &[Arc<Fact>]) -> Inferred {
        let literals = literals(answer);
        let (mut cited, mut found) = (BTreeSet::new(), 0);
        for literal in &literals {
            let finder = memchr::memmem::Finder::new(literal.as_bytes());
            let holding = facts.iter().filter(|fact| finder.find(fact.statement.as_bytes()).is_some());
            let holding: Vec<FactId> = holding.map(|fact| fact.id).collect();
            found += usize::from(!holding.is_empty());
            cited.extend(holding);
        }
        Inferred { grounding: Self { literals: literals.len(), found, cited: cited.len() }, cited }
    }
}

/// The literals of an answer, in order, each once.
fn literals(answer: &str) -> Vec<&str> {
    let words = answer.split(|letter: char| !is_part(letter)).map(trimmed);
    let numbers = words.filter(|word| word.len() >= BYTES_MIN && word.bytes().any(|byte| byte.is_ascii_digit()));
    let mut seen = BTreeSet::new();
    quotes(answer).chain(numbers).filter(|literal| seen.insert(*literal)).take(LITERALS_MAX).collect()
}

/// What may stand inside a word: letters, digits, and what joins them in amounts, dates, ids and addresses.
fn is_part(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '.' | ',' | ':' | '/' | '_' | '-' | '@' | '#' | '%')
}

/// A word without the punctuation around it.
fn trimmed(word: &str) -> &str {
    word.trim_matches(|letter: char| !letter.is_alphanumeric())
}

/// What stands in quotes of one kind, on one line.
fn quotes(answer: &str) -> impl Iterator<Item = &str> {
    const PAIRS: [(char, char); 4] = [('"', '"'), ('`', '`'), ('\u{201C}', '\u{201D}'), ('\u{AB}', '\u{BB}')];
    answer.lines().flat_map(|line| {
        PAIRS.into_iter().flat_map(move |(open, close)| {
            let parts = line.split([open, close]);
            parts.skip(1).step_by(2).map(str::trim).filter(|quote| QUOTE_BYTES.contains(&quote.len()))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_words_with_digits_and_quotes_and_each_is_counted_once() {
        let answer = "Flight HAT042 on 2024-05-17 costs $1,234.50 (again HAT042), seat \"12A window\". It is fine.";
        assert_eq!(literals(answer), ["12A window", "HAT042", "2024-05-17", "1,234.50", "12A"]);
        assert_eq!(literals("It is in Paris, and 7 is one digit."), [""; 0]);
        assert_eq!(literals(""), [""; 0]);
    }

    #[test]
    fn a_fact_is_cited_when_a_literal_stands_in_it() {
        let fact = |number: u32, statement: &str| {
            Arc::new(Fact {
                id: FactId(number),
                call: "t1.0".parse().unwrap(),
                tool: "look".into(),
                statement: statement.to_owned(),
                origin: None,
                key: None,
            })
        };
        let facts = [fact(1, r#"{"flight":"HAT042"}"#), fact(2, "nothing of it"), fact(3, "HAT042 at 17:30")];
        let found = Grounding::infer("HAT042 leaves at 17:30 from gate B52.", &facts);
        assert_eq!(found.grounding, Grounding { literals: 3, found: 2, cited: 2 });
        assert_eq!(found.cited, BTreeSet::from([FactId(1), FactId(3)]));
    }
}
