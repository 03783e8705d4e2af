//! Copies between volumes of one domain: the target maps the chunks that the source maps, and no
//! bytes move.
//!
//! A copy is a group of the write buffer. When it has become the oldest group, everything before it
//! in the prefix order is in the tables, and nothing behind it is: then the source's map is what
//! the copy is to see, and its leaves are read. So writes that were acknowledged before the copy
//! are in it, whatever stage of the write buffer they were in, and later ones are not. Until a
//! piece has been applied, what needs the target's bytes waits: reads, extents, and writes of
//! sectors ([`crate::write::newest`]).
//!
//! ```text
//! door: checked, room reserved -> queue -> a group -> oldest: piece, piece, piece -> answered
//!                                   `-> Waiting::Copy, where room is short: group after group
//! ```
//!
//! It is applied in pieces, in ascending order, each a record: `Map` with the PBNs that the source
//! maps, `Unmap` where the source maps nothing. Recovery applies them as it applies any other, so a
//! crash keeps the pieces in front. A piece is bounded by the pages that it holds, however large
//! the range.
//!
//! Invariants:
//! * **A chunk is mapped only while a reference of the source keeps it alive.** PBNs are read from
//!   the source's map, retained, and recorded without anything in between; `Map` retains what it
//!   maps before it releases what it replaces ([`crate::state::mapping`]). So collection needs to
//!   hold nothing for a copy.
//! * **A chunk is referred to by versions of its own domain only**: another domain is refused.
//! * A page that cannot be read fails the copy and nothing else: nobody was told that it is done.
//!   The writing does not stop.

pub(crate) mod copied_range;

use std::ops::Range;
use std::sync::Arc;

use format::map_page::SLOTS;
use format::record::Change;
use format::units::{Lba, Pbn, TreeId, VolumeId};
use mutants::mutant;
use tables::{NextLeaf, PageError, PinSet, lba_pbn};

use crate::copy_range::copied_range::CopiedRange;
use crate::core::Core;
use crate::core::invariant::Invariant;
use crate::core::record::CHANGE_BYTES_MAX;
use crate::door::error::RequestError;
use crate::door::requests::CopyRequest;
use crate::pages::absence::lacking_page;
use crate::pages::wanted::Wanted;
use crate::space::waiting::Waiting;
use crate::state::State;
use crate::state::mapping::{leaf_range, leaf_start};
use crate::volumes::versions::PieceMax;
use crate::write::buffer::Work;

/// Chunks of one change. Each may need two pages of the PBN-PBA table, and with as many as a leaf
/// has slots a piece would hold twice the pages that a piece of an unmap does.
const RUN_CHUNKS_MAX: u64 = SLOTS as u64 / 2;
/// Runs of one piece.
const RUNS_MAX: usize = 16;
/// Leaves of the source that are read while one is waited for.
const LEAVES_AHEAD: usize = 8;
const PBN_BYTES: usize = size_of::<u64>();

/// What one record does of a copy.
#[derive(Default)]
struct CopyPiece {
    changes: Vec<Change>,
    chunks: u64,
}

/// The next chunks of a copy whose pages are here, all mapped by one change or none.
enum Run {
    Waits,
    /// The source maps these.
    Mapped(Vec<Pbn>),
    /// So many are holes of the source, and the target maps something in this part of them.
    Hole(u64, Option<Range<u64>>),
}

/// Takes a copy into the write buffer, or has it wait for room.
pub(crate) fn accept_copy(core: &mut Core, mut copy: CopyRequest) {
    if !copy.reserved {
        return core.waiting.push_back(Waiting::Copy(copy));
    }
    let room_chunks = copy.range.room_chunks();
    if buffer_copy(core, &mut copy, room_chunks) {
        assert_eq!(copy.range.chunks, 0, "what is reserved is enough for all of a copy");
        core.acknowledge(copy.ack, copy.durable && !mutant!(ForgetsFuaOfCopy));
    }
}

/// As much of a copy as has its worst case reserved enters the write buffer; false when it has
/// failed.
pub(crate) fn buffer_copy(core: &mut Core, copy: &mut CopyRequest, room_chunks: u64) -> bool {
    // A part in front may have failed, and the volumes may have changed since it was asked for.
    let checked = copy.range.check(core.geometry.chunk_bytes);
    if copy.ack.is_told() || checked.is_err() {
        core.intake.lock().space.settle(room_chunks);
        checked.err().into_iter().for_each(|error| copy.ack.fail(&error));
        return false;
    }
    let chunks = copy.range.chunks_within(room_chunks);
    let mut front = copy.range.cut_front(chunks);
    let chunk_bytes = u64::from(core.geometry.chunk_bytes);
    let Range { start, end } = front.targets();
    core.intake.lookaside.stamp(front.to.id, start * chunk_bytes..end * chunk_bytes);
    if mutant!(CopiesBeforeBuffered) {
        let mut pins = PinSet::default();
        let chunks = copy_piece(core, &mut pins, &front).unwrap_or(0);
        core.hold_in(&mut pins, Wanted::default());
        front.move_on(chunks);
    }
    core.buffer.push_closed(Work::Copy(front));
    core.buffer.reserve_with_newest(room_chunks);
    copy.ack.hold();
    core.buffer.answer_with_newest(Arc::clone(&copy.ack));
    true
}

