//! Leaves of PBNs: the LBA-PBN map of a volume, and the queue of free PBNs.
//!
//! Entry `n` of the array is slot `n % SLOTS` of leaf `n / SLOTS`. A vacant slot is
//! [`Pbn::NONE`]: it reads as zeros.

use crate::field::{put_u48, u64_at};
use crate::page::{PAGE_HEADER_BYTES, PAYLOAD_BYTES, Page};
use crate::units::{BLOCK_BYTES, Pbn};

/// PBNs in a leaf.
pub const SLOTS: usize = 677;

pub(crate) const PBN_BYTES: usize = 6;

const _: () = assert!(SLOTS * PBN_BYTES <= PAYLOAD_BYTES);
// `get` loads 8 bytes also from the last slot.
const _: () = assert!(PAGE_HEADER_BYTES + (SLOTS - 1) * PBN_BYTES + 8 <= BLOCK_BYTES);

/// The PBN in `slot`, less than [`SLOTS`].
#[must_use]
pub fn get(page: &Page, slot: usize) -> Pbn {
    Pbn(u64_at(page.payload(), slot * PBN_BYTES) & Pbn::MAX.0)
}

/// Changes the PBN in `slot`, less than [`SLOTS`].
pub fn set(page: &mut Page, slot: usize, pbn: Pbn) {
    put_u48(page.payload_mut(), slot * PBN_BYTES, pbn.0);
}

/// Whether all slots are vacant.
#[must_use]
pub fn is_empty(page: &Page) -> bool {
    page.payload().iter().all(|&byte| byte == 0)
}
