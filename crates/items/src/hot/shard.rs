//! Entries of a part of the keys, within bounds of memory.
//!
//! S3-FIFO (Yang and others, SOSP 2023; `models cache-study`), by bytes: what comes enters a small
//! queue, a tenth of the memory. The oldest of it goes to the main queue if it was wanted twice
//! since, else it leaves and a ghost of it stays. What comes back while its ghost is there enters
//! the main queue. The oldest of that goes round as often as it was wanted, up to three times, and
//! leaves. A hit sets a counter and moves nothing.

use hashbrown::HashTable;
use memcached::Item;
use objects::bucket::Moment;

use super::entry::{HotItem, NewEntry};
use super::ghosts::Ghosts;
use super::queue::{Linked, Links, Queue};

const WANTED_MAX: u8 = 3;
/// Wanted so often in the small queue, an entry goes to the main one.
const WANTED_TO_STAY: u8 = 2;
/// The small queue has one part of the memory in this number.
const SMALL_PART: usize = 10;
/// What an entry takes beside its key and value: itself, its place in the table, and what the
/// allocator adds.
const ENTRY_BYTES: usize = size_of::<Entry>() + 24;

/// What hot items take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HotFigures {
    pub(crate) items: u64,
    pub(crate) bytes: u64,
}

/// Where a key belongs.
#[derive(Clone, Copy)]
pub(super) struct Where {
    pub(super) hash: u64,
    /// Which of the shard's parts of the keys.
    pub(super) part: usize,
}

pub(super) struct Shard {
    bytes_max: usize,
    numbers: HashTable<u32>,
    entries: Entries,
    unused: Vec<u32>,
    small: Queue,
    main: Queue,
    ghosts: Ghosts,
    parts: Box<[Part]>,
}

/// What is known of a part of the keys.
#[derive(Clone, Copy, Default)]
struct Part {
    /// When entries of this age were what the bucket holds.
    moment: Option<Moment>,
    age: u32,
}

struct Entry {
    key_and_value: Box<[u8]>,
    item: Item,
    version: u64,
    value_bytes: u64,
    hash: u64,
    part: u32,
    age: u32,
    links: Links,
    key_bytes: u16,
    wanted: u8,
    is_main: bool,
}

impl Entry {
    fn key(&self) -> &[u8] {
        &self.key_and_value[..usize::from(self.key_bytes)]
    }

    fn has_value(&self) -> bool {
        self.key_and_value.len() as u64 == u64::from(self.key_bytes) + self.value_bytes
    }

    fn bytes(&self) -> usize {
        self.key_and_value.len() + ENTRY_BYTES
    }
}

#[derive(Default)]
struct Entries(Vec<Entry>);

impl Entries {
    fn of(&self, number: u32) -> &Entry {
        &self.0[number as usize]
    }

    fn of_mut(&mut self, number: u32) -> &mut Entry {
        &mut self.0[number as usize]
    }
}

impl Linked for Entries {
    fn links(&mut self, number: u32) -> &mut Links {
        &mut self.of_mut(number).links
    }
}

impl Shard {
    pub(super) fn new(bytes_max: usize, parts: usize) -> Self {
        Self {
            bytes_max,
            numbers: HashTable::new(),
            entries: Entries::default(),
            unused: Vec::new(),
            small: Queue::EMPTY,
            main: Queue::EMPTY,
            ghosts: Ghosts::default(),
            parts: vec![Part::default(); parts].into_boxed_slice(),
        }
    }

