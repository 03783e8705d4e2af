//! Counts who names what in the value space, a window of it at a time, in bounded memory.
//!
//! ```text
//! window begins ─ name: each value of the bucket ─ finish: Free, ToFree, Shared ─> problems
//!      └─ the next one, until the space has been counted: each walks over all values again
//! ```
//!
//! The counts are kept where they change, and neighbours that say the same are one: what many
//! small values carve off a region one behind the other is two changes when all have been seen.
//! When there are more changes than memory has room for, the upper half of the window is left to
//! the next one. So there is one window for as many ranges as `memory_bytes` / 128 at least.
//!
//! A block that several name is walked below once. These blocks are remembered, and they are as few
//! as there are copies of long values.

mod remake;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use format::objects::extents::{ToFree, decode_free, decode_shared, decode_to_free, extent_key};
use format::objects::record::Value;
use format::objects::segments::{ListEntry, Subtree};

use super::Values;
use super::backing::Backing;
use super::error::ValueError;
use super::extent_tables::is_shared;
use super::list_cursor::read_block;
use super::pending::Pending;
use crate::index::{Entry, Table};

/// Memory that a place has where counts change, or a block that is remembered.
const PLACE_BYTES: u64 = 128;
/// Fewest places, whatever the memory.
const PLACES_MIN: u64 = 64;
/// Entries of a table read at a time.
const SCAN_ENTRIES: usize = 1024;

/// What is wrong with chunks of the value space.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChunkProblem {
    /// Nobody names them, and they are neither free nor to be freed.
    #[error("chunks {} to {} are leaked", .0.start, .0.end)]
    Leaked(Range<u64>),
    /// They are in more than one state.
    #[error(
        "chunks {} to {} are named {named} times, to be freed {to_free} times and free {free} \
         times",
        .chunks.start, .chunks.end
    )]
    SeveralStates {
        /// Which.
        chunks: Range<u64>,
        /// How many name them.
        named: i64,
        /// How often they are to be freed.
        to_free: i64,
        /// How often they are free.
        free: i64,
    },
    /// The table of what is shared says another number than there is.
    #[error(
        "chunks {} to {} are named {named} times, and the bucket has counted {counted}",
        .chunks.start, .chunks.end
    )]
    Count {
        /// Which.
        chunks: Range<u64>,
        /// How many name them.
        named: i64,
        /// What the table says; 0: nothing.
        counted: i64,
    },
    /// Something names them that no value can be given.
    #[error(
        "chunks {} to {} are in use outside the value space that was given out",
        .0.start,
        .0.end
    )]
    OutsideSpace(Range<u64>),
    /// A block of a list cannot be read: what it names counts as leaked.
    #[error("the block in chunk {block_chunk} cannot be read: {reason}")]
    UnreadableBlock {
        /// Where it is.
        block_chunk: u64,
        /// Why.
        reason: String,
    },
}

/// How counts change from one chunk to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    named: i64,
    to_free: i64,
    free: i64,
    shared: i64,
}

impl Counts {
    fn plus(self, other: Self, sign: i64) -> Self {
        Self {
            named: self.named + sign * other.named,
            to_free: self.to_free + sign * other.to_free,
            free: self.free + sign * other.free,
            shared: self.shared + sign * other.shared,
        }
    }
}

/// A window of the value space that is being counted.
pub struct Recount {
    backing: Arc<Backing>,
    window: Range<u64>,
    places: BTreeMap<u64, Counts>,
    places_max: usize,
    /// Whether the table of what is shared says which blocks several entries name.
    knows_shared: bool,
    /// Blocks that several name, or all where nothing says which these are.
    shared_blocks: BTreeSet<u64>,
    problems: Vec<ChunkProblem>,
}

/// What was found in a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecountedWindow {
    /// What is wrong.
    pub problems: Vec<ChunkProblem>,
    /// The first chunk of the next window; none when the space has been counted.
    pub next: Option<u64>,
}

impl Values {
    /// Begins to count a window from `first_chunk` on; none: from the start. Nobody may change the
    /// bucket until it has been counted.
    #[must_use]
    pub fn recount(&self, first_chunk: Option<u64>, memory_bytes: u64) -> Recount {
        let window = first_chunk.unwrap_or(0)..u64::MAX;
        let places_max = (memory_bytes / PLACE_BYTES).max(PLACES_MIN) as usize;
        Recount {
            backing: Arc::clone(&self.backing),
            window,
            places: BTreeMap::new(),
            places_max,
            knows_shared: true,
            shared_blocks: BTreeSet::new(),
            problems: Vec::new(),
        }
    }
}

impl Recount {
    /// A record of the bucket has this value.
    ///
    /// # Errors
    /// [`ValueError`] when the index or the volume cannot be asked.
    pub fn name(&mut self, value: &Value) -> Result<(), ValueError> {
        self.name_entries(value.entries().to_vec())
    }

    fn name_entries(&mut self, mut stack: Vec<ListEntry>) -> Result<(), ValueError> {
        while let Some(entry) = stack.pop() {
            self.add(&entry.chunks(), Counts { named: 1, ..Counts::default() });
            if let ListEntry::Subtree(subtree) = entry {
                stack.extend(self.entries_below(&subtree)?);
            }
        }
        Ok(())
    }

    /// What a block names; nothing when it was named before.
    fn entries_below(&mut self, subtree: &Subtree) -> Result<Vec<ListEntry>, ValueError> {
        let chunks = subtree.block_chunk..subtree.block_chunk + 1;
        let may_be_shared =
            !self.knows_shared || is_shared(&Pending::new(&self.backing.index), &chunks)?;
        if may_be_shared && !self.shared_blocks.insert(subtree.block_chunk) {
            return Ok(Vec::new());
        }
        self.read(subtree)
    }

