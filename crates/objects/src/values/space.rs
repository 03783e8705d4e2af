//! Which chunks of the value space are given out next, and which are held meanwhile.
//!
//! ```text
//! beyond the high-water mark ──┐
//!        Free ─────────────────┴─ allocate ─> ToFree, held ─ named ─> ToFree ─ trimmed ─> Free
//! ```
//!
//! Next-fit: the cursor goes round, so that what was freed together is filled together and
//! neighbours have time to become free. Few entries are looked at for an allocation, whatever there
//! are; short ranges are left to shorter requests until the mark is at the end of the space.
//!
//! A chunk is *held* by a writer that may still write it, by a region, or by a reader's pin. The
//! trimmer passes by what is held; it chooses under the same lock, and counts its choices, so that
//! a reader knows whether one lay between its look-up and its pin.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use format::objects::CHUNK_BYTES;
use format::objects::extents::{HIGH_WATER_SETTING, decode_free, extent_key};
use mutants::mutant;
use store::Durability;

use super::error::ValueError;
use super::extent_tables::{set_to_free, take_free};
use super::pending::Pending;
use super::range_counts::RangeCounts;
use crate::index::{Index, Table};

/// Free ranges looked at for an allocation.
const LOOK_ENTRIES: usize = 32;
/// The same when there is nothing beyond the mark, at a time and in all.
const LOOK_ENTRIES_FULL: usize = 256;
const LOOKS_FULL: usize = 8;
/// A free range is worth taking if it is at least this part of what is wanted.
const WORTH_PART: u64 = 4;

/// Locks `mutex`; who panicked under it had changed all or nothing of what it guards.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) struct Space {
    index: Arc<dyn Index>,
    /// Chunks that there are.
    chunks: Range<u64>,
    state: Mutex<SpaceState>,
}

pub(super) struct SpaceState {
    /// Free ranges that end behind this chunk are looked at next.
    cursor: u64,
    /// The chunk behind the highest one ever given out.
    high_water: u64,
    held: RangeCounts,
    /// How often the trimmer has chosen.
    generation: u64,
}

/// The trimmer's choices up to a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Generation(u64);

impl Space {
    /// The space of `chunks`, as the index knows it.
    pub(super) fn open(
        index: &Arc<dyn Index>,
        chunks: Range<u64>,
    ) -> Result<Arc<Self>, ValueError> {
        let high_water = match index.get(Table::Settings, HIGH_WATER_SETTING)? {
            None => chunks.start,
            Some(value) => decode_high_water(&value, &chunks)?,
        };
        let (cursor, held) = (chunks.start, RangeCounts::default());
        let state = Mutex::new(SpaceState { cursor, high_water, held, generation: 0 });
        Ok(Arc::new(Self { index: Arc::clone(index), chunks, state }))
    }

