//! Inner pages: where the pages of the level below are.
//!
//! Slot `s` of page `i` of level `l` points to page `i * FANOUT + s` of level `l - 1`. A tree
//! grows by a level when an index does not fit; absent subtrees cost nothing.

use crate::field::{put_u64, u64_at};
use crate::page::{PAYLOAD_BYTES, Page};
use crate::units::BlockPtr;

/// Pointers in a page.
pub const FANOUT: usize = 508;

pub(crate) const POINTER_BYTES: usize = 8;

const _: () = assert!(FANOUT * POINTER_BYTES == PAYLOAD_BYTES);

/// The pointer in `slot`, less than [`FANOUT`].
#[must_use]
pub fn get(page: &Page, slot: usize) -> BlockPtr {
    BlockPtr::from_bits(u64_at(page.payload(), slot * POINTER_BYTES))
}

/// Changes the pointer in `slot`, less than [`FANOUT`].
pub fn set(page: &mut Page, slot: usize, pointer: BlockPtr) {
    put_u64(page.payload_mut(), slot * POINTER_BYTES, pointer.to_bits());
}

/// Number of pointers that are not none.
#[must_use]
pub fn used(page: &Page) -> usize {
    (0..FANOUT).filter(|&slot| !get(page, slot).is_none()).count()
}
