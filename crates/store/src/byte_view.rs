//! A volume as plain bytes: any offset, any length.
//!
//! The engine takes requests of any bytes; what a view adds is that long ones go piece by piece,
//! and the forms that a database wants of its file.
//!
//! Invariants:
//!
//! * After concurrent writes each byte is what some write of that byte wrote, from any caller:
//!   views, doors, clients of the engine.
//! * A write that lies inside one mebibyte is one request to the engine; a longer one is sent piece
//!   by piece, in order.
//! * What is not inside the volume is refused before anything is written.

mod cursor;

use std::io;

use engine::RequestError;

use crate::pieces::piece_bytes;
use crate::volume::Volume;

pub use cursor::ByteCursor;

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
}

impl ByteView {
    /// A view of `volume`.
    #[must_use]
    pub fn new(volume: Volume) -> Self {
        Self { volume }
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
            self.volume.read_at(at_bytes, piece)?;
            at_bytes += piece.len() as u64;
            rest = after;
        }
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
        let (mut at_bytes, mut rest) = (offset_bytes, bytes);
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(piece_bytes(at_bytes, rest.len()));
            self.volume.write_at(at_bytes, piece)?;
            at_bytes += piece.len() as u64;
            rest = after;
        }
        Ok(())
    }

    /// Makes durable everything that was written before, on every volume of the store.
    ///
    /// # Errors
    /// [`RequestError::SyncFailed`] and its kin.
    pub fn flush(&self) -> Result<(), RequestError> {
        self.volume.flush_blocking()
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
