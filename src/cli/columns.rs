//! Two timelines beside each other, record by record; or one after the other where there is no room.

use std::io::{self, Write};

/// The lines of one record.
pub(crate) type Block = Vec<String>;

/// What stands between two columns: the same, and no longer the same.
const SAME: &str = " | ";
const PARTED: &str = " ! ";
/// Where a line that is broken goes on: under its text, behind the time.
const HANGING: usize = 13;

/// Shows both. From record `from` on they are marked as different. `width` is what two columns have together; without
/// one they stand one after the other, what is the same only once.
pub(crate) fn show(
    a: &[Block],
    b: &[Block],
    from: Option<u64>,
    width: Option<usize>,
    out: &mut impl Write,
) -> io::Result<()> {
    let from = from.and_then(|from| usize::try_from(from).ok()).unwrap_or(usize::MAX);
    match width {
        Some(width) => beside(a, b, from, width.saturating_sub(SAME.len()) / 2, out),
        None => below(a, b, from, out),
    }
}

fn beside(a: &[Block], b: &[Block], from: usize, column: usize, out: &mut impl Write) -> io::Result<()> {
    for at in 0..a.len().max(b.len()) {
        let broken = |side: &[Block]| -> Vec<String> {
            side.get(at).into_iter().flatten().flat_map(|line| fold(line, column)).collect()
        };
        let (left, right) = (broken(a), broken(b));
        let between = if at >= from { PARTED } else { SAME };
        for row in 0..left.len().max(right.len()) {
            let cell = |side: &[String]| side.get(row).cloned().unwrap_or_default();
            let (left, right) = (cell(&left), cell(&right));
            let padding = " ".repeat(column.saturating_sub(left.chars().count()));
            writeln!(out, "{}", format!("{left}{padding}{between}{right}").trim_end())?;
        }
    }
    Ok(())
}

fn below(a: &[Block], b: &[Block], from: usize, out: &mut impl Write) -> io::Result<()> {
    let mut lines = |blocks: &[Block], mark: &str| -> io::Result<()> {
        blocks.iter().flatten().try_for_each(|line| writeln!(out, "{mark} {line}"))
    };
    let (same, left) = a.split_at_checked(from).unwrap_or((a, &[]));
    lines(same, " ")?;
    lines(left, "-")?;
    // Where one of them is only longer, the other has nothing left.
    let right = b.get(from.min(b.len())..).unwrap_or_default();
    lines(right, "+")
}

/// A line in pieces that fit, broken at spaces where there are any.
fn fold(line: &str, width: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest: Vec<char> = line.chars().collect();
    while rest.len() > width.max(HANGING + 1) {
        let room = width.max(HANGING + 1);
        let space = (HANGING + 1..=room).rev().find(|at| rest.get(*at) == Some(&' '));
        let cut = space.unwrap_or(room);
        let tail = rest.split_off(cut);
        pieces.push(rest.into_iter().collect());
        let text = tail.into_iter().skip_while(|letter| *letter == ' ');
        rest = std::iter::repeat_n(' ', HANGING).chain(text).collect();
    }
    pieces.push(rest.into_iter().collect());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(a: &[Block], b: &[Block], from: Option<u64>, width: Option<usize>) -> String {
        let mut out = Vec::new();
        show(a, b, from, width, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_no_word_is_lost() {
        let long =
            "    1.000 s  a line that is far too long for half of a narrow screen, and goes on and on".to_owned();
        let (a, b) = (vec![vec![long.clone()]], vec![vec![long.clone()], vec!["x".repeat(70)]]);
        for width in [100, 101, 120] {
            let text = shown(&a, &b, Some(1), Some(width));
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            let left: String =
                text.lines().map(|line| line.split(['|', '!']).next().unwrap().to_owned() + " ").collect();
            assert_eq!(words(&left), words(&long), "{text}");
            assert_eq!(text.matches('x').count(), 70);
        }
    }

    #[test]
    fn what_comes_after_the_parting_is_marked_and_what_comes_before_stands_once_in_the_narrow_form() {
        let block = |text: &str| vec![text.to_owned()];
        let (a, b) = ([block("one"), block("two")], [block("one"), block("2"), block("3")]);
        assert_eq!(shown(&a, &b, Some(1), None), "  one\n- two\n+ 2\n+ 3\n");
        let beside = shown(&a, &b, Some(1), Some(100));
        let marks: Vec<bool> = beside.lines().map(|line| line.contains(" ! ")).collect();
        assert_eq!(marks, [false, true, true], "{beside}");
        assert_eq!(shown(&a, &a, None, None), "  one\n  two\n");
    }
}
