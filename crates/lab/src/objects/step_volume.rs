//! A volume as buckets need one, over an engine that the same thread steps.
//!
//! Each blocking request steps the engine until its answer is there; an acknowledged write is
//! followed by a few steps that chance chooses, so that the engine is met in any state. redb wants
//! what it stands on to be `Send` and `Sync`, so there are locks; nobody ever waits for one.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::{
    Accepted, ChunkBuf, Client, Done, OpenVolume, RequestError, Reservation, ReservedFor,
    WriteOptions, WriteRoom,
};
use objects::volume::BucketVolume;
use replication::{ReplicaVolume, Run};

use crate::dice::Dice;
use crate::failure::Broken;
use crate::oracle::CHUNK_BYTES;
use crate::simulation::opening::Opening;

/// Longest request: of these the engine has memory for several.
const PIECE_BYTES: usize = 1 << 20;
/// Steps after an acknowledged write, at most.
const STEPS_MAX: u64 = 12;
/// One of this number of lists of writes goes to the engine in two requests, with a flush between
/// them that nobody waits for. One short request is mostly in one record of the journal as a whole;
/// buckets are promised a prefix of the list, and no more.
const CUT_ONE_IN: u64 = 2;
/// Steps between the two requests, at most: enough for the first to reach the disk by itself.
const STEPS_OF_CUT_MAX: u64 = 60;
/// One of this number of writes is followed by a flush that nobody waits for: the disk has the
/// write while its operation goes on.
const FLUSH_ONE_IN: u64 = 4;

/// An engine that several volumes step.
pub(crate) struct Stepped {
    opening: Mutex<Opening>,
    state: Mutex<SteppedState>,
}

struct SteppedState {
    dice: Dice,
    /// Number of the newest state of the history that was acknowledged.
    acknowledged: usize,
    /// Why the engine did not answer, if it did not.
    stuck: Option<Broken>,
    asks_doors: bool,
    /// One of this number of writes is followed by a flush.
    flush_one_in: u64,
    /// Milliseconds since 1970.
    now_ms: u64,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stepped {
    pub(crate) fn new(opening: Opening, seed: u64, now_ms: u64) -> Arc<Self> {
        let asks_doors = seed % 2 == 1;
        let dice = Dice::new(seed);
        let (acknowledged, stuck, flush_one_in) = (0, None, FLUSH_ONE_IN);
        let state = SteppedState { dice, acknowledged, stuck, asks_doors, flush_one_in, now_ms };
        Arc::new(Self { opening: Mutex::new(opening), state: Mutex::new(state) })
    }

    /// One of this number of writes is followed by a flush that nobody waits for.
    pub(crate) fn flush_one_in(&self, writes: u64) {
        lock(&self.state).flush_one_in = writes;
    }

    pub(crate) fn opening(&self) -> MutexGuard<'_, Opening> {
        lock(&self.opening)
    }

    /// The time that requests are given.
    pub(crate) fn now_ms(&self) -> u64 {
        lock(&self.state).now_ms
    }

    /// Time passes.
    pub(crate) fn pass(&self, milliseconds: u64) {
        lock(&self.state).now_ms += milliseconds;
    }

    /// All states up to this one are acknowledged: the next flush makes them durable.
    pub(crate) fn acknowledge(&self, state: usize) {
        lock(&self.state).acknowledged = state;
    }

    /// The newest acknowledged state is durable.
    pub(crate) fn note_durable(&self) {
        let acknowledged = lock(&self.state).acknowledged;
        let opening = self.opening();
        let mut heard = opening.ear.heard();
        heard.flushed = heard.flushed.max(acknowledged);
    }

    /// What kept the engine from answering, once.
    pub(crate) fn take_stuck(&self) -> Result<(), Broken> {
        lock(&self.state).stuck.take().map_or(Ok(()), Err)
    }

    /// Asks and steps until the answer.
    pub(crate) fn ask<A>(&self, send: impl FnOnce(&Client, Done<A>)) -> Result<A, RequestError> {
        let outcome = self.opening().ask(send);
        self.told(outcome)
    }

