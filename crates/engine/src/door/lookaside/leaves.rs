//! Leaves of maps, for doors: what addresses name that nobody has read lately.
//!
//! A leaf is copied for doors when the core has answered some reads in it that a door could have
//! answered. What the write buffer holds at that moment is left out: the map is yet to learn of it.
//! So a copy says of each address what the core would answer, until the address is changed again,
//! which its stamp tells.
//!
//! Volumes that were cloned from one image have leaves that are equal, and they share one copy: an
//! entry takes 72 bytes beside the 4 KiB of a copy. The copies that were made first go first.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use format::map_page::{self, SLOTS};
use format::page::Page;
use format::units::{Lba, Pbn, VolumeId};
use tables::lba_pbn;

/// Reads in a leaf that the core answers before it is copied.
const ASKED_MIN: u8 = 4;

const ENTRY_BYTES: usize = size_of::<Mutex<Entry>>();
/// What a copy takes, and what leads to it.
const COPY_BYTES: usize = size_of::<Page>() + 64;

/// A page does not fit into an `Arc` without a page's room to spare, as in `tables`.
type Copy = Box<Page>;

/// A leaf of a volume's map.
pub(super) type LeafOf = (VolumeId, u64);

/// Slots of a leaf, a bit for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotSet([u64; SLOTS.div_ceil(64)]);

impl SlotSet {
    /// Adds a slot, less than [`SLOTS`].
    pub(crate) fn add(&mut self, slot: usize) {
        self.0[slot / 64] |= 1 << (slot % 64);
    }

    fn has(&self, slot: usize) -> bool {
        self.0[slot / 64] >> (slot % 64) & 1 == 1
    }
}

#[derive(Default)]
struct Entry {
    of: LeafOf,
    /// The count of changes when the read was queued for which it was copied.
    as_of: u64,
    copy: Weak<Copy>,
    /// Of these it does not tell. Few leaves have any, and their memory is not counted.
    left_out: Option<Box<SlotSet>>,
    /// The leaf that was last asked for at this place, and how often in a row.
    asked: LeafOf,
    asked_count: u8,
}

/// Copies of leaves, found by volume and leaf; a leaf has one place, which it shares.
pub(super) struct Leaves {
    entries: Box<[Mutex<Entry>]>,
    copies: Mutex<Copies>,
}

/// All copies, the oldest first.
struct Copies {
    kept: VecDeque<Arc<Copy>>,
    kept_max: usize,
    /// By the leaf's number, whatever volume it is of.
    newest: Box<[Weak<Copy>]>,
}

impl Leaves {
    /// A quarter of `memory_bytes` is for entries, the rest for copies.
    pub(super) fn new(memory_bytes: u64) -> Self {
        let entries = (memory_bytes / 4 / ENTRY_BYTES as u64).max(1);
        let kept_max = (memory_bytes / 4 * 3 / COPY_BYTES as u64).max(1) as usize;
        let newest = (0..kept_max).map(|_| Weak::new()).collect();
        Self {
            entries: (0..entries).map(|_| Mutex::default()).collect(),
            copies: Mutex::new(Copies { kept: VecDeque::new(), kept_max, newest }),
        }
    }

    /// Leaves that have a place of their own.
    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn resident_bytes(&self) -> u64 {
        let copies = self.lock_copies().kept.len();
        (self.entries.len() * ENTRY_BYTES + copies * COPY_BYTES) as u64
    }

    /// The core has answered a read in this leaf; whether it should be copied.
    pub(super) fn is_due(&self, of: LeafOf) -> bool {
        let mut entry = self.lock(of);
        if entry.asked != of {
            (entry.asked, entry.asked_count) = (of, 0);
        }
        entry.asked_count += 1;
        let is_due = entry.asked_count >= ASKED_MIN;
        entry.asked_count %= ASKED_MIN;
        is_due
    }

    /// Copies a leaf, but for the slots that are `left_out`.
    pub(super) fn fill(&self, of: LeafOf, as_of: u64, page: &Page, left_out: SlotSet) {
        let copy = self.lock_copies().of(of.1, page);
        let left_out = (left_out != SlotSet::default()).then(|| Box::new(left_out));
        let mut entry = self.lock(of);
        (entry.of, entry.as_of, entry.copy, entry.left_out) = (of, as_of, copy, left_out);
    }

    /// What an address named, and as of which count of changes.
    pub(super) fn name(&self, volume: VolumeId, lba: Lba) -> Option<(Pbn, u64)> {
        let (leaf, slot) = lba_pbn::place(lba);
        let entry = self.lock((volume, leaf));
        let is_left_out = entry.left_out.as_ref().is_some_and(|left_out| left_out.has(slot));
        if entry.of != (volume, leaf) || is_left_out {
            return None;
        }
        let (copy, as_of) = (entry.copy.upgrade()?, entry.as_of);
        drop(entry);
        Some((map_page::get(&copy, slot), as_of))
    }

    /// Neighbours are next to each other; volumes begin far apart.
    fn lock(&self, (volume, leaf): LeafOf) -> MutexGuard<'_, Entry> {
        let place = start_of(volume).wrapping_add(leaf) % self.entries.len() as u64;
        self.entries[place as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_copies(&self) -> MutexGuard<'_, Copies> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the places of a volume begin.
pub(super) fn start_of(volume: VolumeId) -> u64 {
    u64::from(volume.0).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

impl Copies {
    /// A copy of the leaf of this number: another volume's, if that is equal.
    fn of(&mut self, leaf: u64, page: &Page) -> Weak<Copy> {
        let place = (leaf % self.newest.len() as u64) as usize;
        let newest = self.newest[place].upgrade();
        if newest.is_some_and(|copy| copy.payload() == page.payload()) {
            return self.newest[place].clone();
        }
        if self.kept.len() == self.kept_max {
            self.kept.pop_front();
        }
        let copy = Arc::new(Box::new(page.clone()));
        self.newest[place] = Arc::downgrade(&copy);
        self.kept.push_back(copy);
        self.newest[place].clone()
    }
}
