//! Writes, from the intake queue to the tables.
//!
//! ```text
//! write.rs (in order) -> buffer.rs (acknowledged) -> group.rs (fingerprinted, looked up,
//!    partial.rs fills        slot.rs: one chunk          compressed: workers)
//!    what is in parts (written.rs)   fingerprinting.rs: or by an accelerator
//! unmap.rs (TRIM) ----------------------------------> commit.rs -> record.rs (the journal)
//! ```
//!
//! Here, writes enter the write buffer, in the order of the intake queue.

pub(crate) mod buffer;
pub(crate) mod commit;
pub(crate) mod fingerprinting;
pub(crate) mod group;
pub(crate) mod job_tag;
pub(crate) mod new_chunks;
pub(crate) mod newest;
pub(crate) mod offloaded;
pub(crate) mod partial;
pub(crate) mod slot;
pub(crate) mod unmap;
pub(crate) mod warm;
pub(crate) mod written;

use std::ops::Range;
use std::sync::Arc;

use format::units::Lba;
use mutants::mutant;
use reduce::{ChunkBuf, ChunkRef};

use crate::core::flush_queue::Answer;
use crate::door::error::RequestError;
use crate::door::requests::{Request, WriteRequest};
use crate::door::volume::VolumeShared;
use crate::engine::Engine;
use crate::space::waiting::Waiting;
use crate::stats::stages::CoreStage;
use crate::write::partial::{Ack, ChunkPart};
use crate::write::slot::SlotData;

impl Engine {
    /// Takes what doors have queued, in order.
    pub(crate) fn take_requests(&mut self) -> bool {
        self.core.published.is_waited_for |= self.core.intake.take(&mut self.requests);
        let moved = !self.requests.is_empty();
        while let Some(request) = self.requests.pop_front() {
            self.take_request(request);
        }
        moved
    }

    fn take_request(&mut self, request: Request) {
        if let Some(error) = self.refusal(&request) {
            return request.fail(error);
        }
        match request {
            Request::Write(write) if write.is_under_a_quota() => self.wait_for_quota(write),
            Request::Write(write) => self.take_admitted(write),
            Request::Read(read) => {
                let begun = self.core.stages.now();
                self.accept_read(read);
                self.core.stages.within(CoreStage::Reads, begun);
            }
            Request::Unmap(unmap) => self.accept_unmap(unmap),
            Request::Reserve(reserve) => self.accept_reserve(reserve),
            Request::Copy(copy) => self.accept_copy(copy),
            Request::Flush { done } => self.core.accept_flush(done),
            Request::Extents(extents) => self.accept_extents(extents),
            Request::Control(verb) => self.accept_verb(*verb),
        }
    }

    /// Why a request that changes something cannot be taken, if so. A write that was acknowledged
    /// at the door is taken in any case, to be read from the write buffer: nobody was told that it
    /// failed.
    fn refusal(&self, request: &Request) -> Option<RequestError> {
        let may = match request {
            Request::Read(_) | Request::Extents(_) => true,
            Request::Write(write) => write.is_acknowledged(),
            Request::Control(verb) => !verb.changes(),
            _ => false,
        };
        if may { None } else { self.core.stopped.clone() }
    }

    /// A write that no quota forbids enters the open group, or waits for space.
    pub(crate) fn take_admitted(&mut self, write: WriteRequest) {
        match write.reserved {
            true => self.buffer_write(write),
            false => self.core.waiting.push_back(Waiting::Write(write)),
        }
    }

    /// A write whose worst case is reserved enters the open group.
    pub(crate) fn buffer_write(&mut self, mut write: WriteRequest) {
        let chunks = write.chunks;
        if self.buffer_part(&mut write, chunks)
            && let Some(ack) = write.answer()
        {
            self.acknowledge(ack, write.durable && !mutant!(ForgetsFuaOfWrite));
        }
    }

