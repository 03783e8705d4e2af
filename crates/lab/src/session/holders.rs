//! A session's vectors, hints and reservations.
//!
//! With room that is held no write may fail for want of it, nor wait: that is asked of every one.
//! What a reservation has left is counted here as well, and who writes more must be refused.

use std::collections::BTreeMap;

use engine::{
    Accepted, ChunkBuf, Counters, Durability, Reply, RequestError, ReservedFor, WriteOptions,
    WriteRoom, control,
};

use crate::failure::Broken;
use crate::oracle::{Register, Value};
use crate::range::Range;
use crate::script::HolderVerb;
use crate::session::doubt::Changed;
use crate::session::held::Holder;
use crate::session::waiting::Waiting;
use crate::session::{SECTOR_BYTES, Session};
use crate::simulation::opening::strange;
use crate::simulation::trouble::Asked;
use crate::workload::{SECTORS, bytes_of};

/// Chunks that are kept for releases in a store that is filled.
const KEPT_CHUNKS: u64 = 32;
/// Chunks of the reservations that fill it, at most.
const FILLING_CHUNKS: u64 = 1024;
/// More of these than fit.
const FILLING_MAX: u32 = 100;
/// Their numbers begin here.
const FILLING_FROM: u32 = 1 << 30;

fn options(durable: bool, unindexed: bool) -> WriteOptions {
    let durability = if durable { Durability::Durable } else { Durability::Acknowledged };
    WriteOptions { durability, unindexed }
}

