//! How long clients wait: for one request at a time, beside a server that does nothing but answer
//! from memory; and at a steady rate, beside what the store does in the background.
//!
//! Requests at a rate come at random moments, whatever became of those before (`steady.rs`). What
//! the background may cost is a ratio: the slowest hundredth of requests beside it, by that of the
//! same store right before. A round in which the background ended before the requests did has
//! measured a quiet store, and has no part in that: it is noted instead.

use std::path::Path;

use serde::Serialize;

use crate::args::Args;
use crate::failure::Failure;
use crate::fio::{Job, Pattern, Target, Waits};
use crate::nbdkit::Nbdkit;
use crate::samples::Samples;
use crate::served::{Mode, Tamis, VOLUME};
use crate::steady::Steady;

/// What the background is about: read by a scrub, moved by a collection.
const FILLER: &str = "filler";
/// Times the measured volume.
const FILLER_TIMES: u64 = 5;
/// What is deleted: chunks that repeat nothing.
const DOOMED: &str = "doomed";
/// Of that, and how long requests come beside its deletion: beside requests a store gives back more
/// than 10 GiB of it in a second, and nothing goes on when it is over.
const DOOMED_BYTES: u64 = 32 << 30;
const DOOMED_SECONDS: u64 = 1;
/// Room of the store: an eighth of what is deleted is stored.
const CAPACITY_BYTES: u64 = (8 << 30) + DOOMED_BYTES / 4;
/// Requests a second, seven reads for three writes.
const RATE: u64 = 10_000;
const FILL_DEPTH: u32 = 4;

/// Something that goes on beside the clients.
struct Background {
    name: &'static str,
    /// Has it done: the words before the store's path and behind it.
    command: &'static str,
    arguments: &'static [&'static str],
    /// What is written right before.
    before: Before,
    /// What says that it goes on.
    goes_on: GoesOn,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Before {
    Nothing,
    /// Much of what is stored, once more: so it is dead.
    OverDead,
    /// What will be deleted.
    Doomed,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum GoesOn {
    /// The program runs until it is done.
    Program,
    /// The program has only asked for it.
    Deletion,
}

const BACKGROUND: [Background; 4] = [
    Background {
        name: "scrub",
        command: "scrub",
        arguments: &[],
        before: Before::Nothing,
        goes_on: GoesOn::Program,
    },
    Background {
        name: "collection",
        command: "collect",
        arguments: &[],
        before: Before::OverDead,
        goes_on: GoesOn::Program,
    },
    Background {
        name: "collection that compresses anew",
        command: "collect",
        arguments: &["--recompress", "zstd:3"],
        before: Before::Nothing,
        goes_on: GoesOn::Program,
    },
    Background {
        name: "deletion",
        command: "volume delete",
        arguments: &[DOOMED],
        before: Before::Doomed,
        goes_on: GoesOn::Deletion,
    },
];

/// Figures of all rounds.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Latency {
    pub(crate) rate: u64,
    /// One request at a time: reads of what was read before, and writes, of either server.
    pub(crate) alone: Vec<Row>,
    /// At the rate, each with the same of the quiet store before it.
    pub(crate) beside: Vec<Row>,
    /// What ended before the requests beside it did, and in which round.
    pub(crate) ended_early: Vec<String>,
}

/// How long requests took, in one way.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) half_us: Samples,
    pub(crate) hundredth_us: Samples,
    pub(crate) thousandth_us: Samples,
    pub(crate) slowest_us: Samples,
    /// The slowest hundredth of what it is compared with.
    pub(crate) compared_us: Samples,
}

impl Row {
    fn new(name: String) -> Self {
        Self { name, ..Self::default() }
    }

    fn push(&mut self, waits: Waits, compared: Waits) {
        self.half_us.push(waits.half_us);
        self.hundredth_us.push(waits.hundredth_us);
        self.thousandth_us.push(waits.thousandth_us);
        self.slowest_us.push(waits.slowest_us);
        self.compared_us.push(compared.hundredth_us);
    }
}

/// All rounds, in `folder`.
pub(crate) fn measure(args: &Args, folder: &Path) -> Result<Latency, Failure> {
    let both = |name: &str| [format!("read, {name}"), format!("write, {name}")];
    let rows = |names: Vec<&str>| names.into_iter().flat_map(both).map(Row::new).collect();
    let mut figures = Latency {
        rate: RATE,
        alone: rows(vec!["tamis", "nbdkit memory"]),
        beside: rows(BACKGROUND.iter().map(|one| one.name).collect()),
        ended_early: Vec::new(),
    };
    for round in 0..args.rounds {
        eprintln!("round {} of {}", round + 1, args.rounds);
        let server = Nbdkit::of_memory(folder, args.size_bytes())?;
        let memory = alone(args, &server.target(), round)?;
        server.stop()?;
        let tamis = tamis_round(args, folder, round, &mut figures)?;
        for (side, row) in figures.alone.iter_mut().enumerate() {
            let waits = if side < 2 { tamis } else { memory };
            row.push(waits[side % 2], memory[side % 2]);
        }
    }
    Ok(figures)
}

