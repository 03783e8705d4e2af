//! A sequential write through the engine alone, beside the sum of its kernels.
//!
//! Each round has a store of its own, into which some is written first: memory is touched, as that
//! of a server is. The clock runs from the first buffer asked for after that to the end of a flush,
//! so all bytes are durable. The kernels run right after over the same bytes on the same
//! cores; the ratio is their time by the engine's. What a round stored is counted before its figure
//! is believed: every duplicate found, nothing lost.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use ::store::Answers;
use engine::{Accepted, Client, Done, OpenVolume, Opener, Options, StageTimes};
use serde::Serialize;
use threads::cpu_time_between_ns;

use crate::args::Args;
use crate::failure::Failure;
use crate::kernels::{self, KernelTimes};
use crate::machine::load_average;
use crate::samples::Samples;
use crate::source::{REQUEST_BYTES, REQUEST_CHUNKS, RING_REQUESTS, Source};
use crate::store::{CAPACITY_BYTES, CORE, Store, settled_times_ns, write_data_once};

const SEED: u64 = 2;
const VOLUME: &str = "bench";

/// Figures of all rounds, per 4-KiB chunk, summed over cores. Single kernels are timed by each
/// core's clock, all of them together and threads of the engine by the processor time they took.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct InProcess {
    pub(crate) written_bytes: u64,
    /// Written before the clock ran.
    pub(crate) warm_bytes: u64,
    pub(crate) memory_bytes: u64,
    /// No chunk repeats another.
    pub(crate) unique: bool,
    pub(crate) cores: usize,
    pub(crate) engine_mib_per_second: Samples,
    pub(crate) kernels_mib_per_second: Samples,
    /// Time of the kernels by time of the engine.
    pub(crate) ratio: Samples,
    pub(crate) copy_ns: Samples,
    pub(crate) fingerprint_ns: Samples,
    pub(crate) compress_ns: Samples,
    pub(crate) kernels_ns: Samples,
    pub(crate) core_thread_ns: Samples,
    pub(crate) workers_ns: Samples,
    pub(crate) client_thread_ns: Samples,
    /// Stages of the core, and jobs: time that passed, by the written chunk.
    pub(crate) stages: Vec<Stage>,
    /// Of the last minute, when a round began.
    pub(crate) load_average: Samples,
}

/// A stage of the core or a kind of job, and what it took of a written chunk.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Stage {
    pub(crate) name: String,
    pub(crate) ns: Samples,
}

/// One round of the engine.
struct Round {
    seconds: f64,
    core_ns: u64,
    workers_ns: u64,
    client_ns: u64,
    stages: StageTimes,
}

