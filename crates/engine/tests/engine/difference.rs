//! Where versions differ, against what their bytes say: exactly the chunks whose bytes differ.

use std::collections::BTreeSet;

use engine::{ChangedRange, Client, DifferenceRequest, RequestError, SnapshotRequest, Zone};

use crate::stand::{CHUNK, Dice, MIB, Opens, Stand, Wish, cases, check_clean, fresh};

use proptest::prelude::*;

const LEAF_CHUNKS: u64 = 677;

fn snap(stand: &Stand, name: &str) {
    let (volumes, name) = (vec!["v".to_owned()], name.to_owned());
    stand.client.ask(SnapshotRequest { volumes, name, taken_unix_s: 7 }).unwrap();
}

/// All steps together, and how many there were.
fn differ(client: &Client, from: &str, to: &str) -> (Vec<ChangedRange>, usize) {
    let (mut ranges, mut steps, mut next) = (Vec::new(), 0, Some(0));
    while let Some(lba) = next {
        let request = DifferenceRequest { from: from.to_owned(), to: to.to_owned(), lba };
        let step = client.ask(request).unwrap();
        step.ranges.into_iter().for_each(|range| range.add_to(&mut ranges));
        (next, steps) = (step.next_lba, steps + 1);
    }
    (ranges, steps)
}

fn range(first: u64, count: u64, unmapped: bool) -> ChangedRange {
    ChangedRange { offset_bytes: first * CHUNK, length_bytes: count * CHUNK, unmapped }
}

#[test]
fn ranges_say_what_is_written_and_what_is_gone() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", 64 * MIB);
    stand.write(&volume, 0, &fresh(1, 4 * MIB));
    snap(&stand, "a");
    stand.write(&volume, 10 * CHUNK, &fresh(2, 3 * CHUNK));
    stand.trim(&volume, 13 * CHUNK, 2 * CHUNK);
    stand.write(&volume, 12 * MIB, &fresh(3, CHUNK));
    // The same bytes again are no difference.
    stand.write(&volume, 0, &fresh(1, CHUNK));
    let expected = [range(10, 3, false), range(13, 2, true), range(12 * MIB / CHUNK, 1, false)];
    assert_eq!(differ(&stand.client, "v@a", "v").0, expected);
    snap(&stand, "b");
    assert_eq!(differ(&stand.client, "v@a", "v@b").0, expected);
    assert_eq!(differ(&stand.client, "v@b", "v").0, []);
    let back = differ(&stand.client, "v@b", "v@a").0;
    assert_eq!(back, [range(10, 5, false), range(12 * MIB / CHUNK, 1, true)]);
    // Any two can be compared, whatever they have in common.
    stand.volume("w", 8 * MIB);
    assert_eq!(differ(&stand.client, "w", "v@a").0, [range(0, 1024, false)]);
    let nobody = DifferenceRequest { from: "v@a".to_owned(), to: "v@x".to_owned(), lba: 0 };
    let refused = stand.client.ask(nobody).unwrap_err();
    assert_eq!(refused, RequestError::NoSuchVolume { name: "v@x".to_owned() });
    check_clean(&stand.close());
}

/// Of what a damaged page took with it nobody knows whether it was the same: it is where both had
/// the page in common, and may differ where each had its own.
#[test]
fn what_two_snapshots_have_lost_apart_is_not_called_the_same() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", 64 * MIB);
    stand.write(&volume, 0, &fresh(1, 2 * LEAF_CHUNKS * CHUNK));
    drop(volume);
    // Only what has been written is shared.
    let stand = Wish::default().open(stand.close());
    let volume = stand.client.volume("v").unwrap();
    snap(&stand, "a");
    stand.write(&volume, 10 * CHUNK, &fresh(2, CHUNK));
    snap(&stand, "b");
    drop(volume);
    // No root is so old that the journal behind it knows all of this.
    let disk = (0..2).fold(stand.close(), |disk, _| Wish::default().open(disk).close());
    let structures = engine::structures(Box::new(disk.clone())).unwrap();
    let leaves = structures.iter().filter(|structure| structure.kind == "map, leaf");
    let places: BTreeSet<u64> = leaves.map(|leaf| leaf.offset_bytes).collect();
    for offset_bytes in places {
        disk.corrupt(Zone::Tables, offset_bytes + 2000, |byte| *byte ^= 0x40);
    }
    let report = engine::repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
    assert_eq!(report.lost_chunks, 3 * 2 * LEAF_CHUNKS);
    let stand = Wish::default().open(disk);
    for (from, to) in [("v@a", "v@b"), ("v@b", "v")] {
        assert_eq!(differ(&stand.client, from, to).0, [range(0, LEAF_CHUNKS, false)]);
    }
    for name in ["v@a", "v@b", "v"] {
        let volume = stand.client.volume(name).unwrap();
        for lba in [10, LEAF_CHUNKS] {
            stand.try_read(&volume, lba * CHUNK, CHUNK).unwrap_err();
        }
    }
    // Who writes it again makes an end of that.
    let volume = stand.client.volume("v").unwrap();
    stand.write(&volume, 0, &fresh(3, 2 * LEAF_CHUNKS * CHUNK));
    stand.flush();
    ["v@a", "v@b"].iter().for_each(|name| stand.client.delete_volume(name).unwrap());
    stand.wait_until("the end of all deletions", |stats| stats.deletions == 0);
    assert!(stand.read(&volume, 0, MIB) == fresh(3, MIB));
    drop(volume);
    check_clean(&stand.close());
}

