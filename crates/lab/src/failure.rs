//! What a simulation can find wrong, and where in the run.

use std::fmt;

use thiserror::Error;

/// A promise that was broken, or a run that could not go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Broken {
    /// A read gave other bytes than were written last.
    #[error("chunk {lba} of {volume} reads as bytes that it did not hold")]
    WrongBytes {
        /// Which volume.
        volume: String,
        /// Which chunk.
        lba: u64,
    },
    /// After a crash no prefix of the effects matches.
    #[error(
        "no prefix of {written} effects with the {flushed} flushed ones gives what the store \
         holds; {register} was the last to rule one out{}",
        if *.known { "" } else { ", with a value that it never had" }
    )]
    NotAPrefix {
        /// Effects since the last crash.
        written: usize,
        /// Of those, flushed.
        flushed: usize,
        /// What left no candidate.
        register: String,
        /// Whether it had the value at some time.
        known: bool,
    },
    /// The store could not be opened.
    #[error("the store does not open: {0}")]
    DoesNotOpen(#[source] engine::OpenError),
    /// The check found broken invariants.
    #[error("{count} broken invariants, the first: {first}")]
    Inconsistent {
        /// How many.
        count: usize,
        /// The first of them.
        first: String,
    },
    /// A figure of the store is not what its contents say.
    #[error("{what}: the store says {said}, its contents {counted}")]
    Figure {
        /// Which.
        what: &'static str,
        /// By the store.
        said: u64,
        /// By the oracle.
        counted: u64,
    },
    /// A request failed that should not.
    #[error("a request failed: {0}")]
    Request(#[source] engine::RequestError),
    /// A request was answered otherwise than it must be.
    #[error("{request} was answered with {answer}")]
    Answer {
        /// The request.
        request: String,
        /// The answer.
        answer: String,
    },
    /// Nothing moves any more, and a request has no answer.
    #[error("the engine stalls with {waiting} requests unanswered")]
    StandsStill {
        /// Requests without an answer.
        waiting: usize,
    },
    /// A bucket does not hold what it should, or fails where it should not.
    #[error("{what}")]
    Objects {
        /// What is wrong.
        what: String,
    },
    /// The machine would not let a run begin.
    #[error("the simulation cannot run: {0}")]
    Machine(String),
}

impl Broken {
    /// Whether two failures are of one kind: what shrinking keeps.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// What was found wrong, and where in the run.
#[derive(Debug)]
pub struct Failure {
    /// What.
    pub broken: Broken,
    /// Life of the store, from 1: each begins with an opening.
    pub life: usize,
    /// Request of that life, from 1; 0 is the opening.
    pub request: usize,
    /// The crash that was looked at aside from the run, if it was one.
    pub aside: Option<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "life {}, request {}", self.life, self.request)?;
        if let Some(aside) = &self.aside {
            write!(f, ", {aside}")?;
        }
        write!(f, ": {}", self.broken)
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.broken)
    }
}