/// All rounds, in `folder`.
pub(crate) fn measure(args: &Args, folder: &Path) -> Result<InProcess, Failure> {
    let unique = args.unique;
    let source = match unique {
        true => Source::without_duplicates(RING_REQUESTS, SEED),
        false => Source::new(RING_REQUESTS, SEED),
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let requests = args.size_mib;
    let warm = args.warm_mib;
    let (written_bytes, memory_bytes) = (args.size_bytes(), args.memory_bytes());
    let warm_bytes = warm * REQUEST_BYTES as u64;
    let mut figures = InProcess {
        written_bytes,
        warm_bytes,
        memory_bytes,
        unique,
        cores,
        ..InProcess::default()
    };
    let options =
        Options { memory_bytes, worker_threads: cores, sync: false, ..Default::default() };
    for _ in 0..args.rounds {
        figures.load_average.push(load_average());
        let path = folder.join("in-process");
        Store::make(&path, CAPACITY_BYTES)?;
        write_data_once(&path, (warm_bytes + written_bytes) / 2)?;
        let round = engine_round(&source, warm..warm + requests, &path, &options)?;
        std::fs::remove_dir_all(&path).map_err(Failure::file(&path))?;
        let kernels = kernels::run(&source, requests, cores)?;
        figures.add(requests, &round, &kernels);
    }
    Ok(figures)
}

impl InProcess {
    fn add(&mut self, requests: u64, round: &Round, kernels: &KernelTimes) {
        let chunks = (requests * REQUEST_CHUNKS as u64) as f64;
        let kernels_seconds = kernels.wall.as_secs_f64();
        self.engine_mib_per_second.push(requests as f64 / round.seconds);
        self.kernels_mib_per_second.push(requests as f64 / kernels_seconds);
        self.ratio.push(kernels_seconds / round.seconds);
        self.copy_ns.push(kernels.copy.as_nanos() as f64 / chunks);
        self.fingerprint_ns.push(kernels.fingerprint.as_nanos() as f64 / chunks);
        self.compress_ns.push(kernels.compress.as_nanos() as f64 / chunks);
        self.kernels_ns.push(kernels.processor_ns as f64 / chunks);
        self.core_thread_ns.push(round.core_ns as f64 / chunks);
        self.workers_ns.push(round.workers_ns as f64 / chunks);
        self.client_thread_ns.push(round.client_ns as f64 / chunks);
        for (name, ns) in named(&round.stages) {
            self.stage(name).ns.push(ns as f64 / chunks);
        }
    }

    fn stage(&mut self, name: String) -> &mut Stage {
        let found = self.stages.iter().position(|stage| stage.name == name);
        let place = found.unwrap_or_else(|| {
            self.stages.push(Stage { name, ns: Samples::default() });
            self.stages.len() - 1
        });
        &mut self.stages[place]
    }
}

/// What a write goes through, as tables call it.
fn named(times: &StageTimes) -> Vec<(String, u64)> {
    let core = times.core.iter().map(|time| (format!("core, {}", time.stage), time.ns));
    let jobs = times.jobs.iter().map(|time| (format!("job, {}", time.job), time.ns));
    let spent = core.chain(jobs).filter(|(_, ns)| *ns > 0);
    spent.map(|(name, ns)| (name.replace('_', " "), ns)).collect()
}

/// Writes all requests before the end of `timed`, and times those in it.
fn engine_round(
    source: &Source,
    timed: Range<u64>,
    path: &Path,
    options: &Options,
) -> Result<Round, Failure> {
    let store = Store::open(path, options)?;
    store.client().create_volume(VOLUME, timed.end * REQUEST_BYTES as u64, false)?;
    let volume = store.client().open_volume(VOLUME, Opener::new("bench", 0))?;
    timed_write(source, 0..timed.start, store.client(), &volume)?;
    let before = store.client().stats()?.stages;
    let mut round = timed_write(source, timed.clone(), store.client(), &volume)?;
    let stats = store.client().stats()?;
    round.stages = since(&before, stats.stages);
    let (expected, found) = (source.unique_chunks(timed.end), stats.unique_chunks);
    store.close()?;
    if found == expected { Ok(round) } else { Err(Failure::Unfaithful { expected, found }) }
}

/// What was spent after `before`.
fn since(before: &StageTimes, mut after: StageTimes) -> StageTimes {
    for (stage, earlier) in after.core.iter_mut().zip(&before.core) {
        stage.ns -= earlier.ns;
    }
    for (job, earlier) in after.jobs.iter_mut().zip(&before.jobs) {
        (job.ns, job.chunks) = (job.ns - earlier.ns, job.chunks - earlier.chunks);
    }
    after
}

fn timed_write(
    source: &Source,
    requests: Range<u64>,
    client: &Client,
    volume: &OpenVolume,
) -> Result<Round, Failure> {
    let before = settled_times_ns();
    let begun = Instant::now();
    let answers = Arc::new(Answers::counted());
    for number in requests {
        let offset_bytes = number * REQUEST_BYTES as u64;
        let mut buffer = client.buffer(offset_bytes, REQUEST_BYTES);
        source.copy_request(number, buffer.bytes_mut());
        let done = Done::new(Arc::clone(&answers), number);
        answers.expect();
        if client.write(volume, offset_bytes, buffer, false, done) == Accepted::Now {
            answers.known();
        }
    }
    // A flush covers what is acknowledged, so that is waited for.
    answers.wait()?;
    client.flush_blocking()?;
    let seconds = begun.elapsed().as_secs_f64();
    let after = settled_times_ns();
    let spent = |kind: &str| cpu_time_between_ns(&before, &after, kind);
    // The writer is the main thread, which has the program's name.
    Ok(Round {
        seconds,
        core_ns: spent(CORE),
        workers_ns: spent("reduce"),
        client_ns: spent("bench"),
        stages: StageTimes::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::engine_round;
    use crate::kernels;
    use crate::source::Source;
    use crate::store::{Store, alone};
    use engine::Options;

    /// At toy size, so that the benchmark never rots; a figure of it means nothing.
    #[test]
    fn a_round_stores_every_unique_chunk_once() {
        let _alone = alone();
        let path = std::env::temp_dir().join(format!("tamis-bench-{}", std::process::id()));
        Store::make(&path, 64 << 20).unwrap();
        let source = Source::new(2, 1);
        let options = Options {
            memory_bytes: 64 << 20,
            worker_threads: 2,
            sync: false,
            ..Default::default()
        };
        let round = engine_round(&source, 2..6, &path, &options).unwrap();
        std::fs::remove_dir_all(&path).unwrap();
        assert!(round.seconds > 0.0 && round.core_ns > 0);
        let named = super::named(&round.stages);
        for wanted in ["core, look ups", "core, pack", "job, fingerprint", "job, compress"] {
            assert!(named.iter().any(|(name, _)| name == wanted), "{wanted}: {named:?}");
        }
        let kernels = kernels::run(&source, 6, 2).unwrap();
        assert!(kernels.compress.as_nanos() > 0);
    }
}
