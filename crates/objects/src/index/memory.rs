//! The memory tables: what is newer than redb.
//!
//! `active` takes changes. A merge makes it `frozen` and starts a new one; when all of `frozen` is
//! in redb it goes. Reads ask `active`, then `frozen`, then redb.
//!
//! Invariant: together they hold every change of the log from its first group that is not merged.

use std::collections::BTreeMap;
use std::collections::btree_map::Range;
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;

use crate::index::Table;

/// Number of the table, then the key.
pub(crate) type TableKey = Box<[u8]>;
/// Its value; none: it is removed.
pub(crate) type NewValue = Option<Box<[u8]>>;
/// One memory table.
pub(crate) type MemoryMap = BTreeMap<TableKey, NewValue>;

/// What an entry takes beside its bytes: two boxes and its share of a node.
const ENTRY_COST_BYTES: usize = 64;
/// Changes that a scan copies under the lock at a time. A limit of values does not bound removals,
/// and every batch waits for the lock.
const CHANGES_MAX: usize = if cfg!(test) { 8 } else { 1024 };

/// The key of an entry over all tables.
pub(crate) fn table_key(table: Table, key: &[u8]) -> TableKey {
    let mut bytes = Vec::with_capacity(1 + key.len());
    bytes.push(table as u8);
    bytes.extend_from_slice(key);
    bytes.into_boxed_slice()
}

/// The least key behind a table's.
pub(crate) fn table_end(table: Table) -> [u8; 1] {
    [table as u8 + 1]
}

/// Both memory tables.
#[derive(Default)]
pub(crate) struct Memory {
    active: MemoryMap,
    active_bytes: usize,
    frozen: Option<Arc<MemoryMap>>,
}

impl Memory {
    pub(crate) fn active_bytes(&self) -> usize {
        self.active_bytes
    }

    pub(crate) fn active_changes(&self) -> usize {
        self.active.len()
    }

    pub(crate) fn frozen(&self) -> Option<&Arc<MemoryMap>> {
        self.frozen.as_ref()
    }

    pub(crate) fn insert(&mut self, key: TableKey, value: NewValue) {
        let cost = |value: &NewValue| value.as_ref().map_or(0, |value| value.len());
        let (key_bytes, value_bytes) = (key.len(), cost(&value));
        match self.active.insert(key, value) {
            Some(before) => self.active_bytes -= cost(&before),
            None => self.active_bytes += key_bytes + ENTRY_COST_BYTES,
        }
        self.active_bytes += value_bytes;
    }

    /// What memory knows of a key; none: redb is to be asked.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&NewValue> {
        let frozen = || self.frozen.as_ref().and_then(|frozen| frozen.get(key));
        self.active.get(key).or_else(frozen)
    }

    /// Makes `active` the table that is merged.
    ///
    /// # Panics
    /// When another one is being merged.
    pub(crate) fn freeze(&mut self) {
        assert!(self.frozen.is_none(), "one merge at a time");
        self.active_bytes = 0;
        self.frozen = Some(Arc::new(std::mem::take(&mut self.active)));
    }

    /// All of the frozen table is in redb.
    pub(crate) fn drop_frozen(&mut self) -> Option<Arc<MemoryMap>> {
        self.frozen.take()
    }

    /// What memory says of the keys from `from` up to `until`, in their order. It may end behind
    /// the entry that makes `values_max` values, or before a key that is returned: all before that
    /// are there.
    pub(crate) fn changes(
        &self,
        from: &[u8],
        until: &[u8],
        values_max: usize,
    ) -> (Vec<(TableKey, NewValue)>, Option<TableKey>) {
        let empty = MemoryMap::new();
        let frozen = self.frozen.as_deref().unwrap_or(&empty);
        let range = (Bound::Included(from), Bound::Excluded(until));
        let mut active = self.active.range::<[u8], _>(range).peekable();
        let mut frozen = frozen.range::<[u8], _>(range).peekable();
        let (mut changes, mut values) = (Vec::new(), 0);
        while values < values_max {
            let Some((key, value)) = next_of(&mut active, &mut frozen) else { break };
            if changes.len() == CHANGES_MAX {
                return (changes, Some(key.clone()));
            }
            values += usize::from(value.is_some());
            changes.push((key.clone(), value.clone()));
        }
        (changes, None)
    }
}

type Changes<'a> = Peekable<Range<'a, TableKey, NewValue>>;

/// The lesser of the two next ones; of equals the one of `active`.
fn next_of<'a>(
    active: &mut Changes<'a>,
    frozen: &mut Changes<'a>,
) -> Option<(&'a TableKey, &'a NewValue)> {
    match (active.peek(), frozen.peek()) {
        (Some((newer, _)), Some((older, _))) if newer == older => {
            frozen.next();
            active.next()
        }
        (Some((newer, _)), Some((older, _))) if newer > older => frozen.next(),
        (Some(_), _) => active.next(),
        (None, _) => frozen.next(),
    }
}
