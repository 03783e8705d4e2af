//! What a tenant did since its store is served.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::latency::Latencies;

/// Kinds of operations whose latencies are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// A value is read, or looked at.
    Read,
    /// A value is stored, or changed.
    Write,
    /// A value is deleted.
    Delete,
    /// Keys or buckets are listed.
    List,
    /// All else.
    Other,
}

impl Operation {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Read, Self::Write, Self::Delete, Self::List, Self::Other];

    /// Its name in figures.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::List => "list",
            Self::Other => "other",
        }
    }
}

/// The operations of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationFigures {
    /// Their kind.
    pub operation: Operation,
    /// How many were answered.
    pub operations: u64,
    /// Half of them took no longer, in nanoseconds, to a sixteenth; none where there were none.
    pub p50_ns: Option<u64>,
    /// The same for 99 of a hundred.
    pub p99_ns: Option<u64>,
}

/// What a tenant did since its store is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantFigures {
    /// One of each kind, in the order of [`Operation::ALL`].
    pub operations: Vec<OperationFigures>,
    /// Bytes of values that it sent.
    pub bytes_in: u64,
    /// Bytes of values that it was sent.
    pub bytes_out: u64,
    /// How long its requests waited for its rates, all together, in nanoseconds.
    pub throttled_ns: u64,
    /// How many of them did.
    pub throttled_requests: u64,
}

/// The counters behind them.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    latencies: [Latencies; Operation::ALL.len()],
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    throttled_ns: AtomicU64,
    throttled_requests: AtomicU64,
}

impl Counters {
    pub(crate) fn record(&self, operation: Operation, operations: u64, latency: Duration) {
        self.latencies[operation as usize].add(operations, latency);
    }

    pub(crate) fn add_bytes_in(&self, bytes: u64) {
        self.bytes_in.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_bytes_out(&self, bytes: u64) {
        self.bytes_out.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_throttled(&self, waits: Duration) {
        let ns = u64::try_from(waits.as_nanos()).unwrap_or(u64::MAX);
        self.throttled_ns.fetch_add(ns, Ordering::Relaxed);
        self.throttled_requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn figures(&self) -> TenantFigures {
        let operations = Operation::ALL.map(|operation| {
            let latencies = &self.latencies[operation as usize];
            OperationFigures {
                operation,
                operations: latencies.count(),
                p50_ns: latencies.percentile_ns(50),
                p99_ns: latencies.percentile_ns(99),
            }
        });
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TenantFigures {
            operations: operations.to_vec(),
            bytes_in: load(&self.bytes_in),
            bytes_out: load(&self.bytes_out),
            throttled_ns: load(&self.throttled_ns),
            throttled_requests: load(&self.throttled_requests),
        }
    }
}
