//! How full a store is, and who is told.
//!
//! What counts as used is what does not come back by itself: of the data zones all but free
//! containers and dead chunks, which collection returns; of the tables live pages, the reserve that
//! checkpoints and collection keep, and what young entries take when they are merged, less what
//! comes back when they are and dead chunks are forgotten. So 100% is where writes fail. The
//! journal is a ring, and never counts.
//!
//! The operator is told when a watermark is reached, once for each kind of room, and again when
//! enough has come back that it is not said at every step; and at once when a write fails.

use crate::engine::Engine;
use crate::notice::{Notice, Room};
use crate::watermarks::{SLACK_PERCENT, Watermarks};

impl Engine {
    /// From now on the operator is told when room reaches one of these percentages.
    pub fn warn_at(&mut self, percents: &[u8]) {
        let mut percents = percents.to_vec();
        percents.sort_unstable();
        percents.dedup();
        self.watermarks = Watermarks::at(percents);
    }

    /// Used parts of the data zones and of zone tables, 0 to 1.
    pub(crate) fn used_ratios(&self) -> [f64; 2] {
        let capacity_bytes = self.geometry.capacity_bytes();
        let spare_bytes = self.free_bytes() + self.state.totals.dead_frame_bytes;
        let data = capacity_bytes.saturating_sub(spare_bytes);
        let store = &self.state.store;
        let all = store.used_blocks() + store.free_blocks() + store.quarantined_blocks();
        let usable = all.saturating_sub(self.table_blocks_kept());
        let coming = self.state.hash.pages_to_come_back(self.state.totals.dead_chunks);
        let used = store.used_blocks().saturating_sub(coming);
        [part(data, capacity_bytes), part(used, usable)]
    }

    /// Tells of watermarks that were passed since this was last asked.
    pub(crate) fn watch_room(&mut self) {
        let mut notices = Vec::new();
        let percents = self.used_ratios().map(|ratio| (ratio * 100.0) as u64);
        for (room, percent) in [Room::Data, Room::Tables].into_iter().zip(percents) {
            self.watermarks.note(room, percent, |notice| notices.push(notice));
        }
        let percent = percents.into_iter().max().unwrap_or(0);
        if self.watermarks.refused_percent.is_some_and(|at| percent + SLACK_PERCENT <= at) {
            self.watermarks.refused_percent = None;
            notices.push(Notice::WritesFitAgain);
        }
        notices.iter().for_each(|notice| self.tell(notice));
    }

    /// A write has failed because there is no room.
    pub(crate) fn note_refusal(&mut self) {
        let percent = self.used_ratios().map(|ratio| (ratio * 100.0) as u64).into_iter().max();
        if self.watermarks.refused_percent.is_none() {
            self.tell(&Notice::WritesRefused);
        }
        let before = self.watermarks.refused_percent;
        self.watermarks.refused_percent = before.max(percent);
    }
}

fn part(of: u64, all: u64) -> f64 {
    if all == 0 { 1.0 } else { (of as f64 / all as f64).min(1.0) }
}
