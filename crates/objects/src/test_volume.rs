//! The volume of tests: one of a real store in memory, watched. Each chunk that is written is
//! recorded, so that a crash behind any of them can be made in another one; chunks can be damaged;
//! it can stop.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use store::{RequestError, Reservation, ReservedFor, Store, Volume, WriteOptions, WriteRoom};

use crate::volume::BucketVolume;

pub(crate) const CHUNK: usize = 4096;

/// One thing that changed the volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Chunk(u64, Vec<u8>),
    Trim(u64, u64),
}

pub(crate) struct TestVolume {
    pub(crate) inner: Volume,
    /// None: nothing is recorded.
    written: Option<Mutex<Vec<Written>>>,
    /// Numbers of chunks that cannot be read until they are written or trimmed.
    damaged: Mutex<BTreeSet<u64>>,
    reads: AtomicU64,
    /// Whether it answers nothing any more.
    stopped: Arc<AtomicBool>,
    is_read_only: bool,
}

impl TestVolume {
    /// A new volume that records.
    pub(crate) fn new(store: &Store, name: &str) -> Arc<Self> {
        let written = Some(Mutex::default());
        let inner = store.create_volume(name, 1 << 50).unwrap();
        Arc::new(Self { written, ..Self::plain(inner, Arc::default()) })
    }

    /// One that records nothing, and stops when `stopped` is set.
    pub(crate) fn stopping(inner: Volume, stopped: Arc<AtomicBool>) -> Arc<Self> {
        Arc::new(Self::plain(inner, stopped))
    }

    /// The same bytes, as a snapshot has them.
    pub(crate) fn read_only(&self) -> Arc<Self> {
        let plain = Self::plain(self.inner.clone(), Arc::default());
        Arc::new(Self { is_read_only: true, ..plain })
    }

    fn plain(inner: Volume, stopped: Arc<AtomicBool>) -> Self {
        let (damaged, reads) = (Mutex::default(), AtomicU64::new(0));
        Self { inner, written: None, damaged, reads, stopped, is_read_only: false }
    }

    pub(crate) fn written(&self) -> Vec<Written> {
        self.written.as_ref().unwrap().lock().unwrap().clone()
    }

    pub(crate) fn written_count(&self) -> usize {
        self.written.as_ref().unwrap().lock().unwrap().len()
    }

    /// Makes what another volume has recorded happen here.
    pub(crate) fn repeat(&self, written: &[Written]) {
        for one in written {
            match one {
                Written::Chunk(at, bytes) => self.inner.write_at(*at, bytes).unwrap(),
                Written::Trim(at, length) => self.inner.trim_blocking(*at, *length).unwrap(),
            }
        }
        self.written.as_ref().unwrap().lock().unwrap().extend_from_slice(written);
    }

    /// Makes the chunk at this place unreadable until it is written or trimmed.
    pub(crate) fn damage(&self, at_bytes: u64) {
        self.damaged.lock().unwrap().insert(at_bytes / CHUNK as u64);
    }

    pub(crate) fn damaged_count(&self) -> usize {
        self.damaged.lock().unwrap().len()
    }

    pub(crate) fn heal(&self) {
        self.damaged.lock().unwrap().clear();
    }

    /// How often it was read since this was asked last.
    pub(crate) fn take_reads(&self) -> u64 {
        self.reads.swap(0, Ordering::SeqCst)
    }

    /// Places of all chunks ever written from `from` up to `until`.
    pub(crate) fn places(&self, from: u64, until: u64) -> BTreeSet<u64> {
        let place = |one: Written| match one {
            Written::Chunk(at, _) => Some(at),
            Written::Trim(..) => None,
        };
        let places = self.written().into_iter().filter_map(place);
        places.filter(|at| (from..until).contains(at)).collect()
    }

    fn check_running(&self) -> Result<(), RequestError> {
        match self.stopped.load(Ordering::SeqCst) {
            true => Err(RequestError::Closing),
            false => Ok(()),
        }
    }

    fn check_writable(&self) -> Result<(), RequestError> {
        self.check_running()?;
        match self.is_read_only {
            true => Err(RequestError::StoreReadOnly),
            false => Ok(()),
        }
    }

    fn note(&self, writes: &[(u64, &[u8])]) {
        let mut damaged = self.damaged.lock().unwrap();
        for (at, bytes) in writes {
            assert!(at % CHUNK as u64 == 0 && bytes.len() % CHUNK == 0, "whole chunks only");
            for (number, chunk) in bytes.chunks(CHUNK).enumerate() {
                let at = at + (number * CHUNK) as u64;
                damaged.remove(&(at / CHUNK as u64));
                self.record(|| Written::Chunk(at, chunk.to_vec()));
            }
        }
    }

    fn record(&self, one: impl FnOnce() -> Written) {
        if let Some(written) = &self.written {
            written.lock().unwrap().push(one());
        }
    }
}

impl BucketVolume for TestVolume {
    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    fn read_at(&self, offset_bytes: u64, out: &mut [u8]) -> Result<(), RequestError> {
        self.check_running()?;
        self.reads.fetch_add(1, Ordering::SeqCst);
        let first = offset_bytes / CHUNK as u64;
        let end = (offset_bytes + out.len() as u64).div_ceil(CHUNK as u64);
        if let Some(lba) = self.damaged.lock().unwrap().range(first..end).next() {
            return Err(RequestError::Damaged { volume: "test".to_owned(), lba: *lba });
        }
        self.inner.read_at(offset_bytes, out)
    }

    fn write_vectored_at(
        &self,
        writes: &[(u64, &[u8])],
        options: WriteOptions,
    ) -> Result<(), RequestError> {
        self.check_writable()?;
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
        self.check_writable()?;
        self.inner.write_reserved_at(reservation, writes, options)?;
        self.note(writes);
        Ok(())
    }

    fn trim(&self, offset_bytes: u64, length_bytes: u64) -> Result<(), RequestError> {
        self.check_running()?;
        assert!(!self.is_read_only, "a snapshot is not trimmed");
        self.inner.trim_blocking(offset_bytes, length_bytes)?;
        let chunks =
            offset_bytes.div_ceil(CHUNK as u64)..(offset_bytes + length_bytes) / CHUNK as u64;
        self.damaged.lock().unwrap().retain(|chunk| !chunks.contains(chunk));
        self.record(|| Written::Trim(offset_bytes, length_bytes));
        Ok(())
    }

    fn flush(&self) -> Result<(), RequestError> {
        self.inner.flush_blocking()
    }
}
