//! Standard output that may go away: the reader of a pipe leaves, and the work goes on without it.

use std::io::{self, Write};

/// A writer that keeps its first error for the end, so that a run whose timeline nobody reads any more still
/// gets its history.
#[derive(Debug)]
pub(crate) struct Output<W> {
    out: W,
    broken: Option<io::Error>,
}

impl<W: Write> Output<W> {
    pub(crate) const fn new(out: W) -> Self {
        Self { out, broken: None }
    }

    /// Hands out what is left.
    ///
    /// # Errors
    /// The first error of any write.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        self.broken.map_or(Ok(()), Err)
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.broken.is_none() {
            self.broken = self.out.write_all(bytes).err();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.broken.is_none() {
            self.broken = self.out.flush().err();
        }
        Ok(())
    }
}
