//! Trims what nobody names and frees it, a bounded step at a time.
//!
//! ```text
//! ToFree, range ── not held ─> trimmed ─> Free, one with its neighbours
//!    found by a scan, or in the list of what was just released
//! ToFree, tree ─── not held ─> its entries are released from its position on
//!                              └─ the last: its block is a range in ToFree
//! ```
//!
//! Trim comes before the change that frees: a crash between the two trims again, and an address is
//! never given out with old bytes on it. The block of a tree is trimmed after the change that needs
//! it no more, as a range of its own. Trees are taken apart from the top down and depth first, so
//! that what `ToFree` has of a value of any length is bounded by its depth.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use format::objects::CHUNK_BYTES;
use format::objects::extents::{ToFree, decode_to_free, extent_key};
use format::objects::segments::{ListEntry, Subtree};
use mutants::mutant;
use store::Durability;

use super::backing::Backing;
use super::error::ValueError;
use super::extent_tables::{drop_reference, give_free, set_to_free, set_tree_to_free, to_free_at};
use super::list_cursor::read_block;
use super::pending::Pending;
use super::space::lock;
use crate::index::Table;

/// Entries of `ToFree` that become free in one batch.
const BATCH_ENTRIES: usize = 64;
/// Ranges of the list that are put in order at a time, so that neighbours are freed together.
const ORDERED_ENTRIES: usize = 1024;

/// Where the trimmer goes on.
#[derive(Debug, Default)]
struct TrimmerState {
    /// Entries of `ToFree` from this key on are next.
    cursor: Vec<u8>,
    /// Entries trimmed or released since the cursor was at the table's start.
    lap_entries: u64,
    /// Ends of the blocks of trees that are being taken apart, the lowest last.
    trees: Vec<u64>,
    /// Blocks of trees that were taken apart: ranges in `ToFree` that are trimmed together.
    emptied: Vec<Range<u64>>,
    /// Blocks that could not be read, by their ends: their trees stay.
    damaged: BTreeSet<u64>,
}

/// What a call of [`super::Values::trim_some`] has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrimProgress {
    /// Bytes that became free.
    pub freed_bytes: u64,
    /// Entries that were trimmed or released.
    pub entries: u64,
    /// Entries that somebody holds.
    pub held: u64,
    /// Trees that stay because their blocks cannot be read, since the bucket was opened.
    pub damaged_trees: u64,
    /// All that there is to free was looked at, and what is left is held or damaged.
    pub is_done: bool,
}

/// The one trimmer of a bucket.
pub(super) struct Trimmer {
    backing: Arc<Backing>,
    state: Mutex<TrimmerState>,
}

impl Trimmer {
    pub(super) fn new(backing: &Arc<Backing>) -> Self {
        Self { backing: Arc::clone(backing), state: Mutex::default() }
    }

    pub(super) fn trim_some(&self, entries_max: u64) -> Result<TrimProgress, ValueError> {
        let mut state = lock(&self.state);
        let mut progress = TrimProgress::default();
        let mut looked = 0;
        while looked < entries_max {
            let before = progress.entries;
            if state.emptied.len() >= BATCH_ENTRIES || state.trees.is_empty() {
                let mut emptied = std::mem::take(&mut state.emptied);
                emptied.retain(|range| self.backing.space.choose_to_trim(range));
                self.free(&emptied, &mut progress)?;
            }
            if let Some(&end) = state.trees.last() {
                looked += 1;
                self.take_apart(end, &mut state, &mut progress)?;
            } else {
                let limit = (entries_max - looked).min(BATCH_ENTRIES as u64) as usize;
                let found = self.next_to_free(&mut state, limit, &mut progress)?;
                looked += found as u64;
                if found == 0 {
                    state.cursor.clear();
                    if std::mem::take(&mut state.lap_entries) == 0 {
                        progress.is_done = true;
                        break;
                    }
                }
            }
            state.lap_entries += progress.entries - before;
        }
        progress.damaged_trees = state.damaged.len() as u64;
        Ok(progress)
    }

    pub(super) fn free_released(&self, entries_max: u64) -> Result<TrimProgress, ValueError> {
        // One thread trims: a range that another had freed could be somebody's by now.
        let _state = lock(&self.state);
        let mut progress = TrimProgress::default();
        let mut left = usize::try_from(entries_max).unwrap_or(usize::MAX);
        while left > 0 {
            let mut ranges = self.backing.released.take(left.min(ORDERED_ENTRIES));
            let taken = ranges.len();
            if taken == 0 {
                progress.is_done = true;
                break;
            }
            left -= taken;
            ranges.retain(|range| self.backing.space.choose_to_trim(range));
            progress.held += (taken - ranges.len()) as u64;
            ranges.sort_unstable_by_key(|range| range.start);
            for batch in ranges.chunks(BATCH_ENTRIES) {
                self.free(batch, &mut progress)?;
            }
        }
        Ok(progress)
    }

    /// Frees up to `limit` ranges from the cursor on, up to the first tree; returns how many
    /// entries it looked at.
    fn next_to_free(
        &self,
        state: &mut TrimmerState,
        limit: usize,
        progress: &mut TrimProgress,
    ) -> Result<usize, ValueError> {
        let entries = self.backing.index.scan(Table::ToFree, &state.cursor, limit)?;
        let mut ranges = Vec::new();
        let mut looked = 0;
        for (key, value) in entries {
            looked += 1;
            let (range, kind) = decode_to_free(&key, &value)?;
            self.backing.space.check(&range)?;
            state.cursor = key;
            state.cursor.push(0);
            let is_damaged = state.damaged.contains(&range.end);
            match kind {
                ToFree::Tree { .. } if is_damaged => (), // It stays for a repair.
                ToFree::Tree { .. } => {
                    state.trees.push(range.end);
                    break;
                }
                ToFree::Range if self.backing.space.choose_to_trim(&range) => ranges.push(range),
                ToFree::Range => progress.held += 1,
            }
        }
        self.free(&ranges, progress)?;
        Ok(looked)
    }

