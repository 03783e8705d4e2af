//! Appends what another bucket of the same dedup domain holds, without moving bytes.
//!
//! ```text
//! source's runs ─ those side by side ─> one span of chunks ─ extents of this value, in ToFree
//!                                         └ the volume maps the source's chunks there ─> runs
//! ```
//!
//! The caller maps, because a bucket does not know the volume of another. A mapping is one request
//! of the prefix order, as a write is: it is behind the intent and before the record that names it.
//! The reader pins the source until then.

use std::ops::Range;

use format::objects::CHUNK_BYTES;
use format::objects::segments::Run;
use store::RequestError;

use super::error::ValueError;
use super::reader::ValueReader;
use super::writer::ValueWriter;

/// Most chunks of one span.
const SPAN_CHUNKS_MAX: u64 = 4096;

/// Chunks of the source's volume that this one's is to map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkCopy {
    /// First byte in this bucket's volume.
    pub to_bytes: u64,
    /// First byte in the source's.
    pub from_bytes: u64,
    /// Whole chunks.
    pub length_bytes: u64,
}

/// Has the volume of this bucket map chunks of another.
pub type MapChunks<'a> = &'a mut dyn FnMut(ChunkCopy) -> Result<(), RequestError>;

impl ValueWriter {
    /// Appends the bytes in `range` of a value of another bucket. Nothing else is appended before
    /// or behind.
    ///
    /// # Errors
    /// [`ValueError`]; then the writer is to be dropped.
    pub fn map_from(
        &mut self,
        from: &mut ValueReader,
        range: Range<u64>,
        map: MapChunks<'_>,
    ) -> Result<(), ValueError> {
        let mut at = range.start;
        while at < range.end {
            let span = span_at(from, at..range.end)?;
            let Some((first, last)) = span.first().zip(span.last()) else {
                let mut bytes = store::zeroed((range.end - at) as usize)?;
                let found = from.read_at(at, &mut bytes)?;
                assert!(found == bytes.len(), "a value in its record has its bytes");
                return self.write(&bytes);
            };
            let chunks = first.first_chunk..last.end_chunk();
            let mut placed = chunks.start;
            let mut places = Vec::new();
            while placed < chunks.end {
                let place = self.next_place(chunks.end - placed)?;
                map(ChunkCopy {
                    to_bytes: place.start * CHUNK_BYTES,
                    from_bytes: placed * CHUNK_BYTES,
                    length_bytes: (place.end - place.start) * CHUNK_BYTES,
                })?;
                places.push((placed, place.clone()));
                placed += place.end - place.start;
            }
            for run in span {
                at += run.length_bytes;
                for moved in moved(run, &places) {
                    self.push_mapped(moved)?;
                }
            }
        }
        Ok(())
    }
}

/// The runs of a value's bytes from the first of `bytes` on that lie side by side; none when the
/// value lies in its record.
fn span_at(from: &mut ValueReader, bytes: Range<u64>) -> Result<Vec<Run>, ValueError> {
    let mut span: Vec<Run> = Vec::new();
    let mut at = bytes.start;
    while at < bytes.end {
        let Some((run, start)) = from.run_at(at)? else { break };
        let skip_bytes = u64::from(run.skip_bytes) + at - start;
        let mut part = Run {
            length_bytes: (start + run.length_bytes).min(bytes.end) - at,
            first_chunk: run.first_chunk + skip_bytes / CHUNK_BYTES,
            skip_bytes: (skip_bytes % CHUNK_BYTES) as u16,
        };
        let (begins, used) = match (span.first(), span.last()) {
            (Some(first), Some(last)) => (last.end_chunk(), last.end_chunk() - first.first_chunk),
            _ => (part.first_chunk, 0),
        };
        let left_bytes = (SPAN_CHUNKS_MAX - used) * CHUNK_BYTES;
        if part.first_chunk != begins || left_bytes == 0 {
            break;
        }
        part.length_bytes = part.length_bytes.min(left_bytes - u64::from(part.skip_bytes));
        at += part.length_bytes;
        span.push(part);
    }
    Ok(span)
}

/// Where a run of the source lies now: `places` have the first chunk there was and the chunks there
/// are.
fn moved(mut run: Run, places: &[(u64, Range<u64>)]) -> Vec<Run> {
    let mut runs = Vec::new();
    for (first, place) in places {
        let end = first + (place.end - place.start);
        if run.length_bytes == 0 || run.first_chunk >= end {
            continue;
        }
        assert!(run.first_chunk >= *first, "a run is moved from its first chunk on");
        let there = (end - run.first_chunk) * CHUNK_BYTES - u64::from(run.skip_bytes);
        let first_chunk = place.start + (run.first_chunk - first);
        let length_bytes = run.length_bytes.min(there);
        runs.push(Run { length_bytes, first_chunk, skip_bytes: run.skip_bytes });
        run =
            Run { length_bytes: run.length_bytes - length_bytes, first_chunk: end, skip_bytes: 0 };
    }
    assert!(run.length_bytes == 0, "all chunks of a span have a place");
    runs
}
