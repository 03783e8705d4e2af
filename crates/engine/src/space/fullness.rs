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

use crate::engine::Engine;
use crate::notice::{Notice, Room};
use crate::space::watermarks::Watermarks;

/// So many chunks must find blocks of the tables before it is said that writes fit again: more than
/// what comes and goes with every checkpoint.
const CHUNKS_TO_FIT: u64 = 32;

impl Engine {
    /// From now on the operator is told when room reaches one of these percentages.
    pub fn warn_at(&mut self, percents: &[u8]) {
        let mut percents = percents.to_vec();
        percents.sort_unstable();
        percents.dedup();
        self.watermarks = Watermarks::at(percents);
    }

    /// Tells of watermarks that were passed since this was last asked.
    pub(crate) fn watch_room(&mut self) {
        let mut notices = Vec::new();
        let percents = self.core.used_ratios().map(|ratio| (ratio * 100.0) as u64);
        for (room, percent) in [Room::Data, Room::Tables].into_iter().zip(percents) {
            self.watermarks.note(room, percent, |notice| notices.push(notice));
        }
        if self.watermarks.refused && self.writes_fit() {
            self.watermarks.refused = false;
            notices.push(Notice::WritesFitAgain);
        }
        notices.iter().for_each(|notice| self.core.tell(notice));
    }

    /// A write has failed because there is no room.
    pub(crate) fn note_refusal(&mut self) {
        if !std::mem::replace(&mut self.watermarks.refused, true) {
            self.core.tell(&Notice::WritesRefused);
        }
    }

    /// Whether clients can be promised a container, and the pages of more than a few chunks.
    fn writes_fit(&self) -> bool {
        let lacks = |chunks| self.core.intake.lock().space.lacks(None, chunks);
        self.core.placement.has_spare_container() && !lacks(CHUNKS_TO_FIT)
    }
}
