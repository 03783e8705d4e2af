//! An index that is a map, and a volume beside it, that stop together at any `apply`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use store::{Durability, RequestError, Reservation, ReservedFor, WriteOptions, WriteRoom};

use crate::index::{Change, Entry, Index, IndexError, Table};
use crate::volume::BucketVolume;

pub(super) type Map = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

/// What stops index and volume at one moment of their common order.
#[derive(Debug, Default)]
pub(super) struct Stop {
    stopped: AtomicBool,
    /// Calls of `apply` that go through; 0: all.
    applies_left: AtomicU64,
    /// Whether the last of them is made although its caller hears of an error.
    makes_last: AtomicBool,
    /// The next call is made, its caller hears of an error, and all goes on.
    pub(super) fails_once: AtomicBool,
}

impl Stop {
    pub(super) fn after(&self, applies: u64, makes_last: bool) {
        self.applies_left.store(applies, Ordering::SeqCst);
        self.makes_last.store(makes_last, Ordering::SeqCst);
    }

    fn check(&self) -> Result<(), RequestError> {
        match self.stopped.load(Ordering::SeqCst) {
            true => Err(RequestError::Closing),
            false => Ok(()),
        }
    }
}

#[derive(Default)]
pub(super) struct MapIndex {
    pub(super) map: Mutex<Map>,
    pub(super) stop: Arc<Stop>,
    pub(super) longest_batch: AtomicU64,
    /// What happens once between a scan of `ToFree` and its answer.
    pub(super) after_scan: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl MapIndex {
    pub(super) fn with(map: Map) -> Self {
        Self { map: Mutex::new(map), ..Self::default() }
    }

    pub(super) fn entries(&self, table: Table) -> Vec<Entry> {
        let map = self.map.lock().unwrap();
        let of_table = map.iter().filter(|((of, _), _)| *of == table);
        of_table.map(|((_, key), value)| (key.clone(), value.clone())).collect()
    }
}

impl Index for MapIndex {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError> {
        self.stop.check()?;
        Ok(self.map.lock().unwrap().get(&(table, key.to_vec())).cloned())
    }

    fn scan(&self, table: Table, from: &[u8], limit: usize) -> Result<Vec<Entry>, IndexError> {
        self.stop.check()?;
        let map = self.map.lock().unwrap();
        let found = map.range((table, from.to_vec())..).take_while(|((of, _), _)| *of == table);
        let found = found.take(limit).map(|((_, key), value)| (key.clone(), value.clone()));
        let entries: Vec<Entry> = found.collect();
        drop(map);
        if table == Table::ToFree
            && let Some(happens) = self.after_scan.lock().unwrap().take()
        {
            happens();
        }
        Ok(entries)
    }

    fn apply(&self, changes: Vec<Change>, _: Durability) -> Result<(), IndexError> {
        self.stop.check()?;
        self.longest_batch.fetch_max(changes.len() as u64, Ordering::SeqCst);
        let is_last = self.stop.applies_left.load(Ordering::SeqCst) == 1;
        self.stop.applies_left.update(Ordering::SeqCst, Ordering::SeqCst, |n| n.saturating_sub(1));
        if is_last {
            self.stop.stopped.store(true, Ordering::SeqCst);
        }
        if !is_last || self.stop.makes_last.load(Ordering::SeqCst) {
            let mut map = self.map.lock().unwrap();
            for change in changes {
                match change {
                    Change::Set { table, key, value } => {
                        assert!(key.len() <= 1100 && value.len() <= 64 << 10);
                        map.insert((table, key), value);
                    }
                    Change::Remove { table, key } => drop(map.remove(&(table, key))),
                }
            }
        }
        match self.stop.fails_once.swap(false, Ordering::SeqCst) {
            true => Err(IndexError::Damaged("nobody knows".to_owned())),
            false => Ok(self.stop.check()?),
        }
    }
}

/// A volume that stops with the index, and whose chunks can be lost.
pub(super) struct StoppingVolume {
    pub(super) inner: store::Volume,
    pub(super) stop: Arc<Stop>,
    /// First bytes of lost chunks.
    pub(super) lost: Mutex<Vec<u64>>,
    /// Reads of 4 KiB and of any length.
    pub(super) reads: AtomicU64,
}

impl BucketVolume for StoppingVolume {
    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    fn read_at(&self, offset_bytes: u64, out: &mut [u8]) -> Result<(), RequestError> {
        self.stop.check()?;
        self.reads.fetch_add(1, Ordering::SeqCst);
        let end = offset_bytes + out.len() as u64;
        for &lost in self.lost.lock().unwrap().iter() {
            if lost < end && offset_bytes < lost + 4096 {
                let (volume, lba) = ("bucket".to_owned(), lost / 4096);
                return Err(RequestError::Damaged { volume, lba });
            }
        }
        self.inner.read_at(offset_bytes, out)
    }

    fn write_vectored_at(
        &self,
        writes: &[(u64, &[u8])],
        options: WriteOptions,
    ) -> Result<(), RequestError> {
        self.stop.check()?;
        self.inner.write_vectored_at(writes, options)
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
        self.stop.check()?;
        self.inner.write_reserved_at(reservation, writes, options)
    }

    fn trim(&self, offset_bytes: u64, length_bytes: u64) -> Result<(), RequestError> {
        self.stop.check()?;
        self.inner.trim_blocking(offset_bytes, length_bytes)
    }

    fn flush(&self) -> Result<(), RequestError> {
        self.inner.flush_blocking()
    }
}
