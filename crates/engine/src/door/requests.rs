//! What is asked of the core: by clients of a volume, and in the control language.

use std::ops::Range;
use std::sync::Arc;

use format::units::VolumeId;
use reduce::{ChunkBuf, Permit};

use crate::control::Verb;
use crate::copy_range::copied_range::CopiedRange;
use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::door::outcome::{Extent, ReadPieces};
use crate::door::reservation::Reservation;
use crate::door::volume::{QuotaShare, VolumeShared};
use crate::space::write_room::{ReservedFor, WriteRoom};
use crate::write::partial::Ack;

/// A request as the core sees it.
pub(crate) enum Request {
    Write(WriteRequest),
    Read(ReadRequest),
    Unmap(UnmapRequest),
    Reserve(ReserveRequest),
    Copy(CopyRequest),
    Flush { done: Done<()> },
    Extents(ExtentsRequest),
    Control(Box<Verb>),
}

impl Request {
    /// Whether it is a client's request to this volume.
    pub(crate) fn is_to(&self, volume: VolumeId) -> bool {
        match self {
            Self::Write(write) => write.volume.id == volume,
            Self::Read(read) => read.volume.id == volume,
            Self::Unmap(unmap) => unmap.volume.id == volume,
            Self::Reserve(reserve) => reserve.volume.id == volume,
            Self::Copy(copy) => copy.range.is_of(volume),
            Self::Extents(extents) => extents.volume.id == volume,
            Self::Flush { .. } | Self::Control(_) => false,
        }
    }

    /// Answers a request that nobody will look at any more.
    pub(crate) fn fail(self, error: RequestError) {
        match self {
            Self::Write(mut write) => write.fail(&error),
            Self::Unmap(unmap) => unmap.done.fail(error),
            Self::Reserve(reserve) => reserve.done.fail(error),
            Self::Copy(copy) => copy.ack.fail(&error),
            Self::Extents(extents) => extents.done.fail(error),
            Self::Read(read) => read.done.fail(error),
            Self::Flush { done } => done.fail(error),
            Self::Control(verb) => verb.fail(error),
        }
    }
}

pub(crate) struct ReadRequest {
    pub(crate) volume: Arc<VolumeShared>,
    pub(crate) offset_bytes: u64,
    pub(crate) length_bytes: u32,
    /// The count of changes before it was queued ([`crate::door::lookaside`]).
    pub(crate) as_of: u64,
    /// Its share of the memory for reads, until the reply is dropped.
    pub(crate) permit: Permit,
    pub(crate) done: Done<ReadPieces>,
}

pub(crate) struct WriteRequest {
    pub(crate) volume: Arc<VolumeShared>,
    pub(crate) offset_bytes: u64,
    pub(crate) buf: Arc<ChunkBuf>,
    /// Where in `buf` the bytes begin that are not in the write buffer yet.
    pub(crate) from_bytes: usize,
    /// Chunks that those touch.
    pub(crate) chunks: u64,
    /// Whether it covers its chunks wholly. Only then, and if its volume has no quota, is it
    /// acknowledged at the door: what must read the rest of a chunk first may still fail, and so
    /// may what a quota forbids.
    pub(crate) covers_whole_chunks: bool,
    /// Whether its worst case is reserved.
    pub(crate) reserved: bool,
    /// Answered when durable rather than when buffered.
    pub(crate) durable: bool,
    /// Its chunks are stored without a look-up and get no entry in the Hash-PBN table.
    pub(crate) unindexed: bool,
    pub(crate) answer: WriteAnswer,
    /// What it has reserved of its volume's quota.
    pub(crate) quota: Option<QuotaShare>,
    /// Whether it has left the write buffer's memory to wait for that
    /// ([`crate::space::quota_line`]).
    pub(crate) left_the_buffer: bool,
    /// Whether it had to wait for that.
    pub(crate) had_to_wait: bool,
}

/// How a write is answered.
pub(crate) enum WriteAnswer {
    /// Not any more: it was acknowledged at the door.
    Given,
    /// By this.
    Whole(Done<()>),
    /// By one answer for all writes of its vector.
    OfVector(Arc<Ack>),
    /// By one answer for all its parts, of which the first was about to enter the write buffer.
    InParts(Arc<Ack>),
}

