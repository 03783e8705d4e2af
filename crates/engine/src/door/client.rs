//! The handle through which doors reach a running engine.
//!
//! Data calls are asynchronous: they queue a request and its outcome arrives at its [`Done`], on
//! the core's thread (a sink must therefore not block). The blocking forms are for callers with a
//! thread to spare, never for the core's own. All else is asked in the control language
//! ([`Client::ask`], [`crate::control`]).

use std::sync::Arc;

use reduce::{ChunkBuf, Permit};

use crate::control::Ask;
use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::door::intake::Intake;
use crate::door::open_volume::OpenVolume;
use crate::door::outcome::Extent;
use crate::door::requests::{ExtentsRequest, Request, UnmapRequest};
use crate::write::partial::ragged_chunks;

/// A running engine, for any number of threads.
#[derive(Clone)]
pub struct Client {
    pub(crate) intake: Arc<Intake>,
    pub(crate) permit: Arc<dyn Fn(usize) + Send + Sync>,
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
    pub(crate) fn buffer_credit(&self, offset_bytes: u64, length_bytes: usize) -> usize {
        let end_bytes = offset_bytes.saturating_add(length_bytes as u64);
        let chunk_bytes = self.intake.chunk_bytes;
        let copied = ragged_chunks(offset_bytes..end_bytes, chunk_bytes) * u64::from(chunk_bytes);
        pooled_bytes(length_bytes) + copied as usize
    }

    /// Unmaps whole chunks and zeroes partial ones: TRIM. That is advice: in a store that is full,
    /// what is covered of chunks in part may stay as it is.
    pub fn trim(
        &self,
        volume: &OpenVolume,
        offset_bytes: u64,
        length_bytes: u64,
        durable: bool,
        done: Done<()>,
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
        done: Done<()>,
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
    pub fn flush(&self, done: Done<()>) {
        self.intake.push(Request::Flush { done });
    }

    /// Runs of data and holes from `offset_bytes` on; the answer is at least
    /// one run, at most `extents_max`, covering `length_bytes` or less; of no bytes, none.
    pub fn extents(
        &self,
        volume: &OpenVolume,
        offset_bytes: u64,
        length_bytes: u64,
        extents_max: u32,
        done: Done<Vec<Extent>>,
    ) {
        if let Err(error) = volume.0.check_range(offset_bytes, length_bytes) {
            return done.fail(error);
        }
        if length_bytes == 0 {
            return done.reply(Vec::new());
        }
        self.intake.push(Request::Extents(ExtentsRequest {
            volume: Arc::clone(&volume.0),
            offset_bytes,
            length_bytes,
            extents_max,
            done,
        }));
    }

    /// Asks in the control language.
    pub fn administer<A: Ask>(&self, verb: A, done: Done<A::Answer>) {
        self.intake.push(Request::Control(verb.with(done).0));
    }

    /// Ends the engine as a crash would, but for the process: [`crate::Engine::run`] returns before
    /// its next step, what was acknowledged and not flushed may be lost, and the next opening
    /// recovers the rest. What waits for an answer, and what is asked for afterwards, gets
    /// [`RequestError::Closing`].
    pub fn abandon(&self) {
        self.intake.abandon();
    }

    /// Says that a close will be asked for, once what is under way has ended. A device that has had
    /// no room for ten seconds is then waited for no longer: writing stops with
    /// [`RequestError::DeviceFull`], which ends what is under way and waits.
    pub fn announce_close(&self) {
        self.intake.announce_close();
    }

    pub(crate) fn wait_for<A>(&self, send: impl FnOnce(Done<A>)) -> Result<A, RequestError> {
        let (done, pending) = Done::pending();
        send(done);
        pending.wait()
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
    /// Unmaps and waits until it is in the write buffer.
    pub fn trim_blocking(
        &self,
        volume: &OpenVolume,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> Result<(), RequestError> {
        self.wait_for(|done| self.trim(volume, offset_bytes, length_bytes, false, done))
    }

    /// Flushes and waits.
    pub fn flush_blocking(&self) -> Result<(), RequestError> {
        self.wait_for(|done| self.flush(done))
    }

    /// Runs of data and holes.
    pub fn extents_blocking(
        &self,
        volume: &OpenVolume,
        offset_bytes: u64,
        length_bytes: u64,
        extents_max: u32,
    ) -> Result<Vec<Extent>, RequestError> {
        self.wait_for(|done| self.extents(volume, offset_bytes, length_bytes, extents_max, done))
    }

    /// Asks in the control language, and waits. A comparison or weighing of volumes sees all that
    /// was acknowledged before its first step.
    pub fn ask<A: Ask>(&self, verb: A) -> Result<A::Answer, RequestError> {
        if verb.flushes_first() {
            // A store that stopped writing tells what it has.
            let _ = self.flush_blocking();
        }
        self.wait_for(|done| self.administer(verb, done))
    }
}
