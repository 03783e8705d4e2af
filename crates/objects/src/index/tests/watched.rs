//! A store in memory with an index in a volume of it, and what the index should hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use store::{CreateOptions, Durability, Options, Store};

use crate::index::{Change, Entry, Index, IndexCreateOptions, IndexOptions, Table, VolumeIndex};
pub(super) use crate::test_volume::{CHUNK, TestVolume, Written};

pub(super) const UUID: [u8; 16] = *b"bucket of a test";

pub(super) fn store_of(capacity_bytes: u64) -> Store {
    let disk = store::create_in_memory(&CreateOptions::new(capacity_bytes), 3).unwrap();
    let mut options = Options::default();
    options.engine.memory_bytes = 64 << 20;
    options.engine.worker_threads = 0;
    Store::open_in_memory(&disk, options).unwrap()
}

/// The least memory: steps of 21 changes.
pub(super) const LITTLE: IndexOptions = IndexOptions { memory_bytes: 1 << 20, read_only: false };

/// A new index with a ring of this length.
pub(super) fn create(volume: &Arc<TestVolume>, ring_bytes: u64) -> VolumeIndex {
    let options = IndexCreateOptions { ring_bytes, ..IndexCreateOptions::new(UUID) };
    VolumeIndex::create(volume.clone(), &options).unwrap();
    open(volume)
}

pub(super) fn open(volume: &Arc<TestVolume>) -> VolumeIndex {
    VolumeIndex::open(volume.clone(), &LITTLE).unwrap()
}

pub(super) fn set(table: Table, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Change {
    Change::Set { table, key: key.as_ref().to_vec(), value: value.as_ref().to_vec() }
}

pub(super) fn remove(table: Table, key: impl AsRef<[u8]>) -> Change {
    Change::Remove { table, key: key.as_ref().to_vec() }
}

pub(super) fn apply(index: &VolumeIndex, changes: Vec<Change>) {
    index.apply(changes, Durability::Acknowledged).unwrap();
}

/// What an index should hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Model(pub(super) BTreeMap<(Table, Vec<u8>), Vec<u8>>);

impl Model {
    pub(super) fn apply(&mut self, changes: &[Change]) {
        for change in changes.iter().cloned() {
            match change {
                Change::Set { table, key, value } => self.0.insert((table, key), value),
                Change::Remove { table, key } => self.0.remove(&(table, key)),
            };
        }
    }

    /// What an index holds.
    pub(super) fn of(index: &dyn Index) -> Self {
        let mut model = Self::default();
        for table in Table::ALL {
            let mut from = Vec::new();
            loop {
                let entries: Vec<Entry> = index.scan(table, &from, 100).unwrap();
                let Some((last, _)) = entries.last() else { break };
                from.clone_from(last);
                from.push(0);
                model.0.extend(entries.into_iter().map(|(key, value)| ((table, key), value)));
            }
        }
        model
    }
}
