//! The experiments of DedupCore's report (chapter 5): throughput by state machines, worst case,
//! share of old pages, latency of small batches.

use crate::parameter::Parameter;
use crate::units::Cycles;

use super::lookup::{Dispatch, Engine, answers};
use super::table::{Request, Table};

/// What DMA brings: the report's input, and what hides every faster engine.
pub(super) static DMA_GB: Parameter =
    Parameter::stated("what DMA brings", 12.7, "GB/s", "chapter 5");
pub(super) static CLOCK_MHZ: Parameter =
    Parameter::derived("clock", 250.0, "MHz", "Coyote's usual clock; the report states none");
pub(super) static HASH_CYCLES: Parameter =
    Parameter::stated("SHA3-256 of a page", 3360.0, "cycles", "4.1.1");
const PAGE_BYTES: f64 = 4096.0;
/// Requests of a batch where throughput is measured, and free places in the worst case.
const BATCH: u64 = 16_384;
/// Where latency is.
const SMALL_BATCH: u64 = 16;
const SEED: u64 = 1;

/// What a request brings with it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A page, through DMA and the hash cores.
    Page,
    /// A fingerprint.
    Fingerprint,
}

impl Arrival {
    fn comes(self, number: u64) -> u64 {
        let page_cycles = PAGE_BYTES * CLOCK_MHZ.value / 1e3 / DMA_GB.value;
        match self {
            Self::Page => ((number + 1) as f64 * page_cycles) as u64,
            Self::Fingerprint => number,
        }
    }
}

fn gb_per_second(engine: &Engine, requests: &[Request], arrival: Arrival) -> f64 {
    let last = answers(engine, requests, |number| arrival.comes(number)).into_iter().max();
    let seconds = Cycles(last.unwrap_or(1)).microseconds(CLOCK_MHZ.value) / 1e6;
    requests.len() as f64 * PAGE_BYTES / seconds / 1e9
}

/// Old pages written to a full table.
#[must_use]
pub fn insertion_gb(machines: usize, dispatch: Dispatch) -> f64 {
    let requests = Table::filled(100, 0, SEED).writes(BATCH, 0);
    gb_per_second(&Engine { machines, filters: true, dispatch }, &requests, Arrival::Page)
}

/// Pages erased from a full table, in bytes of the pages.
#[must_use]
pub fn deletion_gb(machines: usize, dispatch: Dispatch) -> f64 {
    let requests = Table::filled(100, 0, SEED).erases(BATCH);
    gb_per_second(&Engine { machines, filters: true, dispatch }, &requests, Arrival::Fingerprint)
}

/// What is lost of what DMA brings, where this share of a hundred pages is new and the table has
/// just room for them. None are old in the worst case.
#[must_use]
pub fn worst_loss_percent(engine: &Engine, new_percent: u64) -> f64 {
    let requests = Table::filled(100, BATCH, SEED).writes(BATCH, new_percent);
    100.0 * (1.0 - gb_per_second(engine, &requests, Arrival::Page) / DMA_GB.value)
}

/// Of how many old pages in a hundred on nothing is visibly lost: less than one percent.
pub(super) fn flat_from_percent(engine: &Engine) -> f64 {
    let is_flat = |old: &u64| worst_loss_percent(engine, 100 - old) < 1.0;
    (0..=100).step_by(2).find(is_flat).unwrap_or(100) as f64
}

/// From the first of sixteen requests to the last answer, with six machines in order.
#[must_use]
pub fn latency_us(arrival: Arrival, filled_percent: u64) -> f64 {
    let engine = Engine { machines: 6, filters: true, dispatch: Dispatch::Ordered };
    let mut table = Table::filled(filled_percent, 0, SEED);
    // Many batches, since one is short: their mean.
    let batches = 64;
    let mean = |cycles: u64| Cycles(cycles / batches).microseconds(CLOCK_MHZ.value);
    let mut sum = 0;
    for _ in 0..batches {
        let (requests, hashing) = match arrival {
            Arrival::Page => (table.writes(SMALL_BATCH, 0), HASH_CYCLES.value as u64),
            Arrival::Fingerprint => (table.erases(SMALL_BATCH), 0),
        };
        let comes = |number| arrival.comes(number) + hashing;
        sum += answers(&engine, &requests, comes).into_iter().max().unwrap_or(0);
    }
    mean(sum)
}
