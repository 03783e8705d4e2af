//! What a volume is said to weigh is what comes back when it is deleted, to the byte.

use std::collections::{BTreeMap, BTreeSet};

use engine::{OpenVolume, SnapshotRequest, Tally, VolumeWeight, Weighing};

use crate::stand::{CHUNK, Dice, MIB, Opens, Stand, Wish, cases, check_clean, fresh, packed};

use proptest::prelude::*;

const LEAF_CHUNKS: u64 = 677;

fn snap(stand: &Stand, volume: &str, name: &str) {
    let (volumes, name) = (vec![volume.to_owned()], name.to_owned());
    stand.client.ask(SnapshotRequest { volumes, name, taken_unix_s: 7 }).unwrap();
}

fn weigh(stand: &Stand, volume: &str, counted_max: usize) -> VolumeWeight {
    let mut weighing = Weighing::with_counted_max(volume, counted_max);
    while let Some(request) = weighing.request() {
        assert!(weighing.add(stand.client.ask(request).unwrap()));
    }
    weighing.weight()
}

fn settled(stand: &Stand) {
    stand.wait_until("the end of all deletions", |stats| stats.deletions == 0);
}

/// Stored chunks and their frames.
fn stored(stand: &Stand) -> Tally {
    let stats = stand.stats();
    Tally { chunks: stats.unique_chunks, frame_bytes: stats.stored_bytes }
}

fn open(stand: &Stand, name: &str) -> OpenVolume {
    stand.client.volume(name).unwrap()
}

#[test]
fn every_figure_is_told() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", 16 * MIB);
    let other = stand.volume("w", MIB);
    // Five chunks of its own, one of them three times; two shared, one of them twice here.
    for lba in 0..4 {
        stand.write(&volume, lba * CHUNK, &packed(lba));
    }
    for lba in [10, 700, 2000] {
        stand.write(&volume, lba * CHUNK, &packed(50));
    }
    for lba in [20, 21] {
        stand.write(&volume, lba * CHUNK, &packed(60));
    }
    stand.write(&volume, 22 * CHUNK, &packed(61));
    stand.write(&other, 0, &packed(60));
    stand.write(&other, CHUNK, &packed(61));
    let weight = weigh(&stand, "v", 1000);
    let told = |tally: Tally| tally.chunks;
    assert_eq!((weight.size_bytes, weight.mapped_bytes), (16 * MIB, 10 * CHUNK));
    assert_eq!((told(weight.chunks), told(weight.unique), told(weight.shared)), (7, 5, 2));
    assert_eq!((weight.given_back, weight.held), (weight.unique, false));
    assert!(weight.compression_ratio > 1.5, "{weight:?}");
    let plain_bytes = (7 * CHUNK) as f64;
    let ratio = plain_bytes / weight.chunks.frame_bytes as f64;
    assert!((weight.compression_ratio - ratio).abs() < 1e-9);
    let class = |from| *weight.references.iter().find(|class| class.from == from).unwrap();
    assert_eq!((class(1).chunks, class(1).mapped), (4, 4));
    assert_eq!((class(2).chunks, class(2).mapped), (1, 1));
    assert_eq!((class(3).to, class(3).chunks, class(3).mapped), (Some(4), 2, 5));
    assert_eq!((class(1001).to, class(1001).chunks), (None, 0));
    let before = stored(&stand);
    stand.client.delete_volume("v").unwrap();
    settled(&stand);
    let after = stored(&stand);
    let given_back = Tally {
        chunks: before.chunks - after.chunks,
        frame_bytes: before.frame_bytes - after.frame_bytes,
    };
    assert_eq!(given_back, weight.given_back);
    check_clean(&stand.close());
}

#[test]
fn a_snapshot_of_which_several_clones_are_left_gives_nothing_back() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", MIB);
    stand.write(&volume, 0, &fresh(1, 2 * CHUNK));
    snap(&stand, "v", "a");
    stand.write(&volume, 0, &fresh(2, 2 * CHUNK));
    for clone in ["c", "d"] {
        stand.client.clone_volume("v@a", clone).unwrap();
        stand.write(&open(&stand, clone), 0, &fresh(3, CHUNK));
    }
    let weight = weigh(&stand, "v@a", 1000);
    assert_eq!((weight.unique.chunks, weight.held), (1, true), "{weight:?}");
    assert_eq!((weight.given_back, weight.shared.chunks), (Tally::default(), 1));
    stand.close();
}

const VOLUME_CHUNKS: u64 = 2 * LEAF_CHUNKS;