    /// Trims and frees ranges that were chosen; in the order of their addresses it costs least.
    fn free(&self, ranges: &[Range<u64>], progress: &mut TrimProgress) -> Result<(), ValueError> {
        // Their owners may have claimed them between the scan and the choice.
        let before = Pending::new(&self.backing.index);
        let mut unchanged = Vec::with_capacity(ranges.len());
        for range in ranges {
            let found = to_free_at(&before, range.end)?;
            if found == Some((range.clone(), ToFree::Range)) {
                unchanged.push(range);
            }
        }
        let ranges = unchanged;
        if ranges.is_empty() {
            return Ok(());
        }
        if !mutant!(FreesBeforeTrim) {
            self.trim(ranges.iter().copied())?;
        }
        let space = self.backing.space.lock();
        let mut pending = Pending::ordered(&self.backing.index);
        for range in &ranges {
            pending.remove(Table::ToFree, &extent_key(range.end));
            give_free(&mut pending, range)?;
            progress.entries += 1;
            progress.freed_bytes += (range.end - range.start) * CHUNK_BYTES;
        }
        self.backing.index.apply(pending.take(), Durability::Acknowledged)?;
        drop(space);
        if mutant!(FreesBeforeTrim) {
            self.trim(ranges.iter().copied())?;
        }
        Ok(())
    }

    /// Trims ranges in the order of their addresses, neighbours at once.
    fn trim<'a>(&self, ranges: impl Iterator<Item = &'a Range<u64>>) -> Result<(), ValueError> {
        let mut sorted: Vec<Range<u64>> = ranges.cloned().collect();
        sorted.sort_unstable_by_key(|range| range.start);
        sorted.dedup_by(|next, last| {
            let is_next = last.end == next.start;
            if is_next {
                last.end = next.end;
            }
            is_next
        });
        for range in sorted {
            let length_bytes = (range.end - range.start) * CHUNK_BYTES;
            self.backing.volume.trim(range.start * CHUNK_BYTES, length_bytes)?;
        }
        Ok(())
    }

    /// Releases entries of the tree whose block ends before `end`, up to the first one that is a
    /// tree to be taken apart itself.
    fn take_apart(
        &self,
        end: u64,
        state: &mut TrimmerState,
        progress: &mut TrimProgress,
    ) -> Result<(), ValueError> {
        state.trees.pop();
        let found = to_free_at(&Pending::new(&self.backing.index), end)?;
        let Some((range, ToFree::Tree { .. })) = found else {
            return Ok(()); // It is a range by now, or its writer has named it.
        };
        if !self.backing.space.choose_to_trim(&range) {
            progress.held += 1;
            return Ok(()); // Somebody reads it: another lap finds it again.
        }
        // Its writer may have named it before it was chosen.
        let found = to_free_at(&Pending::new(&self.backing.index), end)?;
        let Some((_, ToFree::Tree { subtree, position })) = found else {
            return Ok(()); // As above.
        };
        let entries = match read_block(self.backing.volume.as_ref(), &subtree, 0) {
            Ok(entries) => entries,
            Err(ValueError::Damaged { .. } | ValueError::DamagedList { .. }) => {
                state.damaged.insert(end);
                return Ok(()); // What it named is for a repair to find.
            }
            Err(error) => return Err(error),
        };
        progress.entries += 1;
        self.release_entries(&subtree, &entries, position, state, progress)
    }

    fn release_entries(
        &self,
        tree: &Subtree,
        entries: &[ListEntry],
        position: u16,
        state: &mut TrimmerState,
        progress: &mut TrimProgress,
    ) -> Result<(), ValueError> {
        let sharing = self.backing.lock_sharing();
        let mut pending = Pending::new(&self.backing.index);
        let (mut next, mut unnamed, mut child) = (usize::from(position), Vec::new(), None);
        while child.is_none()
            && let Some(entry) = entries.get(next)
        {
            next += 1;
            let dropped = drop_reference(&mut pending, &entry.chunks())?;
            match entry {
                ListEntry::Run(_) => unnamed.extend(dropped),
                ListEntry::Subtree(subtree) if !dropped.is_empty() => child = Some(*subtree),
                ListEntry::Subtree(_) => (), // Another list names it still.
            }
        }
        let (chosen, held): (Vec<Range<u64>>, Vec<Range<u64>>) =
            unnamed.into_iter().partition(|range| self.backing.space.choose_to_trim(range));
        chosen.iter().try_for_each(|range| self.backing.space.check(range))?;
        self.trim(chosen.iter())?;
        held.iter().for_each(|range| set_to_free(&mut pending, range));
        let block = ListEntry::Subtree(*tree).chunks();
        match next < entries.len() {
            true => {
                set_tree_to_free(&mut pending, tree, next as u16);
                state.trees.push(block.end);
            }
            false => {
                set_to_free(&mut pending, &block);
                state.emptied.push(block);
            }
        }
        if let Some(child) = child {
            set_tree_to_free(&mut pending, &child, 0);
            state.trees.push(child.block_chunk + 1);
        }
        let space = self.backing.space.lock();
        for range in &chosen {
            give_free(&mut pending, range)?;
            progress.freed_bytes += (range.end - range.start) * CHUNK_BYTES;
        }
        self.backing.index.apply(pending.take(), Durability::Acknowledged)?;
        drop(space);
        drop(sharing);
        Ok(())
    }
}
