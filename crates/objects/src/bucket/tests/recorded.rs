//! A volume that remembers what was written to it, chunk by chunk, so that a kill behind any of
//! them can be made in another.

use std::sync::{Arc, Mutex};

use store::{RequestError, Reservation, ReservedFor, Store, Volume, WriteOptions, WriteRoom};

use crate::volume::BucketVolume;

const CHUNK_BYTES: usize = 4096;

/// One thing that changed the volume.
#[derive(Clone, Debug)]
pub(super) enum Written {
    Chunk(u64, Vec<u8>),
    Trim(u64, u64),
}

pub(super) struct Recorded {
    inner: Volume,
    written: Mutex<Vec<Written>>,
}

impl Recorded {
    pub(super) fn new(store: &Store, name: &str) -> Arc<Self> {
        let inner = store.create_volume(name, 1 << 50).unwrap();
        Arc::new(Self { inner, written: Mutex::default() })
    }

    pub(super) fn written(&self) -> Vec<Written> {
        self.written.lock().unwrap().clone()
    }

    pub(super) fn written_count(&self) -> usize {
        self.written.lock().unwrap().len()
    }

    /// Makes what another volume remembers happen here.
    pub(super) fn repeat(&self, written: &[Written]) {
        for one in written {
            match one {
                Written::Chunk(at, bytes) => self.inner.write_at(*at, bytes).unwrap(),
                Written::Trim(at, length) => self.inner.trim_blocking(*at, *length).unwrap(),
            }
        }
    }

    fn note(&self, writes: &[(u64, &[u8])]) {
        let mut written = self.written.lock().unwrap();
        for (at, bytes) in writes {
            assert!(at % CHUNK_BYTES as u64 == 0 && bytes.len() % CHUNK_BYTES == 0);
            for (number, chunk) in bytes.chunks(CHUNK_BYTES).enumerate() {
                written.push(Written::Chunk(at + (number * CHUNK_BYTES) as u64, chunk.to_vec()));
            }
        }
    }
}

impl BucketVolume for Recorded {
    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    fn read_at(&self, offset_bytes: u64, out: &mut [u8]) -> Result<(), RequestError> {
        self.inner.read_at(offset_bytes, out)
    }

    fn write_vectored_at(
        &self,
        writes: &[(u64, &[u8])],
        options: WriteOptions,
    ) -> Result<(), RequestError> {
        self.inner.write_vectored_at(writes, options)?;
        self.note(writes);
        Ok(())
    }

    fn reserve(
        &self,
        room: WriteRoom,
        reserved_for: ReservedFor,
    ) -> Result<Reservation, RequestError> {
        self.inner.reserve_blocking(room, reserved_for)
    }

    fn write_reserved_at(
        &self,
        reservation: &Reservation,
        writes: &[(u64, &[u8])],
        options: WriteOptions,
    ) -> Result<(), RequestError> {
        self.inner.write_reserved_at(reservation, writes, options)?;
        self.note(writes);
        Ok(())
    }

    fn trim(&self, offset_bytes: u64, length_bytes: u64) -> Result<(), RequestError> {
        self.inner.trim_blocking(offset_bytes, length_bytes)?;
        self.written.lock().unwrap().push(Written::Trim(offset_bytes, length_bytes));
        Ok(())
    }

    fn flush(&self) -> Result<(), RequestError> {
        self.inner.flush_blocking()
    }
}
