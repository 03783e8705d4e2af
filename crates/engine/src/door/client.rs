//! The handle through which doors reach a running engine.
//!
//! Data calls are asynchronous: they queue a request and its outcome arrives at a [`Completions`]
//! sink, on the core's thread (a sink must therefore not block). The blocking forms are for
//! callers with a thread to spare, never for the core's own.

use std::sync::Arc;
use std::sync::mpsc::{self, Sender};

use disk::FurtherFiles;
use format::superblock::Geometry;
use format::units::Compression;
use reduce::{ChunkBuf, Permit};

use crate::collect::step::{CollectRequest, CollectStep};
use crate::door::done::{Completions, Done};
use crate::door::error::RequestError;
use crate::door::intake::Intake;
use crate::door::open_volume::OpenVolume;
use crate::door::outcome::{Extent, Reply};
use crate::door::requests::{
    AdminRequest, ExtentsRequest, Request, UnmapRequest, WriteAnswer, WriteRequest,
};
use crate::explain::explanation::{Address, Explanation};
use crate::grow::GrowOptions;
use crate::scrub::{ScrubRequest, ScrubStep};
use crate::stats::Stats;
use crate::walk::difference::{DifferenceRequest, DifferenceStep};
use crate::walk::weight::{WeightRequest, WeightStep};
use crate::write::partial::ragged_chunks;

/// Whether a write is acknowledged already.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It is: answer the client. Its [`Done`] will not be told.
    Now,
    /// Not yet: its [`Done`] is told once.
    Later,
}

/// A running engine, for any number of threads.
#[derive(Clone)]
pub struct Client {
    pub(crate) intake: Arc<Intake>,
    permit: Arc<dyn Fn(usize) + Send + Sync>,
    pub(crate) read_permit: Arc<dyn Fn(usize) + Send + Sync>,
}

impl Client {
    pub(crate) fn new(intake: Arc<Intake>) -> Self {
        let credits = Arc::clone(&intake.credits);
        let read_credits = Arc::clone(&intake.read_credits);
        Self {
            intake,
            permit: Arc::new(move |bytes| credits.give_back(bytes)),
            read_permit: Arc::new(move |bytes| read_credits.give_back(bytes)),
        }
    }

    /// A buffer for a write of `length_bytes` at `offset_bytes`; waits while the write buffer is
    /// full.
    #[must_use]
    pub fn buffer(&self, offset_bytes: u64, length_bytes: usize) -> ChunkBuf {
        let credit = self.buffer_credit(offset_bytes, length_bytes);
        self.intake.take_buffer_credit(credit);
        ChunkBuf::with_permit(length_bytes, Permit::new(Arc::clone(&self.permit), credit))
    }

    /// As [`Client::buffer`], but None while the write buffer is full: for a caller who has
    /// something to do before it waits, or must not wait at all, being on the core's own thread.
    #[must_use]
    pub fn try_buffer(&self, offset_bytes: u64, length_bytes: usize) -> Option<ChunkBuf> {
        let credit = self.buffer_credit(offset_bytes, length_bytes);
        let granted = self.intake.credits.try_take(credit);
        granted.then(|| {
            ChunkBuf::with_permit(length_bytes, Permit::new(Arc::clone(&self.permit), credit))
        })
    }

    /// What a write of this range takes of the write buffer: what covers a chunk in part is copied
    /// into a whole one.
    fn buffer_credit(&self, offset_bytes: u64, length_bytes: usize) -> usize {
        let end_bytes = offset_bytes.saturating_add(length_bytes as u64);
        let chunk_bytes = self.intake.chunk_bytes;
        let copied = ragged_chunks(offset_bytes..end_bytes, chunk_bytes) * u64::from(chunk_bytes);
        pooled_bytes(length_bytes) + copied as usize
    }

    /// Writes `buf` at `offset_bytes`. With `durable` (FUA) it is answered when it is durable.
    pub fn write(
        &self,
        volume: &OpenVolume,
        offset_bytes: u64,
        buf: ChunkBuf,
        durable: bool,
        done: Done,
    ) -> Accepted {
        let length_bytes = buf.bytes().len() as u64;
        if let Err(error) = volume.0.check_change(offset_bytes, length_bytes) {
            done.fail(error);
            return Accepted::Later;
        }
        if length_bytes == 0 {
            return self.write_nothing(durable, done);
        }
        let chunk_bytes = u64::from(self.intake.chunk_bytes);
        let end_bytes = offset_bytes + length_bytes;
        let whole =
            offset_bytes.is_multiple_of(chunk_bytes) && end_bytes.is_multiple_of(chunk_bytes);
        let request = WriteRequest {
            volume: Arc::clone(&volume.0),
            offset_bytes,
            buf: Arc::new(buf),
            from_bytes: 0,
            chunks: end_bytes.div_ceil(chunk_bytes) - offset_bytes / chunk_bytes,
            covers_whole_chunks: whole,
            reserved: false,
            durable: durable || self.intake.sync,
            answer: WriteAnswer::Whole(done),
            quota: None,
            left_the_buffer: false,
            had_to_wait: false,
        };
        if self.intake.write(request) { Accepted::Now } else { Accepted::Later }
    }

