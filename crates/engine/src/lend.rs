//! The part that divides memory anew, once in some steps ([`lending`]).

pub(crate) mod lending;

use std::sync::atomic::Ordering;

use crate::core::Core;
use crate::lend::lending::{Division, FrameShare, Lending};

impl Lending {
    /// Gives the cache of the tables what others leave, and takes back what they need.
    pub(crate) fn advance(&mut self, core: &mut Core) {
        if !self.is_due() {
            return;
        }
        self.take_back_from_frames(core);
        let young_bytes = core.state.hash.young_bytes();
        let resident_pages = core.state.store.resident_pages();
        let division = self.divide(frame_share(core), young_bytes, resident_pages);
        let Division { cache_pages, dirty_pages_max, lent_bytes } = division;
        core.state.store.set_cache_pages(cache_pages);
        core.table_room.dirty_pages_max = dirty_pages_max;
        core.frames.lend(lent_bytes);
    }

    fn take_back_from_frames(&mut self, core: &mut Core) {
        let counters = &core.counters;
        let by_core = counters.frames_hit + counters.frames_ahead + counters.frames_missed;
        let chunks_read = by_core + core.intake.lookaside.chunks.load(Ordering::Relaxed);
        let cache_pages = core.state.store.cache_pages();
        let (frames, pages_read) = (frame_share(core), counters.table_reads);
        let bytes = self.judge_readers(frames, cache_pages, pages_read, chunks_read);
        if bytes > 0 {
            core.frames.give_up(bytes);
        }
    }
}

fn frame_share(core: &Core) -> FrameShare {
    FrameShare { bytes: core.frames.resident_bytes(), bytes_max: core.frames.bytes_max() }
}
