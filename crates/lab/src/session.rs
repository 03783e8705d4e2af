//! One life of a store: the requests of a script, the oracle that knows what they mean, and a look
//! aside at every write.

pub(crate) mod ailing;
pub(crate) mod answers;
pub(crate) mod copies;
pub(crate) mod difference;
pub(crate) mod doubt;
mod evacuation;
pub(crate) mod growth;
pub(crate) mod held;
pub(crate) mod holders;
pub(crate) mod pace;
pub(crate) mod rest;
pub(crate) mod trims;
pub(crate) mod upkeep;
pub(crate) mod versions;
pub(crate) mod volumes;
pub(crate) mod waiting;

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{
    Accepted, Ask, CollectPosition, Done, NewVolume, OpenVolume, Reply, RequestError,
    ScrubPosition, control,
};

use crate::dice::Digest;
use crate::failure::Broken;
use crate::oracle::{CHUNK_BYTES, Oracle, Register, Value};
use crate::range::Range;
use crate::script::{Shape, Verb};
use crate::session::doubt::Changed;
use crate::session::held::{Holders, ends_holders};
use crate::session::waiting::{Waiting, Why};
use crate::simulation::aside::{Points, look};
use crate::simulation::opening::{Opening, strange};
use crate::simulation::trouble::Trouble;
use crate::workload::{SECTORS, bytes_of};

/// Requests without an answer before the session waits for them: were they all the longest reads,
/// they would have memory, for which nobody may wait on the core's own thread.
const WAITING_MAX: usize = 24;
/// Steps of a scrub that are asked for, one after the other.
const SCRUB_STEPS: u32 = 8;
/// Steps for one thing that is asked: more say that the engine is busy and gets nowhere.
const STEPS_MAX: u64 = 200_000;
pub(crate) const SECTOR_BYTES: u64 = 512;

/// A running store and what it must hold.
pub(crate) struct Session<'a> {
    pub(crate) opening: Opening,
    pub(crate) oracle: Oracle,
    /// Of every answer.
    pub(crate) digest: Digest,
    pub(crate) points: Points,
    /// Where aside of the run something was found wrong.
    pub(crate) aside: Option<String>,
    /// Requests that failed with the disk.
    pub(crate) failed: u64,
    /// Requests refused for want of room.
    pub(crate) refused: u64,
    /// Growths that were answered well.
    pub(crate) grown: u64,
    /// Data zones that were taken out.
    pub(crate) removed: u64,
    /// Times that the store was filled.
    pub(crate) filled: u64,
    /// What is wrong with the disk.
    pub(crate) trouble: Option<Trouble>,
    /// A write was answered with a failure of the disk: no later one may be acknowledged.
    pub(crate) stopped: bool,
    /// Some file's operations were held back: room may come too late for a write not to wait.
    pub(crate) slowed: bool,
    /// Steps since something was last asked.
    pub(crate) steps: u64,
    /// Where the scrub goes on.
    pub(crate) scrub: ScrubPosition,
    /// A root slot may have been lost with a crash, and no scrub has mended it yet.
    pub(crate) slot_in_doubt: bool,
    /// PBNs that a repair abandoned.
    pub(crate) given_up: u64,
    /// Scrubs that came to their end.
    pub(crate) scrubbed: u64,
    /// Where collection on request goes on, without and with compressing anew.
    pub(crate) collect: [Option<CollectPosition>; 2],
    /// Steps of that since it began.
    pub(crate) collected: [u64; 2],
    /// What the engine last said of itself.
    pub(crate) figures: engine::Counters,
    pub(crate) shape: &'a Shape,
    pub(crate) waiting: BTreeMap<u64, Waiting>,
    pub(crate) backlog_chunks: u64,
    /// How many effects there were when so many of them had become known to be durable.
    pub(crate) flushes: Vec<(usize, usize)>,
    /// Whether a close was asked for, and answered well.
    pub(crate) is_closing: bool,
    pub(crate) is_closed: bool,
    /// The request that was answered last.
    pub(crate) answered: u64,
    /// Ticks when all could be read again that could not for a while.
    pub(crate) passed_ticks: Option<u64>,
    /// Reservations, and what was written without a look-up.
    pub(crate) holders: Holders,
    /// The last request that was asked before that was known to everybody.
    pub(crate) over_from: Option<u64>,
}

