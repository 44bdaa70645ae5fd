//! A mutator that knows JSON lines: it moves whole values, members and lines about, so that what it makes is often
//! still a text that the readers let in.
//!
//! | change | example |
//! |---|---|
//! | another value in a value's place | `"at_ms":3` becomes `"at_ms":"t1.0"` |
//! | a value beside a value | a member twice, a report twice |
//! | a value less | a member or a line is missing |
//! | a constant in a value's place | `null`, `-0`, 2^64, a lone surrogate |
//! | a number a little off | `"seq":4` becomes `"seq":5` |
//! | lines cut, swapped, repeated | a gap, a fork, a tail |

use std::ops::Range;

/// What stands at the borders of what is allowed.
const CONSTANTS: [&[u8]; 20] = [
    b"null",
    b"true",
    b"0",
    b"-0",
    b"1",
    b"-1",
    b"4294967295",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"18446744073709551615",
    b"18446744073709551616",
    b"1.5",
    b"1e400",
    b"1e-400",
    b"{}",
    b"[]",
    b"\"\"",
    b"\"\\ud800\"",
    b"\"t1.0\"",
    b"\"m1\"",
];

/// Changes the first `size` of `data` and gives their new number, at most `data.len()`. `None` leaves the bytes as
/// they were, for libFuzzer to change: every other time, and when nothing here was found to move.
#[must_use]
pub fn mutate(data: &mut [u8], size: usize, seed: u32) -> Option<usize> {
    let mut dice = Dice(u64::from(seed) << 1 | 1);
    let before = data.get(..size)?;
    if dice.below(2) == 0 {
        return None;
    }
    let after = if dice.below(4) == 0 { lines(before, &mut dice) } else { values(before, &mut dice) }?;
    let place = data.get_mut(..after.len())?;
    place.copy_from_slice(&after);
    Some(after.len())
}

/// Small, seeded, and the same everywhere.
struct Dice(u64);

impl Dice {
    /// A number below `sides`, which are one or more.
    fn below(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % sides.max(1)
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> Option<T> {
        choices.get(self.below(choices.len())).cloned()
    }
}

fn values(before: &[u8], dice: &mut Dice) -> Option<Vec<u8>> {
    let spans = spans(before);
    let (one, other) = (dice.of(&spans)?, dice.of(&spans)?);
    let copied = &before[other.clone()];
    Some(match dice.below(7) {
        0 | 1 => spliced(before, one, copied),
        2 => spliced(before, one.end..one.end, &[b",", copied].concat()),
        3 => {
            let comma = usize::from(before.get(one.end) == Some(&b','));
            spliced(before, one.start..one.end + comma, b"")
        }
        4 => spliced(before, one, dice.of(&CONSTANTS)?),
        _ => {
            let numbers: Vec<_> = spans.into_iter().filter(|span| before[span.start].is_ascii_digit()).collect();
            let span = dice.of(&numbers)?;
            let number: u64 = std::str::from_utf8(&before[span.clone()]).ok()?.parse().ok()?;
            let near = [number.wrapping_add(1), number.saturating_sub(1), number.wrapping_mul(2), number / 2, u64::MAX];
            spliced(before, span, dice.of(&near)?.to_string().as_bytes())
        }
    })
}

fn lines(before: &[u8], dice: &mut Dice) -> Option<Vec<u8>> {
    let mut lines: Vec<&[u8]> = before.split_inclusive(|byte| *byte == b'\n').collect();
    let (one, other) = (dice.below(lines.len()), dice.below(lines.len()));
    match dice.below(5) {
        0 => drop((!lines.is_empty()).then(|| lines.remove(one))),
        1 => lines.insert(one, lines.get(other)?),
        2 => lines.swap(one, other),
        3 => lines.truncate(one + 1),
        _ => {
            let line = *lines.get(one)?;
            lines.truncate(one);
            lines.push(&line[..dice.below(line.len())]);
        }
    }
    Some(lines.concat())
}

fn spliced(before: &[u8], place: Range<usize>, new: &[u8]) -> Vec<u8> {
    [&before[..place.start], new, &before[place.end..]].concat()
}

/// Where values stand, and members with their keys. Broken text has those that are whole.
fn spans(text: &[u8]) -> Vec<Range<usize>> {
    let (mut spans, mut open, mut at) = (Vec::new(), Vec::new(), 0);
    while let Some(byte) = text.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'{' | b'[' => {
                open.push(start);
                continue;
            }
            b'}' | b']' => match open.pop() {
                Some(start) => spans.push(start..at),
                None => continue,
            },
            b'"' => {
                while let Some(byte) = text.get(at) {
                    at += if *byte == b'\\' { 2 } else { 1 };
                    if *byte == b'"' {
                        break;
                    }
                }
                at = at.min(text.len());
                spans.push(start..at);
            }
            byte if byte.is_ascii_alphanumeric() || *byte == b'-' => {
                let is_scalar = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                at += text[at..].iter().take_while(is_scalar).count();
                spans.push(start..at);
            }
            _ => continue,
        }
        member(text, &mut spans);
    }
    spans
}

/// The value that was just found, together with its key when one stands before it.
fn member(text: &[u8], spans: &mut Vec<Range<usize>>) {
    let Some(value) = spans.last().cloned() else { return };
    let Some(key_end) = value.start.checked_sub(1).filter(|colon| text[*colon] == b':') else { return };
    if let Some(key) = spans.iter().rev().find(|span| span.end == key_end).cloned() {
        spans.push(key.start..value.end);
    }
}
