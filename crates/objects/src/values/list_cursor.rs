//! Finds the run that holds a byte of a value, in as many reads of blocks as the list has levels.
//!
//! The way down to the last answer is kept, so a sequential reader reads each block once. Memory is
//! bounded by the depth of the list.

use std::ops::Range;

use format::objects::CHUNK_BYTES;
use format::objects::segments::{
    LEVEL_MAX, ListEntry, Run, SEGMENT_BLOCK_BYTES, Subtree, decode_block,
};
use store::RequestError;

use super::error::ValueError;
use crate::volume::BucketVolume;

/// Entries of the record or of a block, and where their bytes begin in the value.
struct Level {
    bytes: Range<u64>,
    entries: Vec<ListEntry>,
}

pub(super) struct ListCursor {
    /// From the record's list down.
    levels: Vec<Level>,
}

/// Whether a read failed because what it asked for is lost, and another may succeed.
pub(super) fn is_damage(error: &RequestError) -> bool {
    matches!(
        error,
        RequestError::Damaged { .. }
            | RequestError::DamagedTable { .. }
            | RequestError::ReadFailed { .. }
    )
}

/// The entries of a block, whose bytes begin at `start_bytes` of the value.
pub(super) fn read_block(
    volume: &dyn BucketVolume,
    subtree: &Subtree,
    start_bytes: u64,
) -> Result<Vec<ListEntry>, ValueError> {
    let lost = || start_bytes..start_bytes + subtree.length_bytes;
    let mut block = vec![0; SEGMENT_BLOCK_BYTES];
    match volume.read_at(subtree.block_chunk * CHUNK_BYTES, &mut block) {
        Ok(()) => (),
        Err(error) if is_damage(&error) => {
            return Err(ValueError::Damaged { bytes: lost(), reason: Box::new(error) });
        }
        Err(error) => return Err(error.into()),
    }
    decode_block(subtree, &block)
        .map_err(|reason| ValueError::DamagedList { bytes: lost(), reason })
}

impl ListCursor {
    pub(super) fn new(entries: &[ListEntry]) -> Self {
        let length_bytes = entries.iter().map(ListEntry::length_bytes).sum();
        let root = Level { bytes: 0..length_bytes, entries: entries.to_vec() };
        Self { levels: vec![root] }
    }

    /// Bytes of the value.
    pub(super) fn length_bytes(&self) -> u64 {
        self.levels[0].bytes.end
    }

    /// The run that holds the byte at `offset`, which the value has, and the offset of its first.
    pub(super) fn find(
        &mut self,
        volume: &dyn BucketVolume,
        offset: u64,
    ) -> Result<(Run, u64), ValueError> {
        assert!(offset < self.length_bytes(), "{offset} is in the value");
        while self.levels.last().is_some_and(|level| !level.bytes.contains(&offset)) {
            self.levels.pop();
        }
        loop {
            assert!(self.levels.len() <= usize::from(LEVEL_MAX) + 1, "levels fall");
            let (entry, start) = self.entry_at(offset);
            match entry {
                ListEntry::Run(run) => return Ok((run, start)),
                ListEntry::Subtree(subtree) => {
                    let entries = read_block(volume, &subtree, start)?;
                    let bytes = start..start + subtree.length_bytes;
                    self.levels.push(Level { bytes, entries });
                }
            }
        }
    }

    /// The entry of the lowest level that holds `offset`, and the offset of its first byte.
    fn entry_at(&self, offset: u64) -> (ListEntry, u64) {
        if let Some(level) = self.levels.last() {
            let mut start = level.bytes.start;
            for entry in &level.entries {
                let end = start + entry.length_bytes();
                if offset < end {
                    return (*entry, start);
                }
                start = end;
            }
        }
        panic!("a level has the bytes that its entries have");
    }
}

/// The entries of a list that have the bytes of `range`: those at its ends cut to it. At most two
/// blocks of a level are read, and only what is in them is returned one by one. An empty range has
/// no entries: one without bytes is none.
pub(super) fn slice(
    volume: &dyn BucketVolume,
    entries: &[ListEntry],
    range: &Range<u64>,
) -> Result<Vec<ListEntry>, ValueError> {
    let mut found = Vec::new();
    if range.is_empty() {
        return Ok(found);
    }
    // Blocks still to look into, the next one last.
    let mut stack: Vec<(ListEntry, u64)> = Vec::new();
    push_reversed(&mut stack, entries, 0);
    while let Some((entry, start)) = stack.pop() {
        let end = start + entry.length_bytes();
        if end <= range.start || range.end <= start {
            continue; // It has no byte of the range.
        }
        if range.start <= start && end <= range.end {
            found.push(entry);
            continue; // All of it is in the range.
        }
        match entry {
            ListEntry::Run(run) => {
                let part = range.start.max(start) - start..range.end.min(end) - start;
                found.push(ListEntry::Run(cut_run(&run, &part)));
            }
            ListEntry::Subtree(subtree) => {
                let entries = read_block(volume, &subtree, start)?;
                push_reversed(&mut stack, &entries, start);
            }
        }
    }
    Ok(found)
}

pub(super) fn push_reversed(stack: &mut Vec<(ListEntry, u64)>, entries: &[ListEntry], start: u64) {
    let bottom = stack.len();
    let mut at = start;
    for entry in entries {
        stack.push((*entry, at));
        at += entry.length_bytes();
    }
    stack[bottom..].reverse();
}

/// The bytes `part` of a run.
fn cut_run(run: &Run, part: &Range<u64>) -> Run {
    let skip_bytes = u64::from(run.skip_bytes) + part.start;
    Run {
        length_bytes: part.end - part.start,
        first_chunk: run.first_chunk + skip_bytes / CHUNK_BYTES,
        skip_bytes: (skip_bytes % CHUNK_BYTES) as u16,
    }
}
