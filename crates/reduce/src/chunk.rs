//! The bytes that a client wrote, on their way from the door to the container.
//!
//! A door takes a [`ChunkBuf`], fills it while it is the only owner, and hands it over. From then
//! on it is shared and never changed: every chunk of the write is a [`ChunkRef`] into it, which
//! fingerprinting, compression and reads of the write buffer use without copying.
//!
//! The write buffer is bounded by *permits*: a buffer carries the one that it was admitted with,
//! and the permit is given back when the last reference goes, wherever that is. So back-pressure
//! can neither be forgotten nor given back twice.

use crate::pool;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

/// Bytes of the write buffer that its holder may use; given back when dropped.
pub struct Permit {
    give_back: Arc<dyn Fn(usize) + Send + Sync>,
    bytes: usize,
}

impl Permit {
    /// A permit over `bytes`, for which `give_back(bytes)` is called once, on drop.
    #[must_use]
    pub fn new(give_back: Arc<dyn Fn(usize) + Send + Sync>, bytes: usize) -> Self {
        Self { give_back, bytes }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        (self.give_back)(self.bytes);
    }
}

impl Debug for Permit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// An owned buffer of plain bytes: written by one owner, then shared and read only.
pub struct ChunkBuf {
    /// May be longer than the buffer: the pool hands out whole size classes.
    bytes: Vec<u8>,
    length_bytes: usize,
    /// Whether `bytes` goes back to the pool.
    pooled: bool,
    /// Held for its drop only; after `bytes` has gone back to the pool.
    permit: Option<Permit>,
    /// Other buffers whose permits pay for what was copied from them into this one.
    credit: Vec<Arc<ChunkBuf>>,
}

impl ChunkBuf {
    /// A buffer over bytes that are there already, without a permit.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self::keeping(bytes, Vec::new())
    }

    /// A buffer of `length_bytes` of pooled memory that holds `permit` until it is dropped.
    /// Its contents are unspecified: the caller fills all of it.
    #[must_use]
    pub fn with_permit(length_bytes: usize, permit: Permit) -> Self {
        let mut buf = Self::pooled(length_bytes);
        buf.permit = Some(permit);
        buf
    }

    /// The same without a permit, for what is bounded in another way.
    #[must_use]
    pub fn pooled(length_bytes: usize) -> Self {
        let bytes = pool::take(length_bytes);
        Self { bytes, length_bytes, pooled: true, permit: None, credit: Vec::new() }
    }

    /// A buffer over `bytes` that were copied out of other buffers, and keeps those buffers'
    /// permits for as long as it lives.
    #[must_use]
    pub fn keeping(bytes: Vec<u8>, credit: Vec<Arc<ChunkBuf>>) -> Self {
        let length_bytes = bytes.len();
        Self { bytes, length_bytes, pooled: false, permit: None, credit }
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length_bytes]
    }

    /// Forgets the bytes behind the first `length_bytes`. Their memory stays, and so does the
    /// permit.
    pub fn truncate(&mut self, length_bytes: usize) {
        self.length_bytes = self.length_bytes.min(length_bytes);
    }

    /// From now on it holds this permit, and no longer the one that it was admitted with.
    pub fn replace_permit(&mut self, permit: Permit) {
        self.permit = Some(permit);
    }

    /// The bytes, to be filled while there is one owner.
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.length_bytes]
    }
}

impl AsRef<[u8]> for ChunkBuf {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl Drop for ChunkBuf {
    fn drop(&mut self) {
        if self.pooled {
            pool::give_back(std::mem::take(&mut self.bytes));
        }
    }
}

impl Debug for ChunkBuf {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkBuf")
            .field("length_bytes", &self.length_bytes)
            .field("permit", &self.permit)
            .field("credit", &self.credit.len())
            .finish_non_exhaustive()
    }
}

/// A part of a shared [`ChunkBuf`]: one chunk.
#[derive(Clone, Debug)]
pub struct ChunkRef {
    buf: Arc<ChunkBuf>,
    offset_bytes: u32,
    length_bytes: u32,
}

impl ChunkRef {
    /// The `length_bytes` at `offset_bytes` of `buf`.
    ///
    /// # Panics
    /// When that range is not inside the buffer: a mistake of the caller, found here and not on a
    /// worker.
    #[must_use]
    pub fn new(buf: Arc<ChunkBuf>, offset_bytes: u32, length_bytes: u32) -> Self {
        let end_bytes = u64::from(offset_bytes) + u64::from(length_bytes);
        assert!(end_bytes <= buf.length_bytes as u64, "a chunk reaches beyond its buffer");
        Self { buf, offset_bytes, length_bytes }
    }

    /// The chunk's bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        let start = self.offset_bytes as usize;
        &self.buf.bytes()[start..start + self.length_bytes as usize]
    }

    /// The buffer that the chunk is a part of.
    #[must_use]
    pub fn buf(&self) -> &Arc<ChunkBuf> {
        &self.buf
    }
}

/// Chunks for one job. Neighbours mostly lie in one buffer, and a reference to a buffer costs two
/// writes to a cache line that two processors fight for: so one is held per buffer, not per chunk.
#[derive(Debug, Default)]
pub struct ChunkBatch {
    bufs: Vec<Arc<ChunkBuf>>,
    chunks: Vec<BatchedChunk>,
}

#[derive(Copy, Clone, Debug)]
struct BatchedChunk {
    buf: u32,
    offset_bytes: u32,
    length_bytes: u32,
}

