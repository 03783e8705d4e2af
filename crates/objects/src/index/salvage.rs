//! What can be read of an index that redb cannot open, or that is damaged in places: for a repair,
//! which makes a new index of it.
//!
//! ```text
//! header, or what repeats it ─ first page, or a search for what it names ─ every page of the map
//!                                                └─ the log behind it, past what is damaged
//! ```
//!
//! The tree is walked page by page, without redb. A leaf that can be read from neither copy loses
//! its entries; a branch loses those of all pages below it. Which keys these can be, the pages
//! above say. The log is newer, so what it says follows what the tree says.

mod loss;
mod roots;
mod walk;

use std::sync::Arc;

use format::objects::header::{BucketHeader, INDEX_COPIES_AT_BYTES, IndexLength};
use format::objects::index_page::{FirstPage, PageRef};
use format::objects::log::LoggedChange;
use store::RequestError;

use crate::index::options::IndexCreateOptions;
use crate::index::pages::{Pages, is_damage, read_length, read_length_copy};
use crate::index::replay::{oldest_group, replay_readable};
use crate::index::volume_index::read_header;
use crate::index::{Change, IndexError, Table};
use crate::volume::BucketVolume;
use roots::{Found, find};
use walk::Walk;

pub use loss::{KeyRange, Loss, Losses, TableKeys};

/// What a salvage found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// Entries of the tree.
    pub entries: u64,
    /// Changes of the log.
    pub log_changes: u64,
    /// What could not be read.
    pub losses: Losses,
}

/// What an index was made with, from its header or from what else says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// As its index was made.
    pub options: IndexCreateOptions,
    /// Both copies of the header cannot be read: the UUID stands beside the pages of the index,
    /// and the length of the ring is the one that all buckets are made with.
    pub is_guessed: bool,
}

/// What the index in a volume was made with.
///
/// # Errors
/// [`IndexError::NoBucket`] when nothing says so; [`IndexError::Volume`].
pub fn identity(volume: &dyn BucketVolume) -> Result<Identity, IndexError> {
    let (header, is_guessed) = read_any_header(volume)?;
    let BucketHeader { uuid, ring_bytes } = header;
    Ok(Identity { options: IndexCreateOptions { uuid, ring_bytes }, is_guessed })
}

fn read_any_header(volume: &dyn BucketVolume) -> Result<(BucketHeader, bool), IndexError> {
    match read_header(volume) {
        Err(IndexError::NoBucket(reason)) => {
            let Some(length) = read_length_of_any(volume)? else {
                return Err(IndexError::NoBucket(reason));
            };
            let ring_bytes = IndexCreateOptions::new(length.uuid).ring_bytes;
            Ok((BucketHeader { uuid: length.uuid, ring_bytes }, true))
        }
        found => Ok((found?, false)),
    }
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
    let (header, is_guessed) = read_any_header(&*volume)?;
    let pages = Pages::open_without_length(Arc::clone(&volume), header.uuid);
    let mut salvaged = Salvaged::default();
    if is_guessed {
        let reason = "both copies of the bucket's header: its UUID stands beside its index";
        salvaged.losses.add(Loss::Redundant { reason: reason.to_owned() });
    }
    let (first, found) = last_commit(&*volume, &header, &pages, &mut salvaged.losses)?;
    let mut walk = Walk::new(&pages, first);
    walk.losses = std::mem::take(&mut salvaged.losses);
    if let Some(entries) = found.and_then(|found| found.roots.entries) {
        walk.tree(entries, &mut |key, value| {
            let Some((number, key)) = key.split_first() else { return Ok(()) };
            let Some(table) = Table::from_number(*number) else { return Ok(()) };
            salvaged.entries += 1;
            take(Change::Set { table, key: key.to_vec(), value: value.to_vec() })
        })?;
    }
    let mut losses = walk.losses;
    let merged = match found.and_then(|found| found.merged) {
        Some(merged) => merged,
        None => {
            let reason = "it does not say where its log goes on: all of the log is taken";
            losses.add(Loss::Redundant { reason: reason.to_owned() });
            oldest_group(&*volume, &header)?.unwrap_or_default()
        }
    };
    let changes = &mut salvaged.log_changes;
    let lost = replay_readable(&*volume, &header, merged, |change| {
        *changes += 1;
        change_of(change).map_or(Ok(()), &mut take)
    })?;
    lost.into_iter().for_each(|reason| losses.add(Loss::Log { reason }));
    salvaged.losses = losses;
    Ok(salvaged)
}

/// The last commit, and where its pages are.
fn last_commit(
    volume: &dyn BucketVolume,
    header: &BucketHeader,
    pages: &Pages,
    losses: &mut Losses,
) -> Result<(FirstPage, Option<Found>), IndexError> {
    let reason = match first_page(pages)? {
        Ok(first) => match named_commit(pages, first)? {
            Ok(found) => return Ok((first, Some(found))),
            Err(reason) => {
                losses.add(Loss::Page { keys: KeyRange::default(), reason });
                return Ok((first, None));
            }
        },
        Err(reason) => format!("the first page of the index: {reason}"),
    };
    let length_bytes = match read_length(volume, header.uuid) {
        Err(IndexError::Damaged(_)) => None,
        length_bytes => Some(length_bytes?),
    };
    let found = find(volume, header, pages, length_bytes)?;
    losses.add(match found {
        Some(_) => {
            let reason = format!("{reason}: the newest tree among all pages is taken");
            Loss::Redundant { reason }
        }
        None => {
            let reason = format!("{reason}, and no page names the map");
            Loss::Page { keys: KeyRange::default(), reason }
        }
    });
    Ok((FirstPage::LOST, found))
}

/// The first page, or why it cannot be read.
fn first_page(pages: &Pages) -> Result<Result<FirstPage, String>, IndexError> {
    const FIRST: PageRef = PageRef { offset_bytes: 0, length_bytes: format::BLOCK_BYTES as u64 };
    match pages.read_page(FIRST) {
        Ok(bytes) => Ok(FirstPage::decode(&bytes).map_err(|error| error.to_string())),
        Err(error) if is_damage(&error) => Ok(Err(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

/// The commit that the first page names, or why it cannot be read.
fn named_commit(pages: &Pages, first: FirstPage) -> Result<Result<Found, String>, IndexError> {
    let root = match first.root() {
        Ok(Some(root)) => root,
        Ok(None) => return Ok(Err("the first page of the index names no tree".to_owned())),
        Err(error) => return Ok(Err(format!("the first page of the index: {error}"))),
    };
    let mut walk = Walk::new(pages, first);
    let roots = walk.roots(root)?;
    if let Some(loss) = walk.losses.told().first() {
        return Ok(Err(loss.to_string()));
    }
    let merged = match roots.log {
        Some(log) => walk.place(log)?,
        None => None,
    };
    Ok(Ok(Found { roots, merged }))
}

fn change_of(change: LoggedChange<'_>) -> Option<Change> {
    let (table, key) = (Table::from_number(change.table)?, change.key.to_vec());
    Some(match change.value {
        Some(value) => Change::Set { table, key, value: value.to_vec() },
        None => Change::Remove { table, key },
    })
}

/// What either copy of the length says, whatever bucket it is of: for a salvage without a header.
fn read_length_of_any(volume: &dyn BucketVolume) -> Result<Option<IndexLength>, IndexError> {
    for copy_at in INDEX_COPIES_AT_BYTES {
        match read_length_copy(volume, copy_at) {
            Ok(Ok(length)) => return Ok(Some(length)),
            Ok(Err(_)) => {}
            Err(RequestError::OutOfRange { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}
