//! Raw memory in whole blocks: the one place that allocates and frees what devices read and write.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use format::units::BLOCK_BYTES;

/// An allocation of whole blocks, aligned to a block. All of its bytes are initialised, always.
pub(crate) struct Memory {
    start: NonNull<u8>,
    capacity_bytes: usize,
}

// SAFETY: a `Memory` is the only owner of its allocation, and plain bytes belong to no thread.
unsafe impl Send for Memory {}
// SAFETY: a shared `Memory` only gives out shared slices of plain bytes.
unsafe impl Sync for Memory {}

impl Memory {
    /// No memory at all.
    pub(crate) const EMPTY: Self = Self { start: NonNull::dangling(), capacity_bytes: 0 };

    /// Zeroed memory of `capacity_bytes`, which is a multiple of a block.
    pub(crate) fn allocate(capacity_bytes: usize) -> Self {
        if capacity_bytes == 0 {
            return Self::EMPTY;
        }
        let layout = Self::layout(capacity_bytes);
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        match NonNull::new(start) {
            Some(start) => Self { start, capacity_bytes },
            None => handle_alloc_error(layout),
        }
    }

    /// Aligned to a block, unless the memory is empty.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(crate) fn capacity_bytes(&self) -> usize {
        self.capacity_bytes
    }

    fn layout(capacity_bytes: usize) -> Layout {
        #[expect(clippy::expect_used, reason = "only a length beyond isize::MAX has no layout")]
        Layout::from_size_align(capacity_bytes, BLOCK_BYTES).expect("a buffer fits the machine")
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.capacity_bytes != 0 {
            // SAFETY: allocated by `allocate` with this very layout, and freed only here.
            unsafe { dealloc(self.start.as_ptr(), Self::layout(self.capacity_bytes)) };
        }
    }
}
