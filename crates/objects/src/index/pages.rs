//! The pages of redb: read from the volume, and kept in memory when they change.
//!
//! ```text
//! redb writes ──> changed chunks in memory ──write_out──> length, pages, mirror, both headers
//!                        └──────discard──────> nothing has happened
//! ```
//!
//! redb never sees an error of a write, because nothing is written while it works. The order of
//! [`Pages::write_out`] makes its header page the commit: a crash leaves a prefix, and what comes
//! before the header is named by nobody yet. That holds because redb does not write over a page of
//! its last commit.
//!
//! redb writes from any thread, between commits as well: a reader that finds the cache full writes
//! what a commit has left there. So writes wait for a write-out, which forgets what it has written.
//!
//! Invariant: what [`StorageBackend::read`] gives is what redb wrote last, or what the volume holds
//! of the last commit, or an error; never other bytes.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use format::BLOCK_BYTES;
use format::objects::header::{INDEX_BYTES_MAX, INDEX_COPIES_AT_BYTES, IndexLength};
use format::objects::index_page::PageRef;
use mutants::mutant;
use redb::StorageBackend;
use store::{RequestError, Reservation, ReservedFor, WriteOptions, WriteRoom};

use crate::index::IndexError;
use crate::index::locks::{lock, read, write};
use crate::volume::BucketVolume;

const CHUNK_BYTES: u64 = BLOCK_BYTES as u64;

/// Chunks that are written at once: what the engine's write buffer has room for beside others.
const CHUNKS_PER_WRITE: usize = 256;
/// Bytes that are read ahead.
const AHEAD_BYTES: u64 = 64 << 10;
/// How chunks of the index are written: they are no duplicates, and die young.
pub(crate) const UNINDEXED: WriteOptions =
    WriteOptions { durability: store::Durability::Acknowledged, unindexed: true };

type Chunk = Box<[u8; BLOCK_BYTES]>;

/// The pages of one opening of redb.
pub(crate) struct Pages {
    volume: Arc<dyn BucketVolume>,
    uuid: [u8; 16],
    /// Held by who changes `kept`, and through a whole write-out. Taken before `kept`.
    writing: Mutex<()>,
    kept: RwLock<Kept>,
    /// Changes only while `kept` is held.
    ahead: Mutex<Ahead>,
    discarded: AtomicBool,
}

/// Chunks that were read because they lie behind one that was asked for.
#[derive(Default)]
struct Ahead {
    start_bytes: u64,
    bytes: Vec<u8>,
    /// Where a chunk was asked for last that was not in here.
    missed_bytes: u64,
}

impl Ahead {
    fn get(&self, offset_bytes: u64, length: usize) -> Option<&[u8]> {
        let start = offset_bytes.checked_sub(self.start_bytes)? as usize;
        self.bytes.get(start..start.checked_add(length)?)
    }
}

/// What redb has changed since the last commit that is on the volume.
struct Kept {
    length_bytes: u64,
    stored_length_bytes: u64,
    changed: BTreeMap<u64, Chunk>,
}

/// Whether a chunk cannot be read, and others can.
pub(crate) fn is_damage(error: &RequestError) -> bool {
    matches!(
        error,
        RequestError::Damaged { .. }
            | RequestError::DamagedTable { .. }
            | RequestError::ReadFailed { .. }
    )
}

impl Pages {
    /// Those of a new index: none.
    pub(crate) fn new(volume: Arc<dyn BucketVolume>, uuid: [u8; 16]) -> Self {
        Self::with_length(volume, uuid, 0)
    }

    /// Those of the last commit.
    pub(crate) fn open(volume: Arc<dyn BucketVolume>, uuid: [u8; 16]) -> Result<Self, IndexError> {
        let length_bytes = read_length(&*volume, uuid)?;
        Ok(Self::with_length(volume, uuid, length_bytes))
    }

