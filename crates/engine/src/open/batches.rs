//! How much an opening reads at once.
//!
//! An opening waits for what it has asked for. Over a device that answers after 30 ms it does not
//! matter how much it reads, but how often it waits: its *rounds*. So it asks for as much at once
//! as there is memory for, level by level: the pages that thousands of changes are going to need,
//! the inner pages of all trees, the leaves of filters, megabytes of the journal.
//!
//! The memory is that of the cache for pages, of which an opening uses little yet: a batch is a
//! share of it. Of caches with fewer than [`SMALL_CACHE_PAGES`] the shares would be no batches, and
//! stores with fewer than [`SMALL_TABLES_BLOCKS`] have not enough to read; there an opening reads
//! in the least steps that it can do with. No store has such tables that was made as
//! [`crate::plan`] says, but those of the simulator have: what they read, and in which order, is
//! what it was before there were batches, so that the digests of runs can be compared.

use format::BLOCK_BYTES;
use format::pointer_page::FANOUT;
use format::units::CONTAINER_BYTES;

/// Caches with fewer pages are too small for batches.
const SMALL_CACHE_PAGES: usize = 2048;

/// Tables with fewer blocks, 64 MiB, are too small for batches.
pub(crate) const SMALL_TABLES_BLOCKS: u64 = (64 << 20) / BLOCK_BYTES as u64;

/// The bound of all batches of pages: 64 MiB.
const PAGES_MAX: usize = (64 << 20) / BLOCK_BYTES;

/// How much is read at once, at most.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Batches {
    /// Of the cache; none where that or the store is too small.
    cache_pages: Option<usize>,
}

impl Batches {
    /// With a cache of so many pages, of tables of so many blocks.
    pub(crate) fn of(cache_pages: usize, tables_blocks: u64) -> Self {
        let is_large = cache_pages >= SMALL_CACHE_PAGES && tables_blocks >= SMALL_TABLES_BLOCKS;
        Self { cache_pages: is_large.then_some(cache_pages) }
    }

    /// A share of the cache; `small` where that is too small.
    fn share(self, part: usize, small: usize) -> usize {
        self.cache_pages.map_or(small, |pages| (pages / part).clamp(small, PAGES_MAX))
    }

    /// Inner pages that are read past the cache when trees are walked.
    pub(crate) fn walked_pages(self) -> usize {
        self.share(4, 256)
    }

    /// Leaves that are read into the cache, and leave it again.
    pub(crate) fn leaves(self) -> usize {
        self.share(4, 512)
    }

    /// Inner pages above so many leaves.
    pub(crate) fn stems(self) -> u64 {
        self.cache_pages.map_or(1, |_| (self.leaves() / FANOUT + 1) as u64)
    }

    /// Changes whose pages are read together and held until all are applied: a few pages each.
    pub(crate) fn changes(self) -> usize {
        self.share(8, 256)
    }

    /// Changes from which on no further record is waited for. Where there are no batches each
    /// record is applied before the next one is read.
    pub(crate) fn changes_of_records(self) -> usize {
        self.cache_pages.map_or(0, |_| self.changes())
    }

    /// Frames of a container whose chunks are looked for together.
    pub(crate) fn frames(self) -> usize {
        self.share(8, 1)
    }

    /// Bytes of a container that are read where frames lie one behind the other.
    pub(crate) fn stretch_bytes(self) -> u32 {
        self.cache_pages.map_or(256 << 10, |_| CONTAINER_BYTES)
    }

    /// Bytes of the journal.
    pub(crate) fn journal_bytes(self) -> usize {
        self.cache_pages.map_or(0, |_| 4 << 20)
    }
}
