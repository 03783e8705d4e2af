//! A store is made, opened, closed, dropped, locked, and its engine panics.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use disk::{Completion, Disk, Doorbell, Io, Loss, MemoryDisk};
use engine::Zone;
use store::{
    CloseError, CreateError, CreateOptions, Hooks, LockWait, Notice, OpenError, Options,
    RequestError, Store,
};

use crate::scratch::{CAPACITY_BYTES, Scratch, in_memory, small};

const CHUNK: usize = 4096;
const VOLUME_BYTES: u64 = 16 << 20;

#[test]
fn what_was_written_is_there_after_a_close() {
    let scratch = Scratch::new();
    let path = scratch.path().join("s");
    let geometry = store::create(&path, &CreateOptions::new(CAPACITY_BYTES)).unwrap();
    assert_eq!(geometry.capacity_bytes(), CAPACITY_BYTES);
    let store = Store::open(&path, small()).unwrap();
    assert!(store.report().clean && store.identity().is_some());
    let volume = store.create_volume("v", VOLUME_BYTES).unwrap();
    assert_eq!(volume.size_bytes(), VOLUME_BYTES);
    volume.write_at(512, &[9; CHUNK]).unwrap();
    volume.trim_blocking(512, 512).unwrap();
    store.close().unwrap();

    let store = Store::open(&path, small()).unwrap();
    assert!(store.report().clean, "{:?}", store.report());
    let mut bytes = [1; CHUNK + 1024];
    store.volume("v").unwrap().read_at(0, &mut bytes).unwrap();
    let expected = [[0; 1024].as_slice(), &[9; CHUNK - 512], &[0; 512]].concat();
    assert!(bytes == *expected);
    store.close().unwrap();
}

#[test]
fn a_dropped_store_reopens_with_what_was_flushed() {
    let scratch = Scratch::new();
    let path = scratch.path().join("s");
    store::create(&path, &CreateOptions::new(CAPACITY_BYTES)).unwrap();
    let store = Store::open(&path, small()).unwrap();
    let volume = store.create_volume("v", VOLUME_BYTES).unwrap();
    volume.write_at(0, &[3; CHUNK]).unwrap();
    volume.flush_blocking().unwrap();
    volume.write_at(0, &[4; CHUNK]).unwrap();
    drop(store);
    assert_eq!(volume.flush_blocking(), Err(RequestError::Closing));

    // The lock is free at once: nothing is waited for.
    let store = Store::open(&path, small()).unwrap();
    assert!(!store.report().clean);
    let mut bytes = [0; CHUNK];
    store.volume("v").unwrap().read_at(0, &mut bytes).unwrap();
    assert!(bytes == [3; CHUNK] || bytes == [4; CHUNK]);
    store.close().unwrap();
}

#[test]
fn a_drop_writes_nothing_out() {
    let (disk, store) = in_memory();
    let volume = store.create_volume("v", VOLUME_BYTES).unwrap();
    volume.write_at(0, &[3; CHUNK]).unwrap();
    volume.flush_blocking().unwrap();
    let syncs = disk.counters().syncs;
    volume.write_at(0, &[4; CHUNK]).unwrap();
    drop(store);
    assert_eq!(disk.counters().syncs, syncs);
    let disk = disk.left_by_power_loss(1, Loss::All);
    let store = Store::open_in_memory(&disk, small()).unwrap();
    let mut bytes = [0; CHUNK];
    store.volume("v").unwrap().read_at(0, &mut bytes).unwrap();
    assert_eq!(bytes, [3; CHUNK]);
    store.close().unwrap();
}

#[test]
fn a_second_handle_is_told_that_the_store_is_in_use() {
    let scratch = Scratch::new();
    let path = scratch.path().join("s");
    store::create(&path, &CreateOptions::new(CAPACITY_BYTES)).unwrap();
    let store = Store::open(&path, small()).unwrap();
    let refused = Store::open(&path, small()).err().unwrap();
    assert!(matches!(&refused, OpenError::InUse { path: at } if *at == path), "{refused}");
    store.close().unwrap();
    Store::open(&path, small()).unwrap().close().unwrap();
}

#[test]
fn a_lock_of_another_process_is_waited_for_while_its_holder_may_end() {
    let scratch = Scratch::new();
    let path = scratch.path().join("s");
    store::create(&path, &CreateOptions::new(CAPACITY_BYTES)).unwrap();
    let superblock = path.join("superblock");
    // It becomes the process that sleeps: nobody else has the lock.
    let mut holder =
        Command::new("flock").arg("-F").arg(&superblock).args(["sleep", "600"]).spawn().unwrap();
    while Store::open(&path, small()).is_ok_and(|store| store.close().is_ok()) {}
    let wait_for = |holder_lives: bool| LockWait {
        at_most: std::time::Duration::from_secs(3600),
        holder_lives: Some(Box::new(move || holder_lives)),
    };
    let refused = Store::open(&path, Options { lock_wait: wait_for(true), ..small() });
    assert!(matches!(refused, Err(OpenError::InUse { .. })));

    let (asked, is_asked) = mpsc::channel();
    let holder_lives = Some(Box::new(move || asked.send(()).is_err()) as Box<_>);
    let lock_wait = LockWait { holder_lives, ..wait_for(false) };
    let waits = std::thread::spawn(move || {
        Store::open(&path, Options { lock_wait, ..small() }).unwrap().close().unwrap();
    });
    is_asked.recv().unwrap();
    holder.kill().unwrap();
    holder.wait().unwrap();
    waits.join().unwrap();
}