    fn with_length(volume: Arc<dyn BucketVolume>, uuid: [u8; 16], length_bytes: u64) -> Self {
        let kept =
            Kept { length_bytes, stored_length_bytes: length_bytes, changed: BTreeMap::new() };
        let (kept, discarded) = (RwLock::new(kept), AtomicBool::new(false));
        Self { volume, uuid, writing: Mutex::default(), kept, ahead: Mutex::default(), discarded }
    }

    /// Those of the last commit, of which nobody says how many there are: for a salvage.
    pub(crate) fn open_without_length(volume: Arc<dyn BucketVolume>, uuid: [u8; 16]) -> Self {
        Self::with_length(volume, uuid, INDEX_BYTES_MAX)
    }

    /// A page of the last commit.
    ///
    /// # Errors
    /// [`RequestError`] when it can be read from neither copy.
    pub(crate) fn read_page(&self, page: PageRef) -> Result<Vec<u8>, RequestError> {
        let mut bytes = store::zeroed(page.length_bytes as usize)?;
        self.read_stored(page.offset_bytes, &mut bytes)?;
        Ok(bytes)
    }

    /// Ends this opening: what was not written out never happened, and redb gets errors only. Waits
    /// for a write-out, so that who opens the volume next finds a whole commit.
    pub(crate) fn discard(&self) {
        let _written_out = lock(&self.writing);
        self.discarded.store(true, Ordering::Release);
    }

    /// Makes the volume hold what redb has written, which is a commit of it. Returns how many
    /// chunks were written; none: these pages had been discarded, and nothing was written.
    ///
    /// # Errors
    /// [`RequestError`]; the volume holds the last commit as before, and these pages are to be
    /// discarded.
    pub(crate) fn write_out(&self, reserved_for: ReservedFor) -> Result<Option<u64>, RequestError> {
        let writing = lock(&self.writing);
        if self.check_open().is_err() {
            return Ok(None);
        }
        let written = {
            let kept = read(&self.kept);
            let (before, behind) = self.length_blocks(&kept);
            let writes = kept.in_order(before.as_ref(), behind.as_ref());
            if writes.is_empty() {
                return Ok(Some(0));
            }
            let count = writes.len() as u64;
            let room = WriteRoom::of_chunks(count, runs_in(&writes));
            let reservation = self.volume.reserve(room, reserved_for)?;
            self.write_all(&reservation, &writes)?;
            count
        };
        let mut kept = write(&self.kept);
        let (length, stored) = (kept.length_bytes, kept.stored_length_bytes);
        kept.stored_length_bytes = length;
        kept.changed.clear();
        // It may hold what was there before.
        lock(&self.ahead).bytes.clear();
        drop((kept, writing));
        if length < stored {
            for copy_at in INDEX_COPIES_AT_BYTES {
                // Room that does not come back yet; nothing is wrong if it does not.
                let _ = self.volume.trim(copy_at + CHUNK_BYTES + length, stored - length);
            }
        }
        Ok(Some(written))
    }

    /// Blocks with the length: what is written before the pages, and what behind the header.
    fn length_blocks(&self, kept: &Kept) -> (Option<Chunk>, Option<Chunk>) {
        let length = IndexLength { uuid: self.uuid, length_bytes: kept.length_bytes };
        let block = || Box::new(length.encode());
        match kept.length_bytes.cmp(&kept.stored_length_bytes) {
            std::cmp::Ordering::Greater => (Some(block()), None),
            std::cmp::Ordering::Equal => (None, None),
            std::cmp::Ordering::Less => (None, Some(block())),
        }
    }

    fn write_all(
        &self,
        reservation: &Reservation,
        writes: &[(u64, &[u8])],
    ) -> Result<(), RequestError> {
        let mut bytes = Vec::new();
        for some in writes.chunks(CHUNKS_PER_WRITE) {
            bytes.clear();
            some.iter().for_each(|(_, chunk)| bytes.extend_from_slice(chunk));
            let runs = runs(some.iter().map(|&(at_bytes, _)| at_bytes), &bytes);
            self.volume.write_reserved_at(reservation, &runs, UNINDEXED)?;
        }
        Ok(())
    }

