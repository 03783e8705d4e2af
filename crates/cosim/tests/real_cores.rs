//! The whole core, with SHA3 cores that look at the bytes: four of them, as many as `COSIM_CORES`
//! said when this was compiled.

#![cfg(verilator)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use cosim::dedup::{
    Instruction, Op, Page, Rig, Settings, Stream, Verdict, check_stream, page_of, spread,
};
use cosim::{CORES, DedupCore};

/// Of one SHA3 core, from the first word of a page to its digest.
const CORE_CYCLES: f64 = 1258.0;
/// Of the bus: a beat a cycle.
const BUS_CYCLES: f64 = 64.0;

fn hashed(content: u64) -> Page {
    Page::hashed(page_of(&spread(content)))
}

const STREAM: Stream =
    Stream { operations: 300, contents: 60, writes: 9, erases: 4, swing: 0, page: hashed };

#[test]
fn a_mixed_stream_is_answered_by_the_true_digests() {
    for jitter in [false, true] {
        let settings =
            Settings { seed: 21, bucket_mask: 3, capacity: 256, jitter, ..Settings::default() };
        check_stream::<DedupCore>(settings, &STREAM, &[]);
    }
}

/// Each core has a page in work, so digests come as fast as all of them make them, or as the bus
/// brings pages.
#[test]
fn cores_take_pages_in_turn_and_none_waits_for_another() {
    let pages = 12 * u64::from(CORES);
    let settings = Settings { fsms: 8, capacity: 4096, ..Settings::default() };
    let mut rig: Rig<DedupCore> = Rig::with_table(settings, &[]);
    for content in 0..pages {
        let lba = content as u32;
        rig.instruct(Instruction { op: Op::Write, tag: 0, lba, pages: 1, digest: [0; 32] });
        rig.bring_page(hashed(content));
    }
    let answers = rig.run(pages as usize);
    assert!(answers.iter().all(|answer| answer.verdict == Verdict::New));
    let (first, last) = (&answers[0], &answers[answers.len() - 1]);
    let cycles_a_page = (last.cycle - first.cycle) as f64 / (pages - 1) as f64;
    println!("{CORES} cores, a page each {cycles_a_page:.1} cycles");
    let best = (CORE_CYCLES / f64::from(CORES)).max(BUS_CYCLES);
    assert!(cycles_a_page < 1.05 * best, "{cycles_a_page} cycles a page, {best} are possible");
}
