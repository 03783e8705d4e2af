//! Memory that a device can read and write directly: aligned to blocks, owned, recycled.
//!
//! An [`AlignedBuf`] has one owner and is filled by it, or by a read that owns it in flight. Once
//! its bytes are final it becomes a [`SharedBuf`], which is never changed again: several writes,
//! and readers of what is still being written, may hold parts of it at once.
//!
//! Dropped buffers go back to a shelf ([`crate::pool`]) rather than to the allocator, so that a
//! server in steady state neither maps memory nor takes page faults.

use std::fmt;
use std::hint::black_box;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use format::units::BLOCK_BYTES;

use crate::allocation::Memory;
use crate::pool;

/// Owned bytes whose address is a multiple of [`BLOCK_BYTES`], as direct I/O asks for.
///
/// Any length is allowed in memory; a disk takes only whole blocks.
pub struct AlignedBuf {
    memory: Memory,
    length_bytes: usize,
}

impl AlignedBuf {
    /// A buffer of zeros.
    #[must_use]
    pub fn new_zeroed(length_bytes: usize) -> Self {
        match pool::take(length_bytes) {
            Some(memory) => {
                let mut buf = Self { memory, length_bytes };
                buf.fill(0);
                buf
            }
            None => Self::fresh(length_bytes),
        }
    }

    /// A buffer whose bytes are whatever an earlier user left: for a read, which fills all of it.
    #[must_use]
    pub fn new_stale(length_bytes: usize) -> Self {
        match pool::take(length_bytes) {
            Some(memory) => Self { memory, length_bytes },
            None => Self::fresh(length_bytes),
        }
    }

    /// A copy of `bytes`, zero-filled up to a whole number of blocks.
    #[must_use]
    pub fn padded(bytes: &[u8]) -> Self {
        let mut buf = Self::new_stale(bytes.len().next_multiple_of(BLOCK_BYTES));
        let (head, tail) = buf.split_at_mut(bytes.len());
        head.copy_from_slice(bytes);
        tail.fill(0);
        buf
    }

    /// Touches memory for so many buffers of this length and puts it on the shelf, as far as that
    /// has room: a caller that takes one later does not wait for the kernel.
    pub fn prepare(length_bytes: usize, buffers: usize) {
        let touched = || {
            let mut buf = Self::new_stale(length_bytes);
            black_box(&mut buf).fill(0xff);
            buf
        };
        drop(std::iter::repeat_with(touched).take(buffers).collect::<Vec<_>>());
    }

    /// Shortens the buffer; longer lengths than it has are ignored.
    pub fn truncate(&mut self, length_bytes: usize) {
        self.length_bytes = self.length_bytes.min(length_bytes);
    }

    fn fresh(length_bytes: usize) -> Self {
        Self { memory: Memory::allocate(pool::capacity_for(length_bytes)), length_bytes }
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `length_bytes` never exceeds the capacity, all of which is initialised; with a
        // capacity of zero the pointer is dangling, non-null, and the length zero.
        unsafe { std::slice::from_raw_parts(self.memory.start().as_ptr(), self.length_bytes) }
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`, and `&mut self` is the only way to the memory.
        unsafe { std::slice::from_raw_parts_mut(self.memory.start().as_ptr(), self.length_bytes) }
    }
}

impl AsRef<[u8]> for AlignedBuf {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        pool::put(std::mem::replace(&mut self.memory, Memory::EMPTY));
    }
}

impl fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBuf").field("length_bytes", &self.length_bytes).finish()
    }
}

/// A part of a buffer whose bytes are final; cheap to clone and to cut.
#[derive(Clone)]
pub struct SharedBuf {
    buf: Arc<AlignedBuf>,
    start: usize,
    end: usize,
}

impl SharedBuf {
    /// The part `range` of this part. A disk takes only parts that are whole blocks.
    ///
    /// # Panics
    /// When the range is not inside this part, as for slices.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        let part = &self[range.clone()];
        let (start, end) = (self.start + range.start, self.start + range.start + part.len());
        Self { buf: Arc::clone(&self.buf), start, end }
    }
}

impl From<AlignedBuf> for SharedBuf {
    fn from(buf: AlignedBuf) -> Self {
        let end = buf.len();
        Self { buf: Arc::new(buf), start: 0, end }
    }
}

impl Deref for SharedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buf[self.start..self.end]
    }
}

impl AsRef<[u8]> for SharedBuf {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for SharedBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedBuf").field("length_bytes", &self.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_zeroed_even_when_recycled() {
        for length_bytes in [0, 1, 4095, 4096, 4097, 65536, 5 << 20] {
            for _ in 0..3 {
                let mut buf = AlignedBuf::new_zeroed(length_bytes);
                assert_eq!(buf.len(), length_bytes);
                assert!(length_bytes == 0 || buf.as_ptr().addr().is_multiple_of(BLOCK_BYTES));
                assert!(buf.iter().all(|&byte| byte == 0));
                buf.fill(0xa5);
            }
        }
    }

    #[test]
    fn what_was_prepared_is_taken_from_the_shelf() {
        // Of a length that no other test of this process takes.
        let length_bytes = 2 << 20;
        AlignedBuf::prepare(length_bytes, 2);
        let prepared = [pool::take(length_bytes), pool::take(length_bytes)];
        assert!(prepared.iter().all(Option::is_some));
        assert!(pool::take(length_bytes).is_none());
    }

    #[test]
    fn padding_is_zeros() {
        drop(AlignedBuf::padded(&[0xff; 4096]));
        let buf = AlignedBuf::padded(b"tamis");
        assert_eq!(buf.len(), BLOCK_BYTES);
        assert_eq!(&buf[..5], b"tamis");
        assert!(buf[5..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn parts_of_parts_share_one_buffer() {
        let whole = SharedBuf::from(AlignedBuf::padded(&[1, 2, 3, 4, 5]));
        let part = whole.slice(1..4).slice(1..3);
        assert_eq!(&*part, &[3, 4]);
        assert_eq!(part.as_ptr(), whole[2..].as_ptr());
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn a_part_cannot_reach_beyond_its_part() {
        let part = SharedBuf::from(AlignedBuf::new_zeroed(8192)).slice(0..4096);
        let _ = part.slice(0..4097);
    }
}