#[test]
fn what_is_no_store_and_what_cannot_be_one_have_errors_of_their_own() {
    let scratch = Scratch::new();
    let none = Store::open(scratch.path(), small()).err().unwrap();
    assert!(matches!(none, OpenError::NoStore { .. }), "{none}");
    let path = scratch.path().join("s");
    let small_one = store::create(&path, &CreateOptions::new(1 << 20)).unwrap_err();
    assert!(matches!(small_one, CreateError::Plan(_)), "{small_one}");
    store::create(&path, &CreateOptions::new(CAPACITY_BYTES)).unwrap();
    let twice = store::create(&path, &CreateOptions::new(CAPACITY_BYTES)).unwrap_err();
    assert!(matches!(twice, CreateError::Files(_)), "{twice}");
    std::fs::write(path.join("superblock"), [5; 1 << 16]).unwrap();
    let foreign = Store::open(&path, small()).err().unwrap();
    assert!(matches!(foreign, OpenError::Contents(_)), "{foreign}");
}

#[test]
fn stores_have_identities_of_their_own_unless_they_are_given_one() {
    let options = CreateOptions::new(CAPACITY_BYTES);
    let uuid = |options: &CreateOptions| options.plan().unwrap().uuid;
    assert_ne!(uuid(&options), uuid(&options));
    let given = CreateOptions { uuid: Some([7; 16]), ..options };
    assert_eq!(uuid(&given), [7; 16]);
}

#[test]
fn who_watches_hears_notices_and_of_the_end() {
    let (told, notices) = mpsc::channel();
    let (ended, over) = mpsc::channel();
    let hooks = Hooks {
        observer: Some(Box::new(move |notice| told.send(notice.clone()).unwrap())),
        when_over: Some(Box::new(move || ended.send(()).unwrap())),
    };
    let disk = store::create_in_memory(&CreateOptions::new(CAPACITY_BYTES), 3).unwrap();
    let store = Store::open_in_memory(&disk, Options { hooks, ..small() }).unwrap();
    store.create_volume("v", VOLUME_BYTES).unwrap();
    assert!(over.try_recv().is_err());
    store.close().unwrap();
    over.recv().unwrap();
    assert!(notices.iter().any(|notice| matches!(notice, Notice::CheckpointEnded { .. })));
}

/// A disk whose owner's thread panics at a sync once it is broken.
struct Breaks {
    disk: MemoryDisk,
    broken: Arc<AtomicBool>,
}

impl Disk for Breaks {
    fn submit(&mut self, io: Io) {
        assert!(!self.broken.load(Ordering::Relaxed), "the disk was broken by the test");
        self.disk.submit(io);
    }

    fn poll(&mut self, done: &mut Vec<Completion>) {
        self.disk.poll(done);
    }

    fn wait(&mut self, done: &mut Vec<Completion>) {
        self.disk.wait(done);
    }

    fn in_flight(&self) -> usize {
        self.disk.in_flight()
    }

    fn size_bytes(&self, zone: Zone) -> u64 {
        self.disk.size_bytes(zone)
    }
}

/// A store on a disk that can be broken.
fn breakable(hooks: Hooks) -> (Arc<AtomicBool>, Store) {
    let disk = store::create_in_memory(&CreateOptions::new(CAPACITY_BYTES), 3).unwrap();
    let (doorbell, broken) = (Doorbell::new().unwrap(), Arc::<AtomicBool>::default());
    disk.set_doorbell(&doorbell);
    let breaks = Box::new(Breaks { disk, broken: Arc::clone(&broken) });
    let store = Store::open_on(breaks, doorbell, Options { hooks, ..small() }).unwrap();
    assert!(store.identity().is_none());
    (broken, store)
}

#[test]
fn a_panic_of_the_engine_is_told_to_the_hook_to_who_waits_and_to_who_closes() {
    let (ended, over) = mpsc::channel();
    let when_over: Option<Box<dyn FnOnce() + Send>> =
        Some(Box::new(move || ended.send(()).unwrap()));
    let (broken, store) = breakable(Hooks { when_over, ..Default::default() });
    let volume = store.create_volume("v", VOLUME_BYTES).unwrap();
    volume.write_at(0, &[1; CHUNK]).unwrap();
    broken.store(true, Ordering::Relaxed);
    assert_eq!(volume.flush_blocking(), Err(RequestError::Closing));
    over.recv().unwrap();
    assert!(matches!(store.close(), Err(CloseError::Panicked)));
}

#[test]
fn a_store_whose_engine_panicked_is_dropped_like_any_other() {
    let (broken, store) = breakable(Hooks::default());
    let volume = store.create_volume("v", VOLUME_BYTES).unwrap();
    broken.store(true, Ordering::Relaxed);
    volume.write_at(0, &[1; CHUNK]).unwrap();
    drop(store);
    assert!(volume.flush_blocking().is_err());
}

#[test]
fn a_hook_may_own_the_store() {
    let (give, owned) = mpsc::channel::<Store>();
    let (ended, over) = mpsc::channel();
    let when_over: Option<Box<dyn FnOnce() + Send>> = Some(Box::new(move || {
        drop(owned.recv().unwrap());
        ended.send(()).unwrap();
    }));
    let (broken, store) = breakable(Hooks { when_over, ..Default::default() });
    let volume = store.create_volume("v", VOLUME_BYTES).unwrap();
    broken.store(true, Ordering::Relaxed);
    let _ = volume.write_at(0, &[1; CHUNK]);
    give.send(store).unwrap();
    let _ = volume.flush_blocking();
    over.recv().unwrap();
}
