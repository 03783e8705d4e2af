//! The volume of a primary: what changes it becomes records, and answers wait for the peer.
//!
//! A lock orders changes: its holder writes the state block (a record begins), does the
//! change, writes the block again (it is whole) and gives the record to the [`Primary`]. So records
//! have the order of the volume's writes. Nobody waits for the peer with that lock.
//!
//! A write of unindexed chunks, which is one of the index or its log, waits until the peer has it;
//! one of values does not, for nothing names a value before a group of the log does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use format::BLOCK_BYTES;
use format::objects::replica::REPLICA_STATE_AT_BYTES;
use format::replication::{Change, Message};
use mutants::mutant;
use objects::volume::BucketVolume;
use store::{RequestError, Reservation, ReservedFor, WriteOptions, WriteRoom};
use thiserror::Error;

use crate::primary::{Asked, LinkState, Primary, Standing};
use crate::secondary::{COMPARED_BYTES_MAX, SecondaryError, apply};
use crate::state_block::{write_state, write_state_in};
use crate::volume::ReplicaVolume;

/// The state block is written before a change and behind it.
const ROOM_OF_STATE: u64 = 2;

/// How an answer of the bucket waits for the replica, and the clock of the connection.
pub trait ReplyWait: Send + Sync {
    /// A number that [`ReplyWait::wake`] changes.
    fn mark(&self) -> u64;

    /// Now, in units of its own.
    fn now(&self) -> u64;

    /// Waits until the mark is another; false when an answer that waits since `since` waits too
    /// long.
    fn wait(&self, mark: u64, since: u64) -> bool;

    /// Something has changed.
    fn wake(&self);
}

/// Why a connection is to be ended.
#[derive(Debug, Error)]
pub enum MirroredError {
    /// The store of the primary failed.
    #[error(transparent)]
    Volume(#[from] RequestError),
    /// The peer refuses, or says what no peer does.
    #[error("{0}")]
    Peer(String),
}

/// A volume that has a copy elsewhere.
pub struct Mirrored {
    volume: Arc<dyn ReplicaVolume>,
    order: Mutex<()>,
    primary: Mutex<Primary>,
    reply_wait: Arc<dyn ReplyWait>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mirrored {
    /// Over the volume of a primary.
    #[must_use]
    pub fn new(
        volume: Arc<dyn ReplicaVolume>,
        primary: Primary,
        reply_wait: Arc<dyn ReplyWait>,
    ) -> Self {
        Self { volume, order: Mutex::default(), primary: Mutex::new(primary), reply_wait }
    }

    /// The primary's state machine, for a short look; nobody else moves meanwhile.
    pub fn primary(&self) -> MutexGuard<'_, Primary> {
        lock(&self.primary)
    }

    /// Waits until a bucket may be opened on it: the peer has been met, or this copy may go on
    /// alone.
    ///
    /// # Errors
    /// [`RequestError::NotReplicated`], [`RequestError`] of the store.
    pub fn wait_until_met(&self) -> Result<(), RequestError> {
        self.wait(|primary| match primary.standing() {
            _ if primary.has_begun() => Some(Ok(())),
            Standing::Fenced(_) => Some(Ok(())),
            Standing::Alone if !primary.state().was_in_step => Some(Ok(())),
            _ => None,
        })
        .or_else(|error| match self.primary().standing() {
            Standing::Alone => Ok(()),
            _ => Err(error),
        })?;
        self.begin_life()
    }

    /// Begins the sequence of this opening, unless it has begun; a fenced copy has none.
    fn begin_life(&self) -> Result<(), RequestError> {
        let order = lock(&self.order);
        let state = {
            let mut primary = self.primary();
            if let Standing::Fenced(_) = primary.standing() {
                return Ok(());
            }
            primary.begin_life().cloned()
        };
        let is_first = state.is_some();
        if let Some(state) = state {
            // A number of a sequence that a crash takes back could be another record's.
            write_state(&*self.volume, &state)?;
        }
        // A peer that is compared is no copy until it is equal: what was acknowledged is here only.
        let is_last_copy = self.primary().is_to_compare();
        if is_first || is_last_copy {
            self.volume.flush()?;
        }
        let now = self.reply_wait.now();
        self.primary().begun(now);
        if self.primary().is_equal() {
            self.enter_step(&order)?;
        }
        self.reply_wait.wake();
        Ok(())
    }

