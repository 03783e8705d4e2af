//! A store whose medium gives room for data as it fills: only what was given is promised.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use disk::{
    AllocatingDisk, AllocationAhead, Completion, Disk, Doorbell, Io, IoKind, Medium, MemoryDisk,
    SparseZone,
};
use engine::{Notice, OpenVolume, RequestError, ReservedFor, WriteRoom, Zone};

use crate::stand::{GIB, Hand, MIB, Opens, Wish, check_clean, fresh};

const CONTAINER: u64 = 4 * MIB;

/// What is beside the store on its host, and what the host has given.
#[derive(Clone, Default)]
struct Host {
    free_bytes: Arc<AtomicU64>,
    given_bytes: Arc<AtomicU64>,
}

impl Medium for Host {
    fn allocate(&self, stretch: Range<u64>) -> io::Result<()> {
        let new_bytes = stretch.end.saturating_sub(self.given_bytes.load(Ordering::SeqCst));
        let take = |free: u64| free.checked_sub(new_bytes);
        match self.free_bytes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take) {
            Ok(_) => {
                self.given_bytes.fetch_add(new_bytes, Ordering::SeqCst);
                Ok(())
            }
            Err(_) => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    fn free_bytes(&self) -> io::Result<u64> {
        Ok(self.free_bytes.load(Ordering::SeqCst))
    }

    fn taken_bytes(&self) -> io::Result<u64> {
        Ok(self.given_bytes.load(Ordering::SeqCst))
    }

    fn number(&self) -> u64 {
        1
    }
}

/// Writes of data only where the host has given room.
struct Given {
    below: MemoryDisk,
    host: Host,
}

impl Disk for Given {
    fn submit(&mut self, io: Io) {
        if let (Zone::Data(_), IoKind::Write { buf, .. }) = (io.zone, &io.kind) {
            let end_bytes = io.offset_bytes + buf.len() as u64;
            assert!(end_bytes <= self.host.given_bytes.load(Ordering::SeqCst), "not given");
        }
        self.below.submit(io);
    }

    fn poll(&mut self, done: &mut Vec<Completion>) {
        self.below.poll(done);
    }

    fn wait(&mut self, done: &mut Vec<Completion>) {
        self.below.wait(done);
    }

    fn in_flight(&self) -> usize {
        self.below.in_flight()
    }

