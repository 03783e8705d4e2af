//! The choice of `auto` against a plain model, and what it does with streams of some kinds.

use std::collections::HashSet;

use format::catalog::Dedup;
use format::units::{Fingerprint, VolumeId};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{Seeking, WINDOW_CHUNKS};

const A: VolumeId = VolumeId(1);
const B: VolumeId = VolumeId(2);

fn fingerprint(content: u64) -> Fingerprint {
    let mixed = content.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    Fingerprint::padded(&(mixed ^ mixed >> 31).to_le_bytes())
}

/// A volume under `auto` before an index that holds what was looked for.
struct Stream {
    seeking: Seeking,
    index: HashSet<Fingerprint>,
    found: u64,
}

impl Stream {
    fn new() -> Self {
        let mut seeking = Seeking::default();
        seeking.set(A, Dedup::Auto);
        Self { seeking, index: HashSet::new(), found: 0 }
    }

    /// How many of these were found.
    fn write(&mut self, contents: impl Iterator<Item = u64>) -> u64 {
        let before = self.found;
        for content in contents {
            let fingerprint = fingerprint(content);
            let sought = self.seeking.seeks(A, &fingerprint);
            let duplicate = sought && !self.index.insert(fingerprint);
            self.seeking.note(A, &fingerprint, sought, duplicate);
            self.found += u64::from(duplicate);
        }
        self.found - before
    }
}

#[test]
fn where_something_repeats_nothing_is_lost() {
    let mut stream = Stream::new();
    // One in eight is the one before.
    let contents = (0..64 * WINDOW_CHUNKS).map(|at| if at % 8 == 7 { at - 1 } else { at });
    assert_eq!(stream.write(contents), 8 * WINDOW_CHUNKS);
    assert_eq!(stream.seeking.unindexed_chunks(A), 0);
}

#[test]
fn where_nothing_repeats_an_eighth_is_looked_for_until_something_does() {
    let mut stream = Stream::new();
    let fresh = 16 * WINDOW_CHUNKS;
    assert_eq!(stream.write(0..fresh), 0);
    assert!(!stream.seeking.dedup_active(A));
    let unindexed = stream.seeking.unindexed_chunks(A);
    let seven_eighths = 15 * WINDOW_CHUNKS / 8 * 7;
    assert!(unindexed.abs_diff(seven_eighths) < seven_eighths / 20, "{unindexed}");
    // The same again: a window later all are looked for, and found when they come a third time.
    stream.write(0..fresh);
    assert!(stream.seeking.dedup_active(A));
    let third = stream.write(0..fresh);
    assert!(third >= fresh - WINDOW_CHUNKS, "{third} of {fresh}");
}

#[test]
fn a_volume_is_judged_by_its_own_chunks() {
    let mut stream = Stream::new();
    stream.seeking.set(B, Dedup::Auto);
    stream.write(0..4 * WINDOW_CHUNKS);
    assert!(!stream.seeking.dedup_active(A) && stream.seeking.dedup_active(B));
    stream.seeking.set(A, Dedup::On);
    stream.seeking.set(B, Dedup::Off);
    let any = fingerprint(8);
    assert!(stream.seeking.seeks(A, &any) && !stream.seeking.seeks(B, &any));
    assert_eq!(stream.seeking.unindexed_chunks(A), 0);
}

/// The same, told plainly: the chunks so far are cut into windows, and of the last whole one with
/// judges enough the judges are counted.
fn looks_for_all(window: usize, chunks: &[(Fingerprint, bool)]) -> bool {
    let judged = chunks.chunks_exact(window).rev().find_map(|window| {
        let judges: Vec<_> = window.iter().filter(|(of, _)| of.0[0] % 8 == 0).collect();
        let duplicates = judges.iter().filter(|(_, duplicate)| *duplicate).count();
        let enough = judges.len() >= (window.len() / 64).max(1);
        enough.then_some(duplicates * 64 >= judges.len())
    });
    judged.unwrap_or(true)
}

proptest! {
    #[test]
    fn the_choice_is_that_of_the_model(
        window in 1_usize..200,
        chunks in vec((any::<u64>(), 0..40_u8), 0..1000),
    ) {
        let mut seeking = Seeking::default();
        seeking.judge_every(window as u64);
        seeking.set(A, Dedup::Auto);
        let mut seen = Vec::new();
        let mut unindexed = 0;
        for (content, rare) in chunks {
            let (fingerprint, duplicate) = (fingerprint(content), rare == 0);
            let sought = seeking.seeks(A, &fingerprint);
            let judge = fingerprint.0[0] % 8 == 0;
            prop_assert_eq!(sought, judge || looks_for_all(window, &seen));
            seeking.note(A, &fingerprint, sought, duplicate);
            seen.push((fingerprint, duplicate));
            unindexed += u64::from(!sought);
        }
        prop_assert_eq!(seeking.unindexed_chunks(A), unindexed);
    }
}
