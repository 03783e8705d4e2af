//! What jobs take, by kind, on whatever thread, by a clock of the caller's.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a job does.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// Fingerprints of chunks.
    Fingerprint,
    /// Chunks compared with stored ones.
    Compare,
    /// Frames of chunks.
    Compress,
    /// Frames verified, for a scrub.
    Verify,
    /// Frames made anew.
    Recompress,
    /// Frames copied together; no chunks are counted.
    Pack,
    /// Memory touched before it is needed.
    Prepare,
}

impl JobKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Fingerprint,
        Self::Compare,
        Self::Compress,
        Self::Verify,
        Self::Recompress,
        Self::Pack,
        Self::Prepare,
    ];

    /// As figures call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fingerprint => "fingerprint",
            Self::Compare => "compare",
            Self::Compress => "compress",
            Self::Verify => "verify",
            Self::Recompress => "recompress",
            Self::Pack => "pack",
            Self::Prepare => "prepare",
        }
    }
}

/// What jobs of one kind came to.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Of the caller's clock, all threads together.
    pub ticks: u64,
    /// Chunks, or frames.
    pub chunks: u64,
}

#[derive(Default)]
struct Sums {
    ticks: AtomicU64,
    chunks: AtomicU64,
}

/// Sums by kind; nothing is summed up before there is a clock.
#[derive(Default)]
pub(crate) struct JobTimes {
    clock: OnceLock<fn() -> u64>,
    kinds: [Sums; JobKind::ALL.len()],
    small: AtomicU64,
}

impl JobTimes {
    pub(crate) fn keep(&self, ticks: fn() -> u64) {
        self.clock.get_or_init(|| ticks);
    }

    pub(crate) fn now(&self) -> u64 {
        self.clock.get().map_or(0, |ticks| ticks())
    }

    /// A job that began at `begun` has ended; the ticks that it took.
    pub(crate) fn ended(&self, kind: JobKind, begun: u64, chunks: usize) -> u64 {
        if self.clock.get().is_none() {
            return 0;
        }
        let ticks = self.now().saturating_sub(begun);
        let sums = &self.kinds[kind as usize];
        sums.ticks.fetch_add(ticks, Ordering::Relaxed);
        sums.chunks.fetch_add(chunks as u64, Ordering::Relaxed);
        ticks
    }

    /// It ran where it was handed in.
    pub(crate) fn was_small(&self, ticks: u64) {
        self.small.fetch_add(ticks, Ordering::Relaxed);
    }

    pub(crate) fn small_ticks(&self) -> u64 {
        self.small.load(Ordering::Relaxed)
    }

    pub(crate) fn spent(&self, kind: JobKind) -> Spent {
        let sums = &self.kinds[kind as usize];
        Spent {
            ticks: sums.ticks.load(Ordering::Relaxed),
            chunks: sums.chunks.load(Ordering::Relaxed),
        }
    }
}
