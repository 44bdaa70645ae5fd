//! Standard output that may go away: the reader of a pipe leaves, and the work goes on without it.

use std::io::{self, Write};

/// A writer that keeps its first error for the end, so that a run whose timeline nobody reads any more still
/// gets its history.
#[derive(Debug)]
pub(crate) struct Output<W> {
    out: W,
    broken: Option<io::Error>,
}

impl Output<io::StdoutLock<'static>> {
    /// Standard output.
    pub(crate) fn stdout() -> Self {
        Self::new(io::stdout().lock())
    }
}

impl<W: Write> Output<W> {
    pub(crate) const fn new(out: W) -> Self {
        Self { out, broken: None }
    }

    /// Writes one value as a line of JSON.
    pub(crate) fn json(&mut self, value: &impl serde::Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        self.write_all(&line)
    }

    /// Hands out what is left. A reader that has seen enough is no error: it must not turn the exit code of a
    /// failed run or a corrupt history into another one.
    ///
    /// # Errors
    /// The first other error of any write.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        match self.broken {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            Some(_) | None => Ok(()),
        }
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
