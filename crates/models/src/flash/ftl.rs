//! The flash translation layer: which page holds what a logical address reads.
//!
//! ```text
//! address ──► slot (a content that was stored, and how many refer to it) ──► page
//! ```
//!
//! Two steps, as in CA-FTL and EaD, so that many addresses share a page and a collection that moves
//! the page changes one entry. A slot that nobody refers to any more is garbage; but its page still
//! holds the content until its block is erased, so until then it may be taken up again. (The papers
//! do not say what they do; so a large device finds exactly the duplicates of its trace.)
//!
//! Everything here happens at once. What it costs is in [`Placed`], and the device takes the time.

use std::collections::HashMap;

use thiserror::Error;

use super::geometry::Geometry;
use super::plane::{Plane, Room};

/// All pages live, and one more is needed.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("the device is full: {pages} pages are not enough for this trace")]
pub struct Full {
    /// Pages of the device.
    pub pages: u64,
}

/// A stored content.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) content: u32,
    /// The address it was first written to: its neighbours are what was written beside it.
    pub(super) first_lba: u64,
    /// Addresses that read it, and requests that may.
    pub(super) references: u32,
    /// Where it is, once it has a page.
    pub(super) at: Option<(u32, u32, u32)>,
    /// Whether its page has been written to the end.
    pub(super) is_programmed: bool,
}

/// Where a page went, and what had to be done for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) plane: u32,
    /// Pages that a collection moved, if there was one.
    pub(super) moved: Option<u32>,
    /// Slots whose content is gone.
    pub(super) dropped: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Mapped {
    slot: u32,
    /// Of the write: an older one that ends later changes nothing.
    sequence: u64,
}

pub(super) struct Ftl {
    geometry: Geometry,
    pub(super) planes: Vec<Plane>,
    slots: Vec<Slot>,
    map: HashMap<u64, Mapped>,
}

impl Ftl {
    pub(super) fn new(geometry: Geometry) -> Self {
        let plane = Plane::new(geometry.blocks, geometry.pages);
        let planes = vec![plane; geometry.planes_all() as usize];
        Self { geometry, planes, slots: Vec::new(), map: HashMap::new() }
    }

    pub(super) fn slot(&self, slot: u32) -> &Slot {
        &self.slots[slot as usize]
    }

    /// What an address reads.
    pub(super) fn mapped(&self, lba: u64) -> Option<u32> {
        self.map.get(&lba).map(|mapped| mapped.slot)
    }

    /// A slot for a content that gets a page later. The caller refers to it.
    pub(super) fn add(&mut self, content: u32, first_lba: u64) -> u32 {
        let slot = Slot { content, first_lba, references: 1, at: None, is_programmed: false };
        self.slots.push(slot);
        self.slots.len() as u32 - 1
    }

    /// One more refers to the slot, whose content is still there.
    pub(super) fn refer(&mut self, slot: u32) {
        let entry = &mut self.slots[slot as usize];
        entry.references += 1;
        if let (1, Some((plane, block, _))) = (entry.references, entry.at) {
            self.planes[plane as usize].blocks[block as usize].live += 1;
        }
    }

    /// One fewer refers to the slot.
    pub(super) fn release(&mut self, slot: u32) {
        let entry = &mut self.slots[slot as usize];
        entry.references -= 1;
        if let (0, Some((plane, block, _))) = (entry.references, entry.at) {
            self.planes[plane as usize].blocks[block as usize].live -= 1;
        }
    }

    /// The reference that a write holds becomes that of its address, unless a later write was
    /// faster.
    pub(super) fn map(&mut self, lba: u64, slot: u32, sequence: u64) {
        let gone = match self.map.get_mut(&lba) {
            Some(mapped) if mapped.sequence > sequence => slot,
            Some(mapped) => std::mem::replace(mapped, Mapped { slot, sequence }).slot,
            None => {
                self.map.insert(lba, Mapped { slot, sequence });
                return;
            }
        };
        self.release(gone);
    }

    /// Gives the slot a page in this plane, or in the next that has room.
    pub(super) fn place(&mut self, slot: u32, wanted: u32) -> Result<Placed, Full> {
        let planes = self.planes.len() as u32;
        for step in 0..planes {
            let plane = (wanted + step) % planes;
            let mut placed = Placed { plane, ..Placed::default() };
            match self.planes[plane as usize].make_room() {
                Room::Open => {}
                Room::Collect(victim) => self.collect(victim, &mut placed),
                Room::None => continue,
            }
            self.append(plane, slot);
            return Ok(placed);
        }
        Err(Full { pages: self.geometry.pages_all() })
    }

    /// The page of the slot has been written.
    pub(super) fn set_programmed(&mut self, slot: u32) {
        self.slots[slot as usize].is_programmed = true;
    }

    fn collect(&mut self, victim: u32, placed: &mut Placed) {
        let mut moved = 0;
        for slot in self.planes[placed.plane as usize].collect(victim) {
            if self.slots[slot as usize].references > 0 {
                self.append(placed.plane, slot);
                moved += 1;
            } else {
                self.slots[slot as usize].at = None;
                placed.dropped.push(slot);
            }
        }
        placed.moved = Some(moved);
    }

    fn append(&mut self, plane: u32, slot: u32) {
        let at = self.planes[plane as usize].append(slot);
        self.slots[slot as usize].at = at.map(|(block, page)| (plane, block, page));
    }
}

#[cfg(test)]
impl Ftl {
    /// Whether every slot is referred to by the addresses that read it, and by nobody else.
    pub(super) fn is_settled(&self) -> bool {
        let mut references = vec![0; self.slots.len()];
        self.map.values().for_each(|mapped| references[mapped.slot as usize] += 1);
        self.slots.iter().map(|slot| slot.references).eq(references)
    }
}

#[cfg(test)]
mod tests;
