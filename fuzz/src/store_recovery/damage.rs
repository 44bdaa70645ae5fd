//! Damage, eight bytes at a time: `[what, where, where, where, a, b, c, d]`.

use std::fs;
use std::path::Path;

use rusqlite::Connection;

use super::pristine::log;

/// Pieces that are zeroed, moved and swapped: SQLite's smallest page.
const PIECE: usize = 512;

/// Damages the store at `path`. SQL comes first, since it needs a file that can be opened.
pub(super) fn inflict(path: &Path, damage: &[u8]) {
    let (blows, _) = damage.as_chunks::<8>();
    let (by_sql, by_byte): (Vec<&[u8; 8]>, Vec<_>) = blows.iter().partition(|blow| blow[0] % 16 >= 10);
    if !by_sql.is_empty() {
        through_sql(path, &by_sql);
    }
    if !by_byte.is_empty() {
        let mut files = [path.to_owned(), log(path)].map(|path| (fs::read(&path).unwrap_or_default(), path));
        for blow in by_byte {
            let file = usize::from(blow[0] >> 7);
            strike(&mut files[file].0, blow);
        }
        for (bytes, path) in files {
            if path.exists() {
                fs::write(path, bytes).expect("there is room");
            }
        }
    }
}

/// One blow by the byte or the piece.
fn strike(bytes: &mut Vec<u8>, [what, high, middle, low, a, b, c, d]: &[u8; 8]) {
    if bytes.is_empty() {
        return;
    }
    let length = bytes.len();
    let at = u32::from_be_bytes([0, *high, *middle, *low]) as usize % length;
    let pieces = length.div_ceil(PIECE);
    let piece = |number: usize| number % pieces * PIECE..((number % pieces + 1) * PIECE).min(length);
    match what % 16 {
        0 => bytes[at] = *a,
        1 => bytes[at] ^= 1 << (a % 8),
        2 => bytes.truncate(at),
        3 => bytes[piece(at)].fill(*a),
        4 => bytes[at..(at + 4).min(length)].copy_from_slice(&[*a, *b, *c, *d][..4.min(length - at)]),
        5 => {
            let (from, to) = (piece(usize::from(*a) << 8 | usize::from(*b)), piece(at));
            let count = from.len().min(to.len());
            bytes.copy_within(from.start..from.start + count, to.start);
        }
        6 => bytes.extend(std::iter::repeat_n(*a, usize::from(*b) * 16)),
        7 => drop(bytes.drain(at..(at + usize::from(*a)).min(length))),
        8 => drop(bytes.splice(at..at, [*a, *b, *c, *d])),
        _ => {
            let page = usize::from(*a) * 8192 % length;
            let place = page + usize::from(*b) % 128;
            bytes[place.min(length - 1)] = *c;
        }
    }
}

/// Columns and the tables they stand in.
const COLUMNS: [(&str, &str); 21] = [
    ("records", "position"),
    ("records", "run"),
    ("records", "seq"),
    ("records", "before"),
    ("records", "line"),
    ("heads", "run"),
    ("heads", "records"),
    ("heads", "last"),
    ("heads", "head"),
    ("runs", "number"),
    ("runs", "id"),
    ("runs", "started_ms"),
    ("runs", "epoch"),
    ("runs", "owner"),
    ("runs", "standing"),
    ("runs", "due_ms"),
    ("runs", "row"),
    ("runs", "outcome"),
    ("origins", "origin"),
    ("origins", "run"),
    ("requests", "request"),
];

/// What may be put in their place; `?1` is a small number.
const VALUES: [&str; 16] = [
    "?1",
    "-?1",
    "{column} + ?1",
    "{column} - ?1",
    "9223372036854775807 - ?1",
    "-9223372036854775808 + ?1",
    "NULL",
    "''",
    "x'00'",
    "zeroblob(?1)",
    "'ended'",
    "(SELECT {column} FROM {table} ORDER BY rowid LIMIT 1 OFFSET ?1)",
    "substr({column}, 1, length({column}) - ?1)",
    "CAST(substr({column}, 1, length({column}) - ?1) AS BLOB)",
    "{column} || x'0A'",
    "CAST({column} AS TEXT)",
];

/// Changes rows as somebody could who has the file: what the schema refuses does not happen.
fn through_sql(path: &Path, blows: &[&[u8; 8]]) {
    let Ok(connection) = Connection::open(path) else { return };
    for [what, _, column, value, row, number, ..] in blows {
        let (table, column) = COLUMNS[usize::from(*column) % COLUMNS.len()];
        let row = format!("rowid = (SELECT rowid FROM {table} ORDER BY rowid LIMIT 1 OFFSET {})", row % 16);
        let value = VALUES[usize::from(*value) % VALUES.len()].replace("{column}", column).replace("{table}", table);
        let statement = match what % 16 {
            15 => format!("DELETE FROM {table} WHERE {row}"),
            _ => format!("UPDATE OR IGNORE {table} SET {column} = {value} WHERE {row}"),
        };
        let parameters = usize::from(statement.contains("?1"));
        let _ = connection.execute(&statement, rusqlite::params_from_iter(std::iter::repeat_n(number, parameters)));
    }
}
