//! An index in memory: by 31 bits of a hash, where entries stand.
//!
//! Open addressing: a slot is 8 bytes, holds the tag and the low half of the place, and lies at or
//! behind its *home*, which ascends with the tag. So the index grows by one pass from end to end,
//! and nothing is hashed again. Equal tags are told apart by whoever looks at the entries: among a
//! million entries one look-up in 2,000 meets a tag that is not its own.

/// Set in slots that hold something.
const OCCUPIED: u64 = 1 << 63;
const TAG_BITS: u32 = 31;
const TAG_MASK: u64 = (1 << TAG_BITS) - 1;
const SLOTS_MIN: usize = 1 << 10;

/// The low bits of the hash are the tag; buckets are told apart by the high ones.
fn slot_of(hash: u64, place: u32) -> u64 {
    OCCUPIED | (hash & TAG_MASK) << 32 | u64::from(place)
}

/// Places of entries by their hashes; see the head of this file.
pub struct PlaceIndex {
    slots: Vec<u64>,
    len: usize,
}

impl Default for PlaceIndex {
    fn default() -> Self {
        Self { slots: vec![0; SLOTS_MIN], len: 0 }
    }
}

impl PlaceIndex {
    /// Entries that are known.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Memory of the slots.
    pub(crate) fn resident_bytes(&self) -> u64 {
        (self.slots.capacity() * size_of::<u64>()) as u64
    }

    /// Where a slot lies, or behind which.
    fn home(&self, slot: u64) -> usize {
        let tag = slot >> 32 & TAG_MASK;
        ((tag * self.slots.len() as u64) >> TAG_BITS) as usize
    }

    /// Steps from one place to another behind it, round the end.
    fn steps(&self, from: usize, to: usize) -> usize {
        if to < from { to + self.slots.len() - from } else { to - from }
    }

    fn behind(&self, at: usize) -> usize {
        if at + 1 == self.slots.len() { 0 } else { at + 1 }
    }

    /// The slot where a look-up of `hash` begins: to read it brings it near.
    #[must_use]
    pub fn touch(&self, hash: u64) -> u64 {
        self.slots[self.home(slot_of(hash, 0))]
    }

    /// An entry that is not known yet stands at `place`.
    pub fn insert(&mut self, hash: u64, place: u32) {
        if (self.len + 1) * 5 > self.slots.len() * 4 {
            self.grow();
        }
        self.put(slot_of(hash, place));
        self.len += 1;
    }

    /// Makes room for so many entries in all: who knows how many will come moves none of them.
    pub(crate) fn make_room(&mut self, entries: usize) {
        let slots = entries / 2 * 3;
        if slots > self.slots.len() {
            self.spread_over(slots);
        }
    }

    fn put(&mut self, slot: u64) {
        let mut at = self.home(slot);
        while self.slots[at] != 0 {
            at = self.behind(at);
        }
        self.slots[at] = slot;
    }

    fn grow(&mut self) {
        self.spread_over(self.slots.len() / 2 * 3);
    }

    fn spread_over(&mut self, slots: usize) {
        for slot in std::mem::replace(&mut self.slots, vec![0; slots]) {
            if slot != 0 {
                self.put(slot);
            }
        }
    }

    /// Places of all entries with the tag of `hash`, and no others.
    pub fn places(&self, hash: u64) -> impl Iterator<Item = u32> {
        let tag = slot_of(hash, 0);
        let mut at = self.home(tag);
        std::iter::from_fn(move || {
            loop {
                let slot = self.slots[at];
                if slot == 0 {
                    return None;
                }
                at = self.behind(at);
                if slot & !u64::from(u32::MAX) == tag {
                    return Some(slot as u32);
                }
            }
        })
    }

    fn find(&self, slot: u64) -> Option<usize> {
        let mut at = self.home(slot);
        while self.slots[at] != slot {
            if self.slots[at] == 0 {
                return None;
            }
            at = self.behind(at);
        }
        Some(at)
    }

    /// The entry stands elsewhere now.
    pub(crate) fn replace(&mut self, hash: u64, place: u32, by: u32) {
        if let Some(at) = self.find(slot_of(hash, place)) {
            self.slots[at] = slot_of(hash, by);
        }
    }

    /// Forgets an entry; false when it was not known. What follows it moves up.
    pub fn remove(&mut self, hash: u64, place: u32) -> bool {
        let Some(mut vacant) = self.find(slot_of(hash, place)) else { return false };
        let mut at = vacant;
        loop {
            at = self.behind(at);
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            if self.steps(self.home(slot), at) >= self.steps(vacant, at) {
                self.slots[vacant] = slot;
                vacant = at;
            }
        }
        self.slots[vacant] = 0;
        self.len -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::{PlaceIndex, SLOTS_MIN};

    proptest! {
        /// Tags are few and lie at the end of the slots, so that chains meet, wrap and move up.
        #[test]
        fn the_index_is_a_set_of_places_by_tag(
            steps in vec((0..3_u8, 0..40_u64, 0..30_u32, any::<u64>()), 1..3000),
        ) {
            let mut index = PlaceIndex::default();
            let mut model = BTreeSet::new();
            for (step, number, place, high) in steps {
                let tag = (1 << 31) - 1 - number / 8 * 0x10_0000 - number % 8;
                let hash = high << 31 | tag;
                let is_known = model.contains(&(tag, place));
                match step {
                    0 => prop_assert_eq!(index.remove(hash, place), model.remove(&(tag, place))),
                    1 if is_known && model.insert((tag, place + 100)) => {
                        index.replace(hash, place, place + 100);
                        model.remove(&(tag, place));
                    }
                    _ if !is_known => {
                        index.insert(hash, place);
                        model.insert((tag, place));
                    }
                    _ => continue,
                }
                let known = model.range((tag, 0)..(tag + 1, 0)).map(|&(_, place)| place);
                prop_assert_eq!(
                    index.places(hash).collect::<BTreeSet<_>>(), known.collect::<BTreeSet<_>>());
                prop_assert_eq!(index.len(), model.len());
            }
        }
    }

    #[test]
    fn the_index_grows_and_forgets_nothing() {
        let hash = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut index = PlaceIndex::default();
        let count = 4 * SLOTS_MIN as u64;
        (0..count / 2).for_each(|n| index.insert(hash(n), n as u32));
        index.make_room(2 * count as usize);
        let resident_bytes = index.resident_bytes();
        (count / 2..count).for_each(|n| index.insert(hash(n), n as u32));
        assert_eq!(index.resident_bytes(), resident_bytes, "it had room");
        index.make_room(1);
        assert!((0..count).all(|n| index.places(hash(n)).any(|place| place == n as u32)));
        assert!((0..count).all(|n| index.remove(hash(n), n as u32)));
        assert_eq!((index.len(), index.places(hash(1)).count()), (0, 0));
    }
}