    /// From here on answers come from both; a crash must not forget that they did.
    fn enter_step(&self, _order: &MutexGuard<'_, ()>) -> Result<(), RequestError> {
        let state = self.primary().enter_step();
        if let Some(state) = state {
            write_state(&*self.volume, &state)?;
            self.volume.flush()?;
        }
        self.primary().in_step();
        Ok(())
    }

    /// Takes what the peer said.
    ///
    /// # Errors
    /// [`MirroredError`]; the connection is to be ended.
    pub fn take(&self, message: Message) -> Result<(), MirroredError> {
        let asked = self.primary().take(message).map_err(MirroredError::Peer)?;
        match asked {
            Asked::Nothing => {}
            Asked::BeginLife => self.begin_life()?,
            Asked::TakeBack(sequence, change) => self.take_back(sequence, &change)?,
            Asked::Fill { at_bytes, length_bytes } => self.fill(at_bytes, length_bytes)?,
            Asked::Fenced => self.write_fence()?,
            Asked::EnterStep => self.enter_step(&lock(&self.order))?,
        }
        self.reply_wait.wake();
        Ok(())
    }

    /// Another copy was promoted, as `reason` says: nothing is changed here any more.
    ///
    /// # Errors
    /// [`RequestError`] of the store: it is fenced until it is opened next.
    pub fn fence(&self, reason: &str) -> Result<(), RequestError> {
        self.primary().fence(reason);
        self.write_fence()
    }

    fn write_fence(&self) -> Result<(), RequestError> {
        let _order = lock(&self.order);
        let state = self.primary().state().clone();
        self.reply_wait.wake();
        write_state(&*self.volume, &state)?;
        self.volume.flush()
    }

    fn take_back(&self, sequence: u64, change: &Change) -> Result<(), MirroredError> {
        let _order = lock(&self.order);
        if self.primary().has_begun() {
            let late = "the peer gives back what was lost when the bucket has changed since";
            return Err(MirroredError::Peer(late.to_owned()));
        }
        let begun = self.primary().takes_back();
        write_state(&*self.volume, &begun)?;
        apply(&*self.volume, change).map_err(|error| match error {
            SecondaryError::Volume(error) => MirroredError::Volume(error),
            error => MirroredError::Peer(error.to_string()),
        })?;
        let mut primary = self.primary();
        primary.took_back(sequence);
        let state = primary.state().clone();
        drop(primary);
        Ok(write_state(&*self.volume, &state)?)
    }

    fn fill(&self, at_bytes: u64, length_bytes: u32) -> Result<(), MirroredError> {
        let is_one = length_bytes <= COMPARED_BYTES_MAX
            && at_bytes
                .checked_add(length_bytes.into())
                .is_some_and(|end| end <= self.size_bytes());
        if !is_one {
            return Err(MirroredError::Peer("the peer asks for a range that is none".to_owned()));
        }
        let _order = lock(&self.order);
        let change = self.read_back(&[(at_bytes, length_bytes as usize)])?;
        Ok(self.push(change).map(drop)?)
    }

    /// Compares the next range, if one is due; true when there is more to do at once.
    ///
    /// # Errors
    /// [`RequestError`] of the store; the comparison goes on where it was.
    pub fn compare_some(&self) -> Result<bool, RequestError> {
        let _order = lock(&self.order);
        let Some(cursor) = self.primary().compares_at() else { return Ok(false) };
        let (state_at, size) = (REPLICA_STATE_AT_BYTES, self.size_bytes());
        if cursor == size {
            let sequence = self.push(Change::InStep)?;
            self.primary().ends_with(sequence);
            self.reply_wait.wake();
            return Ok(false);
        }
        if cursor == state_at {
            self.primary().compared(state_at + BLOCK_BYTES as u64, None);
            return Ok(true);
        }
        let end = if cursor < state_at { state_at } else { size };
        let run = self.volume.run_at(cursor, end - cursor)?;
        if run.is_hole {
            self.push(Change::Trim { at_bytes: cursor, length_bytes: run.length_bytes })?;
            self.primary().compared(cursor + run.length_bytes, None);
        } else {
            let length_bytes = run.length_bytes.min(COMPARED_BYTES_MAX.into()) as u32;
            let mut bytes = store::zeroed(length_bytes as usize)?;
            self.volume.read_at(cursor, &mut bytes)?;
            let fingerprint = *blake3::hash(&bytes).as_bytes();
            let change = Change::Compare { at_bytes: cursor, length_bytes, fingerprint };
            let sequence = self.push(change)?;
            self.primary().compared(cursor + u64::from(length_bytes), Some(sequence));
        }
        self.reply_wait.wake();
        Ok(true)
    }

