//! The PBN-PBA table: where each stored chunk's frame is, and how often maps name it.

use format::pba_page::{self, PbaEntry, SLOTS};
use format::units::{Pba, Pbn, TreeId};

use crate::error::PageError;
use crate::page_store::{PageRead, PageStore, PinSet};

/// What taking a reference did.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Retained {
    /// Where the chunk is.
    pub pba: Pba,
    /// It was dead before.
    pub revived: bool,
}

/// What giving a reference back did.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Released {
    /// Where the chunk is.
    pub pba: Pba,
    /// It is dead now.
    pub died: bool,
}

fn place(pbn: Pbn) -> (u64, usize) {
    (pbn.0 / SLOTS as u64, (pbn.0 % SLOTS as u64) as usize)
}

/// Names the page of a PBN; true when it is here.
///
/// # Errors
/// [`PageError`] when it is damaged.
pub fn want(
    store: &mut PageStore,
    pins: &mut PinSet,
    pbn: Pbn,
    reads: &mut Vec<PageRead>,
) -> Result<bool, PageError> {
    store.want(pins, TreeId::PBN_PBA, place(pbn).0, reads)
}

/// The entry of a PBN, if it names a chunk.
#[must_use]
pub fn get(store: &PageStore, pbn: Pbn) -> Option<PbaEntry> {
    let (leaf, slot) = place(pbn);
    pba_page::get(store.page(TreeId::PBN_PBA, leaf)?, slot)
}

/// Sets the entry of a PBN.
pub fn set(store: &mut PageStore, pbn: Pbn, entry: PbaEntry) {
    let (leaf, slot) = place(pbn);
    pba_page::set(store.page_mut(TreeId::PBN_PBA, leaf), slot, Some(entry));
}

/// Removes the entry of a PBN, and its page when that was the last.
pub fn clear(store: &mut PageStore, pbn: Pbn) {
    let (leaf, slot) = place(pbn);
    let page = store.page_mut(TreeId::PBN_PBA, leaf);
    pba_page::set(page, slot, None);
    if (0..SLOTS).all(|slot| pba_page::get(page, slot).is_none()) {
        store.remove_page(TreeId::PBN_PBA, leaf);
    }
}

/// One more LBA names the chunk. None when there is no such chunk.
pub fn retain(store: &mut PageStore, pbn: Pbn) -> Option<Retained> {
    let entry = get(store, pbn)?;
    set(store, pbn, PbaEntry { references: entry.references + 1, ..entry });
    Some(Retained { pba: entry.pba, revived: entry.references == 0 })
}

/// One LBA less names the chunk. None when there is no such chunk, or none named it.
pub fn release(store: &mut PageStore, pbn: Pbn) -> Option<Released> {
    let entry = get(store, pbn)?;
    let references = entry.references.checked_sub(1)?;
    set(store, pbn, PbaEntry { references, ..entry });
    Some(Released { pba: entry.pba, died: references == 0 })
}