    fn read(&mut self, subtree: &Subtree) -> Result<Vec<ListEntry>, ValueError> {
        match read_block(self.backing.volume.as_ref(), subtree, 0) {
            Ok(entries) => Ok(entries),
            Err(error @ (ValueError::Damaged { .. } | ValueError::DamagedList { .. })) => {
                let block_chunk = subtree.block_chunk;
                if self.window.contains(&block_chunk) {
                    let reason = error.to_string();
                    self.problems.push(ChunkProblem::UnreadableBlock { block_chunk, reason });
                }
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }

    fn add(&mut self, chunks: &Range<u64>, counts: Counts) {
        let chunks = chunks.start.max(self.window.start)..chunks.end.min(self.window.end);
        if chunks.is_empty() {
            return; // They are another window's.
        }
        self.change_at(chunks.start, counts, 1);
        if chunks.end < self.window.end {
            self.change_at(chunks.end, counts, -1);
        }
        if self.places.len() > self.places_max
            && let Some((&middle, _)) = self.places.iter().nth(self.places.len() / 2)
        {
            self.places.split_off(&middle);
            self.window.end = middle;
        }
    }

    fn change_at(&mut self, chunk: u64, counts: Counts, sign: i64) {
        let changed = self.places.get(&chunk).copied().unwrap_or_default().plus(counts, sign);
        match changed == Counts::default() {
            true => drop(self.places.remove(&chunk)),
            false => drop(self.places.insert(chunk, changed)),
        }
    }

    /// Ends the window: all records of the bucket were named.
    ///
    /// # Errors
    /// [`ValueError`] when the index or the volume cannot be asked; an entry of a table that is
    /// none.
    pub fn finish(mut self) -> Result<RecountedWindow, ValueError> {
        self.name_trees()?;
        self.add_table(Table::ToFree, |(key, value)| {
            let (chunks, _) = decode_to_free(key, value)?;
            Ok((chunks, Counts { to_free: 1, ..Counts::default() }))
        })?;
        self.add_table(Table::Free, |(key, value)| {
            Ok((decode_free(key, value)?, Counts { free: 1, ..Counts::default() }))
        })?;
        self.add_table(Table::Shared, |(key, value)| {
            let (chunks, count) = decode_shared(key, value)?;
            let shared = i64::try_from(count).unwrap_or(i64::MAX);
            Ok((chunks, Counts { shared, ..Counts::default() }))
        })?;
        self.judge();
        let next = (self.window.end < u64::MAX).then_some(self.window.end);
        Ok(RecountedWindow { problems: self.problems, next })
    }

    /// What blocks name that are to be freed themselves.
    fn name_trees(&mut self) -> Result<(), ValueError> {
        let mut from = Vec::new();
        loop {
            let entries = self.backing.index.scan(Table::ToFree, &from, SCAN_ENTRIES)?;
            for (key, value) in &entries {
                if let (_, ToFree::Tree { subtree, position }) = decode_to_free(key, value)? {
                    let mut below = self.read(&subtree)?;
                    self.name_entries(below.split_off(usize::from(position).min(below.len())))?;
                }
            }
            let Some((last, _)) = entries.last() else { return Ok(()) };
            from = [last.as_slice(), &[0]].concat();
        }
    }

    /// Adds the ranges of a table that are in the window.
    fn add_table(
        &mut self,
        table: Table,
        decode: impl Fn(&Entry) -> Result<(Range<u64>, Counts), ValueError>,
    ) -> Result<(), ValueError> {
        let mut from = (self.window.start > 0).then(|| extent_key(self.window.start + 1).to_vec());
        loop {
            let at = from.unwrap_or_default();
            let entries = self.backing.index.scan(table, &at, SCAN_ENTRIES)?;
            for entry in &entries {
                let (chunks, counts) = decode(entry)?;
                if chunks.start >= self.window.end {
                    return Ok(());
                }
                self.add(&chunks, counts);
            }
            let Some((last, _)) = entries.last() else { return Ok(()) };
            from = Some([last.as_slice(), &[0]].concat());
        }
    }

    /// Holds each chunk of the window to be in one state.
    fn judge(&mut self) {
        let space = self.backing.space.range();
        let given_out = space.start..self.backing.space.high_water();
        let mut places = std::mem::take(&mut self.places);
        for edge in [given_out.start, given_out.end, self.window.start] {
            if self.window.contains(&edge) {
                places.entry(edge).or_default();
            }
        }
        let mut counts = Counts::default();
        let mut places = places.into_iter().peekable();
        while let Some((start, change)) = places.next() {
            counts = counts.plus(change, 1);
            let end = places.peek().map_or(self.window.end, |(next, _)| *next);
            let problem = problem_of(start..end, counts, given_out.contains(&start));
            self.problems.extend(problem);
        }
    }
}

fn problem_of(chunks: Range<u64>, counts: Counts, is_given_out: bool) -> Option<ChunkProblem> {
    let Counts { named, to_free, free, shared } = counts;
    if !is_given_out {
        return (counts != Counts::default()).then_some(ChunkProblem::OutsideSpace(chunks));
    }
    match i64::from(named > 0) + to_free + free {
        0 => return Some(ChunkProblem::Leaked(chunks)),
        1 => (),
        _ => return Some(ChunkProblem::SeveralStates { chunks, named, to_free, free }),
    }
    let counted_right = if named > 1 { named } else { 0 };
    (shared != counted_right).then_some(ChunkProblem::Count { chunks, named, counted: shared })
}
