//! What redb writes outside of its commits: a reader that finds redb's cache full writes pages that
//! a commit has left there.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use redb::StorageBackend;
use store::{RequestError, Reservation, ReservedFor, WriteOptions, WriteRoom};

use super::watched::{CHUNK, TestVolume, UUID, store_of};
use crate::index::pages::{Pages, PagesOfRedb};
use crate::volume::BucketVolume;

/// A volume that says when it is written, and waits until it may go on.
struct Waiting {
    inner: Arc<TestVolume>,
    begun: Mutex<Sender<()>>,
    go_on: Mutex<Receiver<()>>,
}

impl BucketVolume for Waiting {
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
        self.inner.write_vectored_at(writes, options)
    }

    fn reserve(
        &self,
        room: WriteRoom,
        reserved_for: ReservedFor,
    ) -> Result<Reservation, RequestError> {
        self.inner.reserve(room, reserved_for)
    }

    fn write_reserved_at(
        &self,
        reservation: &Reservation,
        writes: &[(u64, &[u8])],
        options: WriteOptions,
    ) -> Result<(), RequestError> {
        self.inner.write_reserved_at(reservation, writes, options)?;
        self.begun.lock().unwrap().send(()).unwrap();
        self.go_on.lock().unwrap().recv().unwrap();
        Ok(())
    }

    fn trim(&self, offset_bytes: u64, length_bytes: u64) -> Result<(), RequestError> {
        self.inner.trim(offset_bytes, length_bytes)
    }

    fn flush(&self) -> Result<(), RequestError> {
        self.inner.flush()
    }
}

#[test]
fn what_comes_while_pages_are_written_out_is_not_forgotten() {
    let store = store_of(64 << 20);
    let inner = TestVolume::new(&store, "bucket");
    let ((begun, has_begun), (may_go_on, go_on)) = (channel(), channel());
    let (begun, go_on) = (Mutex::new(begun), Mutex::new(go_on));
    let volume = Arc::new(Waiting { inner, begun, go_on });
    let pages = Arc::new(Pages::new(volume, UUID));
    let redb = PagesOfRedb(Arc::clone(&pages));
    redb.set_len(4 * CHUNK as u64).unwrap();
    // Whether the write comes before what is written is forgotten is chance: many tries.
    for round in 0..100 {
        redb.write(0, &[round; CHUNK]).unwrap();
        thread::scope(|scope| {
            let writing_out = scope.spawn(|| pages.write_out(ReservedFor::Writes).unwrap());
            has_begun.recv().unwrap();
            let evicting = scope.spawn(|| redb.write(CHUNK as u64, &[round; CHUNK]).unwrap());
            thread::yield_now();
            may_go_on.send(()).unwrap();
            assert!(writing_out.join().unwrap().is_some());
            evicting.join().unwrap();
        });
        let mut bytes = [0xff; CHUNK];
        redb.read(CHUNK as u64, &mut bytes).unwrap();
        assert_eq!(bytes, [round; CHUNK], "in round {round}");
    }
}

#[test]
fn pages_that_are_discarded_are_not_written_out() {
    let store = store_of(64 << 20);
    let volume = TestVolume::new(&store, "bucket");
    let pages = Arc::new(Pages::new(volume.clone(), UUID));
    let redb = PagesOfRedb(Arc::clone(&pages));
    redb.set_len(4 * CHUNK as u64).unwrap();
    redb.write(0, &[1; CHUNK]).unwrap();
    pages.discard();
    assert_eq!(pages.write_out(ReservedFor::Writes).unwrap(), None);
    assert_eq!(volume.written_count(), 0);
}
