//! An index in memory: by 31 bits of a hash, where entries stand.
//!
//! Open addressing: a slot is 8 bytes, holds the tag and the low half of the place, and lies at or
//! behind its *home*, which ascends with the tag. So the index grows by one pass from end to end,
//! and nothing is hashed again. A large one is in *parts* by the first bits of the tag, each of
//! which grows by itself: whoever inserts waits for some thousand entries to be moved, not for
//! millions, and no second index is ever in memory. Equal tags are told apart by whoever looks at
//! the entries: among a million of them one look-up in 2,000 meets a tag that is not its own.

/// Set in slots that hold something.
const OCCUPIED: u64 = 1 << 63;
const TAG_BITS: u32 = 31;
const TAG_MASK: u64 = (1 << TAG_BITS) - 1;
const SLOTS_MIN: usize = 1 << 10;
/// Of a part.
const PART_SLOTS_MIN: usize = 1 << 4;

/// The low bits of the hash are the tag; buckets are told apart by the high ones.
fn slot_of(hash: u64, place: u32) -> u64 {
    OCCUPIED | (hash & TAG_MASK) << 32 | u64::from(place)
}

/// Places of entries by their hashes; see the head of this file.
pub struct PlaceIndex {
    /// By the high bits of the tag; a power of two of them.
    parts: Vec<Part>,
    part_bits: u32,
    len: usize,
}

impl Default for PlaceIndex {
    /// For so few entries that one part is enough.
    fn default() -> Self {
        Self::in_parts(0)
    }
}

impl PlaceIndex {
    /// In two to the power of `part_bits` parts: as much less is moved at a time when it grows.
    pub(crate) fn in_parts(part_bits: u32) -> Self {
        let slots = (SLOTS_MIN >> part_bits).max(PART_SLOTS_MIN);
        let part = || Part { slots: vec![0; slots], len: 0, part_bits };
        let parts = std::iter::repeat_with(part).take(1 << part_bits).collect();
        Self { parts, part_bits, len: 0 }
    }

    /// Entries that are known.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Memory of the slots.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let slots: usize = self.parts.iter().map(|part| part.slots.capacity()).sum();
        (slots * size_of::<u64>()) as u64
    }

    fn part_number(&self, slot: u64) -> usize {
        ((slot >> 32 & TAG_MASK) >> (TAG_BITS - self.part_bits)) as usize
    }

    fn part(&self, slot: u64) -> &Part {
        &self.parts[self.part_number(slot)]
    }

    fn part_mut(&mut self, slot: u64) -> &mut Part {
        let number = self.part_number(slot);
        &mut self.parts[number]
    }

    /// The slot where a look-up of `hash` begins: to read it brings it near.
    #[must_use]
    pub fn touch(&self, hash: u64) -> u64 {
        let slot = slot_of(hash, 0);
        let part = self.part(slot);
        part.slots[part.home(slot)]
    }

    /// An entry that is not known yet stands at `place`.
    pub fn insert(&mut self, hash: u64, place: u32) {
        let slot = slot_of(hash, place);
        self.part_mut(slot).insert(slot);
        self.len += 1;
    }

    /// Makes room for so many entries in all: who knows how many will come moves few of them.
    pub(crate) fn make_room(&mut self, entries: usize) {
        let slots = (entries >> self.part_bits) / 2 * 3;
        for part in &mut self.parts {
            if slots > part.slots.len() {
                part.spread_over(slots);
            }
        }
    }

    /// Places of all entries with the tag of `hash`, and no others.
    pub fn places(&self, hash: u64) -> impl Iterator<Item = u32> {
        let tag = slot_of(hash, 0);
        self.part(tag).places(tag)
    }

    /// The entry stands elsewhere now.
    pub(crate) fn replace(&mut self, hash: u64, place: u32, by: u32) {
        let slot = slot_of(hash, place);
        let part = self.part_mut(slot);
        if let Some(at) = part.find(slot) {
            part.slots[at] = slot_of(hash, by);
        }
    }

    /// Forgets an entry; false when it was not known.
    pub fn remove(&mut self, hash: u64, place: u32) -> bool {
        let slot = slot_of(hash, place);
        let was_known = self.part_mut(slot).remove(slot);
        self.len -= usize::from(was_known);
        was_known
    }
}

/// The entries whose tags begin alike.
struct Part {
    slots: Vec<u64>,
    len: usize,
    /// Bits of the tag that all of them have.
    part_bits: u32,
}

impl Part {
    /// Where a slot lies, or behind which.
    fn home(&self, slot: u64) -> usize {
        let tag_bits = TAG_BITS - self.part_bits;
        let tag = slot >> 32 & ((1 << tag_bits) - 1);
        ((tag * self.slots.len() as u64) >> tag_bits) as usize
    }

    /// Steps from one place to another behind it, round the end.
    fn steps(&self, from: usize, to: usize) -> usize {
        if to < from { to + self.slots.len() - from } else { to - from }
    }

    fn behind(&self, at: usize) -> usize {
        if at + 1 == self.slots.len() { 0 } else { at + 1 }
    }

    fn insert(&mut self, slot: u64) {
        if (self.len + 1) * 5 > self.slots.len() * 4 {
            self.spread_over(self.slots.len() / 2 * 3);
        }
        self.put(slot);
        self.len += 1;
    }

    fn put(&mut self, slot: u64) {
        let mut at = self.home(slot);
        while self.slots[at] != 0 {
            at = self.behind(at);
        }
        self.slots[at] = slot;
    }

    fn spread_over(&mut self, slots: usize) {
        for slot in std::mem::replace(&mut self.slots, vec![0; slots]) {
            if slot != 0 {
                self.put(slot);
            }
        }
    }

    fn places(&self, tag: u64) -> impl Iterator<Item = u32> {
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

    /// What follows a slot that is forgotten moves up.
    fn remove(&mut self, slot: u64) -> bool {
        let Some(mut vacant) = self.find(slot) else { return false };
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
            part_bits in 0..4_u32,
            steps in vec((0..3_u8, 0..40_u64, 0..30_u32, any::<u64>()), 1..3000),
        ) {
            let mut index = PlaceIndex::in_parts(part_bits);
            let mut model = BTreeSet::new();
            for (step, number, place, high) in steps {
                let tag = (1 << 31) - 1 - number / 8 * 0x10_0000 - number % 8;
                // Some lie in other parts, if there are any.
                let tag = tag ^ (number % 3) << 28;
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
        for part_bits in [0, 3] {
            let mut index = PlaceIndex::in_parts(part_bits);
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

    #[test]
    fn a_part_grows_by_itself() {
        let mut index = PlaceIndex::in_parts(2);
        let slots = |index: &PlaceIndex| -> Vec<_> {
            index.parts.iter().map(|part| part.slots.len()).collect()
        };
        let before = slots(&index);
        (0..before[2] as u64).for_each(|n| index.insert(2 << 29 | n << 9, n as u32));
        let after = slots(&index);
        assert!(after[2] > before[2]);
        assert_eq!([after[0], after[1], after[3]], [before[0], before[1], before[3]]);
    }
}
