//! DedupCore against a plain map: every verdict, count and index, and at the end the table in
//! memory, the pages of the device and the number of free indices. And its known faults, each of
//! which one of the streams finds.

#![cfg(verilator)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::panic::catch_unwind;

use cosim::StubbedDedup;
use cosim::dedup::{Digest, Page, Settings, Stream, alike, check_stream, crowded, spread};

/// Of `rtl/dedup_core/mutants.svh`: places where `MUTANT(n)` stands.
const MUTANTS: u8 = 14;

fn check(settings: Settings, stream: &Stream, table: &[(Digest, u32)]) {
    check_stream::<StubbedDedup>(settings, stream, table);
}

fn small(seed: u64) -> Settings {
    Settings { seed, bucket_mask: 3, capacity: 4096, jitter: true, ..Settings::default() }
}

const MIXED: Stream =
    Stream { operations: 1500, contents: 200, writes: 8, erases: 5, swing: 0, page: spread_page };

/// Writes and erasures in turn, so that indices go to memory and come back.
const SWINGING: Stream = Stream {
    operations: 2000,
    contents: 600,
    writes: 1,
    erases: 14,
    swing: 1000,
    page: spread_page,
};

fn spread_page(content: u64) -> Page {
    Page::told(spread(content))
}

fn alike_page(content: u64) -> Page {
    Page::told(alike(content))
}

fn crowded_page(content: u64) -> Page {
    Page::told(crowded(content))
}

/// Pages that are there before the stream of [`SWINGING`] begins.
fn full_table() -> Vec<(Digest, u32)> {
    (0..600).map(|content| (spread(content), 1)).collect()
}

#[test]
fn a_mixed_stream_in_few_buckets() {
    check(small(1), &MIXED, &[]);
}

#[test]
fn without_filters_and_one_fsm_after_the_other() {
    check(Settings { bloom: false, ready: false, ..small(2) }, &MIXED, &[]);
}

#[test]
fn without_pauses_and_with_every_number_of_fsms() {
    for fsms in [1, 2, 3, 8] {
        let stream = Stream { operations: 400, ..MIXED };
        check(Settings { fsms, jitter: false, ..small(3) }, &stream, &[]);
    }
}

#[test]
fn pages_that_all_filters_know_in_one_bucket() {
    let stream = Stream { contents: 24, page: alike_page, ..MIXED };
    check(small(4), &stream, &[]);
}

#[test]
fn filters_are_made_anew_as_pages_come_and_go() {
    let stream = Stream { contents: 40, writes: 7, erases: 8, page: crowded_page, ..MIXED };
    check(small(5), &stream, &[]);
}

#[test]
fn counts_that_saturate_stay() {
    let stream = Stream { contents: 10, ..MIXED };
    check(Settings { count_max: 3, ..small(6) }, &stream, &[]);
}

#[test]
fn a_full_table_says_so_exactly_and_takes_pages_again() {
    let stream = Stream { contents: 60, writes: 9, erases: 6, ..MIXED };
    check(Settings { capacity: 40, ..small(7) }, &stream, &[]);
}

#[test]
fn many_indices_come_back_through_memory() {
    let table = full_table();
    let settings = Settings { bucket_mask: 127, capacity: 700, ..small(8) };
    check(settings, &SWINGING, &table);
    let stream = Stream { operations: 3000, writes: 7, erases: 8, swing: 500, ..SWINGING };
    check(Settings { seed: 9, ..settings }, &stream, &table);
}

/// The streams of this file, short, with a fault.
fn all_with(mutant: u8) {
    let with = |settings: Settings| Settings { mutant, ..settings };
    let short = Stream { operations: 600, ..MIXED };
    check(with(small(1)), &short, &[]);
    check(with(small(4)), &Stream { contents: 24, page: alike_page, ..short }, &[]);
    let stream = Stream { contents: 40, writes: 7, erases: 8, page: crowded_page, ..short };
    check(with(small(5)), &stream, &[]);
    check(with(Settings { count_max: 3, ..small(6) }), &Stream { contents: 10, ..short }, &[]);
    check(with(Settings { capacity: 40, ..small(7) }), &Stream { contents: 60, ..short }, &[]);
    let settings = Settings { bucket_mask: 127, capacity: 700, ..small(9) };
    check(with(settings), &SWINGING, &full_table());
}

#[test]
fn every_known_fault_is_found_and_none_is_found_without_one() {
    all_with(0);
    let missed: Vec<u8> =
        (1..=MUTANTS).filter(|mutant| catch_unwind(|| all_with(*mutant)).is_ok()).collect();
    assert_eq!(missed, [], "faults that no stream finds");
}
