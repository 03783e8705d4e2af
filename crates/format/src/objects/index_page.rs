//! Pages of `redb` (its file format, version 3), for a repair that reads them without it.
//!
//! A tree has branches, which name children, and leaves with entries. The first page names the tree
//! of tables, whose entries name a tree each. Checksums of pages are in what names them, and are
//! not looked at: the engine that gave the bytes has verified them.

use crate::BLOCK_BYTES;
use crate::error::{FormatError, Structure};
use crate::field::{array_at, u16_at, u32_at, u64_at};

const MAGIC: &[u8] = b"redb\x1a\x0a\xa9\x0d\x0a";
const FLAGS_AT: usize = 9;
const REGION_PAGES_AT: usize = 20;
const SLOTS_AT: usize = 64;
const SLOT_BYTES: usize = 128;
const SLOT_HAS_ROOT_AT: usize = 1;
const SLOT_ROOT_AT: usize = 8;
const HEADER_BYTES: usize = 320;

const DEFINITION_HAS_ROOT_AT: usize = 9;
const DEFINITION_ROOT_AT: usize = 10;
const DEFINITION_BYTES_MIN: usize = 42;

const LEAF: u8 = 1;
const BRANCH: u8 = 2;
const COUNT_AT: usize = 2;
const LEAF_ENDS_AT: usize = 4;
const BRANCH_CHECKSUMS_AT: usize = 8;
const CHECKSUM_BYTES: usize = 16;
const PAGE_NUMBER_BYTES: usize = 8;
const KEY_END_BYTES: usize = 4;

/// Pages of a region together, as `redb` chooses it for pages of a block.
const REGION_BYTES: u64 = 4 << 30;

/// A page is at most this many times a block.
const ORDER_MAX: u32 = 20;

/// Where a page is among the pages of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRef {
    /// Of its first byte.
    pub offset_bytes: u64,
    /// A power of two of blocks.
    pub length_bytes: u64,
}

/// What a first page says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstPage {
    region_bytes: u64,
    root: Option<u64>,
}

fn error(field: &'static str, found: u64) -> FormatError {
    FormatError::field(Structure::BucketIndexPage, field, found)
}

impl FirstPage {
    /// What every first page of `redb` says of where pages are, for a repair that has lost it. It
    /// names no root.
    pub const LOST: Self = Self { region_bytes: REGION_BYTES, root: None };

    /// # Errors
    /// [`FormatError`] when these bytes are no first page.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        FormatError::at_least(Structure::BucketIndexPage, HEADER_BYTES, bytes)?;
        if !bytes.starts_with(MAGIC) {
            return Err(error("magic", u64_at(bytes, 0)));
        }
        let region_bytes = u64::from(u32_at(bytes, REGION_PAGES_AT)) * BLOCK_BYTES as u64;
        let slot = &bytes[SLOTS_AT + SLOT_BYTES * usize::from(bytes[FLAGS_AT] & 1)..];
        let has_root = slot[SLOT_HAS_ROOT_AT] != 0;
        Ok(Self { region_bytes, root: has_root.then(|| u64_at(slot, SLOT_ROOT_AT)) })
    }

    /// The root of the tree of tables; none in an empty index.
    ///
    /// # Errors
    /// [`FormatError`] when it can be nowhere.
    pub fn root(&self) -> Result<Option<PageRef>, FormatError> {
        self.root.map(|number| self.place(number)).transpose()
    }

    /// The root of the tree that an entry of the tree of tables names.
    ///
    /// # Errors
    /// [`FormatError`] when it is no such entry.
    pub fn table_root(&self, definition: &[u8]) -> Result<Option<PageRef>, FormatError> {
        FormatError::at_least(Structure::BucketIndexPage, DEFINITION_BYTES_MIN, definition)?;
        if definition[DEFINITION_HAS_ROOT_AT] == 0 {
            return Ok(None);
        }
        self.place(u64_at(definition, DEFINITION_ROOT_AT)).map(Some)
    }

    fn place(&self, number: u64) -> Result<PageRef, FormatError> {
        let order = (number >> 59) as u32;
        if order > ORDER_MAX {
            return Err(error("order of a page", u64::from(order)));
        }
        let index = number & (0xf_ffff >> order);
        let region = number >> 20 & 0xf_ffff;
        let length_bytes = (BLOCK_BYTES as u64) << order;
        let start = BLOCK_BYTES as u64 + region * self.region_bytes;
        Ok(PageRef { offset_bytes: start + index * length_bytes, length_bytes })
    }

    /// What a page holds.
    ///
    /// # Errors
    /// [`FormatError`] when it is no page of a tree.
    pub fn node<'a>(&self, bytes: &'a [u8]) -> Result<Node<'a>, FormatError> {
        FormatError::at_least(Structure::BucketIndexPage, BLOCK_BYTES, bytes)?;
        let count = usize::from(u16_at(bytes, COUNT_AT));
        match bytes[0] {
            LEAF => leaf(bytes, count).map(Node::Leaf),
            BRANCH => self.branch(bytes, count + 1).map(Node::Branch),
            kind => Err(error("kind of a page", u64::from(kind))),
        }
    }

    fn branch<'a>(&self, bytes: &'a [u8], count: usize) -> Result<Branch<'a>, FormatError> {
        let start = BRANCH_CHECKSUMS_AT + CHECKSUM_BYTES * count;
        let end = start + PAGE_NUMBER_BYTES * count;
        let mut key_at = end + KEY_END_BYTES * (count - 1);
        FormatError::at_least(Structure::BucketIndexPage, key_at, bytes)?;
        let numbers = bytes[start..end].chunks_exact(PAGE_NUMBER_BYTES);
        let children = numbers.map(|number| self.place(u64::from_le_bytes(array_at(number, 0))));
        let children = children.collect::<Result<_, _>>()?;
        let mut separators = Vec::with_capacity(count - 1);
        for number in 0..count - 1 {
            let key_end = u32_at(bytes, end + KEY_END_BYTES * number) as usize;
            separators.push(part(bytes, key_at, key_end)?);
            key_at = key_end;
        }
        Ok(Branch { children, separators })
    }
}

