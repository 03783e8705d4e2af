//! What more processors give: stage costs of a written chunk, throughput modelled from them for
//! machines of 1 to 64 processors, and throughput measured on this one with more and more threads,
//! beside what the model says of it.
//!
//! A core's thread, so many workers and as many clients' threads, without sockets. The costs that
//! the model goes by are those with the fewest threads that were measured, where threads are least
//! in each other's way; what they become with more stands beside them. Three streams, since a
//! duplicate costs a fingerprint and a look-up, and a new chunk a frame and its way to the device
//! as well. Each round has a store of its own, and what it stored is counted before it is believed.

mod lines;
mod memory;
mod model;
mod page;
mod round;

use std::path::Path;
use std::thread;

use serde::Serialize;

use crate::args::Args;
use crate::failure::Failure;
use crate::machine::load_average;
use crate::samples::Samples;
use model::{Costs, Means, Modelled};
use round::{Bytes, Plan, Round, Stream};

/// What was measured, and what follows.
#[derive(Debug, Serialize)]
pub(crate) struct Cores {
    pub(crate) written_bytes: u64,
    pub(crate) engine_memory_bytes: u64,
    /// Of this machine, or of the part of it that this program may use.
    pub(crate) processors: usize,
    pub(crate) device_bytes_per_second: f64,
    /// What all processors read and write while they copy from memory to memory, or what was said.
    pub(crate) memory_bytes_per_second: Samples,
    pub(crate) streams: Vec<StreamFigures>,
    /// Of the last minute, when a round began.
    pub(crate) load_average: Samples,
}

/// One stream's.
#[derive(Debug, Serialize)]
pub(crate) struct StreamFigures {
    pub(crate) stream: Stream,
    /// By the number of workers, and as many clients.
    pub(crate) measured: Vec<Measured>,
    /// By the number of processors.
    pub(crate) modelled: Vec<Modelled>,
}

/// A stream written with so many threads of each kind.
#[derive(Debug, Serialize)]
pub(crate) struct Measured {
    pub(crate) workers: usize,
    pub(crate) mib_per_second: Samples,
    pub(crate) core_ns: Samples,
    pub(crate) workers_ns: Samples,
    pub(crate) clients_ns: Samples,
    pub(crate) device_bytes: Samples,
    pub(crate) memory_bytes: Samples,
    /// The same by the model.
    pub(crate) modelled: Option<Modelled>,
}

/// All rounds, in `folder`.
pub(crate) fn measure(args: &Args, folder: &Path) -> Result<Cores, Failure> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let mut figures = Cores {
        written_bytes: args.size_bytes(),
        engine_memory_bytes: args.memory_bytes(),
        processors,
        device_bytes_per_second: args.disk_gb * 1e9,
        memory_bytes_per_second: Samples::default(),
        streams: Stream::ALL.map(|stream| StreamFigures::new(stream, &args.workers)).into(),
        load_average: Samples::default(),
    };
    for _ in 0..args.rounds {
        figures.memory_bytes_per_second.push(match args.bandwidth_gb {
            Some(said) => said * 1e9,
            None => memory::bytes_per_second(processors)?,
        });
        for of in &mut figures.streams {
            let bytes = Bytes::new(of.stream, args.size_mib);
            for measured in &mut of.measured {
                figures.load_average.push(load_average());
                let (workers, clients) = (measured.workers, measured.workers);
                let (requests, memory_bytes) = (args.size_mib, args.memory_bytes());
                let plan = Plan { requests, workers, clients, memory_bytes };
                measured.add(&round::run(&bytes, &plan, &folder.join("cores"))?);
            }
        }
    }
    figures.model(&args.cpus);
    Ok(figures)
}