    /// A record that changes nothing here; for who has the order.
    fn push(&self, change: Change) -> Result<u64, RequestError> {
        let (sequence, state) = self.primary().end_record(change);
        write_state(&*self.volume, &state)?;
        Ok(sequence)
    }

    fn read_back(&self, ranges: &[(u64, usize)]) -> Result<Change, RequestError> {
        let mut writes = Vec::with_capacity(ranges.len());
        for &(at_bytes, length_bytes) in ranges {
            let mut bytes = store::zeroed(length_bytes)?;
            self.volume.read_at(at_bytes, &mut bytes)?;
            writes.push((at_bytes, bytes));
        }
        Ok(Change::Write { unindexed: false, writes })
    }

    /// Asks again and again, until there is an answer or it takes too long.
    fn wait<T>(
        &self,
        mut ask: impl FnMut(&mut Primary) -> Option<Result<T, RequestError>>,
    ) -> Result<T, RequestError> {
        let since = self.reply_wait.now();
        loop {
            let mark = self.reply_wait.mark();
            let mut primary = self.primary();
            if let Some(answer) = ask(&mut primary) {
                return answer;
            }
            let waits_since = primary.waits_since(since);
            drop(primary);
            if !self.reply_wait.wait(mark, waits_since) {
                return self.give_up(ask);
            }
        }
    }

    /// It took too long: a peer that is there and silent is disconnected.
    fn give_up<T>(
        &self,
        mut ask: impl FnMut(&mut Primary) -> Option<Result<T, RequestError>>,
    ) -> Result<T, RequestError> {
        let now = self.reply_wait.now();
        let mut primary = self.primary();
        // One that is compared is not silent, and to wait for it is in vain.
        if primary.standing() != Standing::Waits && primary.link() != LinkState::Away {
            primary.cut(now);
            self.reply_wait.wake();
        }
        if let Some(answer) = ask(&mut primary) {
            return answer;
        }
        let away = format!("the replica at {} does not answer", primary.state().peer);
        let reason = primary
            .refusal()
            .map_or(away, |why| format!("the replica at {} refuses: {why}", primary.state().peer));
        Err(RequestError::NotReplicated { reason })
    }

    /// Does a change and makes it a record; with `waits` until the peer has it.
    fn change(
        &self,
        change: Change,
        reservation: Option<&Reservation>,
        waits: bool,
        apply: impl FnOnce() -> Result<(), RequestError>,
    ) -> Result<(), RequestError> {
        self.wait(|primary| match primary.standing() {
            Standing::InStep | Standing::Alone if primary.is_congested() => None,
            Standing::InStep | Standing::Alone => Some(Ok(())),
            Standing::Waits => None,
            Standing::Fenced(by) => Some(Err(fenced(&by))),
        })?;
        let order = lock(&self.order);
        let mut primary = self.primary();
        if let Standing::Fenced(by) = primary.standing() {
            return Err(fenced(&by));
        }
        let begun = primary.begin_record();
        drop(primary);
        if let Err(error) = write_state_in(&*self.volume, &begun, reservation) {
            self.primary().abort_record();
            return Err(error);
        }
        let is_trim = matches!(change, Change::Trim { .. });
        let done = apply();
        let record = match &done {
            Ok(()) => Ok(change),
            // What it has left, if anything, is what the peer is given.
            Err(_) => self.read_back(&ranges_of(&change)),
        };
        let (sequence, state) = {
            let mut primary = self.primary();
            if done.is_err() && (is_trim || record.is_err()) {
                primary.is_in_doubt();
            }
            let nothing = Change::Write { unindexed: false, writes: Vec::new() };
            primary.end_record(record.unwrap_or(nothing))
        };
        // Where this fails the block says that the record has begun, and that is true.
        let _ = write_state_in(&*self.volume, &state, reservation);
        drop(order);
        self.reply_wait.wake();
        done?;
        let waits = waits && !mutant!(AnswersBeforeReceived);
        if waits { self.wait_received(sequence) } else { Ok(()) }
    }

