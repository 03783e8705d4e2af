//! What is asked of the core: by clients of a volume, and by whoever administers the store.

use std::ops::Range;
use std::sync::Arc;

use disk::FurtherFiles;
use format::catalog::{Dedup, Origin};
use format::units::{Compression, VolumeId};
use reduce::{ChunkBuf, Permit};

use crate::collect::step::CollectRequest;
use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::door::opens::Opener;
use crate::door::volume::{QuotaShare, VolumeShared};
use crate::explain::explanation::Address;
use crate::grow::GrowOptions;
use crate::scrub::ScrubRequest;
use crate::walk::difference::DifferenceRequest;
use crate::walk::weight::WeightRequest;
use crate::write::partial::Ack;

/// A request as the core sees it.
pub(crate) enum Request {
    Write(WriteRequest),
    Read(ReadRequest),
    Unmap(UnmapRequest),
    Flush { done: Done },
    Extents(ExtentsRequest),
    Admin { request: AdminRequest, done: Done },
}

impl Request {
    /// Whether it is a client's request to this volume.
    pub(crate) fn is_to(&self, volume: VolumeId) -> bool {
        match self {
            Self::Write(write) => write.volume.id == volume,
            Self::Read(read) => read.volume.id == volume,
            Self::Unmap(unmap) => unmap.volume.id == volume,
            Self::Extents(extents) => extents.volume.id == volume,
            Self::Flush { .. } | Self::Admin { .. } => false,
        }
    }

    /// Answers a request that nobody will look at any more.
    pub(crate) fn fail(self, error: RequestError) {
        match self {
            Self::Write(mut write) => write.fail(&error),
            Self::Unmap(unmap) => unmap.done.fail(error),
            Self::Extents(extents) => extents.done.fail(error),
            Self::Read(read) => read.done.fail(error),
            Self::Flush { done } | Self::Admin { done, .. } => done.fail(error),
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
    pub(crate) done: Done,
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
    Whole(Done),
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
            WriteAnswer::InParts(ack) => ack.is_gone(),
        }
    }

    /// Whether its volume's quota may forbid it: not if it was acknowledged already.
    pub(crate) fn is_under_a_quota(&self) -> bool {
        matches!(self.answer, WriteAnswer::Whole(_)) && self.volume.quota_bytes().is_some()
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
            WriteAnswer::InParts(ack) => ack,
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

pub(crate) struct UnmapRequest {
    pub(crate) volume: Arc<VolumeShared>,
    pub(crate) offset_bytes: u64,
    pub(crate) length_bytes: u64,
    pub(crate) durable: bool,
    /// What it covers of chunks in part may stay as it is where there is no room for their rest.
    pub(crate) is_advice: bool,
    pub(crate) done: Done,
}

pub(crate) struct ExtentsRequest {
    pub(crate) volume: Arc<VolumeShared>,
    pub(crate) offset_bytes: u64,
    pub(crate) length_bytes: u64,
    pub(crate) extents_max: u32,
    pub(crate) done: Done,
}

/// What changes or lists volumes and settings; each is what the method of [`crate::Client`] of the
/// same name does.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the methods of the client say what each is and takes")]
pub enum AdminRequest {
    OpenVolume { name: String, opener: Opener },
    Opens { name: String },
    ListVolumes { after: Option<String>, most: usize },
    CreateVolume(NewVolume),
    ResizeVolume { name: String, size_bytes: u64, may_shrink: bool },
    RenameVolume { name: String, new_name: String },
    SetQuota { name: String, quota_bytes: Option<u64> },
    SetDedup { name: String, dedup: Dedup },
    DeleteVolume(DeleteRequest),
    TakeSnapshots(SnapshotRequest),
    TakeCopied(SnapshotRequest, Origin),
    CloneVolume { snapshot: String, name: String },
    Rollback { snapshot: String, id: Option<u32> },
    SetCompression(Compression),
    Compression,
    Stats,
    Geometry,
    Grow { options: GrowOptions, files: FurtherFiles },
    Explain { volume: String, address: Address },
    Difference(DifferenceRequest),
    Weigh(WeightRequest),
    Scrub(ScrubRequest),
    Collect(CollectRequest),
    Close,
}

/// A volume that is to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewVolume {
    /// Its name.
    pub name: String,
    /// Its logical size.
    pub size_bytes: u64,
    /// Whether writes are refused.
    pub read_only: bool,
    /// The domain whose chunks it shares, and no others'; it begins with its first volume. None:
    /// the default one.
    pub domain: Option<String>,
}

/// Snapshots to be taken at one moment.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SnapshotRequest {
    /// Of which volumes.
    pub volumes: Vec<String>,
    /// Name of each: `volume@name`.
    pub name: String,
    /// When they were asked for, in seconds since 1970: the core has no clock. They are of later,
    /// if they have to wait for room.
    pub taken_unix_s: u64,
}

/// What is to be deleted: what had a name when somebody decided on it, who may have been asked and
/// taken some time. Numbers are given once, and each is greater than those before.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DeleteRequest {
    /// A volume, or `VOLUME@SNAPSHOT`.
    pub name: String,
    /// Whether the volume's snapshots go as well.
    #[serde(default)]
    pub with_snapshots: bool,
    /// Its number; none: that of whatever has the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    /// The greatest number that may go; none: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<u32>,
}

impl DeleteRequest {
    /// Whatever has this name, alone.
    #[must_use]
    pub fn of(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }
}

impl AdminRequest {
    /// Volumes, snapshots and clones that it makes.
    pub(crate) fn versions_made(&self) -> u64 {
        match self {
            Self::CreateVolume(_) | Self::CloneVolume { .. } => 1,
            Self::TakeSnapshots(request) | Self::TakeCopied(request, _) => {
                request.volumes.len() as u64
            }
            _ => 0,
        }
    }

    /// Whether it changes the store.
    pub(crate) fn changes(&self) -> bool {
        !matches!(
            self,
            Self::OpenVolume { .. }
                | Self::Opens { .. }
                | Self::ListVolumes { .. }
                | Self::Compression
                | Self::Stats
                | Self::Geometry
                | Self::Explain { .. }
                | Self::Difference(_)
                | Self::Weigh(_)
                | Self::Scrub(_)
                | Self::Collect(_)
                | Self::Close
        )
    }
}
