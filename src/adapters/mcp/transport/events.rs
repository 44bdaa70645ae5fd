//! Answers that come as a stream of events (`text/event-stream`).

use super::MESSAGE_BYTES_MAX;

/// The most bytes of one stream, whatever is in it.
const STREAM_BYTES_MAX: usize = 4 * MESSAGE_BYTES_MAX;

/// A stream as it comes in.
#[derive(Debug, Default)]
pub(super) struct Events {
    taken: usize,
    line: Vec<u8>,
    data: Vec<u8>,
    /// The line before ended with a carriage return, so that a line feed belongs to it.
    returned: bool,
}

impl Events {
    /// Takes bytes and gives the data of the events that are whole. The error says which limit they break.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        self.taken += bytes.len();
        if self.taken > STREAM_BYTES_MAX {
            return Err(format!("the server's answer is a stream of more than {STREAM_BYTES_MAX} bytes"));
        }
        let mut whole = Vec::new();
        for byte in bytes {
            let follows = std::mem::replace(&mut self.returned, *byte == b'\r');
            match byte {
                b'\n' if follows => {}
                b'\r' | b'\n' => whole.extend(self.end_line()),
                byte => self.line.push(*byte),
            }
            if self.line.len() + self.data.len() > MESSAGE_BYTES_MAX {
                return Err(format!("the server sent an event of more than {MESSAGE_BYTES_MAX} bytes"));
            }
        }
        Ok(whole)
    }

    /// An empty line ends an event; one without data is none.
    fn end_line(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let mut data = std::mem::take(&mut self.data);
            data.pop();
            return (!data.is_empty()).then_some(data);
        }
        if let Some(value) = line.strip_prefix(b"data:") {
            self.data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
            self.data.push(b'\n');
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stream: &[u8], piece: usize) -> Vec<String> {
        let mut events = Events::default();
        let pieces = stream.chunks(piece).flat_map(|bytes| events.take(bytes).unwrap());
        pieces.map(|data| String::from_utf8(data).unwrap()).collect()
    }

    #[test]
    fn events_are_the_same_however_they_are_cut() {
        let stream = b": hello\r\nid: 7\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\nevent: x\ndata:2\n\ndata: cut";
        for piece in 1..stream.len() {
            assert_eq!(read(stream, piece), ["{\"a\":\n1}", "2"], "in pieces of {piece}");
        }
    }

    #[test]
    fn an_event_without_an_end_meets_a_limit() {
        let mut events = Events::default();
        let piece = [b'x'; 1 << 16];
        let taken = (0..1_000).take_while(|_| events.take(&piece).is_ok()).count();
        assert_eq!(taken, MESSAGE_BYTES_MAX / piece.len());
    }

    #[test]
    fn a_stream_without_an_end_meets_a_limit() {
        let mut events = Events::default();
        let piece = b"data: 1\n\n".repeat(1_000);
        let taken = (0..10_000).take_while(|_| events.take(&piece).is_ok()).count();
        assert_eq!(taken, STREAM_BYTES_MAX / piece.len());
    }
}
