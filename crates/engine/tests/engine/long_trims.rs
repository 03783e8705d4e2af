//! Trims of many leaves beside a checkpoint that takes long.

use engine::{Caches, OpenVolume, Zone};

use crate::stand::{CHUNK, Hand, Holder, MIB, Wish, check_clean, packed};

const LEAF_BYTES: u64 = 677 * CHUNK;

/// Beside more than 96 dirty pages no version is copied.
const CACHE: Caches = Caches {
    pages: 256,
    dirty_pages_max: 192,
    young_max: 10_000,
    directory_entries: 0,
    frame_bytes: MIB,
    lends: false,
};

/// Writes a chunk to each of these leaves.
fn fill(hand: &mut Hand, volume: &OpenVolume, leaves: std::ops::Range<u64>) {
    for leaf in leaves {
        hand.write(volume, leaf * LEAF_BYTES, &packed(leaf));
    }
    let flush = hand.flush();
    hand.wait(flush).unwrap();
}

#[test]
fn a_long_trim_does_not_wait_for_a_checkpoint_to_end() {
    let wish = Wish { cache: Some(CACHE), ..Wish::default() };
    let (mut hand, held) = Holder::open(&wish, wish.disk());
    let volume = hand.volume("v", 200 * LEAF_BYTES);
    fill(&mut hand, &volume, 0..110);
    held.hold_writes(Zone::Tables);
    // Where none is under way it is begun at once.
    hand.trim(&volume, 0, 40 * LEAF_BYTES);
    fill(&mut hand, &volume, 50..160);
    assert!(held.count() > 0, "no checkpoint is under way");
    hand.trim(&volume, 100 * LEAF_BYTES + CHUNK / 2, 50 * LEAF_BYTES);
    let flush = hand.flush();
    hand.wait(flush).unwrap();
    held.let_go();
    let mut begins = |leaf: u64| hand.read(&volume, leaf * LEAF_BYTES, CHUNK as u32);
    let is_there: Vec<bool> = (0..160).map(|leaf| begins(leaf) == packed(leaf)).collect();
    let kept: Vec<u64> = (0..160).filter(|&leaf| is_there[leaf as usize]).collect();
    assert!(kept.iter().copied().eq((40..100).chain(151..160)), "{kept:?}");
    drop(volume);
    check_clean(&hand.close());
}
