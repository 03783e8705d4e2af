//! Chunks that are written in part: some bytes, and where the others come from.
//!
//! A write of bytes of a chunk takes its place in the order of the intake queue, like any other
//! write, and what is around them is taken from what was written before: so two writers of one
//! sector keep each their own bytes (decision 055).

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use reduce::{ChunkBuf, ChunkRef};

use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::write::written::Written;

/// A chunk of which only some bytes have been written.
pub(crate) struct Partial {
    pub(crate) base: Base,
    /// The whole chunk; only bytes of `written` count.
    pub(crate) overlay: Vec<u8>,
    pub(crate) written: Written,
    /// A buffer whose write-buffer credit pays for `overlay`.
    pub(crate) credit: Option<Arc<ChunkBuf>>,
    /// Requests to be answered once the chunk is whole.
    pub(crate) acks: Vec<Arc<Ack>>,
}

/// Bytes that a request writes into one chunk.
pub(crate) struct ChunkPart<'a> {
    pub(crate) offset_bytes: usize,
    pub(crate) length_bytes: usize,
    /// The request's buffer and where in it the bytes begin; None writes zeros.
    pub(crate) source: Option<(&'a Arc<ChunkBuf>, usize)>,
    /// A buffer whose write-buffer credit pays for the whole chunk, if any does.
    pub(crate) credit: Option<&'a Arc<ChunkBuf>>,
    /// None where nobody waits for an answer.
    pub(crate) ack: Option<&'a Arc<Ack>>,
}

/// The answer to a request that ends in several parts: told when the last has ended, or at the
/// first failure.
pub(crate) struct Ack {
    parts_left: AtomicU32,
    done: Mutex<Option<Done<()>>>,
}

impl Ack {
    /// An answer that one part, the caller's own, still holds back.
    pub(crate) fn new(done: Option<Done<()>>) -> Arc<Self> {
        Arc::new(Self { parts_left: AtomicU32::new(1), done: Mutex::new(done) })
    }

    /// The answer to a vector of writes, each of which is a part.
    pub(crate) fn of_vector(writes: usize, done: Done<()>) -> Arc<Self> {
        let parts_left = AtomicU32::new(u32::try_from(writes).unwrap_or(u32::MAX));
        Arc::new(Self { parts_left, done: Mutex::new(Some(done)) })
    }

    /// Whether it was told. While a part is left that says that another one has failed.
    pub(crate) fn is_told(&self) -> bool {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    fn take(&self) -> Option<Done<()>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether somebody was to be told who is gone.
    pub(crate) fn is_gone(&self) -> bool {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.as_ref().is_some_and(Done::is_gone)
    }

    /// One part more holds the answer back.
    pub(crate) fn hold(&self) {
        self.parts_left.fetch_add(1, Ordering::Relaxed);
    }

    /// A part has ended well.
    pub(crate) fn part_done(&self) {
        if self.parts_left.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(done) = self.take()
        {
            done.reply(());
        }
    }

    /// A part has failed: so has the request.
    pub(crate) fn fail(&self, error: &RequestError) {
        if let Some(done) = self.take() {
            done.fail(error.clone());
        }
    }
}

/// Where the unwritten bytes of a partial chunk come from.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    Zeros,
    /// What the map says once all earlier groups are filled.
    Stored,
    /// A slot of an earlier group (or the map, once that group is applied).
    Buffered {
        group: u64,
        slot: usize,
    },
    /// What a copy between volumes makes of it, which group `group` is.
    Copied {
        group: u64,
    },
    /// A read of it is under way.
    Reading,
}

impl Partial {
    /// The whole chunk, its unwritten bytes taken from `base` (zeros when None). Requests that
    /// waited for it are answered.
    pub(crate) fn fill(mut self, base: Option<&[u8]>) -> ChunkRef {
        self.written.complete(&mut self.overlay, base);
        self.acks.iter().for_each(|ack| ack.part_done());
        let length_bytes = self.overlay.len();
        let buf = Arc::new(ChunkBuf::keeping(self.overlay, self.credit.into_iter().collect()));
        ChunkRef::new(buf, 0, length_bytes as u32)
    }
}

/// Chunks that a range covers in part.
pub(crate) fn ragged_chunks(range: Range<u64>, chunk_bytes: u32) -> u64 {
    let chunk_bytes = u64::from(chunk_bytes);
    if range.is_empty() {
        return 0;
    }
    let touched = range.end.div_ceil(chunk_bytes) - range.start / chunk_bytes;
    let ends = [range.start, range.end];
    let ragged = ends.iter().filter(|end| !end.is_multiple_of(chunk_bytes)).count();
    touched.min(ragged as u64)
}
