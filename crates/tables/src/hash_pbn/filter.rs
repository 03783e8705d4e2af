//! The filters of buckets: most of what is not stored is known not to be, without a page.
//!
//! A bucket has some blocks of 256 bits, three unless the store was made with another number. A
//! hash chooses one of them and five bits in it, so a look touches one line of a cache. At the mean
//! load of a bucket three are 9.8 bits an entry, and one in a hundred of what is not stored seems
//! to be. (Blocked Bloom filters: Putze, Sanders, Singler,
//! "Cache-, hash- and space-efficient Bloom filters", 2007.)
//!
//! All of it is in memory, and mirrored into leaves of its own before a freeze; buckets are made in
//! order, so what has changed is a few neighbouring leaves. A leaf that cannot be read says maybe
//! of everything, until the merge has come round.

use std::collections::BTreeSet;

use format::detection::FilterBlocks;
use format::page::{PAYLOAD_BYTES, Page};
use format::units::{PageId, TreeId};

use crate::error::PageError;
use crate::store::{PageRead, PageStore, PinSet};

const TREE: TreeId = TreeId::HASH_FILTER;
const BLOCK_WORDS: usize = (FilterBlocks::BLOCK_BITS / u64::BITS) as usize;
/// Blocks that a page has room for.
const BLOCKS_PER_PAGE: usize = PAYLOAD_BYTES / (8 * BLOCK_WORDS);
/// Bits of a block that a hash sets.
const BITS_SET: u32 = 5;
const BITS_PER_BLOCK_LOG2: u32 = FilterBlocks::BLOCK_BITS.ilog2();

type FilterPage = Box<[u64]>;

/// Where the filter of a bucket is.
#[derive(Copy, Clone)]
struct Layout {
    /// Of each bucket.
    blocks: usize,
    buckets_per_page: u64,
    page_words: usize,
}

impl Layout {
    fn new(blocks: FilterBlocks) -> Self {
        let blocks = blocks.count();
        let buckets = BLOCKS_PER_PAGE / blocks;
        let page_words = buckets * blocks * BLOCK_WORDS;
        Self { blocks, buckets_per_page: buckets as u64, page_words }
    }

    fn leaf_of(self, turn: bool, bucket: u64) -> u64 {
        2 * (bucket / self.buckets_per_page) + u64::from(turn)
    }

    /// The word in its page, and the bits, by which a hash is known: one mask for each word of a
    /// block.
    fn place_of(self, bucket: u64, hash: u64) -> (usize, [u64; BLOCK_WORDS]) {
        let mixed = mixed(hash);
        let mut masks = [0; BLOCK_WORDS];
        for number in 0..BITS_SET {
            let bit = mixed >> (16 + number * BITS_PER_BLOCK_LOG2) & 0xff;
            masks[bit as usize / 64] |= 1 << (bit % 64);
        }
        (self.block_of(bucket, mixed), masks)
    }

    /// The first word of the block that a mixed hash chooses.
    fn block_of(self, bucket: u64, mixed: u64) -> usize {
        let block = ((mixed & 0xffff) as usize * self.blocks) >> 16;
        ((bucket % self.buckets_per_page) as usize * self.blocks + block) * BLOCK_WORDS
    }

    fn page_of(self, word: u64) -> FilterPage {
        vec![word; self.page_words].into_boxed_slice()
    }
}

/// Entries of a bucket share the high bits of their hashes.
fn mixed(hash: u64) -> u64 {
    let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 32
}

/// The filters of both turns.
pub(super) struct Filters {
    layout: Layout,
    turns: [Vec<Option<FilterPage>>; 2],
    /// Leaves that differ from memory.
    dirty: BTreeSet<u64>,
}

fn mirror(page: &FilterPage, into: &mut Page) {
    for (bytes, word) in into.payload_mut().as_chunks_mut().0.iter_mut().zip(page.iter()) {
        *bytes = word.to_le_bytes();
    }
}

impl Filters {
    pub(super) fn new(blocks: FilterBlocks) -> Self {
        let turns = [Vec::new(), Vec::new()];
        Self { layout: Layout::new(blocks), turns, dirty: BTreeSet::new() }
    }

    /// The leaf that holds the filter of a bucket.
    pub(super) fn leaf_of(&self, turn: bool, bucket: u64) -> u64 {
        self.layout.leaf_of(turn, bucket)
    }

