//! DedupCore's rows: D1, D2, D8, D9.

use crate::row::Tolerance::AtMost;
use crate::row::{Paper, Row};

use super::hashing::{
    bloom_false_percent, bloom_false_percent_poisson, hash_cycles_per_page, input_cycles_per_page,
};

const fn at(id: &'static str, section: &'static str) -> (Paper, &'static str, &'static str) {
    (Paper::DedupCore, id, section)
}

/// All of them.
#[must_use]
pub fn rows() -> Vec<Row> {
    closed_forms()
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
        Row::physical(at("D9a", "6.1"), "CLBs of the FPGA", "%", 42.3),
        Row::physical(at("D9b", "6.1"), "BRAM of the FPGA", "%", 16.3),
        Row::physical(at("D9c", "6.2"), "SHA-3 cores, of DedupCore's logic", "%", 90.0),
        Row::unknown(at("D12", "Figs 6.2, 6.4"), "bars of the resources by part"),
    ]
}
