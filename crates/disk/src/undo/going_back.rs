//! A repair taken back: what its undo file holds is written where it stood.
//!
//! It is asked first whether the store is as the repair left it, or as a repair or an undo that was
//! cut off did. Superblock and journal tell: with the old bytes of what the file holds laid over
//! them they must be what the file's start says, since an opening for writing appends a
//! record; and each sector of the superblock must be one that stood there or that the repair wrote.
//!
//! Zone superblock goes back first. From then on the roots of before stand, and a repair overwrites
//! nothing that they name: to be cut off costs nothing, and the next undo comes to the same end.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use format::checksum::crc32c;
use format::undo::{UNDO_SECTORS, UndoEntry, UndoStart, sector_crcs};
use format::units::{BLOCK_BYTES, Zone};
use thiserror::Error;

use crate::buffer::AlignedBuf;
use crate::error::{FileError, IoError};
use crate::io::Disk;
use crate::undo::now::Now;

const BLOCK: u64 = BLOCK_BYTES as u64;

/// Why a repair was not taken back.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum UndoError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// It is another kind of file, or damaged.
    #[error(
        "{} is not the undo file of a repair, or it is damaged: nothing was changed",
        .0.display()
    )]
    Damaged(PathBuf),
    /// The store is not as the repair left it.
    #[error(
        "the store is not as the repair left it that {} belongs to: it is another one, or it has \
         been opened or repaired since; nothing was changed",
        .0.display()
    )]
    Changed(PathBuf),
    /// The device failed. Undone once more, the repair is taken back to its end.
    #[error("{0}")]
    Io(#[from] IoError),
}

/// The undo file of a repair, read.
pub struct UndoImage {
    path: PathBuf,
    file: File,
    start: UndoStart,
    entries: Vec<Place>,
}

/// An entry, and where its bytes begin in the file.
type Place = (UndoEntry, u64);

impl UndoImage {
    /// Reads a file, up to its last whole entry if its repair was cut off.
    ///
    /// # Errors
    /// [`UndoError::File`], [`UndoError::Damaged`].
    pub fn read(path: &Path) -> Result<Self, UndoError> {
        let failed = |error: std::io::Error| FileError::new("read", path, error);
        let file = File::open(path).map_err(failed)?;
        let size_bytes = file.metadata().map_err(failed)?.len();
        let damaged = || UndoError::Damaged(path.to_owned());
        let start = block_at(&file, 0).ok_or_else(damaged)?;
        let start = UndoStart::decode(&start).map_err(|_| damaged())?;
        let last = size_bytes.checked_sub(BLOCK).and_then(|at_bytes| block_at(&file, at_bytes));
        let is_end = |entry: UndoEntry| entry.length_bytes == 0;
        let is_complete = last.is_some_and(|last| UndoEntry::decode(&last).is_ok_and(is_end));
        let mut image = Self { path: path.to_owned(), file, start, entries: Vec::new() };
        let has_ended = image.read_entries();
        // That of a repair that came to its end is whole, or nothing is taken back.
        if is_complete && !has_ended { Err(damaged()) } else { Ok(image) }
    }

    /// Finds the entries up to the first that is not whole; true if it is the end that comes then.
    fn read_entries(&mut self) -> bool {
        let mut at_bytes = BLOCK;
        while let Some(block) = block_at(&self.file, at_bytes) {
            let Ok(entry) = UndoEntry::decode(&block) else { break };
            if entry.number != self.entries.len() as u64 {
                break;
            }
            if entry.length_bytes == 0 {
                return true;
            }
            let place = (entry, at_bytes + BLOCK);
            if self.old_bytes(place).is_err() {
                break;
            }
            self.entries.push(place);
            at_bytes = place.1 + u64::from(entry.length_bytes);
        }
        false
    }

    /// Files that the repair made longer, with their bytes before.
    #[must_use]
    pub fn short(&self) -> &[(Zone, u64)] {
        &self.start.short
    }

    /// The old bytes of an entry, if they have their checksum.
    fn old_bytes(&self, (entry, at_bytes): (UndoEntry, u64)) -> Result<AlignedBuf, UndoError> {
        let end = at_bytes.checked_add(u64::from(entry.length_bytes));
        let failed = |error: std::io::Error| FileError::new("read", &self.path, error);
        let size_bytes = self.file.metadata().map_err(failed)?.len();
        let damaged = || UndoError::Damaged(self.path.clone());
        // Asked for before there is memory for it: a length may be anything.
        if end.is_none_or(|end| end > size_bytes) {
            return Err(damaged());
        }
        let mut bytes = AlignedBuf::new_stale(entry.length_bytes as usize);
        self.file.read_exact_at(&mut bytes, at_bytes).map_err(failed)?;
        if crc32c(&bytes) == entry.old_crc { Ok(bytes) } else { Err(damaged()) }
    }

