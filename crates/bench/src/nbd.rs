//! A client's view: fio through NBD to Tamis, beside `nbdkit file` and a raw file with `O_DIRECT`.
//!
//! In every round all contestants take turns at each job, each round beginning with another one.
//! The store is new in every round and every run writes bytes of its own, so that
//! nothing is a duplicate of an earlier run. Every contestant's blocks have been written once
//! before
//! ([`write_once`]). Two things are said of a sequential write: how fast it is acknowledged, where
//! nbdkit's page cache is at its best, and how fast it is durable, when the clock runs on until a
//! flush is answered. What an acknowledged run left behind is flushed before anybody else's turn.
//!
//! nbdkit writes over the same file again and again, and finds all of it in the page cache: a
//! virtual machine may get memory that it has not used lately from its host at a tenth of the
//! speed of memory, and a page cache that grows would measure that. Reads are cold: the server was
//! restarted, and the page cache is dropped right before each.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;

use crate::args::Args;
use crate::failure::Failure;
use crate::fio::{Job, Pattern, Target, preallocate, write_once};
use crate::machine::load_average;
use crate::nbdkit::Nbdkit;
use crate::program::output;
use crate::samples::Samples;
use crate::served::{Mode, Tamis};

const DEPTHS: [u32; 3] = [1, 4, 16];
/// Connections and the depth of each, of random writes.
const RANDOM: [(u32, u32); 3] = [(1, 32), (4, 8), (4, 32)];
/// Parts of a volume, each as large as one sequential run: durable runs, then acknowledged ones.
const PARTS: u64 = 2 * DEPTHS.len() as u64;
const SEQUENTIAL_BYTES: u64 = 1 << 20;
/// Of a random request.
pub(crate) const RANDOM_BYTES: u64 = 4096;

/// Who takes part.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Contestant {
    Tamis,
    Nbdkit,
    Raw,
}

const ALL: [Contestant; 3] = [Contestant::Tamis, Contestant::Nbdkit, Contestant::Raw];
const SERVERS: [Contestant; 2] = [Contestant::Tamis, Contestant::Nbdkit];
const DIRECT: [Contestant; 2] = [Contestant::Tamis, Contestant::Raw];

/// What a row's numbers are.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Unit {
    MibPerSecond,
    ThousandsPerSecond,
}

/// One workload; whoever took no part has no samples.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) workload: String,
    pub(crate) unit: Unit,
    pub(crate) tamis: Samples,
    pub(crate) nbdkit: Samples,
    pub(crate) raw: Samples,
    /// Of the last minute, when the first contestant's turn began.
    pub(crate) load_average: Samples,
}

/// Figures of all rounds.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Nbd {
    pub(crate) size_bytes: u64,
    pub(crate) seconds: u64,
    pub(crate) memory_mib: u64,
    pub(crate) caches_dropped: bool,
    pub(crate) rows: Vec<Row>,
    pub(crate) peak_mib_after_sequential: Samples,
    pub(crate) peak_mib_after_random: Samples,
    /// Part of the chunks that the store found to be duplicates.
    pub(crate) duplicates_sequential: Samples,
    pub(crate) duplicates_random: Samples,
}

/// One round.
struct Round<'a> {
    args: &'a Args,
    number: u64,
    figures: &'a mut Nbd,
    tamis: Tamis,
    nbdkit: Nbdkit,
    raw: PathBuf,
    runs: u64,
}

/// All rounds, in `folder`.
pub(crate) fn measure(args: &Args, folder: &Path) -> Result<Nbd, Failure> {
    let (size_bytes, memory_mib) = (args.size_bytes(), args.memory_mib);
    let mut figures = Nbd {
        size_bytes,
        memory_mib,
        seconds: args.seconds,
        caches_dropped: drop_caches(),
        ..Nbd::default()
    };
    let raw = folder.join("raw");
    let file = folder.join("nbdkit");
    for (path, size_bytes) in [(&raw, DEPTHS.len() as u64 * size_bytes), (&file, size_bytes)] {
        preallocate(path, size_bytes)?;
        write_once(path, size_bytes)?;
    }
    for number in 0..args.rounds {
        let mut round = Round {
            args,
            number,
            figures: &mut figures,
            tamis: Tamis::start(args, folder.join("tamis"), PARTS * size_bytes, Mode::default())?,
            nbdkit: Nbdkit::start(&file)?,
            raw: raw.clone(),
            runs: 0,
        };
        round.sequential()?;
        round.reads()?;
        round.random()?;
        round.tamis.remove()?;
        round.nbdkit.stop()?;
    }
    Ok(figures)
}

