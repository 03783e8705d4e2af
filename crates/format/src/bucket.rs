//! Buckets of the Hash-PBN table: which stored chunk has this content.
//!
//! A bucket is a set of (fingerprint, PBN). One byte of each fingerprint, its tag,
//! stands in an array of its own: a look-up compares 104 tags, eight at a time, and touches an
//! entry only where the tag fits. Buckets are chosen by a keyed hash over the whole fingerprint, so
//! a bucket's tags are as good as random. At the table's mean load a miss touches a
//! third of an entry.
//!
//! Pages of young entries are of the same make, their entries in the order in which they came.
//! There a PBN may be *taken back* ([`taken_back`]), and a flag says that a sealed segment ends
//! with the page. In format 1 a full bucket goes on in pages of another tree, which nobody writes
//! any more.

use thiserror::Error;

use crate::field::{array_at, put_bytes, put_u48, u48_at, u64_at};
use crate::page::{PAYLOAD_BYTES, Page};
use crate::units::{Fingerprint, Pbn};

/// Entries in a bucket's page.
pub const CAPACITY: usize = 104;

/// Entries that a new bucket holds on average: one in a thousand then finds its bucket full.
pub const LOAD_MEAN: u32 = 78;

pub(crate) const COUNT_AT: usize = 0;
pub(crate) const FLAGS_AT: usize = 1;
pub(crate) const ZERO_AT: usize = 2;
pub(crate) const TAGS_AT: usize = 8;
pub(crate) const ENTRIES_AT: usize = 112;
pub(crate) const ENTRY_BYTES: usize = 38;
pub(crate) const ENTRY_PBN_AT: usize = 32;
/// The byte of a fingerprint that is its tag.
pub(crate) const TAG_BYTE: usize = 8;
// 1 said that a bucket of format 1 went on in another page.
pub(crate) const FLAG_SEGMENT_END: u8 = 2;
/// Set in PBNs that are taken back.
const TAKEN_BACK: u64 = 1 << 47;

/// Tags are compared as words of so many.
const WORD_TAGS: usize = 8;

const _: () = assert!(ZERO_AT == FLAGS_AT + 1 && ZERO_AT < TAGS_AT);
const _: () = assert!(TAGS_AT + CAPACITY == ENTRIES_AT && CAPACITY.is_multiple_of(WORD_TAGS));
const _: () = assert!(ENTRIES_AT + CAPACITY * ENTRY_BYTES == PAYLOAD_BYTES);
const _: () = assert!(ENTRY_PBN_AT + 6 == ENTRY_BYTES);

/// The page has [`CAPACITY`] entries.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Error)]
#[error("the bucket is full")]
pub struct Full;

/// The PBN of the chunk with this fingerprint, if the page knows it.
#[must_use]
pub fn find(page: &Page, fingerprint: &Fingerprint) -> Option<Pbn> {
    let payload = page.payload();
    slot_of(payload, fingerprint).map(|slot| pbn_at(payload, slot))
}

/// Adds an entry; the fingerprint must not be in the page yet.
///
/// # Errors
/// [`Full`], and nothing has changed.
pub fn push(page: &mut Page, fingerprint: &Fingerprint, pbn: Pbn) -> Result<(), Full> {
    let slot = len(page);
    if slot == CAPACITY {
        return Err(Full);
    }
    let payload = page.payload_mut();
    put_bytes(payload, entry_at(slot), &fingerprint.0);
    put_u48(payload, entry_at(slot) + ENTRY_PBN_AT, pbn.0);
    payload[TAGS_AT + slot] = fingerprint.0[TAG_BYTE];
    payload[COUNT_AT] += 1;
    Ok(())
}

/// Number of entries.
#[must_use]
pub fn len(page: &Page) -> usize {
    count(page.payload())
}

/// Whether there is no entry.
#[must_use]
pub fn is_empty(page: &Page) -> bool {
    len(page) == 0
}

/// Entry `slot`, less than [`len`], in the order in which they were pushed.
#[must_use]
pub fn entry(page: &Page, slot: usize) -> (Fingerprint, Pbn) {
    let payload = page.payload();
    (Fingerprint(array_at(payload, entry_at(slot))), pbn_at(payload, slot))
}

/// All entries, in the order in which they were pushed.
pub fn entries(page: &Page) -> impl Iterator<Item = (Fingerprint, Pbn)> + '_ {
    (0..len(page)).map(|slot| entry(page, slot))
}

/// Reads a byte of an entry: it means nothing, and the entry is near from then on.
#[must_use]
pub fn touch_entry(page: &Page, slot: usize) -> u8 {
    page.payload()[entry_at(slot.min(CAPACITY - 1))]
}

/// The same with the tags, which lie in two lines of a cache.
#[must_use]
pub fn touch_tags(page: &Page) -> u8 {
    page.payload()[TAGS_AT] ^ page.payload()[ENTRIES_AT - 1]
}

/// Whether a sealed segment of young entries ends with this page.
#[must_use]
pub fn ends_segment(page: &Page) -> bool {
    page.payload()[FLAGS_AT] & FLAG_SEGMENT_END != 0
}

/// Says that a sealed segment ends with this page.
pub fn set_ends_segment(page: &mut Page) {
    page.payload_mut()[FLAGS_AT] |= FLAG_SEGMENT_END;
}

/// As it stands in a young entry that takes `pbn` back: from then on its fingerprint does not lead
/// to it.
#[must_use]
pub fn taken_back(pbn: Pbn) -> Pbn {
    Pbn(pbn.0 | TAKEN_BACK)
}

/// The PBN of a young entry, and whether it is taken back.
#[must_use]
pub fn young_pbn(pbn: Pbn) -> (Pbn, bool) {
    (Pbn(pbn.0 & !TAKEN_BACK), pbn.0 & TAKEN_BACK != 0)
}

/// Removes all entries and flags.
pub fn clear(page: &mut Page) {
    page.payload_mut().fill(0);
}

const fn entry_at(slot: usize) -> usize {
    ENTRIES_AT + slot * ENTRY_BYTES
}

fn pbn_at(payload: &[u8; PAYLOAD_BYTES], slot: usize) -> Pbn {
    Pbn(u48_at(payload, entry_at(slot) + ENTRY_PBN_AT))
}

fn count(payload: &[u8; PAYLOAD_BYTES]) -> usize {
    usize::from(payload[COUNT_AT]).min(CAPACITY)
}

fn slot_of(payload: &[u8; PAYLOAD_BYTES], fingerprint: &Fingerprint) -> Option<usize> {
    let count = count(payload);
    let tag = fingerprint.0[TAG_BYTE];
    for first in (0..count).step_by(WORD_TAGS) {
        let mut hits = equal_bytes(u64_at(payload, TAGS_AT + first), tag);
        while hits != 0 {
            let slot = first + hits.trailing_zeros() as usize / 8;
            let start = entry_at(slot);
            if slot < count && payload[start..start + ENTRY_PBN_AT] == fingerprint.0 {
                return Some(slot);
            }
            hits &= hits - 1;
        }
    }
    None
}

/// The high bit of every byte of `word` that equals `byte`, and no other bit.
fn equal_bytes(word: u64, byte: u8) -> u64 {
    const LOW_BITS: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let differences = word ^ u64::from_le_bytes([byte; 8]);
    !((differences & LOW_BITS).wrapping_add(LOW_BITS) | differences | LOW_BITS)
}
