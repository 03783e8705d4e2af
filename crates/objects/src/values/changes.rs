//! What a batch of the index must change for the values in it.
//!
//! ```text
//! name / release / share ──> take ──> the caller's apply ──> applied
//!          └─ dropped: nothing        ├─ dropped: nobody knows, all stays held
//!                                     └─ refused: nothing
//! ```
//!
//! Invariant: what is in [`ValueChanges::take`] is applied in one batch with the records that name,
//! or no longer name, the values. A caller that releases or shares the value of an object keeps
//! that object from others until the batch has been applied: then a value that is found unshared
//! stays so, and only where one is shared the lock of sharing is held as long.

use std::ops::Range;
use std::sync::MutexGuard;

use format::objects::record::Value;
use format::objects::segments::ListEntry;
use mutants::mutant;

use super::backing::Backing;
use super::error::ValueError;
use super::extent_tables::{
    add_reference, drop_reference, is_shared, set_to_free, set_tree_to_free,
};
use super::pending::Pending;
use super::together::WrittenTogether;
use super::writer::{Claim, WrittenValue};
use crate::index::Change;

/// Changes of the index for the values of one batch.
#[must_use]
pub struct ValueChanges<'a> {
    backing: &'a Backing,
    pending: Pending,
    sharing: Option<MutexGuard<'a, ()>>,
    claims: Vec<Claim>,
    /// What nobody names from the batch on.
    released: Vec<Range<u64>>,
    taken: bool,
}

impl<'a> ValueChanges<'a> {
    pub(super) fn new(backing: &'a Backing) -> Self {
        let pending = Pending::new(&backing.index);
        let (claims, released) = (Vec::new(), Vec::new());
        Self { backing, pending, sharing: None, claims, released, taken: false }
    }

    /// Records of the batch name all of `written`; returns the values in their order.
    pub fn name_together(&mut self, written: WrittenTogether) -> Vec<Value> {
        let (values, claim) = written.into_parts();
        self.claim(claim);
        values
    }

    /// A record of the batch names `written`; returns its value.
    pub fn name(&mut self, written: WrittenValue) -> Value {
        let (value, claim) = written.into_parts();
        self.claim(claim);
        value
    }

    fn claim(&mut self, mut claim: Claim) {
        claim.claim(&mut self.pending);
        self.claims.push(claim);
    }

    /// No record names `value` any more that named it before.
    ///
    /// # Errors
    /// [`ValueError`]; then the batch is to be dropped.
    pub fn release(&mut self, value: &Value) -> Result<(), ValueError> {
        value.entries().iter().try_for_each(|entry| self.release_entry(entry))
    }

    fn release_entry(&mut self, entry: &ListEntry) -> Result<(), ValueError> {
        let chunks = entry.chunks();
        if !self.backing.may_be_shared() {
            self.free_entry(entry, &chunks);
            return Ok(());
        }
        if self.sharing.is_none() && is_shared(&self.pending, &chunks)? {
            self.sharing = Some(self.backing.lock_sharing());
        }
        for unnamed in drop_reference(&mut self.pending, &chunks)? {
            self.free_entry(entry, &unnamed);
        }
        Ok(())
    }

    /// Nobody names `unnamed` of an entry any more.
    fn free_entry(&mut self, entry: &ListEntry, unnamed: &Range<u64>) {
        match entry {
            ListEntry::Run(_) => {
                set_to_free(&mut self.pending, unnamed);
                self.released.push(unnamed.clone());
            }
            ListEntry::Subtree(subtree) => set_tree_to_free(&mut self.pending, subtree, 0),
        }
    }

    /// A record of the batch names `entries` that another record, or a list of one, names as well.
    ///
    /// # Errors
    /// [`ValueError`]; then the batch is to be dropped.
    pub fn share(&mut self, entries: &[ListEntry]) -> Result<(), ValueError> {
        if mutant!(ForgetsCountOfCopy) {
            return Ok(());
        }
        self.backing.begin_sharing();
        if self.sharing.is_none() && !entries.is_empty() {
            self.sharing = Some(self.backing.lock_sharing());
        }
        entries.iter().try_for_each(|entry| add_reference(&mut self.pending, &entry.chunks()))
    }

    /// The changes, to be applied together with those of records.
    #[must_use]
    pub fn take(&mut self) -> Vec<Change> {
        self.taken = true;
        self.pending.take()
    }

    /// The batch was refused before it was written: it is not applied, and no opening will find it.
    /// What was written is abandoned, and the trimmer may have it at once.
    pub fn refused(mut self) {
        self.taken = false;
    }

    /// The batch has been applied.
    pub fn applied(mut self) {
        assert!(self.taken, "what was not taken was not applied");
        self.claims.drain(..).for_each(Claim::settle);
        self.backing.released.add(self.released.drain(..));
    }
}

impl Drop for ValueChanges<'_> {
    fn drop(&mut self) {
        if self.taken {
            self.claims.drain(..).for_each(Claim::retire);
        }
    }
}
