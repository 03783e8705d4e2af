//! FIDR's rows in closed form: B1 to B3, B6, B8, B9, F1, F2, F4, F6, F12, F13.

use crate::fidr::{COMPRESSION_FPGA_DOLLARS, LARGE, MEDIUM, TableSizes, hash_pbn_bytes};
use crate::fidr::{ENTRIES_PER_BUCKET, saving_percent};
use crate::row::Tolerance::{AtMost, Percent, Points};
use crate::row::{Paper, Row};
use crate::units::{Bytes, GbPerSecond};

const fn at(id: &'static str, section: &'static str) -> (Paper, &'static str, &'static str) {
    (Paper::Fidr, id, section)
}

/// Table 1, in percent of the DRAM bandwidth: NIC, prediction, FPGAs, table cache, data SSD.
const TABLE_1_WRITES: [f64; 5] = [23.6, 23.7, 25.4, 25.7, 1.7];
const TABLE_1_MIXED: [f64; 5] = [27.7, 13.9, 35.6, 15.1, 7.9];
const TABLE_CACHE_ROW: usize = 3;

/// All of them.
#[must_use]
pub fn rows() -> Vec<Row> {
    [tables(), profile(), tree(), engine(), cost()].concat()
}

fn tables() -> Vec<Row> {
    let sizes = TableSizes::of(Bytes(8 << 40), Bytes(4 << 40)).total();
    let terabyte = hash_pbn_bytes(Bytes(1_000_000_000_000)).gigabytes();
    let table = MEDIUM.cache().gigabytes() / 0.028;
    vec![
        Row::exact(
            at("B1", "2.1.3"),
            "Hash-PBN table of 1 PiB of unique chunks",
            "TiB",
            (9.5, 3),
            hash_pbn_bytes(Bytes(1 << 50)).tebibytes(),
        )
        .note("the paper writes TB"),
        Row::exact(
            at("B1b", "2.1.3"),
            "entries of 38 bytes in a bucket of 4 KiB",
            "",
            (107.0, 0),
            ENTRIES_PER_BUCKET as f64,
        )
        .note("derived from what is stated; the paper does not count"),
        Row::modelled(
            at("B2", "7.1"),
            "tables for 2 TiB of unique compressed data, half duplicate, half the size",
            "GB",
            (60.0, Percent(5.0)),
            sizes.gigabytes(),
        ),
        Row::exact(
            at("B3", "3.2"),
            "target a socket: 60% of 1 Tbps",
            "GB/s",
            (75.0, 0),
            0.6 * 1e3 / 8.0,
        ),
        Row::statement(
            at("F13", "7.1"),
            "410 MB are 2.8% of the table for 1 TB if buckets are 60 to 65% full",
            (60.0..=65.0).contains(&(100.0 * terabyte / table)),
        )
        .note("derived"),
    ]
}

fn profile() -> Vec<Row> {
    let less_than_a_gigabyte = |table: [f64; 5]| table.iter().sum::<f64>() - table[TABLE_CACHE_ROW];
    vec![
        Row::exact(
            at("B6a", "4.1"),
            "DRAM bandwidth of what needs less than 1 GB, writes",
            "%",
            (74.4, 1),
            less_than_a_gigabyte(TABLE_1_WRITES),
        ),
        Row::exact(
            at("B6b", "4.1"),
            "the same, half reads",
            "%",
            (85.1, 1),
            less_than_a_gigabyte(TABLE_1_MIXED),
        ),
        Row::exact(
            at("B8", "3.2.2"),
            "CPU of table cache (52.4) and predictor (32.7)",
            "%",
            (85.1, 1),
            52.4 + 32.7,
        )
        .note("the text has 85.2"),
        Row::exact(
            at("B9", "4.3"),
            "CPU of tree (43.9) and table-SSD access (24.7) within the table cache",
            "%",
            (68.6, 1),
            43.9 + 24.7,
        )
        .note("the text has 68.8"),
    ]
}

fn tree() -> Vec<Row> {
    vec![
        Row::exact(
            at("F1a", "Table 5"),
            "cache of the medium tree, 8 levels and leaves",
            "MiB",
            (410.0, 0),
            MEDIUM.cache().mebibytes(),
        ),
        Row::exact(
            at("F1b", "Table 5"),
            "cache of the large tree, 13 levels and leaves",
            "MiB",
            (99_645.0, 0),
            LARGE.cache().mebibytes(),
        ),
        Row::exact(
            at("F2", "Table 5"),
            "blocks of URAM of the large tree",
            "",
            (756.0, 0),
            LARGE.uram_blocks() as f64,
        ),
    ]
}

fn engine() -> Vec<Row> {
    vec![
        Row::modelled(
            at("F4", "Table 5"),
            "Write-M through a table SSD of 2 GB/s, 19% misses, fetches only",
            "GB/s",
            (10.0, Percent(6.0)),
            2.0 / 0.19,
        )
        .note("10.53, and the paper prints one digit; flushes are not counted, else it were 5.3"),
        Row::exact(
            at("F4b", "5.6"),
            "indices of 8 bytes, at 100 GB/s",
            "MB/s",
            (200.0, 0),
            (100e9 / 4000.0 * 8.0) / 1e6,
        )
        .note("200 with chunks of 4000 bytes, which 704 GB for 176 M requests have too"),
        Row::exact(
            at("F4c", "5.6"),
            "buckets fetched at 100 GB/s and 10% misses",
            "GB/s",
            (10.0, 0),
            100.0 * 0.1,
        ),
        Row::modelled(
            at("F6", "5.5.1"),
            "updates done again, 4 under way, tree of 13 levels and leaves",
            "%",
            (0.1, AtMost),
            LARGE.replayed_percent(4),
        ),
        Row::modelled(
            at("F6b", "7.4"),
            "the same, tree of 8 levels and leaves",
            "%",
            (0.1, AtMost),
            MEDIUM.replayed_percent(4),
        )
        .note(
            "all of it is leaves and their neighbours at random in a full tree; how the workloads \
             spread over buckets, and which neighbour counts, the paper leaves out",
        ),
    ]
}

fn cost() -> Vec<Row> {
    let effective = Bytes(500_000_000_000_000);
    let saved = |rate| saving_percent(effective, GbPerSecond(rate));
    vec![
        Row::modelled(
            at("F12a", "7.8"),
            "saving of cost at 25 GB/s and 500 TB",
            "%",
            (67.0, Points(2.0)),
            saved(25.0),
        )
        .fitted_on(&[&COMPRESSION_FPGA_DOLLARS]),
        Row::modelled(
            at("F12b", "7.8"),
            "the same at 75 GB/s",
            "%",
            (58.0, Points(2.0)),
            saved(75.0),
        )
        .fitted_on(&[&COMPRESSION_FPGA_DOLLARS]),
        Row::unknown(at("F12c", "Fig 16"), "bars of the cost by part, baseline and FIDR"),
    ]
}
