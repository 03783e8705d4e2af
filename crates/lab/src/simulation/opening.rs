//! One opening of a store, with somebody who asks, on one thread: no call waits for another.
//!
//! The engine is stepped here and nowhere else, so that each step can be followed by a look at the
//! crashes that the tap has seen aside.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use disk::{Doorbell, MemoryDisk};
use engine::{
    Accepted, Address, Ask, Caches, ChunkBuf, Client, Completions, DomainSecret, Done, Engine,
    OpenReport, OpenVolume, Options, Reply, RequestError, Stats, VolumeInfo, control,
};
use format::features::Features;
use format::superblock::Geometry;

use crate::dice::mixed;
use crate::failure::Broken;
use crate::oracle::{CHUNK_BYTES, Entry, Found, Oracle, Register, Value};
use crate::range::Range;
use crate::script::Shape;
use crate::simulation::tap::{Ear, Tap};
use crate::simulation::trouble::{Asked, Trouble};
use crate::workload::SECTORS;

/// Steps without any movement after which a run is stuck.
const STILL_MAX: u32 = 3_000;
/// Chunks of one read while a store is compared.
const READ_CHUNKS: u64 = 128;
/// Chunks between two that were written which are read as well: they must be zeros.
const GAP_CHUNKS: u64 = 16;

/// An answer and whose it is.
pub(crate) type Answer = (u64, Result<Reply, RequestError>);

/// Outcomes as they come, and what they make durable.
struct Inbox {
    state: Mutex<InboxState>,
    ear: Ear,
}

#[derive(Default)]
struct InboxState {
    answers: Vec<Answer>,
    /// Effects that are durable when the request of this tag is answered well.
    covers: BTreeMap<u64, usize>,
}

impl Completions for Inbox {
    fn complete(&self, tag: u64, outcome: Result<Reply, RequestError>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(covered) = state.covers.remove(&tag)
            && outcome.is_ok()
        {
            let mut heard = self.ear.heard();
            heard.flushed = heard.flushed.max(covered);
        }
        state.answers.push((tag, outcome));
    }
}

/// A running store.
pub(crate) struct Opening {
    pub(crate) client: Client,
    pub(crate) report: OpenReport,
    pub(crate) ear: Ear,
    pub(crate) volumes: BTreeMap<u32, Arc<OpenVolume>>,
    /// What makes chunks unreadable.
    pub(crate) tolerant: Option<Trouble>,
    /// Different contents share a fingerprint: a chunk may be stored more than once, aside.
    pub(crate) has_twins: bool,
    /// Ticks of it.
    pub(crate) ticks: u64,
    engine: Engine,
    inbox: Arc<Inbox>,
    next_tag: u64,
}

/// The number of the volume or snapshot that has this name. Of two snapshots that were taken
/// together the name says both, and which volume the second is of.
pub(crate) fn volume_of_name(name: &str) -> Option<u32> {
    let (volume, snapshot) = name.split_once('@').unwrap_or((name, ""));
    let number: u32 = volume.strip_prefix('v')?.split('r').next()?.parse().ok()?;
    let taken = snapshot.trim_start_matches('s').split('.').map(|part| part.parse().ok());
    match taken.collect::<Option<Vec<u32>>>().as_deref() {
        Some([own]) => Some(*own),
        Some([own, other, of_other]) => Some(if number == *of_other { *other } else { *own }),
        _ => Some(number).filter(|_| snapshot.is_empty()),
    }
}

/// Memory for frames that were read: from room for a few of them to room for all, by seed.
fn frame_bytes_of(seed: u64) -> u64 {
    [256 << 10, 16 << 20, 32 << 10, 2 << 20][(seed / 4 % 4) as usize]
}

/// Chunks of a volume after which `auto` chooses anew: so few that it does so in a short life.
const JUDGED_CHUNKS: u64 = 24;

