//! Writes, by the handle of [`crate::door::client`]: one, several in their order, with hints.
//!
//! A write has one place in the prefix order. Writes of a *vector* have neighbouring places, in
//! the order in which the caller lists them, and one answer. The order is what a log-structured
//! client needs: it lists values before the index that names them, and a crash never leaves the
//! index alone.

use std::sync::Arc;

use reduce::{ChunkBuf, Permit};

use crate::door::buffer_share::BufferShare;
use crate::door::client::{Client, pooled_bytes};
use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::door::open_volume::OpenVolume;
use crate::door::requests::{WriteAnswer, WriteRequest};
use crate::door::volume::VolumeHandle;

/// Whether a write is acknowledged already.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It is: answer the client. Its [`Done`] will not be told.
    Now,
    /// Not yet: its [`Done`] is told once.
    Later,
}

/// When a write is answered.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// As soon as a crash of the process or the power is all that can take it back.
    #[default]
    Acknowledged,
    /// When no crash can take it back, nor anything before it in the prefix order.
    Durable,
}

/// What the sender of a write asks for, or knows of it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// When it is answered.
    pub durability: Durability,
    /// The chunks are no duplicates of others and will have none: they are stored without a
    /// look-up and get no entry in the Hash-PBN table. Reads, snapshots, collection and checks
    /// treat them like any other chunk. It costs space where the sender is wrong, nothing else.
    pub unindexed: bool,
}

impl Client {
    /// Writes `buf` at `offset_bytes`. With `durable` (FUA) it is answered when it is durable.
    pub fn write(
        &self,
        volume: &OpenVolume,
        offset_bytes: u64,
        buf: ChunkBuf,
        durable: bool,
        done: Done<()>,
    ) -> Accepted {
        let durability = if durable { Durability::Durable } else { Durability::Acknowledged };
        let options = WriteOptions { durability, unindexed: false };
        self.write_with(volume, offset_bytes, buf, options, done)
    }

    /// Writes `buf` at `offset_bytes`, as `options` say.
    pub fn write_with(
        &self,
        volume: &OpenVolume,
        offset_bytes: u64,
        buf: ChunkBuf,
        options: WriteOptions,
        done: Done<()>,
    ) -> Accepted {
        let length_bytes = buf.bytes().len() as u64;
        if let Err(error) = volume.0.check_change(offset_bytes, length_bytes) {
            done.fail(error);
            return Accepted::Later;
        }
        if length_bytes == 0 {
            return self.write_nothing(options.durability, done);
        }
        let answer = WriteAnswer::Whole(done);
        let request = self.write_request(volume, offset_bytes, buf, options, answer);
        if self.intake.write(request) { Accepted::Now } else { Accepted::Later }
    }

    /// Writes several buffers of one volume in the order in which they are listed. Their places in
    /// the prefix order are neighbours; `done` is told once, for all of them, and with
    /// [`Durability::Durable`] when all are durable. Take the buffers with [`Client::buffers`].
    ///
    /// A crash leaves a prefix of the vector: of the write in which it is cut, some first chunks,
    /// each whole or not at all; of later ones nothing. Chunks that enter the journal in one group
    /// are there together or not at all. Where ranges overlap, the later write of the list wins.
    ///
    /// Where the store lacks room the writes wait in their order, and what others send may come
    /// between them; the first that fails fails the vector, and those behind it are not done. If
    /// the bytes around a chunk that is written in part cannot be read, only that chunk stays as
    /// it was. A range that the volume does not have fails the vector before any of it is done.
    pub fn write_vectored(
        &self,
        volume: &OpenVolume,
        writes: Vec<(u64, ChunkBuf)>,
        options: WriteOptions,
        done: Done<()>,
    ) -> Accepted {
        let writes = match self.requests_of(volume, writes, options) {
            Ok(writes) => writes,
            Err(error) => {
                done.fail(error);
                return Accepted::Later;
            }
        };
        if writes.is_empty() {
            return self.write_nothing(options.durability, done);
        }
        if self.intake.write_vector(writes, done) { Accepted::Now } else { Accepted::Later }
    }

    /// Buffers for a vector of writes, given the offset and length of each, in their order. They
    /// are taken at once: who takes one after the other may wait for bytes that it holds itself.
    #[must_use]
    pub fn buffers(&self, writes: impl IntoIterator<Item = (u64, usize)>) -> Vec<ChunkBuf> {
        let credits = self.credits_of(writes);
        self.intake.take_buffer_credit(credits.iter().map(|&(_, credit)| credit).sum());
        self.buffers_of(credits)
    }

    /// Length and credit of the buffer of each write.
    pub(crate) fn credits_of(
        &self,
        writes: impl IntoIterator<Item = (u64, usize)>,
    ) -> Vec<(usize, usize)> {
        let credit_of = |(offset_bytes, length_bytes)| {
            (length_bytes, self.buffer_credit(offset_bytes, length_bytes))
        };
        writes.into_iter().map(credit_of).collect()
    }

    /// Buffers of these lengths, whose credits have been taken.
    pub(crate) fn buffers_of(&self, credits: Vec<(usize, usize)>) -> Vec<ChunkBuf> {
        let buf = |(length_bytes, credit)| {
            ChunkBuf::with_permit(length_bytes, Permit::new(Arc::clone(&self.permit), credit))
        };
        credits.into_iter().map(buf).collect()
    }

