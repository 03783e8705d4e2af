//! Changes of the index that are not made yet, as if they were.
//!
//! What a batch reads it reads through these, so that several values in one batch see each other's
//! changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::index::{Change, Entry, Index, IndexError, Table};

/// Entries read of the index at a time.
const SCAN_ENTRIES: usize = 8;

pub(super) struct Pending {
    index: Arc<dyn Index>,
    /// The value, or none where the key is removed.
    changes: BTreeMap<(Table, Vec<u8>), Option<Vec<u8>>>,
}

impl Pending {
    pub(super) fn new(index: &Arc<dyn Index>) -> Self {
        Self { index: Arc::clone(index), changes: BTreeMap::new() }
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
        let mut from = from.to_vec();
        loop {
            let entries = self.index.scan(table, &from, SCAN_ENTRIES)?;
            let is_last = entries.len() < SCAN_ENTRIES;
            for (key, value) in entries {
                if !self.changes.contains_key(&(table, key.clone())) {
                    return Ok(Some((key, value)));
                }
                from = key;
            }
            if is_last {
                return Ok(None);
            }
            from.push(0);
        }
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