    /// The entry of a key if it is what the bucket holds at `now`; it counts as wanted.
    pub(super) fn valid(&mut self, place: Where, key: &[u8], now: Moment) -> Option<HotItem<'_>> {
        let part = self.parts[place.part];
        if part.moment != Some(now) {
            return None;
        }
        let number = self.find(place, key)?;
        let entry = self.entries.of_mut(number);
        if entry.age != part.age {
            return None;
        }
        entry.wanted = (entry.wanted + 1).min(WANTED_MAX);
        let has_value = entry.has_value();
        let value = &entry.key_and_value[usize::from(entry.key_bytes)..];
        Some(HotItem {
            item: &mut entry.item,
            version: entry.version,
            value_bytes: entry.value_bytes,
            value: has_value.then_some(value),
        })
    }

    /// Whether there is a valid entry of a key, with its value.
    pub(super) fn has_value(&self, place: Where, key: &[u8], now: Moment) -> bool {
        let part = self.parts[place.part];
        part.moment == Some(now)
            && self.find(place, key).is_some_and(|number| {
                let entry = self.entries.of(number);
                entry.age == part.age && entry.has_value()
            })
    }

    /// The bucket's count of the part is at `moment`: what is kept of another one is not valid.
    pub(super) fn set_moment(&mut self, place: Where, moment: Moment) {
        let part = &mut self.parts[place.part];
        if part.moment != Some(moment) {
            *part = Part { moment: Some(moment), age: part.age.wrapping_add(1) };
        }
    }

    /// As [`Shard::set_moment`], by who has changed a key: the part may have moved on already, for
    /// another key of the same change or by who filled an entry behind it.
    pub(super) fn set_moment_before_change(&mut self, place: Where, before: Moment, after: Moment) {
        if self.parts[place.part].moment != Some(after) {
            self.set_moment(place, before);
        }
    }

    /// The change is over, and all its keys were replaced.
    pub(super) fn advance(&mut self, place: Where, before: Moment, after: Moment) {
        let part = &mut self.parts[place.part];
        if part.moment == Some(before) {
            part.moment = Some(after);
        }
    }

    /// Keeps an entry, in place of one of the same key.
    pub(super) fn insert(&mut self, place: Where, key: &[u8], new: NewEntry) {
        let mut entry = Entry {
            item: new.item,
            version: new.version,
            value_bytes: new.value_bytes,
            key_bytes: new.key_bytes as u16,
            key_and_value: new.key_and_value,
            hash: place.hash,
            part: place.part as u32,
            age: self.parts[place.part].age,
            links: Links::ALONE,
            wanted: 0,
            is_main: false,
        };
        assert!(entry.key() == key, "an entry has its own key");
        let before = self.take(place, key);
        if entry.bytes() > self.bytes_max / 2 {
            return; // It would take the place of all others.
        }
        match before {
            Some((wanted, is_main)) => {
                entry.wanted = (wanted + 1).min(WANTED_MAX);
                entry.is_main = is_main;
            }
            None => entry.is_main = self.ghosts.take(place.hash, self.numbers.len()),
        }
        self.make_room(entry.bytes());
        self.put(entry);
    }

    /// The key has the same value and another item, if it is here.
    pub(super) fn set_item(&mut self, place: Where, key: &[u8], item: Item, version: u64) {
        let age = self.parts[place.part].age;
        let Some(number) = self.find(place, key) else { return };
        let entry = self.entries.of_mut(number);
        if entry.age == age {
            entry.item = item;
            entry.version = version;
        }
    }

    pub(super) fn remove(&mut self, place: Where, key: &[u8]) {
        self.take(place, key);
    }

    pub(super) fn figures(&self) -> HotFigures {
        let bytes = self.small.bytes + self.main.bytes + self.ghosts.bytes();
        HotFigures { items: self.numbers.len() as u64, bytes: bytes as u64 }
    }

    fn find(&self, place: Where, key: &[u8]) -> Option<u32> {
        let is_it = |number: &u32| self.entries.of(*number).key() == key;
        self.numbers.find(place.hash, is_it).copied()
    }

    /// Takes an entry out; returns how often it was wanted, and whether it was in the main queue.
    fn take(&mut self, place: Where, key: &[u8]) -> Option<(u8, bool)> {
        let number = self.find(place, key)?;
        let Entry { wanted, is_main, .. } = *self.entries.of(number);
        self.unlink(number);
        self.forget(number);
        Some((wanted, is_main))
    }

    fn put(&mut self, entry: Entry) {
        let (hash, bytes, is_main) = (entry.hash, entry.bytes(), entry.is_main);
        let number = match self.unused.pop() {
            Some(number) => {
                *self.entries.of_mut(number) = entry;
                number
            }
            None => {
                self.entries.0.push(entry);
                (self.entries.0.len() - 1) as u32
            }
        };
        let queue = if is_main { &mut self.main } else { &mut self.small };
        queue.push(&mut self.entries, number, bytes);
        let entries = &self.entries;
        self.numbers.insert_unique(hash, number, |number| entries.of(*number).hash);
    }

    fn unlink(&mut self, number: u32) {
        let entry = self.entries.of(number);
        let (bytes, is_main) = (entry.bytes(), entry.is_main);
        let queue = if is_main { &mut self.main } else { &mut self.small };
        queue.remove(&mut self.entries, number, bytes);
    }

    /// Gives back what an entry takes that is in no queue.
    fn forget(&mut self, number: u32) {
        let entry = self.entries.of_mut(number);
        entry.key_and_value = Box::default();
        match self.numbers.find_entry(entry.hash, |found| *found == number) {
            Ok(found) => drop(found.remove()),
            Err(_) => panic!("an entry is in the table"),
        }
        self.unused.push(number);
    }

    fn make_room(&mut self, bytes: usize) {
        while self.small.bytes + self.main.bytes + bytes > self.bytes_max {
            let is_small_full = self.small.bytes >= self.bytes_max / SMALL_PART;
            match (self.small.oldest(), self.main.oldest()) {
                (Some(number), None) => self.leave_small(number),
                (Some(number), Some(_)) if is_small_full => self.leave_small(number),
                (_, Some(number)) => self.leave_main(number),
                (None, None) => panic!("a shard without entries has room"),
            }
        }
    }

    /// The oldest of the small queue goes, to the main one or altogether.
    fn leave_small(&mut self, number: u32) {
        self.unlink(number);
        let entry = self.entries.of_mut(number);
        let age = self.parts[entry.part as usize].age;
        if entry.wanted >= WANTED_TO_STAY && entry.age == age {
            entry.wanted = 0;
            entry.is_main = true;
            let bytes = entry.bytes();
            return self.main.push(&mut self.entries, number, bytes);
        }
        let hash = entry.hash;
        self.forget(number);
        self.ghosts.push(hash, self.numbers.len());
    }

    /// The oldest of the main queue goes round, or altogether.
    fn leave_main(&mut self, number: u32) {
        self.unlink(number);
        let entry = self.entries.of_mut(number);
        let age = self.parts[entry.part as usize].age;
        if entry.wanted == 0 || entry.age != age {
            return self.forget(number);
        }
        entry.wanted -= 1;
        let bytes = entry.bytes();
        self.main.push(&mut self.entries, number, bytes);
    }
}

#[cfg(test)]
mod tests;