/// Applies the next piece of the copy at the front of the write buffer; false while it waits.
pub(crate) fn commit_copy(core: &mut Core, pins: &mut PinSet, range: &CopiedRange) -> bool {
    if core.state.store.awaits(pins) || core.table_room.tables_are_behind(&core.state) {
        return false;
    }
    match copy_piece(core, pins, range) {
        Ok(chunks) if chunks == range.chunks => core.finish_group(),
        Ok(0) => return false,
        Ok(chunks) => move_copy_on(core, chunks),
        Err(error) => {
            if let Some(group) = core.buffer.groups.front_mut() {
                group.fail(&error);
            }
            core.finish_group();
        }
    }
    true
}

fn move_copy_on(core: &mut Core, chunks: u64) {
    match core.buffer.groups.front_mut().map(|group| &mut group.work) {
        Some(Work::Copy(range)) => range.move_on(chunks),
        _ => core.violated(Invariant::GroupStaysUntilApplied),
    }
}

/// Copies the next chunks of a range as one record: how many, none while pages are missing or
/// the journal is full.
fn copy_piece(
    core: &mut Core,
    pins: &mut PinSet,
    range: &CopiedRange,
) -> Result<u64, RequestError> {
    for volume in [&range.from, &range.to] {
        if !core.state.is_live(volume.id) {
            return Err(RequestError::NoSuchVolume { name: volume.name() });
        }
    }
    let mut wanted = Wanted::default();
    let found = find_piece(core, range, &mut wanted);
    core.hold_in(pins, wanted);
    let CopyPiece { changes, chunks } = found.map_err(|error| not_copied(range, &error))?;
    let body_bytes = changes.len() * CHANGE_BYTES_MAX + chunks_mapped(&changes) * PBN_BYTES;
    if chunks == 0 || changes.is_empty() {
        return Ok(chunks);
    }
    if exceeds_quota(core, range, &changes) {
        return Err(RequestError::QuotaExceeded { volume: range.to.name() });
    }
    if !core.journal_has_room(body_bytes) {
        return Ok(0);
    }
    core.record(&changes);
    if core.stopped.is_some() {
        return Ok(0);
    }
    if mutant!(CopiesNoReferences) {
        let maps = changes.iter().filter_map(|change| match change {
            Change::Map { pbns, .. } => Some(pbns),
            _ => None,
        });
        maps.for_each(|pbns| core.state.release(pbns));
    }
    Ok(chunks)
}

/// The next piece of a copy: as many chunks from its first on as have their pages here. None
/// while those of the first are missing.
fn find_piece(
    core: &mut Core,
    range: &CopiedRange,
    wanted: &mut Wanted,
) -> Result<CopyPiece, PageError> {
    let PieceMax { pages, .. } = core.table_room.most_of_piece();
    let (to, mut piece) = (range.to.id, CopyPiece::default());
    for _ in 0..RUNS_MAX {
        let is_full = piece.chunks > 0 && wanted.pins.len() >= pages;
        if is_full || piece.chunks == range.chunks {
            break;
        }
        let mut rest = range.clone();
        rest.move_on(piece.chunks);
        let run = match find_run(core, &rest, wanted) {
            Ok(run) => run,
            // What is in front of it goes first.
            Err(_) if piece.chunks > 0 => break,
            Err(error) => return Err(error),
        };
        match run {
            Run::Waits => break,
            Run::Mapped(pbns) => {
                piece.chunks += pbns.len() as u64;
                let first = Lba(rest.to_lba);
                piece.changes.push(Change::Map { volume: to, first, pbns });
            }
            Run::Hole(chunks, mapped) => {
                piece.chunks += chunks;
                let unmap = mapped.map(|Range { start, end }| Change::Unmap {
                    volume: to,
                    first: Lba(start),
                    count: end - start,
                });
                piece.changes.extend(unmap);
            }
        }
    }
    Ok(piece)
}