impl Cores {
    /// What follows from what was measured, for machines with so many processors and for this one.
    fn model(&mut self, cpus: &[usize]) {
        let means = Means {
            processors: self.processors,
            workers: 0,
            clients: 0,
            device_bytes_per_second: self.device_bytes_per_second,
            memory_bytes_per_second: self.memory_bytes_per_second.median(),
        };
        for of in &mut self.streams {
            let Some(costs) = of.costs() else { continue };
            let with = |processors: usize, threads: usize| {
                costs.with(&Means { processors, workers: threads, clients: threads, ..means })
            };
            of.modelled = cpus.iter().map(|&processors| with(processors, processors)).collect();
            for measured in &mut of.measured {
                measured.modelled = Some(with(means.processors, measured.workers));
            }
        }
    }
}

impl StreamFigures {
    fn new(stream: Stream, workers: &[usize]) -> Self {
        let measured = workers.iter().map(|&workers| Measured {
            workers,
            mib_per_second: Samples::default(),
            core_ns: Samples::default(),
            workers_ns: Samples::default(),
            clients_ns: Samples::default(),
            device_bytes: Samples::default(),
            memory_bytes: Samples::default(),
            modelled: None,
        });
        Self { stream, measured: measured.collect(), modelled: Vec::new() }
    }

    /// What a chunk costs with the fewest threads.
    pub(crate) fn costs(&self) -> Option<Costs> {
        let fewest = self.measured.iter().min_by_key(|measured| measured.workers)?;
        Some(Costs {
            core_ns: fewest.core_ns.median(),
            workers_ns: fewest.workers_ns.median(),
            clients_ns: fewest.clients_ns.median(),
            device_bytes: fewest.device_bytes.median(),
            memory_bytes: fewest.memory_bytes.median(),
        })
    }
}

impl Measured {
    fn add(&mut self, round: &Round) {
        let Costs { core_ns, workers_ns, clients_ns, device_bytes, memory_bytes } = round.costs;
        self.mib_per_second.push(round.mib_per_second);
        self.core_ns.push(core_ns);
        self.workers_ns.push(workers_ns);
        self.clients_ns.push(clients_ns);
        self.device_bytes.push(device_bytes);
        self.memory_bytes.push(memory_bytes);
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::measure;
    use crate::args::Args;
    use crate::store::alone;

    /// At toy size, so that the benchmark never rots; a figure of it means nothing.
    #[test]
    fn every_stream_is_measured_and_modelled() {
        let _alone = alone();
        let folder = std::env::temp_dir().join(format!("tamis-cores-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let sizes = ["--rounds", "1", "--size-mib", "8", "--memory-mib", "64"];
        let counts = ["--workers", "2,1", "--cpus", "1,16"];
        // So much that neither is saturated, however busy this machine is.
        let means = ["--disk-gb", "1000", "--bandwidth-gb", "1000"];
        let arguments = ["bench", "cores"].into_iter().chain(sizes).chain(counts).chain(means);
        let figures = measure(&Args::parse_from(arguments), &folder).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        for of in &figures.streams {
            let costs = of.costs().unwrap();
            assert_eq!(costs.core_ns, of.measured[1].core_ns.median());
            assert!(costs.core_ns > 0.0 && costs.workers_ns > 0.0, "{costs:?}");
            assert!(costs.clients_ns > 0.0, "{costs:?}");
            assert!(of.modelled[0].mib_per_second < of.modelled[1].mib_per_second);
            assert!(of.measured.iter().all(|measured| measured.modelled.is_some()));
        }
        // Only what is new costs the device anything to speak of.
        let stored = |stream: usize| figures.streams[stream].costs().unwrap().device_bytes;
        assert!(stored(0) < stored(1) && stored(1) < stored(2), "{:?}", [0, 1, 2].map(stored));
        let page = figures.to_string();
        assert_eq!(page.matches("\n| 16 | ").count(), 1, "{page}");
        assert_eq!(page.matches("\n| all unique | 2 | ").count(), 1, "{page}");
        let (_, svg) = &figures.plots().unwrap()[0];
        assert!(svg.contains("all duplicates"), "{svg}");
    }
}