impl<'a> Session<'a> {
    pub(crate) fn new(opening: Opening, oracle: Oracle, shape: &'a Shape) -> Self {
        Self {
            opening,
            oracle,
            digest: Digest::default(),
            points: Points::default(),
            aside: None,
            failed: 0,
            refused: 0,
            grown: 0,
            removed: 0,
            filled: 0,
            trouble: None,
            stopped: false,
            slowed: false,
            steps: 0,
            scrub: ScrubPosition::default(),
            slot_in_doubt: false,
            given_up: 0,
            scrubbed: 0,
            collect: [None; 2],
            collected: [0; 2],
            figures: engine::Counters::default(),
            shape,
            waiting: BTreeMap::new(),
            backlog_chunks: 0,
            flushes: Vec::new(),
            is_closing: false,
            is_closed: false,
            answered: 0,
            passed_ticks: None,
            holders: Holders::default(),
            over_from: None,
        }
    }

    /// Effects that are known to be durable.
    pub(crate) fn flushed(&self) -> usize {
        self.opening.ear.heard().flushed
    }

    /// Looks at the crashes that the tap has seen.
    pub(crate) fn look_aside(&mut self) -> Result<(), Broken> {
        for point in self.opening.ear.take_points() {
            if let Err((aside, broken)) = look(&point, &self.oracle, self.shape, &mut self.points) {
                self.aside = Some(aside);
                return Err(broken);
            }
        }
        Ok(())
    }

