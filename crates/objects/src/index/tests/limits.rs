//! What is refused, and what memory holds.

use store::Durability;

use super::watched::{CHUNK, Model, TestVolume, apply, create, open, set, store_of};
use crate::index::{Index, IndexError, IndexOptions, Table, VolumeIndex};

#[test]
fn what_is_too_long_is_refused_and_nothing_changes() {
    let store = store_of(64 << 20);
    let volume = TestVolume::new(&store, "bucket");
    let index = create(&volume, 64 * CHUNK as u64);
    let refused = |key: usize, value: usize, count: usize| {
        let change = |number| set(Table::Objects, vec![number as u8; key], vec![2; value]);
        index.apply((0..count).map(change).collect(), Durability::Acknowledged).unwrap_err()
    };
    assert!(matches!(refused(1101, 0, 1), IndexError::KeyTooLong { bytes: 1101 }));
    assert!(matches!(refused(1, 65537, 1), IndexError::ValueTooLong { bytes: 65537 }));
    let bytes_max = 16 * CHUNK - 64;
    let told = match refused(100, 900, 65) {
        IndexError::BatchTooLarge { bytes, bytes_max } => (bytes, bytes_max),
        error => panic!("{error}"),
    };
    assert_eq!(told, (65 * 1008, bytes_max));
    assert_eq!(Model::of(&index), Model::default());
    apply(&index, vec![set(Table::Objects, vec![1; 1100], vec![2; bytes_max - 1108])]);
    let index = open(&volume);
    assert_eq!(Model::of(&index).0.len(), 1);
    apply(&index, Vec::new());
    assert_eq!(index.scan(Table::Objects, b"", 0).unwrap(), []);
}

#[test]
fn the_longest_value_in_the_shortest_ring_is_refused_and_fits_a_longer_one() {
    let store = store_of(64 << 20);
    let index = create(&TestVolume::new(&store, "short"), 16 * CHUNK as u64);
    let change = || vec![set(Table::Objects, [7; 1100], vec![9; 64 << 10])];
    let refused = index.apply(change(), Durability::Acknowledged);
    assert!(matches!(refused, Err(IndexError::BatchTooLarge { .. })));
    let volume = TestVolume::new(&store, "longer");
    let index = create(&volume, 1 << 20);
    apply(&index, change());
    index.merge().unwrap();
    assert_eq!(open(&volume).get(Table::Objects, &[7; 1100]).unwrap(), Some(vec![9; 64 << 10]));
}

#[test]
fn a_volume_without_a_header_is_told_from_a_damaged_bucket() {
    let store = store_of(64 << 20);
    let volume = TestVolume::new(&store, "disk");
    let error = VolumeIndex::open(volume, &IndexOptions::default()).err();
    assert!(matches!(error, Some(IndexError::Unfinished)), "{error:?}");
    let small = std::sync::Arc::new(store.create_volume("small", 1 << 20).unwrap());
    let error = VolumeIndex::open(small, &IndexOptions::default()).err();
    assert!(matches!(error, Some(IndexError::Unfinished)), "{error:?}");
}

#[test]
fn memory_is_merged_before_it_is_over_its_share() {
    let store = store_of(128 << 20);
    let volume = TestVolume::new(&store, "bucket");
    let index = create(&volume, 8 << 20);
    let mut most = 0;
    let mut due = 0;
    for number in 0..6000_u32 {
        apply(&index, vec![set(Table::Objects, number.to_be_bytes(), vec![3; 100])]);
        most = most.max(index.memory_table_bytes());
        due += u32::from(index.merge_is_due());
    }
    assert!(most > 200 << 10 && most < (256 << 10) + 1000, "{most}");
    assert!(due > 100, "{due}");
    index.merge().unwrap();
    assert!(!index.merge_is_due());
    assert_eq!(index.merge().unwrap(), crate::index::Merged::default());
    assert_eq!(Model::of(&index).0.len(), 6000);
}
