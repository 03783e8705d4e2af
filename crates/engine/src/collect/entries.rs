//! One entry of a slice is worked off: its chunk is moved, forgotten, or found damaged.

use format::directory::DirectoryEntry;
use format::frame;
use format::record::Change;
use format::root::Stream;
use format::units::{FrameCheck, Pba};

use crate::collect::fates::Fate;
use crate::core::Core;
use crate::core::invariant::Invariant;
use crate::placement::Placed;

/// Moves or forgets one chunk, and says how long its frame was and is if it moved; none if it
/// is damaged. A `renewed` frame takes its place.
pub(crate) fn collect_entry(
    core: &mut Core,
    fate: Fate,
    entry: &DirectoryEntry,
    (image, renewed): (&[u8], Option<&[u8]>),
    changes: &mut Vec<Change>,
) -> Option<(u64, u64)> {
    let DirectoryEntry { pbn, fingerprint, length_bytes, .. } = *entry;
    let frame = image.get(entry.range());
    let meant = |check| frame.filter(|frame| frame::is_meant(frame, pbn, check));
    match fate {
        Fate::Stale => Some((0, 0)),
        Fate::Promote(to) => {
            changes.push(core.moved(pbn, to, &fingerprint));
            Some((0, 0))
        }
        Fate::DropCopy => {
            changes.push(Change::DropCopy { pbn });
            Some((0, 0))
        }
        Fate::Copy(check) => {
            // Without it the chunk itself is still there.
            let Some(frame) = meant(check) else {
                changes.push(Change::DropCopy { pbn });
                return Some((0, 0));
            };
            let placed = Placed { frame: renewed.unwrap_or(frame), pbn, fingerprint };
            let Some(at) = place_moved(core, &placed, changes) else { return Some((0, 0)) };
            changes.push(core.copied(pbn, at, &fingerprint));
            Some(count_moved(core, length_bytes, at))
        }
        Fate::Forget(check) => {
            if check.is_some_and(|check| meant(check).is_none()) {
                return None;
            }
            changes.push(Change::Forget { pbn, fingerprint });
            Some((0, 0))
        }
        Fate::Move(check) => {
            let frame = movable(core, entry, check, image)?;
            let placed = Placed { frame: renewed.unwrap_or(frame), pbn, fingerprint };
            let Some(to) = place_moved(core, &placed, changes) else { return Some((0, 0)) };
            changes.push(core.moved(pbn, to, &fingerprint));
            core.note_popular(pbn);
            Some(count_moved(core, length_bytes, to))
        }
    }
}

/// The frame of a chunk that lives, if it may be moved.
pub(crate) fn movable<'a>(
    core: &Core,
    entry: &DirectoryEntry,
    check: FrameCheck,
    image: &'a [u8],
) -> Option<&'a [u8]> {
    // Its checksum would say that it is sound, wherever it is.
    if core.damage.lies_beneath_checksum(entry.pbn) {
        return None;
    }
    let frame = image.get(entry.range());
    frame.filter(|frame| frame::is_meant(frame, entry.pbn, check))
}

/// Counts a frame of this length that was moved; its lengths before and after.
fn count_moved(core: &mut Core, length_bytes: u32, to: Pba) -> (u64, u64) {
    core.counters.chunks_moved += 1;
    core.counters.frame_bytes_moved += u64::from(to.length_bytes);
    (length_bytes.into(), to.length_bytes.into())
}

/// Places a frame that is moved, for which there is room.
fn place_moved(core: &mut Core, placed: &Placed<'_>, changes: &mut Vec<Change>) -> Option<Pba> {
    let to = core.placement.place(Stream::Collection, placed, changes);
    if to.is_none() {
        core.violated(Invariant::MoveFindsRoom);
    }
    to
}

#[cfg(test)]
mod tests {
    use format::units::{Fingerprint, Pbn};

    use super::place_moved;
    use crate::placement::Placed;
    use crate::small_store::store;

    #[test]
    #[should_panic(expected = "MoveFindsRoom")]
    fn what_is_moved_finds_room() {
        let (mut engine, _client) = store(Default::default());
        engine.core.placement.space.close_zone(0);
        let placed = Placed { frame: &[1; 64], pbn: Pbn(1), fingerprint: Fingerprint::default() };
        place_moved(&mut engine.core, &placed, &mut Vec::new());
    }
}
