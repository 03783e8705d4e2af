//! Leaves of the PBN-PBA table: where each stored chunk is and how often it is mapped.
//!
//! PBN `n` is slot `n % SLOTS` of leaf `n / SLOTS`. An entry with length 0 is vacant: its PBN names
//! nothing now. An entry with 0 references is a dead chunk, still stored and still found by its
//! fingerprint until collection forgets it.
//!
//! An entry repeats a part of its frame's checksum, as a page pointer does of its page's: a frame
//! of the same PBN that a lost write left in the place is not taken for it.
//!
//! An entry says of a chunk that it is *aside*: the Hash-PBN table has no entry of it. That is a
//! bit above the length, which no frame is long enough to need.

use crate::field::{put_u16, put_u24, put_u32, u16_at, u24_at, u32_at};
use crate::page::{PAYLOAD_BYTES, Page};
use crate::units::{ContainerId, FrameCheck, Pba};

/// Entries in a leaf.
pub const SLOTS: usize = 254;

pub(crate) const ENTRY_BYTES: usize = 16;
pub(crate) const CONTAINER_AT: usize = 0;
pub(crate) const OFFSET_AT: usize = 4;
pub(crate) const LENGTH_AT: usize = 7;
pub(crate) const CHECK_AT: usize = 10;
pub(crate) const REFERENCES_AT: usize = 12;

/// Above the length of any frame.
pub(crate) const ASIDE_FLAG: u32 = 1 << 23;

const _: () = assert!(LENGTH_AT + 3 == CHECK_AT && CHECK_AT + 2 == REFERENCES_AT);
const _: () = assert!(REFERENCES_AT + 4 == ENTRY_BYTES && SLOTS * ENTRY_BYTES == PAYLOAD_BYTES);

/// A stored chunk.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PbaEntry {
    /// Where its frame is.
    pub pba: Pba,
    /// LBAs mapped to it; 0 is dead.
    pub references: u32,
    /// Whether the Hash-PBN table has no entry of it. Of chunks that were stored before there was
    /// this mark, in stores that compare bytes, it is not known.
    pub aside: bool,
}

/// The entry in `slot`, less than [`SLOTS`]; none when vacant.
#[must_use]
pub fn get(page: &Page, slot: usize) -> Option<PbaEntry> {
    let entry = &page.payload()[slot * ENTRY_BYTES..][..ENTRY_BYTES];
    let length = u24_at(entry, LENGTH_AT);
    let (length_bytes, aside) = (length & !ASIDE_FLAG, length & ASIDE_FLAG != 0);
    if length_bytes == 0 {
        return None;
    }
    let container = ContainerId(u32_at(entry, CONTAINER_AT));
    let offset_bytes = u24_at(entry, OFFSET_AT);
    let check = FrameCheck::from_bits(u16_at(entry, CHECK_AT));
    let pba = Pba { container, offset_bytes, length_bytes, check };
    Some(PbaEntry { pba, references: u32_at(entry, REFERENCES_AT), aside })
}

/// Changes the entry in `slot`, less than [`SLOTS`].
///
/// # Panics
/// When the entry's length is 0, which would make it vacant, or it does not fit its fields.
pub fn set(page: &mut Page, slot: usize, entry: Option<PbaEntry>) {
    let bytes = &mut page.payload_mut()[slot * ENTRY_BYTES..][..ENTRY_BYTES];
    bytes.fill(0);
    if let Some(PbaEntry { pba, references, aside }) = entry {
        assert!(pba.length_bytes != 0, "a stored chunk has a frame");
        assert!(pba.length_bytes < ASIDE_FLAG, "no frame is so long");
        put_u32(bytes, CONTAINER_AT, pba.container.0);
        put_u24(bytes, OFFSET_AT, pba.offset_bytes);
        put_u24(bytes, LENGTH_AT, pba.length_bytes | if aside { ASIDE_FLAG } else { 0 });
        put_u16(bytes, CHECK_AT, pba.check.to_bits());
        put_u32(bytes, REFERENCES_AT, references);
    }
}
