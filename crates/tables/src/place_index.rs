//! An index in memory: by 31 bits of a hash, where entries stand.
//!
//! Open addressing: a slot is 8 bytes, holds the tag and the low half of the place, and lies at or
//! behind its *home*, which ascends with the tag. So the index grows by one pass from end to end,
//! and nothing is hashed again. A large one is in *parts* by the first bits of the tag, each of
//! which grows by itself: an insertion waits for some thousand entries to be moved, not for
//! millions, and no second index is ever in memory. The caller tells equal tags apart by
//! the entries: among a million of them one look-up in 2,000 meets a tag that is not its own.
//!
//! Slots lie in the order of their homes: an insertion displaces what is nearer to its own
//! (Celis, Larson and Munro, "Robin Hood hashing", FOCS 1985). So a look-up in vain, as that of
//! each new chunk is, ends where its slot would lie: of an index that is four fifths full after
//! three slots, not after thirteen, and mostly in the cache line that [`PlaceIndex::touch_all`]
//! has prefetched.

use crate::nearness::bring_near;

/// Set in slots that hold something.
const OCCUPIED: u64 = 1 << 63;
const TAG_BITS: u32 = 31;
const TAG_MASK: u64 = (1 << TAG_BITS) - 1;
const SLOTS_MIN: usize = 1 << 10;
/// Of a part.
const PART_SLOTS_MIN: usize = 1 << 4;

/// A part of which more would be occupied grows.
const FULL: (usize, usize) = (4, 5);
/// Parts of which so much is occupied are going to grow soon.
const SOON: (usize, usize) = (7, 10);
/// So far behind its home a slot mostly lies.
const TOUCHED_SLOTS: usize = 3;
/// Spare lists at most.
const SPARES_MAX: usize = 16;

/// Slots of a part that has grown.
fn grown(slots: usize) -> usize {
    slots / 2 * 3
}

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
    spares: Spares,
}

/// Vacant slots for parts that are going to grow, in memory that has been touched.
///
/// Parts grow at about the same time, for hashes are even: the smallest of them grow next.
struct Spares {
    lists: Vec<Vec<u64>>,
    /// What the smallest parts have, and how many have it.
    smallest: (usize, usize),
}

