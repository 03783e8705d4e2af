//! The one place where doors' threads and the core's thread meet.
//!
//! A request enters a queue; its place there is its place in the one order of the store. A write
//! is acknowledged *here*, on the door's own thread, as soon as it has both of:
//!
//! * credits of the write buffer (taken when its buffer was made, given back when the buffer is
//!   dropped): memory is bounded, and a fast client is slowed to the speed of the store;
//! * a reservation of space for its worst case (every chunk unique and incompressible, every
//!   table page it may touch new): what is acknowledged has its room.
//!
//! Since the queue is FIFO, a read that comes after an acknowledgement is looked at by the core
//! after that write is in the write buffer: read-your-writes needs no further lock.
//!
//! A write without a reservation is queued unacknowledged; the core lets it wait while space can
//! be collected and fails it with no-space when not.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use disk::{Doorbell, FurtherFiles};
use format::BLOCK_BYTES;
use format::catalog::{Dedup, Origin};
use format::directory::DIRECTORY_ENTRY_BYTES;
use format::frame::FRAME_HEADER_BYTES;
use format::units::Compression;
use reduce::{ChunkBuf, Permit};

use crate::collect::step::CollectRequest;
use crate::credits::Credits;
use crate::difference::DifferenceRequest;
use crate::done::Done;
use crate::error::RequestError;
use crate::explanation::Address;
use crate::grow::GrowOptions;
use crate::lookaside::Lookaside;
use crate::options::Options;
use crate::partial::Ack;
use crate::scrub::ScrubRequest;
use crate::stages::Expanding;
use crate::volume::{QuotaShare, VolumeShared};
use crate::weight::WeightRequest;

/// Table pages that one chunk may make new: a leaf of the map with an inner page above, a bucket
/// and the pages of its PBN.
pub(crate) const PAGES_PER_CHUNK_MAX: u64 = 4;

/// A request as the core sees it.
pub(crate) enum Request {
    Write(WriteRequest),
    Read(ReadRequest),
    Unmap(UnmapRequest),
    Flush { done: Done },
    Extents(ExtentsRequest),
    Admin { request: AdminRequest, done: Done },
}

pub(crate) struct ReadRequest {
    pub(crate) volume: Arc<VolumeShared>,
    pub(crate) offset_bytes: u64,
    pub(crate) length_bytes: u32,
    /// The count of changes before it was queued ([`crate::lookaside`]).
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
    pub(crate) at_the_door: bool,
    /// Whether its worst case is reserved.
    pub(crate) reserved: bool,
    /// Answered when durable rather than when buffered.
    pub(crate) durable: bool,
    /// None when it was acknowledged at the door.
    pub(crate) done: Option<Done>,
    /// Its answer, once the first part is in the write buffer.
    pub(crate) ack: Option<Arc<Ack>>,
    /// What it has reserved of its volume's quota.
    pub(crate) quota: Option<QuotaShare>,
    /// Whether it has left the write buffer to wait for that ([`crate::quota_line`]).
    pub(crate) aside: bool,
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
        self.done.is_none() && self.ack.is_none()
    }

    /// Whether its volume's quota may forbid it: not if it was acknowledged already.
    pub(crate) fn is_under_a_quota(&self) -> bool {
        self.done.is_some() && self.volume.quota_bytes().is_some()
    }

    /// Bytes of its volume that it writes.
    pub(crate) fn range_bytes(&self) -> Range<u64> {
        self.offset_bytes..self.offset_bytes + self.buf.bytes().len() as u64
    }

    /// Its answer: one for all its parts.
    pub(crate) fn answer(&mut self) -> Arc<Ack> {
        let done = &mut self.done;
        Arc::clone(self.ack.get_or_insert_with(|| Ack::new(done.take())))
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
    OpenVolume { name: String },
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

/// What the core sees as free, worst cases of applied writes already taken off.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpaceLimit {
    /// Worst cases of requests that containers take.
    pub(crate) bytes: u64,
    /// Chunks whose pages find blocks in the tables.
    pub(crate) chunks: u64,
    /// Writes wait for space: later ones may not overtake them.
    pub(crate) is_waited_for: bool,
}

/// Space that may still be promised, and what is promised already.
#[derive(Debug)]
pub(crate) struct SpaceBudget {
    chunk_bytes: u32,
    pub(crate) limit: SpaceLimit,
    reserved_bytes: u64,
    reserved_chunks: u64,
}

impl SpaceBudget {
    /// Nothing may be promised yet.
    fn new(chunk_bytes: u32) -> Self {
        let limit = SpaceLimit::default();
        Self { chunk_bytes, limit, reserved_bytes: 0, reserved_chunks: 0 }
    }

    /// Bytes of containers that one request of `chunks` takes at worst, with the padding of a flush
    /// behind it; one of none takes nothing.
    fn worst_case_bytes(&self, chunks: u64) -> u64 {
        let beside = (FRAME_HEADER_BYTES + DIRECTORY_ENTRY_BYTES) as u64;
        let padding_bytes = if chunks > 0 { BLOCK_BYTES as u64 } else { 0 };
        chunks * (u64::from(self.chunk_bytes) + beside) + padding_bytes
    }

    /// Reserves the worst case of a write of `chunks`, or says that it does not fit now.
    pub(crate) fn try_reserve(&mut self, chunks: u64) -> bool {
        if self.lacks(chunks) {
            return false;
        }
        self.reserved_bytes += self.worst_case_bytes(chunks);
        self.reserved_chunks += chunks;
        true
    }

    /// Whether a write of `chunks` does not fit now.
    pub(crate) fn lacks(&self, chunks: u64) -> bool {
        self.lacks_bytes(chunks) || self.lacks_chunks(chunks)
    }