impl ChunkBatch {
    /// A batch with room for `chunks` chunks.
    #[must_use]
    pub fn with_capacity(chunks: usize) -> Self {
        // Of scattered writes each chunk has its own buffer.
        Self { bufs: Vec::with_capacity(chunks), chunks: Vec::with_capacity(chunks) }
    }

    /// Adds a chunk at the end.
    pub fn push(&mut self, chunk: &ChunkRef) {
        if !self.bufs.last().is_some_and(|last| Arc::ptr_eq(last, &chunk.buf)) {
            self.bufs.push(Arc::clone(&chunk.buf));
        }
        let buf = (self.bufs.len() - 1) as u32;
        let ChunkRef { offset_bytes, length_bytes, .. } = *chunk;
        self.chunks.push(BatchedChunk { buf, offset_bytes, length_bytes });
    }

    /// Number of chunks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.chunks.len()
    }

    /// Bytes of all chunks; known without a look at any buffer.
    #[must_use]
    pub fn length_bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.length_bytes as usize).sum()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The chunks' bytes, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.chunks.iter().map(|chunk| {
            let start = chunk.offset_bytes as usize;
            &self.bufs[chunk.buf as usize].bytes()[start..start + chunk.length_bytes as usize]
        })
    }
}

impl<'a> FromIterator<&'a ChunkRef> for ChunkBatch {
    fn from_iter<I: IntoIterator<Item = &'a ChunkRef>>(chunks: I) -> Self {
        let chunks = chunks.into_iter();
        let mut batch = Self::with_capacity(chunks.size_hint().0);
        chunks.for_each(|chunk| batch.push(chunk));
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::{ChunkBatch, ChunkBuf, ChunkRef, Permit};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn counting_permit(bytes: usize) -> (Permit, Arc<AtomicUsize>) {
        let given_back = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&given_back);
        let give_back = move |bytes| {
            counter.fetch_add(bytes, Ordering::Relaxed);
        };
        (Permit::new(Arc::new(give_back), bytes), given_back)
    }

    #[test]
    fn the_permit_comes_back_once_with_the_last_reference() {
        let (permit, given_back) = counting_permit(8192);
        let mut buf = ChunkBuf::with_permit(8192, permit);
        buf.bytes_mut().fill(7);
        let buf = Arc::new(buf);
        let first = ChunkRef::new(Arc::clone(&buf), 0, 4096);
        let second = ChunkRef::new(Arc::clone(&buf), 4096, 4096);
        drop((buf, first.clone(), first));
        assert_eq!(given_back.load(Ordering::Relaxed), 0);
        assert_eq!(second.bytes(), [7; 4096]);
        drop(second);
        assert_eq!(given_back.load(Ordering::Relaxed), 8192);
    }

    /// The one copy of a write is the door's: what it filled is what workers read.
    #[test]
    fn a_batch_reads_where_the_door_wrote() {
        let mut buf = ChunkBuf::pooled(8192);
        let written = buf.bytes_mut().as_ptr_range();
        let buf = Arc::new(buf);
        let chunks = [0, 4096].map(|at| ChunkRef::new(Arc::clone(&buf), at, 4096));
        let batch: ChunkBatch = chunks.iter().collect();
        let read: Vec<_> = batch.iter().map(<[u8]>::as_ptr_range).collect();
        assert_eq!((read[0].start, read[0].end), (written.start, read[1].start));
        assert_eq!(read[1].end, written.end);
    }

    #[test]
    fn a_batch_holds_each_buffer_once_and_gives_its_chunks_in_order() {
        let bufs = [1, 2].map(|byte| Arc::new(ChunkBuf::new(vec![byte; 8192])));
        let chunk = |buf: usize, at: u32| ChunkRef::new(Arc::clone(&bufs[buf]), at * 4096, 4096);
        let chunks = [chunk(0, 0), chunk(0, 1), chunk(1, 1), chunk(0, 1)];
        let batch: ChunkBatch = chunks.iter().collect();
        drop(chunks);
        assert_eq!((batch.len(), batch.length_bytes()), (4, 4 * 4096));
        assert_eq!(batch.iter().map(|bytes| bytes[0]).collect::<Vec<_>>(), [1, 1, 2, 1]);
        assert_eq!(Arc::strong_count(&bufs[0]), 3);
        assert_eq!(Arc::strong_count(&bufs[1]), 2);
    }

    #[test]
    fn a_copy_keeps_the_permit_of_what_it_was_copied_from() {
        let (permit, given_back) = counting_permit(512);
        let source = Arc::new(ChunkBuf::with_permit(512, permit));
        let copy = ChunkBuf::keeping(vec![1; 4096], vec![source]);
        assert_eq!(given_back.load(Ordering::Relaxed), 0);
        assert_eq!(copy.bytes().len(), 4096);
        drop(copy);
        assert_eq!(given_back.load(Ordering::Relaxed), 512);
    }

    #[test]
    fn a_pooled_buffer_is_exactly_as_long_as_asked() {
        for length_bytes in [512, 4096, 4608, 1 << 20, (1 << 20) + 512] {
            let mut buf = ChunkBuf::with_permit(length_bytes, counting_permit(length_bytes).0);
            assert_eq!(buf.bytes().len(), length_bytes);
            assert_eq!(buf.bytes_mut().len(), length_bytes);
        }
    }

    #[test]
    #[should_panic(expected = "beyond its buffer")]
    fn a_chunk_outside_its_buffer_is_refused_at_once() {
        let _ = ChunkRef::new(Arc::new(ChunkBuf::new(vec![0; 4096])), 1, 4096);
    }
}