    /// The next `chunks` of a write enter the open group; false when the volume forbids it and the
    /// write has failed.
    pub(crate) fn buffer_part(&mut self, write: &mut WriteRequest, chunks: u64) -> bool {
        let chunk_bytes = u64::from(self.core.geometry.chunk_bytes);
        let length_bytes = write.length_bytes();
        let change = write.volume.check_change(write.offset_bytes, length_bytes);
        if let Err(error) = change.and_then(|()| write.check_vector()) {
            self.fail_reserved(write, chunks, &error);
            return false;
        }
        // Of one that was acknowledged nobody waits for anything.
        let ack = write.answer();
        if ack.is_some() {
            self.core.intake.lookaside.stamp(write.volume.id, write.range_bytes());
        }
        let first = (write.offset_bytes + write.from_bytes as u64) / chunk_bytes;
        let end_bytes = ((first + chunks) * chunk_bytes).min(write.offset_bytes + length_bytes);
        let part = write.from_bytes..(end_bytes - write.offset_bytes) as usize;
        if write.from_bytes == 0 {
            self.core.counters.writes += 1;
        }
        self.core.counters.bytes_written += part.len() as u64;
        if !part.is_empty() {
            let (volume, ack) = (&write.volume, ack.as_ref());
            self.buffer_chunks(volume, write.offset_bytes, &write.buf, part.clone(), ack);
            if write.unindexed && !mutant!(ForgetsHint) {
                self.core.buffer.leave_unindexed(write.volume.id, first..first + chunks);
            }
            self.core.buffer.reserve_with_newest(chunks);
        } else {
            self.core.intake.lock().space.settle(chunks);
        }
        write.from_bytes = part.end;
        write.chunks -= chunks;
        if write.chunks == 0 {
            self.core.buffer.hold_quota_with_newest(write.quota.take());
        }
        true
    }

    /// A write of which the next `chunks` are reserved fails.
    pub(crate) fn fail_reserved(
        &mut self,
        write: &mut WriteRequest,
        chunks: u64,
        error: &RequestError,
    ) {
        self.core.intake.lock().space.settle(chunks);
        write.fail(error);
        // What is in groups already counts until it is mapped.
        self.core.buffer.hold_quota_with_newest(write.quota.take());
    }

    /// Ends the request's own part of its answer: now, or when it is durable.
    pub(crate) fn acknowledge(&mut self, ack: Arc<Ack>, durable: bool) {
        if durable {
            let group = self.core.buffer.newest_group();
            self.core.flushes.wait_for(group, Answer::Ack(ack));
        } else {
            ack.part_done();
        }
    }

    fn buffer_chunks(
        &mut self,
        volume: &VolumeShared,
        offset_bytes: u64,
        buf: &Arc<ChunkBuf>,
        part: Range<usize>,
        ack: Option<&Arc<Ack>>,
    ) {
        let chunk_bytes = u64::from(self.core.geometry.chunk_bytes);
        let end_bytes = offset_bytes + part.end as u64;
        let mut at_bytes = offset_bytes + part.start as u64;
        while at_bytes < end_bytes {
            let lba = Lba(at_bytes / chunk_bytes);
            let skip_bytes = at_bytes % chunk_bytes;
            let take_bytes = (chunk_bytes - skip_bytes).min(end_bytes - at_bytes);
            let source_bytes = (at_bytes - offset_bytes) as usize;
            if take_bytes == chunk_bytes {
                let chunk = ChunkRef::new(Arc::clone(buf), source_bytes as u32, chunk_bytes as u32);
                self.core.buffer.put(volume.id, lba, SlotData::Whole(chunk));
            } else if ack.is_none() {
                let chunk = cut_chunk(buf, source_bytes, take_bytes as usize, chunk_bytes as usize);
                self.core.buffer.put(volume.id, lba, SlotData::Whole(chunk));
            } else {
                let part = ChunkPart {
                    offset_bytes: skip_bytes as usize,
                    length_bytes: take_bytes as usize,
                    source: Some((buf, source_bytes)),
                    credit: Some(buf),
                    ack,
                };
                self.core.buffer.put_part(volume.id, lba, &part);
            }
            at_bytes += take_bytes;
        }
    }
}

/// The last chunk of a write that was acknowledged, and cut off by a shrink before it in the queue.
/// Behind the end of a volume are zeros: to ask what was there could fail, and nobody would hear.
fn cut_chunk(
    buf: &Arc<ChunkBuf>,
    at_bytes: usize,
    take_bytes: usize,
    chunk_bytes: usize,
) -> ChunkRef {
    let mut bytes = vec![0; chunk_bytes];
    bytes[..take_bytes].copy_from_slice(&buf.bytes()[at_bytes..at_bytes + take_bytes]);
    let buf = ChunkBuf::keeping(bytes, vec![Arc::clone(buf)]);
    ChunkRef::new(Arc::new(buf), 0, chunk_bytes as u32)
}
