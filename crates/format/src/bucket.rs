//! Buckets of the Hash-PBN table: which stored chunk has this content.
//!
//! A bucket is an unordered set of (fingerprint, PBN). One byte of each fingerprint, its tag,
//! stands in an array of its own: a look-up compares 104 tags, eight at a time, and touches an
//! entry only where the tag fits. Buckets are chosen by a keyed hash over the whole fingerprint, so
//! a bucket's tags are as good as random. At the table's mean load a miss touches a
//! quarter of an entry.
//!
//! A full bucket is continued in pages of another tree; its flag says so, and what is where is the
//! business of room tables.

use thiserror::Error;

use crate::field::{array_at, put_bytes, put_u48, u48_at, u64_at};
use crate::page::{PAYLOAD_BYTES, Page};
use crate::units::{Fingerprint, Pbn};

/// Entries in a bucket's page.
pub const CAPACITY: usize = 104;

pub(crate) const COUNT_AT: usize = 0;
pub(crate) const FLAGS_AT: usize = 1;
pub(crate) const ZERO_AT: usize = 2;
pub(crate) const TAGS_AT: usize = 8;
pub(crate) const ENTRIES_AT: usize = 112;
pub(crate) const ENTRY_BYTES: usize = 38;
pub(crate) const ENTRY_PBN_AT: usize = 32;
/// The byte of a fingerprint that is its tag.
pub(crate) const TAG_BYTE: usize = 8;
pub(crate) const FLAG_OVERFLOWED: u8 = 1;

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

/// Removes the entry with this fingerprint; the last entry takes its place.
pub fn remove(page: &mut Page, fingerprint: &Fingerprint) -> Option<Pbn> {
    let last = len(page).checked_sub(1)?;
    let payload = page.payload_mut();
    let slot = slot_of(payload, fingerprint)?;
    let pbn = pbn_at(payload, slot);
    payload.copy_within(entry_at(last)..entry_at(last + 1), entry_at(slot));
    payload[entry_at(last)..entry_at(last + 1)].fill(0);
    payload[TAGS_AT + slot] = payload[TAGS_AT + last];
    payload[TAGS_AT + last] = 0;
    payload[COUNT_AT] = last as u8;
    Some(pbn)
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

/// Entry `slot`, less than [`len`]; the order changes with every removal.
#[must_use]
pub fn entry(page: &Page, slot: usize) -> (Fingerprint, Pbn) {
    let payload = page.payload();
    (Fingerprint(array_at(payload, entry_at(slot))), pbn_at(payload, slot))
}

/// The first byte of the place that the next entry gets, none when the page is full. It means
/// nothing; to read it brings the place near.
#[must_use]
pub fn byte_of_next(page: &Page) -> Option<u8> {
    let slot = len(page);
    (slot < CAPACITY).then(|| page.payload()[entry_at(slot)])
}

/// Whether the bucket goes on in an overflow page.
#[must_use]
pub fn overflowed(page: &Page) -> bool {
    page.payload()[FLAGS_AT] & FLAG_OVERFLOWED != 0
}

/// Says whether the bucket goes on in an overflow page.
pub fn set_overflowed(page: &mut Page, overflowed: bool) {
    page.payload_mut()[FLAGS_AT] = if overflowed { FLAG_OVERFLOWED } else { 0 };
}

/// Removes all entries and the flag.
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