impl Session<'_> {
    pub(crate) fn perform_of_holder(&mut self, verb: HolderVerb) -> Result<(), Broken> {
        match verb {
            HolderVerb::Vector { volume, first, count, content, durable } => {
                self.write_vector(Range { volume, first, count }, content, durable)
            }
            HolderVerb::Unindexed { volume, first, count, content, durable } => {
                self.write_unindexed(Range { volume, first, count }, content, durable)
            }
            HolderVerb::Reserve { number, volume, chunks, writes, release } => {
                self.reserve(number, volume, WriteRoom { chunks, writes }, release)
            }
            HolderVerb::Held { number, first, count, content, durable } => {
                self.write_held(number, (first, count), content, durable)
            }
            HolderVerb::Unreserve { number } => {
                self.holders.held.remove(&number);
                self.expect_held()
            }
            HolderVerb::Full { volume, first, content } => self.fill_held(volume, first, content),
        }
    }

    /// Writes a range, and its second half again with other contents, as one vector.
    fn write_vector(&mut self, range: Range, content: u64, durable: bool) -> Result<(), Broken> {
        let Some((handle, range)) = self.clip(range) else { return Ok(()) };
        let half = range.count / 2;
        let second = Range { first: range.first + half, count: range.count - half, ..range };
        if handle.read_only() || range.count == 0 || self.has_quota_of(range.volume) {
            return Ok(());
        }
        let parts = [(range, content), (second, content + 1)];
        let writes = parts.map(|(range, content)| {
            (range, bytes_of(content, self.shape, range.first, range.count))
        });
        let bufs = self.bufs_of(&writes)?;
        let before = self.oracle.written();
        let mut changed = Changed { whole: true, before, ..Changed::default() };
        for (range, bytes) in &writes {
            let noted = self.note(*range, Some(bytes));
            changed.whole &= noted.whole;
            changed.registers.extend(noted.registers);
        }
        let covers = durable.then(|| self.oracle.written());
        let done = self.done(Waiting::Change(changed.clone()), covers);
        let tag = done.tag;
        let client = &self.opening.client;
        let accepted = client.write_vectored(&handle, bufs, options(durable, false), done);
        self.take_accepted(accepted, tag, &changed)
    }

    /// Writes a range of which no chunk is to be looked for.
    fn write_unindexed(&mut self, range: Range, content: u64, durable: bool) -> Result<(), Broken> {
        let Some((handle, range)) = self.clip(range) else { return Ok(()) };
        if handle.read_only() || range.count == 0 || self.has_quota_of(range.volume) {
            return Ok(());
        }
        let bytes = bytes_of(content, self.shape, range.first, range.count);
        let writes = [(range, bytes)];
        let bufs = self.bufs_of(&writes)?;
        let changed = self.note(range, Some(&writes[0].1));
        let covers = durable.then(|| self.oracle.written());
        let done = self.done(Waiting::Change(changed.clone()), covers);
        let tag = done.tag;
        let client = &self.opening.client;
        let accepted = client.write_vectored(&handle, bufs, options(durable, true), done);
        if durable && accepted == Accepted::Later && self.trouble.is_none() && !self.shape.tight {
            // Nothing is written over it before it is stored.
            let reply = self.wait_for(tag)?.map_err(Broken::Request)?;
            self.take_change(&changed, &reply)?;
            let holds = |register: &&Register| *self.oracle.now(**register) != Value::Nothing;
            self.holders.unindexed_chunks += changed.registers.iter().filter(holds).count() as u64;
            return Ok(());
        }
        self.take_accepted(accepted, tag, &changed)
    }

    /// As many chunks as were written so were stored without a look-up, at least.
    pub(crate) fn expect_skipped_lookups(&self, counters: &Counters) -> Result<(), Broken> {
        let asked = self.holders.unindexed_chunks;
        if counters.lookups_skipped < asked {
            let said = counters.lookups_skipped;
            return Err(strange("chunks of unindexed writes that were looked for", &(said, asked)));
        }
        Ok(())
    }

    /// Somebody holds room in a volume from now on, if there is any.
    fn reserve(
        &mut self,
        number: u32,
        volume: u32,
        room: WriteRoom,
        release: bool,
    ) -> Result<(), Broken> {
        let Some(handle) = self.opening.volumes.get(&volume).cloned() else { return Ok(()) };
        if handle.read_only() || self.has_quota_of(volume) {
            return Ok(());
        }
        let done = self.done(Waiting::Look, None);
        let tag = done.tag;
        let reserved_for = if release { ReservedFor::Releases } else { ReservedFor::Writes };
        self.opening.client.reserve_with(&handle, room, reserved_for, done);
        match self.wait_for(tag)? {
            Ok(Reply::Reservation(reservation)) => {
                let holder = Holder { reservation, volume, left: room };
                self.holders.held.insert(number, holder);
                Ok(())
            }
            Ok(other) => Err(strange("a reservation", &other)),
            Err(RequestError::NoSpace) if self.shape.tight || self.slowed => {
                self.refused += 1;
                Ok(())
            }
            Err(error) => self.fail(&error, Asked::Upkeep, &Changed::default()),
        }
    }

    /// A store at rest holds for its holders what they have left, and nothing else.
    fn expect_held(&mut self) -> Result<(), Broken> {
        if self.trouble.is_some() {
            return Ok(());
        }
        self.come_to_rest()?;
        let done = self.done(Waiting::Look, None);
        let tag = done.tag;
        self.opening.client.administer(control::GetStats {}, done);
        let held: u64 = self.holders.held.values().map(|holder| holder.left.chunks).sum();
        match self.wait_for(tag)?.map_err(Broken::Request)? {
            Reply::Stats(stats) if stats.under_way.reserved_chunks == held => Ok(()),
            other => Err(strange("what a store at rest holds", &(held, other))),
        }
    }

    /// All room that can be reserved is, and still there is what was kept for releases: it is
    /// written.
    fn fill_held(&mut self, volume: u32, first: u64, content: u64) -> Result<(), Broken> {
        let may_be = self.clip(Range { volume, first, count: KEPT_CHUNKS * SECTORS });
        let whole = may_be.is_some_and(|(handle, range)| {
            !handle.read_only() && range.count == KEPT_CHUNKS * SECTORS
        });
        if !whole || self.trouble.is_some() || self.has_quota_of(volume) {
            return Ok(());
        }
        // What others hold for releases counts as a part of what is kept.
        self.holders.end_all();
        let kept = WriteRoom { chunks: KEPT_CHUNKS, writes: KEPT_CHUNKS };
        self.opening.client.keep_for_release(kept);
        let (release, mut number) = (u32::MAX, FILLING_FROM);
        self.reserve(release, volume, kept, true)?;
        if self.holders.held.remove(&release).is_some() {
            let mut chunks = FILLING_CHUNKS;
            while chunks > 0 {
                self.reserve(number, volume, WriteRoom { chunks, writes: 1 }, false)?;
                match self.holders.held.contains_key(&number) {
                    true => number += 1,
                    false => chunks /= 2,
                }
                if number - FILLING_FROM > FILLING_MAX {
                    return Err(strange("room without an end", &number));
                }
            }
            // A part of it: what is free is less when pages are dirty that were not before.
            let half = WriteRoom { chunks: KEPT_CHUNKS / 2, writes: KEPT_CHUNKS / 2 };
            self.reserve(release, volume, half, true)?;
            if !self.holders.held.contains_key(&release) {
                return Err(strange("room kept for releases", &"it is not there"));
            }
            for at in 0..KEPT_CHUNKS / 2 {
                let range = (first + at * SECTORS, SECTORS);
                self.write_held(release, range, content + at, at % 4 == 0)?;
            }
        }
        self.holders.end_all();
        self.opening.client.keep_for_release(WriteRoom::default());
        Ok(())
    }

    /// Writes a range with room that is held. It takes no more than the reservation has, and what
    /// it has is there.
    fn write_held(
        &mut self,
        number: u32,
        (first, count): (u64, u64),
        content: u64,
        durable: bool,
    ) -> Result<(), Broken> {
        let Some(mut holder) = self.holders.held.remove(&number) else { return Ok(()) };
        let range = Range { volume: holder.volume, first, count };
        let written = match self.clip(range) {
            Some((_, range)) if range.count > 0 => {
                self.write_of_holder(&mut holder, range, content, durable)
            }
            _ => Ok(()),
        };
        self.holders.held.insert(number, holder);
        written
    }

    fn write_of_holder(
        &mut self,
        holder: &mut Holder,
        range: Range,
        content: u64,
        durable: bool,
    ) -> Result<(), Broken> {
        let bytes = bytes_of(content, self.shape, range.first, range.count);
        let writes = [(range, bytes)];
        let bufs = self.bufs_of(&writes)?;
        let end = range.first + range.count;
        let chunks = end.div_ceil(SECTORS) - range.first / SECTORS;
        let WriteRoom { chunks: left_chunks, writes: left_writes } = holder.left;
        let options = options(durable, false);
        if chunks > left_chunks || left_writes == 0 {
            let done = self.done(Waiting::Look, None);
            let tag = done.tag;
            let accepted =
                self.opening.client.write_reserved(&holder.reservation, bufs, options, done);
            return match (accepted, self.stopped) {
                (Accepted::Later, true) => self.wait_for(tag).map(drop),
                (Accepted::Later, false) => match self.wait_for(tag)? {
                    Err(RequestError::ReservationTooSmall { .. }) => Ok(()),
                    other => Err(strange("more than was reserved", &other)),
                },
                _ => Err(strange("more than was reserved", &accepted)),
            };
        }
        holder.left = WriteRoom { chunks: left_chunks - chunks, writes: left_writes - 1 };
        let changed = self.note(range, Some(&writes[0].1));
        let covers = durable.then(|| self.oracle.written());
        let done = self.done(Waiting::Change(changed.clone()), covers);
        let tag = done.tag;
        let accepted = self.opening.client.write_reserved(&holder.reservation, bufs, options, done);
        if accepted == Accepted::Now {
            self.waiting.remove(&tag);
            self.oracle.note_answered(&changed);
        } else if changed.whole && !durable && self.trouble.is_none() {
            return Err(strange("a write with room that is held", &accepted));
        }
        self.drain_backlog(range.count)
    }

    /// What was acknowledged is done; what was not has no place in the order before it is answered,
    /// where it may have to wait for space.
    fn take_accepted(
        &mut self,
        accepted: Accepted,
        tag: u64,
        changed: &Changed,
    ) -> Result<(), Broken> {
        if accepted == Accepted::Now {
            self.waiting.remove(&tag);
            self.oracle.note_answered(changed);
        } else if self.shape.tight || self.slowed {
            self.settle_vector(tag, changed)?;
        }
        self.drain_backlog(changed.registers.len() as u64 * SECTORS)
    }

    /// Waits for writes that may fail for want of space: some of their first chunks may have been
    /// taken then, and the store itself says how many.
    fn settle_vector(&mut self, tag: u64, changed: &Changed) -> Result<(), Broken> {
        match self.wait_for(tag)? {
            Ok(reply) => return self.take_change(changed, &reply),
            Err(RequestError::NoSpace) if self.shape.tight => self.refused += 1,
            Err(error) => return self.fail(&error, changed.asked(), changed),
        }
        let mut held = BTreeMap::new();
        for &register in &changed.registers {
            let Register::Chunk(volume, lba) = register else { continue };
            match self.read_chunk(volume, lba) {
                Err(Broken::Request(error)) => {
                    return self.fail(&error, Self::read_of(volume, lba), changed);
                }
                value => held.insert(register, value?),
            };
        }
        let is_left = |taken: &usize| {
            held.iter().all(|(register, value)| self.oracle.at(*register, *taken) == value)
        };
        let Some(taken) = (changed.before..=self.oracle.written()).rev().find(is_left) else {
            return Err(strange("a vector that failed: no prefix of it", &changed.registers));
        };
        self.oracle.withdraw_to(taken);
        Ok(())
    }

    /// Buffers that hold what is to be written.
    fn bufs_of(&mut self, writes: &[(Range, Vec<u8>)]) -> Result<Vec<(u64, ChunkBuf)>, Broken> {
        let mut bufs = Vec::new();
        for (range, bytes) in writes {
            let offset_bytes = range.first * SECTOR_BYTES;
            let mut buf = self.buf_for(offset_bytes, bytes.len())?;
            buf.bytes_mut().copy_from_slice(bytes);
            bufs.push((offset_bytes, buf));
        }
        Ok(bufs)
    }

    fn has_quota_of(&self, volume: u32) -> bool {
        self.oracle.volume(volume).is_some_and(|entry| entry.quota.is_some())
    }
}