/// A volume that is no whole number of chunks, and one that grew.
#[test]
fn the_last_range_ends_with_the_larger_of_the_two() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", 3 * CHUNK + 512);
    snap(&stand, "a");
    stand.write(&volume, 3 * CHUNK, &[1; 512]);
    let (found, _) = differ(&stand.client, "v@a", "v");
    let last = ChangedRange { offset_bytes: 3 * CHUNK, length_bytes: 512, unmapped: false };
    assert_eq!(found, [last]);
    stand.client.resize_volume("v", MIB).unwrap();
    stand.write(&volume, 4 * CHUNK, &fresh(1, CHUNK));
    assert_eq!(differ(&stand.client, "v@a", "v").0, [range(3, 2, false)]);
    stand.close();
}

/// What is shared is not looked at: one change in a large volume costs no more than in a small one.
#[test]
fn the_cost_is_that_of_what_changed() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", 1 << 40);
    for leaf in 0..600 {
        stand.write(&volume, leaf * LEAF_CHUNKS * CHUNK, &fresh(leaf, CHUNK));
    }
    snap(&stand, "a");
    stand.write(&volume, 300 * LEAF_CHUNKS * CHUNK, &fresh(9000, CHUNK));
    stand.flush();
    let stand = Wish::default().open(stand.close());
    let reads_before = stand.stats().counters.table_reads;
    let (found, steps) = differ(&stand.client, "v@a", "v");
    assert_eq!((found, steps), (vec![range(300 * LEAF_CHUNKS, 1, false)], 1));
    let reads = stand.stats().counters.table_reads - reads_before;
    // Two leaves and what is above them, and what the engine reads for itself; not 1200 leaves.
    assert!(reads <= 60, "{reads} pages read");
    stand.close();
}

const VOLUME_CHUNKS: u64 = 3 * LEAF_CHUNKS;

fn change(stand: &Stand, dice: &mut Dice) {
    let volume = stand.client.volume("v").unwrap();
    let first = dice.below(VOLUME_CHUNKS);
    let count = (1 + dice.below(40)).min(VOLUME_CHUNKS - first);
    match dice.below(4) {
        0 => stand.trim(&volume, first * CHUNK, count * CHUNK),
        1 => stand.write(&volume, first * CHUNK, &vec![0; (count * CHUNK) as usize]),
        _ => {
            for lba in first..first + count {
                stand.write(&volume, lba * CHUNK, &fresh(dice.below(30), CHUNK));
            }
        }
    }
}

/// The chunks that differ, by their bytes.
fn by_bytes(stand: &Stand, from: &str, to: &str) -> Vec<ChangedRange> {
    let whole = |name: &str| {
        let volume = stand.client.volume(name).unwrap();
        stand.read(&volume, 0, VOLUME_CHUNKS * CHUNK)
    };
    let (from, to) = (whole(from), whole(to));
    let mut ranges = Vec::new();
    let chunks = from.chunks(CHUNK as usize).zip(to.chunks(CHUNK as usize));
    for (lba, (from, to)) in (0..).zip(chunks) {
        if from != to {
            range(lba, 1, to.iter().all(|&byte| byte == 0)).add_to(&mut ranges);
        }
    }
    ranges
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn what_differs_is_what_the_bytes_say(seed in any::<u64>(), changes in 0_u64..25) {
        let stand = Wish { seed, ..Wish::default() }.stand();
        let mut dice = Dice(seed);
        stand.volume("v", VOLUME_CHUNKS * CHUNK);
        for snapshot in 0..3 {
            (0..changes).for_each(|_| change(&stand, &mut dice));
            snap(&stand, &format!("s{snapshot}"));
        }
        (0..changes).for_each(|_| change(&stand, &mut dice));
        let names = ["v@s0", "v@s1", "v@s2", "v"];
        for from in names {
            for to in names {
                let found = differ(&stand.client, from, to).0;
                prop_assert_eq!(found, by_bytes(&stand, from, to));
            }
        }
        stand.close();
    }
}