impl Opening {
    /// Opens what is on the disk.
    pub(crate) fn new(disk: &MemoryDisk, shape: &Shape, ear: Ear) -> Result<Self, Broken> {
        let doorbell = Doorbell::new().map_err(|error| Broken::Machine(error.to_string()))?;
        let options = Options {
            memory_bytes: 64 << 20,
            worker_threads: 0,
            sync: false,
            accelerator: shape.accelerator(),
            ..Default::default()
        };
        let tap = Box::new(Tap::new(disk.clone(), ear.clone()));
        // What much memory has gathered, little memory has to go on with, and the other way round.
        let [halved, doubled] = match ear.heard().number() % 3 {
            0 if shape.varies => [true, false],
            1 if shape.varies => [false, true],
            _ => [false; 2],
        };
        let of_memory = |pages: usize| (pages << usize::from(doubled)) >> usize::from(halved);
        let cache = Caches {
            pages: of_memory(shape.cache_pages),
            dirty_pages_max: of_memory(shape.dirty_pages_max),
            young_max: of_memory(shape.young_max),
            directory_entries: 2000,
            frame_bytes: frame_bytes_of(shape.seed),
            // A cache of so few pages is meant as it is: a schedule needs what leaves it.
            lends: shape.cache_pages >= 64 && mixed(shape.seed, 9).is_multiple_of(2),
        };
        let (mut engine, client, report) =
            engine::open_with_cache(tap, doorbell, &options, cache).map_err(Broken::DoesNotOpen)?;
        engine.copy_above(shape.copies_above);
        engine.judge_duplicates_every(JUDGED_CHUNKS);
        engine.offer_secret(DomainSecret([shape.seed as u8; 32]));
        let inbox = Arc::new(Inbox { state: Mutex::default(), ear: ear.clone() });
        let volumes = BTreeMap::new();
        let has_twins = shape.detection.verify && !shape.detection.kind.is_strong();
        let (tolerant, next_tag, ticks) = (None, 0, 0);
        let mut opening = Self {
            client,
            report,
            ear,
            volumes,
            tolerant,
            has_twins,
            ticks,
            engine,
            inbox,
            next_tag,
        };
        opening.open_volumes()?;
        Ok(opening)
    }

    /// One step; false when nothing moved.
    pub(crate) fn step(&mut self) -> bool {
        self.engine.step()
    }

    pub(crate) fn tick(&mut self) {
        self.ticks += 1;
        self.engine.tick();
    }

    /// Whom to tell of the next request; well answered, it makes `covers` effects durable.
    pub(crate) fn done<A: Into<Reply>>(&mut self, covers: Option<usize>) -> Done<A> {
        self.next_tag += 1;
        if let Some(covers) = covers {
            let mut state = self.inbox.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.covers.insert(self.next_tag, covers);
        }
        Done::new(Arc::clone(&self.inbox), self.next_tag)
    }

    /// The tag of the newest request.
    pub(crate) fn tag(&self) -> u64 {
        self.next_tag
    }