    pub(crate) fn administer<A: engine::Ask>(&self, verb: A) -> Result<A::Answer, RequestError> {
        self.ask(|client, done| client.administer(verb, done))
    }

    pub(crate) fn flush(&self) -> Result<(), RequestError> {
        let covers = lock(&self.state).acknowledged;
        self.ask(|client, done| client.flush(done))?;
        let opening = self.opening();
        let mut heard = opening.ear.heard();
        heard.flushed = heard.flushed.max(covers);
        Ok(())
    }

    fn told<A>(&self, outcome: Result<A, Broken>) -> Result<A, RequestError> {
        outcome.map_err(|broken| match broken {
            Broken::Request(error) => error,
            broken => {
                lock(&self.state).stuck.get_or_insert(broken);
                RequestError::Closing
            }
        })
    }

    fn read(
        &self,
        volume: &OpenVolume,
        offset_bytes: u64,
        out: &mut [u8],
    ) -> Result<(), RequestError> {
        let length_bytes = out.len() as u32;
        if lock(&self.state).asks_doors
            && let Some(pieces) =
                self.opening().client.read_held(volume, offset_bytes, length_bytes)
        {
            return pieces.assemble(out);
        }
        let read = |client: &Client, done| client.read(volume, offset_bytes, length_bytes, done);
        self.ask(read)?.assemble(out)
    }

    fn write(
        &self,
        writes: &[(u64, &[u8])],
        send: impl Fn(&Client, Vec<(u64, ChunkBuf)>, Done<()>) -> Accepted,
    ) -> Result<(), RequestError> {
        let cut = {
            let dice = &mut lock(&self.state).dice;
            let cuts = writes.len() > 1 && dice.once_in(CUT_ONE_IN);
            if cuts { 1 + dice.below(writes.len() as u64 - 1) as usize } else { writes.len() }
        };
        let (front, rest) = writes.split_at(cut);
        self.write_together(front, &send)?;
        if rest.is_empty() {
            return Ok(());
        }
        let steps = lock(&self.state).dice.below(STEPS_OF_CUT_MAX);
        let mut opening = self.opening();
        opening.client.flush(Done::pending().0);
        for _ in 0..steps {
            opening.step();
        }
        drop(opening);
        self.write_together(rest, &send)
    }

    /// Writes a list by one request.
    fn write_together(
        &self,
        writes: &[(u64, &[u8])],
        send: impl FnOnce(&Client, Vec<(u64, ChunkBuf)>, Done<()>) -> Accepted,
    ) -> Result<(), RequestError> {
        let mut opening = self.opening();
        let mut filled = Vec::with_capacity(writes.len());
        for (at_bytes, bytes) in writes {
            let buf = opening.buffer(*at_bytes, bytes.len());
            let mut buf = self.told(buf)?;
            buf.bytes_mut().copy_from_slice(bytes);
            filled.push((*at_bytes, buf));
        }
        let outcome = opening.ask_or_accepted(|client, done| send(client, filled, done));
        let (steps, flushes) = {
            let SteppedState { dice, flush_one_in, .. } = &mut *lock(&self.state);
            (dice.below(STEPS_MAX), dice.once_in(*flush_one_in))
        };
        if flushes {
            opening.client.flush(Done::pending().0);
        }
        for _ in 0..steps {
            opening.step();
        }
        drop(opening);
        self.told(outcome)
    }
}

/// One volume of it.
pub(crate) struct StepVolume {
    pub(crate) stepped: Arc<Stepped>,
    open: Arc<OpenVolume>,
    /// Chunks that read as damaged until they are written.
    rotten: Mutex<BTreeSet<u64>>,
}

impl StepVolume {
    pub(crate) fn new(stepped: &Arc<Stepped>, open: Arc<OpenVolume>) -> Arc<Self> {
        Arc::new(Self { stepped: Arc::clone(stepped), open, rotten: Mutex::default() })
    }

    pub(crate) fn open(&self) -> &OpenVolume {
        &self.open
    }