    /// Whole chunks of the last commit, of the mirror where the first copy is damaged.
    fn read_stored(&self, offset_bytes: u64, out: &mut [u8]) -> Result<(), RequestError> {
        let at = |copy: usize, offset_bytes: u64| {
            INDEX_COPIES_AT_BYTES[copy] + CHUNK_BYTES + offset_bytes
        };
        match self.volume.read_at(at(0, offset_bytes), out) {
            Err(error) if is_damage(&error) => {}
            done => return done,
        }
        for (number, chunk) in out.chunks_mut(BLOCK_BYTES).enumerate() {
            let offset_bytes = offset_bytes + number as u64 * CHUNK_BYTES;
            match self.volume.read_at(at(0, offset_bytes), chunk) {
                Err(error) if is_damage(&error) => {}
                done => {
                    done?;
                    continue;
                }
            }
            self.volume.read_at(at(1, offset_bytes), chunk)?;
            // In a full or read-only store it stays damaged, and the mirror is read again.
            let _ = self.volume.write_vectored_at(&[(at(0, offset_bytes), chunk)], UNINDEXED);
        }
        Ok(())
    }

    /// Reads a chunk from what was read ahead, and reads ahead where the last one was near it: a
    /// merge and a scan ask for neighbours, which earlier merges have written side by side. False
    /// where the chunk is to be read by itself. The caller holds `kept`.
    fn read_ahead(&self, stored_bytes: u64, offset_bytes: u64, out: &mut [u8]) -> bool {
        let is_chunk = out.len() == BLOCK_BYTES && offset_bytes.is_multiple_of(CHUNK_BYTES);
        if !is_chunk || offset_bytes + CHUNK_BYTES > stored_bytes {
            return false;
        }
        let mut ahead = lock(&self.ahead);
        if let Some(bytes) = ahead.get(offset_bytes, BLOCK_BYTES) {
            out.copy_from_slice(bytes);
            return true;
        }
        let missed_bytes = std::mem::replace(&mut ahead.missed_bytes, offset_bytes);
        if offset_bytes.abs_diff(missed_bytes) > AHEAD_BYTES {
            return false;
        }
        let length = AHEAD_BYTES.min(stored_bytes - offset_bytes) as usize;
        ahead.start_bytes = offset_bytes;
        ahead.bytes.resize(length, 0);
        let place = INDEX_COPIES_AT_BYTES[0] + CHUNK_BYTES + offset_bytes;
        if self.volume.read_at(place, &mut ahead.bytes).is_err() {
            // Whose fault it is comes out when each is read by itself.
            ahead.bytes.clear();
            return false;
        }
        out.copy_from_slice(&ahead.bytes[..BLOCK_BYTES]);
        true
    }

    /// Whether every chunk of the second copy can be read; how many cannot.
    pub(crate) fn unreadable_mirror_chunks(&self) -> Result<u64, RequestError> {
        let length_bytes = read(&self.kept).stored_length_bytes;
        let mut bytes = vec![0; CHUNKS_PER_WRITE * BLOCK_BYTES];
        let (mut at_bytes, mut unreadable) = (0, 0);
        while at_bytes < length_bytes {
            let here = (bytes.len() as u64).min(length_bytes - at_bytes) as usize;
            let place = INDEX_COPIES_AT_BYTES[1] + CHUNK_BYTES + at_bytes;
            if let Err(error) = self.volume.read_at(place, &mut bytes[..here]) {
                if !is_damage(&error) {
                    return Err(error);
                }
                for (number, chunk) in bytes[..here].chunks_mut(BLOCK_BYTES).enumerate() {
                    let place = place + number as u64 * CHUNK_BYTES;
                    unreadable += u64::from(self.volume.read_at(place, chunk).is_err());
                }
            }
            at_bytes += here as u64;
        }
        Ok(unreadable)
    }