    fn page(&self, turn: bool, bucket: u64) -> Option<&FilterPage> {
        let page = (bucket / self.layout.buckets_per_page) as usize;
        self.turns[usize::from(turn)].get(page)?.as_ref()
    }

    /// Whether a bucket may hold an entry with this hash.
    pub(super) fn may_hold(&self, turn: bool, bucket: u64, hash: u64) -> bool {
        let Some(page) = self.page(turn, bucket) else { return true };
        let (first, masks) = self.layout.place_of(bucket, hash);
        let words = &page[first..first + BLOCK_WORDS];
        words.iter().zip(masks).all(|(word, mask)| word & mask == mask)
    }

    /// The ends of what [`Self::may_hold`] reads, which may lie in two lines of a cache.
    pub(super) fn read_for(&self, turn: bool, bucket: u64, hash: u64) -> Option<[&u64; 2]> {
        let page = self.page(turn, bucket)?;
        let first = self.layout.block_of(bucket, mixed(hash));
        Some([first, first + BLOCK_WORDS - 1].map(|at| &page[at]))
    }

    /// The filter of a new bucket.
    pub(super) fn fill(&mut self, turn: bool, bucket: u64, hashes: impl Iterator<Item = u64>) {
        let layout = self.layout;
        self.dirty.insert(layout.leaf_of(turn, bucket));
        let pages = &mut self.turns[usize::from(turn)];
        let at = (bucket / layout.buckets_per_page) as usize;
        if pages.len() <= at {
            pages.resize_with(at + 1, || None);
        }
        let page = pages[at].get_or_insert_with(|| layout.page_of(0));
        for hash in hashes {
            let (first, masks) = layout.place_of(bucket, hash);
            for (word, mask) in page[first..first + BLOCK_WORDS].iter_mut().zip(masks) {
                *word |= mask;
            }
        }
    }

    /// Buckets of a turn before this one are gone.
    pub(super) fn drop_before(&mut self, turn: bool, bucket: u64) {
        let before = (bucket / self.layout.buckets_per_page) as usize;
        let pages = &mut self.turns[usize::from(turn)];
        let gone = before.min(pages.len());
        for (at, page) in pages[..gone].iter_mut().enumerate().rev() {
            if page.take().is_none() {
                break;
            }
            self.dirty.insert(2 * at as u64 + u64::from(turn));
        }
    }

    /// All buckets of a turn are gone.
    pub(super) fn drop_turn(&mut self, turn: bool) {
        let end = self.turns[usize::from(turn)].len() as u64;
        self.drop_before(turn, end * self.layout.buckets_per_page);
        self.turns[usize::from(turn)] = Vec::new();
    }

    /// Takes a leaf as it was mirrored; None for one that cannot be read. That one is all ones:
    /// buckets that are yet to be made share its page, and without a page they would be given an
    /// empty one, which denies all that is in the others.
    pub(super) fn load(&mut self, leaf: u64, payload: Option<&[u8]>) {
        let layout = self.layout;
        let pages = &mut self.turns[(leaf % 2) as usize];
        let at = (leaf / 2) as usize;
        if pages.len() <= at {
            pages.resize_with(at + 1, || None);
        }
        let mut page = layout.page_of(u64::MAX);
        if let Some(payload) = payload {
            for (word, bytes) in page.iter_mut().zip(payload.as_chunks().0) {
                *word = u64::from_le_bytes(*bytes);
            }
        }
        pages[at] = Some(page);
    }

    /// Whether there is such a leaf; it is mirrored again.
    pub(super) fn rewrite(&mut self, leaf: u64) -> bool {
        let page = self.turns[(leaf % 2) as usize].get((leaf / 2) as usize);
        let is_there = page.is_some_and(Option::is_some);
        if is_there {
            self.dirty.insert(leaf);
        }
        is_there
    }

    /// Leaves that mirror the filters of so many buckets.
    pub(super) fn leaves_of(&self, buckets: u64) -> u64 {
        buckets.div_ceil(self.layout.buckets_per_page)
    }

    pub(super) fn leaves_to_store(&self) -> u64 {
        self.dirty.len() as u64
    }

