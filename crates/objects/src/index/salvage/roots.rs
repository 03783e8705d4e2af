//! The last commit of a map whose first page cannot be read.
//!
//! A commit writes the tree of tables anew, one leaf with the roots of both trees, and nothing
//! writes over a page of the last commit. So all pages are searched for such leaves. The newest
//! says that the log goes on farthest. Within a merge several say the same place, and any of them
//! will do, because all of the log is taken behind it: the one whose tree lacks the fewest pages is
//! taken. One that the log does not go on behind, though it has later groups, is of an earlier
//! merge: what it names has been written over, and what was deleted since would come back.

use format::BLOCK_BYTES;
use format::objects::header::{BucketHeader, INDEX_BYTES_MAX};
use format::objects::index_page::{FirstPage, Node, PageRef};
use format::objects::log::Place;
use store::RequestError;

use super::walk::{Roots, Walk};
use crate::index::IndexError;
use crate::index::pages::{Pages, is_damage};
use crate::index::replay::goes_on_at;
use crate::index::tree::ENTRIES_NAME;
use crate::volume::BucketVolume;

/// Bytes that are read at once.
const STRETCH_BYTES: u64 = 1 << 20;

/// Zeros that end an index which does not say how long it is.
const ZEROS_AT_END_BYTES: u64 = 1 << 30;

/// Commits of one merge whose trees are compared.
const COMPARED_MAX: usize = 16;

/// A commit that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) roots: Roots,
    pub(super) merged: Option<Place>,
}

/// Searches the pages of an index; `length_bytes` are its pages, if anything says how many.
pub(super) fn find(
    volume: &dyn BucketVolume,
    header: &BucketHeader,
    pages: &Pages,
    length_bytes: Option<u64>,
) -> Result<Option<Found>, IndexError> {
    let mut newest: Vec<Found> = Vec::new();
    each_block(pages, length_bytes, |offset_bytes, block| {
        let Some(found) = commit_at(pages, offset_bytes, block)? else { return Ok(()) };
        let position = |found: &Found| found.merged.map(|place| place.position);
        match newest.first().map(position).cmp(&Some(position(&found))) {
            std::cmp::Ordering::Less => newest = vec![found],
            std::cmp::Ordering::Equal if newest.len() < COMPARED_MAX => newest.push(found),
            _ => {}
        }
        Ok(())
    })?;
    let merged = newest.first().and_then(|found| found.merged).unwrap_or_default();
    if !goes_on_at(volume, header, merged)? {
        return Ok(None);
    }
    let mut best: Option<(u64, Found)> = None;
    for found in newest {
        let mut walk = Walk::new(pages, FirstPage::LOST);
        if let Some(entries) = found.roots.entries {
            walk.tree(entries, &mut |_, _| Ok(()))?;
        }
        let lost = walk.losses.count();
        if best.as_ref().is_none_or(|(least, _)| lost < *least) {
            best = Some((lost, found));
        }
    }
    Ok(best.map(|(_, found)| found))
}

/// The commit whose tree of tables is in this block.
fn commit_at(pages: &Pages, offset_bytes: u64, block: &[u8]) -> Result<Option<Found>, IndexError> {
    let is_tables = |node: Node<'_>| match node {
        Node::Leaf(entries) => entries.iter().any(|(name, _)| *name == ENTRIES_NAME.as_bytes()),
        Node::Branch(_) => false,
    };
    if !FirstPage::LOST.node(block).is_ok_and(is_tables) {
        return Ok(None);
    }
    let mut walk = Walk::new(pages, FirstPage::LOST);
    let roots = walk.roots(PageRef { offset_bytes, length_bytes: BLOCK_BYTES as u64 })?;
    let merged = match roots.log {
        Some(log) => walk.place(log)?,
        None => None,
    };
    Ok(Some(Found { roots, merged }))
}

/// Calls `look` with each block behind the first that can be read.
fn each_block(
    pages: &Pages,
    length_bytes: Option<u64>,
    mut look: impl FnMut(u64, &[u8]) -> Result<(), IndexError>,
) -> Result<(), IndexError> {
    let end_bytes = length_bytes.unwrap_or(INDEX_BYTES_MAX);
    let (mut offset_bytes, mut zeros_bytes) = (BLOCK_BYTES as u64, 0);
    while offset_bytes < end_bytes && zeros_bytes < ZEROS_AT_END_BYTES {
        let here_bytes = STRETCH_BYTES.min(end_bytes - offset_bytes);
        let stretch = readable(pages, PageRef { offset_bytes, length_bytes: here_bytes })?;
        let mut is_zeros = true;
        for (number, block) in stretch.chunks(BLOCK_BYTES).enumerate() {
            is_zeros &= block.iter().all(|byte| *byte == 0);
            look(offset_bytes + (number * BLOCK_BYTES) as u64, block)?;
        }
        let is_end = is_zeros && length_bytes.is_none();
        zeros_bytes = if is_end { zeros_bytes + here_bytes } else { 0 };
        offset_bytes += here_bytes;
    }
    Ok(())
}

/// The bytes of a stretch of whole blocks; zeros where they cannot be read.
fn readable(pages: &Pages, stretch: PageRef) -> Result<Vec<u8>, RequestError> {
    match pages.read_page(stretch) {
        Err(error) if is_damage(&error) => {}
        done => return done,
    }
    let mut bytes = Vec::with_capacity(stretch.length_bytes as usize);
    while (bytes.len() as u64) < stretch.length_bytes {
        let offset_bytes = stretch.offset_bytes + bytes.len() as u64;
        let length_bytes = BLOCK_BYTES as u64;
        match pages.read_page(PageRef { offset_bytes, length_bytes }) {
            Ok(block) => bytes.extend_from_slice(&block),
            Err(error) if is_damage(&error) => bytes.resize(bytes.len() + BLOCK_BYTES, 0),
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}
