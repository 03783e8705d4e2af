//! The invariant of decision 060, counted chunk by chunk.

use std::collections::{BTreeMap, BTreeSet};

use format::objects::extents::{
    HIGH_WATER_SETTING, ToFree, decode_free, decode_shared, decode_to_free,
};
use format::objects::record::ObjectRecord;
use format::objects::segments::{ListEntry, Subtree, decode_block};

use super::bucket::{Bucket, START_BYTES};
use crate::index::Table;

#[derive(Default)]
struct Named {
    /// How many entries name a chunk.
    count: BTreeMap<u64, u64>,
    blocks_seen: BTreeSet<u64>,
}

impl Named {
    fn entry(&mut self, bucket: &Bucket, entry: &ListEntry) {
        entry.chunks().for_each(|chunk| *self.count.entry(chunk).or_default() += 1);
        if let ListEntry::Subtree(subtree) = entry {
            self.block(bucket, subtree, 0);
        }
    }

    /// What a block names; once, however many name the block.
    fn block(&mut self, bucket: &Bucket, subtree: &Subtree, position: u16) {
        if self.blocks_seen.insert(subtree.block_chunk) {
            let mut bytes = vec![0; 4096];
            bucket.volume.inner.read_at(subtree.block_chunk * 4096, &mut bytes).unwrap();
            let entries = decode_block(subtree, &bytes).unwrap();
            entries[position.into()..].iter().for_each(|entry| self.entry(bucket, entry));
        }
    }
}

/// What the bucket's space is used for, in chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) named: u64,
    pub(super) free: u64,
    pub(super) to_free: u64,
    pub(super) shared_ranges: u64,
}

/// Holds each chunk to be in one state and each count to be right.
pub(super) fn recount(bucket: &Bucket) -> Usage {
    let mut named = Named::default();
    for table in [Table::Objects, Table::Uploads] {
        for (_, record) in bucket.index.entries(table) {
            let record = ObjectRecord::decode(&record).unwrap();
            record.value.entries().iter().for_each(|entry| named.entry(bucket, entry));
        }
    }
    let mut states: BTreeMap<u64, &str> = BTreeMap::new();
    let mut set = |range: std::ops::Range<u64>, state| {
        for chunk in range {
            let before = states.insert(chunk, state);
            assert_eq!(before, None, "chunk {chunk} is {before:?} and {state}");
        }
    };
    let mut trees = Vec::new();
    for (key, value) in bucket.index.entries(Table::ToFree) {
        let (range, kind) = decode_to_free(&key, &value).unwrap();
        set(range, "to free");
        if let ToFree::Tree { subtree, position } = kind {
            trees.push((subtree, position));
        }
    }
    for (key, value) in bucket.index.entries(Table::Free) {
        set(decode_free(&key, &value).unwrap(), "free");
    }
    for (subtree, position) in trees {
        assert!(!named.blocks_seen.contains(&subtree.block_chunk), "a named tree is to be freed");
        named.block(bucket, &subtree, position);
    }
    let mut shared: BTreeMap<u64, u64> = BTreeMap::new();
    for (key, value) in bucket.index.entries(Table::Shared) {
        let (range, count) = decode_shared(&key, &value).unwrap();
        range.for_each(|chunk| assert!(shared.insert(chunk, count).is_none()));
    }
    let high_water = bucket.index.entries(Table::Settings).into_iter().find_map(|(name, value)| {
        (name == HIGH_WATER_SETTING).then(|| u64::from_le_bytes(value.try_into().unwrap()) / 4096)
    });
    let start = START_BYTES / 4096;
    let high_water = high_water.unwrap_or(start);
    assert_eq!(bucket.values.high_water_bytes(), high_water * 4096);
    for chunk in start..high_water {
        let count = named.count.get(&chunk).copied().unwrap_or(0);
        let state = states.get(&chunk);
        assert_eq!(count == 0, state.is_some(), "chunk {chunk} is named {count} times, {state:?}");
        let expected = (count > 1).then_some(count);
        assert_eq!(shared.get(&chunk).copied(), expected, "count of chunk {chunk}");
    }
    for chunks in [named.count.keys(), shared.keys()] {
        assert!(chunks.clone().all(|chunk| (start..high_water).contains(chunk)));
    }
    assert!(states.keys().all(|chunk| (start..high_water).contains(chunk)));
    let of_state = |name| states.values().filter(|state| **state == name).count() as u64;
    Usage {
        named: named.count.len() as u64,
        free: of_state("free"),
        to_free: of_state("to free"),
        shared_ranges: bucket.index.entries(Table::Shared).len() as u64,
    }
}
