//! What a repair overwrites, kept first: a disk that writes what stood there to a file, durably,
//! before it writes anything to the disk below.
//!
//! ```text
//! write ──> held in memory ──> old bytes to the undo file ──> its sync ──> the disk below
//! ```
//!
//! Writes are held, up to a bound, so that one sync of the file serves many. A write may be held
//! as long as no sync of its zone has been asked for: until then no disk promises that it is
//! durable. A read that touches what is held writes it first.
//!
//! Invariants: nothing reaches the disk below whose old bytes are not durable in the file; a file
//! that nothing was written to is removed again. [`crate::UndoImage`] goes back.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use format::checksum::crc32c;
use format::undo::{UNDO_BYTES_MAX, UndoEntry, UndoStart, sector_crcs};
use format::units::Zone;

use crate::ahead::AllocationAhead;
use crate::buffer::SharedBuf;
use crate::create::sync_directory;
use crate::error::{Cause, ErrorClass, FileError, IoError, Verb};
use crate::io::{Completion, Disk, Io, IoKind};
use crate::undo::now::Now;

mod going_back;
mod longer;
mod now;

pub use self::going_back::{UndoError, UndoImage};
pub use self::longer::{LongerView, zone_tail};

/// Bytes of writes that are held at most; a write is one entry of the file.
const HELD_BYTES_MAX: usize = UNDO_BYTES_MAX as usize;
/// Readable by its owner alone: it holds what a store holds.
const MODE: u32 = 0o600;

/// The file to which a repair's [`UndoDisk`] writes.
#[derive(Clone)]
pub struct UndoFile(Arc<Mutex<Written>>);

struct Written {
    path: PathBuf,
    file: File,
    /// Files that the repair has made longer, with their bytes before.
    short: Vec<(Zone, u64)>,
    entries: u64,
}

impl UndoFile {
    /// Makes the file, which must not be there; `short`: files that the repair makes longer, with
    /// their bytes before.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn create(path: &Path, short: Vec<(Zone, u64)>) -> Result<Self, FileError> {
        let path =
            std::path::absolute(path).map_err(|error| FileError::new("find", path, error))?;
        let file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(&path);
        let file = file.map_err(|error| FileError::new("make", &path, error))?;
        Ok(Self(Arc::new(Mutex::new(Written { path, file, short, entries: 0 }))))
    }

    /// The repair has ended. Gives where the file is; none where nothing was overwritten, and no
    /// file is left.
    ///
    /// # Errors
    /// [`FileError`]; the file goes back to before the repair all the same.
    pub fn finish(&self) -> Result<Option<PathBuf>, FileError> {
        let mut written = self.lock();
        if written.entries == 0 {
            let removed = fs::remove_file(&written.path);
            return removed
                .map(|()| None)
                .map_err(|error| FileError::new("remove", &written.path, error));
        }
        let (zone, old) = (Zone::Superblock, &[][..]);
        let ended = written.append(zone, 0, old, old).and_then(|()| written.file.sync_data());
        ended
            .map(|()| Some(written.path.clone()))
            .map_err(|error| FileError::new("write", &written.path, error))
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Written {
    fn begin(&mut self, superblock_crc: u32, journal_crc: u32) -> io::Result<()> {
        let start = UndoStart { superblock_crc, journal_crc, short: self.short.clone() };
        self.file.write_all(&start.encode())?;
        // The file is there for good before anything of the store changes.
        let parent = self.path.parent().unwrap_or(Path::new("/"));
        sync_directory(parent).map_err(io::Error::other)
    }

    fn append(&mut self, zone: Zone, offset_bytes: u64, old: &[u8], new: &[u8]) -> io::Result<()> {
        let length_bytes = u32::try_from(old.len()).map_err(io::Error::other)?;
        let (old_crc, new_crcs) = (crc32c(old), sector_crcs(new));
        let number = self.entries;
        let entry = UndoEntry { number, zone, offset_bytes, length_bytes, old_crc, new_crcs };
        self.file.write_all(&entry.encode())?;
        self.file.write_all(old)?;
        self.entries += 1;
        Ok(())
    }
}

/// A write that is held.
struct Held {
    zone: Zone,
    offset_bytes: u64,
    buf: SharedBuf,
}

impl Held {
    fn touches(&self, zone: Zone, offset_bytes: u64, length_bytes: usize) -> bool {
        self.zone == zone
            && self.offset_bytes < offset_bytes.saturating_add(length_bytes as u64)
            && offset_bytes < self.offset_bytes + self.buf.len() as u64
    }
}

/// A disk that keeps what it overwrites.
pub struct UndoDisk {
    below: Box<dyn Disk>,
    undo: UndoFile,
    held: Vec<Held>,
    held_bytes: usize,
    ended: Vec<Completion>,
}

impl UndoDisk {
    /// A disk over `below` that writes what stood there to `undo` first.
    #[must_use]
    pub fn new(below: Box<dyn Disk>, undo: &UndoFile) -> Self {
        Self { below, undo: undo.clone(), held: Vec::new(), held_bytes: 0, ended: Vec::new() }
    }

    /// Writes what is held to the disk below, and its old bytes to the file before that.
    fn write_held(&mut self) -> Result<(), IoError> {
        if self.held.is_empty() {
            return Ok(());
        }
        let held = std::mem::take(&mut self.held);
        self.held_bytes = 0;
        self.keep_old(&held)?;
        for Held { zone, offset_bytes, buf } in held {
            Now::of(&mut *self.below, &mut self.ended).write(zone, offset_bytes, buf)?;
        }
        Ok(())
    }

    fn keep_old(&mut self, held: &[Held]) -> Result<(), IoError> {
        let mut written = self.undo.lock();
        let mut now = Now::of(&mut *self.below, &mut self.ended);
        let Some(Held { zone, offset_bytes, .. }) = held.first() else { return Ok(()) };
        let failed = |error: &io::Error, path: &Path| {
            let class = match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorClass::NoSpace,
                _ => ErrorClass::Permanent,
            };
            let path = path.display();
            let sentence = format!("what stands there could not be kept in {path}: {error}");
            let (zone, offset_bytes) = (*zone, *offset_bytes);
            let cause = Cause::new(class, &sentence);
            IoError::Failed { verb: Verb::Write, zone, offset_bytes, cause }
        };
        if written.entries == 0 {
            let superblock = now.checksum(Zone::Superblock, |_, _| ())?;
            let journal = now.checksum(Zone::Journal, |_, _| ())?;
            let begun = written.begin(superblock, journal);
            begun.map_err(|error| failed(&error, &written.path))?;
        }
        for Held { zone, offset_bytes, buf } in held {
            let old = now.read(*zone, *offset_bytes, buf.len())?;
            let kept = written.append(*zone, *offset_bytes, &old, buf);
            kept.map_err(|error| failed(&error, &written.path))?;
        }
        let synced = written.file.sync_data();
        synced.map_err(|error| failed(&error, &written.path))
    }

    fn end(&mut self, io: Io, result: Result<(), IoError>) {
        let (tag, zone) = (io.tag, io.zone);
        let failed = result.is_err().then(|| Box::new(io));
        self.ended.push(Completion { tag, zone, result, buf: None, failed });
    }
}

