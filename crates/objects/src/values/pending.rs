//! Changes of the index that are not made yet, as if they were.
//!
//! What a batch reads it reads through these, so that several values in one batch see each other's
//! changes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::index::{Change, Entry, Index, IndexError, Table};

/// Entries read of the index at a time.
const SCAN_ENTRIES: usize = 8;
/// The same for a batch that goes through a table in the order of its keys.
const ORDERED_SCAN_ENTRIES: usize = 64;

pub(super) struct Pending {
    index: Arc<dyn Index>,
    /// The value, or none where the key is removed.
    changes: BTreeMap<(Table, Vec<u8>), Option<Vec<u8>>>,
    scanned: RefCell<Scanned>,
    /// Whether what was scanned last answers the next question too.
    is_ordered: bool,
}

/// Consecutive entries of a table of the index.
#[derive(Default)]
struct Scanned {
    table: Option<Table>,
    /// There is no entry between this key and the first one.
    from: Vec<u8>,
    entries: Vec<Entry>,
    /// There is no entry behind the last one.
    is_last: bool,
}

impl Scanned {
    fn covers(&self, table: Table, from: &[u8]) -> bool {
        let is_before_end =
            self.is_last || self.entries.last().is_some_and(|(last, _)| from <= last.as_slice());
        self.table == Some(table) && self.from.as_slice() <= from && is_before_end
    }

    /// The entries at or behind `from`.
    fn behind(&self, from: &[u8]) -> &[Entry] {
        &self.entries[self.entries.partition_point(|(key, _)| key.as_slice() < from)..]
    }
}

impl Pending {
    pub(super) fn new(index: &Arc<dyn Index>) -> Self {
        let (changes, scanned) = (BTreeMap::new(), RefCell::default());
        Self { index: Arc::clone(index), changes, scanned, is_ordered: false }
    }

    /// For a batch that asks for entries in the order of their keys, about: many of its questions
    /// cost one scan. Nobody else may change a table that it looks through as long as it lives.
    pub(super) fn ordered(index: &Arc<dyn Index>) -> Self {
        Self { is_ordered: true, ..Self::new(index) }
    }

    pub(super) fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, IndexError> {
        match self.changes.get(&(table, key.to_vec())) {
            Some(value) => Ok(value.clone()),
            None => self.index.get(table, key),
        }
    }

    /// The first entry at or behind `from`.
    pub(super) fn next(&self, table: Table, from: &[u8]) -> Result<Option<Entry>, IndexError> {
        let stored = self.next_unchanged(table, from)?;
        let changed = self.changes.range((table, from.to_vec())..);
        let changed = changed
            .take_while(|((of, _), _)| *of == table)
            .find_map(|((_, key), value)| value.clone().map(|value| (key.clone(), value)));
        Ok(match (stored, changed) {
            (Some(stored), Some(changed)) if stored.0 < changed.0 => Some(stored),
            (stored, None) => stored,
            (_, changed) => changed,
        })
    }

    fn next_unchanged(&self, table: Table, from: &[u8]) -> Result<Option<Entry>, IndexError> {
        let mut scanned = self.scanned.borrow_mut();
        if !self.is_ordered || !scanned.covers(table, from) {
            *scanned = self.scan(table, from.to_vec())?;
        }
        let mut from = from.to_vec();
        loop {
            let is_unchanged =
                |entry: &&Entry| !self.changes.contains_key(&(table, entry.0.clone()));
            if let Some(found) = scanned.behind(&from).iter().find(is_unchanged) {
                return Ok(Some(found.clone()));
            }
            match scanned.entries.last() {
                Some((last, _)) if !scanned.is_last => from = [last.as_slice(), &[0]].concat(),
                _ => return Ok(None),
            }
            *scanned = self.scan(table, from.clone())?;
        }
    }

    fn scan(&self, table: Table, from: Vec<u8>) -> Result<Scanned, IndexError> {
        let limit = if self.is_ordered { ORDERED_SCAN_ENTRIES } else { SCAN_ENTRIES };
        let entries = self.index.scan(table, &from, limit)?;
        let is_last = entries.len() < limit;
        Ok(Scanned { table: Some(table), from, entries, is_last })
    }

    pub(super) fn set(&mut self, table: Table, key: &[u8], value: Vec<u8>) {
        self.changes.insert((table, key.to_vec()), Some(value));
    }

    pub(super) fn remove(&mut self, table: Table, key: &[u8]) {
        self.changes.insert((table, key.to_vec()), None);
    }

    /// All changes, in the order of tables and keys.
    pub(super) fn take(&mut self) -> Vec<Change> {
        let changes = std::mem::take(&mut self.changes);
        let change = |((table, key), value): ((Table, Vec<u8>), Option<Vec<u8>>)| match value {
            Some(value) => Change::Set { table, key, value },
            None => Change::Remove { table, key },
        };
        changes.into_iter().map(change).collect()
    }
}
