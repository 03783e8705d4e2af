//! What goes to the disk and comes from it.

use format::page::Page;
use format::units::{BlockPtr, PageId};

use super::page_memory::SharedPage;
use crate::error::PageError;

/// A page to be read: one block at `pointer.block()` of zone tables.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PageRead {
    /// Which page.
    pub id: PageId,
    /// Where it is.
    pub pointer: BlockPtr,
}

/// A page to be written to zone tables; its bytes stay as they are.
#[derive(Clone, Debug)]
pub struct PageWrite {
    /// Where to.
    pub block: u64,
    /// What.
    pub page: SharedPage,
}

/// The bytes of a read as the page that was asked for.
pub(super) fn checked_page(read: &PageRead, bytes: Result<&[u8], ()>) -> Result<Page, PageError> {
    let mut page = Page::blank();
    read_page(read, bytes, &mut page).map(|()| page)
}

/// Makes `page` the one that was asked for, if these are its bytes.
pub(super) fn read_page(
    read: &PageRead,
    bytes: Result<&[u8], ()>,
    page: &mut Page,
) -> Result<(), PageError> {
    let (id, block) = (read.id, read.pointer.block());
    let Ok(bytes) = bytes else { return Err(PageError::Unreadable { id, block }) };
    let checked = page.read(bytes).and_then(|()| page.check(id, read.pointer.tag()));
    checked.map_err(|source| PageError::Damaged { id, block, source })
}