/// Lists of zeros that an index would like to have ([`PlaceIndex::spares_wanted`]).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct SpareSlots {
    /// How many.
    pub lists: usize,
    /// Length of each.
    pub slots: usize,
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
        let parts: Vec<Part> = std::iter::repeat_with(part).take(1 << part_bits).collect();
        let spares = Spares { lists: Vec::new(), smallest: (slots, parts.len()) };
        Self { parts, part_bits, len: 0, spares }
    }

    /// Entries that are known.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Memory of the slots.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let slots: usize = self.parts.iter().map(|part| part.slots.capacity()).sum();
        let spare: usize = self.spares.lists.iter().map(Vec::capacity).sum();
        ((slots + spare) * size_of::<u64>()) as u64
    }

    /// What the next parts to grow will need, if that is soon and not here yet: a thread that grows
    /// into new memory waits until the kernel has found and cleared it.
    #[must_use]
    pub fn spares_wanted(&self) -> Option<SpareSlots> {
        let (slots, parts) = self.spares.smallest;
        let is_soon = (self.len >> self.part_bits) * SOON.1 > slots * SOON.0;
        let lists = SPARES_MAX.min(parts);
        let are_few = self.spares.lists.len() < lists.div_ceil(2);
        (is_soon && are_few)
            .then(|| SpareSlots { lists: lists - self.spares.lists.len(), slots: grown(slots) })
    }

    /// Takes lists of zeros for later; what is of no use is dropped.
    pub fn take_spares(&mut self, lists: Vec<Vec<u64>>) {
        let slots = grown(self.spares.smallest.0);
        let fit = lists.into_iter().filter(|list| list.len() == slots);
        self.spares.lists.extend(fit);
    }

    /// The smallest parts are others now.
    fn look_for_smallest(&mut self) {
        let lengths = || self.parts.iter().map(|part| part.slots.len());
        let slots = lengths().min().unwrap_or(0);
        let parts = lengths().filter(|&length| length == slots).count();
        if slots != self.spares.smallest.0 {
            self.spares.lists.clear();
        }
        self.spares.smallest = (slots, parts);
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

    /// The slots where a look-up of `hash` begins and mostly ends.
    pub(crate) fn first_read(&self, hash: u64) -> [&u64; 2] {
        let slot = slot_of(hash, 0);
        let part = self.part(slot);
        let home = part.home(slot);
        [home, (home + TOUCHED_SLOTS).min(part.slots.len() - 1)].map(|at| &part.slots[at])
    }

    /// Prefetches what look-ups of these or changes at them begin with.
    pub fn touch_all(&self, hashes: impl Iterator<Item = u64>) {
        bring_near(hashes.flat_map(|hash| self.first_read(hash)));
    }

    /// An entry that is not known yet stands at `place`.
    pub fn insert(&mut self, hash: u64, place: u32) {
        let slot = slot_of(hash, place);
        let number = self.part_number(slot);
        if self.parts[number].is_full() {
            self.grow(number);
        }
        self.parts[number].insert(slot);
        self.len += 1;
    }

    fn grow(&mut self, number: usize) {
        let part = &mut self.parts[number];
        let was_slots = part.slots.len();
        let (smallest, parts) = self.spares.smallest;
        let spare = if was_slots == smallest { self.spares.lists.pop() } else { None };
        part.spread_over(spare.unwrap_or_else(|| vec![0; grown(was_slots)]));
        if was_slots == smallest {
            self.spares.smallest.1 = parts - 1;
            if parts == 1 {
                self.look_for_smallest();
            }
        }
    }

    /// Makes room for so many entries in all: who knows how many will come moves few of them.
    pub(crate) fn make_room(&mut self, entries: usize) {
        let slots = (entries >> self.part_bits) / 2 * 3;
        for part in &mut self.parts {
            if slots > part.slots.len() {
                part.spread_over(vec![0; slots]);
            }
        }
        self.look_for_smallest();
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

    /// Whether it has to grow before anything is inserted.
    fn is_full(&self) -> bool {
        (self.len + 1) * FULL.1 > self.slots.len() * FULL.0
    }

    fn insert(&mut self, slot: u64) {
        self.put(slot);
        self.len += 1;
    }

    /// How far behind its home a slot lies that stands here.
    fn distance(&self, slot: u64, at: usize) -> usize {
        self.steps(self.home(slot), at)
    }

    fn put(&mut self, mut slot: u64) {
        let mut at = self.home(slot);
        let mut distance = 0;
        while self.slots[at] != 0 {
            let of_other = self.distance(self.slots[at], at);
            if of_other < distance {
                std::mem::swap(&mut self.slots[at], &mut slot);
                distance = of_other;
            }
            at = self.behind(at);
            distance += 1;
        }
        self.slots[at] = slot;
    }

    /// Moves what is in it to vacant slots, more than there are.
    fn spread_over(&mut self, vacant: Vec<u64>) {
        for slot in std::mem::replace(&mut self.slots, vacant) {
            if slot != 0 {
                self.put(slot);
            }
        }
    }

    fn places(&self, tag: u64) -> impl Iterator<Item = u32> {
        let (mut at, mut distance) = (self.home(tag), 0);
        std::iter::from_fn(move || {
            loop {
                let slot = self.slots[at];
                let has_tag = slot & !u64::from(u32::MAX) == tag;
                if !has_tag && self.ends_search(slot, at, distance) {
                    return None;
                }
                at = self.behind(at);
                distance += 1;
                if has_tag {
                    return Some(slot as u32);
                }
            }
        })
    }

    /// Whether a slot that stands here leaves nothing of such a distance to be found behind it.
    fn ends_search(&self, slot: u64, at: usize, distance: usize) -> bool {
        slot == 0 || self.distance(slot, at) < distance
    }

    fn find(&self, slot: u64) -> Option<usize> {
        let (mut at, mut distance) = (self.home(slot), 0);
        while self.slots[at] != slot {
            if self.ends_search(self.slots[at], at, distance) {
                return None;
            }
            at = self.behind(at);
            distance += 1;
        }
        Some(at)
    }

    /// What follows a slot that is forgotten moves up, as far as that brings it nearer home.
    fn remove(&mut self, slot: u64) -> bool {
        let Some(mut vacant) = self.find(slot) else { return false };
        loop {
            let at = self.behind(vacant);
            let slot = self.slots[at];
            if slot == 0 || self.home(slot) == at {
                break;
            }
            self.slots[vacant] = slot;
            vacant = at;
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
    use proptest::prelude::{Rng, any, prop_assert, prop_assert_eq, proptest};
    use proptest::test_runner::{RngAlgorithm, TestRng};

    use super::{Part, PlaceIndex, SLOTS_MIN, grown, slot_of};

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
                prop_assert!(index.parts.iter().all(is_in_order));
            }
        }
    }

    /// Whether each slot is in reach of a search for it.
    fn is_in_order(part: &Part) -> bool {
        let held = |at: usize| (part.slots[at] != 0).then(|| part.distance(part.slots[at], at));
        (0..part.slots.len()).all(|at| match (held(at), held(part.behind(at))) {
            (before, Some(distance)) => distance <= before.map_or(0, |before| before + 1),
            (_, None) => true,
        })
    }

    #[test]
    fn searches_in_vain_are_short() {
        let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let mut part = Part { slots: vec![0; 10_000], len: 0, part_bits: 0 };
        (0..8_000).for_each(|place| part.insert(slot_of(random.next_u64(), place)));
        let slots_seen = |slot: u64| {
            let home = part.home(slot);
            let ends = |&distance: &usize| {
                let at = (home + distance) % part.slots.len();
                part.ends_search(part.slots[at], at, distance)
            };
            (0..).find(ends).unwrap() + 1
        };
        let seen: usize = (0..1000).map(|_| slots_seen(slot_of(random.next_u64(), 0))).sum();
        assert!((2500..4500).contains(&seen), "{seen} slots for 1000 searches");
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
    fn parts_grow_into_what_was_prepared_for_them() {
        let hash = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut index = PlaceIndex::in_parts(3);
        assert_eq!(index.spares_wanted(), None, "an empty index");
        let (mut brought, mut taken) = (0, 0);
        for n in 0..20_000 {
            if let Some(wanted) = index.spares_wanted() {
                assert!(index.parts.iter().any(|part| grown(part.slots.len()) == wanted.slots));
                // Lists of another length are of no use.
                index.take_spares(vec![vec![0; wanted.slots + 1]]);
                index.take_spares(vec![vec![0; wanted.slots]; wanted.lists]);
                assert_eq!(index.spares_wanted(), None);
                brought += wanted.lists;
            }
            let before = index.spares.lists.len();
            index.insert(hash(n), n as u32);
            taken += before - index.spares.lists.len();
        }
        assert!((0..20_000).all(|n| index.places(hash(n)).any(|place| place == n as u32)));
        // From 2^7 to more than 20,000 / 8 slots in eight parts; what grows early goes without.
        assert!(taken > 20 && brought - taken < 16, "{brought} brought, {taken} taken");
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
