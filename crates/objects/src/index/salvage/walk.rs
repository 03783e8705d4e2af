//! The walk over the pages of a map, without redb.

use std::collections::BTreeSet;

use format::objects::index_page::{FirstPage, Node, PageRef};
use format::objects::log::{PLACE_BYTES, Place};
use store::RequestError;

use super::loss::{KeyRange, Loss, Losses};
use crate::index::IndexError;
use crate::index::pages::{Pages, is_damage};
use crate::index::tree::{ENTRIES_NAME, LOG_NAME, MERGED};

/// A tree is never deeper, and hostile bytes do not lead further down.
const DEPTH_MAX: u32 = 32;

/// Pages of an index are no longer: a leaf with one entry of the longest key and value.
const PAGE_BYTES_MAX: u64 = 1 << 20;

pub(super) type TakeEntry<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Result<(), IndexError>;

/// The trees that a commit names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Roots {
    pub(super) entries: Option<PageRef>,
    pub(super) log: Option<PageRef>,
}

/// A walk over the pages.
pub(super) struct Walk<'a> {
    pages: &'a Pages,
    first: FirstPage,
    /// Places of pages that were read, so that hostile bytes lead nowhere twice.
    seen: BTreeSet<u64>,
    pub(super) losses: Losses,
}

impl<'a> Walk<'a> {
    pub(super) fn new(pages: &'a Pages, first: FirstPage) -> Self {
        Self { pages, first, seen: BTreeSet::new(), losses: Losses::default() }
    }

    /// The trees that the tree of tables at `root` names.
    pub(super) fn roots(&mut self, root: PageRef) -> Result<Roots, IndexError> {
        let mut roots = Roots::default();
        let first = self.first;
        self.tree(root, &mut |name, definition| {
            match first.table_root(definition) {
                Ok(root) if name == ENTRIES_NAME.as_bytes() => roots.entries = root,
                Ok(root) if name == LOG_NAME.as_bytes() => roots.log = root,
                _ => {}
            }
            Ok(())
        })?;
        Ok(roots)
    }

    /// Where the log goes on, by the tree that says so.
    pub(super) fn place(&mut self, log: PageRef) -> Result<Option<Place>, IndexError> {
        let mut merged = None;
        self.tree(log, &mut |name, place| {
            if name == MERGED.as_bytes() && place.len() == PLACE_BYTES {
                merged = Place::decode(place).ok();
            }
            Ok(())
        })?;
        Ok(merged)
    }

    /// Gives `take` all entries of a tree, in the order of their keys.
    pub(super) fn tree(&mut self, root: PageRef, take: TakeEntry<'_>) -> Result<(), IndexError> {
        self.subtree(root, &KeyRange::default(), 0, take)
    }

    fn subtree(
        &mut self,
        page: PageRef,
        keys: &KeyRange,
        depth: u32,
        take: TakeEntry<'_>,
    ) -> Result<(), IndexError> {
        let Some(bytes) = self.read(page, keys)? else { return Ok(()) };
        match self.first.node(&bytes) {
            Ok(Node::Leaf(entries)) if entries.iter().all(|(key, _)| keys.holds(key)) => {
                entries.into_iter().try_for_each(|(key, value)| take(key, value))
            }
            Ok(Node::Branch(branch)) if depth < DEPTH_MAX => {
                let mut children = branch.bounded();
                children.try_for_each(|(child, behind, last)| {
                    self.subtree(child, &keys.narrowed(behind, last), depth + 1, take)
                })
            }
            Ok(Node::Leaf(_)) => {
                self.lose(page, keys, "it has keys that are no keys of this place");
                Ok(())
            }
            Ok(Node::Branch(_)) => {
                self.lose(page, keys, "the tree is deeper than any");
                Ok(())
            }
            Err(error) => {
                self.lose(page, keys, error);
                Ok(())
            }
        }
    }

    fn lose(&mut self, page: PageRef, keys: &KeyRange, reason: impl std::fmt::Display) {
        let reason = format!("the page at {} of the index: {reason}", page.offset_bytes);
        self.losses.add(Loss::Page { keys: keys.clone(), reason });
    }

    /// A page that has not been read yet.
    fn read(&mut self, page: PageRef, keys: &KeyRange) -> Result<Option<Vec<u8>>, IndexError> {
        if !self.seen.insert(page.offset_bytes) || page.length_bytes > PAGE_BYTES_MAX {
            self.lose(page, keys, "it is named twice, or too long for a page");
            return Ok(None);
        }
        match self.pages.read_page(page) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if is_damage(&error) || matches!(error, RequestError::OutOfRange { .. }) => {
                self.lose(page, keys, error);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}
