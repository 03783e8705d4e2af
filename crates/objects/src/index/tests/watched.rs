//! A volume of a real store in memory, watched: each chunk that is written is recorded, so that a
//! crash behind any of them can be made; chunks can be damaged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use store::{
    CreateOptions, Durability, Options, RequestError, Reservation, ReservedFor, Store, Volume,
    WriteOptions, WriteRoom,
};

use crate::index::{Change, Entry, Index, IndexCreateOptions, IndexOptions, Table, VolumeIndex};
use crate::volume::BucketVolume;

pub(super) const CHUNK: usize = 4096;
pub(super) const UUID: [u8; 16] = *b"bucket of a test";

/// One thing that changed the volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Chunk(u64, Vec<u8>),
    Trim(u64, u64),
}

pub(super) struct Watched {
    pub(super) inner: Volume,
    written: Mutex<Vec<Written>>,
    damaged: Mutex<BTreeSet<u64>>,
    is_read_only: bool,
}

pub(super) fn store_of(capacity_bytes: u64) -> Store {
    let disk = store::create_in_memory(&CreateOptions::new(capacity_bytes), 3).unwrap();
    let mut options = Options::default();
    options.engine.memory_bytes = 64 << 20;
    options.engine.worker_threads = 0;
    Store::open_in_memory(&disk, options).unwrap()
}

impl Watched {
    pub(super) fn new(store: &Store, name: &str) -> Arc<Self> {
        let inner = store.create_volume(name, 1 << 50).unwrap();
        let (written, damaged) = (Mutex::default(), Mutex::default());
        Arc::new(Self { inner, written, damaged, is_read_only: false })
    }

    /// The same bytes, as a snapshot has them.
    pub(super) fn read_only(&self) -> Arc<Self> {
        let inner = self.inner.clone();
        let (written, damaged) = (Mutex::default(), Mutex::default());
        Arc::new(Self { inner, written, damaged, is_read_only: true })
    }

    pub(super) fn written(&self) -> Vec<Written> {
        self.written.lock().unwrap().clone()
    }

    pub(super) fn written_count(&self) -> usize {
        self.written.lock().unwrap().len()
    }

    /// Makes what another volume had recorded happen here.
    pub(super) fn repeat(&self, written: &[Written]) {
        for one in written {
            match one {
                Written::Chunk(at, bytes) => self.inner.write_at(*at, bytes).unwrap(),
                Written::Trim(at, length) => self.inner.trim_blocking(*at, *length).unwrap(),
            }
        }
        self.written.lock().unwrap().extend_from_slice(written);
    }

    /// Makes the chunk at this place unreadable until it is written.
    pub(super) fn damage(&self, at_bytes: u64) {
        self.damaged.lock().unwrap().insert(at_bytes / CHUNK as u64);
    }

    pub(super) fn damaged_count(&self) -> usize {
        self.damaged.lock().unwrap().len()
    }

    pub(super) fn heal(&self) {
        self.damaged.lock().unwrap().clear();
    }

    /// Places of all chunks ever written from `from` up to `until`.
    pub(super) fn places(&self, from: u64, until: u64) -> BTreeSet<u64> {
        let place = |one: Written| match one {
            Written::Chunk(at, _) => Some(at),
            Written::Trim(..) => None,
        };
        let places = self.written().into_iter().filter_map(place);
        places.filter(|at| (from..until).contains(at)).collect()
    }

    fn note(&self, writes: &[(u64, &[u8])]) -> Result<(), RequestError> {
        if self.is_read_only {
            return Err(RequestError::StoreReadOnly);
        }
        let mut written = self.written.lock().unwrap();
        let mut damaged = self.damaged.lock().unwrap();
        for (at, bytes) in writes {
            assert!(at % CHUNK as u64 == 0 && bytes.len() % CHUNK == 0, "whole chunks only");
            for (number, chunk) in bytes.chunks(CHUNK).enumerate() {
                let at = at + (number * CHUNK) as u64;
                damaged.remove(&(at / CHUNK as u64));
                written.push(Written::Chunk(at, chunk.to_vec()));
            }
        }
        Ok(())
    }
}

impl BucketVolume for Watched {
    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    fn read_at(&self, offset_bytes: u64, out: &mut [u8]) -> Result<(), RequestError> {
        let first = offset_bytes / CHUNK as u64;
        let end = (offset_bytes + out.len() as u64).div_ceil(CHUNK as u64);
        if let Some(lba) = self.damaged.lock().unwrap().range(first..end).next() {
            return Err(RequestError::Damaged { volume: "watched".to_owned(), lba: *lba });
        }
        self.inner.read_at(offset_bytes, out)
    }

    fn write_vectored_at(
        &self,
        writes: &[(u64, &[u8])],
        options: WriteOptions,
    ) -> Result<(), RequestError> {
        if !self.is_read_only {
            self.inner.write_vectored_at(writes, options)?;
        }
        self.note(writes)
    }

    fn reserve(
        &self,
        room: WriteRoom,
        reserved_for: ReservedFor,
    ) -> Result<Reservation, RequestError> {
        self.inner.reserve_blocking(room, reserved_for)
    }

    fn write_reserved_at(
        &self,
        reservation: &Reservation,
        writes: &[(u64, &[u8])],
        options: WriteOptions,
    ) -> Result<(), RequestError> {
        self.inner.write_reserved_at(reservation, writes, options)?;
        self.note(writes)
    }

    fn trim(&self, offset_bytes: u64, length_bytes: u64) -> Result<(), RequestError> {
        assert!(!self.is_read_only, "a snapshot is not trimmed");
        self.inner.trim_blocking(offset_bytes, length_bytes)?;
        self.written.lock().unwrap().push(Written::Trim(offset_bytes, length_bytes));
        Ok(())
    }

    fn flush(&self) -> Result<(), RequestError> {
        self.inner.flush_blocking()
    }
}

/// The least memory: steps of 21 changes.
pub(super) const LITTLE: IndexOptions = IndexOptions { memory_bytes: 1 << 20, read_only: false };

/// A new index with a ring of this length.
pub(super) fn create(volume: &Arc<Watched>, ring_bytes: u64) -> VolumeIndex {
    let options = IndexCreateOptions { ring_bytes, ..IndexCreateOptions::new(UUID) };
    VolumeIndex::create(volume.clone(), &options).unwrap();
    open(volume)
}

pub(super) fn open(volume: &Arc<Watched>) -> VolumeIndex {
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
