//! The policies by name.

use super::arc::Arc;
use super::clock::Clock;
use super::lru::Lru;
use super::policy::Policy;
use super::s3_fifo::S3Fifo;
use super::tiny_lfu::TinyLfu;
use super::two_q::TwoQ;

/// Which pages leave when there is no room.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum PolicyKind {
    /// What was wanted longest ago.
    Lru,
    /// A hand that spares once what was wanted.
    Clock,
    /// The same, and dirty pages stay until they are written, which begins when three quarters of
    /// the pages are dirty: what the page store does.
    ClockClean,
    /// The same, beginning at a quarter.
    ClockCleanEarly,
    /// Full 2Q.
    TwoQ,
    /// Adaptive replacement.
    Arc,
    /// Three FIFO queues.
    S3Fifo,
    /// The same, and dirty pages stay until they are written, which begins at a quarter.
    S3FifoClean,
    /// A window before a main part, and a sketch that decides who gets in.
    TinyLfu,
}

impl PolicyKind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Lru,
        Self::Clock,
        Self::ClockClean,
        Self::ClockCleanEarly,
        Self::TwoQ,
        Self::Arc,
        Self::S3Fifo,
        Self::S3FifoClean,
        Self::TinyLfu,
    ];

    /// As tables name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Lru => "lru",
            Self::Clock => "clock",
            Self::ClockClean => "clock-clean",
            Self::ClockCleanEarly => "clock-early",
            Self::TwoQ => "2q",
            Self::Arc => "arc",
            Self::S3Fifo => "s3-fifo",
            Self::S3FifoClean => "s3-clean",
            Self::TinyLfu => "w-tinylfu",
        }
    }

    /// The policy for `capacity` of all `pages`.
    pub(super) fn build(self, capacity: usize, pages: usize) -> Box<dyn Policy> {
        match self {
            Self::Lru => Box::new(Lru::new(capacity, pages)),
            Self::Clock => Box::new(Clock::new(capacity, pages)),
            Self::ClockClean => Box::new(Clock::clean_only(capacity, pages, capacity / 4 * 3)),
            Self::ClockCleanEarly => Box::new(Clock::clean_only(capacity, pages, capacity / 4)),
            Self::TwoQ => Box::new(TwoQ::new(capacity, pages)),
            Self::Arc => Box::new(Arc::new(capacity, pages)),
            Self::S3Fifo => Box::new(S3Fifo::new(capacity, pages)),
            Self::S3FifoClean => Box::new(S3Fifo::clean_only(capacity, pages, capacity / 4)),
            Self::TinyLfu => Box::new(TinyLfu::new(capacity, pages)),
        }
    }
}
