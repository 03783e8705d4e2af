//! Blocks: which are in use, one bit each, and which one is next.
//!
//! The zone is divided into segments of 256 blocks. Allocation goes on in one segment until it has
//! no free block left, then moves to the next segment that is wholly free, or, if there is none, to
//! the next with any. So a freeze is written in runs of a megabyte for as long as there are any.

/// Blocks in a segment.
const SEGMENT_BLOCKS: u64 = 256;
/// From one segment to the next but two: a hit of a MiB reaches no further than the next.
const FAR_SEGMENTS: u64 = 3;
const WORD_BLOCKS: u64 = 64;
const SEGMENT_WORDS: usize = (SEGMENT_BLOCKS / WORD_BLOCKS) as usize;

/// The blocks of zone tables.
pub(super) struct Blocks {
    /// Bit set: in use. Behind the zone's end all are set.
    words: Vec<u64>,
    free_in_segment: Vec<u16>,
    free: u64,
    wholly_free: usize,
    segment: usize,
}

impl Blocks {
    /// All blocks free but block 0, which is never used.
    pub(super) fn new(blocks: u64) -> Self {
        let segments = blocks.div_ceil(SEGMENT_BLOCKS);
        let blocks_in =
            |segment: u64| (blocks - segment * SEGMENT_BLOCKS).min(SEGMENT_BLOCKS) as u16;
        let free_in_segment: Vec<u16> = (0..segments).map(blocks_in).collect();
        let is_whole = |&&free: &&u16| u64::from(free) == SEGMENT_BLOCKS;
        let mut new = Self {
            words: vec![0; segments as usize * SEGMENT_WORDS],
            wholly_free: free_in_segment.iter().filter(is_whole).count(),
            free_in_segment,
            free: blocks,
            segment: 0,
        };
        for beyond in blocks..segments * SEGMENT_BLOCKS {
            new.words[(beyond / WORD_BLOCKS) as usize] |= 1 << (beyond % WORD_BLOCKS);
        }
        new.take(0);
        new
    }

    /// The zone, which had `before` blocks, has `after`.
    pub(super) fn grow(&mut self, before: u64, after: u64) {
        let segments = after.div_ceil(SEGMENT_BLOCKS) as usize;
        self.words.resize(segments * SEGMENT_WORDS, u64::MAX);
        self.free_in_segment.resize(segments, 0);
        (before..after).for_each(|block| self.release(block));
    }

    pub(super) fn free(&self) -> u64 {
        self.free
    }

    pub(super) fn is_used(&self, block: u64) -> bool {
        let word = self.words.get((block / WORD_BLOCKS) as usize);
        word.is_none_or(|word| word >> (block % WORD_BLOCKS) & 1 == 1)
    }

    /// Takes the next free block.
    pub(super) fn allocate(&mut self) -> Option<u64> {
        if self.free == 0 {
            return None;
        }
        if self.free_in_segment[self.segment] == 0 {
            self.segment = self.segment_after()?;
        }
        self.allocate_in(self.segment)
    }

    /// Takes a free block with two whole segments between it and each of `former`: of a segment
    /// that is begun, so that runs stay long, and the next block where there is none so far away.
    pub(super) fn allocate_far_from(&mut self, former: &[u64]) -> Option<u64> {
        let is_far = |segment: usize| {
            let near =
                |block: &u64| (block / SEGMENT_BLOCKS).abs_diff(segment as u64) < FAR_SEGMENTS;
            self.free_in_segment[segment] > 0 && !former.iter().any(near)
        };
        let is_begun = |segment: &usize| u64::from(self.free_in_segment[*segment]) < SEGMENT_BLOCKS;
        let mut far = (0..self.free_in_segment.len()).filter(|&segment| is_far(segment));
        let first = far.next();
        let begun = first.into_iter().chain(far).find(is_begun);
        match begun.or(first) {
            Some(segment) => self.allocate_in(segment),
            None => self.allocate(),
        }
    }

    fn allocate_in(&mut self, segment: usize) -> Option<u64> {
        let first = segment * SEGMENT_WORDS;
        let word = (first..first + SEGMENT_WORDS).find(|&word| self.words[word] != u64::MAX)?;
        let block = word as u64 * WORD_BLOCKS + u64::from(self.words[word].trailing_ones());
        self.take(block);
        Some(block)
    }