    /// A write without bytes needs no space, however full the store is.
    fn write_nothing(&self, durable: bool, done: Done) -> Accepted {
        if let Some(error) = self.intake.refusal_of_writes() {
            done.fail(error);
        } else if durable {
            self.flush(done);
        } else {
            done.not_needed();
            return Accepted::Now;
        }
        Accepted::Later
    }

    /// Unmaps whole chunks and zeroes partial ones: TRIM. That is advice: in a store that is full,
    /// what is covered of chunks in part may stay as it is.
    pub fn trim(
        &self,
        volume: &OpenVolume,
        offset_bytes: u64,
        length_bytes: u64,
        durable: bool,
        done: Done,
    ) {
        let (volume, is_advice) = (Arc::clone(&volume.0), true);
        let request = UnmapRequest { volume, offset_bytes, length_bytes, durable, is_advice, done };
        self.unmap(request);
    }

    /// Unmaps whole chunks and zeroes partial ones: WRITE_ZEROES. Where there is no room for what
    /// is left of chunks at its ends, [`RequestError::NoSpace`]; the others are zeros all the same.
    pub fn write_zeroes(
        &self,
        volume: &OpenVolume,
        offset_bytes: u64,
        length_bytes: u64,
        durable: bool,
        done: Done,
    ) {
        let (volume, is_advice) = (Arc::clone(&volume.0), false);
        let request = UnmapRequest { volume, offset_bytes, length_bytes, durable, is_advice, done };
        self.unmap(request);
    }

    fn unmap(&self, mut request: UnmapRequest) {
        let UnmapRequest { offset_bytes, length_bytes, .. } = request;
        if let Err(error) = request.volume.check_change(offset_bytes, length_bytes) {
            return request.done.fail(error);
        }
        request.durable |= self.intake.sync;
        self.intake.push(Request::Unmap(request));
    }

    /// Makes durable everything that was acknowledged before, on every volume.
    pub fn flush(&self, done: Done) {
        self.intake.push(Request::Flush { done });
    }

    /// Runs of data and holes from `offset_bytes` on; the outcome is [`Reply::Extents`], at least
    /// one run, at most `extents_max`, covering `length_bytes` or less; of no bytes, none.
    pub fn extents(
        &self,
        volume: &OpenVolume,
        offset_bytes: u64,
        length_bytes: u64,
        extents_max: u32,
        done: Done,
    ) {
        if let Err(error) = volume.0.check_range(offset_bytes, length_bytes) {
            return done.fail(error);
        }
        if length_bytes == 0 {
            return done.reply(Reply::Extents(Vec::new()));
        }
        self.intake.push(Request::Extents(ExtentsRequest {
            volume: Arc::clone(&volume.0),
            offset_bytes,
            length_bytes,
            extents_max,
            done,
        }));
    }

    /// Asks for a change of volumes or settings, or for what there is of them. The blocking forms
    /// below say what each comes back with.
    pub fn administer(&self, request: AdminRequest, done: Done) {
        self.intake.push(Request::Admin { request, done });
    }

    /// Ends the engine as a crash would, but for the process: [`crate::Engine::run`] returns before
    /// its next step, what was acknowledged and not flushed may be lost, and the next opening
    /// recovers the rest. What waits for an answer, and what is asked for afterwards, gets
    /// [`RequestError::Closing`].
    pub fn abandon(&self) {
        self.intake.abandon();
    }

    pub(crate) fn wait_for(&self, send: impl FnOnce(Done)) -> Result<Reply, RequestError> {
        let (done, wait) = one_reply();
        send(done);
        wait()
    }

    pub(crate) fn admin(&self, request: AdminRequest) -> Result<Reply, RequestError> {
        self.wait_for(|done| self.administer(request, done))
    }
}

/// Memory that a buffer of this length takes: pools hand out powers of two.
pub(crate) fn pooled_bytes(length_bytes: usize) -> usize {
    length_bytes.next_power_of_two()
}

/// The blocking forms.
///
/// # Errors
/// Each returns the [`RequestError`] of its request.
impl Client {
    /// Writes and waits for the acknowledgement.
    pub fn write_at(
        &self,
        volume: &OpenVolume,
        offset_bytes: u64,
        bytes: &[u8],
    ) -> Result<(), RequestError> {
        let mut buf = self.buffer(offset_bytes, bytes.len());
        buf.bytes_mut().copy_from_slice(bytes);
        let (done, wait) = one_reply();
        match self.write(volume, offset_bytes, buf, false, done) {
            Accepted::Now => Ok(()),
            Accepted::Later => wait().map(|_| ()),
        }
    }

