//! Frames: the pages in memory, found by name, in a slab.
//!
//! A look-up is one probe of a hash map with a cheap hash of our own and allocates nothing. The few
//! pages of each kind of tree that were found last are found again without it, because neighbours
//! are looked for one after the other, and what is repeated among what is new.
//!
//! The dirty pages stand in a queue, each exactly once, oldest change first: a freeze takes them
//! all, and cleaning takes the cold ones from its front. What is above a dirty page is dirty, so
//! their number is what a freeze needs blocks for. Every page stands in one of the two queues
//! of eviction as well (`eviction.rs`). Queues hold slots with the serial of their frame, so that
//! the entry of a frame that was removed is known and skipped.

use std::cell::Cell;
use std::collections::VecDeque;
use std::hash::BuildHasherDefault;

use format::BLOCK_BYTES;
use format::page::Page;
use format::units::{PageId, TreeId};
use hashbrown::HashMap;
use mutants::mutant;

use super::page_io::PageRead;
use super::page_memory::{PageMemory, SharedPage};
use super::pins::PinSet;
use super::slot::Slot;
use super::spares::Spares;
use super::table::TableKind;
use crate::page_hasher::PageHasher;
use crate::queues::Queues;

/// A map by page, tree or block. Its order is never looked at.
pub(super) type PageMap<K, V> = HashMap<K, V, BuildHasherDefault<PageHasher>>;

/// More wants than this between two looks of eviction count no more.
pub(super) const WANTED_MAX: u8 = 3;

/// A frame in a queue, if the one in the slot has this serial.
pub(super) type Entry = (Slot, u32);

/// A page in memory. Its frame is one cache line.
#[repr(align(64))]
pub(super) struct Frame {
    pub(super) id: PageId,
    pub(super) page: PageMemory,
    /// Where the page is on disk, or was before it was changed; 0 when it never was.
    pub(super) block: u64,
    /// None for the topmost page of a tree.
    pub(super) parent: Option<Slot>,
    /// Children that are resident or on their way.
    pub(super) children: u32,
    pub(super) pins: u32,
    serial: u32,
    dirty: bool,
    /// The write to `block` is in flight.
    pub(super) writing: bool,
    /// In the main queue, else in the small one.
    in_main: bool,
    /// It was read, and its reader has not had it.
    awaited: Cell<bool>,
    /// How often it was wanted beside the first time, up to a few: eviction counts it down.
    wanted: Cell<u8>,
    /// Wanted since cleaning last looked at it.
    referenced: Cell<bool>,
}

impl Frame {
    /// A page that was read.
    pub(super) fn read(read: PageRead, page: PageMemory, parent: Option<Slot>) -> Self {
        Self {
            block: read.pointer.block(),
            awaited: Cell::new(true),
            ..Self::made(read.id, page, parent)
        }
    }

    /// A page that did not exist; it is empty, or begins as another one.
    pub(super) fn made(id: PageId, page: PageMemory, parent: Option<Slot>) -> Self {
        Self {
            id,
            page,
            block: 0,
            parent,
            children: 0,
            pins: 0,
            serial: 0,
            dirty: false,
            writing: false,
            in_main: false,
            awaited: Cell::new(false),
            wanted: Cell::new(0),
            referenced: Cell::new(true),
        }
    }

    /// It is wanted. What an operation wants again while it holds the page counts once.
    pub(super) fn touch(&self) {
        self.referenced.set(true);
        if !self.awaited.take() && self.pins == 0 {
            self.wanted.set((self.wanted.get() + 1).min(WANTED_MAX));
        }
    }

    /// It has not been wanted, as far as cleaning and eviction are concerned.
    pub(super) fn cool(&self) {
        self.referenced.set(false);
        self.awaited.set(false);
        self.wanted.set(0);
    }

    /// Whether it has been read and not been had; eviction asks once.
    pub(super) fn take_awaited(&self) -> bool {
        self.awaited.take()
    }

    /// Whether it was wanted again; it has to be once more from now on.
    pub(super) fn take_wanted(&self) -> bool {
        self.wanted.take() > 0
    }

