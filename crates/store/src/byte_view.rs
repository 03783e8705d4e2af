//! A volume as plain bytes: any offset, any length.
//!
//! The engine writes sectors of 512 bytes. A write that covers a sector in part reads the sector,
//! changes its part and writes the whole. Between that read and that write nobody else may write
//! the sector, or their bytes would be lost: so a write locks the range of its sectors, in a lock
//! that all clones of a view share ([`range_lock`]).
//!
//! Invariants:
//!
//! * After concurrent writes through one view, each byte is what some write of that byte wrote. A
//!   second view of the same volume, or a door that serves it, is not covered.
//! * A write that lies inside one mebibyte is one request to the engine; a longer one is sent piece
//!   by piece, in order.
//! * What is not inside the volume is refused before anything is written.

mod cursor;
mod range_lock;

use std::io;
use std::sync::Arc;

use engine::{RequestError, SECTOR_BYTES};

use crate::pieces::piece_bytes;
use crate::volume::Volume;

pub use cursor::ByteCursor;
use range_lock::RangeLock;

/// A volume as plain bytes, as a database wants its file; clones are the same view.
///
/// ```
/// # use store::{ByteView, CreateOptions, Options, Store};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let disk = store::create_in_memory(&CreateOptions::new(64 << 20), 1)?;
/// # let store = Store::open_in_memory(&disk, Options::default())?;
/// let view = ByteView::new(store.create_volume("index", 1 << 20)?);
/// view.write_at(510, b"header")?; // across two sectors
/// let mut bytes = [0; 8];
/// view.read_at(509, &mut bytes)?;
/// assert_eq!(&bytes, b"\0header\0");
/// view.flush()?;
/// # store.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ByteView {
    volume: Volume,
    writers: Arc<RangeLock>,
}

impl ByteView {
    /// A view of `volume`. Everyone who writes to the volume in parts of sectors uses this view or
    /// clones of it.
    #[must_use]
    pub fn new(volume: Volume) -> Self {
        Self { volume, writers: Arc::default() }
    }

    /// The volume.
    #[must_use]
    pub fn volume(&self) -> &Volume {
        &self.volume
    }

    /// Its size in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.volume.size_bytes()
    }

    /// Whether it has no bytes, which no volume has.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A reader and writer that starts at the first byte.
    #[must_use]
    pub fn cursor(&self) -> ByteCursor {
        ByteCursor::new(self.clone())
    }

    /// Fills `out` with the bytes from `offset_bytes` on.
    ///
    /// # Errors
    /// [`RequestError::OutOfRange`], and what the device or damage comes to.
    pub fn read_at(&self, offset_bytes: u64, out: &mut [u8]) -> Result<(), RequestError> {
        self.volume.check_range(offset_bytes, out.len() as u64)?;
        let (mut at_bytes, mut rest) = (offset_bytes, out);
        while !rest.is_empty() {
            let (piece, after) = rest.split_at_mut(piece_bytes(at_bytes, rest.len()));
            self.read_piece(at_bytes, piece)?;
            at_bytes += piece.len() as u64;
            rest = after;
        }
        Ok(())
    }

    fn read_piece(&self, offset_bytes: u64, out: &mut [u8]) -> Result<(), RequestError> {
        let sectors = Sectors::around(offset_bytes, out.len());
        if sectors.is_whole() {
            return self.volume.read_at(offset_bytes, out);
        }
        let mut bytes = vec![0; sectors.length_bytes()];
        self.volume.read_at(sectors.start_bytes, &mut bytes)?;
        out.copy_from_slice(&bytes[sectors.inside()]);
        Ok(())
    }

    /// Writes `bytes` at `offset_bytes`: acknowledged when this returns, durable after the next
    /// [`ByteView::flush`].
    ///
    /// # Errors
    /// [`RequestError::OutOfRange`], [`RequestError::ReadOnly`], [`RequestError::NoSpace`] and
    /// their kin. After an error a part of `bytes` may be written, from its beginning on.
    pub fn write_at(&self, offset_bytes: u64, bytes: &[u8]) -> Result<(), RequestError> {
        self.volume.check_range(offset_bytes, bytes.len() as u64)?;
        let sectors = Sectors::around(offset_bytes, bytes.len());
        let _alone = self.writers.lock(sectors.start_bytes..sectors.end_bytes);
        let (mut at_bytes, mut rest) = (offset_bytes, bytes);
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(piece_bytes(at_bytes, rest.len()));
            self.write_piece(at_bytes, piece)?;
            at_bytes += piece.len() as u64;
            rest = after;
        }
        Ok(())
    }

    /// Writes what one request can hold, whose sectors are locked.
    fn write_piece(&self, offset_bytes: u64, piece: &[u8]) -> Result<(), RequestError> {
        let sectors = Sectors::around(offset_bytes, piece.len());
        if sectors.is_whole() {
            return self.volume.write_at(offset_bytes, piece);
        }
        let mut bytes = vec![0; sectors.length_bytes()];
        let edges = sectors.edges();
        for edge in edges.into_iter().flatten() {
            let start_bytes = sectors.start_bytes + edge as u64;
            self.volume.read_at(start_bytes, &mut bytes[edge..edge + SECTOR])?;
        }
        bytes[sectors.inside()].copy_from_slice(piece);
        self.volume.write_at(sectors.start_bytes, &bytes)
    }

    /// Makes durable everything that was written before, on every volume of the store.
    ///
    /// # Errors
    /// [`RequestError::SyncFailed`] and its kin.
    pub fn flush(&self) -> Result<(), RequestError> {
        self.volume.flush_blocking()
    }
}

