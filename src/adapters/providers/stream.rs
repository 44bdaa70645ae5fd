//! The pieces of an answer that comes piece by piece. It is taken whole all the same: nothing of it is shown
//! before it is released.

use std::ops::ControlFlow;

use super::dialect::{Framing, Gathering, Reply};
use super::exchange::{Answer, EVENT_BYTES_MAX, STREAM_BYTES_MAX, broken};
use super::reading::provider;
use crate::vocabulary::llm::{self, Usage};

impl Answer {
    /// Gathers a stream to its end mark. What it says it used is in `used` as soon as it was said.
    pub(super) async fn stream(
        mut self,
        (framing, mut gathering): (Framing, Box<dyn Gathering>),
        used: &mut Option<Usage>,
    ) -> Result<Reply, llm::Error> {
        let mut pieces = Pieces::new(framing);
        let mut bytes = 0;
        while let Some(more) = self.response.chunk().await.map_err(|error| broken(&error))? {
            bytes += more.len();
            if bytes > STREAM_BYTES_MAX {
                return Err(provider(format!("the stream is larger than {STREAM_BYTES_MAX} bytes")));
            }
            let pushed = pieces.push(&more, gathering.as_mut());
            *used = gathering.used();
            if pushed?.is_break() {
                return gathering.end();
            }
        }
        let finished = pieces.finish(gathering.as_mut());
        *used = gathering.used();
        finished?;
        gathering.end()
    }
}

/// Cuts bytes into pieces.
pub(super) struct Pieces {
    framing: Framing,
    /// What may stand before the next line, and is no part of it: before the first event, a byte order mark.
    mark: &'static [u8],
    /// A line that is not whole yet.
    line: Vec<u8>,
    /// The data of an event that is not whole yet.
    data: Vec<u8>,
}

impl Pieces {
    pub(super) const fn new(framing: Framing) -> Self {
        let mark = match framing {
            Framing::Events => "\u{feff}".as_bytes(),
            Framing::Lines => b"",
        };
        Self { framing, mark, line: Vec::new(), data: Vec::new() }
    }

    /// Takes bytes as they come, wherever they are cut.
    pub(super) fn push(&mut self, bytes: &[u8], to: &mut dyn Gathering) -> Result<ControlFlow<()>, llm::Error> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() + self.data.len() + part.len() > EVENT_BYTES_MAX {
                return Err(provider(format!("a piece of the stream is larger than {EVENT_BYTES_MAX} bytes")));
            }
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") && self.end_line(to)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// What stands at the end without its own end is a piece too: it is whole, or it cannot be read.
    pub(super) fn finish(&mut self, to: &mut dyn Gathering) -> Result<(), llm::Error> {
        if !self.line.is_empty() && self.end_line(to)?.is_break() {
            return Ok(());
        }
        match self.framing {
            Framing::Lines => Ok(()),
            Framing::Events => self.end_event(to).map(|_| ()),
        }
    }

    fn end_line(&mut self, to: &mut dyn Gathering) -> Result<ControlFlow<()>, llm::Error> {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_prefix(std::mem::take(&mut self.mark)).unwrap_or(&line);
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match self.framing {
            Framing::Lines if line.iter().all(u8::is_ascii_whitespace) => Ok(ControlFlow::Continue(())),
            Framing::Lines => to.take(line),
            Framing::Events if line.is_empty() => self.end_event(to),
            Framing::Events => {
                // Comments, names and ids are of no use here.
                if let Some(data) = line.strip_prefix(b"data:") {
                    if !self.data.is_empty() {
                        self.data.push(b'\n');
                    }
                    self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
                }
                Ok(ControlFlow::Continue(()))
            }
        }
    }

    fn end_event(&mut self, to: &mut dyn Gathering) -> Result<ControlFlow<()>, llm::Error> {
        let data = std::mem::take(&mut self.data);
        if data.is_empty() { Ok(ControlFlow::Continue(())) } else { to.take(&data) }
    }
}
