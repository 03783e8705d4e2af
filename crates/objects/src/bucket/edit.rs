//! One change of the bucket: records, what they name, their counts and times, in one batch.
//!
//! ```text
//! begin: stripes locked ─> object ─ judged ─> set, remove ─> apply ─> unlocked
//!                            └──────────────── dropped: nothing has changed
//! ```

use format::objects::expiry::expiry_key;
use format::objects::record::ObjectRecord;
use format::objects::uploads::PART_KEY_BYTES;
use store::{Durability, RequestError};

use super::Core;
use super::error::BucketError;
use super::locks::Locked;
use crate::index::{Change, Index, IndexError, Table};
use crate::values::ValueChanges;

#[must_use]
pub(super) struct Edit<'a> {
    core: &'a Core,
    locked: Locked<'a>,
    /// What the values of the batch need.
    pub(super) values: ValueChanges<'a>,
    changes: Vec<Change>,
}

impl Core {
    /// Begins a change of `keys`, which nobody else changes until it ends.
    pub(super) fn edit<'a, 'k>(&'a self, keys: impl IntoIterator<Item = &'k [u8]>) -> Edit<'a> {
        let locked = self.stripes.lock(keys);
        Edit { core: self, locked, values: self.values.changes(), changes: Vec::new() }
    }

    /// The record of a key, of an expired object as well.
    pub(super) fn record(&self, key: &[u8]) -> Result<Option<ObjectRecord>, BucketError> {
        match self.index.get(Table::Objects, key)? {
            Some(bytes) => Ok(Some(ObjectRecord::decode(&bytes)?)),
            None => Ok(None),
        }
    }
}

impl Edit<'_> {
    /// The key has `after` from now on, and `before` no more; what `after` names is in
    /// [`Edit::values`] already.
    pub(super) fn set_object(
        &mut self,
        key: &[u8],
        before: Option<&ObjectRecord>,
        after: &ObjectRecord,
    ) -> Result<(), BucketError> {
        if let Some(before) = before {
            self.values.release(&before.value)?;
        }
        self.set_record(key, before, after);
        Ok(())
    }

    /// As [`Edit::set_object`], where both records have the same value.
    pub(super) fn set_record(
        &mut self,
        key: &[u8],
        before: Option<&ObjectRecord>,
        after: &ObjectRecord,
    ) {
        self.count(key, before, Some(after));
        let (old, new) = (before.and_then(|record| record.expires_unix_ms), after.expires_unix_ms);
        if old != new {
            self.change_expiry(key, old, new);
        }
        self.set(Table::Objects, key.to_vec(), after.encode());
    }

    /// The key has no object from now on.
    pub(super) fn remove_object(
        &mut self,
        key: &[u8],
        before: &ObjectRecord,
    ) -> Result<(), BucketError> {
        self.values.release(&before.value)?;
        self.count(key, Some(before), None);
        self.change_expiry(key, before.expires_unix_ms, None);
        self.remove(Table::Objects, key.to_vec());
        Ok(())
    }

    fn change_expiry(&mut self, key: &[u8], before: Option<u64>, after: Option<u64>) {
        if let Some(expires) = before {
            self.remove(Table::Expiry, expiry_key(expires, key));
        }
        if let Some(expires) = after {
            self.set(Table::Expiry, expiry_key(expires, key), Vec::new());
        }
    }

    fn count(&mut self, key: &[u8], before: Option<&ObjectRecord>, after: Option<&ObjectRecord>) {
        let figures = self.locked.figures_of(key);
        change_counts(&mut figures.objects, &mut figures.object_bytes, before, after);
    }

    /// A part of an upload of `key` has `after` from now on, and `before` no more. The caller has
    /// released the value of `before`, unless the object has it now.
    pub(super) fn set_part(
        &mut self,
        key: &[u8],
        part: [u8; PART_KEY_BYTES],
        before: Option<&ObjectRecord>,
        after: Option<&ObjectRecord>,
    ) {
        let figures = self.locked.figures_of(key);
        change_counts(&mut figures.parts, &mut figures.part_bytes, before, after);
        match after {
            Some(record) => self.set(Table::Uploads, part.to_vec(), record.encode()),
            None => self.remove(Table::Uploads, part.to_vec()),
        }
    }

    pub(super) fn set(&mut self, table: Table, key: Vec<u8>, value: Vec<u8>) {
        self.changes.push(Change::Set { table, key, value });
    }

    pub(super) fn remove(&mut self, table: Table, key: Vec<u8>) {
        self.changes.push(Change::Remove { table, key });
    }

    /// Makes all changes together. They are visible then, and a later flush makes them durable. The
    /// keys stay locked, and the edit goes on empty.
    ///
    /// # Errors
    /// [`BucketError::QuotaExceeded`], [`BucketError::Index`]: nothing has changed, and the edit is
    /// to be dropped.
    pub(super) fn apply(&mut self) -> Result<(), BucketError> {
        let (before, after) = self.locked.sums();
        let growth = self.core.usage.reserve(&before, &after)?;
        let mut values = std::mem::replace(&mut self.values, self.core.values.changes());
        let mut changes = std::mem::take(&mut self.changes);
        let objects = changes.iter().filter_map(|change| match change {
            Change::Set { table: Table::Objects, key, .. }
            | Change::Remove { table: Table::Objects, key } => Some(key.as_slice()),
            _ => None,
        });
        let changing = self.core.moments.change(objects);
        changes.extend(self.locked.changes());
        changes.extend(values.take());
        match self.core.index.apply(changes, Durability::Acknowledged) {
            Ok(()) => values.applied(),
            Err(error) => {
                if is_refusal(&error) {
                    values.refused();
                }
                return Err(error.into());
            }
        }
        drop(changing);
        growth.settle(&before, &after);
        self.locked.settle();
        Ok(())
    }

    /// Makes all changes together, and returns when they are as safe as `durability` says. The keys
    /// are not locked while it waits for the device.
    ///
    /// # Errors
    /// Those of [`Edit::apply`]; where the flush fails, the changes are made, and a crash may take
    /// them back.
    pub(super) fn finish(mut self, durability: Durability) -> Result<(), BucketError> {
        self.apply()?;
        let core = self.core;
        drop(self);
        core.make_durable(durability)
    }
}

/// What is counted wraps: where an imported bucket says that it holds less than it does, a check
/// finds it, and the objects can be deleted all the same.
fn change_counts(
    count: &mut u64,
    bytes: &mut u64,
    before: Option<&ObjectRecord>,
    after: Option<&ObjectRecord>,
) {
    let size_bytes = |record: Option<&ObjectRecord>| record.map_or(0, ObjectRecord::size_bytes);
    let (more, less) = (u64::from(after.is_some()), u64::from(before.is_some()));
    *count = count.wrapping_add(more).wrapping_sub(less);
    *bytes = bytes.wrapping_add(size_bytes(after)).wrapping_sub(size_bytes(before));
}

/// Whether a batch is certainly not in the log, not even for a later opening.
fn is_refusal(error: &IndexError) -> bool {
    matches!(
        error,
        IndexError::Volume(RequestError::NoSpace)
            | IndexError::KeyTooLong { .. }
            | IndexError::ValueTooLong { .. }
            | IndexError::BatchTooLarge { .. }
            | IndexError::ReadOnly
    )
}
