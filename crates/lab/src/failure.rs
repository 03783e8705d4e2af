//! What a simulation can find wrong.

use thiserror::Error;

/// A promise that was broken, or a simulation that could not go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Failure {
    /// A read gave other bytes than were written last.
    #[error("step {step}: chunk {lba} of {volume} reads as other bytes than were written last")]
    WrongBytes {
        /// When.
        step: u64,
        /// Which volume.
        volume: String,
        /// Which chunk.
        lba: u64,
    },
    /// After a crash no prefix of the writes matches.
    #[error(
        "after crash {crash}: no prefix of {written} effects with the {flushed} flushed ones \
         gives what the store holds; chunk {lba} of {volume} was the last to rule one out"
    )]
    NotAPrefix {
        /// Which crash of the run.
        crash: u64,
        /// Effects since the last crash.
        written: usize,
        /// Of those, flushed.
        flushed: usize,
        /// The chunk that left no candidate.
        lba: u64,
        /// Its volume.
        volume: String,
    },
    /// The store could not be opened after a crash.
    #[error("after crash {crash}: the store does not open: {source}")]
    DoesNotOpen {
        /// Which crash of the run.
        crash: u64,
        /// Why.
        source: engine::OpenError,
    },
    /// The check found broken invariants.
    #[error("after crash {crash}: {count} broken invariants, the first: {first}")]
    Inconsistent {
        /// Which crash of the run.
        crash: u64,
        /// How many.
        count: usize,
        /// The first of them.
        first: String,
    },
    /// A request failed that should not.
    #[error("step {step}: a request failed: {source}")]
    Request {
        /// When.
        step: u64,
        /// Why.
        source: engine::RequestError,
    },
    /// Nothing moves any more, and a request has no answer.
    #[error("step {step}: the engine stands still with {waiting} requests unanswered")]
    StandsStill {
        /// When.
        step: u64,
        /// Requests without an answer.
        waiting: usize,
    },
}
