//! EaD's prefetch cache: stored chunks that are read before they are compared with.
//!
//! When a chunk that had to be read turns out equal, the `distance` chunks after it are fetched;
//! the one that lies `trigger` before the end of those is marked, and when it is found equal the
//! next are fetched. What was used longest ago leaves first.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

/// How much is fetched, and how much is kept.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PrefetchSetup {
    /// Chunks that are fetched at a time; 0 for none.
    pub distance: u64,
    /// How far from the last of them the mark is.
    pub trigger: u64,
    /// Chunks that are kept.
    pub chunks_max: usize,
}

impl PrefetchSetup {
    /// The paper's best distance for most data; its room is not told, ours is 4 MiB.
    pub const USUAL: Self = Self { distance: 5, trigger: 0, chunks_max: 1024 };
}

#[derive(Clone, Debug, Default)]
struct Entry {
    used: u64,
    is_trigger: bool,
    /// Requests that wait for it, while it is on its way.
    on_its_way: Option<Vec<u32>>,
}

/// What a look-up found.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Fetched {
    /// It is there.
    Here,
    /// It was asked for, and this request is told when it comes.
    OnItsWay,
    /// It has to be read.
    No,
}

pub(super) struct PrefetchCache {
    chunks_max: usize,
    entries: HashMap<u32, Entry>,
    by_use: BTreeMap<u64, u32>,
    uses: u64,
}

impl PrefetchCache {
    pub(super) fn new(chunks_max: usize) -> Self {
        Self { chunks_max, entries: HashMap::new(), by_use: BTreeMap::new(), uses: 0 }
    }

    /// Looks for the chunk of a slot on behalf of a request.
    pub(super) fn look_up(&mut self, slot: u32, request: u32) -> Fetched {
        let Some(entry) = self.entries.get_mut(&slot) else { return Fetched::No };
        self.uses += 1;
        self.by_use.remove(&entry.used);
        entry.used = self.uses;
        self.by_use.insert(entry.used, slot);
        match &mut entry.on_its_way {
            None => Fetched::Here,
            Some(waiting) => {
                waiting.push(request);
                Fetched::OnItsWay
            }
        }
    }

    /// Whether the slot is there or on its way.
    pub(super) fn holds(&self, slot: u32) -> bool {
        self.entries.contains_key(&slot)
    }

    /// The slot is on its way. Who waits for what leaves has to read: they come back.
    pub(super) fn begin(&mut self, slot: u32) -> Vec<u32> {
        self.uses += 1;
        let entry = Entry { used: self.uses, is_trigger: false, on_its_way: Some(Vec::new()) };
        self.entries.insert(slot, entry);
        self.by_use.insert(self.uses, slot);
        if self.entries.len() <= self.chunks_max {
            return Vec::new();
        }
        let oldest = self.by_use.pop_first().and_then(|(_, slot)| self.entries.remove(&slot));
        oldest.and_then(|entry| entry.on_its_way).unwrap_or_default()
    }

    /// The slot has come; who waited for it.
    pub(super) fn end(&mut self, slot: u32) -> Vec<u32> {
        let entry = self.entries.get_mut(&slot);
        entry.and_then(|entry| entry.on_its_way.take()).unwrap_or_default()
    }

    /// Marks a slot.
    pub(super) fn mark(&mut self, slot: u32) {
        if let Some(entry) = self.entries.get_mut(&slot) {
            entry.is_trigger = true;
        }
    }

    /// Takes the mark from a slot; whether it had one.
    pub(super) fn take_mark(&mut self, slot: u32) -> bool {
        self.entries.get_mut(&slot).is_some_and(|entry| std::mem::take(&mut entry.is_trigger))
    }
}

#[cfg(test)]
mod tests {
    use super::{Fetched, PrefetchCache};

    #[test]
    fn what_was_used_longest_ago_leaves_and_nobody_waits_for_ever() {
        let mut cache = PrefetchCache::new(2);
        assert_eq!(cache.look_up(1, 10), Fetched::No);
        assert!(cache.begin(1).is_empty() && cache.begin(2).is_empty());
        assert_eq!(
            (cache.look_up(2, 20), cache.look_up(1, 10)),
            (Fetched::OnItsWay, Fetched::OnItsWay)
        );
        assert_eq!(cache.end(1), [10]);
        assert_eq!(cache.look_up(1, 11), Fetched::Here);
        assert_eq!(cache.begin(3), [20], "who waited for the second has to read it");
        assert!(cache.holds(1) && !cache.holds(2) && cache.end(2).is_empty());
        cache.mark(3);
        assert_eq!(
            [cache.take_mark(3), cache.take_mark(3), cache.take_mark(9)],
            [true, false, false]
        );
    }
}
