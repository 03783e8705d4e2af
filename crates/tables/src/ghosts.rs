//! Ghosts: the names of what has left a cache, by which it is known when it comes back.
//!
//! A ghost is the hash of a name, of 32 bits: one in many thousands is taken for what was here
//! before, and that costs nothing but its first queue. `store/eviction.rs` says what they are for.

use std::collections::VecDeque;
use std::hash::{BuildHasher, BuildHasherDefault, Hash};
use std::marker::PhantomData;

use hashbrown::HashMap;

use crate::page_hasher::PageHasher;

/// Names, the youngest first remembered, each with the number it was given.
pub struct Ghosts<N> {
    numbers: HashMap<u32, u32, BuildHasherDefault<PageHasher>>,
    /// Oldest first; also those that came back since.
    order: VecDeque<(u32, u32)>,
    number_next: u32,
    of: PhantomData<fn(N)>,
}

impl<N> Default for Ghosts<N> {
    fn default() -> Self {
        let (numbers, order) = (HashMap::default(), VecDeque::new());
        Self { numbers, order, number_next: 0, of: PhantomData }
    }
}

impl<N: Hash> Ghosts<N> {
    /// Remembers a name, and forgets the oldest of more than `ghosts_max`.
    pub fn add(&mut self, name: N, ghosts_max: usize) {
        let (name, number) = (hash_of(name), self.number_next);
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

    /// Whether the name is remembered; it is not any more.
    pub fn take(&mut self, name: N) -> bool {
        !self.numbers.is_empty() && self.numbers.remove(&hash_of(name)).is_some()
    }

    /// Memory that they take.
    #[must_use]
    pub fn resident_bytes(&self) -> usize {
        let entry = size_of::<(u32, u32)>();
        self.order.capacity() * entry + self.numbers.capacity() * (entry + 1)
    }
}

fn hash_of(name: impl Hash) -> u32 {
    BuildHasherDefault::<PageHasher>::default().hash_one(name) as u32
}

#[cfg(test)]
mod tests {
    use format::units::{PageId, TreeId};

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