impl Round<'_> {
    fn sequential(&mut self) -> Result<(), Failure> {
        let whole = self.at_part(0, sequential(Pattern::Read, 16));
        whole.run(&self.nbdkit.target())?;
        for (part, depth) in (0..).zip(DEPTHS) {
            let job = self.at_part(part, sequential(Pattern::Write, depth));
            self.race(&format!("sequential write, durable, depth {depth}"), job, &ALL)?;
            let job = Job { flush: false, ..self.at_part(part + DEPTHS.len() as u64, job) };
            self.race(&format!("sequential write, acknowledged, depth {depth}"), job, &SERVERS)?;
        }
        let counted = self.tamis.counted()?;
        let duplicates = counted.duplicates as f64 / counted.chunks as f64;
        self.figures.duplicates_sequential.push(duplicates);
        self.figures.peak_mib_after_sequential.push(self.tamis.peak_mib());
        Ok(())
    }

    fn reads(&mut self) -> Result<(), Failure> {
        self.tamis.restart()?;
        for (part, depth) in (0..).zip(DEPTHS) {
            let job = self.at_part(part, sequential(Pattern::Read, depth));
            self.race(&format!("sequential read, cold, depth {depth}"), job, &ALL)?;
        }
        Ok(())
    }

    fn random(&mut self) -> Result<(), Failure> {
        let before = self.tamis.counted()?;
        for (connections, depth) in RANDOM {
            let job = Job {
                pattern: Pattern::RandomWrite,
                block_bytes: RANDOM_BYTES,
                connections,
                size_bytes: DEPTHS.len() as u64 * self.args.size_bytes(),
                seconds: self.args.seconds,
                ..sequential(Pattern::Write, depth)
            };
            let workload = format!("random 4-KiB write, durable, {connections} x depth {depth}");
            self.race(&workload, job, &DIRECT)?;
        }
        let after = self.tamis.counted()?;
        let found = after.duplicates - before.duplicates;
        self.figures.duplicates_random.push(found as f64 / (after.chunks - before.chunks) as f64);
        self.figures.peak_mib_after_random.push(self.tamis.peak_mib());
        Ok(())
    }

    fn at_part(&self, part: u64, job: Job) -> Job {
        let size_bytes = self.args.size_bytes();
        Job { offset_bytes: part * size_bytes, size_bytes, ..job }
    }

    /// Lets each of `who` do `job`; all get the same bytes.
    fn race(&mut self, workload: &str, job: Job, who: &[Contestant]) -> Result<(), Failure> {
        let load = load_average();
        self.runs += 1;
        let job = Job { seed: 1000 * (self.number + 1) + self.runs, ..job };
        for turn in 0..who.len() {
            let contestant = who[(turn + self.number as usize) % who.len()];
            let target = self.target(contestant);
            // In a store each run has a place of its own, so that none frees what another wrote.
            let offset_bytes = if contestant == Contestant::Tamis { job.offset_bytes } else { 0 };
            let job = Job { offset_bytes, ..job };
            if job.pattern == Pattern::Read {
                drop_caches();
            }
            let speed = job.run(&target)?;
            if !job.flush && job.pattern == Pattern::Write {
                settle(&target, &job)?;
            }
            let row = self.figures.row(workload, job.pattern);
            let value = match row.unit {
                Unit::MibPerSecond => speed.mib_per_second,
                Unit::ThousandsPerSecond => speed.thousands_per_second,
            };
            row.of(contestant).push(value);
        }
        self.figures.row(workload, job.pattern).load_average.push(load);
        Ok(())
    }

    fn target(&self, contestant: Contestant) -> Target {
        match contestant {
            Contestant::Tamis => self.tamis.target(),
            Contestant::Nbdkit => self.nbdkit.target(),
            Contestant::Raw => Target::direct(&self.raw),
        }
    }
}

impl Nbd {
    fn row(&mut self, workload: &str, pattern: Pattern) -> &mut Row {
        let found = self.rows.iter().position(|row| row.workload == workload);
        let place = found.unwrap_or_else(|| {
            self.rows.push(Row::new(workload, pattern));
            self.rows.len() - 1
        });
        &mut self.rows[place]
    }
}

impl Row {
    fn new(workload: &str, pattern: Pattern) -> Self {
        Self {
            workload: workload.to_owned(),
            unit: match pattern {
                _ if pattern.is_random() => Unit::ThousandsPerSecond,
                _ => Unit::MibPerSecond,
            },
            tamis: Samples::default(),
            nbdkit: Samples::default(),
            raw: Samples::default(),
            load_average: Samples::default(),
        }
    }

    fn of(&mut self, contestant: Contestant) -> &mut Samples {
        match contestant {
            Contestant::Tamis => &mut self.tamis,
            Contestant::Nbdkit => &mut self.nbdkit,
            Contestant::Raw => &mut self.raw,
        }
    }
}

/// A run of one connection; where and how long is for the caller to say.
pub(crate) fn sequential(pattern: Pattern, depth: u32) -> Job {
    Job {
        pattern,
        block_bytes: SEQUENTIAL_BYTES,
        depth,
        connections: 1,
        offset_bytes: 0,
        size_bytes: 0,
        seconds: 0,
        seed: 1,
        flush: pattern == Pattern::Write,
        flush_each: false,
        filler: false,
    }
}

/// Flushes what a run left behind: one request more, and a flush.
fn settle(target: &Target, job: &Job) -> Result<(), Failure> {
    let job = Job { size_bytes: job.block_bytes, flush: true, ..*job };
    job.run(target).map(drop)
}

/// Empties the page cache; false when that is not allowed here.
pub(crate) fn drop_caches() -> bool {
    output(&mut Command::new("sync")).is_ok()
        && std::fs::write("/proc/sys/vm/drop_caches", "3").is_ok()
}

#[cfg(test)]
mod tests {
    use super::{Contestant, Nbd, Unit};
    use crate::fio::Pattern;

    #[test]
    fn a_workload_has_one_row_over_all_rounds() {
        let mut figures = Nbd::default();
        for value in [1.0, 2.0, 4.0] {
            figures.row("reads", Pattern::Read).of(Contestant::Raw).push(value);
            figures.row("writes", Pattern::RandomWrite).of(Contestant::Tamis).push(value);
        }
        assert_eq!(figures.rows.len(), 2);
        assert_eq!(figures.rows[0].raw.median(), 2.0);
        assert_eq!(figures.rows[0].tamis.median(), 0.0);
        assert_eq!(figures.rows[1].unit, Unit::ThousandsPerSecond);
    }
}