    /// Writes back what stood where the repair wrote, durably.
    ///
    /// # Errors
    /// [`UndoError`]. When the device fails the store may be as the repair left it in part; another
    /// undo goes on.
    pub fn go_back(&self, disk: &mut dyn Disk) -> Result<(), UndoError> {
        self.refuse_a_changed_store(disk)?;
        let newest_first = self.entries.iter().rev().copied();
        let (first, rest): (Vec<Place>, Vec<Place>) =
            newest_first.partition(|(entry, _)| entry.zone == Zone::Superblock);
        self.write_back(disk, &first)?;
        self.write_back(disk, &rest)
    }

    fn write_back(&self, disk: &mut dyn Disk, places: &[Place]) -> Result<(), UndoError> {
        let mut others = Vec::new();
        let mut now = Now::of(disk, &mut others);
        let mut zones = Vec::new();
        for &place in places {
            let UndoEntry { zone, offset_bytes, .. } = place.0;
            now.write(zone, offset_bytes, self.old_bytes(place)?.into())?;
            if !zones.contains(&zone) {
                zones.push(zone);
            }
        }
        zones.into_iter().try_for_each(|zone| now.sync(zone))?;
        Ok(())
    }

    fn refuse_a_changed_store(&self, disk: &mut dyn Disk) -> Result<(), UndoError> {
        let changed = || UndoError::Changed(self.path.clone());
        let mut others = Vec::new();
        let mut now = Now::of(disk, &mut others);
        let told = [
            (Zone::Superblock, self.start.superblock_crc),
            (Zone::Journal, self.start.journal_crc),
        ];
        for (zone, crc) in told {
            let old = self.before(zone)?;
            let found = now.checksum(zone, |at_bytes, piece| {
                old.iter()
                    .for_each(|(offset_bytes, bytes)| lay(piece, at_bytes, *offset_bytes, bytes));
            })?;
            if found != crc {
                return Err(changed());
            }
        }
        let of_superblock = |place: &&Place| place.0.zone == Zone::Superblock;
        for &place in self.entries.iter().filter(of_superblock) {
            let here = now.read(place.0.zone, place.0.offset_bytes, BLOCK_BYTES)?;
            if !self.is_old_or_new(place.0.offset_bytes, &here)? {
                return Err(changed());
            }
        }
        Ok(())
    }

    /// Whether each sector of a block of zone superblock is one that stood there or that the repair
    /// wrote.
    fn is_old_or_new(&self, offset_bytes: u64, here: &[u8]) -> Result<bool, UndoError> {
        let mut may_be = vec![Vec::new(); UNDO_SECTORS];
        let is_here = |(entry, _): &&Place| {
            entry.zone == Zone::Superblock && entry.offset_bytes == offset_bytes
        };
        for &place in self.entries.iter().filter(is_here) {
            let old = sector_crcs(&self.old_bytes(place)?);
            for (may_be, crcs) in may_be.iter_mut().zip(old.into_iter().zip(place.0.new_crcs)) {
                may_be.extend([crcs.0, crcs.1]);
            }
        }
        Ok(sector_crcs(here).iter().zip(&may_be).all(|(crc, may_be)| may_be.contains(crc)))
    }

    /// What stood in a zone before the repair, last what stood there first.
    fn before(&self, zone: Zone) -> Result<Vec<(u64, AlignedBuf)>, UndoError> {
        let of_zone = self.entries.iter().rev().filter(|(entry, _)| entry.zone == zone);
        of_zone.map(|&place| Ok((place.0.offset_bytes, self.old_bytes(place)?))).collect()
    }
}

/// Lays bytes that stand at `offset_bytes` of a zone over a piece of it.
fn lay(piece: &mut [u8], piece_at_bytes: u64, offset_bytes: u64, bytes: &[u8]) {
    let piece_end = piece_at_bytes + piece.len() as u64;
    let start = offset_bytes.max(piece_at_bytes);
    let end = (offset_bytes + bytes.len() as u64).min(piece_end);
    if start < end {
        let to = (start - piece_at_bytes) as usize..(end - piece_at_bytes) as usize;
        let from = (start - offset_bytes) as usize..(end - offset_bytes) as usize;
        piece[to].copy_from_slice(&bytes[from]);
    }
}

fn block_at(file: &File, at_bytes: u64) -> Option<[u8; BLOCK_BYTES]> {
    let mut block = [0; BLOCK_BYTES];
    file.read_exact_at(&mut block, at_bytes).ok().map(|()| block)
}
