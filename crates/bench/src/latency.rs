//! How long clients wait: for one request at a time, beside a server that does nothing but answer
//! from memory; and at a steady rate, beside what the store does in the background.
//!
//! Requests at a rate come at random moments, so one that is slow does not keep the next from
//! coming until as many as the depth are under way. What the background may cost is a ratio: the
//! slowest hundredth of requests beside it, by that of the same store right before.

use std::path::Path;

use serde::Serialize;

use crate::args::Args;
use crate::failure::Failure;
use crate::fio::{Job, Pattern, Target, Waits};
use crate::nbdkit::Nbdkit;
use crate::samples::Samples;
use crate::served::{Mode, Tamis, VOLUME};

/// Room of the store.
const CAPACITY_BYTES: u64 = 8 << 30;
/// What the background is about: read by a scrub, moved by a collection, deleted at last.
const FILLER: &str = "filler";
/// Times the measured volume.
const FILLER_TIMES: u64 = 5;
/// Requests a second, seven reads for three writes.
const RATE: u64 = 10_000;
const RATE_DEPTH: u32 = 8;
const FILL_DEPTH: u32 = 4;

/// Something that goes on beside the clients.
struct Background {
    name: &'static str,
    /// Has it done: the words before the store's path and behind it.
    command: &'static str,
    arguments: &'static [&'static str],
    /// Whether much of what is stored is written over first.
    over_dead: bool,
}

const BACKGROUND: [Background; 4] = [
    Background { name: "scrub", command: "scrub", arguments: &[], over_dead: false },
    Background { name: "collection", command: "collect", arguments: &[], over_dead: true },
    Background {
        name: "collection that compresses anew",
        command: "collect",
        arguments: &["--recompress", "zstd:3"],
        over_dead: false,
    },
    Background {
        name: "deletion",
        command: "volume delete",
        arguments: &[FILLER],
        over_dead: false,
    },
];

/// Figures of all rounds.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Latency {
    pub(crate) rate: u64,
    pub(crate) depth: u32,
    /// One request at a time: reads of what was read before, and writes, of either server.
    pub(crate) alone: Vec<Row>,
    /// At the rate, each with the same of the quiet store before it.
    pub(crate) beside: Vec<Row>,
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
        depth: RATE_DEPTH,
        alone: rows(vec!["tamis", "nbdkit memory"]),
        beside: rows(BACKGROUND.iter().map(|one| one.name).collect()),
    };
    for round in 0..args.rounds {
        eprintln!("round {} of {}", round + 1, args.rounds);
        let server = Nbdkit::of_memory(folder, args.size_bytes())?;
        let memory = alone(args, &server.target(), round)?;
        server.stop()?;
        let tamis = tamis_round(args, folder, round, &mut figures.beside)?;
        for (side, row) in figures.alone.iter_mut().enumerate() {
            let waits = if side < 2 { tamis } else { memory };
            row.push(waits[side % 2], memory[side % 2]);
        }
    }
    Ok(figures)
}

/// One request at a time: reads, and writes.
fn alone(args: &Args, target: &Target, round: u64) -> Result<[Waits; 2], Failure> {
    let one = |pattern, number| Job { depth: 1, ..random(args, pattern, round, number) };
    one(Pattern::RandomRead, 0).run(target)?;
    let [reads, _] = one(Pattern::RandomRead, 0).run_and_wait(target)?;
    let [_, writes] = one(Pattern::RandomWrite, 1).run_and_wait(target)?;
    Ok([reads, writes])
}

fn tamis_round(
    args: &Args,
    folder: &Path,
    round: u64,
    beside: &mut [Row],
) -> Result<[Waits; 2], Failure> {
    let size_bytes = args.size_bytes();
    let store = folder.join("latency");
    let mut tamis = Tamis::make(args, store, Mode::default(), CAPACITY_BYTES, size_bytes)?;
    tamis.create_volume(VOLUME, size_bytes)?;
    tamis.create_volume(FILLER, FILLER_TIMES * size_bytes)?;
    tamis.serve()?;
    let (volume, filler) = (tamis.target(), tamis.volume(FILLER));
    let fill = |size_bytes, number| Job {
        size_bytes,
        seed: seed(round, number),
        ..Job::sequential(Pattern::Write, FILL_DEPTH)
    };
    fill(size_bytes, 2).run(&volume)?;
    fill(FILLER_TIMES * size_bytes, 3).run(&filler)?;
    let alone = alone(args, &volume, round)?;
    let mut number = 4;
    let mut at_rate = |pattern| {
        number += 1;
        Job { depth: RATE_DEPTH, ..random(args, pattern, round, number) }
    };
    at_rate(Pattern::Mixed).run_at(&volume, RATE)?;
    for (background, rows) in BACKGROUND.iter().zip(beside.chunks_mut(2)) {
        if background.over_dead {
            let size_bytes = FILLER_TIMES * size_bytes;
            Job { size_bytes, depth: 32, ..at_rate(Pattern::RandomWrite) }.run(&filler)?;
        }
        let quiet = at_rate(Pattern::Mixed).run_at(&volume, RATE)?;
        let running = tamis.beside(background.command, background.arguments)?;
        let busy = at_rate(Pattern::Mixed).run_at(&volume, RATE)?;
        drop(running);
        let sides = busy.into_iter().zip(quiet);
        rows.iter_mut().zip(sides).for_each(|(row, (busy, quiet))| row.push(busy, quiet));
    }
    tamis.remove()?;
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
