//! Writes enter the write buffer, in the order of the intake queue.

use std::ops::Range;
use std::sync::Arc;

use format::units::Lba;
use mutants::mutant;
use reduce::{ChunkBuf, ChunkRef};

use crate::core::Core;
use crate::door::error::RequestError;
use crate::door::requests::WriteRequest;
use crate::door::volume::VolumeShared;
use crate::space::waiting::Waiting;
use crate::write::partial::{Ack, ChunkPart};
use crate::write::slot::SlotData;

/// A write that no quota forbids enters the open group, or waits for space.
pub(crate) fn take_admitted(core: &mut Core, write: WriteRequest) {
    match write.reserved {
        true => buffer_write(core, write),
        false => core.waiting.push_back(Waiting::Write(write)),
    }
}

/// A write whose worst case is reserved enters the open group.
pub(crate) fn buffer_write(core: &mut Core, mut write: WriteRequest) {
    let chunks = write.chunks;
    if buffer_part(core, &mut write, chunks)
        && let Some(ack) = write.answer()
    {
        core.acknowledge(ack, write.durable && !mutant!(ForgetsFuaOfWrite));
    }
}

/// The next `chunks` of a write enter the open group; false when the volume forbids it and the
/// write has failed.
pub(crate) fn buffer_part(core: &mut Core, write: &mut WriteRequest, chunks: u64) -> bool {
    let chunk_bytes = u64::from(core.geometry.chunk_bytes);
    let length_bytes = write.length_bytes();
    let change = write.volume.check_change(write.offset_bytes, length_bytes);
    if let Err(error) = change.and_then(|()| write.check_vector()) {
        fail_reserved(core, write, chunks, &error);
        return false;
    }
    // Of one that was acknowledged nobody waits for anything.
    let ack = write.answer();
    if ack.is_some() {
        core.intake.lookaside.stamp(write.volume.id, write.range_bytes());
    }
    let first = (write.offset_bytes + write.from_bytes as u64) / chunk_bytes;
    let end_bytes = ((first + chunks) * chunk_bytes).min(write.offset_bytes + length_bytes);
    let part = write.from_bytes..(end_bytes - write.offset_bytes) as usize;
    if write.from_bytes == 0 {
        core.counters.writes += 1;
    }
    core.counters.bytes_written += part.len() as u64;
    if !part.is_empty() {
        let (volume, ack) = (&write.volume, ack.as_ref());
        buffer_chunks(core, volume, write.offset_bytes, &write.buf, part.clone(), ack);
        if write.unindexed && !mutant!(ForgetsHint) {
            core.buffer.leave_unindexed(write.volume.id, first..first + chunks);
        }
        core.buffer.reserve_with_newest(chunks);
    } else {
        core.intake.lock().space.settle(chunks);
    }
    write.from_bytes = part.end;
    write.chunks -= chunks;
    if write.chunks == 0 {
        core.buffer.hold_quota_with_newest(write.quota.take());
    }
    true
}

/// A write of which the next `chunks` are reserved fails.
pub(crate) fn fail_reserved(
    core: &mut Core,
    write: &mut WriteRequest,
    chunks: u64,
    error: &RequestError,
) {
    core.intake.lock().space.settle(chunks);
    write.fail(error);
    // What is in groups already counts until it is mapped.
    core.buffer.hold_quota_with_newest(write.quota.take());
}

fn buffer_chunks(
    core: &mut Core,
    volume: &VolumeShared,
    offset_bytes: u64,
    buf: &Arc<ChunkBuf>,
    part: Range<usize>,
    ack: Option<&Arc<Ack>>,
) {
    let chunk_bytes = u64::from(core.geometry.chunk_bytes);
    let end_bytes = offset_bytes + part.end as u64;
    let mut at_bytes = offset_bytes + part.start as u64;
    while at_bytes < end_bytes {
        let lba = Lba(at_bytes / chunk_bytes);
        let skip_bytes = at_bytes % chunk_bytes;
        let take_bytes = (chunk_bytes - skip_bytes).min(end_bytes - at_bytes);
        let source_bytes = (at_bytes - offset_bytes) as usize;
        if take_bytes == chunk_bytes {
            let chunk = ChunkRef::new(Arc::clone(buf), source_bytes as u32, chunk_bytes as u32);
            core.buffer.put(volume.id, lba, SlotData::Whole(chunk));
        } else if ack.is_none() {
            let chunk = cut_chunk(buf, source_bytes, take_bytes as usize, chunk_bytes as usize);
            core.buffer.put(volume.id, lba, SlotData::Whole(chunk));
        } else {
            let part = ChunkPart {
                offset_bytes: skip_bytes as usize,
                length_bytes: take_bytes as usize,
                source: Some((buf, source_bytes)),
                credit: Some(buf),
                ack,
            };
            core.buffer.put_part(volume.id, lba, &part);
        }
        at_bytes += take_bytes;
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
