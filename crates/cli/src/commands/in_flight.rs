//! Requests of one thread to one volume, and their answers as they come: how commands drive an
//! engine in their own process.
//!
//! Who asks decides how many requests may be under way; nothing here waits but
//! [`InFlight::buffer`], for room in the engine's write buffer, and [`InFlight::take`].

use std::sync::Arc;

use ::store::Answers;
use engine::{Accepted, ChunkBuf, Client, Done, OpenVolume, Reply};

pub(super) use ::store::Answer;

/// The requests under way.
pub(super) struct InFlight<'a> {
    client: &'a Client,
    volume: OpenVolume,
    answers: Arc<Answers>,
    next_tag: u64,
}

impl<'a> InFlight<'a> {
    /// None, to `volume`.
    pub(super) fn new(client: &'a Client, volume: OpenVolume) -> Self {
        Self { client, volume, answers: Arc::new(Answers::kept()), next_tag: 0 }
    }

    /// A buffer of the engine's, when it has one.
    pub(super) fn buffer(&self, offset_bytes: u64, length_bytes: usize) -> ChunkBuf {
        self.client.buffer(offset_bytes, length_bytes)
    }

    /// Writes; returns the number by which its answer will come, or None when it is acknowledged
    /// already. A `durable` one is answered when it is that.
    pub(super) fn write(&mut self, offset_bytes: u64, buf: ChunkBuf, durable: bool) -> Option<u64> {
        let done = self.expect();
        let tag = done.tag;
        match self.client.write(&self.volume, offset_bytes, buf, durable, done) {
            Accepted::Now => {
                self.answers.known();
                None
            }
            Accepted::Later => Some(tag),
        }
    }

    /// Reads; returns the number by which its answer will come.
    pub(super) fn read(&mut self, offset_bytes: u64, length_bytes: u32) -> u64 {
        let done = self.expect();
        let tag = done.tag;
        self.client.read(&self.volume, offset_bytes, length_bytes, done);
        tag
    }

    /// The answers that are here; waits for one while more than `to_come_max` are to come.
    pub(super) fn take(&self, to_come_max: usize) -> Vec<Answer> {
        self.answers.take(to_come_max)
    }

    /// Makes durable all that was acknowledged.
    pub(super) fn flush(&self) -> Result<(), engine::RequestError> {
        self.client.flush_blocking()
    }

    /// What reads may have under way at once.
    pub(super) fn read_share_bytes(&self) -> usize {
        self.client.read_share_bytes()
    }

    fn expect<A: Into<Reply>>(&mut self) -> Done<A> {
        self.answers.expect();
        self.next_tag += 1;
        Done::new(Arc::clone(&self.answers), self.next_tag)
    }
}
