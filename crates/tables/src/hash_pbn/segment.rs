//! Segments: young pages that were sealed, that is sorted by hash, in place.
//!
//! The merge goes round all hashes. A segment that is sealed while its cursor is at `c` is sorted
//! from `c` on, and what is below `c` comes last: so the merge uses it up from its first event to
//! its last, its pages are removed in order, and one round is how long it lives. Nothing of that
//! has to be written down: in the first page that is left, the distances of the hashes ahead of the
//! cursor ascend, and drop once where what was merged ends (`load.rs`).

use std::collections::VecDeque;
use std::ops::Range;

use format::bucket::CAPACITY;

use super::young::{Event, TREE, events_of};
use crate::error::PageError;
use crate::store::{PageRead, PageStore, PinSet, Wanted};

/// A sealed segment, as far as it is not merged.
pub(super) struct Segment {
    /// The first leaf that is left.
    pub(super) front: u64,
    /// The first leaf whose events are not here yet.
    pub(super) next: u64,
    /// Behind its last leaf.
    pub(super) end: u64,
    /// Events that are next, in order.
    pub(super) events: VecDeque<Event>,
}

pub(super) fn resident_bytes(segments: &[Segment]) -> u64 {
    let events: usize = segments.iter().map(|segment| segment.events.capacity()).sum();
    (events * size_of::<Event>() + std::mem::size_of_val(segments)) as u64
}

impl Segment {
    pub(super) fn new(start: u64, end: u64) -> Self {
        Self { front: start, next: start, end, events: VecDeque::new() }
    }

    /// Asks for what has to be here before all events with these hashes can be taken: the events
    /// themselves, and the pages that they leave.
    pub(super) fn want(
        &mut self,
        hashes: &Range<u128>,
        hash: impl Fn(&format::units::Fingerprint) -> u64,
        store: &mut PageStore,
        pins: &mut PinSet,
        reads: &mut Vec<PageRead>,
    ) -> Result<bool, PageError> {
        while self.next < self.end && self.events.back().is_none_or(|last| is_in(last, hashes)) {
            match store.want_leaf(pins, TREE, self.next, reads)? {
                Wanted::Coming => return Ok(false),
                Wanted::Absent => {}
                Wanted::Here(slot) => {
                    self.events.extend(events_of(self.next, store.page_at(slot), &hash));
                }
            }
            self.next += 1;
        }
        let mut here = true;
        if self.events.front().is_some_and(|first| is_in(first, hashes)) {
            for leaf in self.front..self.next {
                here &= store.want(pins, TREE, leaf, reads)?;
            }
        }
        Ok(here)
    }

    /// Takes the events with these hashes, and removes the pages that they were the last of.
    pub(super) fn take(
        &mut self,
        hashes: &Range<u128>,
        store: &mut PageStore,
        into: &mut Vec<Event>,
    ) {
        while let Some(event) = self.events.front().copied().filter(|event| is_in(event, hashes)) {
            into.push(event);
            self.events.pop_front();
        }
        let left = self.events.front().map_or(self.next, |event| event.place / CAPACITY as u64);
        (self.front..left).for_each(|leaf| store.remove_page(TREE, leaf));
        self.front = left;
    }
}

fn is_in(event: &Event, hashes: &Range<u128>) -> bool {
    hashes.contains(&u128::from(event.hash))
}