    fn segment_after(&self) -> Option<usize> {
        let wanted = if self.wholly_free > 0 { SEGMENT_BLOCKS as u16 } else { 1 };
        let segments = self.free_in_segment.len();
        let after = (self.segment + 1..segments).chain(0..=self.segment);
        after.into_iter().find(|&segment| self.free_in_segment[segment] >= wanted)
    }

    /// Marks a block used; true when it was free.
    pub(super) fn take(&mut self, block: u64) -> bool {
        if self.is_used(block) {
            return false;
        }
        let free = &mut self.free_in_segment[(block / SEGMENT_BLOCKS) as usize];
        self.wholly_free -= usize::from(u64::from(*free) == SEGMENT_BLOCKS);
        *free -= 1;
        self.free -= 1;
        self.words[(block / WORD_BLOCKS) as usize] |= 1 << (block % WORD_BLOCKS);
        true
    }

    /// Makes a block free that is in use.
    pub(super) fn release(&mut self, block: u64) {
        debug_assert!(self.is_used(block), "block {block} is freed twice");
        let free = &mut self.free_in_segment[(block / SEGMENT_BLOCKS) as usize];
        *free += 1;
        self.wholly_free += usize::from(u64::from(*free) == SEGMENT_BLOCKS);
        self.free += 1;
        self.words[(block / WORD_BLOCKS) as usize] &= !(1 << (block % WORD_BLOCKS));
    }

    pub(super) fn resident_bytes(&self) -> u64 {
        (self.words.len() * size_of::<u64>() + self.free_in_segment.len() * size_of::<u16>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Blocks, SEGMENT_BLOCKS};

    #[test]
    fn every_block_but_the_first_is_handed_out_once() {
        for blocks in [1, 2, 63, 64, 65, 255, 256, 257, 1000] {
            let mut space = Blocks::new(blocks);
            assert_eq!(space.free(), blocks - 1);
            let all: BTreeSet<u64> = std::iter::from_fn(|| space.allocate()).collect();
            assert_eq!(all, (1..blocks).collect());
            assert_eq!(space.free(), 0);
        }
    }

    #[test]
    fn what_a_zone_grows_by_is_handed_out_as_if_it_had_been_there() {
        for (before, after) in [(1, 2), (63, 65), (200, 256), (200, 1000), (256, 257), (300, 300)] {
            let mut grown = Blocks::new(before);
            let first: BTreeSet<u64> = (0..before / 3).filter_map(|_| grown.allocate()).collect();
            grown.grow(before, after);
            let mut whole = Blocks::new(after);
            first.iter().for_each(|&block| assert!(whole.take(block)));
            assert_eq!((grown.free(), grown.wholly_free), (whole.free(), whole.wholly_free));
            assert_eq!(grown.words, whole.words);
            let rest: BTreeSet<u64> = std::iter::from_fn(|| grown.allocate()).collect();
            assert_eq!(rest.len() + first.len() + 1, after as usize);
        }
    }

    #[test]
    fn what_is_far_is_two_segments_away_and_leaves_whole_ones_alone() {
        let mut space = Blocks::new(8 * SEGMENT_BLOCKS);
        assert_eq!(space.allocate_far_from(&[600]), Some(5 * SEGMENT_BLOCKS), "nothing is begun");
        assert_eq!(space.allocate_far_from(&[600]), Some(5 * SEGMENT_BLOCKS + 1));
        assert_eq!(space.allocate_far_from(&[5 * SEGMENT_BLOCKS]), Some(1), "block 0 begins it");
        assert_eq!(space.allocate_far_from(&[1, 5 * SEGMENT_BLOCKS]), Some(2), "none is far");
        assert_eq!(space.allocate_far_from(&[]), Some(3), "what is new is far from everything");
    }

    #[test]
    fn wholly_free_segments_are_filled_in_order_before_holes() {
        let mut space = Blocks::new(4 * SEGMENT_BLOCKS);
        (0..2 * SEGMENT_BLOCKS).for_each(|_| assert!(space.allocate().is_some()));
        (10..20).for_each(|block| space.release(block));
        let rest = space.free() - 10;
        let taken: Vec<u64> = (0..rest).filter_map(|_| space.allocate()).collect();
        let last = *taken.last().unwrap();
        assert!(taken.is_sorted() && last == 4 * SEGMENT_BLOCKS - 1);
        assert_eq!(space.allocate(), Some(10));
    }
}
