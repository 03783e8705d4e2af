//! What becomes of what is in a victim, as the tables say it in the moment in which it is done.

use std::cell::LazyCell;

use format::directory::DirectoryEntry;
use format::units::{ContainerId, FrameCheck, Pba, Pbn};
use hashbrown::HashSet;
use mutants::mutant;
use tables::{PageError, PinSet, pbn_pba, second_copies};

use crate::collect::collection::Victim;
use crate::core::Core;
use crate::pages::wanted::Wanted;
use crate::placement::room_of;

/// What becomes of one entry of a slice.
pub(crate) enum Fate {
    Stale,
    Move(FrameCheck),
    /// It is a second copy.
    Copy(FrameCheck),
    DropCopy,
    /// It is dead, and its second copy, there, takes its place: were it forgotten, a frame of its
    /// PBN would be left when that names another chunk.
    Promote(Pba),
    /// With the check that its frame must have, where only that frame says which chunk it was.
    Forget(Option<FrameCheck>),
}

impl Fate {
    /// Whether the chunk's frame is stored elsewhere.
    pub(crate) fn moves(&self) -> bool {
        matches!(self, Self::Move(_) | Self::Copy(_))
    }

    /// Whether the chunk's frame is looked at.
    pub(crate) fn needs_frame(&self) -> bool {
        matches!(self, Self::Move(_) | Self::Copy(_) | Self::Forget(Some(_)))
    }
}

/// Asks for the pages that say what becomes of these entries; whether they are here.
pub(crate) fn want_slice(
    core: &mut Core,
    pins: &mut PinSet,
    slice: &[DirectoryEntry],
) -> Result<bool, PageError> {
    core.state.touch_places(slice.iter().map(|entry| entry.pbn));
    let mut wanted = Wanted::default();
    let here = want_fates(core, slice, &mut wanted);
    core.hold_in(pins, wanted);
    here
}

fn want_fates(
    core: &mut Core,
    slice: &[DirectoryEntry],
    wanted: &mut Wanted,
) -> Result<bool, PageError> {
    // Any of them may be dead.
    let mut here = core.state.want_forgets(slice.len() as u64, wanted)?;
    for entry in slice {
        here &= core.state.want_move(entry.pbn, wanted)?;
    }
    Ok(here)
}

/// What becomes of the entries of the next slice, whose pages are here.
pub(crate) fn fates(core: &Core, victim: &Victim, end: usize) -> Vec<Fate> {
    // Only what is dead is looked for among what groups hold.
    let held = LazyCell::new(|| core.buffer.held());
    let fate = |entry| match fate_of(core, victim.id, entry, &held) {
        Fate::Forget(_) if !victim.scanned => Fate::Forget(None),
        fate => fate,
    };
    victim.entries[victim.cursor..end].iter().map(fate).collect()
}

fn fate_of(
    core: &Core,
    container: ContainerId,
    entry: &DirectoryEntry,
    held: &LazyCell<HashSet<Pbn>, impl FnOnce() -> HashSet<Pbn>>,
) -> Fate {
    let Some(stored) = pbn_pba::get(&core.state.store, entry.pbn) else {
        return Fate::Stale;
    };
    let copy = second_copies::get(&core.state.store, entry.pbn);
    let here = entry.place(container);
    if !stored.pba.is_place_of(here) {
        return match copy.filter(|copy| copy.is_place_of(here)) {
            Some(copy) if core.copy_may_move(stored) => Fate::Copy(copy.check),
            Some(_) => Fate::DropCopy,
            None => Fate::Stale,
        };
    }
    let is_held = || held.contains(&entry.pbn) && !mutant!(ForgetsHeldChunk);
    let check = stored.pba.check;
    if stored.references > 0 || is_held() {
        Fate::Move(check)
    } else if let Some(copy) = copy.filter(|_| !mutant!(ForgetsCopied)) {
        Fate::Promote(copy)
    } else {
        Fate::Forget(Some(check))
    }
}

/// Room that the next slice of a victim takes.
pub(crate) fn room_of_moves(victim: &Victim, fates: &[Fate]) -> u64 {
    let moves = victim.entries[victim.cursor..].iter().zip(fates).enumerate();
    let moved = moves.filter(|(_, (_, fate))| fate.moves());
    let frame_bytes = |(at, (entry, _)): (usize, (&DirectoryEntry, &Fate))| {
        victim.renewed.frame(at).map_or(u64::from(entry.length_bytes), |frame| frame.len() as u64)
    };
    moved.map(frame_bytes).map(room_of).sum()
}