    fn check_open(&self) -> io::Result<()> {
        if self.discarded.load(Ordering::Acquire) {
            return Err(io::Error::other("this opening of the index has ended"));
        }
        Ok(())
    }
}

impl Kept {
    /// All that is to be written, each chunk with its place.
    fn in_order<'a>(
        &'a self,
        before: Option<&'a Chunk>,
        behind: Option<&'a Chunk>,
    ) -> Vec<(u64, &'a [u8])> {
        let length = |block: Option<&'a Chunk>| {
            let places = INDEX_COPIES_AT_BYTES.into_iter();
            block.into_iter().flat_map(move |block| places.clone().map(|at| (at, &block[..])))
        };
        let in_copy = |copy: usize| {
            let place = move |(at, chunk): (&u64, &'a Chunk)| {
                (INDEX_COPIES_AT_BYTES[copy] + CHUNK_BYTES + at, &chunk[..])
            };
            let pages = self.changed.range(CHUNK_BYTES..self.length_bytes).map(place);
            (pages, self.changed.get_key_value(&0).map(place))
        };
        let ((pages, header), (mirror, header_mirror)) = (in_copy(0), in_copy(1));
        if mutant!(WritesNoMirror) {
            return length(before).chain(pages).chain(header).chain(length(behind)).collect();
        }
        if mutant!(WritesIndexHeaderFirst) {
            let headers = length(before).chain(header).chain(header_mirror);
            return headers.chain(pages).chain(mirror).chain(length(behind)).collect();
        }
        let pages = length(before).chain(pages).chain(mirror);
        pages.chain(header).chain(header_mirror).chain(length(behind)).collect()
    }
}

/// How many writes these chunks are when neighbours go together.
fn runs_in(writes: &[(u64, &[u8])]) -> u64 {
    let begins = |some: &[(u64, &[u8])]| {
        let gaps = some.windows(2).filter(|pair| pair[0].0 + CHUNK_BYTES != pair[1].0);
        1 + gaps.count() as u64
    };
    writes.chunks(CHUNKS_PER_WRITE).map(begins).sum()
}

/// Neighbouring chunks as one write each; `bytes` holds them all, one behind the other.
fn runs(places: impl Iterator<Item = u64>, bytes: &[u8]) -> Vec<(u64, &[u8])> {
    let mut runs: Vec<(u64, &[u8])> = Vec::new();
    let (mut start, mut end) = (0, 0);
    for place in places {
        end += BLOCK_BYTES;
        match runs.last_mut() {
            Some((at, run)) if *at + run.len() as u64 == place => *run = &bytes[start..end],
            _ => {
                start = end - BLOCK_BYTES;
                runs.push((place, &bytes[start..end]));
            }
        }
    }
    runs
}

/// The length of the pages, from either copy.
pub(crate) fn read_length(volume: &dyn BucketVolume, uuid: [u8; 16]) -> Result<u64, IndexError> {
    let mut failure = None;
    for copy_at in INDEX_COPIES_AT_BYTES {
        match read_length_copy(volume, copy_at)? {
            Ok(length) if length.uuid == uuid => return Ok(length.length_bytes),
            Ok(_) => failure = Some("its length is another bucket's".to_owned()),
            Err(error) => failure = Some(error),
        }
    }
    Err(IndexError::Damaged(failure.unwrap_or_default()))
}

/// One copy of the length, or what is wrong with it.
pub(crate) fn read_length_copy(
    volume: &dyn BucketVolume,
    copy_at: u64,
) -> Result<Result<IndexLength, String>, RequestError> {
    let mut block = [0; BLOCK_BYTES];
    match volume.read_at(copy_at, &mut block) {
        Ok(()) => Ok(IndexLength::decode(&block).map_err(|error| error.to_string())),
        Err(error) if is_damage(&error) => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the pages of a bucket's index")
    }
}

/// [`Pages`] as redb holds them.
#[derive(Debug)]
pub(crate) struct PagesOfRedb(pub(crate) Arc<Pages>);

