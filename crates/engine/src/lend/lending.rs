//! Lending: what frames and the index of young entries leave of their memory, the pages of the
//! tables may have (decisions/037).
//!
//! Who only writes has no use for the share of frames that were read, and the index of a small
//! store never needs all of its own; but with more pages in memory more changes share the writing
//! of one, and fewer are read. So the cache of the tables has its own share, and beside it what the
//! two others do not use now.
//!
//! Invariants:
//!
//! * *Together they take no more than their shares*: what frames may take is their share less what
//!   pages may have of it, or still have, however long those need to leave.
//! * *Frames are not kept from growing*: a part of their share is never lent as long as it is
//!   vacant. As they grow into it, pages leave, and so it stays vacant until all is theirs again.
//! * *Who does not read gives back*: while pages that are missing are read again and again, and
//!   hardly any chunk is, the frames that were wanted least go, a part at a time.

use crate::options::{Caches, DIRTY_PAGES_MAX, PAGE_COST_BYTES, YOUNG_COST_BYTES};

/// What a page is counted at while it is lent: half as much again as it takes. For the memory that
/// pages leave is in pieces of their size, and frames grow in other memory.
const LENT_PAGE_COST_BYTES: u64 = PAGE_COST_BYTES / 2 * 3;

/// Steps of the core from one look to the next.
const STEPS_PER_LOOK: u32 = 16;

/// Of the frames' share this part is not lent, and this part goes when nobody reads.
const VACANT_PART: u64 = 8;
const GIVEN_BACK_PART: u64 = 16;

/// Nobody reads while fewer chunks are read than this part of the pages that are missing.
const READERS_PART: u64 = 16;
/// Pages that are missing from one judgement to the next, at least; else as many as the cache has.
const MISSING_MIN: u64 = 256;

/// Frames that are held, and their share, in bytes.
#[derive(Copy, Clone)]
pub(crate) struct FrameShare {
    pub(crate) bytes: u64,
    pub(crate) bytes_max: u64,
}

/// How memory is divided until the next look.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Division {
    pub(crate) cache_pages: usize,
    pub(crate) dirty_pages_max: usize,
    /// Of the share of frames.
    pub(crate) lent_bytes: u64,
}

/// What is lent, and by whom.
pub(crate) struct Lending {
    /// Whether anything is.
    lends: bool,
    /// What the cache of the tables has of its own.
    own_pages: usize,
    own_dirty_pages_max: usize,
    /// The share of the index.
    index_bytes: u64,
    steps: u32,
    /// At the last judgement: pages read, and chunks that somebody read.
    pages_read: u64,
    chunks_read: u64,
}

impl Lending {
    pub(crate) fn new(caches: &Caches) -> Self {
        Self {
            lends: caches.lends,
            own_pages: caches.pages,
            own_dirty_pages_max: caches.dirty_pages_max,
            index_bytes: (caches.young_max as u64).saturating_mul(YOUNG_COST_BYTES),
            steps: 0,
            pages_read: 0,
            chunks_read: 0,
        }
    }

    /// Pages that the cache of the tables has of its own.
    pub(crate) fn own_pages(&self) -> usize {
        self.own_pages
    }

    /// Whether this step looks.
    pub(crate) fn is_due(&mut self) -> bool {
        self.steps = (self.steps + 1) % STEPS_PER_LOOK;
        self.lends && self.steps == 0
    }

    /// What everybody may have from now on, while the index takes `young_bytes`, and so many pages
    /// are in memory.
    pub(crate) fn divide(
        &self,
        frames: FrameShare,
        young_bytes: u64,
        resident_pages: usize,
    ) -> Division {
        let own_dirty = self.own_dirty_pages_max;
        let index_left = self.index_bytes.saturating_sub(young_bytes);
        let kept_bytes = frames.bytes + frames.bytes_max / VACANT_PART;
        let left_bytes = index_left.saturating_add(frames.bytes_max.saturating_sub(kept_bytes));
        let lent_pages = usize::try_from(left_bytes / LENT_PAGE_COST_BYTES).unwrap_or(0);
        let still_there = resident_pages.saturating_sub(self.own_pages);
        let gone_bytes = lent_pages.max(still_there) as u64 * LENT_PAGE_COST_BYTES;
        Division {
            cache_pages: self.own_pages + lent_pages,
            dirty_pages_max: own_dirty.max(DIRTY_PAGES_MAX.min(own_dirty + lent_pages / 4 * 3)),
            lent_bytes: gone_bytes.saturating_sub(index_left),
        }
    }

    /// Bytes of frames that are to go, because pages are missing all the time and nobody reads;
    /// given what was read since the store was opened.
    pub(crate) fn judge_readers(
        &mut self,
        frames: FrameShare,
        cache_pages: usize,
        pages_read: u64,
        chunks_read: u64,
    ) -> u64 {
        let missing = pages_read - self.pages_read;
        if missing < (cache_pages as u64).max(MISSING_MIN) {
            return 0;
        }
        let nobody_reads = chunks_read - self.chunks_read < missing / READERS_PART;
        (self.pages_read, self.chunks_read) = (pages_read, chunks_read);
        if nobody_reads { frames.bytes_max / GIVEN_BACK_PART } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARE: u64 = 1000 * LENT_PAGE_COST_BYTES;

    fn lending() -> Lending {
        Lending::new(&Caches {
            pages: 100,
            dirty_pages_max: 75,
            young_max: (SHARE / YOUNG_COST_BYTES) as usize,
            directory_entries: 0,
            frame_bytes: SHARE,
            lends: true,
        })
    }

    fn frames(bytes: u64) -> FrameShare {
        FrameShare { bytes, bytes_max: SHARE }
    }

    #[test]
    fn what_nobody_uses_is_lent_and_no_more() {
        let lending = lending();
        let vacant = lending.divide(frames(0), SHARE, 50);
        assert_eq!((vacant.cache_pages, vacant.dirty_pages_max), (100 + 875, 75 + 654));
        assert_eq!(vacant.lent_bytes, SHARE / 8 * 7);
        let both = lending.divide(frames(0), 0, 50);
        assert_eq!(both.cache_pages, 100 + 875 + 1000);
        assert!(both.lent_bytes <= SHARE / 8 * 7);
        let taken = lending.divide(frames(SHARE), SHARE, 50);
        assert_eq!(taken, Division { cache_pages: 100, dirty_pages_max: 75, lent_bytes: 0 });
    }

    #[test]
    fn what_has_not_left_yet_is_still_lent() {
        let still_there = lending().divide(frames(SHARE / 2), SHARE, 100 + 700);
        assert_eq!(still_there.cache_pages, 100 + 375);
        assert_eq!(still_there.lent_bytes, 700 * LENT_PAGE_COST_BYTES);
    }

    #[test]
    fn frames_go_only_while_pages_are_missing_and_nobody_reads() {
        let mut lending = lending();
        let part = SHARE / 16;
        let mut ask = |pages, chunks| lending.judge_readers(frames(SHARE), 500, pages, chunks);
        assert_eq!([ask(499, 0), ask(500, 0), ask(999, 0)], [0, part, 0]);
        assert_eq!([ask(1000, 31), ask(1500, 61)], [0, part]);
    }
}