    /// Takes one of the times that it was wanted off; false when there is none.
    pub(super) fn count_down(&self) -> bool {
        let wanted = self.wanted.get();
        self.wanted.set(wanted.saturating_sub(1));
        wanted > 0
    }

    /// Rounds through the main queue that it has before it is wanted there (`eviction.rs`).
    fn rounds_granted(&self) -> u8 {
        u8::from(self.table() == TableKind::HashPbn)
    }

    pub(super) fn table(&self) -> TableKind {
        TableKind::of(self.id.tree)
    }

    /// Whether it was wanted since cleaning last asked.
    pub(super) fn take_referenced(&self) -> bool {
        self.referenced.take()
    }

    /// Whether it has changed since it was last given a block.
    pub(super) fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// Whether nothing but the cache has a use for it.
    pub(super) fn is_droppable(&self) -> bool {
        let written = !self.writing || mutant!(DropsPageBeingWritten);
        !self.dirty && written && self.pins == 0 && self.children == 0
    }
}

const _: () = assert!(size_of::<Option<Frame>>() == 64);

/// Kinds of trees of which the last pages are remembered: each of the store's own, and all maps of
/// volumes together.
const RECENT_KINDS: usize = format::root::TREES + 1;
/// So many pages of a kind.
const RECENT_PAGES: usize = 4;

/// Pages of a kind of tree that were found last. Hints: the slots may hold other pages by now.
#[derive(Default)]
struct Recent {
    found: [Cell<Option<(PageId, Slot)>>; RECENT_PAGES],
    next: Cell<usize>,
}

impl Recent {
    fn remember(&self, id: PageId, slot: Slot) {
        self.found[self.next.replace((self.next.get() + 1) % RECENT_PAGES)].set(Some((id, slot)));
    }
}

/// The slab of frames.
pub(super) struct Frames {
    slots: Vec<Option<Frame>>,
    vacant: Vec<Slot>,
    by_id: PageMap<PageId, Slot>,
    /// What was found last, by kind of tree.
    recent: [Recent; RECENT_KINDS],
    /// Slot and serial of every dirty page, and of some that were removed since.
    dirty: VecDeque<Entry>,
    /// By table, as `resident` is.
    dirty_pages: [usize; TableKind::COUNT],
    resident: [usize; TableKind::COUNT],
    pub(super) queues: Queues<Entry, PageId>,
    /// Pages of the small queue that are not dirty.
    pub(super) small_clean: usize,
    serial_next: u32,
    pub(super) spares: Spares,
}

impl Frames {
    /// None yet, for a cache of so many pages.
    pub(super) fn new(cache_pages: usize) -> Self {
        Self {
            slots: Vec::new(),
            vacant: Vec::new(),
            by_id: PageMap::default(),
            recent: Default::default(),
            dirty: VecDeque::new(),
            dirty_pages: Default::default(),
            resident: Default::default(),
            queues: Queues::default(),
            small_clean: 0,
            serial_next: 0,
            spares: Spares::new(cache_pages),
        }
    }

    pub(super) fn find(&self, id: PageId) -> Option<Slot> {
        let recent = &self.recent[(id.tree.0 as usize).min(RECENT_KINDS - 1)];
        let is_there = |slot: Slot| self.slots[slot.at()].as_ref().is_some_and(|at| at.id == id);
        let mut known = recent.found.iter().filter_map(Cell::get);
        if let Some((_, slot)) = known.find(|&(found, slot)| found == id && is_there(slot)) {
            return Some(slot);
        }
        let slot = self.place_of(id)?;
        recent.remember(id, slot);
        Some(slot)
    }

    /// The same, without a look at what was found last: for one of many different ones.
    pub(super) fn place_of(&self, id: PageId) -> Option<Slot> {
        self.by_id.get(&id).copied()
    }

    #[expect(clippy::expect_used, reason = "slots are handed out for occupied frames only")]
    pub(super) fn get(&self, slot: Slot) -> &Frame {
        self.slots[slot.at()].as_ref().expect("an occupied frame")
    }

    #[expect(clippy::expect_used, reason = "slots are handed out for occupied frames only")]
    pub(super) fn get_mut(&mut self, slot: Slot) -> &mut Frame {
        self.slots[slot.at()].as_mut().expect("an occupied frame")
    }