impl StorageBackend for PagesOfRedb {
    fn len(&self) -> io::Result<u64> {
        self.0.check_open()?;
        Ok(read(&self.0.kept).length_bytes)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.check_open()?;
        let end = offset + out.len() as u64;
        let first = offset - offset % CHUNK_BYTES;
        let kept = read(&self.0.kept);
        if end > kept.length_bytes {
            return Err(io::Error::other("a read behind the end of the index"));
        }
        if kept.changed.range(first..end).next().is_some() {
            return self.0.read_mixed(&kept, offset, out);
        }
        if !self.0.read_ahead(kept.stored_length_bytes, offset, out) {
            let stored_bytes = kept.stored_length_bytes;
            self.0.read_unchanged(stored_bytes, offset, out).map_err(io::Error::other)?;
        }
        // Another opening may have written over it meanwhile, which is after this one has ended.
        self.0.check_open()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.check_open()?;
        if len > INDEX_BYTES_MAX {
            return Err(io::Error::other("the index of a bucket ends at 7 TiB"));
        }
        let _writing = lock(&self.0.writing);
        let mut kept = write(&self.0.kept);
        kept.changed.split_off(&len.next_multiple_of(CHUNK_BYTES));
        kept.length_bytes = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.check_open()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let _writing = lock(&self.0.writing);
        self.0.check_open()?;
        let mut kept = write(&self.0.kept);
        let (mut at, mut data) = (offset, data);
        while !data.is_empty() {
            let within = (at % CHUNK_BYTES) as usize;
            let (here, rest) = data.split_at(data.len().min(BLOCK_BYTES - within));
            let place = at - within as u64;
            if !kept.changed.contains_key(&place) {
                let mut chunk: Chunk = Box::new([0; BLOCK_BYTES]);
                if here.len() < BLOCK_BYTES {
                    let stored_bytes = kept.stored_length_bytes;
                    let read = self.0.read_unchanged(stored_bytes, place, &mut chunk[..]);
                    read.map_err(io::Error::other)?;
                }
                kept.changed.insert(place, chunk);
            }
            if let Some(chunk) = kept.changed.get_mut(&place) {
                chunk[within..within + here.len()].copy_from_slice(here);
            }
            at += here.len() as u64;
            data = rest;
        }
        Ok(())
    }
}

impl Pages {
    /// What the volume holds; zeros behind what was ever written.
    fn read_unchanged(
        &self,
        stored_bytes: u64,
        offset_bytes: u64,
        out: &mut [u8],
    ) -> Result<(), RequestError> {
        let there = stored_bytes.saturating_sub(offset_bytes).min(out.len() as u64) as usize;
        let (there, behind) = out.split_at_mut(there);
        behind.fill(0);
        if there.is_empty() {
            return Ok(());
        }
        let within = (offset_bytes % CHUNK_BYTES) as usize;
        if within == 0 && there.len().is_multiple_of(BLOCK_BYTES) {
            return self.read_stored(offset_bytes, there);
        }
        // Only the header is read in parts: whole chunks, so that the mirror can stand in.
        let mut whole = vec![0; (within + there.len()).next_multiple_of(BLOCK_BYTES)];
        self.read_stored(offset_bytes - within as u64, &mut whole)?;
        there.copy_from_slice(&whole[within..within + there.len()]);
        Ok(())
    }

    /// Bytes of which some chunks have changed.
    fn read_mixed(&self, kept: &Kept, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let (mut at, mut out) = (offset, out);
        while !out.is_empty() {
            let within = (at % CHUNK_BYTES) as usize;
            let length = out.len().min(BLOCK_BYTES - within);
            let (here, rest) = out.split_at_mut(length);
            match kept.changed.get(&(at - within as u64)) {
                Some(chunk) => here.copy_from_slice(&chunk[within..within + here.len()]),
                None => self
                    .read_unchanged(kept.stored_length_bytes, at, here)
                    .map_err(io::Error::other)?,
            }
            at += length as u64;
            out = rest;
        }
        Ok(())
    }
}
