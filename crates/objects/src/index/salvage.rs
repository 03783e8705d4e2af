//! What can be read of an index that redb cannot open, or that is damaged in places: for a repair,
//! which makes a new index of it.
//!
//! The tree is walked page by page, without redb. A leaf that can be read from neither copy loses
//! its entries; a branch loses those of all pages below it. Then comes the log, past what is
//! damaged in it. The log is newer, so what it says follows what the tree says.

use std::collections::BTreeSet;
use std::sync::Arc;

use format::FormatError;
use format::objects::index_page::{FirstPage, Node, PageRef};
use format::objects::log::{LoggedChange, Place};
use store::RequestError;

use crate::index::pages::{Pages, is_damage};
use crate::index::replay::{oldest_group, replay_readable};
use crate::index::tree::{ENTRIES_NAME, LOG_NAME};
use crate::index::volume_index::read_header;
use crate::index::{Change, IndexError, Table};
use crate::volume::BucketVolume;

/// A tree is never deeper, and hostile bytes do not lead further down.
const DEPTH_MAX: u32 = 32;

/// Pages of an index are no longer: a leaf with one entry of the longest key and value.
const PAGE_BYTES_MAX: u64 = 1 << 20;

/// What a salvage found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// Entries of the tree.
    pub entries: u64,
    /// Changes of the log.
    pub log_changes: u64,
    /// What could not be read, a sentence each.
    pub lost: Vec<String>,
}

/// Gives `take` what can be read of the index in a volume: entries as they were at the last merge,
/// then the changes since, in their order. Nothing is written but chunks that the mirror heals.
///
/// # Errors
/// [`IndexError::NoBucket`]; [`IndexError::Volume`] when the volume cannot be read at all; those of
/// `take`.
pub fn salvage(
    volume: Arc<dyn BucketVolume>,
    mut take: impl FnMut(Change) -> Result<(), IndexError>,
) -> Result<Salvaged, IndexError> {
    let header = read_header(&*volume)?;
    let pages = Pages::open_without_length(Arc::clone(&volume), header.uuid);
    let mut salvaged = Salvaged::default();
    let mut walk = Walk { pages: &pages, seen: BTreeSet::new(), lost: Vec::new() };
    let merged = walk.tables(&mut |key, value| {
        let Some((number, key)) = key.split_first() else { return Ok(()) };
        let Some(table) = Table::from_number(*number) else { return Ok(()) };
        salvaged.entries += 1;
        take(Change::Set { table, key: key.to_vec(), value: value.to_vec() })
    })?;
    salvaged.lost = walk.lost;
    let merged = match merged {
        Some(merged) => merged,
        None => {
            let error = "it does not say where its log goes on: all of the log is taken";
            salvaged.lost.push(error.to_owned());
            oldest_group(&*volume, &header)?.unwrap_or_default()
        }
    };
    let changes = &mut salvaged.log_changes;
    let lost = replay_readable(&*volume, &header, merged, |change| {
        *changes += 1;
        change_of(change).map_or(Ok(()), &mut take)
    })?;
    salvaged.lost.extend(lost);
    Ok(salvaged)
}

fn change_of(change: LoggedChange<'_>) -> Option<Change> {
    let (table, key) = (Table::from_number(change.table)?, change.key.to_vec());
    Some(match change.value {
        Some(value) => Change::Set { table, key, value: value.to_vec() },
        None => Change::Remove { table, key },
    })
}

type TakeEntry<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Result<(), IndexError>;

/// A walk over the pages.
struct Walk<'a> {
    pages: &'a Pages,
    /// Places of pages that were read, so that hostile bytes lead nowhere twice.
    seen: BTreeSet<u64>,
    lost: Vec<String>,
}

impl Walk<'_> {
    /// Walks over all entries, and says where the log goes on.
    fn tables(&mut self, take: TakeEntry<'_>) -> Result<Option<Place>, IndexError> {
        const FIRST: PageRef =
            PageRef { offset_bytes: 0, length_bytes: format::BLOCK_BYTES as u64 };
        let Some(bytes) = self.read(FIRST)? else { return Ok(None) };
        let Some(first) = self.decoded(FIRST, FirstPage::decode(&bytes)) else { return Ok(None) };
        let Some(root) = self.decoded(FIRST, first.root()).flatten() else { return Ok(None) };
        let (mut entries, mut log) = (None, None);
        self.tree(&first, root, 0, &mut |name, definition| {
            match first.table_root(definition) {
                Ok(root) if name == ENTRIES_NAME.as_bytes() => entries = root,
                Ok(root) if name == LOG_NAME.as_bytes() => log = root,
                _ => {}
            }
            Ok(())
        })?;
        let mut merged = None;
        if let Some(log) = log {
            self.tree(&first, log, 0, &mut |_, place| {
                merged = Place::decode(place).ok();
                Ok(())
            })?;
        }
        if let Some(entries) = entries {
            self.tree(&first, entries, 0, take)?;
        }
        Ok(merged)
    }

    fn tree(
        &mut self,
        first: &FirstPage,
        page: PageRef,
        depth: u32,
        take: TakeEntry<'_>,
    ) -> Result<(), IndexError> {
        let Some(bytes) = self.read(page)? else { return Ok(()) };
        match self.decoded(page, first.node(&bytes)) {
            Some(Node::Leaf(entries)) => {
                entries.into_iter().try_for_each(|(key, value)| take(key, value))
            }
            Some(Node::Branch(children)) if depth < DEPTH_MAX => {
                children.into_iter().try_for_each(|child| self.tree(first, child, depth + 1, take))
            }
            _ => Ok(()),
        }
    }

    /// A page that has not been read yet.
    fn read(&mut self, page: PageRef) -> Result<Option<Vec<u8>>, IndexError> {
        if !self.seen.insert(page.offset_bytes) || page.length_bytes > PAGE_BYTES_MAX {
            self.lost.push(format!("the page at {} is none", page.offset_bytes));
            return Ok(None);
        }
        match self.pages.read_page(page) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if is_damage(&error) || matches!(error, RequestError::OutOfRange { .. }) => {
                self.lost.push(format!("the page at {}: {error}", page.offset_bytes));
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn decoded<T>(&mut self, page: PageRef, decoded: Result<T, FormatError>) -> Option<T> {
        decoded
            .map_err(|error| self.lost.push(format!("the page at {}: {error}", page.offset_bytes)))
            .ok()
    }
}