impl WriteRequest {
    /// Bytes that it writes: all of them, unless a shrink stood before it in the queue when it was
    /// acknowledged at the door. Then it is taken as far as the volume still reaches, as if it
    /// had come before the shrink.
    pub(crate) fn length_bytes(&self) -> u64 {
        let length_bytes = self.buf.bytes().len() as u64;
        let reach_bytes = self.volume.size_bytes().saturating_sub(self.offset_bytes);
        if self.is_acknowledged() { length_bytes.min(reach_bytes) } else { length_bytes }
    }

    /// Whether it was acknowledged at the door.
    pub(crate) fn is_acknowledged(&self) -> bool {
        matches!(self.answer, WriteAnswer::Given)
    }

    /// Whether it was not answered, and nobody is left to hear of it.
    pub(crate) fn is_given_up(&self) -> bool {
        match &self.answer {
            WriteAnswer::Given => false,
            WriteAnswer::Whole(done) => done.is_gone(),
            WriteAnswer::OfVector(ack) | WriteAnswer::InParts(ack) => ack.is_gone(),
        }
    }

    /// That no write before it in its vector has failed: after one nothing more of it is done.
    pub(crate) fn check_vector(&self) -> Result<(), RequestError> {
        match &self.answer {
            WriteAnswer::OfVector(ack) if ack.is_told() => Err(RequestError::GivenUp),
            _ => Ok(()),
        }
    }

    /// Whether its volume's quota may forbid it: not if it was acknowledged already, nor if it has
    /// its share.
    pub(crate) fn is_under_a_quota(&self) -> bool {
        matches!(self.answer, WriteAnswer::Whole(_) | WriteAnswer::OfVector(_))
            && self.quota.is_none()
            && self.volume.quota_bytes().is_some()
    }

    /// Bytes of its volume that it writes.
    pub(crate) fn range_bytes(&self) -> Range<u64> {
        self.offset_bytes..self.offset_bytes + self.buf.bytes().len() as u64
    }

    /// Its answer, one for all its parts; none if it was given at the door.
    pub(crate) fn answer(&mut self) -> Option<Arc<Ack>> {
        let ack = match std::mem::replace(&mut self.answer, WriteAnswer::Given) {
            WriteAnswer::Given => return None,
            WriteAnswer::Whole(done) => Ack::new(Some(done)),
            WriteAnswer::OfVector(ack) | WriteAnswer::InParts(ack) => ack,
        };
        self.answer = WriteAnswer::InParts(Arc::clone(&ack));
        Some(ack)
    }

    /// It is acknowledged by the call that brings it.
    pub(crate) fn acknowledge_at_the_door(&mut self) {
        if let WriteAnswer::Whole(done) = std::mem::replace(&mut self.answer, WriteAnswer::Given) {
            done.not_needed();
        }
    }

    /// It fails, unless it was acknowledged.
    pub(crate) fn fail(&mut self, error: &RequestError) {
        if let Some(ack) = self.answer() {
            ack.fail(error);
        }
    }
}

/// A reservation that is asked for.
pub(crate) struct ReserveRequest {
    pub(crate) volume: Arc<VolumeShared>,
    /// Under which its sender has the volume open.
    pub(crate) open_id: u64,
    pub(crate) room: WriteRoom,
    pub(crate) reserved_for: ReservedFor,
    pub(crate) done: Done<Reservation>,
}

pub(crate) struct UnmapRequest {
    pub(crate) volume: Arc<VolumeShared>,
    pub(crate) offset_bytes: u64,
    pub(crate) length_bytes: u64,
    pub(crate) durable: bool,
    /// What it covers of chunks in part may stay as it is where there is no room for their rest.
    pub(crate) is_advice: bool,
    pub(crate) done: Done<()>,
}

/// A range that another volume is to map.
pub(crate) struct CopyRequest {
    /// What is not in the write buffer yet.
    pub(crate) range: CopiedRange,
    pub(crate) durable: bool,
    /// Whether its worst case is reserved.
    pub(crate) reserved: bool,
    /// One answer for all its parts, of which the first is about to enter the write buffer.
    pub(crate) ack: Arc<Ack>,
}

pub(crate) struct ExtentsRequest {
    pub(crate) volume: Arc<VolumeShared>,
    pub(crate) offset_bytes: u64,
    pub(crate) length_bytes: u64,
    pub(crate) extents_max: u32,
    pub(crate) done: Done<Vec<Extent>>,
}