    pub(crate) fn rot(&self, chunks: impl IntoIterator<Item = u64>) {
        lock(&self.rotten).extend(chunks);
    }

    pub(crate) fn heal(&self) {
        lock(&self.rotten).clear();
    }

    /// Bytes that are stored of a range.
    pub(crate) fn mapped_bytes(&self, from: u64, until: u64) -> Result<u64, RequestError> {
        let (mut at, mut mapped) = (from, 0);
        while at < until {
            let extents = self.stepped.ask(|client, done| {
                client.extents(&self.open, at, until - at, 64, done);
            })?;
            for extent in extents {
                at += extent.length_bytes;
                mapped += if extent.hole { 0 } else { extent.length_bytes };
            }
        }
        Ok(mapped)
    }

    fn check_rot(&self, offset_bytes: u64, length_bytes: u64) -> Result<(), RequestError> {
        let chunk = CHUNK_BYTES as u64;
        let range = offset_bytes / chunk..(offset_bytes + length_bytes).div_ceil(chunk);
        match lock(&self.rotten).range(range).next() {
            Some(&lba) => Err(RequestError::Damaged { volume: self.open.name(), lba }),
            None => Ok(()),
        }
    }

    pub(super) fn heal_written(&self, offset_bytes: u64, length_bytes: u64) {
        let chunk = CHUNK_BYTES as u64;
        let whole = offset_bytes.div_ceil(chunk)..(offset_bytes + length_bytes) / chunk;
        lock(&self.rotten).retain(|lba| !whole.contains(lba));
    }
}

impl ReplicaVolume for StepVolume {
    fn run_at(&self, at_bytes: u64, most_bytes: u64) -> Result<Run, RequestError> {
        let runs = self.stepped.ask(|client, done| {
            client.extents(&self.open, at_bytes, most_bytes, 1, done);
        })?;
        let run = runs.first().map(|run| Run { length_bytes: run.length_bytes, is_hole: run.hole });
        Ok(run.unwrap_or(Run { length_bytes: most_bytes, is_hole: true }))
    }
}

impl BucketVolume for StepVolume {
    fn size_bytes(&self) -> u64 {
        self.open.size_bytes()
    }

    fn read_at(&self, offset_bytes: u64, out: &mut [u8]) -> Result<(), RequestError> {
        self.check_rot(offset_bytes, out.len() as u64)?;
        for (number, part) in out.chunks_mut(PIECE_BYTES).enumerate() {
            self.stepped.read(&self.open, offset_bytes + (number * PIECE_BYTES) as u64, part)?;
        }
        Ok(())
    }

    fn write_vectored_at(
        &self,
        writes: &[(u64, &[u8])],
        options: WriteOptions,
    ) -> Result<(), RequestError> {
        self.stepped.write(writes, |client, filled, done| {
            client.write_vectored(&self.open, filled, options, done)
        })?;
        writes.iter().for_each(|(at, bytes)| self.heal_written(*at, bytes.len() as u64));
        Ok(())
    }

    fn reserve(
        &self,
        room: WriteRoom,
        reserved_for: ReservedFor,
    ) -> Result<Reservation, RequestError> {
        self.stepped.ask(|client, done| client.reserve_with(&self.open, room, reserved_for, done))
    }

    fn write_reserved_at(
        &self,
        reservation: &Reservation,
        writes: &[(u64, &[u8])],
        options: WriteOptions,
    ) -> Result<(), RequestError> {
        self.stepped.write(writes, |client, filled, done| {
            client.write_reserved(reservation, filled, options, done)
        })?;
        writes.iter().for_each(|(at, bytes)| self.heal_written(*at, bytes.len() as u64));
        Ok(())
    }

    fn trim(&self, offset_bytes: u64, length_bytes: u64) -> Result<(), RequestError> {
        let trim = |client: &Client, done| {
            client.trim(&self.open, offset_bytes, length_bytes, false, done);
        };
        self.stepped.ask(trim)?;
        self.heal_written(offset_bytes, length_bytes);
        Ok(())
    }

    fn flush(&self) -> Result<(), RequestError> {
        self.stepped.flush()
    }
}