    /// The writes of a vector that write anything.
    pub(crate) fn requests_of(
        &self,
        volume: &OpenVolume,
        writes: Vec<(u64, ChunkBuf)>,
        options: WriteOptions,
    ) -> Result<Vec<WriteRequest>, RequestError> {
        for (offset_bytes, buf) in &writes {
            volume.0.check_change(*offset_bytes, buf.bytes().len() as u64)?;
        }
        let writes = writes.into_iter().filter(|(_, buf)| !buf.bytes().is_empty());
        let request = |(offset_bytes, buf)| {
            self.write_request(volume, offset_bytes, buf, options, WriteAnswer::Given)
        };
        Ok(writes.map(request).collect())
    }

    fn write_request(
        &self,
        volume: &OpenVolume,
        offset_bytes: u64,
        buf: ChunkBuf,
        options: WriteOptions,
        answer: WriteAnswer,
    ) -> WriteRequest {
        let chunk_bytes = u64::from(self.intake.chunk_bytes);
        let end_bytes = offset_bytes + buf.bytes().len() as u64;
        let whole =
            offset_bytes.is_multiple_of(chunk_bytes) && end_bytes.is_multiple_of(chunk_bytes);
        WriteRequest {
            volume: Arc::clone(&volume.0),
            offset_bytes,
            buf: Arc::new(buf),
            from_bytes: 0,
            chunks: end_bytes.div_ceil(chunk_bytes) - offset_bytes / chunk_bytes,
            covers_whole_chunks: whole,
            reserved: false,
            durable: options.durability == Durability::Durable || self.intake.sync,
            unindexed: options.unindexed,
            answer,
            quota: None,
            left_the_buffer: false,
            had_to_wait: false,
        }
    }

    /// A write without bytes needs no space, however full the store is.
    pub(crate) fn write_nothing(&self, durability: Durability, done: Done<()>) -> Accepted {
        if let Some(error) = self.intake.refusal_of_writes() {
            done.fail(error);
        } else if durability == Durability::Durable {
            self.flush(done);
        } else {
            done.not_needed();
            return Accepted::Now;
        }
        Accepted::Later
    }
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
        self.write_at_with(volume, offset_bytes, bytes, WriteOptions::default())
    }

    /// Writes as `options` say and waits for the answer: with [`Durability::Durable`] until no
    /// crash can take it back.
    pub fn write_at_with(
        &self,
        volume: &OpenVolume,
        offset_bytes: u64,
        bytes: &[u8],
        options: WriteOptions,
    ) -> Result<(), RequestError> {
        let mut buf = self.buffer(offset_bytes, bytes.len());
        buf.bytes_mut().copy_from_slice(bytes);
        wait_unless_accepted(|done| self.write_with(volume, offset_bytes, buf, options, done))
    }

    /// Writes several ranges in their order, as [`Client::write_vectored`] does, and waits for the
    /// answer.
    pub fn write_vectored_at(
        &self,
        volume: &OpenVolume,
        writes: &[(u64, &[u8])],
        options: WriteOptions,
    ) -> Result<(), RequestError> {
        let writes = self.filled_buffers(volume, writes);
        wait_unless_accepted(|done| self.write_vectored(volume, writes, options, done))
    }

    /// Whether a write of `length_bytes`, whole chunks, would wait until other writes leave the
    /// write buffer. What others take meanwhile is not known, so the answer is a guess.
    #[must_use]
    pub fn would_wait(&self, volume: &OpenVolume, length_bytes: usize) -> bool {
        let credit = pooled_bytes(length_bytes);
        let share = volume.0.buffer_share(&self.intake.buffer_shares);
        let has_share = share.is_none_or(BufferShare::takes_at_once);
        !(has_share && self.intake.credits.takes_at_once(credit))
    }

    /// Buffers that hold these bytes, of what the domain of the volume may have.
    pub(crate) fn filled_buffers(
        &self,
        volume: &VolumeHandle,
        writes: &[(u64, &[u8])],
    ) -> Vec<(u64, ChunkBuf)> {
        let lengths = writes.iter().map(|(offset_bytes, bytes)| (*offset_bytes, bytes.len()));
        let bufs = match volume.0.buffer_share(&self.intake.buffer_shares) {
            None => self.buffers(lengths),
            Some(share) => {
                let credits = self.credits_of(lengths);
                let sum = credits.iter().map(|&(_, credit)| credit).sum();
                share.take(sum);
                self.intake.take_buffer_credit(sum);
                let buf = |(length_bytes, credit)| share.buffer(length_bytes, credit);
                credits.into_iter().map(buf).collect()
            }
        };
        let fill = |(&(offset_bytes, bytes), mut buf): (&(u64, &[u8]), ChunkBuf)| {
            buf.bytes_mut().copy_from_slice(bytes);
            (offset_bytes, buf)
        };
        writes.iter().zip(bufs).map(fill).collect()
    }
}

/// Sends a write and waits for its answer, unless it is acknowledged at once.
pub(crate) fn wait_unless_accepted(
    send: impl FnOnce(Done<()>) -> Accepted,
) -> Result<(), RequestError> {
    let (done, pending) = Done::pending();
    match send(done) {
        Accepted::Now => Ok(()),
        Accepted::Later => pending.wait(),
    }
}