    /// The state, for who changes `Free`.
    pub(super) fn lock(&self) -> MutexGuard<'_, SpaceState> {
        lock(&self.state)
    }

    /// The chunks that there are.
    pub(super) fn range(&self) -> Range<u64> {
        self.chunks.clone()
    }

    /// How many chunks there are.
    pub(super) fn chunks(&self) -> u64 {
        self.chunks.end - self.chunks.start
    }

    pub(super) fn high_water(&self) -> u64 {
        self.lock().high_water
    }

    /// The trimmer's choices up to now.
    pub(super) fn generation(&self) -> Generation {
        Generation(self.lock().generation)
    }

    /// Between `least` and `want` consecutive chunks: in `ToFree` and held from now on.
    pub(super) fn allocate(
        self: &Arc<Self>,
        want: u64,
        least: u64,
    ) -> Result<(Range<u64>, Hold), ValueError> {
        assert!(0 < least && least <= want, "{least} to {want} chunks");
        let mut state = self.lock();
        let mut pending = Pending::new(&self.index);
        let mut cursor = state.cursor;
        let found = self.choose_free(state.high_water, &mut cursor, want, least)?;
        let (range, high_water) = match found {
            Some(free) => {
                let taken = want.min(free.end - free.start);
                (take_free(&mut pending, &free, taken), state.high_water)
            }
            None => self.raise_mark(&mut pending, state.high_water, want, least)?,
        };
        if !mutant!(ForgetsIntent) {
            set_to_free(&mut pending, &range);
        }
        self.index.apply(pending.take(), Durability::Acknowledged)?;
        state.cursor = if found_is_free(&range, state.high_water) { range.end } else { cursor };
        state.high_water = high_water;
        state.held.add(&range);
        drop(state);
        Ok((range.clone(), Hold { space: Arc::clone(self), ranges: vec![range] }))
    }

    fn raise_mark(
        &self,
        pending: &mut Pending,
        high_water: u64,
        want: u64,
        least: u64,
    ) -> Result<(Range<u64>, u64), ValueError> {
        let taken = want.min(self.chunks.end - high_water);
        if taken < least {
            return Err(ValueError::NoAddresses { chunks: least });
        }
        let end = high_water + taken;
        let value = (end * CHUNK_BYTES).to_le_bytes().to_vec();
        pending.set(Table::Settings, HIGH_WATER_SETTING, value);
        Ok((high_water..end, end))
    }

    /// A free range to take from; none where the mark is to be raised.
    fn choose_free(
        &self,
        high_water: u64,
        cursor: &mut u64,
        want: u64,
        least: u64,
    ) -> Result<Option<Range<u64>>, ValueError> {
        let is_full = self.chunks.end - high_water < want;
        let (looks, entries, worth) = match is_full {
            true => (LOOKS_FULL, LOOK_ENTRIES_FULL, least),
            false => (1, LOOK_ENTRIES, least.max(want / WORTH_PART)),
        };
        for _ in 0..looks {
            let ranges = self.look(cursor, entries)?;
            let long_enough = ranges.iter().find(|range| range.end - range.start >= want);
            let longest = ranges.iter().max_by_key(|range| range.end - range.start);
            let found = long_enough.or(longest).filter(|range| range.end - range.start >= worth);
            if found.is_some() {
                return Ok(found.cloned());
            }
        }
        Ok(None)
    }

    /// Up to `limit` free ranges from `cursor` on, which goes round.
    fn look(&self, cursor: &mut u64, limit: usize) -> Result<Vec<Range<u64>>, ValueError> {
        let mut entries = self.index.scan(Table::Free, &extent_key(*cursor + 1), limit)?;
        if entries.len() < limit {
            let left = limit - entries.len();
            let begun_at = extent_key(*cursor + 1);
            let from_start = self.index.scan(Table::Free, &[], left)?;
            entries.extend(from_start.into_iter().filter(|(key, _)| key[..] < begun_at[..]));
        }
        let ranges: Vec<Range<u64>> =
            entries.iter().map(|(key, value)| decode_free(key, value)).collect::<Result<_, _>>()?;
        ranges.iter().try_for_each(|range| self.check(range))?;
        *cursor = ranges.last().map_or(self.chunks.start, |range| range.end);
        Ok(ranges)
    }

    /// An error unless `range` lies in the space: what lies before it is the index.
    pub(super) fn check(&self, range: &Range<u64>) -> Result<(), ValueError> {
        match self.chunks.start <= range.start && range.end <= self.chunks.end {
            true => Ok(()),
            false => Err(ValueError::OutsideSpace(range.clone())),
        }
    }

    /// Holds `ranges` for a reader, if the trimmer has not chosen since `generation`.
    pub(super) fn pin(
        self: &Arc<Self>,
        generation: Generation,
        ranges: Vec<Range<u64>>,
    ) -> Option<Hold> {
        let mut state = self.lock();
        if state.generation != generation.0 && !ranges.is_empty() {
            return None;
        }
        ranges.iter().for_each(|range| state.held.add(range));
        drop(state);
        Some(Hold { space: Arc::clone(self), ranges })
    }

    /// Whether `range`, which nobody names, may be trimmed. From now on a reader that has found it
    /// named looks again.
    pub(super) fn choose_to_trim(&self, range: &Range<u64>) -> bool {
        let mut state = self.lock();
        let is_chosen = !state.held.overlaps(range) || mutant!(TrimsHeld);
        state.generation += u64::from(is_chosen);
        is_chosen
    }

    #[cfg(test)]
    pub(super) fn holds_nothing(&self) -> bool {
        self.lock().held.is_empty()
    }
}

fn found_is_free(range: &Range<u64>, high_water: u64) -> bool {
    range.start < high_water
}

fn decode_high_water(value: &[u8], chunks: &Range<u64>) -> Result<u64, ValueError> {
    let bytes = <[u8; 8]>::try_from(value).map(u64::from_le_bytes).unwrap_or(u64::MAX);
    let chunk = bytes / CHUNK_BYTES;
    match bytes.is_multiple_of(CHUNK_BYTES) && chunks.start <= chunk && chunk <= chunks.end {
        true => Ok(chunk),
        false => Err(ValueError::OutsideSpace(chunk..chunk)),
    }
}

/// Chunks that nobody else is given, and that are not trimmed, until it is dropped.
pub(super) struct Hold {
    space: Arc<Space>,
    ranges: Vec<Range<u64>>,
}

impl Hold {
    /// Abandons what lies before `start` of its one range.
    pub(super) fn begin_at(&mut self, start: u64) {
        let [range] = self.ranges.as_mut_slice() else {
            panic!("a hold of {:?} does not shrink", self.ranges);
        };
        assert!(range.start <= start && start <= range.end, "{start} is in {range:?}");
        let given_up = range.start..start;
        range.start = start;
        if !given_up.is_empty() {
            self.space.lock().held.remove(&given_up);
        }
    }

    /// Keeps what it holds until the bucket is opened again: nobody knows whether it is named.
    pub(super) fn retire(mut self) {
        self.ranges.clear();
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut state = self.space.lock();
        let held = self.ranges.iter().filter(|range| !range.is_empty());
        held.for_each(|range| state.held.remove(range));
    }
}