/// One request at a time: reads of what was read right before, and writes.
fn alone(args: &Args, target: &Target, round: u64) -> Result<[Waits; 2], Failure> {
    let one = |pattern, number| Job { depth: 1, ..random(args, pattern, round, number) };
    let read = one(Pattern::RandomRead, 0);
    let warmed_bytes = (read.run(target)?.gb * 1e9).round() as u64;
    // The second goes the same way, and is faster.
    let [reads, _] = Job { bytes_max: Some(warmed_bytes), ..read }.run_and_wait(target)?;
    let [_, writes] = one(Pattern::RandomWrite, 1).run_and_wait(target)?;
    Ok([reads, writes])
}

/// Tamis's store of one round.
struct Round<'a> {
    args: &'a Args,
    tamis: Tamis,
    round: u64,
    /// Of the jobs so far.
    jobs: u64,
}

impl<'a> Round<'a> {
    /// A store whose volumes are written, but for what will be deleted.
    fn begin(args: &'a Args, folder: &Path, round: u64) -> Result<Self, Failure> {
        let (size_bytes, store) = (args.size_bytes(), folder.join("latency"));
        let mut tamis = Tamis::make(args, store, Mode::default(), CAPACITY_BYTES, size_bytes)?;
        tamis.create_volume(VOLUME, size_bytes)?;
        tamis.create_volume(FILLER, FILLER_TIMES * size_bytes)?;
        tamis.create_volume(DOOMED, DOOMED_BYTES)?;
        tamis.serve()?;
        let mut begun = Self { args, tamis, round, jobs: 2 };
        begun.fill(size_bytes).run(&begun.tamis.target())?;
        begun.fill(FILLER_TIMES * size_bytes).run(&begun.tamis.volume(FILLER))?;
        Ok(begun)
    }

    /// Both sides of a background, or nothing when it ended before its requests did.
    fn beside(&mut self, background: &Background) -> Result<Option<[[Waits; 2]; 2]>, Failure> {
        self.prepare(background.before)?;
        let seconds = match background.goes_on {
            GoesOn::Program => self.args.seconds,
            GoesOn::Deletion => DOOMED_SECONDS,
        };
        let quiet = self.steadily(seconds)?;
        let running = self.tamis.beside(background.command, background.arguments)?;
        let busy = self.steadily(seconds)?;
        let runs = running.end()?;
        let goes_on = match background.goes_on {
            GoesOn::Program => runs,
            GoesOn::Deletion => self.tamis.figure("deletions")? > 0.0,
        };
        Ok(goes_on.then_some([busy, quiet]))
    }

    fn prepare(&mut self, before: Before) -> Result<(), Failure> {
        match before {
            Before::Nothing => Ok(()),
            Before::OverDead => {
                let over = random(self.args, Pattern::RandomWrite, self.round, self.number());
                let size_bytes = FILLER_TIMES * self.args.size_bytes();
                let over = Job { size_bytes, depth: 32, ..over };
                over.run(&self.tamis.volume(FILLER)).map(drop)
            }
            Before::Doomed => {
                let doomed = Job { filler: true, ..self.fill(DOOMED_BYTES) };
                doomed.run(&self.tamis.volume(DOOMED)).map(drop)
            }
        }
    }

    fn steadily(&mut self, seconds: u64) -> Result<[Waits; 2], Failure> {
        let size_bytes = self.args.size_bytes();
        let seed = seed(self.round, self.number());
        Steady { rate: RATE, seconds, size_bytes, seed }.run(&self.tamis.socket(), VOLUME)
    }

    fn fill(&mut self, size_bytes: u64) -> Job {
        let seed = seed(self.round, self.number());
        Job { size_bytes, seed, ..Job::sequential(Pattern::Write, FILL_DEPTH) }
    }

    fn number(&mut self) -> u64 {
        self.jobs += 1;
        self.jobs
    }
}

fn tamis_round(
    args: &Args,
    folder: &Path,
    round: u64,
    figures: &mut Latency,
) -> Result<[Waits; 2], Failure> {
    let mut begun = Round::begin(args, folder, round)?;
    let alone = alone(args, &begun.tamis.target(), round)?;
    begun.steadily(args.seconds)?;
    for (background, rows) in BACKGROUND.iter().zip(figures.beside.chunks_mut(2)) {
        match begun.beside(background)? {
            Some([busy, quiet]) => {
                let sides = busy.into_iter().zip(quiet);
                rows.iter_mut().zip(sides).for_each(|(row, (busy, quiet))| row.push(busy, quiet));
            }
            None => figures.ended_early.push(format!("{}, round {}", background.name, round + 1)),
        }
    }
    begun.tamis.remove()?;
    Ok(alone)
}

/// Random requests within the measured volume.
fn random(args: &Args, pattern: Pattern, round: u64, number: u64) -> Job {
    Job {
        size_bytes: args.size_bytes(),
        seconds: args.seconds,
        seed: seed(round, number),
        flush: false,
        ..Job::random(pattern, 1)
    }
}

/// Unlike every other: the bytes must be new to the store.
fn seed(round: u64, number: u64) -> u64 {
    700_000 + 1000 * (round + 1) + number
}
