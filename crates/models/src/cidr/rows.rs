//! The rows of CAL'17 and CIDR.

use traces::{Workload, WorkloadKind};

use crate::flash::{BURST_MEAN, Original, Trace};
use crate::row::Tolerance::{AtLeast, Points};
use crate::row::{Paper, Row};

use super::devices::{found_by_law, found_on_devices};
use super::fpga::{Mix, WORST_CASE, utilisation_percent};
use super::large_chunks::{BlockIo, large_chunk_io, small_chunk_io};
use super::predictor::predict;
use super::scheduler::{made_loads, rounds};

/// Of each trace and workload.
pub(super) const REQUESTS: u64 = 40_000;
pub(super) const SEED: u64 = 1;
const MAIL: Original = Original::TRACES[2];
const WEB_VM: Original = Original::TRACES[1];

/// All of them.
#[must_use]
pub fn rows() -> Vec<Row> {
    [cal(), large_chunks(), ideas(), measured()].concat()
}

/// What chunks of 32 KiB cost where the made Mail writes single blocks.
#[must_use]
pub fn mail_io() -> BlockIo {
    large_chunk_io(&made(&single(MAIL)))
}

/// What they cost where the made Web-vm does.
#[must_use]
pub fn web_vm_io() -> BlockIo {
    large_chunk_io(&made(&single(WEB_VM)))
}

fn single(original: Original) -> Original {
    Original { run_mean: 1, ..original }
}

/// Blocks that chunks of 32 KiB move, for each block that a client writes.
pub(super) fn amplification(original: &Original) -> f64 {
    let io = large_chunk_io(&made(original));
    io.total() as f64 / io.asked.max(1) as f64
}

fn made(original: &Original) -> Trace {
    original.make(REQUESTS, BURST_MEAN, SEED)
}

fn cal() -> Vec<Row> {
    let at = |id| (Paper::Cal, id, "talk");
    let falls = |original: &Original| {
        let trace = made(original);
        let found = [1, 2, 4, 8, 16].map(|devices| found_on_devices(&trace, devices));
        found.windows(2).all(|pair| pair[1] < pair[0])
    };
    let law = |original: &Original| {
        let trace = made(original);
        let off = |devices| found_by_law(&trace, devices) - found_on_devices(&trace, devices);
        [1, 2, 4, 8, 16].map(off).into_iter().fold(0.0, |most: f64, off| most.max(off.abs()))
    };
    vec![
        Row::modelled(at("C1"), "CPU saved at 4.5 GB/s", "%", (92.0, Points(10.0)), 90.0)
            .note("hashing and metadata are 90% of the CPU (talk), and leave the host"),
        Row::physical(at("C2"), "chip power saved at 4.5 GB/s", "%", 40.0),
        Row::statement(
            at("C3a"),
            "the more devices deduplicate for themselves, the fewer duplicates: made Mail",
            falls(&MAIL),
        ),
        Row::statement(at("C3b"), "the same: made Web-vm", falls(&WEB_VM)),
        Row::statement(
            at("C3c"),
            "a law says what 1 to 16 devices find, to 1.5 points: made Mail",
            law(&MAIL) <= 1.5,
        )
        .note("our law, beside our count: k - N (1 - (1 - 1/N)^k) of k writes of a content"),
        Row::statement(at("C3d"), "the same: made Web-vm", law(&WEB_VM) <= 1.5),
        Row::unknown(at("C4"), "duplicates found by number of SSDs"),
    ]
}

fn large_chunks() -> Vec<Row> {
    let at = |id| (Paper::Cidr, id, "FIDR 3.1");
    let (mail, web_vm) = (made(&single(MAIL)), made(&single(WEB_VM)));
    let beside_small =
        |trace: &Trace| large_chunk_io(trace).total() as f64 / small_chunk_io(trace).total() as f64;
    vec![
        Row::physical(at("R0"), "I/O with chunks of 32 KiB beside 4 KiB, at most", "x", 17.5).note(
            "on FIU's traces, of which this project has no copy; for a block that a client writes \
             ours moves 15 at most, 7 and 8",
        ),
        Row::statement(
            at("R1"),
            "ten times the I/O of 4 KiB, where single blocks are written: made Mail",
            beside_small(&mail) >= 10.0,
        ),
        Row::statement(at("R2"), "the same: made Web-vm", beside_small(&web_vm) >= 10.0),
        Row::statement(
            at("R3"),
            "longer runs of blocks need less of it",
            [1, 2, 4, 8, 32]
                .map(|run_mean| amplification(&Original { run_mean, ..MAIL }))
                .windows(2)
                .all(|pair| pair[1] < pair[0]),
        ),
        Row::unknown(at("R4"), "bars of Figure 3 for each trace"),
    ]
}

fn ideas() -> Vec<Row> {
    let at = |id| (Paper::Cidr, id, "talk");
    let mixes = [Mix::of(1.0, 0.12), Mix::of(1.0, 0.57), Mix::of(0.5, 0.5)];
    let gains =
        |mix: &Mix| utilisation_percent(mix, mix) > 1.19 * utilisation_percent(&WORST_CASE, mix);
    let mixed = Mix::of(0.5, 0.5);
    let loads = made_loads(&mixed, 512, 64, SEED);
    let guesses = |kind| {
        let workload = Workload::new(kind, REQUESTS, SEED);
        let half = workload.unique_chunks() / 4;
        let (with, without) = (predict(&workload, half), predict(&workload, 1));
        with.in_vain < without.in_vain / 2 && with.right_ratio() > without.right_ratio()
    };
    vec![
        Row::statement(
            at("I1"),
            "FPGAs laid out for each of three mixes do a fifth more than for the worst case",
            mixes.iter().all(gains),
        ),
        Row::statement(
            at("I2"),
            "requests put off by eight slots at most take fewer rounds of the device",
            rounds(&mixed, &loads, 8) < 0.95 * rounds(&mixed, &loads, 1),
        ),
        Row::statement(
            at("I3"),
            "guessing halves what is compressed in vain: Write-H, samples of a quarter",
            guesses(WorkloadKind::WriteH),
        ),
        Row::unknown(at("I4"), "the predictor's algorithm and its hits; the scheduler's rule"),
    ]
}

fn measured() -> Vec<Row> {
    let at = |id, section| (Paper::Cidr, id, section);
    vec![
        Row::modelled(
            at("T1", "FIDR 1"),
            "two FPGAs, from 12.8 GB/s of one",
            "GB/s",
            (20.0, AtLeast),
            2.0 * 12.8,
        ),
        Row::physical(at("T2", "abstract"), "one FPGA", "GB/s", 12.8),
        Row::physical(at("T3", "abstract"), "beside software, writes", "x", 2.47),
        Row::physical(at("T4", "abstract"), "beside software, half reads, expected", "x", 3.2),
        Row::physical(at("T5", "talk"), "cost of storage saved, the whole thesis", "%", 59.3),
    ]
}
