//! Which blocks of zone `tables` are free.
//!
//! A block that is freed may still be named by a root slot. Freed before the freeze of root `g`, it
//! is named by `g - 1` at most, whose slot is overwritten by root `g + 1`: it is free once that is
//! durable. A block that was allocated and freed since the last freeze was never named by a root
//! and is free at once, unless its write is still on the way.
//!
//! Allocation is next-fit and prefers segments of [`SEGMENT_BLOCKS`] that are wholly free, so that
//! what is written together lies together.

use hashbrown::HashSet;

const SEGMENT_BLOCKS: u64 = 256;

/// Blocks found in use by [`crate::ReachWalker`].
#[derive(Default)]
pub(crate) struct ReachedBlocks {
    pub(crate) used: HashSet<u64>,
    /// Of those, named by the older root only.
    pub(crate) older_only: Vec<u64>,
}

pub(crate) struct Blocks {
    /// A bit per block: in use.
    bits: Vec<u64>,
    count: u64,
    free: u64,
    next: u64,
    /// Allocated since the last freeze.
    young: HashSet<u64>,
    /// Freed since the last freeze; by the freeze under way; before the newest durable root.
    freed: Vec<u64>,
    frozen: Vec<u64>,
    waiting: Vec<u64>,
}

impl Blocks {
    pub(crate) fn new(count: u64) -> Self {
        let mut blocks = Self {
            bits: vec![0; count.div_ceil(64) as usize],
            count,
            free: count,
            next: 1,
            young: HashSet::new(),
            freed: Vec::new(),
            frozen: Vec::new(),
            waiting: Vec::new(),
        };
        blocks.set_used(0);
        blocks
    }

    pub(crate) fn adopt(&mut self, reached: ReachedBlocks) {
        for block in reached.used {
            self.set_used(block);
        }
        self.waiting = reached.older_only;
    }

    fn is_used(&self, block: u64) -> bool {
        self.bits[(block / 64) as usize] >> (block % 64) & 1 == 1
    }

    fn set_used(&mut self, block: u64) {
        if block < self.count && !self.is_used(block) {
            self.bits[(block / 64) as usize] |= 1 << (block % 64);
            self.free -= 1;
        }
    }

    fn set_free(&mut self, block: u64) {
        if self.is_used(block) {
            self.bits[(block / 64) as usize] &= !(1 << (block % 64));
            self.free += 1;
        }
    }

    pub(crate) fn allocate(&mut self) -> Option<u64> {
        if self.free == 0 {
            return None;
        }
        if self.next % SEGMENT_BLOCKS == 0 || self.next >= self.count || self.is_used(self.next) {
            self.next = self.next_free_segment().unwrap_or_else(|| self.next_free());
        }
        let block = self.next;
        self.set_used(block);
        self.young.insert(block);
        self.next += 1;
        Some(block)
    }

    /// The next wholly free segment after the present place.
    fn next_free_segment(&self) -> Option<u64> {
        let segments = self.count / SEGMENT_BLOCKS;
        let words = (SEGMENT_BLOCKS / 64) as usize;
        let begin = self.next.div_ceil(SEGMENT_BLOCKS);
        (0..segments).map(|offset| (begin + offset) % segments).find_map(|segment| {
            let first = segment as usize * words;
            let empty = self.bits[first..first + words].iter().all(|&word| word == 0);
            empty.then_some(segment * SEGMENT_BLOCKS)
        })
    }

    fn next_free(&self) -> u64 {
        let words = self.bits.len();
        let begin = (self.next / 64) as usize % words;
        for offset in 0..=words {
            let at = (begin + offset) % words;
            let free = !self.bits[at];
            if free != 0 {
                let block = at as u64 * 64 + u64::from(free.trailing_zeros());
                if block < self.count {
                    return block;
                }
            }
        }
        self.next
    }

    pub(crate) fn free(&mut self, block: u64, in_flight: bool) {
        if !in_flight && self.young.remove(&block) {
            self.set_free(block);
        } else {
            self.freed.push(block);
        }
    }

    /// Blocks allocated from now on until the freeze ends are the root's.
    pub(crate) fn begin_freeze(&mut self) {
        self.young.clear();
    }

    pub(crate) fn end_freeze(&mut self) {
        self.young.clear();
        self.frozen.append(&mut self.freed);
    }

    pub(crate) fn checkpoint_durable(&mut self) {
        for block in std::mem::take(&mut self.waiting) {
            self.set_free(block);
        }
        self.waiting = std::mem::take(&mut self.frozen);
    }

    pub(crate) fn free_blocks(&self) -> u64 {
        self.free
    }

    pub(crate) fn quarantined_blocks(&self) -> u64 {
        (self.freed.len() + self.frozen.len() + self.waiting.len()) as u64
    }
}