/// The pages below a page, in the order of their keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch<'a> {
    /// One at least.
    pub children: Vec<PageRef>,
    /// One fewer: no key of a child is behind its separator, and all of the next one are.
    pub separators: Vec<&'a [u8]>,
}

impl<'a> Branch<'a> {
    /// Each child with the key that all of its keys are behind and the one that none is behind,
    /// where this page says so.
    pub fn bounded(
        &self,
    ) -> impl Iterator<Item = (PageRef, Option<&'a [u8]>, Option<&'a [u8]>)> + '_ {
        self.children.iter().enumerate().map(|(number, child)| {
            let behind = number.checked_sub(1).and_then(|before| self.separators.get(before));
            (*child, behind.copied(), self.separators.get(number).copied())
        })
    }
}

/// The bytes of `bytes` from `start` up to `end`.
fn part(bytes: &[u8], start: usize, end: usize) -> Result<&[u8], FormatError> {
    bytes.get(start..end).ok_or_else(|| error("end of an entry", end as u64))
}

/// Key and value.
pub type PageEntry<'a> = (&'a [u8], &'a [u8]);

/// A page of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node<'a> {
    /// What names further pages.
    Branch(Branch<'a>),
    /// Entries: key and value, in the order of their keys.
    Leaf(Vec<PageEntry<'a>>),
}

/// Entries of a leaf whose keys and values have any length.
fn leaf(bytes: &[u8], count: usize) -> Result<Vec<PageEntry<'_>>, FormatError> {
    let values_at = LEAF_ENDS_AT + 4 * count;
    let keys_start = values_at + 4 * count;
    FormatError::at_least(Structure::BucketIndexPage, keys_start, bytes)?;
    let end = |at: usize, number: usize| u32_at(bytes, at + 4 * number) as usize;
    let mut entries = Vec::with_capacity(count);
    let values_start = if count == 0 { 0 } else { end(LEAF_ENDS_AT, count - 1) };
    let (mut key_at, mut value_at) = (keys_start, values_start);
    for number in 0..count {
        let (key_end, value_end) = (end(LEAF_ENDS_AT, number), end(values_at, number));
        entries.push((part(bytes, key_at, key_end)?, part(bytes, value_at, value_end)?));
        (key_at, value_at) = (key_end, value_end);
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert, proptest};

    use super::{FirstPage, HEADER_BYTES, MAGIC};

    proptest! {
        #[test]
        fn any_bytes_are_an_answer(
            mut first in vec(any::<u8>(), HEADER_BYTES), mut page in vec(any::<u8>(), 4096),
            kind in 0_u8..4, definition in vec(any::<u8>(), 0..60), count: u8,
        ) {
            prop_assert!(FirstPage::decode(&page).is_err());
            first[..MAGIC.len()].copy_from_slice(MAGIC);
            let first = FirstPage::decode(&first).unwrap();
            page[0] = kind;
            page[2..4].copy_from_slice(&u16::from(count).to_le_bytes());
            let _ = (first.root(), first.table_root(&definition), first.node(&page));
            page[3] = 255;
            prop_assert!(first.node(&page).is_err());
        }
    }
}
