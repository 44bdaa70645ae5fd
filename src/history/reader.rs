//! Reading a history line by line, strictly and in constant memory.

use std::io::{BufRead, Read};

use super::fault::{Fault, FaultCode};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::input::Input;

/// The longest line that is read: the largest `limits.line_bytes_max`, with room for state and effects.
const LINE_BYTES_MAX: u64 = 1 << 30;

/// The lines of a history.
#[derive(Debug)]
pub struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    offset: u64,
    line: u64,
}

/// One whole line, without its line end.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Where it begins, in bytes.
    pub offset: u64,
    /// Which line, from 1.
    pub number: u64,
}

/// What stands at the end without a line end: a write that was cut. It is set aside in a recorded repair
/// before anything is appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tail {
    /// The number of whole lines before it.
    pub ordinal: u64,
    /// Where it begins, in bytes.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
    /// Its digest.
    pub digest: Digest,
}

impl Tail {
    /// The input that records the repair.
    #[must_use]
    pub const fn repair(&self) -> Input {
        Input::TailRepaired { ordinal: self.ordinal, bytes: self.bytes, digest: self.digest }
    }
}

/// What comes next.
#[derive(Debug)]
pub enum Next<'a> {
    /// A whole line.
    Line(Line<'a>),
    /// A cut line, and then nothing.
    Tail(Tail),
    /// Nothing.
    End,
}

impl<R: BufRead> Lines<R> {
    /// The lines of `source`.
    pub const fn new(source: R) -> Self {
        Self { source, buffer: Vec::new(), offset: 0, line: 0 }
    }

    /// The next line.
    ///
    /// # Errors
    /// `unreadable` when the source fails, `line_too_long` beyond the limit.
    pub fn next_line(&mut self) -> Result<Next<'_>, Fault> {
        self.offset += self.buffer.len() as u64;
        self.line += 1;
        self.buffer.clear();
        let fault = |code, reason: String| Fault { code, offset: self.offset, line: self.line, reason };
        let mut limited = self.source.by_ref().take(LINE_BYTES_MAX);
        limited.read_until(b'\n', &mut self.buffer).map_err(|error| fault(FaultCode::Unreadable, error.to_string()))?;
        match self.buffer.split_last() {
            None => Ok(Next::End),
            Some((b'\n', bytes)) => Ok(Next::Line(Line { bytes, offset: self.offset, number: self.line })),
            Some(_) if self.buffer.len() as u64 >= LINE_BYTES_MAX => {
                Err(fault(FaultCode::LineTooLong, format!("over {LINE_BYTES_MAX} bytes")))
            }
            Some(_) => Ok(Next::Tail(Tail {
                ordinal: self.line - 1,
                offset: self.offset,
                bytes: self.buffer.len() as u64,
                digest: Digest::of("portcullis.tail.1", &[&self.buffer]),
            })),
        }
    }
}