    pub(super) fn insert(&mut self, mut frame: Frame) -> Slot {
        let id = frame.id;
        frame.serial = self.serial_next;
        self.serial_next = self.serial_next.wrapping_add(1);
        // What is made is new, whatever page of its name was here before.
        let was_here = self.queues.ghosts.take(id);
        frame.in_main = was_here && frame.block != 0;
        if frame.in_main {
            frame.wanted.set(frame.rounds_granted());
        }
        self.resident[frame.table() as usize] += 1;
        let (in_main, serial) = (frame.in_main, frame.serial);
        let slot = match self.vacant.pop() {
            Some(slot) => {
                self.slots[slot.at()] = Some(frame);
                slot
            }
            None => {
                self.slots.push(Some(frame));
                Slot::new(self.slots.len() - 1)
            }
        };
        let earlier = self.by_id.insert(id, slot);
        debug_assert!(earlier.is_none(), "{id} is in the cache twice");
        self.small_clean += usize::from(!in_main);
        self.queues.push(in_main, (slot, serial));
        if self.queues.are_stale(self.by_id.len()) {
            self.queues.retain(|&entry| frame_of(&self.slots, entry).is_some());
        }
        slot
    }

    /// Takes a frame out; its parent does not learn of it.
    #[expect(clippy::expect_used, reason = "slots are handed out for occupied frames only")]
    pub(super) fn remove(&mut self, slot: Slot) -> Frame {
        let frame = self.slots[slot.at()].take().expect("an occupied frame");
        self.by_id.remove(&frame.id);
        self.vacant.push(slot);
        self.resident[frame.table() as usize] -= 1;
        self.dirty_pages[frame.table() as usize] -= usize::from(frame.dirty);
        self.small_clean -= usize::from(!frame.in_main && !frame.dirty);
        frame
    }

    /// Drops a page that nothing but the cache has a use for.
    pub(super) fn drop_page(&mut self, slot: Slot) {
        let Frame { parent, page, .. } = self.remove(slot);
        self.spares.put(page);
        if let Some(parent) = parent {
            self.get_mut(parent).children -= 1;
        }
    }

    /// The frame that an entry of a queue is of, if it is still there.
    pub(super) fn frame_of(&self, (slot, serial): Entry) -> Option<&Frame> {
        frame_of(&self.slots, (slot, serial))
    }

    /// Puts a frame of the small queue, taken out of it, at the end of the main one.
    pub(super) fn move_to_main(&mut self, entry: Entry) {
        let frame = self.get_mut(entry.0);
        frame.in_main = true;
        frame.wanted.set(frame.rounds_granted());
        let dirty = frame.dirty;
        self.small_clean -= usize::from(!dirty);
        self.queues.push(true, entry);
    }

    /// The bytes of a page that is dirty from now on.
    pub(super) fn change(&mut self, slot: Slot) -> &mut Page {
        self.mark_dirty(slot);
        self.own(slot)
    }

    /// The bytes of a page; if they are still to be written as they are, a copy takes their place.
    #[expect(clippy::expect_used, reason = "slots are handed out for occupied frames only")]
    pub(super) fn own(&mut self, slot: Slot) -> &mut Page {
        let frame = self.slots[slot.at()].as_mut().expect("an occupied frame");
        if frame.page.get_mut().is_none() {
            frame.page = PageMemory::Alone(self.spares.copy(&frame.page));
        }
        frame.page.get_mut().expect("a page that nobody else has")
    }

    /// The bytes of a page as they are now, for somebody else as well.
    #[expect(clippy::expect_used, reason = "slots are handed out for occupied frames only")]
    pub(super) fn share(&mut self, slot: Slot) -> SharedPage {
        let place = &mut self.slots[slot.at()];
        let frame = place.take().expect("an occupied frame");
        let page = frame.page.share();
        *place = Some(Frame { page: PageMemory::Shared(SharedPage::clone(&page)), ..frame });
        page
    }

    /// The page's memory is its own again, if nobody else has it.
    pub(super) fn settle(&mut self, slot: Slot) {
        let place = &mut self.slots[slot.at()];
        *place = place.take().map(|frame| Frame { page: frame.page.settle(), ..frame });
    }