fn change(stand: &Stand, name: &str, dice: &mut Dice) {
    let volume = open(stand, name);
    let first = dice.below(VOLUME_CHUNKS);
    let count = (1 + dice.below(20)).min(VOLUME_CHUNKS - first);
    match dice.below(5) {
        0 => stand.trim(&volume, first * CHUNK, count * CHUNK),
        _ => {
            for lba in first..first + count {
                let content = dice.below(300);
                let chunk =
                    if content.is_multiple_of(3) { packed(content) } else { fresh(content, CHUNK) };
                stand.write(&volume, lba * CHUNK, &chunk);
            }
        }
    }
}

/// Volumes, snapshots and clones as chance makes them; their names.
fn random_store(stand: &Stand, dice: &mut Dice) -> Vec<String> {
    let mut names = vec!["v".to_owned()];
    stand.volume("v", VOLUME_CHUNKS * CHUNK);
    for step in 0..30 {
        let volumes: Vec<&String> = names.iter().filter(|name| !name.contains('@')).collect();
        let volume = volumes[dice.below(volumes.len() as u64) as usize].clone();
        let snapshots: Vec<&String> = names.iter().filter(|name| name.contains('@')).collect();
        match dice.below(6) {
            0 => {
                snap(stand, &volume, &format!("s{step}"));
                names.push(format!("{volume}@s{step}"));
            }
            1 if !snapshots.is_empty() && volumes.len() < 4 => {
                let snapshot = snapshots[dice.below(snapshots.len() as u64) as usize];
                stand.client.clone_volume(snapshot, &format!("c{step}")).unwrap();
                names.push(format!("c{step}"));
            }
            2 if snapshots.len() > 2 => {
                let snapshot = snapshots[dice.below(snapshots.len() as u64) as usize].clone();
                stand.client.delete_volume(&snapshot).unwrap();
                names.retain(|name| *name != snapshot);
            }
            _ => (0..3).for_each(|_| change(stand, &volume, dice)),
        }
    }
    settled(stand);
    names
}

/// Every chunk of a volume or snapshot, by its bytes.
fn contents(stand: &Stand, name: &str) -> BTreeMap<Vec<u8>, u64> {
    let bytes = stand.read(&open(stand, name), 0, VOLUME_CHUNKS * CHUNK);
    let mut found = BTreeMap::new();
    for chunk in bytes.chunks(CHUNK as usize).filter(|chunk| chunk.iter().any(|&byte| byte != 0)) {
        *found.entry(chunk.to_vec()).or_default() += 1;
    }
    found
}

proptest! {
    #![proptest_config(cases(10))]

    /// Against the bytes of all versions, whatever little is kept account of at once, and against
    /// what comes back in the end.
    #[test]
    fn a_volume_weighs_what_the_bytes_say(seed in any::<u64>(), counted_max in 2_usize..200) {
        let stand = Wish { seed, ..Wish::default() }.stand();
        let mut dice = Dice(seed);
        let mut names = random_store(&stand, &mut dice);
        while !names.is_empty() {
            let at = dice.below(names.len() as u64) as usize;
            let name = names[at].clone();
            let weight = weigh(&stand, &name, counted_max);
            let own = contents(&stand, &name);
            let mapped: u64 = own.values().sum();
            prop_assert_eq!(weight.mapped_bytes, mapped * CHUNK);
            prop_assert_eq!(weight.chunks.chunks, own.len() as u64);
            let of_classes: u64 = weight.references.iter().map(|class| class.mapped).sum();
            prop_assert_eq!(of_classes, mapped);
            // Nothing is left of deleted ones that several came from.
            if stand.stats().deletions_held == 0 {
                let others = names.iter().filter(|other| **other != name);
                let others: BTreeSet<Vec<u8>> =
                    others.flat_map(|other| contents(&stand, other).into_keys()).collect();
                let unique = own.keys().filter(|chunk| !others.contains(*chunk)).count() as u64;
                prop_assert_eq!(weight.unique.chunks, unique, "{}", name);
            }
            let has_snapshots = names.iter().any(|other| other.starts_with(&format!("{name}@")));
            if has_snapshots {
                continue;
            }
            let (before, held) = (stored(&stand), stand.stats().deletions_held);
            stand.client.delete_volume(&name).unwrap();
            settled(&stand);
            let after = stored(&stand);
            // One that was held may go now as well, and gives back what was its own.
            if stand.stats().deletions_held >= held {
                prop_assert_eq!(before.chunks - after.chunks, weight.given_back.chunks);
                let frame_bytes = before.frame_bytes - after.frame_bytes;
                prop_assert_eq!(frame_bytes, weight.given_back.frame_bytes);
            }
            names.remove(at);
        }
        check_clean(&stand.close());
    }
}