    pub(super) fn want_store(
        &self,
        store: &mut PageStore,
        pins: &mut PinSet,
        reads: &mut Vec<PageRead>,
    ) -> Result<bool, PageError> {
        let mut here = true;
        for &leaf in &self.dirty {
            // The leaf itself need not be read: it may be damaged, and nothing of it stays.
            here &= store.want_cut(pins, TREE, &(leaf..leaf + 1), false, reads)?;
        }
        Ok(here)
    }

    /// Mirrors what has changed into the leaves, which must have been wanted.
    pub(super) fn store(&mut self, store: &mut PageStore) {
        for leaf in std::mem::take(&mut self.dirty) {
            let pages = &self.turns[(leaf % 2) as usize];
            store.cut(TREE, &(leaf..leaf + 1));
            if let Some(page) = pages.get((leaf / 2) as usize).and_then(Option::as_ref) {
                mirror(page, store.page_mut(TREE, leaf));
            }
        }
    }

    /// All leaves as pages, in ascending order, of a table of one turn, the first.
    pub(super) fn pages(&self) -> Vec<Page> {
        let [first, _] = &self.turns;
        let made = (0..).zip(first).filter_map(|(number, page)| {
            let mut made = Page::empty(PageId { tree: TREE, level: 0, index: 2 * number });
            mirror(page.as_ref()?, &mut made);
            Some(made)
        });
        made.collect()
    }

    pub(super) fn resident_bytes(&self) -> u64 {
        let pages = self.turns.iter().flatten().flatten().count();
        let places: usize = self.turns.iter().map(Vec::capacity).sum();
        (pages * self.layout.page_words * 8 + places * 8) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Filters;
    use format::detection::FilterBlocks;

    fn hash(number: u64) -> u64 {
        let mixed = number.wrapping_mul(0xd6e8_feb8_6659_fd93);
        (mixed ^ mixed >> 29).wrapping_mul(0xa076_1d64_78bd_642f)
    }

    /// Buckets of 78 entries, whose hashes share their high bits, as in a table: none is denied.
    /// Of 100,000 others so many seem to be stored.
    fn seem_stored(filters: &mut Filters) -> usize {
        let in_bucket = |bucket: u64, number: u64| bucket << 54 | hash(number) >> 10;
        for bucket in 0..1000 {
            let hashes = (0..78).map(|n| in_bucket(bucket, bucket * 78 + n));
            filters.fill(true, bucket, hashes);
        }
        let mut wrong = 0;
        for bucket in 0..1000 {
            let mut stored = (0..78).map(|n| in_bucket(bucket, bucket * 78 + n));
            assert!(stored.all(|stored| filters.may_hold(true, bucket, stored)));
            let others = (0..100).map(|n| in_bucket(bucket, (1 << 40) + bucket * 100 + n));
            wrong += others.filter(|&other| filters.may_hold(true, bucket, other)).count();
        }
        wrong
    }

    #[test]
    fn what_is_stored_is_never_denied_and_what_is_not_mostly() {
        let mut filters = Filters::new(FilterBlocks::default());
        let wrong = seem_stored(&mut filters);
        assert!((500..1800).contains(&wrong), "{wrong} of 100,000 seem to be stored");
        assert!(filters.may_hold(false, 3, 4), "of a bucket without a filter nothing is known");
        let (leaf, lost) = (filters.leaf_of(true, 999), (999, hash(7)));
        assert!(!filters.may_hold(true, lost.0, lost.1));
        filters.load(leaf, None);
        filters.fill(true, 1000, std::iter::empty());
        assert!(filters.may_hold(true, lost.0, lost.1), "denied by a page that was lost");
        assert!(filters.rewrite(leaf), "a scrub cannot heal it");
        let bytes = filters.resident_bytes();
        filters.drop_before(true, 500);
        assert!(filters.resident_bytes() < bytes / 10 * 6);
    }

    #[test]
    fn more_bits_are_wrong_less_often() {
        let wrong = |bits| {
            let blocks = FilterBlocks::nearest_to(bits).unwrap();
            let mut filters = Filters::new(blocks);
            let wrong = seem_stored(&mut filters);
            let leaf = filters.leaf_of(true, 999);
            assert!(filters.rewrite(leaf) && !filters.rewrite(leaf + 2), "{bits} bits");
            wrong
        };
        let all = [3, 7, 10, 13, 16, 20, 23, 26].map(wrong);
        assert!(all.is_sorted_by(|more, less| more > less), "{all:?}");
        assert!(all[0] > 20_000 && all[4] < 200, "{all:?}");
    }
}