/// The next run of a copy: within one leaf of each map, or a hole of the source.
fn find_run(core: &mut Core, rest: &CopiedRange, wanted: &mut Wanted) -> Result<Run, PageError> {
    let CopiedRange { from, from_lba, to, to_lba, chunks } = rest;
    let (tree, (leaf, slot)) = (TreeId::volume(from.id), lba_pbn::place(Lba(*from_lba)));
    let hole = match core.state.store.next_leaf(tree, leaf, &mut wanted.reads)? {
        NextLeaf::Missing => return Ok(Run::Waits),
        NextLeaf::End => *chunks,
        NextLeaf::Found(found) => leaf_start(found).saturating_sub(*from_lba).min(*chunks),
    };
    if hole > 0 {
        return find_hole(core, to.id, *to_lba, hole, wanted);
    }
    if !core.state.store.want(&mut wanted.pins, tree, leaf, &mut wanted.reads)? {
        let leaves = (leaf + 1, lba_pbn::place(Lba(from_lba + chunks - 1)).0 + 1);
        let next = |state: &mut State, at, reads: &mut _| state.store.next_leaf(tree, at, reads);
        core.state.want_ahead(&[tree], leaves, LEAVES_AHEAD, &mut wanted.reads, next);
        return Ok(Run::Waits);
    }
    let in_leaves = [slot, lba_pbn::place(Lba(*to_lba)).1].map(|slot| (SLOTS - slot) as u64);
    let most = in_leaves.into_iter().fold(RUN_CHUNKS_MAX.min(*chunks), u64::min);
    let mut pbns = Vec::with_capacity(most as usize);
    lba_pbn::extend_run(&core.state.store, tree, Lba(*from_lba), most as usize, &mut pbns);
    if pbns.iter().all(|pbn| pbn.is_none()) {
        return find_hole(core, to.id, *to_lba, most, wanted);
    }
    find_mapped(core, to.id, Lba(*to_lba), pbns, wanted)
}

/// Whether the pages are here to map these. Of fewer, where one is damaged.
fn find_mapped(
    core: &mut Core,
    to: VolumeId,
    first: Lba,
    mut pbns: Vec<Pbn>,
    wanted: &mut Wanted,
) -> Result<Run, PageError> {
    loop {
        match core.state.want_map(to, first, &pbns, wanted) {
            Ok(true) => return Ok(Run::Mapped(pbns)),
            Ok(false) => return Ok(Run::Waits),
            // One half of them after the other, until it is the first.
            Err(_) if pbns.len() > 1 => pbns.truncate(pbns.len() / 2),
            Err(error) => return Err(error),
        }
    }
}

/// A hole of the source, as far as the first leaf reaches that the target maps something in.
fn find_hole(
    core: &mut Core,
    to: VolumeId,
    first: u64,
    chunks: u64,
    wanted: &mut Wanted,
) -> Result<Run, PageError> {
    let (tree, leaf) = (TreeId::volume(to), lba_pbn::place(Lba(first)).0);
    let found = match core.state.store.next_leaf(tree, leaf, &mut wanted.reads)? {
        NextLeaf::Missing => return Ok(Run::Waits),
        NextLeaf::Found(found) if leaf_start(found) < first + chunks => found,
        NextLeaf::Found(_) | NextLeaf::End => return Ok(Run::Hole(chunks, None)),
    };
    let mapped = leaf_range(found, first, first + chunks);
    let count = mapped.end - mapped.start;
    let here = core.state.want_unmap(to, Lba(mapped.start), count, wanted);
    let chunks = mapped.start - first;
    match here {
        Ok(true) => Ok(Run::Hole(mapped.end - first, Some(mapped))),
        // What is in front of the leaf needs nothing.
        Ok(false) | Err(_) if chunks > 0 => Ok(Run::Hole(chunks, None)),
        Ok(false) => Ok(Run::Waits),
        Err(error) => Err(error),
    }
}

/// Whether the target would map more than its quota allows, with what admitted writes behind
/// the copy may map. What is in front of it has been applied.
fn exceeds_quota(core: &Core, range: &CopiedRange, changes: &[Change]) -> bool {
    let entry = core.state.catalog.get(range.to.id);
    let Some((quota_bytes, entry)) = range.to.quota_bytes().zip(entry) else { return false };
    let quota_chunks = quota_bytes.div_ceil(u64::from(core.geometry.chunk_bytes));
    let (mut added, mut removed) = (0, 0);
    for change in changes {
        let (first, count) = match change {
            Change::Map { first, pbns, .. } => {
                added += pbns.iter().filter(|pbn| !pbn.is_none()).count() as u64;
                (*first, pbns.len())
            }
            Change::Unmap { first, count, .. } => (*first, *count as usize),
            _ => continue,
        };
        let (tree, mut mapped) = (TreeId::volume(range.to.id), Vec::with_capacity(count));
        lba_pbn::extend_run(&core.state.store, tree, first, count, &mut mapped);
        removed += mapped.iter().filter(|pbn| !pbn.is_none()).count() as u64;
    }
    let mapped_chunks = entry.mapped_chunks + added;
    let taken = mapped_chunks.saturating_sub(removed) + range.to.quota_reserved();
    added > removed && taken > quota_chunks && !mutant!(PassesQuota)
}

fn chunks_mapped(changes: &[Change]) -> usize {
    let chunks = |change: &Change| match change {
        Change::Map { pbns, .. } => pbns.len(),
        _ => 0,
    };
    changes.iter().map(chunks).sum()
}

/// A page is lacking for the first chunk that is left of a range.
fn not_copied(range: &CopiedRange, error: &PageError) -> RequestError {
    let (volume, lba) = (range.from.name(), range.from_lba);
    RequestError::NotCopied { volume, lba, reason: Box::new(lacking_page(error)) }
}
