//! An index that is a map, and that stops at any `apply`, with the volume beside it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use store::{Durability, RequestError};

use crate::index::{Change, Entry, Index, IndexError, Table};

pub(super) type Map = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

/// What stops index and volume at one moment of their common order.
#[derive(Debug, Default)]
pub(super) struct Stop {
    pub(super) stopped: Arc<AtomicBool>,
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
