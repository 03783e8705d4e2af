//! Builds the list of a value's segments while the value is written, in memory bounded by depth.
//!
//! ```text
//! level 2: | block of 169 | block of 169 |                  ──┐
//! level 1: | block of 169 | ...                               ├─ finish: one list of up to 64
//! level 0: | run | run | ...     <── push                   ──┘
//! ```
//!
//! A level that has as many entries as a block holds becomes a block when one more comes. In a
//! *streamed* value, whose entries nobody else names, the block enters `ToFree` as a tree in the
//! batch that takes what it names out; so the last batch stays small, and a value that is abandoned
//! is found by the trimmer. In a *composed* value the entries belong to others until the end, so
//! blocks stay in `ToFree` as ranges until then.

use std::sync::Arc;

use format::objects::CHUNK_BYTES;
use format::objects::segments::{LEVEL_MAX, ListEntry, Run, block_level, encode_block};
use store::{Durability, WriteOptions};

use super::backing::Backing;
use super::error::ValueError;
use super::extent_tables::{claim_tree, set_tree_to_free};
use super::extent_use::ExtentQueue;
use super::pending::Pending;

/// How blocks are written: each holds its own address, so there is no second one to find.
pub(super) const BLOCKS: WriteOptions =
    WriteOptions { durability: Durability::Acknowledged, unindexed: true };

/// Who names the entries of a list that is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Built {
    /// Nobody else.
    Streamed,
    /// Maybe records, until the value is named.
    Composed,
}

pub(super) struct ListBuilder {
    backing: Arc<Backing>,
    pub(super) built: Built,
    /// Entries that are in no block, by level.
    levels: Vec<Vec<ListEntry>>,
    /// Where blocks go.
    pub(super) blocks: ExtentQueue,
    /// Runs of a streamed value lie in these, in their order.
    pub(super) data: ExtentQueue,
}

impl ListBuilder {
    pub(super) fn new(backing: &Arc<Backing>, built: Built, data: ExtentQueue) -> Self {
        let blocks = ExtentQueue::new(&backing.regions, backing.limits.blocks_chunks);
        Self { backing: Arc::clone(backing), built, levels: vec![Vec::new()], blocks, data }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.levels.iter().all(Vec::is_empty)
    }

    /// Appends bytes that were written for this value; those that continue the last run become
    /// part of it.
    pub(super) fn push_written(&mut self, run: Run) -> Result<(), ValueError> {
        if let Some(ListEntry::Run(last)) = self.levels[0].last_mut()
            && self.built == Built::Streamed
            && last.is_continued_by(&run)
        {
            last.length_bytes += run.length_bytes;
            return Ok(());
        }
        self.push(0, ListEntry::Run(run))
    }

    /// Appends an entry of another list, as it is.
    pub(super) fn push_entry(&mut self, entry: ListEntry) -> Result<(), ValueError> {
        assert!(self.built == Built::Composed, "others' entries belong to composed values");
        self.push(0, entry)
    }

    fn push(&mut self, level: usize, entry: ListEntry) -> Result<(), ValueError> {
        if self.levels[level].len() == self.backing.limits.block_entries {
            self.write_block(level)?;
        }
        self.levels[level].push(entry);
        Ok(())
    }

    /// Makes a block of the entries of a level.
    fn write_block(&mut self, level: usize) -> Result<(), ValueError> {
        let entries = std::mem::take(&mut self.levels[level]);
        if block_level(&entries) > LEVEL_MAX {
            return Err(ValueError::TooDeep);
        }
        let block_chunk = self.blocks.next_chunk()?;
        let (bytes, subtree) = encode_block(&entries, block_chunk);
        let writes = [(block_chunk * CHUNK_BYTES, bytes.as_slice())];
        self.backing.volume.write_vectored_at(&writes, BLOCKS)?;
        if self.built == Built::Streamed {
            let mut pending = Pending::new(&self.backing.index);
            self.claim_entries(&mut pending, &entries);
            self.blocks.claim_written(&mut pending);
            set_tree_to_free(&mut pending, &subtree, 0);
            self.backing.index.apply(pending.take(), Durability::Acknowledged)?;
            self.data.forget_claimed();
        }
        if self.levels.len() == level + 1 {
            self.levels.push(Vec::new());
        }
        self.push(level + 1, ListEntry::Subtree(subtree))
    }

    /// Takes out of `ToFree` what entries of a streamed value name.
    fn claim_entries(&mut self, pending: &mut Pending, entries: &[ListEntry]) {
        for entry in entries {
            match entry {
                ListEntry::Run(_) => self.data.claim(pending, entry.chunks()),
                ListEntry::Subtree(subtree) => claim_tree(pending, subtree),
            }
        }
    }

    /// The list of the whole value, short enough for a record.
    pub(super) fn finish(&mut self) -> Result<Vec<ListEntry>, ValueError> {
        let mut level = 0;
        while self.levels.iter().map(Vec::len).sum::<usize>() > self.backing.limits.list_entries {
            if !self.levels[level].is_empty() {
                self.write_block(level)?;
            }
            level += 1;
        }
        Ok(self.levels.iter().rev().flatten().copied().collect())
    }

    /// Says in a batch that `list` is named, which [`ListBuilder::finish`] returned.
    pub(super) fn claim(&mut self, pending: &mut Pending, list: &[ListEntry]) {
        match self.built {
            Built::Streamed => self.claim_entries(pending, list),
            Built::Composed => {
                self.blocks.claim_written(pending);
                self.data.claim_written(pending);
            }
        }
    }
}