    fn wait_received(&self, sequence: u64) -> Result<(), RequestError> {
        self.wait(|primary| match primary.standing() {
            _ if primary.has_received(sequence) => Some(Ok(())),
            Standing::Alone => Some(Ok(())),
            Standing::InStep | Standing::Waits => None,
            Standing::Fenced(by) => Some(Err(fenced(&by))),
        })
    }
}

fn fenced(by: &str) -> RequestError {
    RequestError::NotReplicated { reason: format!("this copy takes no changes any more: {by}") }
}

fn ranges_of(change: &Change) -> Vec<(u64, usize)> {
    match change {
        Change::Write { writes, .. } => {
            writes.iter().map(|(at_bytes, bytes)| (*at_bytes, bytes.len())).collect()
        }
        Change::Trim { .. } | Change::Compare { .. } | Change::InStep => Vec::new(),
    }
}

fn record_of(writes: &[(u64, &[u8])], options: WriteOptions) -> Change {
    let writes = writes.iter().map(|(at_bytes, bytes)| (*at_bytes, bytes.to_vec())).collect();
    Change::Write { unindexed: options.unindexed, writes }
}

impl BucketVolume for Mirrored {
    fn size_bytes(&self) -> u64 {
        self.volume.size_bytes()
    }

    fn read_at(&self, offset_bytes: u64, out: &mut [u8]) -> Result<(), RequestError> {
        self.volume.read_at(offset_bytes, out)
    }

    fn write_vectored_at(
        &self,
        writes: &[(u64, &[u8])],
        options: WriteOptions,
    ) -> Result<(), RequestError> {
        self.change(record_of(writes, options), None, options.unindexed, || {
            self.volume.write_vectored_at(writes, options)
        })
    }

    fn would_wait(&self, length_bytes: usize) -> bool {
        self.volume.would_wait(length_bytes)
    }

    fn reserve(
        &self,
        room: WriteRoom,
        reserved_for: ReservedFor,
    ) -> Result<Reservation, RequestError> {
        let more = room.writes.saturating_mul(ROOM_OF_STATE);
        self.volume.reserve(room + WriteRoom::of_chunks(more, more), reserved_for)
    }

    fn write_reserved_at(
        &self,
        reservation: &Reservation,
        writes: &[(u64, &[u8])],
        options: WriteOptions,
    ) -> Result<(), RequestError> {
        let change = record_of(writes, options);
        self.change(change, Some(reservation), options.unindexed, || {
            self.volume.write_reserved_at(reservation, writes, options)
        })
    }

    fn trim(&self, offset_bytes: u64, length_bytes: u64) -> Result<(), RequestError> {
        // In a full store the block that is written with it needs room that is kept.
        let room = WriteRoom::of_chunks(ROOM_OF_STATE, ROOM_OF_STATE);
        let reservation = self.volume.reserve(room, ReservedFor::Releases)?;
        let change = Change::Trim { at_bytes: offset_bytes, length_bytes };
        self.change(change, Some(&reservation), false, || {
            self.volume.trim(offset_bytes, length_bytes)
        })
    }

    fn flush(&self) -> Result<(), RequestError> {
        let sequence = self.primary().want_flush();
        self.reply_wait.wake();
        self.volume.flush()?;
        if mutant!(AnswersFlushAtHome) {
            return Ok(());
        }
        self.wait(|primary| match primary.standing() {
            Standing::InStep if primary.is_durable(sequence) => Some(Ok(())),
            Standing::Alone => Some(Ok(())),
            Standing::InStep | Standing::Waits => None,
            Standing::Fenced(by) => Some(Err(fenced(&by))),
        })
    }
}
