//! Connections whose thread has others to serve: it waits for no disk, and has the buffers.
//!
//! ```text
//! lend ──> room, received, run_without_waiting, chunk, sent ──> take_back
//!                            └─ None: `run` goes on with the same input, where it may wait
//! ```

use super::{Connection, Next, Progress, State};
use crate::cache::Cache;
use crate::request::Request;

/// Buffers of a connection at work, which its thread lends to one connection after the other: those
/// that are idle hold none.
#[derive(Debug, Default)]
pub struct Buffers {
    input: Vec<u8>,
    output: Vec<u8>,
    requests: Vec<Request<'static>>,
}

impl Buffers {
    /// With room for this much of received bytes at once, at least one.
    #[must_use]
    pub fn receiving(bytes: usize) -> Self {
        Buffers { input: vec![0; bytes.max(1)], ..Buffers::default() }
    }
}

impl<C: Cache> Connection<C> {
    /// As [`Connection::run`], except that nothing is waited for. `None` if the next batch would
    /// wait, as [`Cache::would_wait`] says, or if the next is part of a long value: nothing of it
    /// has been carried out, all answers before it have been sent, and `run` goes on with it.
    ///
    /// # Panics
    /// If the cache does not answer each request of a batch once.
    pub fn run_without_waiting(&mut self, cache: &mut C, now_s: u64) -> Option<Next> {
        let mut progress = Progress::Made;
        while progress == Progress::Made && !self.is_output_full() {
            progress = self.advance(cache, now_s, false);
        }
        self.pass_counts(cache);
        let waits = progress == Progress::Waits && self.output.is_empty();
        (!waits).then(|| self.next())
    }

    /// As [`Connection::run`], but does one thing only: a batch, or a part of a long value. So
    /// clients that wait for a disk can take turns.
    ///
    /// # Panics
    /// If the cache does not answer each request of a batch once.
    pub fn run_once(&mut self, cache: &mut C, now_s: u64) -> Next {
        if !self.is_output_full() {
            self.advance(cache, now_s, true);
        }
        self.pass_counts(cache);
        self.next()
    }

    /// Whether [`Connection::chunk`] would read from the cache: the next part of a long value.
    #[must_use]
    pub fn chunk_would_wait(&self) -> bool {
        self.output.is_part_next()
    }

    /// Whether nothing is under way: no part of a request has come, and no answer is unsent.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let is_ready = matches!(self.state, State::Ready) && self.token_bytes.is_none();
        is_ready && self.output.is_empty() && self.input.unused_bytes() == 0
    }

    /// Whether there are answers to send.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        !self.output.is_empty()
    }

    /// What it holds of received and unsent bytes, without long values.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.input.unused_bytes() + self.output.unsent_bytes()
    }

    /// Lends it buffers to work in, where it has none.
    pub fn lend(&mut self, buffers: &mut Buffers) {
        self.input.lend(&mut buffers.input);
        self.output.lend(&mut buffers.output);
        if self.spare.capacity() == 0 {
            std::mem::swap(&mut self.spare, &mut buffers.requests);
        }
    }

    /// Takes back what it does not need until more comes; what holds bytes stays.
    pub fn take_back(&mut self, buffers: &mut Buffers) {
        self.input.take_back(&mut buffers.input);
        self.output.take_back(&mut buffers.output);
        std::mem::swap(&mut self.spare, &mut buffers.requests);
        self.spare = Vec::new();
    }
}