    /// Whether it is room for frames that a write of `chunks` does not find.
    pub(crate) fn lacks_bytes(&self, chunks: u64) -> bool {
        chunks > 0 && self.reserved_bytes + self.worst_case_bytes(chunks) > self.limit.bytes
    }

    /// Whether it is blocks of the tables that a write of `chunks` does not find.
    pub(crate) fn lacks_chunks(&self, chunks: u64) -> bool {
        chunks > 0 && self.reserved_chunks + chunks > self.limit.chunks
    }

    /// Gives a reservation back, its write having been applied or dropped.
    pub(crate) fn settle(&mut self, chunks: u64) {
        self.reserved_bytes -= self.worst_case_bytes(chunks);
        self.reserved_chunks -= chunks;
    }

    /// Worst-case bytes for which room is reserved.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.reserved_bytes
    }

    /// Chunks for which room is reserved.
    pub(crate) fn reserved_chunks(&self) -> u64 {
        self.reserved_chunks
    }

    /// Reserves nothing more until the limit is set again; for how many chunks room is reserved.
    pub(crate) fn withhold_chunks(&mut self) -> u64 {
        self.limit.chunks = self.reserved_chunks;
        self.reserved_chunks
    }
}

pub(crate) struct IntakeState {
    requests: VecDeque<Request>,
    pub(crate) space: SpaceBudget,
    /// Set once: every further request gets it.
    refused: Option<RequestError>,
    /// Set once: every further write gets it.
    writes_refused: Option<RequestError>,
}

impl IntakeState {
    fn refusal_of_writes(&self) -> Option<RequestError> {
        self.refused.as_ref().or(self.writes_refused.as_ref()).cloned()
    }
}

/// The queue between doors and the core.
pub(crate) struct Intake {
    state: Mutex<IntakeState>,
    doorbell: Doorbell,
    /// Of the write buffer.
    pub(crate) credits: Arc<Credits>,
    /// Of reads under way.
    pub(crate) read_credits: Arc<Credits>,
    /// For reads that need not come here.
    pub(crate) lookaside: Lookaside,
    pub(crate) expanding: Arc<Expanding>,
    pub(crate) chunk_bytes: u32,
    pub(crate) sync: bool,
}

impl Intake {
    /// `lookaside_bytes`: of memory for what finds frames for doors.
    pub(crate) fn new(
        doorbell: Doorbell,
        options: &Options,
        chunk_bytes: u32,
        lookaside_bytes: u64,
    ) -> Self {
        Self {
            state: Mutex::new(IntakeState {
                requests: VecDeque::new(),
                space: SpaceBudget::new(chunk_bytes),
                refused: None,
                writes_refused: None,
            }),
            doorbell,
            credits: Arc::new(Credits::new(options.write_buffer_bytes())),
            read_credits: Arc::new(Credits::new(options.read_bytes())),
            lookaside: Lookaside::new(lookaside_bytes, chunk_bytes),
            expanding: Arc::default(),
            chunk_bytes,
            sync: options.sync,
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, IntakeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a write; true when it is acknowledged by this call.
    pub(crate) fn write(&self, mut request: WriteRequest) -> bool {
        let mut state = self.lock();
        if let Some(error) = state.refusal_of_writes() {
            drop(state);
            if let Some(done) = request.done {
                done.fail(error);
            }
            return false;
        }
        request.reserved =
            !state.space.limit.is_waited_for && state.space.try_reserve(request.chunks);
        // Quotas are set under this lock: a write behind one in the queue is judged by it.
        let acknowledged = request.reserved
            && !request.durable
            && request.at_the_door
            && request.volume.quota_bytes().is_none();
        if acknowledged {
            request.done = None;
            self.lookaside.stamp(request.volume.id, request.range_bytes());
        }
        state.requests.push_back(Request::Write(request));
        drop(state);
        self.doorbell.ring();
        acknowledged
    }

    /// What a write would be answered with at once, if writes are refused.
    pub(crate) fn refusal_of_writes(&self) -> Option<RequestError> {
        self.lock().refusal_of_writes()
    }

    /// Queues any other request.
    pub(crate) fn push(&self, request: Request) {
        let mut state = self.lock();
        if let Some(error) = state.refused.clone() {
            drop(state);
            request.refuse(error);
            return;
        }
        state.requests.push_back(request);
        drop(state);
        self.doorbell.ring();
    }

    /// Moves all that is queued to the end of `into`.
    pub(crate) fn take(&self, into: &mut VecDeque<Request>) {
        into.append(&mut self.lock().requests);
    }

    /// The core has nothing to do: who waits for memory is told of what came back.
    pub(crate) fn call_waiters(&self) {
        self.credits.call();
        self.read_credits.call();
    }

    /// From now on no write is acknowledged: each is answered with `error`. Nor does any wait for
    /// room in the write buffer, which will not empty.
    pub(crate) fn refuse_writes(&self, error: RequestError) {
        self.lock().writes_refused.get_or_insert(error);
        self.credits.open_wide();
    }

    /// From now on every new request is answered with `error`.
    pub(crate) fn refuse(&self, error: RequestError) {
        self.lock().refused.get_or_insert(error);
        self.credits.open_wide();
        self.read_credits.open_wide();
    }
}

impl Request {
    fn refuse(self, error: RequestError) {
        match self {
            Self::Write(write) => {
                if let Some(done) = write.done {
                    done.fail(error);
                }
            }
            Self::Unmap(unmap) => unmap.done.fail(error),
            Self::Extents(extents) => extents.done.fail(error),
            Self::Read(read) => read.done.fail(error),
            Self::Flush { done } | Self::Admin { done, .. } => done.fail(error),
        }
    }

    /// Answers a request that the core will not look at any more.
    pub(crate) fn fail(self, error: &RequestError) {
        self.refuse(error.clone());
    }
}
