//! How long and how many: what the rooms of values agree on, in one place.
//!
//! Tests have smaller ones, so that few bytes make regions full and lists deep.

use format::objects::segments::{BLOCK_ENTRIES_MAX, LIST_ENTRIES_MAX};

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Most entries of a list in a record.
    pub(super) list_entries: usize,
    /// Most entries of a block.
    pub(super) block_entries: usize,
    /// Padded segments are written when they are longer; a value that never was lies in a region.
    pub(super) ready_bytes: usize,
    /// Chunks of a region.
    pub(super) region_chunks: u64,
    /// A region of which less is left is freed.
    pub(super) region_rest_chunks: u64,
    /// Regions kept while nobody uses them: as many as there are puts side by side.
    pub(super) idle_regions: usize,
    /// Chunks of the first extent of a long value and of the longest.
    pub(super) data_chunks: (u64, u64),
    /// The same of blocks of its list.
    pub(super) blocks_chunks: (u64, u64),
}

impl Limits {
    /// Those of buckets: regions of 16 MiB, extents of 4 to 64 MiB, blocks in 64 KiB to 16 MiB.
    pub(super) const OF_BUCKETS: Self = Self {
        list_entries: LIST_ENTRIES_MAX,
        block_entries: BLOCK_ENTRIES_MAX,
        ready_bytes: 1 << 20,
        region_chunks: 4096,
        region_rest_chunks: 64,
        idle_regions: 4096,
        data_chunks: (1024, 16384),
        blocks_chunks: (16, 4096),
    };
}
