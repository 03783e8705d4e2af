//! How full a store is, and who is told.
//!
//! What is kept for releases ([`crate::Client::keep_for_release`]) is room for nobody else, as far
//! as nobody holds it. What counts as used is what does not come back by itself. The room for data
//! is all of the data zones but what collection keeps to work in, and of that all is used but free
//! containers and what collection would give back: the dead part of containers that are worth it,
//! and of no others (`containers/src/compaction.rs`). The room for tables is theirs without what
//! checkpoints and young entries are kept, and of that live pages are used, less what comes back
//! when young entries are merged and dead chunks are forgotten. So 100% is where writes fail. The
//! journal is a ring, and never counts. What collection would give back is *taken* until it has
//! done so.
//!
//! The operator is told when a watermark is reached, once for each kind of room, and again when
//! enough has come back that it is not said at every step; at once when a write fails, and again
//! when there is room to promise, however full the store is.

use crate::core::Core;
use crate::notice::{Notice, Room};

/// So many chunks must find blocks of the tables before it is said that writes fit again: more than
/// what comes and goes with every checkpoint.
const CHUNKS_TO_FIT: u64 = 32;

/// Tells of watermarks that were passed since this was last asked.
pub(crate) fn watch_room(core: &mut Core) {
    let mut notices = Vec::new();
    let percents = core.used_ratios().map(|ratio| (ratio * 100.0) as u64);
    for (room, percent) in [Room::Data, Room::Tables].into_iter().zip(percents) {
        core.watermarks.note(room, percent, |notice| notices.push(notice));
    }
    if core.watermarks.refused && writes_fit(core) {
        core.watermarks.refused = false;
        notices.push(Notice::WritesFitAgain);
    }
    notices.iter().for_each(|notice| core.tell(notice));
}

/// Whether clients can be promised a container, and the pages of more than a few chunks.
fn writes_fit(core: &Core) -> bool {
    let lacks = |chunks| core.intake.lock().space.lacks(None, chunks);
    core.placement.has_spare_container() && !lacks(CHUNKS_TO_FIT)
}
