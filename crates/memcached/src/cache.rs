//! The seam: what a cache does for connections.
//!
//! A connection gives the cache a batch of requests at once, in the order in which they came: what
//! a client has pipelined, or the keys of one `get`. The cache answers each of them, in that order,
//! through [`Answers`], which writes into the connection's output: a value is copied once, from
//! where it is stored to where it is sent from. Nothing else is known here of text or flags.
//!
//! Values that are longer than a connection takes whole come in parts into a [`Cache::Writer`], and
//! go out in parts from a [`ValueReader`].

use crate::answer::{Answer, Fault};
use crate::answers::Answers;
use crate::operation::Store;
use crate::request::Request;
use crate::stats::{Counts, Figures};
use crate::values::{ValueReader, ValueWriter};

/// What a connection asks items of.
pub trait Cache {
    /// Where a long value goes; dropped if the value does not come to its end.
    type Writer: ValueWriter;
    /// Where a long value comes from.
    type Reader: ValueReader;

    /// Carries out each request, in their order, and answers each of them once.
    ///
    /// # Panics
    /// The connection panics if a request is left without an answer.
    fn run(
        &mut self,
        requests: &[Request<'_>],
        now_s: u64,
        answers: &mut Answers<'_, Self::Reader>,
    );

    /// Whether [`Cache::run`] would wait for a disk, or for memory that others hold, with these
    /// requests. [`Connection::run_without_waiting`](crate::Connection::run_without_waiting) asks
    /// it; a guess that is wrong costs time and nothing else.
    fn would_wait(&self, requests: &[Request<'_>], now_s: u64) -> bool {
        let _ = (requests, now_s);
        false
    }

    /// Begins a value that comes in parts. The conditions count when it ends.
    ///
    /// # Errors
    /// If it cannot be kept. The value is dropped, and the client hears the fault.
    fn begin_store(&mut self, store: &Store<'_>, now_s: u64) -> Result<Self::Writer, Fault>;

    /// Ends a value that came in parts: decides whether it is stored, as for one that came whole.
    ///
    /// # Errors
    /// If it cannot be kept.
    fn finish_store(
        &mut self,
        writer: Self::Writer,
        store: &Store<'_>,
        now_s: u64,
    ) -> Result<Answer, Fault>;

    /// What `stats` tells.
    fn figures(&mut self, now_s: u64) -> Figures;

    /// What the connection has counted since it said so last.
    fn count(&mut self, counts: &Counts) {
        let _ = counts;
    }

    /// `cache_memlimit`: a new limit of what the items take, in bytes. `false` refuses, as a
    /// cache does whose operator says how much.
    fn limit_bytes(&mut self, bytes: u64) -> bool {
        let _ = bytes;
        false
    }

    /// `stats reset`: counts begin at 0.
    fn reset_counts(&mut self) {}
}
