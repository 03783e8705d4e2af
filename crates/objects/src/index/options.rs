//! What is chosen when an index is made, and when it is opened.

use format::BLOCK_BYTES;
use format::objects::header::{RING_BYTES_MAX, RING_BYTES_MIN};

/// Least memory that an index works in.
pub const INDEX_MEMORY_BYTES_MIN: u64 = 1 << 20;

/// Pages that one change makes dirty at most on average: its leaf, a split, its share of the nodes
/// above.
const PAGES_PER_CHANGE: u64 = 3;

/// What is fixed when the index of a bucket is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexCreateOptions {
    /// Identity of the bucket: random bytes of the caller's.
    pub uuid: [u8; 16],
    /// Length of the log's ring, thin; brought into its bounds, in whole blocks.
    pub ring_bytes: u64,
}

impl IndexCreateOptions {
    /// A ring of 256 MiB.
    #[must_use]
    pub fn new(uuid: [u8; 16]) -> Self {
        Self { uuid, ring_bytes: 256 << 20 }
    }

    pub(crate) fn ring_bytes_allowed(&self) -> u64 {
        let blocks = self.ring_bytes.clamp(RING_BYTES_MIN, RING_BYTES_MAX) / BLOCK_BYTES as u64;
        blocks * BLOCK_BYTES as u64
    }
}

/// What is chosen each time an index is opened.
#[derive(Clone, Copy, Debug)]
pub struct IndexOptions {
    /// Bounds cache, memory tables and pages on their way together.
    pub memory_bytes: u64,
    /// Refuse changes: the volume is a snapshot.
    pub read_only: bool,
}

impl Default for IndexOptions {
    /// 256 MiB.
    fn default() -> Self {
        Self { memory_bytes: 256 << 20, read_only: false }
    }
}

/// The shares of an index's memory. Half of it is for the two memory tables: where the cache does
/// not hold the tree, a merge reads and writes a leaf for nearly each of its changes, so that a
/// table of twice the length halves what a put costs (decision 059), and a larger cache saves a
/// fraction of the reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares {
    /// Of redb's cache.
    pub(crate) cache_bytes: usize,
    /// From here on the memory table is to be merged.
    pub(crate) merge_due_bytes: usize,
    /// Beyond this `apply` merges before it goes on. While one table is merged another one grows,
    /// so twice this is taken at most.
    pub(crate) active_bytes_max: usize,
    /// Changes of one step of a merge.
    pub(crate) step_changes: usize,
    /// Bytes of their keys and values.
    pub(crate) step_bytes: usize,
}

impl Shares {
    pub(crate) fn of(options: &IndexOptions) -> Self {
        let memory_bytes = options.memory_bytes.max(INDEX_MEMORY_BYTES_MIN);
        let page_bytes = PAGES_PER_CHANGE * BLOCK_BYTES as u64;
        Self {
            cache_bytes: (memory_bytes / 4) as usize,
            merge_due_bytes: (memory_bytes / 5) as usize,
            active_bytes_max: (memory_bytes / 4) as usize,
            step_changes: (memory_bytes / 8 / page_bytes) as usize,
            step_bytes: (memory_bytes / 16) as usize,
        }
    }
}