const SECTOR: usize = SECTOR_BYTES as usize;

/// The sectors around a range of bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Sectors {
    start_bytes: u64,
    end_bytes: u64,
    /// Of the first sector, bytes before the range.
    before: usize,
    /// Bytes of the range.
    length: usize,
}

impl Sectors {
    fn around(offset_bytes: u64, length: usize) -> Self {
        let before = offset_bytes % SECTOR_BYTES;
        let end_bytes = (offset_bytes + length as u64).next_multiple_of(SECTOR_BYTES);
        Self { start_bytes: offset_bytes - before, end_bytes, before: before as usize, length }
    }

    fn length_bytes(self) -> usize {
        (self.end_bytes - self.start_bytes) as usize
    }

    fn is_whole(self) -> bool {
        self.length == self.length_bytes()
    }

    /// Where the range lies among the bytes of its sectors.
    fn inside(self) -> std::ops::Range<usize> {
        self.before..self.before + self.length
    }

    /// Where sectors begin that the range covers in part, from the start of the first; one sector
    /// may be both.
    fn edges(self) -> [Option<usize>; 2] {
        let last = self.length_bytes() - SECTOR;
        let is_last_ragged = self.inside().end != self.length_bytes();
        let first = self.before > 0;
        [first.then_some(0), (is_last_ragged && !(first && last == 0)).then_some(last)]
    }
}

/// A [`RequestError`] for callers that know [`io::Error`], of the kind that they act on. The error
/// itself is inside ([`io::Error::get_ref`]).
#[must_use]
pub fn io_error(error: RequestError) -> io::Error {
    let kind = match &error {
        RequestError::NoSpace => io::ErrorKind::StorageFull,
        RequestError::QuotaExceeded { .. } => io::ErrorKind::QuotaExceeded,
        RequestError::ReadOnly { .. } => io::ErrorKind::ReadOnlyFilesystem,
        RequestError::OutOfRange { .. } => io::ErrorKind::InvalidInput,
        RequestError::NoSuchVolume { .. } => io::ErrorKind::NotFound,
        RequestError::Damaged { .. } | RequestError::DamagedTable { .. } => {
            io::ErrorKind::InvalidData
        }
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

#[cfg(test)]
mod tests {
    use super::{SECTOR, Sectors};

    #[test]
    fn edges_are_the_sectors_that_are_covered_in_part() {
        let edges = |offset, length| Sectors::around(offset, length).edges();
        assert_eq!(edges(0, SECTOR), [None, None]);
        assert_eq!(edges(0, SECTOR - 1), [None, Some(0)]);
        assert_eq!(edges(1, SECTOR - 1), [Some(0), None]);
        assert_eq!(edges(1, SECTOR - 2), [Some(0), None], "the same sector is read once");
        assert_eq!(edges(1, SECTOR), [Some(0), Some(SECTOR)]);
        assert_eq!(edges(512, 3 * SECTOR + 1), [None, Some(3 * SECTOR)]);
        assert_eq!(Sectors::around(513, 2 * SECTOR).inside(), 1..1 + 2 * SECTOR);
    }
}