    /// What has been answered since the last call.
    pub(crate) fn answers(&self) -> Vec<Answer> {
        let mut state = self.inbox.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.answers)
    }

    /// What of that has not been looked at comes again, before all else.
    pub(crate) fn put_back(&self, answers: impl Iterator<Item = Answer>) {
        let mut state = self.inbox.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.answers.splice(..0, answers);
    }

    /// Asks and steps until the answer.
    pub(crate) fn ask<A>(&mut self, send: impl FnOnce(&Client, Done<A>)) -> Result<A, Broken> {
        // A request like any other: the digest tells them by their numbers.
        self.next_tag += 1;
        let (done, pending) = Done::pending();
        send(&self.client, done);
        self.step_until(|_| pending.try_take())?.map_err(Broken::Request)
    }

    /// The same of a write, which may be acknowledged at once.
    pub(crate) fn ask_or_accepted(
        &mut self,
        send: impl FnOnce(&Client, Done<()>) -> Accepted,
    ) -> Result<(), Broken> {
        self.next_tag += 1;
        let (done, pending) = Done::pending();
        match send(&self.client, done) {
            Accepted::Now => Ok(()),
            Accepted::Later => self.step_until(|_| pending.try_take())?.map_err(Broken::Request),
        }
    }

    /// A buffer of the write buffer, once that has room.
    pub(crate) fn buffer(
        &mut self,
        offset_bytes: u64,
        length_bytes: usize,
    ) -> Result<ChunkBuf, Broken> {
        match self.client.try_buffer(offset_bytes, length_bytes) {
            Some(buf) => Ok(buf),
            None => self.step_until(|client| client.try_buffer(offset_bytes, length_bytes)),
        }
    }

    /// Steps until there is what is looked for.
    fn step_until<T>(&mut self, look: impl Fn(&Client) -> Option<T>) -> Result<T, Broken> {
        let mut still = 0;
        loop {
            let moved = self.step();
            if let Some(found) = look(&self.client) {
                return Ok(found);
            }
            if !moved {
                still += 1;
                self.tick();
            }
            if still > STILL_MAX {
                return Err(Broken::StandsStill { waiting: 1 });
            }
        }
    }

    pub(crate) fn administer<A: Ask>(&mut self, verb: A) -> Result<A::Answer, Broken> {
        self.ask(|client, done| client.administer(verb, done))
    }

    /// The figures of the store.
    pub(crate) fn stats(&mut self) -> Result<Stats, Broken> {
        self.administer(control::GetStats {})
    }

    fn open_volumes(&mut self) -> Result<(), Broken> {
        for info in self.administer(control::ListVolumes::all())? {
            let name = info.name;
            let number = volume_of_name(&name).ok_or_else(|| strange("volumes", &name))?;
            let volume = self.administer(control::Open { name, opener: crate::opener() })?;
            self.volumes.insert(number, Arc::new(volume));
        }
        Ok(())
    }

    /// What the store is made of: its detection says whether chunks may be aside because a volume
    /// has no deduplication, or had.
    pub(crate) fn geometry(&mut self) -> Result<Geometry, Broken> {
        self.administer(control::GetGeometry {})
    }

    /// Volumes and snapshots as they are listed, by name. What they have, the geometry knows of.
    fn listed(&mut self) -> Result<BTreeMap<String, VolumeInfo>, Broken> {
        let volumes = self.administer(control::ListVolumes::all())?;
        let has = |one: &VolumeInfo| one.compression.is_some() || one.reservation_bytes.is_some();
        // Who has neither is asked nothing else: the run stays what it was.
        let features = match volumes.iter().any(has) {
            true => self.geometry()?.features,
            false => Features::default(),
        };
        let knows = |feature| features.incompatible & feature != 0;
        let is_known = |volume: &VolumeInfo| {
            let codec = volume.compression.is_none() || knows(Features::VOLUME_CODECS);
            let room = volume.reservation_bytes.is_none() || knows(Features::VOLUME_RESERVATIONS);
            codec && room
        };
        match volumes.iter().find(|volume| !is_known(volume)) {
            Some(volume) => Err(strange("what the geometry knows of", volume)),
            None => Ok(volumes.into_iter().map(|volume| (volume.name.clone(), volume)).collect()),
        }
    }

    /// Everything that the oracle has ever heard of, as the store has it now.
    pub(crate) fn find(&mut self, oracle: &Oracle) -> Result<Found, Broken> {
        let mut found = Found::default();
        let compression = self.administer(control::GetCompression {})?;
        found.values.insert(Register::Compression, Value::Compression(compression));
        let listed = self.listed()?;
        let volumes: Vec<(u32, Arc<OpenVolume>)> =
            self.volumes.iter().map(|(number, volume)| (*number, Arc::clone(volume))).collect();
        for (number, volume) in volumes {
            let (name, size_bytes) = (volume.name(), volume.size_bytes());
            let quota = volume.quota_bytes().map(|bytes| bytes / CHUNK_BYTES as u64);
            let (read_only, domain) = (volume.read_only(), volume.domain().map(str::to_owned));
            let info = listed.get(&name);
            let (dedup, codec) =
                info.map(|info| (info.dedup, info.compression)).unwrap_or_default();
            let reserved = info.and_then(|info| info.reservation_bytes);
            let reserved = reserved.map(|bytes| bytes / CHUNK_BYTES as u64);
            let kind = volume.kind();
            let entry =
                Entry { name, size_bytes, read_only, quota, reserved, dedup, codec, domain, kind };
            found.values.insert(Register::Volume(number), Value::Volume(entry));
            let chunks = size_bytes.div_ceil(CHUNK_BYTES as u64);
            for (first, end) in runs(&oracle.chunks(number, 0..chunks), chunks) {
                self.find_chunks(number, &volume, first, end, &mut found)?;
            }
        }
        Ok(found)
    }

    /// Whether a chunk has a second copy that no read looks for, since few map it by now.
    pub(crate) fn has_unused_copy(&mut self, register: Register) -> Result<bool, Broken> {
        let Register::Chunk(slot, lba) = register else { return Ok(false) };
        let Some(volume) = self.volumes.get(&slot).map(|volume| volume.name()) else {
            return Ok(false);
        };
        let request = control::Explain { volume, address: Address::Lba(lba) };
        match self.administer(request) {
            Ok(explained) => {
                let place = explained.chunk.and_then(|chunk| chunk.place);
                Ok(place.is_some_and(|place| place.second_copy.is_some()))
            }
            Err(Broken::Request(_)) => Ok(false),
            Err(broken) => Err(broken),
        }
    }

    fn read(
        &mut self,
        volume: &OpenVolume,
        offset_bytes: u64,
        out: &mut [u8],
    ) -> Result<(), Broken> {
        let length_bytes = out.len() as u32;
        let pieces =
            self.ask(|client, done| client.read(volume, offset_bytes, length_bytes, done))?;
        pieces.assemble(out).map_err(Broken::Request)
    }

    /// Whether what is wrong with the disk excuses that this chunk cannot be read, and it is named.
    fn excuses(&self, error: &RequestError, number: u32, volume: &OpenVolume, of: u64) -> bool {
        let range = Range { volume: number, first: of * SECTORS, count: SECTORS };
        let is_named = match error {
            RequestError::Damaged { volume: name, lba } => *name == volume.name() && *lba == of,
            _ => true,
        };
        is_named && self.tolerant.is_some_and(|trouble| trouble.excuses(error, Asked::Read(range)))
    }

    fn find_chunks(
        &mut self,
        number: u32,
        volume: &OpenVolume,
        first: u64,
        end: u64,
        found: &mut Found,
    ) -> Result<(), Broken> {
        let chunk_bytes = CHUNK_BYTES as u64;
        let end_bytes = (end * chunk_bytes).min(volume.size_bytes());
        let length_bytes = (end_bytes - first * chunk_bytes) as u32;
        let offset_bytes = first * chunk_bytes;
        // The last chunk of a volume may be cut off by its end: the rest counts as zeros.
        let mut bytes = vec![0; (end - first) as usize * CHUNK_BYTES];
        let out = &mut bytes[..length_bytes as usize];
        match self.read(volume, offset_bytes, out) {
            Ok(()) => {}
            Err(Broken::Request(_)) if self.tolerant.is_some() && end - first > 1 => {
                // Which of them is it?
                return (first..end)
                    .try_for_each(|lba| self.find_chunks(number, volume, lba, lba + 1, found));
            }
            Err(Broken::Request(error)) if self.excuses(&error, number, volume, first) => {
                found.unreadable.insert(Register::Chunk(number, first));
                return Ok(());
            }
            Err(broken) => return Err(broken),
        }
        for (lba, bytes) in (first..).zip(bytes.chunks_exact(CHUNK_BYTES)) {
            match Value::of_chunk(bytes) {
                Value::Nothing => {}
                value => drop(found.values.insert(Register::Chunk(number, lba), value)),
            }
        }
        Ok(())
    }
}

/// Ranges that hold all of these chunks, none longer than one read.
fn runs(lbas: &[u64], end: u64) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for &lba in lbas {
        match runs.last_mut() {
            Some((first, last)) if lba <= *last + GAP_CHUNKS && lba < *first + READ_CHUNKS => {
                *last = lba + 1;
            }
            _ => runs.push((lba, (lba + 1).min(end))),
        }
    }
    runs
}

pub(crate) fn strange(request: &str, reply: &impl std::fmt::Debug) -> Broken {
    Broken::Answer { request: request.to_owned(), answer: format!("{reply:?}") }
}