    fn size_bytes(&self, zone: Zone) -> u64 {
        self.below.size_bytes(zone)
    }
}

/// The store on `disk`, whose data zone is what `host` gives.
fn open(wish: &Wish, disk: MemoryDisk, host: &Host) -> Hand {
    let doorbell = Doorbell::new().unwrap();
    let zone = SparseZone {
        number: 0,
        allocated_bytes: host.given_bytes.load(Ordering::SeqCst),
        length_bytes: disk.size_bytes(Zone::Data(0)),
        medium: Box::new(host.clone()),
    };
    let ahead = AllocationAhead::start(vec![zone], &doorbell).unwrap();
    let below = Given { below: disk.clone(), host: host.clone() };
    let through = AllocatingDisk::new(Box::new(below), ahead);
    let (engine, client, _, _) = wish.load_through(&disk, Box::new(through)).unwrap();
    Hand::of(disk, engine, client)
}

/// Writes a MiB; what the host is asked for meanwhile comes.
fn write(hand: &mut Hand, volume: &OpenVolume, number: u64) -> Result<(), RequestError> {
    let later = hand.write(volume, number * MIB, &fresh(number, MIB));
    let outcome = later.map_or(Ok(()), |tag| wait(hand, tag));
    hand.settle();
    hand.engine.tick();
    outcome
}

fn wait(hand: &mut Hand, tag: u64) -> Result<(), RequestError> {
    loop {
        if let Some(outcome) = hand.outcome(tag) {
            return outcome.map(|_| ());
        }
        if !hand.engine.step() {
            hand.engine.tick();
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

/// Reserves `bytes` of containers, and hardly any of the tables, and gives that back.
fn reserve(hand: &mut Hand, volume: &OpenVolume, bytes: u64) -> Result<(), RequestError> {
    let (tag, done) = hand.done();
    let room = WriteRoom { chunks: 1, writes: bytes / 4096 };
    hand.client.reserve_with(volume, room, ReservedFor::Writes, done);
    wait(hand, tag)
}

#[test]
fn a_host_that_becomes_full_means_no_space_and_heals() {
    let wish = Wish { capacities: vec![GIB], ..Wish::default() };
    let host = Host::default();
    host.free_bytes.store(100 * MIB, Ordering::SeqCst);
    let mut hand = open(&wish, wish.disk(), &host);
    let notices = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&notices);
    hand.engine.observe(Box::new(move |notice| heard.lock().unwrap().push(notice.clone())));
    let volume = hand.volume("v", 4 * GIB);
    let mut written = 0;
    let refused = loop {
        match write(&mut hand, &volume, written) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refused, RequestError::NoSpace);
    let given_bytes = host.given_bytes.load(Ordering::SeqCst);
    assert_eq!(given_bytes, 100 * MIB, "all that there is can be used");
    assert!(written >= 80, "{written}");
    let stats = hand.beside(|client| client.stats()).unwrap();
    assert!(stats.free_bytes < 12 * MIB, "{stats:?}");
    assert!(stats.data_used_ratio > 0.98, "{stats:?}");
    assert!(stats.device_bytes < stats.allocated_bytes, "{stats:?}");
    assert!(stats.allocated_bytes < given_bytes + 200 * MIB, "{stats:?}");
    let is_told = |wanted: fn(&Notice) -> bool| notices.lock().unwrap().iter().any(wanted);
    assert!(is_told(|notice| matches!(notice, Notice::AllocationRefused { .. })));

    host.free_bytes.fetch_add(200 * MIB, Ordering::SeqCst);
    while write(&mut hand, &volume, written).is_err() {}
    assert!(is_told(|notice| matches!(notice, Notice::AllocationGoesOn)));
    for number in written + 1..written + 100 {
        write(&mut hand, &volume, number).unwrap();
    }
    for number in (0..written + 100).step_by(7) {
        assert!(hand.read(&volume, number * MIB, 65536) == fresh(number, MIB)[..65536]);
    }
    check_clean(&hand.close());
}

#[test]
fn nobody_waits_while_the_host_has_room_and_little_is_taken_ahead() {
    let wish = Wish { capacities: vec![GIB], ..Wish::default() };
    let host = Host::default();
    host.free_bytes.store(GIB, Ordering::SeqCst);
    let mut hand = open(&wish, wish.disk(), &host);
    let volume = hand.volume("v", 4 * GIB);
    for number in 0..100 {
        write(&mut hand, &volume, number).unwrap();
    }
    let given_bytes = host.given_bytes.load(Ordering::SeqCst);
    let ahead_bytes = 2 * disk::allocation_step_bytes(GIB) + 64 * MIB;
    assert!((100 * MIB..100 * MIB + ahead_bytes).contains(&given_bytes), "{given_bytes}");
    let stats = hand.beside(|client| client.stats()).unwrap();
    assert!(stats.free_bytes > 800 * MIB, "what the host has counts: {stats:?}");
    assert!(stats.data_used_ratio < 0.2, "{stats:?}");

    // What was given is not asked for again, and what is in use is not given away.
    let disk = hand.close();
    let mut hand = open(&wish, disk, &host);
    let volume = hand.beside(|client| client.volume("v")).unwrap();
    write(&mut hand, &volume, 100).unwrap();
    assert_eq!(host.given_bytes.load(Ordering::SeqCst), given_bytes);
    for number in 0..=100 {
        assert!(hand.read(&volume, number * MIB, 4096) == fresh(number, MIB)[..4096]);
    }
    check_clean(&hand.close());
}

/// More than the store can ever hold is refused without the whole host being taken for it.
#[test]
fn a_hopeless_reservation_takes_nothing_of_the_host() {
    let wish = Wish { capacities: vec![GIB], ..Wish::default() };
    let host = Host::default();
    host.free_bytes.store(4 * GIB, Ordering::SeqCst);
    let mut hand = open(&wish, wish.disk(), &host);
    let volume = hand.volume("v", 4 * GIB);
    assert_eq!(reserve(&mut hand, &volume, 4 * GIB), Err(RequestError::NoSpace));
    let given_bytes = host.given_bytes.load(Ordering::SeqCst);
    assert!(given_bytes < 256 * MIB && given_bytes.is_multiple_of(CONTAINER), "{given_bytes}");

    // One that the host has room for is granted, although it is more than is there yet.
    assert_eq!(reserve(&mut hand, &volume, 512 * MIB), Ok(()), "what the host has counts");
    assert!(host.given_bytes.load(Ordering::SeqCst) > 512 * MIB);
}
