//! The queues of eviction: the small one, the main one, and the ghosts of pages that left the
//! small one. `eviction.rs` says what they are for.
//!
//! A ghost is the hash of a page's name, of 32 bits: a page in many thousands is taken for one that
//! was here before, and that costs it nothing but its first queue.

use std::collections::VecDeque;
use std::hash::{BuildHasher, BuildHasherDefault};

use format::units::PageId;
use hashbrown::HashMap;

use super::page_hasher::PageHasher;
use super::slot::Slot;

/// A frame, if the one in the slot has this serial.
pub(super) type Entry = (Slot, u32);

/// Where the frames stand, oldest first.
#[derive(Default)]
pub(super) struct Queues {
    pub(super) small: VecDeque<Entry>,
    pub(super) main: VecDeque<Entry>,
    pub(super) ghosts: Ghosts,
    /// Pages of the small queue that are not dirty.
    pub(super) small_clean: usize,
}

impl Queues {
    pub(super) fn push(&mut self, in_main: bool, entry: Entry) {
        if in_main { self.main.push_back(entry) } else { self.small.push_back(entry) }
    }

    /// Whether more entries are of frames that are gone than of `frames` that are there.
    pub(super) fn are_stale(&self, frames: usize) -> bool {
        self.small.len() + self.main.len() > 2 * frames + ENTRIES_MIN
    }

    pub(super) fn retain(&mut self, is_here: impl Fn(&Entry) -> bool) {
        self.small.retain(&is_here);
        self.main.retain(&is_here);
    }

    pub(super) fn resident_bytes(&self) -> usize {
        (self.small.capacity() + self.main.capacity()) * size_of::<Entry>()
            + self.ghosts.resident_bytes()
    }
}

/// Entries that are not worth clearing up.
const ENTRIES_MIN: usize = 64;

/// Names of pages, the youngest first remembered, each with the number it was given.
#[derive(Default)]
pub(super) struct Ghosts {
    numbers: HashMap<u32, u32, BuildHasherDefault<PageHasher>>,
    /// Oldest first; also those that came back since.
    order: VecDeque<(u32, u32)>,
    number_next: u32,
}

impl Ghosts {
    /// Remembers a page, and forgets the oldest of more than `ghosts_max`.
    pub(super) fn add(&mut self, page: PageId, ghosts_max: usize) {
        let (name, number) = (name(page), self.number_next);
        self.number_next = number.wrapping_add(1);
        self.numbers.insert(name, number);
        self.order.push_back((name, number));
        while self.order.len() > ghosts_max
            && let Some((name, number)) = self.order.pop_front()
        {
            if self.numbers.get(&name) == Some(&number) {
                self.numbers.remove(&name);
            }
        }
    }

    /// Whether the page is remembered; it is not any more.
    pub(super) fn take(&mut self, page: PageId) -> bool {
        !self.numbers.is_empty() && self.numbers.remove(&name(page)).is_some()
    }

    fn resident_bytes(&self) -> usize {
        let entry = size_of::<(u32, u32)>();
        self.order.capacity() * entry + self.numbers.capacity() * (entry + 1)
    }
}

fn name(page: PageId) -> u32 {
    BuildHasherDefault::<PageHasher>::default().hash_one(page) as u32
}

#[cfg(test)]
mod tests {
    use format::units::TreeId;

    use super::*;

    fn page(index: u64) -> PageId {
        PageId { tree: TreeId::HASH_PBN, level: 0, index }
    }

    #[test]
    fn ghosts_are_the_youngest_and_are_taken_once() {
        let mut ghosts = Ghosts::default();
        (0..10).for_each(|index| ghosts.add(page(index), 4));
        assert!((0..6).all(|index| !ghosts.take(page(index))));
        assert!(ghosts.take(page(7)) && !ghosts.take(page(7)));
        // The one that came back leaves no place that a younger one of its name would lose.
        ghosts.add(page(7), 4);
        (10..13).for_each(|index| ghosts.add(page(index), 4));
        assert!(ghosts.take(page(7)) && !ghosts.take(page(9)));
        (20..1020).for_each(|index| ghosts.add(page(index), 4));
        assert!(ghosts.numbers.len() <= 4 && ghosts.order.len() <= 4);
        assert!(ghosts.resident_bytes() < 1000);
    }
}