    pub(crate) fn step(&mut self) -> Result<bool, Broken> {
        let moved = self.opening.step();
        let flushed = self.flushed();
        if self.flushes.last().is_none_or(|(_, known)| *known < flushed) {
            self.flushes.push((self.oracle.written(), flushed));
        }
        self.note_passing();
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return Err(Broken::StandsStill { waiting: self.waiting.len() });
        }
        self.look_aside()?;
        Ok(moved)
    }

    /// Asks one thing.
    pub(crate) fn perform(&mut self, verb: &Verb) -> Result<(), Broken> {
        self.steps = 0;
        let in_doubt = self.trouble.is_some_and(Trouble::harms_tables);
        if ends_holders(verb) {
            self.holders.end_all();
        }
        if verb.changes_volumes() && (in_doubt || self.stopped) {
            return Ok(());
        }
        match *verb {
            Verb::Create { volume, sectors, read_only } => {
                self.create(volume, sectors, read_only)?
            }
            Verb::Resize { volume, sectors } => self.resize(volume, sectors)?,
            Verb::Rename { volume, number } => self.rename(volume, number)?,
            Verb::Delete { volume } => self.delete(volume)?,
            Verb::Snapshot { volume, snapshot } => self.snapshot(&[[volume, snapshot]])?,
            Verb::Snapshots { first, second } => self.snapshot(&[first, second])?,
            Verb::Clone { snapshot, volume } => self.clone_volume(snapshot, volume)?,
            Verb::Rollback { snapshot } => self.roll_back(snapshot)?,
            Verb::Difference { from, to } => self.differ(from, to)?,
            Verb::Quota { volume, chunks } => self.set_quota(volume, chunks)?,
            Verb::Dedup { volume, dedup } => self.set_dedup(volume, dedup)?,
            Verb::Codec { volume, compression } => self.set_codec(volume, compression)?,
            Verb::Promise { volume, chunks } => self.set_reservation(volume, chunks)?,
            Verb::Compress(compression) => self.set_compression(compression)?,
            Verb::Write { volume, first, count, content, durable } => {
                self.write(Range { volume, first, count }, content, durable)?;
            }
            Verb::Holder(verb) => self.perform_of_holder(verb)?,
            Verb::Trim { volume, first, count, durable } => {
                self.trim(Range { volume, first, count }, durable)?;
            }
            Verb::Copy { .. } => self.copy(verb)?,
            Verb::Read { volume, first, count } => self.read(Range { volume, first, count })?,
            Verb::Extents { volume, first, count } => self.extents(Range { volume, first, count }),
            Verb::Bad { volume } => self.bad(volume),
            Verb::Flush => self.ask_flush(),
            Verb::Tick => self.opening.tick(),
            Verb::Stats => {
                let done = self.done(Waiting::Look, None);
                self.opening.client.administer(control::GetStats {}, done);
            }
            Verb::Scrub { fingerprints } => self.ask_scrub(fingerprints, SCRUB_STEPS - 1),
            Verb::Collect { recompress } => self.collect(recompress),
            Verb::Grow { further } => self.grow(further)?,
            Verb::Evacuate { zone, more } => self.evacuate(zone, more),
            Verb::Fill { volume, first, content } => self.fill(volume, first, content)?,
            Verb::Fits { volume, first, content } => self.fits(volume, first, content)?,
            Verb::Idle => self.idle()?,
            Verb::Trouble { kind, number } => self.begin_trouble(kind, number)?,
        }
        self.take_answers()?;
        if self.waiting.len() > WAITING_MAX {
            self.wait_for_all()?;
        }
        Ok(())
    }

    pub(crate) fn done<A: Into<Reply>>(
        &mut self,
        waiting: Waiting,
        covers: Option<usize>,
    ) -> Done<A> {
        let done = self.opening.done(covers);
        self.waiting.insert(done.tag, waiting);
        done
    }

    /// The part of a range that lies in the volume, with the volume; None when there is neither.
    pub(crate) fn clip(&self, range: Range) -> Option<(Arc<OpenVolume>, Range)> {
        let Range { volume, first, count } = range;
        let handle = self.opening.volumes.get(&volume)?.clone();
        let mut size_bytes = self.oracle.volume(volume)?.size_bytes;
        if self.stopped {
            // The last resize may have failed.
            size_bytes = size_bytes.min(handle.size_bytes());
        }
        let sectors = size_bytes / SECTOR_BYTES;
        let count = count.min(sectors.checked_sub(first)?);
        Some((handle, Range { volume, first, count }))
    }

    pub(crate) fn write(
        &mut self,
        range: Range,
        content: u64,
        durable: bool,
    ) -> Result<(), Broken> {
        let Some((handle, range)) = self.clip(range) else { return Ok(()) };
        let Range { volume, first, count } = range;
        let bytes = bytes_of(content, self.shape, first, count);
        let offset_bytes = first * SECTOR_BYTES;
        let mut buf = self.buf_for(offset_bytes, bytes.len())?;
        buf.bytes_mut().copy_from_slice(&bytes);
        if handle.read_only() {
            let done = self.done(Waiting::Refused(Why::ReadOnly), None);
            self.opening.client.write(&handle, offset_bytes, buf, durable, done);
            return Ok(());
        }
        let allowed = self.quota_allows(range);
        let changed = self.note(range, Some(&bytes));
        let covers = durable.then(|| self.oracle.written());
        let is_empty = count == 0;
        let waiting = if is_empty { Waiting::Plain } else { Waiting::Change(changed.clone()) };
        let done = self.done(waiting, covers);
        let tag = done.tag;
        let accepted = self.opening.client.write(&handle, offset_bytes, buf, durable, done);
        if accepted == Accepted::Now {
            self.waiting.remove(&tag);
            self.oracle.note_answered(&changed);
            if allowed.is_some() && !is_empty {
                return Err(strange("a write to a volume with a quota", &accepted));
            }
            if self.stopped && !is_empty {
                return Err(strange("a write to a store that stopped", &accepted));
            }
        } else if self.shape.tight || self.slowed || allowed.is_some() {
            // It may wait for space, and until it is answered it has no place in the order.
            self.settle_place(tag, volume, &changed, allowed)?;
        } else if !is_empty && changed.whole && !durable && self.trouble.is_none() {
            return Err(strange("a write to a store with room", &accepted));
        }
        self.drain_backlog(count)
    }

    /// Waits for a write that may fail for want of space. If it does, some of its first chunks may
    /// have been taken: the store itself says how many. A quota refuses exactly what is not
    /// `allowed`.
    fn settle_place(
        &mut self,
        tag: u64,
        volume: u32,
        changed: &Changed,
        allowed: Option<bool>,
    ) -> Result<(), Broken> {
        let outcome = self.wait_for(tag)?;
        match outcome {
            Ok(reply) if allowed == Some(false) && !self.oracle.has_doubts(volume) => {
                return Err(strange("a write beyond a quota", &reply));
            }
            Ok(reply) => return self.take_change(changed, &reply),
            // What counts is what the volume holds, and a request that failed leaves that open.
            Err(RequestError::QuotaExceeded { .. }) if self.oracle.has_doubts(volume) => {
                self.oracle.doubt(changed);
                return Ok(());
            }
            Err(RequestError::NoSpace) if self.shape.tight => self.refused += 1,
            Err(RequestError::QuotaExceeded { .. }) if allowed == Some(false) => self.refused += 1,
            Err(error) => return self.fail(&error, changed.asked(), changed),
        }
        self.keep_taken(changed)
    }

    /// What a refused request has not done was never asked for.
    pub(crate) fn keep_taken(&mut self, changed: &Changed) -> Result<(), Broken> {
        let (mut taken, before) = (0, changed.before);
        for (number, register) in changed.registers.iter().enumerate() {
            let Register::Chunk(volume, lba) = *register else { continue };
            let held = match self.read_chunk(volume, lba) {
                Err(Broken::Request(error)) => {
                    return self.fail(&error, Self::read_of(volume, lba), changed);
                }
                held => held?,
            };
            let new = self.oracle.at(*register, before + number + 1);
            let old = self.oracle.at(*register, before);
            if held == *new && (taken == number || new != old) {
                if taken < number {
                    return Err(self.wrong(volume, lba));
                }
                taken = number + 1;
            } else if held != *old {
                return Err(self.wrong(volume, lba));
            }
        }
        self.oracle.withdraw_to(before + taken);
        Ok(())
    }

    pub(crate) fn wrong(&self, volume: u32, lba: u64) -> Broken {
        Broken::WrongBytes { volume: format!("v{volume}"), lba }
    }

    /// Notes what a write of these bytes, or of zeros, changes, chunk by chunk.
    pub(crate) fn note(&mut self, range: Range, bytes: Option<&[u8]>) -> Changed {
        let Range { volume, first, count } = range;
        let lbas: Vec<u64> = match bytes {
            Some(_) => (first / SECTORS..(first + count).div_ceil(SECTORS)).collect(),
            None => self.oracle.chunks(volume, first / SECTORS..(first + count).div_ceil(SECTORS)),
        };
        let whole = (first | count).is_multiple_of(SECTORS);
        let mut changed = Changed { whole, before: self.oracle.written(), ..Changed::default() };
        for lba in lbas.into_iter().filter(|_| count > 0) {
            let register = Register::Chunk(volume, lba);
            let (start, end) = (first.max(lba * SECTORS), (first + count).min((lba + 1) * SECTORS));
            let inside = ((start - lba * SECTORS) * SECTOR_BYTES) as usize
                ..((end - lba * SECTORS) * SECTOR_BYTES) as usize;
            let mut chunk = match self.oracle.now(register) {
                Value::Chunk(chunk) => chunk.to_vec(),
                _ if bytes.is_none() => continue,
                _ => vec![0; CHUNK_BYTES],
            };
            match bytes {
                Some(bytes) => {
                    let at = ((start - first) * SECTOR_BYTES) as usize;
                    chunk[inside.clone()].copy_from_slice(&bytes[at..at + inside.len()]);
                }
                None => chunk[inside].fill(0),
            }
            self.oracle.write(register, Value::of_chunk(&chunk));
            changed.registers.push(register);
        }
        changed
    }

    fn read(&mut self, range: Range) -> Result<(), Broken> {
        let Some((handle, range)) = self.clip(range) else { return Ok(()) };
        let (offset_bytes, length_bytes) =
            (range.first * SECTOR_BYTES, (range.count * SECTOR_BYTES) as u32);
        // A door need not know yet what is not acknowledged.
        let comes = |waiting: &Waiting| matches!(waiting, Waiting::Plain | Waiting::Change(_));
        if self.shape.asks_doors()
            && !self.waiting.values().any(comes)
            && let Some(pieces) = self.opening.client.read_held(&handle, offset_bytes, length_bytes)
        {
            return self.take_read(range, self.oracle.written(), &pieces);
        }
        let done = self.done(Waiting::Read(range, self.oracle.written()), None);
        self.opening.client.read(&handle, offset_bytes, length_bytes, done);
        Ok(())
    }

    fn extents(&mut self, range: Range) {
        let Some((handle, range)) = self.clip(range) else { return };
        if range.count == 0 {
            return;
        }
        let (offset_bytes, length_bytes) = (range.first * SECTOR_BYTES, range.count * SECTOR_BYTES);
        let done = self.done(Waiting::Extents(range, self.oracle.written()), None);
        self.opening.client.extents(&handle, offset_bytes, length_bytes, 64, done);
    }

    /// Requests that must be refused and change nothing.
    fn bad(&mut self, volume: u32) {
        let (Some(handle), Some(entry)) =
            (self.opening.volumes.get(&volume).cloned(), self.oracle.volume(volume).cloned())
        else {
            return;
        };
        let done = self.done(Waiting::Refused(Why::OutOfRange), None);
        self.opening.client.read(&handle, entry.size_bytes, 512, done);
        let done = self.done(Waiting::Refused(Why::OutOfRange), None);
        self.opening.client.trim(&handle, entry.size_bytes - 100, 512, false, done);
        let done = self.done(Waiting::Refused(Why::VolumeExists), None);
        let (name, size_bytes) = (entry.name, 512);
        let new = NewVolume { name, size_bytes, ..NewVolume::default() };
        let request = new;
        self.opening.client.administer(request, done);
    }

    /// A change of volumes or settings whose effects, after the first `before`, are noted: durable
    /// once answered. False if the disk is to blame that it is none.
    pub(crate) fn change<A: Ask>(&mut self, verb: A, before: usize) -> Result<bool, Broken> {
        if self.trouble.is_some() {
            return self.change_now(verb, before);
        }
        let done = self.done(Waiting::Plain, Some(self.oracle.written()));
        self.opening.client.administer(verb, done);
        // Names and sizes change when the core takes the request.
        self.step().map(|_| true)
    }

    /// Asks the engine what it has done.
    pub(crate) fn tally(&mut self) -> Result<(), Broken> {
        let done = self.done(Waiting::Plain, None);
        let tag = done.tag;
        self.opening.client.administer(control::GetStats {}, done);
        if let Ok(Reply::Stats(stats)) = self.wait_for(tag)? {
            self.expect_skipped_lookups(&stats.counters)?;
            self.figures = stats.counters;
        }
        Ok(())
    }

    /// Closes the store, whatever is under way: it is all answered, and everything is durable then.
    pub(crate) fn close(&mut self) -> Result<(), Broken> {
        self.holders.end_all();
        let done = self.done(Waiting::Close, Some(self.oracle.written()));
        self.opening.client.administer(control::Close {}, done);
        self.is_closing = true;
        self.wait_for_all()
    }
}
