//! The tables `Free`, `ToFree` and `Shared` of the index, as ranges of chunks.
//!
//! All are keyed by the ends of ranges (`format::objects::extents` says why). The functions read
//! and change a batch; who applies it holds the lock that its table needs: that of the space for
//! `Free`, that of sharing for `Shared`. `ToFree` needs none: a range in it has one owner.

use std::ops::Range;

use format::objects::extents::{
    ToFree, decode_free, decode_shared, decode_to_free, encode_range, encode_shared, encode_tree,
    extent_key,
};
use format::objects::segments::Subtree;

use super::error::ValueError;
use super::pending::Pending;
use crate::index::Table;

/// The first free range that ends at or behind `chunk`.
pub(super) fn next_free(pending: &Pending, chunk: u64) -> Result<Option<Range<u64>>, ValueError> {
    let found = pending.next(Table::Free, &extent_key(chunk))?;
    Ok(found.map(|(key, value)| decode_free(&key, &value)).transpose()?)
}

/// Takes `chunks` off the front of a free range; returns them.
pub(super) fn take_free(pending: &mut Pending, range: &Range<u64>, chunks: u64) -> Range<u64> {
    let taken = range.start..range.start + chunks;
    assert!(0 < chunks && taken.end <= range.end, "{chunks} chunks of {range:?}");
    let key = extent_key(range.end);
    match taken.end == range.end {
        true => pending.remove(Table::Free, &key),
        false => pending.set(Table::Free, &key, encode_range(&(taken.end..range.end))),
    }
    taken
}

/// Frees `range`, together with its free neighbours.
pub(super) fn give_free(pending: &mut Pending, range: &Range<u64>) -> Result<(), ValueError> {
    let mut whole = range.clone();
    while let Some(next) = next_free(pending, whole.start)? {
        if next.start > whole.end {
            break;
        }
        if next.end != whole.start && next.start != whole.end {
            return Err(ValueError::Overlap(next));
        }
        pending.remove(Table::Free, &extent_key(next.end));
        whole = whole.start.min(next.start)..whole.end.max(next.end);
    }
    pending.set(Table::Free, &extent_key(whole.end), encode_range(&whole));
    Ok(())
}

/// Says that nobody names `range`.
pub(super) fn set_to_free(pending: &mut Pending, range: &Range<u64>) {
    pending.set(Table::ToFree, &extent_key(range.end), encode_range(range));
}

/// Says that nobody names a block, though it names others from `position` on.
pub(super) fn set_tree_to_free(pending: &mut Pending, subtree: &Subtree, position: u16) {
    let key = extent_key(subtree.block_chunk + 1);
    pending.set(Table::ToFree, &key, encode_tree(subtree, position));
}

/// Says that somebody names a block again.
pub(super) fn claim_tree(pending: &mut Pending, subtree: &Subtree) {
    pending.remove(Table::ToFree, &extent_key(subtree.block_chunk + 1));
}

/// Says that a range that is to be freed, and ends before `end`, begins at `start` now: somebody
/// names what lay before.
pub(super) fn claim_front(pending: &mut Pending, start: u64, end: u64) {
    match start == end {
        true => pending.remove(Table::ToFree, &extent_key(end)),
        false => set_to_free(pending, &(start..end)),
    }
}

/// What is to be freed, by its key; none if that has changed.
pub(super) fn to_free_at(
    pending: &Pending,
    end: u64,
) -> Result<Option<(Range<u64>, ToFree)>, ValueError> {
    let key = extent_key(end);
    let found = pending.get(Table::ToFree, &key)?;
    Ok(found.map(|value| decode_to_free(&key, &value)).transpose()?)
}

/// The first shared range that ends behind `chunk`.
fn next_shared(pending: &Pending, chunk: u64) -> Result<Option<(Range<u64>, u64)>, ValueError> {
    let found = pending.next(Table::Shared, &extent_key(chunk + 1))?;
    Ok(found.map(|(key, value)| decode_shared(&key, &value)).transpose()?)
}

/// Whether more than one names a chunk of `range`.
pub(super) fn is_shared(pending: &Pending, range: &Range<u64>) -> Result<bool, ValueError> {
    let next = next_shared(pending, range.start)?;
    Ok(next.is_some_and(|(next, _)| next.start < range.end))
}

fn set_shared(pending: &mut Pending, range: Range<u64>, count: u64) {
    if range.is_empty() {
        return; // What was split off ends where its whole ended.
    }
    let key = extent_key(range.end);
    match count < 2 {
        true => pending.remove(Table::Shared, &key),
        false => pending.set(Table::Shared, &key, encode_shared(&range, count)),
    }
}

/// Adds a reference to each chunk of `range`, all of which have one.
pub(super) fn add_reference(pending: &mut Pending, range: &Range<u64>) -> Result<(), ValueError> {
    change_counts(pending, range, |count| count + 1, &mut Vec::new())
}

/// Takes a reference from each chunk of `range`; returns those ranges that had one.
pub(super) fn drop_reference(
    pending: &mut Pending,
    range: &Range<u64>,
) -> Result<Vec<Range<u64>>, ValueError> {
    if !is_shared(pending, range)? {
        return Ok(vec![range.clone()]); // As of nearly all values: one look.
    }
    let mut unnamed = Vec::new();
    change_counts(pending, range, |count| count - 1, &mut unnamed)?;
    Ok(unnamed)
}

fn change_counts(
    pending: &mut Pending,
    range: &Range<u64>,
    change: impl Fn(u64) -> u64,
    unnamed: &mut Vec<Range<u64>>,
) -> Result<(), ValueError> {
    let mut at = range.start;
    while at < range.end {
        let next = next_shared(pending, at)?.filter(|(next, _)| next.start < range.end);
        let single_end = next.as_ref().map_or(range.end, |(next, _)| next.start);
        if at < single_end {
            // Nobody else names these.
            match change(1) {
                0 => unnamed.push(at..single_end),
                count => set_shared(pending, at..single_end, count),
            }
            at = single_end;
        }
        if let Some((next, count)) = next {
            let part = at..next.end.min(range.end);
            set_shared(pending, part.end..next.end, count);
            set_shared(pending, part.clone(), change(count));
            set_shared(pending, next.start..part.start, count);
            at = part.end;
        }
    }
    // Differences between neighbours have changed at the two ends only.
    join_at(pending, range.start)?;
    join_at(pending, range.end)
}

/// Makes one of two shared ranges that meet at `chunk` and have one count.
fn join_at(pending: &mut Pending, chunk: u64) -> Result<(), ValueError> {
    let key = extent_key(chunk);
    let Some(value) = pending.get(Table::Shared, &key)? else {
        return Ok(()); // No shared range ends here.
    };
    let (before, count) = decode_shared(&key, &value)?;
    if let Some((behind, same)) = next_shared(pending, chunk)?
        && behind.start == chunk
        && same == count
    {
        pending.remove(Table::Shared, &key);
        set_shared(pending, before.start..behind.end, count);
    }
    Ok(())
}
