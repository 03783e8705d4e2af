//! How often an opening waits for its device: its rounds. Over a device far away they are what an
//! opening takes, so that is what is counted here; no time is asserted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use disk::{Completion, Disk, Doorbell, Io, IoKind, MemoryDisk};
use engine::{Caches, Options, SnapshotRequest, Zone, open_with_cache};

use crate::stand::{CHUNK, GIB, MIB, Opens, Wish, packed};

/// A disk that counts rounds, and makes each of them take as long as it is told: from the moment at
/// which nothing is in flight to the next such moment.
struct Far {
    disk: MemoryDisk,
    rounds: Arc<AtomicU64>,
    /// What was asked for first, of each round.
    firsts: Arc<Mutex<BTreeMap<String, u64>>>,
    latency: Duration,
    asked: Option<Instant>,
}

impl Disk for Far {
    fn submit(&mut self, io: Io) {
        if self.disk.in_flight() == 0 {
            self.rounds.fetch_add(1, Ordering::Relaxed);
            self.asked = Some(Instant::now());
            let verb = match io.kind {
                IoKind::Read { .. } => "read",
                IoKind::Write { .. } => "write",
                IoKind::Sync => "sync",
            };
            let first = format!("{verb} {:?}", io.zone);
            *self.firsts.lock().unwrap().entry(first).or_default() += 1;
        }
        self.disk.submit(io);
    }

    fn poll(&mut self, done: &mut Vec<Completion>) {
        self.disk.poll(done);
    }

    fn wait(&mut self, done: &mut Vec<Completion>) {
        if let Some(asked) = self.asked.take() {
            std::thread::sleep(self.latency.saturating_sub(asked.elapsed()));
        }
        self.disk.wait(done);
    }

    fn in_flight(&self) -> usize {
        self.disk.in_flight()
    }

    fn size_bytes(&self, zone: Zone) -> u64 {
        self.disk.size_bytes(zone)
    }
}

/// What each clone maps.
const CLONED: u64 = GIB;
const CLONES: u64 = 1024;
/// Clones that are written to all over.
const SCATTERED: u64 = 8;

fn wish() -> Wish {
    let options = Options { memory_bytes: 512 * MIB, ..Wish::default().options };
    Wish { capacities: vec![8 * GIB], options, ..Wish::default() }
}

/// 256 different chunks.
fn pattern() -> Vec<u8> {
    (0..256).flat_map(packed).collect()
}

/// A closed store in which a TiB is mapped: 1024 clones of a volume of a GiB, of few different
/// chunks, each with something of its own.
fn store_of_a_tib(wish: &Wish) -> MemoryDisk {
    let stand = wish.stand();
    let base = stand.volume("base", CLONED);
    let pattern = pattern();
    for at in (0..CLONED).step_by(pattern.len()) {
        stand.write(&base, at, &pattern);
    }
    drop(base);
    let (volumes, name) = (vec!["base".to_owned()], "s".to_owned());
    let request = SnapshotRequest { volumes, name, taken_unix_s: 1 };
    stand.client.ask(request).unwrap();
    for clone in 0..CLONES {
        let name = format!("clone {clone}");
        stand.client.clone_volume("base@s", &name).unwrap();
        let volume = stand.client.volume(&name).unwrap();
        stand.write(&volume, clone * CHUNK, &pattern[..CHUNK as usize]);
    }
    stand.close()
}

/// The same, killed behind flushed writes that lie far apart in eight clones.
fn killed_store_of_a_tib(wish: &Wish) -> MemoryDisk {
    let stand = wish.open(store_of_a_tib(wish));
    let pattern = pattern();
    for clone in 0..SCATTERED {
        let volume = stand.client.volume(&format!("clone {clone}")).unwrap();
        for at in (0..CLONED).step_by(100 * CHUNK as usize) {
            let other = (at / CHUNK + 1) % 256 * CHUNK;
            stand.write(&volume, at, &pattern[other as usize..][..CHUNK as usize]);
        }
    }
    stand.flush();
    stand.kill(1)
}

/// Rounds of an opening and how long it takes, with a latency of each round.
fn open(wish: &Wish, disk: &MemoryDisk, cache: Option<usize>, ms: u64) -> (u64, Duration) {
    let (rounds, latency) = (Arc::new(AtomicU64::new(0)), Duration::from_millis(ms));
    let firsts = Arc::new(Mutex::new(BTreeMap::new()));
    let far = Far {
        disk: disk.clone(),
        rounds: Arc::clone(&rounds),
        firsts: Arc::clone(&firsts),
        latency,
        asked: None,
    };
    let (doorbell, began) = (Doorbell::new().unwrap(), Instant::now());
    let opened = match cache {
        None => engine::open(Box::new(far), doorbell, &wish.options),
        Some(pages) => {
            let caches = Caches {
                pages,
                dirty_pages_max: pages / 4 * 3,
                young_max: 1 << 20,
                directory_entries: 1000,
                frame_bytes: 0,
                lends: false,
            };
            open_with_cache(Box::new(far), doorbell, &wish.options, caches)
        }
    };
    drop(opened.unwrap());
    println!("{:?}", firsts.lock().unwrap());
    (rounds.load(Ordering::Relaxed), began.elapsed())
}

/// A copy of a disk as it is.
fn copy(disk: &MemoryDisk) -> MemoryDisk {
    disk.left_by_kill(1)
}

#[test]
fn a_store_with_a_tib_mapped_opens_in_few_rounds() {
    let wish = wish();
    let killed = killed_store_of_a_tib(&wish);
    let (rounds, _) = open(&wish, &copy(&killed), None, 0);
    // Too small for batches: as openings were before there were any.
    let (before, _) = open(&wish, &copy(&killed), Some(2047), 0);
    println!("killed: {before} rounds without batches, {rounds} with them");
    assert!(rounds < before, "{rounds} rounds, {before} before");
    // What is read at once is what is read singly.
    let stand = wish.open(killed);
    for clone in [500, CLONES - 1] {
        let volume = stand.client.volume(&format!("clone {clone}")).unwrap();
        let (at, length_bytes) = (CLONED / 2, 256 * CHUNK);
        assert!(stand.read(&volume, at, length_bytes) == pattern(), "clone {clone}");
    }
    let closed = stand.close();
    let (rounds, _) = open(&wish, &copy(&closed), None, 0);
    let (before, _) = open(&wish, &copy(&closed), Some(2047), 0);
    println!("closed: {before} rounds without batches, {rounds} with them");
    assert!(rounds <= before, "{rounds} rounds, {before} before");
}

/// For `docs/measurements/045-opening-over-latency.md`.
#[test]
#[ignore = "measures"]
fn opening_over_30_ms() {
    let wish = wish();
    let killed = killed_store_of_a_tib(&wish);
    let closed = wish.open(copy(&killed)).close();
    for (what, disk) in [("killed", killed), ("closed", closed)] {
        for (how, cache) in [("before", Some(2047)), ("now", None)] {
            let (rounds, took) = open(&wish, &copy(&disk), cache, 30);
            println!("{what}, {how}: {rounds} rounds, {:.1} s", took.as_secs_f64());
        }
    }
}
