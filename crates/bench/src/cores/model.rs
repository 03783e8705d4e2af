//! What a machine with so many processors would write a second, from what a chunk costs.
//!
//! Every part of a machine has a rate at which it is full: chunks a second, by what a chunk takes
//! of it. The least of these is the throughput, and its part is what is saturated first. Nothing
//! waits for anything else in this model: it is the most that a machine could do, if costs stay
//! what they were when they were measured. They do not quite: a busy core does more at a time, so
//! a chunk costs it less; many processors share memory and caches, so it costs all of them more.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use crate::source::CHUNK_BYTES;

const NS_PER_SECOND: f64 = 1e9;

/// What one written chunk costs.
#[derive(Copy, Clone, Debug, Default, Serialize)]
pub(crate) struct Costs {
    /// Of processors.
    pub(crate) core_ns: f64,
    pub(crate) workers_ns: f64,
    pub(crate) clients_ns: f64,
    /// Written to the device, of all kinds.
    pub(crate) device_bytes: f64,
    /// Read and written in memory if no cache helped.
    pub(crate) memory_bytes: f64,
}

/// What there is to spend.
#[derive(Copy, Clone, Debug, Serialize)]
pub(crate) struct Means {
    pub(crate) processors: usize,
    pub(crate) workers: usize,
    pub(crate) clients: usize,
    pub(crate) device_bytes_per_second: f64,
    pub(crate) memory_bytes_per_second: f64,
}

/// What may be full first.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Limit {
    /// The one thread that thinks.
    Core,
    /// Threads that fingerprint and compress.
    Workers,
    /// Threads that bring the bytes.
    Clients,
    /// All processors.
    Processors,
    /// The device.
    Disk,
    /// What memory can move.
    Memory,
}

impl Display for Limit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Core => "the core's thread",
            Self::Workers => "workers",
            Self::Clients => "the client's copy",
            Self::Processors => "processors",
            Self::Disk => "the disk",
            Self::Memory => "memory",
        })
    }
}

/// What the model says of a machine.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Modelled {
    pub(crate) processors: usize,
    pub(crate) workers: usize,
    pub(crate) mib_per_second: f64,
    pub(crate) saturated: Limit,
    /// Part of the core's thread that is busy then, and of all processors.
    pub(crate) core_busy: f64,
    pub(crate) processors_busy: f64,
}

impl Costs {
    /// The most that `means` can write.
    pub(crate) fn with(&self, means: &Means) -> Modelled {
        let Means { processors, workers, clients, .. } = *means;
        let processors_ns = self.core_ns + self.workers_ns + self.clients_ns;
        let threads = |count: usize, ns: f64| count as f64 * NS_PER_SECOND / ns;
        // In the order in which equals are named.
        let rates = [
            (Limit::Core, threads(1, self.core_ns)),
            (Limit::Disk, means.device_bytes_per_second / self.device_bytes),
            (Limit::Memory, means.memory_bytes_per_second / self.memory_bytes),
            (Limit::Processors, threads(processors, processors_ns)),
            (Limit::Workers, threads(workers, self.workers_ns)),
            (Limit::Clients, threads(clients, self.clients_ns)),
        ];
        let mut least = rates[0];
        // What costs nothing has no rate, and saturates nothing.
        for rate in rates.into_iter().filter(|(_, rate)| rate.is_finite()) {
            if rate.1 < least.1 {
                least = rate;
            }
        }
        let (saturated, chunks_per_second) = least;
        let busy = |ns: f64| chunks_per_second * ns / NS_PER_SECOND;
        Modelled {
            processors,
            workers,
            mib_per_second: mib(chunks_per_second),
            saturated,
            core_busy: busy(self.core_ns),
            processors_busy: busy(processors_ns) / processors as f64,
        }
    }

    /// What one core's thread can do at all.
    pub(crate) fn core_mib_per_second(&self) -> f64 {
        mib(NS_PER_SECOND / self.core_ns)
    }
}

fn mib(chunks: f64) -> f64 {
    chunks * CHUNK_BYTES as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::{Costs, Limit, Means};

    const COSTS: Costs = Costs {
        core_ns: 400.0,
        workers_ns: 3000.0,
        clients_ns: 600.0,
        device_bytes: 1000.0,
        memory_bytes: 20_000.0,
    };
    const MEANS: Means = Means {
        processors: 1,
        workers: 64,
        clients: 64,
        device_bytes_per_second: 1e12,
        memory_bytes_per_second: 1e12,
    };

    #[test]
    fn processors_are_full_until_the_core_is() {
        let with = |processors| COSTS.with(&Means { processors, ..MEANS });
        // 4 us of a processor for each chunk: 250,000 a second, of 4 KiB.
        assert_eq!(with(1).mib_per_second, 250_000.0 / 256.0);
        assert_eq!(with(1).saturated, Limit::Processors);
        assert_eq!(with(8).mib_per_second, 8.0 * with(1).mib_per_second);
        let modelled = with(16);
        assert_eq!((modelled.saturated, modelled.core_busy), (Limit::Core, 1.0));
        assert_eq!(modelled.mib_per_second, COSTS.core_mib_per_second());
        assert_eq!(modelled.processors_busy, 10.0 / 16.0);
    }

    #[test]
    fn each_part_of_a_machine_may_be_full_first() {
        let means = Means { processors: 64, ..MEANS };
        let first = |means: &Means| COSTS.with(means).saturated;
        assert_eq!(first(&Means { workers: 7, ..means }), Limit::Workers);
        assert_eq!(first(&Means { clients: 1, ..means }), Limit::Clients);
        assert_eq!(first(&Means { device_bytes_per_second: 2e9, ..means }), Limit::Disk);
        assert_eq!(first(&Means { memory_bytes_per_second: 4e10, ..means }), Limit::Memory);
    }

    #[test]
    fn what_costs_nothing_saturates_nothing() {
        let free = Costs { device_bytes: 0.0, workers_ns: 0.0, ..COSTS };
        let means = Means { processors: 64, device_bytes_per_second: 0.0, ..MEANS };
        assert_eq!(free.with(&means).saturated, Limit::Core);
    }
}
