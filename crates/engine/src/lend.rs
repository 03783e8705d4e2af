//! The core divides memory anew, once in some steps ([`crate::lend::lending`]).

pub(crate) mod lending;

use std::sync::atomic::Ordering;

use crate::engine::Engine;
use crate::lend::lending::{Division, FrameShare};

impl Engine {
    /// Gives the cache of the tables what others leave, and takes back what they need.
    pub(crate) fn lend_memory(&mut self) {
        if !self.lending.is_due() {
            return;
        }
        self.take_back_from_frames();
        let young_bytes = self.core.state.hash.young_bytes();
        let resident_pages = self.core.state.store.resident_pages();
        let division = self.lending.divide(self.frame_share(), young_bytes, resident_pages);
        let Division { cache_pages, dirty_pages_max, lent_bytes } = division;
        self.core.state.store.set_cache_pages(cache_pages);
        self.core.table_room.dirty_pages_max = dirty_pages_max;
        self.core.frames.lend(lent_bytes);
    }

    fn take_back_from_frames(&mut self) {
        let counters = &self.core.counters;
        let by_core = counters.frames_hit + counters.frames_ahead + counters.frames_missed;
        let chunks_read = by_core + self.core.intake.lookaside.chunks.load(Ordering::Relaxed);
        let cache_pages = self.core.state.store.cache_pages();
        let (frames, pages_read) = (self.frame_share(), counters.table_reads);
        let bytes = self.lending.judge_readers(frames, cache_pages, pages_read, chunks_read);
        if bytes > 0 {
            self.core.frames.give_up(bytes);
        }
    }

    fn frame_share(&self) -> FrameShare {
        FrameShare {
            bytes: self.core.frames.resident_bytes(),
            bytes_max: self.core.frames.bytes_max(),
        }
    }
}