    /// Whether the page differs from what is on disk.
    pub(super) fn is_dirty(&self, slot: Slot) -> bool {
        self.get(slot).dirty
    }

    /// The page is dirty from now on, and what is above it: it will point to another block.
    pub(super) fn mark_dirty(&mut self, slot: Slot) {
        let mut above = Some(slot);
        while let Some(slot) = above {
            let frame = self.get_mut(slot);
            if frame.dirty {
                return;
            }
            frame.dirty = true;
            let (serial, in_main, table) = (frame.serial, frame.in_main, frame.table());
            above = frame.parent;
            self.dirty.push_back((slot, serial));
            self.dirty_pages[table as usize] += 1;
            self.small_clean -= usize::from(!in_main);
        }
    }

    /// The dirty pages of a tree.
    pub(super) fn dirty_of(&self, tree: TreeId) -> Vec<Slot> {
        let is_due = |&&entry: &&Entry| {
            self.frame_of(entry).is_some_and(|frame| frame.dirty && frame.id.tree == tree)
        };
        self.dirty.iter().filter(is_due).map(|&(slot, _)| slot).collect()
    }

    /// Every resident page that is meant.
    pub(super) fn all(&self, is_meant: impl Fn(PageId) -> bool) -> Vec<Slot> {
        let places = self.slots.iter().enumerate();
        let occupied = places.filter_map(|(at, frame)| Some((at, frame.as_ref()?)));
        occupied.filter(|(_, frame)| is_meant(frame.id)).map(|(at, _)| Slot::new(at)).collect()
    }

    /// The page is on disk, or will be when its write has ended; it must not be in the queue.
    pub(super) fn mark_clean(&mut self, slot: Slot) {
        let frame = self.get_mut(slot);
        debug_assert!(frame.dirty, "{} is cleaned twice", frame.id);
        frame.dirty = false;
        let (in_main, table) = (frame.in_main, frame.table());
        self.dirty_pages[table as usize] -= 1;
        self.small_clean += usize::from(!in_main);
    }

    /// The dirty page whose change is oldest, out of the queue: it is cleaned, or put back.
    pub(super) fn pop_dirty(&mut self) -> Option<Slot> {
        while let Some(entry) = self.dirty.pop_front() {
            if self.frame_of(entry).is_some_and(|frame| frame.dirty) {
                return Some(entry.0);
            }
        }
        None
    }

    pub(super) fn put_back_dirty(&mut self, slot: Slot) {
        let serial = self.get(slot).serial;
        self.dirty.push_back((slot, serial));
    }

    pub(super) fn pin(&mut self, slot: Slot, pins: &mut PinSet) {
        let frame = self.get_mut(slot);
        frame.touch();
        frame.pins += 1;
        pins.held.push((slot, frame.serial));
    }

    pub(super) fn release(&mut self, pins: PinSet) {
        for (slot, serial) in pins.held {
            if let Some(frame) = &mut self.slots[slot.at()]
                && frame.serial == serial
            {
                frame.pins -= 1;
            }
        }
    }

    pub(super) fn dirty_pages(&self) -> usize {
        self.dirty_pages.iter().sum()
    }

    /// Pages of a table that are here, and those of them that are dirty.
    pub(super) fn held_of(&self, table: TableKind) -> (usize, usize) {
        (self.resident[table as usize], self.dirty_pages[table as usize])
    }

    pub(super) fn resident_pages(&self) -> usize {
        self.by_id.len()
    }

    /// Number of slots, vacant ones included.
    pub(super) fn places(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn resident_bytes(&self) -> u64 {
        let slab = self.slots.capacity() * size_of::<Option<Frame>>();
        let map = self.by_id.capacity() * (size_of::<(PageId, Slot)>() + 1);
        let queue = self.dirty.capacity() * size_of::<Entry>();
        let eviction = self.queues.resident_bytes();
        ((self.resident_pages() + self.spares.len()) * BLOCK_BYTES + slab + map + queue + eviction)
            as u64
    }
}

fn frame_of(slots: &[Option<Frame>], (slot, serial): Entry) -> Option<&Frame> {
    slots.get(slot.at())?.as_ref().filter(|frame| frame.serial == serial)
}
