//! Taking the memory table into redb.
//!
//! ```text
//! active ──freeze, with the log's end──> frozen ──step──step──last step──> gone, log released
//!                                          └─ a step fails: it stays, the next merge goes on
//! ```
//!
//! A step is a commit of redb and a write-out, of so many changes that their pages have room in
//! memory. The last one says up to where the log is in redb. So after a crash within a merge the
//! whole log is replayed over what some steps have taken in already, which says the same.
//!
//! A step that finds no room is tried with fewer changes, and at last with room that is kept for
//! releases: without a merge the log fills, and then nothing can be deleted either.

use std::ops::Bound;
use std::sync::Arc;

use format::objects::log::Place;
use mutants::mutant;
use store::{RequestError, ReservedFor};

use crate::index::IndexError;
use crate::index::locks::{lock, read, write};
use crate::index::memory::{MemoryMap, NewValue, TableKey};
use crate::index::volume_index::VolumeIndex;

/// A step that finds no room has so many times fewer changes when it is tried again.
const SHRINK: usize = 8;

/// What a merge came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Keys that were set or removed.
    pub changes: u64,
    /// Commits of redb.
    pub steps: u64,
    /// Chunks that were written, both copies counted.
    pub chunks_written: u64,
}

impl VolumeIndex {
    /// Takes the memory table into the map on disk; nothing where it is empty. Others read and
    /// apply meanwhile.
    ///
    /// # Errors
    /// [`IndexError`]; what memory holds stays there, and the next merge goes on.
    pub fn merge(&self) -> Result<Merged, IndexError> {
        self.merge_while(|| true)
    }

    /// As [`VolumeIndex::merge`], if `is_needed` still when it is this caller's turn.
    pub(in crate::index) fn merge_while(
        &self,
        is_needed: impl Fn() -> bool,
    ) -> Result<Merged, IndexError> {
        if self.is_read_only {
            return Err(IndexError::ReadOnly);
        }
        let mut merging = lock(&self.merging);
        if !is_needed() {
            return Ok(Merged::default());
        }
        let Some((frozen, end)) = self.freeze(&mut merging) else { return Ok(Merged::default()) };
        if mutant!(ReleasesLogEarly) {
            lock(&self.log).release(end)?;
        }
        let merged = self.merge_steps(&frozen, end)?;
        *merging = None;
        let dropped = write(&self.memory).drop_frozen();
        // Outside the lock: it may be large.
        drop((dropped, frozen));
        lock(&self.log).release(end)?;
        Ok(merged)
    }

    /// The table to be merged, and where the log goes on behind it.
    fn freeze(&self, merging: &mut Option<Place>) -> Option<(Arc<MemoryMap>, Place)> {
        let log = lock(&self.log);
        let mut memory = write(&self.memory);
        if memory.frozen().is_none() {
            if memory.active_changes() == 0 && log.next() == log.merged() {
                return None;
            }
            memory.freeze();
            *merging = Some(log.next());
        }
        let end = (*merging)?;
        memory.frozen().map(|frozen| (Arc::clone(frozen), end))
    }

    fn merge_steps(&self, frozen: &MemoryMap, end: Place) -> Result<Merged, IndexError> {
        let mut merged = Merged::default();
        let mut step_changes = self.shares.step_changes.max(1);
        let mut reserved_for = ReservedFor::Writes;
        let mut behind: Bound<&[u8]> = Bound::Unbounded;
        loop {
            let mut rest = frozen.range::<[u8], _>((behind, Bound::Unbounded));
            let changes = self.step_of(&mut rest, step_changes);
            let place = rest.next().is_none().then_some(end);
            match self.tree.commit(&changes, place, reserved_for) {
                Ok(chunks_written) => {
                    merged.changes += changes.len() as u64;
                    merged.steps += 1;
                    merged.chunks_written += chunks_written;
                }
                Err(IndexError::Volume(RequestError::NoSpace)) if step_changes > 1 => {
                    step_changes = (step_changes / SHRINK).max(1);
                    continue;
                }
                Err(IndexError::Volume(RequestError::NoSpace))
                    if reserved_for == ReservedFor::Writes =>
                {
                    reserved_for = ReservedFor::Releases;
                    step_changes = self.shares.step_changes.max(1);
                    continue;
                }
                Err(error) => return Err(error),
            }
            if place.is_some() {
                return Ok(merged);
            }
            if let Some((key, _)) = changes.last() {
                behind = Bound::Excluded(key);
            }
        }
    }

    /// The next changes that are one step.
    fn step_of<'a>(
        &self,
        rest: &mut impl Iterator<Item = (&'a TableKey, &'a NewValue)>,
        step_changes: usize,
    ) -> Vec<(&'a TableKey, &'a NewValue)> {
        let (mut changes, mut bytes) = (Vec::new(), 0);
        while changes.len() < step_changes && bytes < self.shares.step_bytes {
            let Some((key, value)) = rest.next() else { break };
            bytes += key.len() + value.as_ref().map_or(0, |value| value.len());
            changes.push((key, value));
        }
        changes
    }

    /// What memory holds that is not in redb, in bytes.
    #[must_use]
    pub fn memory_table_bytes(&self) -> usize {
        read(&self.memory).active_bytes()
    }
}
