//! Markdown tables of figures.

use std::fmt::{self, Display, Formatter};

use crate::in_process::InProcess;
use crate::nbd::{Nbd, Row, Unit};
use crate::samples::Samples;

/// What `--memory` may be exceeded by: program, stacks, allocator.
const BESIDE_MEMORY_MIB: u64 = 64;

impl Display for InProcess {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let rows = [
            ("engine, MiB/s", &self.engine_mib_per_second),
            ("kernels alone, MiB/s", &self.kernels_mib_per_second),
            ("**kernels' time / engine's time** (wanted 0.85)", &self.ratio),
            ("kernel copy, ns of a core's clock per chunk", &self.copy_ns),
            ("kernel BLAKE3, ns of a core's clock per chunk", &self.fingerprint_ns),
            ("kernel LZ4 of unique chunks, ns of a core's clock per chunk", &self.compress_ns),
            ("engine: thread `core`, ns of processor time per chunk", &self.core_thread_ns),
            ("engine: worker threads, ns of processor time per chunk", &self.workers_ns),
            (
                "engine: writing thread with its copy, ns of processor time per chunk",
                &self.client_thread_ns,
            ),
            ("load average when a round began", &self.load_average),
        ];
        let (written, memory) = (self.written_bytes >> 20, self.memory_bytes >> 20);
        let cores = self.cores;
        let repeating = match self.unique {
            true => "No chunk repeats another",
            false => "Half of the chunks repeat one of the last 1024 unique ones",
        };
        writeln!(
            f,
            "{written} MiB in 1-MiB requests and a flush, into a new store; {memory} MiB of \
             memory, {cores} worker threads. {repeating}; each is half random, half zeros.\n\
             The kernels run on {cores} cores at once. Median (min to max).\n\n| | |\n|---|---|"
        )?;
        rows.iter().try_for_each(|(name, samples)| writeln!(f, "| {name} | {samples} |"))?;
        writeln!(
            f,
            "\nStage by stage, ns that passed for a written chunk, whoever had the processor \
             meanwhile; jobs are those of all threads together. `tamis stats` says the same of a \
             store that is served.\n\n| | |\n|---|---|"
        )?;
        let mut stages = self.stages.iter();
        stages.try_for_each(|stage| writeln!(f, "| {} | {} |", stage.name, stage.ns))
    }
}

impl Display for Nbd {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.method(f)?;
        for (unit, heading) in [
            (Unit::MibPerSecond, "MiB/s in 1-MiB requests"),
            (Unit::ThousandsPerSecond, "thousands of writes per second"),
        ] {
            writeln!(
                f,
                "\n| {heading} | tamis | nbdkit file | raw O_DIRECT | tamis / nbdkit | \
                 tamis / raw | load |\n|---|---|---|---|---|---|---|"
            )?;
            self.rows.iter().filter(|row| row.unit == unit).try_for_each(|row| line(f, row))?;
        }
        self.beside(f)
    }
}

impl Nbd {
    fn method(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { size_bytes, seconds, memory_mib, .. } = self;
        let cold = if self.caches_dropped { "dropped" } else { "NOT dropped: no permission" };
        writeln!(
            f,
            "fio, {} MiB a sequential run, {seconds} s a random one over {} MiB; \
             buffer_compress_percentage=50, dedupe_percentage=50; server with --memory \
             {memory_mib}M. Durable: the clock runs until a final flush is answered. Before \
             reads the page cache was {cold}, and the server restarted. Each run of tamis has a \
             place of its own in the volume; nbdkit's file is in the page cache when it is \
             written over. All blocks of the disk were written before. Median (min to max); \
             ratios are taken round by round. Targets: tamis / nbdkit 0.6, random tamis / raw \
             more than 1.",
            size_bytes >> 20,
            3 * (size_bytes >> 20),
        )
    }

    fn beside(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n| tamis beside that | |\n|---|---|")?;
        let most = self.memory_mib + BESIDE_MEMORY_MIB;
        let rows = [
            ("peak RSS after sequential writes, MiB", &self.peak_mib_after_sequential),
            ("peak RSS after cold reads and random writes, MiB", &self.peak_mib_after_random),
            ("part of chunks found duplicate, sequential", &self.duplicates_sequential),
            ("part of chunks found duplicate, random", &self.duplicates_random),
        ];
        writeln!(f, "| --memory + {BESIDE_MEMORY_MIB}, MiB | {most} |")?;
        rows.iter().try_for_each(|(name, samples)| writeln!(f, "| {name} | {samples} |"))
    }
}

fn line(f: &mut Formatter<'_>, row: &Row) -> fmt::Result {
    let Row { workload, tamis, nbdkit, raw, load_average, .. } = row;
    let over = |rival: &Samples| tamis.over(rival);
    writeln!(
        f,
        "| {workload} | {tamis} | {nbdkit} | {raw} | {} | {} | {load_average} |",
        over(nbdkit),
        over(raw)
    )
}
