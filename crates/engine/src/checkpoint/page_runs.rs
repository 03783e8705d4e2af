//! Table pages on their way to disk: those of consecutive blocks go as one write.

use std::collections::VecDeque;

use disk::{AlignedBuf, SharedBuf};
use format::BLOCK_BYTES;
use tables::PageWrite;

/// Pages of one write.
const PAGES_PER_WRITE: usize = 256;

/// The bytes of pages, one after the other.
pub(crate) fn page_bytes(run: &[PageWrite]) -> SharedBuf {
    let mut buf = AlignedBuf::new_stale(run.len() * BLOCK_BYTES);
    for (target, write) in buf.chunks_exact_mut(BLOCK_BYTES).zip(run) {
        target.copy_from_slice(write.page.as_bytes());
    }
    SharedBuf::from(buf)
}

/// Takes pages of consecutive blocks from the front.
pub(crate) fn take_run(writes: &mut VecDeque<PageWrite>) -> Option<Vec<PageWrite>> {
    let first = writes.pop_front()?;
    let mut run = vec![first];
    while run.len() < PAGES_PER_WRITE
        && let Some(next) = writes.front()
        && let Some(last) = run.last()
        && next.block == last.block + 1
    {
        run.extend(writes.pop_front());
    }
    Some(run)
}
