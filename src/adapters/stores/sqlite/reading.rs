//! A history as it is read: found from its end, then streamed from its beginning.

use std::io::{self, BufRead, Read};

use rusqlite::Connection;

use super::chain;
use super::fault::Trouble;
use super::place::Place;

/// Bytes that are fetched at a time, about.
const CHUNK_BYTES: usize = 64 << 10;

/// The lines of a run. Records never change and never move, so nothing is locked between two chunks.
pub(super) struct History {
    connection: Connection,
    place: Place,
    positions: std::vec::IntoIter<i64>,
    chunk: Vec<u8>,
    consumed: usize,
}

impl History {
    pub(super) fn new(connection: Connection, place: Place, positions: Vec<i64>) -> Self {
        Self { connection, place, positions: positions.into_iter(), chunk: Vec::new(), consumed: 0 }
    }

    fn fetch(&mut self) -> Result<(), Trouble> {
        self.chunk.clear();
        self.consumed = 0;
        while self.chunk.len() < CHUNK_BYTES {
            let Some(position) = self.positions.next() else { break };
            chain::line(&self.connection, position, |line| self.chunk.extend_from_slice(line))?;
        }
        Ok(())
    }
}

impl BufRead for History {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.consumed >= self.chunk.len() {
            self.fetch().map_err(|trouble| io::Error::other(self.place.explain(trouble)))?;
        }
        Ok(self.chunk.get(self.consumed..).unwrap_or_default())
    }

    fn consume(&mut self, amount: usize) {
        self.consumed += amount;
    }
}

impl Read for History {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}
