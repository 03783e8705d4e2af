//! DedupCore's rows: D1 to D9.

use crate::parameter::Parameter;
use crate::row::Tolerance::{AtMost, Percent, Points};
use crate::row::{Paper, Row};

use super::hashing::{
    bloom_false_percent, bloom_false_percent_poisson, hash_cycles_per_page, input_cycles_per_page,
};
use super::lookup::{self, Dispatch, Engine};
use super::study::{
    self, Arrival, deletion_gb, flat_from_percent, insertion_gb, latency_us, worst_loss_percent,
};

/// What the model of events is given.
pub static PARAMETERS: [&Parameter; 8] = [
    &lookup::STEP,
    &lookup::FOUND,
    &lookup::NEW,
    &lookup::WAITING,
    &lookup::ANSWERED,
    &study::DMA_GB,
    &study::CLOCK_MHZ,
    &study::HASH_CYCLES,
];
static FITS: [&Parameter; 5] =
    [&lookup::STEP, &lookup::FOUND, &lookup::NEW, &lookup::WAITING, &lookup::ANSWERED];

const fn at(id: &'static str, section: &'static str) -> (Paper, &'static str, &'static str) {
    (Paper::DedupCore, id, section)
}

/// All of them.
#[must_use]
pub fn rows() -> Vec<Row> {
    [closed_forms(), machines(), worst_case(), latency(), resources()].concat()
}

fn closed_forms() -> Vec<Row> {
    let (hash, input) = (hash_cycles_per_page(), input_cycles_per_page());
    vec![
        Row::exact(
            at("D1", "4.1.1"),
            "blocks of 136 bytes that SHA3-256 of a page takes, with padding",
            "",
            (31.0, 0),
            f64::from(4096_u32.div_ceil(136)),
        )
        .note("3360 cycles a page are 108.4 a block; derived"),
        Row::exact(at("D2a", "4.1.1"), "cycles in which a page comes in", "", (64.0, 0), input),
        Row::exact(at("D2b", "4.1.1"), "cycles in which 64 cores hash a page", "", (52.5, 1), hash),
        Row::statement(at("D2c", "4.1.1"), "hashing is never the bottleneck", hash < input),
        Row::exact(
            at("D8a", "4.1.4"),
            "new pages that the filter of a bucket with 8 entries takes for known",
            "%",
            (15.2, 1),
            bloom_false_percent(8),
        )
        .note("derived from 32 bits and 3 functions; the paper states none"),
        Row::exact(
            at("D8b", "4.1.4"),
            "the same where the entries of a bucket are Poisson's with mean 8",
            "%",
            (16.2, 1),
            bloom_false_percent_poisson(8.0),
        )
        .note("derived"),
        Row::exact(
            at("D10", "4.1.4"),
            "free list, of the DRAM",
            "%",
            (6.0, 0),
            100.0 * 32.0 / 512.0,
        ),
        Row::modelled(
            at("D11", "4.1.1"),
            "pages of a store of 2^25 buckets with 8 entries, in TiB",
            "TiB",
            (1.0, AtMost),
            (1_u64 << 28) as f64 * 4096.0 / (1_u64 << 40) as f64,
        )
        .note("derived"),
    ]
}

fn machines() -> Vec<Row> {
    let writes = |machines| insertion_gb(machines, Dispatch::Ordered);
    let erases = |machines| deletion_gb(machines, Dispatch::Ordered);
    let is_full = |machines| writes(machines) > 0.99 * study::DMA_GB.value;
    let statement =
        |id, what, holds| Row::statement(at(id, "5.2"), what, holds).predicted_with(&FITS);
    vec![
        Row::modelled(
            at("D3", "5.2"),
            "old pages, full table, six machines",
            "GB/s",
            (12.7, Percent(2.0)),
            writes(6),
        )
        .predicted_with(&FITS)
        .note("what DMA brings is given"),
        statement("D4a", "four machines are too few for writes", !is_full(4)).fitted_on(&FITS),
        statement("D4b", "six are enough, eight give writes nothing", is_full(6) && is_full(8))
            .fitted_on(&FITS),
        statement(
            "D4c",
            "more machines, more erases; erases are faster than writes",
            erases(4) < erases(6) && erases(6) < erases(8) && erases(6) > writes(6),
        ),
    ]
}

fn worst_case() -> Vec<Row> {
    let engine = |machines, filters| Engine { machines, filters, dispatch: Dispatch::Ordered };
    let loss = |id, what, stated, machines, filters| {
        let ours = worst_loss_percent(&engine(machines, filters), 100);
        Row::modelled(at(id, "5.4"), what, "%", (stated, Points(3.0)), ours)
    };
    let flat = |id, what, stated, filters| {
        let ours = flat_from_percent(&engine(6, filters));
        Row::modelled(at(id, "5.5"), what, "%", (stated, Points(10.0)), ours).fitted_on(&FITS)
    };
    let is_flat = |old: u64| worst_loss_percent(&engine(8, false), 100 - old) < 1.0;
    vec![
        loss("D5a", "lost in the worst case, six machines, no filter", 20.0, 6, false)
            .fitted_on(&FITS),
        loss("D5b", "six, filters", 4.0, 6, true).fitted_on(&FITS),
        loss("D5c", "eight, no filter", 0.0, 8, false).predicted_with(&FITS),
        flat("D6a", "old pages from which on nothing is lost, six, no filter", 60.0, false)
            .note("less than one percent lost; the report reads it off a curve"),
        flat("D6b", "the same, six, filters", 40.0, true),
        Row::statement(
            at("D6c", "5.5"),
            "eight lose nothing however many pages are old",
            [0, 20, 40, 60, 80, 100].into_iter().all(is_flat),
        )
        .predicted_with(&FITS),
    ]
}

fn latency() -> Vec<Row> {
    let (write, erase) = (latency_us(Arrival::Page, 100), latency_us(Arrival::Fingerprint, 100));
    let row = |id, what, stated, ours| {
        Row::modelled(at(id, "5.3"), what, "us", stated, ours).predicted_with(&FITS)
    };
    vec![
        row("D7a", "sixteen writes, at most", (30.0, AtMost), write)
            .note("the way over PCIe is not modelled"),
        row("D7b", "sixteen erases, at most", (15.0, AtMost), erase),
        row("D7c", "writes take longer by", (15.0, Percent(20.0)), write - erase),
        Row::statement(
            at("D7d", "5.3"),
            "a fuller table takes longer",
            latency_us(Arrival::Fingerprint, 25) < erase && latency_us(Arrival::Page, 25) < write,
        )
        .predicted_with(&FITS),
    ]
}

fn resources() -> Vec<Row> {
    vec![
        Row::physical(at("D9a", "6.1"), "CLBs of the FPGA", "%", 42.3),
        Row::physical(at("D9b", "6.1"), "BRAM of the FPGA", "%", 16.3),
        Row::physical(at("D9c", "6.2"), "SHA-3 cores, of DedupCore's logic", "%", 90.0),
        Row::unknown(at("D12", "Figs 6.2, 6.4"), "bars of the resources by part"),
    ]
}