impl Disk for UndoDisk {
    fn submit(&mut self, io: Io) {
        let Io { zone, offset_bytes, .. } = io;
        let result = match &io.kind {
            IoKind::Read { buf } => {
                let length_bytes = buf.len();
                let is_held =
                    self.held.iter().any(|held| held.touches(zone, offset_bytes, length_bytes));
                if is_held { self.write_held() } else { Ok(()) }
            }
            IoKind::Sync => self.write_held(),
            IoKind::Write { buf, durable } => {
                let (buf, is_durable) = (buf.clone(), *durable);
                match io.check(self.size_bytes(zone)) {
                    Err(error) => Err(error),
                    Ok(()) => {
                        self.held_bytes += buf.len();
                        self.held.push(Held { zone, offset_bytes, buf });
                        let is_due = is_durable || self.held_bytes >= HELD_BYTES_MAX;
                        if is_due { self.write_held() } else { Ok(()) }
                    }
                }
            }
        };
        let is_done = match &io.kind {
            IoKind::Read { .. } | IoKind::Sync => false,
            // It is there, and written once more to be durable.
            IoKind::Write { durable, .. } => !durable,
        };
        match result {
            Ok(()) if !is_done => self.below.submit(io),
            result => self.end(io, result),
        }
    }

    fn poll(&mut self, done: &mut Vec<Completion>) {
        done.append(&mut self.ended);
        self.below.poll(done);
    }

    fn wait(&mut self, done: &mut Vec<Completion>) {
        if self.ended.is_empty() {
            return self.below.wait(done);
        }
        self.poll(done);
    }

    fn has_ended(&mut self) -> bool {
        !self.ended.is_empty() || self.below.has_ended()
    }

    fn degradation(&self) -> Option<&str> {
        self.below.degradation()
    }

    fn allocation_ahead(&self) -> Option<&AllocationAhead> {
        self.below.allocation_ahead()
    }

    fn in_flight(&self) -> usize {
        self.below.in_flight() + self.ended.len()
    }

    fn size_bytes(&self, zone: Zone) -> u64 {
        self.below.size_bytes(zone)
    }
}