    /// Unmaps and waits until it is in the write buffer.
    pub fn trim_blocking(
        &self,
        volume: &OpenVolume,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> Result<(), RequestError> {
        self.wait_for(|done| self.trim(volume, offset_bytes, length_bytes, false, done)).map(|_| ())
    }

    /// Flushes and waits.
    pub fn flush_blocking(&self) -> Result<(), RequestError> {
        self.wait_for(|done| self.flush(done)).map(|_| ())
    }

    /// Runs of data and holes.
    pub fn extents_blocking(
        &self,
        volume: &OpenVolume,
        offset_bytes: u64,
        length_bytes: u64,
        extents_max: u32,
    ) -> Result<Vec<Extent>, RequestError> {
        let send = |done| self.extents(volume, offset_bytes, length_bytes, extents_max, done);
        match self.wait_for(send)? {
            Reply::Extents(extents) => Ok(extents),
            _ => Err(RequestError::Closing),
        }
    }

    /// Sets what new frames are compressed with.
    pub fn set_compression(&self, compression: Compression) -> Result<(), RequestError> {
        self.admin(AdminRequest::SetCompression(compression)).map(|_| ())
    }

    /// What new frames are compressed with.
    pub fn compression(&self) -> Result<Compression, RequestError> {
        match self.admin(AdminRequest::Compression)? {
            Reply::Compression(compression) => Ok(compression),
            _ => Err(RequestError::Closing),
        }
    }

    /// Figures of the store.
    pub fn stats(&self) -> Result<Stats, RequestError> {
        match self.admin(AdminRequest::Stats)? {
            Reply::Stats(stats) => Ok(*stats),
            _ => Err(RequestError::Closing),
        }
    }

    /// What the store is made of.
    pub fn geometry(&self) -> Result<Geometry, RequestError> {
        self.for_geometry(AdminRequest::Geometry)
    }

    /// Makes the store larger, as [`crate::plan_growth`] says of `options`. Its files are as long
    /// already, durably, and `files` are those that it does not have yet. Durable when it returns.
    pub fn grow(
        &self,
        options: GrowOptions,
        files: FurtherFiles,
    ) -> Result<Geometry, RequestError> {
        self.for_geometry(AdminRequest::Grow { options, files })
    }

    fn for_geometry(&self, request: AdminRequest) -> Result<Geometry, RequestError> {
        match self.admin(request)? {
            Reply::Geometry(geometry) => Ok(*geometry),
            _ => Err(RequestError::Closing),
        }
    }

    /// Walks one address of a volume through the tables.
    pub fn explain(&self, volume: &str, address: Address) -> Result<Explanation, RequestError> {
        match self.admin(AdminRequest::Explain { volume: volume.to_owned(), address })? {
            Reply::Explanation(explanation) => Ok(*explanation),
            _ => Err(RequestError::Closing),
        }
    }

    /// One step of a comparison of two versions. Of volumes the first step sees all that was
    /// acknowledged before it.
    pub fn difference(&self, request: DifferenceRequest) -> Result<DifferenceStep, RequestError> {
        if request.lba == 0 {
            // What is buffered is in no map. A store that stopped writing has no more to tell.
            let _ = self.flush_blocking();
        }
        match self.admin(AdminRequest::Difference(request))? {
            Reply::Difference(step) => Ok(*step),
            _ => Err(RequestError::Closing),
        }
    }

    /// One step of a volume's weighing; [`crate::Weighing`] makes the requests. Of volumes the
    /// first step sees all that was acknowledged before it.
    pub fn weigh(&self, request: WeightRequest) -> Result<WeightStep, RequestError> {
        if request.leaf == 0 {
            let _ = self.flush_blocking();
        }
        match self.admin(AdminRequest::Weigh(request))? {
            Reply::Weight(step) => Ok(*step),
            _ => Err(RequestError::Closing),
        }
    }

    /// One step of a scrub.
    pub fn scrub(&self, request: ScrubRequest) -> Result<ScrubStep, RequestError> {
        match self.admin(AdminRequest::Scrub(request))? {
            Reply::Scrub(step) => Ok(*step),
            _ => Err(RequestError::Closing),
        }
    }

    /// Collects one container.
    pub fn collect(&self, request: CollectRequest) -> Result<CollectStep, RequestError> {
        match self.admin(AdminRequest::Collect(request))? {
            Reply::Collect(step) => Ok(*step),
            _ => Err(RequestError::Closing),
        }
    }

    /// Flushes, checkpoints and marks the store clean; the engine's `run` returns afterwards.
    pub fn close(&self) -> Result<(), RequestError> {
        self.admin(AdminRequest::Close).map(|_| ())
    }
}

/// A sink for one outcome.
struct OneReply(Sender<Result<Reply, RequestError>>);

/// Whom to tell of one request, and what waits for it.
fn one_reply() -> (Done, impl FnOnce() -> Result<Reply, RequestError>) {
    let (sender, reply) = mpsc::channel();
    let done = Done::new(Arc::new(OneReply(sender)), 0);
    (done, move || reply.recv().unwrap_or(Err(RequestError::Closing)))
}

impl Completions for OneReply {
    fn complete(&self, _tag: u64, outcome: Result<Reply, RequestError>) {
        // Whoever has gone does not ask any more.
        let _ = self.0.send(outcome);
    }
}
