//! Long ranges of TRIM, WRITE_ZEROES and shrinking (`trim.rs`) are unmapped.
//!
//! If many leaves of the map lie in one they are *cut off* at once, as a version of the volume that
//! nobody sees and that is given back in the background (`versions.rs`). The rest is applied in
//! pieces, leaf by leaf, each piece a record, all in ascending order. So a step's work is bounded,
//! however large the range, and what was never mapped costs nothing.

use std::ops::Range;

use format::map_page::SLOTS;
use format::record::Change;
use format::units::{Lba, TreeId, VolumeId};
use mutants::mutant;
use tables::{NextLeaf, PageError, PinSet};

use crate::core::Core;
use crate::core::invariant::Invariant;
use crate::core::record::CHANGE_BYTES_MAX;
use crate::pages::wanted::Wanted;
use crate::state::mapping::{leaf_range, leaf_start};
use crate::write::buffer::Work;

/// As many leaves are worth a version of their own.
const CUT_LEAVES_MIN: usize = 32;

/// What one piece of an unmap did.
enum Piece {
    /// Its pages are not here yet, or the journal is full.
    Waits,
    /// It is recorded; the unmap goes on at this chunk.
    Applied(u64),
    /// Nothing mapped is left in the range.
    Finished,
}

/// Applies the next piece of the unmap at the front of the write buffer.
pub(crate) fn commit_unmap(
    core: &mut Core,
    pins: &mut PinSet,
    volume: VolumeId,
    first: u64,
    end: u64,
) -> Result<bool, PageError> {
    if !core.state.is_live(volume) {
        core.finish_group();
        return Ok(true);
    }
    let leaves = first.div_ceil(SLOTS as u64)..end / SLOTS as u64;
    let piece = match cut_off(core, pins, volume, first, &leaves)? {
        Piece::Finished => unmap_piece(core, pins, volume, first, end)?,
        piece => piece,
    };
    match piece {
        Piece::Waits => return Ok(false),
        Piece::Applied(next) => move_unmap_on(core, next),
        Piece::Finished => core.finish_group(),
    }
    Ok(true)
}

/// Cuts whole leaves off a volume if there are many, behind the rest of a leaf from `first` on:
/// a crash must leave pieces in ascending order. There is nothing to do where they are few, or
/// where that would have to wait for a checkpoint to end, and everybody behind it: then what
/// is left may be cut off when that has ended.
fn cut_off(
    core: &mut Core,
    pins: &mut PinSet,
    volume: VolumeId,
    first: u64,
    leaves: &Range<u64>,
) -> Result<Piece, PageError> {
    let mut wanted = Wanted::default();
    let many = has_many_leaves(core, volume, leaves, &mut wanted);
    let here = match many {
        Ok(Some(true)) => core.state.want_cut_off(volume, leaves, &mut wanted),
        Ok(_) => Ok(false),
        Err(ref error) => Err(error.clone()),
    };
    core.hold_in(pins, wanted);
    let start = leaf_start(leaves.start);
    match (many?, here?) {
        (Some(false), _) => Ok(Piece::Finished),
        (Some(true), _) if first < start && !mutant!(CutsBeforeTheHead) => {
            match unmap_piece(core, pins, volume, first, start)? {
                Piece::Finished => Ok(Piece::Applied(start)),
                piece => Ok(piece),
            }
        }
        (Some(true), true) if core.copies_have_room() => {
            let into = core.volumes.take_id();
            core.record(&[Change::CutOff { volume, into, leaves: leaves.clone() }]);
            core.volumes.deletions.add(into);
            Ok(Piece::Applied(leaf_start(leaves.end)))
        }
        // Room for a copy comes with the next checkpoint, which is not soon.
        (Some(true), true) if core.table_room.is_under_way => Ok(Piece::Finished),
        _ => Ok(Piece::Waits),
    }
}

/// Whether enough leaves exist in a range; none while pages that say so are read.
fn has_many_leaves(
    core: &mut Core,
    volume: VolumeId,
    leaves: &Range<u64>,
    wanted: &mut Wanted,
) -> Result<Option<bool>, PageError> {
    let (tree, mut at) = (TreeId::volume(volume), leaves.start);
    let Wanted { pins, reads, .. } = wanted;
    for _ in 0..CUT_LEAVES_MIN {
        match core.state.store.next_leaf_held(pins, tree, at, reads)? {
            NextLeaf::Found(leaf) if leaf < leaves.end => at = leaf + 1,
            NextLeaf::Missing => return Ok(None),
            NextLeaf::Found(_) | NextLeaf::End => return Ok(Some(false)),
        }
    }
    Ok(Some(true))
}

fn move_unmap_on(core: &mut Core, next: u64) {
    match core.buffer.groups.front_mut().map(|group| &mut group.work) {
        Some(Work::Unmap { first, .. }) => *first = next,
        _ => core.violated(Invariant::GroupStaysUntilApplied),
    }
}

/// Unmaps the next leaves from `first` on, a piece of them, as one record.
fn unmap_piece(
    core: &mut Core,
    pins: &mut PinSet,
    volume: VolumeId,
    first: u64,
    end: u64,
) -> Result<Piece, PageError> {
    if core.table_room.tables_are_behind(&core.state) {
        return Ok(Piece::Waits);
    }
    let mut wanted = Wanted::default();
    let ranges = want_leaves(core, volume, first, end, &mut wanted);
    core.hold_in(pins, wanted);
    let Some(ranges) = ranges? else { return Ok(Piece::Waits) };
    let Some(last) = ranges.last() else { return Ok(Piece::Finished) };
    let next = last.end;
    if !core.journal_has_room(CHANGE_BYTES_MAX * ranges.len()) {
        return Ok(Piece::Waits);
    }
    let change = |range: &Range<u64>| Change::Unmap {
        volume,
        first: Lba(range.start),
        count: range.end - range.start,
    };
    let changes: Vec<Change> = ranges.iter().map(change).collect();
    core.record(&changes);
    Ok(Piece::Applied(next))
}

/// The parts of the next leaves that lie in `first..end`; None while pages are missing.
fn want_leaves(
    core: &mut Core,
    volume: VolumeId,
    first: u64,
    end: u64,
    wanted: &mut Wanted,
) -> Result<Option<Vec<Range<u64>>>, PageError> {
    let tree = TreeId::volume(volume);
    let mut ranges = Vec::new();
    let mut from = first / SLOTS as u64;
    let most = core.table_room.most_of_piece();
    while !most.is_reached(ranges.len(), wanted) && first < end {
        match core.state.store.next_leaf(tree, from, &mut wanted.reads)? {
            NextLeaf::Missing => return Ok(None),
            NextLeaf::Found(leaf) if leaf_start(leaf) < end => {
                let range = leaf_range(leaf, first, end);
                let (start, count) = (Lba(range.start), range.end - range.start);
                if !core.state.want_unmap(volume, start, count, wanted)? {
                    // What is here already goes first: a piece need not be a full one.
                    return Ok((!ranges.is_empty()).then_some(ranges));
                }
                ranges.push(range);
                from = leaf + 1;
            }
            NextLeaf::End | NextLeaf::Found(_) => break,
        }
    }
    Ok(Some(ranges))
}
