//! Schedules that once broke a promise, found by reading the crash argument against the code.
//!
//! Each drives the real engine, step by step, into one exact situation: a frame of a cut life at
//! the place of a new one, a directory of a cut life, a sync that is claimed too early, a door that
//! promises after the device has failed. They are named after what must hold.

use disk::{Completion, Disk, Doorbell, Fault, Io, IoKind, MemoryDisk};
use engine::{
    Accepted, Client, Codec, Completions, Compression, CreateOptions, Done, Engine, OpenVolume,
    Options, Reply, RequestError, Zone, check, create, open, plan,
};
use format::superblock::Geometry;
use format::units::CONTAINER_BYTES;
use std::sync::{Arc, Mutex};

const C: u64 = 4096;
const RAW: Compression = Compression { codec: Codec::Raw, level: 0 };
#[derive(Default)]
struct Inbox(Mutex<Vec<(u64, Result<Reply, RequestError>)>>);
impl Completions for Inbox {
    fn complete(&self, tag: u64, outcome: Result<Reply, RequestError>) {
        self.0.lock().unwrap().push((tag, outcome));
    }
}
struct Rig {
    disk: MemoryDisk,
    engine: Engine,
    client: Client,
    inbox: Arc<Inbox>,
    tag: u64,
}
fn options() -> Options {
    Options { memory_bytes: 64 << 20, worker_threads: 0, sync: false, ..Default::default() }
}
fn disk_of(zones: usize, cap: u64, seed: u64) -> MemoryDisk {
    let g = plan(&CreateOptions {
        capacity_bytes: vec![cap; zones],
        chunk_bytes: 4096,
        compression: RAW,
        detection: Default::default(),
        tables_bytes: None,
        journal_bytes: None,
        uuid: [7; 16],
        bucket_seed: [9; 16],
    })
    .unwrap();
    made(&g, seed)
}
/// A store of one container or two, with a ring that an opening reads through in no time.
fn small_disk(seed: u64) -> MemoryDisk {
    let g = Geometry {
        version: format::FORMAT_VERSION_COMMON,
        uuid: [7; 16],
        bucket_seed: [9; 16],
        chunk_bytes: 4096,
        container_bytes: CONTAINER_BYTES,
        journal_bytes: 3 << 20,
        tables_bytes: 6 << 20,
        data: vec![8],
        detection: Default::default(),
        marked: false,
        features: Default::default(),
    };
    made(&g, seed)
}
fn made(g: &Geometry, seed: u64) -> MemoryDisk {
    let zones: Vec<_> = g.zones().collect();
    let d = MemoryDisk::new(&zones, seed);
    create(Box::new(d.clone()), g, RAW).unwrap();
    d
}
fn rig(disk: MemoryDisk) -> Rig {
    let (engine, client, _) =
        open(Box::new(disk.clone()), Doorbell::new().unwrap(), &options()).unwrap();
    Rig { disk, engine, client, inbox: Arc::default(), tag: 0 }
}
/// Chunk `n`: its number in every 64 bytes, so that no sector of it is like that of another one.
fn chunk(n: u64) -> Vec<u8> {
    let mut bytes = vec![0x5a; 4096];
    for (at, word) in (1..).zip(bytes.chunks_exact_mut(64)) {
        word[..8].copy_from_slice(&(n ^ at << 48).to_le_bytes());
    }
    bytes
}
/// So many chunks from chunk `first` on.
fn chunks(first: u64, count: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count as usize * 4096);
    (first..first + count).for_each(|n| bytes.extend_from_slice(&chunk(n)));
    bytes
}
impl Rig {
    fn done<A: Into<Reply>>(&mut self) -> Done<A> {
        self.tag += 1;
        Done::new(self.inbox.clone(), self.tag)
    }
    fn beside<T: Send + 'static>(&mut self, f: impl FnOnce(Client) -> T + Send + 'static) -> T {
        let c = self.client.clone();
        let t = std::thread::spawn(move || f(c));
        let mut n = 0u64;
        while !t.is_finished() {
            if !self.engine.step() {
                n += 1;
                if n.is_multiple_of(50) {
                    self.engine.tick();
                }
                std::thread::yield_now();
            }
            assert!(n < 3_000_000, "stuck");
        }
        t.join().unwrap()
    }
    fn volume(&mut self, chunks: u64) -> OpenVolume {
        self.beside(move |c| {
            c.create_volume("v", chunks * C, false).unwrap();
            c.open_volume("v", engine::Opener::new("a test", 0)).unwrap()
        })
    }
    fn open_volume(&mut self) -> OpenVolume {
        self.beside(|c| c.open_volume("v", engine::Opener::new("a test", 0)).unwrap())
    }
    fn write(&mut self, v: &OpenVolume, at: u64, b: &[u8]) -> (Accepted, u64) {
        let d = self.done();
        let mut buf = self.client.buffer(at, b.len());
        buf.bytes_mut().copy_from_slice(b);
        (self.client.write(v, at, buf, false, d), self.tag)
    }
    fn flush(&mut self) -> u64 {
        let d = self.done();
        self.client.flush(d);
        self.tag
    }
    fn answered(&self, tag: u64) -> bool {
        self.inbox.0.lock().unwrap().iter().any(|a| a.0 == tag)
    }
    fn steps(&mut self, n: u64) {
        for _ in 0..n {
            self.engine.step();
        }
    }
    fn wait(&mut self, tag: u64) -> bool {
        for n in 0..20_000 {
            if self.answered(tag) {
                return true;
            }
            if !self.engine.step() && n % 50 == 0 {
                self.engine.tick();
            }
        }
        false
    }
    fn read(&mut self, v: &OpenVolume, lba: u64) -> Option<Result<Vec<u8>, RequestError>> {
        self.read_run(v, lba, 1)
    }
    fn read_run(
        &mut self,
        v: &OpenVolume,
        lba: u64,
        count: u64,
    ) -> Option<Result<Vec<u8>, RequestError>> {
        let d = self.done();
        let tag = self.tag;
        self.client.read(v, lba * C, (count * C) as u32, d);
        if !self.wait(tag) {
            return None;
        }
        let mut box_ = self.inbox.0.lock().unwrap();
        let at = box_.iter().position(|a| a.0 == tag).unwrap();
        Some(match box_.remove(at).1 {
            Ok(Reply::Read(p)) => {
                let mut o = vec![0; (count * C) as usize];
                p.assemble(&mut o).map(|()| o)
            }
            Err(e) => Err(e),
            _ => unreachable!(),
        })
    }
    fn close_reopen(mut self) -> Rig {
        self.beside(|c| c.close().unwrap());
        let d = self.disk.restart(5);
        rig(d)
    }
    fn crash(self, seed: u64) -> Rig {
        rig(self.disk.crash(seed))
    }
}

#[test]
fn a_whole_write_outlives_the_read_around_a_part_of_it() {
    let mut r = rig(disk_of(1, 64 << 20, 1));
    let v = r.volume(1000);
    r.write(&v, 0, &chunk(1));
    let f = r.flush();
    assert!(r.wait(f));
    let mut r = r.close_reopen();
    let v = r.open_volume();
    r.write(&v, 0, &[7; 512]);
    r.steps(1);
    let (a, _) = r.write(&v, 0, &chunk(2));
    assert_eq!(a, Accepted::Now);
    r.write(&v, C, &chunk(3));
    r.write(&v, 2 * C, &chunk(4));
    r.steps(500);
    let f = r.flush();
    assert!(r.wait(f), "flush hangs");
    for (lba, n) in [(0, 2), (1, 3), (2, 4)] {
        let got = r.read(&v, lba).unwrap().unwrap();
        assert!(
            got == chunk(n),
            "lba {lba} is not what was acknowledged; zeros: {}",
            got.iter().all(|b| *b == 0)
        );
    }
}
#[test]
fn a_read_behind_a_long_trim_ends() {
    let mut r = rig(disk_of(1, 64 << 20, 1));
    let v = r.volume(509 * 677);
    for leaf in [0u64, 1, 2, 3, 4, 5, 6, 7, 508] {
        r.write(&v, leaf * 677 * C, &chunk(leaf + 1));
    }
    let f = r.flush();
    assert!(r.wait(f));
    let mut r = r.close_reopen();
    let v = r.open_volume();
    let d = r.done();
    r.client.trim(&v, 0, 8 * 677 * C, false, d);
    let t = r.tag;
    assert!(r.wait(t));
    r.engine.tick();
    r.engine.tick();
    r.steps(3000);
    let got = r.read(&v, 508 * 677);
    assert!(got.is_some(), "a read behind the trim never ends");
}
#[test]
fn a_flush_covers_every_data_zone() {
    t3(2)
}
#[test]
fn a_flush_covers_one_data_zone() {
    t3(1)
}
fn t3(zones: usize) {
    let mut bad = Vec::new();
    for seed in 0..150u64 {
        let mut r = rig(disk_of(zones, (64 << 20) / zones as u64, seed));
        let v = r.volume(20_000);
        let (mut at, mut flushed, mut pending) = (0u64, 0u64, Vec::new());
        let stop = 300 + seed * 7 % 1500;
        let mut s = 0;
        while s < stop && at < 9000 {
            let n = 1 + (seed + at * 31) % 250;
            let b = chunks(1 + at, n);
            r.write(&v, at * C, &b);
            at += n;
            let f = r.flush();
            pending.push((f, at));
            let k = (at ^ seed) % 9;
            r.steps(k);
            s += k + 1;
            pending.retain(|&(t, upto)| {
                if r.answered(t) {
                    flushed = flushed.max(upto);
                    false
                } else {
                    true
                }
            });
        }
        let mut r = r.crash(seed * 3 + 1);
        let v = r.open_volume();
        for lba in (0..flushed).step_by(64) {
            let count = 64.min(flushed - lba);
            match r.read_run(&v, lba, count) {
                Some(Ok(b)) if b == chunks(1 + lba, count) => {}
                other => {
                    bad.push((
                        seed,
                        lba,
                        flushed,
                        format!("{:?}", other.map(|o| o.map(|b| b[..4].to_vec()))),
                    ));
                    break;
                }
            }
        }
    }
    assert!(
        bad.is_empty(),
        "{} of 400 seeds lost flushed data: {:?}",
        bad.len(),
        &bad[..bad.len().min(5)]
    );
}
#[test]
fn a_frame_of_a_cut_life_never_passes_for_a_new_one() {
    let mut bad = Vec::new();
    let mut ways = [0; 3];
    for seed in 0..1500u64 {
        let mut r = rig(small_disk(seed));
        let v = r.volume(1000);
        r.write(&v, 0, &chunk(1));
        let f = r.flush();
        assert!(r.wait(f));
        r.write(&v, C, &chunk(2));
        r.flush();
        r.steps(3 + seed % 8);
        let mut r = r.crash(seed * 5);
        let v = r.open_volume();
        let first = r.read(&v, 1).unwrap().unwrap();
        if first == chunk(2) {
            continue;
        }
        ways[0] += 1;
        r.write(&v, C, &chunk(3));
        r.flush();
        r.steps(3 + seed / 8 % 8);
        let mut r = r.crash(seed * 7 + 1);
        let v = r.open_volume();
        match r.read(&v, 1).unwrap() {
            Ok(b) if b == chunk(3) => ways[1] += 1,
            Ok(b) if b.iter().all(|x| *x == 0) => ways[2] += 1,
            Ok(b) if b == chunk(2) => {
                bad.push((seed, "bytes of a write that was not in the prefix"))
            }
            _ => bad.push((seed, "damaged")),
        }
    }
    assert!(bad.is_empty(), "{} bad, ways {ways:?}: {:?}", bad.len(), &bad[..bad.len().min(5)]);
    assert!(ways.iter().all(|&times| times > 50), "hardly ever in the situation: {ways:?}");
}
#[test]
fn empty_requests_hold_no_space() {
    let mut r = rig(disk_of(1, 64 << 20, 1));
    let v = r.volume(1000);
    for _ in 0..20_000 {
        r.write(&v, 0, &[]);
        r.steps(1);
    }
    let (a, _) = r.write(&v, 0, &chunk(1));
    assert_eq!(a, Accepted::Now, "reservations of empty writes leak");
}
struct DiesAtDataSync(MemoryDisk);
impl Disk for DiesAtDataSync {
    fn submit(&mut self, io: Io) {
        if matches!((&io.kind, io.zone), (IoKind::Sync, Zone::Data(_))) {
            return;
        }
        self.0.submit(io)
    }
    fn poll(&mut self, d: &mut Vec<Completion>) {
        self.0.poll(d)
    }
    fn wait(&mut self, d: &mut Vec<Completion>) {
        self.0.wait(d)
    }
    fn in_flight(&self) -> usize {
        self.0.in_flight()
    }
    fn size_bytes(&self, z: Zone) -> u64 {
        self.0.size_bytes(z)
    }
}
#[test]
fn an_opening_claims_only_what_is_synced() {
    let mut bad = Vec::new();
    for seed in 0..400u64 {
        let mut r = rig(small_disk(seed));
        let v = r.volume(1000);
        r.write(&v, 0, &chunk(1));
        let f = r.flush();
        assert!(r.wait(f));
        r.write(&v, C, &chunk(2));
        r.flush();
        r.steps(3 + seed % 8);
        let killed = r.disk.restart(seed);
        assert!(
            open(Box::new(DiesAtDataSync(killed.clone())), Doorbell::new().unwrap(), &options())
                .is_err()
        );
        let left = killed.crash(seed * 11 + 3);
        let problems = check(Box::new(left.clone()), &mut |_| {}).unwrap().problems;
        let mut r = rig(left);
        let v = r.open_volume();
        match r.read(&v, 1).unwrap() {
            Ok(b) if b == chunk(2) || b.iter().all(|x| *x == 0) => {}
            other => {
                bad.push((seed, format!("{:?}", other.map(|b| b[..4].to_vec())), problems.len()))
            }
        }
    }
    assert!(bad.is_empty(), "{}: {:?}", bad.len(), &bad[..bad.len().min(3)]);
}
#[test]
fn nothing_is_acknowledged_after_the_device_failed() {
    let mut r = rig(disk_of(1, 64 << 20, 1));
    let v = r.volume(1000);
    r.write(&v, 0, &chunk(1));
    let f = r.flush();
    assert!(r.wait(f));
    r.disk.inject(Fault::Sync { zone: Zone::Journal });
    r.write(&v, C, &chunk(2));
    let f = r.flush();
    assert!(r.wait(f));
    let (a, _) = r.write(&v, 0, &chunk(5));
    r.steps(50);
    let got = r.read(&v, 0).unwrap().unwrap();
    assert!(
        a == Accepted::Later || got == chunk(5),
        "acknowledged after the stop and not read back"
    );
}
#[test]
fn one_rotten_frame_costs_one_chunk() {
    let mut r = rig(disk_of(1, 64 << 20, 1));
    let v = r.volume(20_000);
    let n = 700u64;
    let b = chunks(1, n);
    r.write(&v, 0, &b[..(256 * 4096)]);
    r.write(&v, 256 * C, &b[(256 * 4096)..]);
    let f = r.flush();
    assert!(r.wait(f));
    r.beside(|c| c.close().unwrap());
    let d = r.disk.restart(1);
    d.corrupt(Zone::Data(0), 100 * 4112 + 1000, |b| *b ^= 1);
    let mut r = rig(d);
    let v = r.open_volume();
    for at in (700..10_500u64).step_by(100) {
        let b = chunks(1 + at, 100);
        let (_, _t) = r.write(&v, at * C, &b);
        r.steps(30);
    }
    let f = r.flush();
    assert!(r.wait(f));
    // The first container becomes the emptiest: what its directory lists in front is trimmed.
    let d = r.done();
    r.client.trim(&v, 0, 90 * C, false, d);
    let f = r.flush();
    assert!(r.wait(f));
    let d = r.done();
    r.client.trim(&v, 710 * C, 290 * C, false, d);
    for at in (10_500..12_500u64).step_by(100) {
        let b = chunks(1 + at, 100);
        r.write(&v, at * C, &b);
        r.steps(60);
    }
    let f = r.flush();
    r.wait(f);
    r.steps(3000);
    let s = r.beside(|c| c.stats().unwrap());
    let lost = (90..700)
        .filter(|&lba| lba != 100)
        .filter(|&lba| !matches!(r.read(&v, lba), Some(Ok(b)) if b == chunk(1 + lba)))
        .count();
    let _ = r.disk.crash(1);
    let p = check(Box::new(r.disk.crash(2)), &mut |_| {}).unwrap().problems;
    let mut kinds = std::collections::BTreeMap::new();
    for x in &p {
        *kinds.entry(format!("{x:?}").split([' ', '{']).next().unwrap().to_owned()).or_insert(0) +=
            1;
    }
    assert!(
        lost == 0 && p.len() <= 2,
        "collected {} lost {lost} problems {kinds:?}",
        s.counters.containers_collected
    );
}
#[test]
fn another_chunks_frame_is_never_served() {
    let mut r = rig(disk_of(1, 64 << 20, 1));
    let v = r.volume(1000);
    r.write(&v, 0, &chunk(1));
    r.write(&v, C, &chunk(2));
    let f = r.flush();
    assert!(r.wait(f));
    r.beside(|c| c.close().unwrap());
    let d = r.disk.restart(1);
    let b = d.peek(Zone::Data(0), 4112, 4112);
    for (i, x) in b.iter().enumerate() {
        d.corrupt(Zone::Data(0), i as u64, |y| *y = *x);
    }
    let mut r = rig(d);
    let v = r.open_volume();
    let got = r.read(&v, 0).unwrap();
    assert!(
        got.is_err() || got.as_ref().unwrap() == &chunk(1),
        "another chunk's bytes were served"
    );
}
#[test]
fn ragged_trims_of_a_full_store_end() {
    let mut r = rig(disk_of(1, 64 << 20, 1));
    let v = r.volume(40_000);
    let mut at = 0u64;
    let mut full = false;
    while !full && at < 30_000 {
        let b = chunks(1 + at, 64);
        let (a, t) = r.write(&v, at * C, &b);
        r.steps(20);
        if a == Accepted::Later {
            r.wait(t);
            let bx = r.inbox.0.lock().unwrap();
            full = bx.iter().any(|x| x.0 == t && x.1.is_err());
        }
        at += 64;
    }
    assert!(full);
    let f = r.flush();
    assert!(r.wait(f));
    for lba in 0..6000u64 {
        let d = r.done();
        r.client.trim(&v, lba * C, 512, false, d);
        if lba % 64 == 0 {
            r.steps(40);
        }
    }
    let f = r.flush();
    let ended = r.wait(f);
    let s = r.beside(|c| c.stats().unwrap());
    assert!(
        ended,
        "a flush of trims never ends; free {} dead {} checkpoints {} collected {} moved {}",
        s.free_bytes,
        s.dead_bytes,
        s.counters.checkpoints,
        s.counters.containers_collected,
        s.counters.chunks_moved
    );
}
#[test]
fn an_unreadable_root_slot_is_no_worse_than_a_damaged_one() {
    let mut r = rig(disk_of(1, 64 << 20, 1));
    r.volume(10);
    r.beside(|c| c.close().unwrap());
    let d = r.disk.restart(1);
    for block in [1u64, 2] {
        let d = d.restart(1);
        d.inject(Fault::Read { zone: Zone::Superblock, offset_bytes: block * 4096 });
        assert!(
            open(Box::new(d.clone()), Doorbell::new().unwrap(), &options()).is_ok(),
            "root slot block {block} unreadable: the store does not open"
        );
    }
}
#[test]
fn ragged_trims_of_shared_chunks_in_a_full_store_end() {
    let mut r = rig(disk_of(1, 64 << 20, 1));
    let v = r.volume(80_000);
    let mut at = 0u64;
    let mut full = false;
    while !full && at < 30_000 {
        let b = chunks(1 + at, 64);
        let (a, t) = r.write(&v, at * C, &b);
        r.steps(20);
        if a == Accepted::Later {
            r.wait(t);
            let bx = r.inbox.0.lock().unwrap();
            full = bx.iter().any(|x| x.0 == t && x.1.is_err());
        }
        if !full {
            let (a, t) = r.write(&v, (40_000 + at) * C, &b);
            r.steps(20);
            if a == Accepted::Later {
                r.wait(t);
            }
        }
        at += 64;
    }
    assert!(full);
    let f = r.flush();
    assert!(r.wait(f));
    for lba in 0..6000u64 {
        let d = r.done();
        r.client.trim(&v, lba * C, 512, false, d);
        if lba % 64 == 0 {
            r.steps(40);
        }
    }
    let f = r.flush();
    let ended = r.wait(f);
    let s = r.beside(|c| c.stats().unwrap());
    assert!(
        ended,
        "a flush of trims never ends; free {} dead {} checkpoints {} collected {} moved {}",
        s.free_bytes,
        s.dead_bytes,
        s.counters.checkpoints,
        s.counters.containers_collected,
        s.counters.chunks_moved
    );
}
struct SlowData(MemoryDisk, Vec<Io>);
impl Disk for SlowData {
    fn submit(&mut self, io: Io) {
        if matches!((&io.kind, io.zone), (IoKind::Write { .. }, Zone::Data(_))) {
            self.1.push(io);
            return;
        }
        self.0.submit(io)
    }
    fn poll(&mut self, d: &mut Vec<Completion>) {
        self.0.poll(d)
    }
    fn wait(&mut self, d: &mut Vec<Completion>) {
        self.0.wait(d)
    }
    fn in_flight(&self) -> usize {
        self.0.in_flight() + self.1.len()
    }
    fn size_bytes(&self, z: Zone) -> u64 {
        self.0.size_bytes(z)
    }
}
#[test]
fn a_slow_device_holds_writers_back() {
    let d = disk_of(1, 1 << 30, 1);
    {
        let mut r = rig(d.clone());
        r.volume(250_000);
        r.beside(|c| c.close().unwrap());
    }
    let d = d.restart(1);
    let (mut engine, client, _) =
        open(Box::new(SlowData(d, Vec::new())), Doorbell::new().unwrap(), &options()).unwrap();
    let c2 = client.clone();
    let t =
        std::thread::spawn(move || c2.open_volume("v", engine::Opener::new("a test", 0)).unwrap());
    while !t.is_finished() {
        engine.step();
    }
    let v = t.join().unwrap();
    let wrote = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let w2 = wrote.clone();
    std::thread::spawn(move || {
        let inbox: Arc<Inbox> = Arc::default();
        for at in (0..100_000u64).step_by(100) {
            let mut b = client.buffer(at * C, 409_600);
            for i in 0..100 {
                b.bytes_mut()[i * 4096..(i + 1) * 4096].copy_from_slice(&chunk(1 + at + i as u64));
            }
            client.write(&v, at * C, b, false, Done::new(inbox.clone(), 1));
            w2.fetch_add(409_600, std::sync::atomic::Ordering::SeqCst);
        }
    });
    let mut still = 0;
    while still < 300 {
        if engine.step() {
            still = 0
        } else {
            still += 1;
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
    let wrote = wrote.load(std::sync::atomic::Ordering::SeqCst) >> 20;
    assert!(
        wrote < 64,
        "{wrote} MiB acknowledged with 64 MiB of memory while the device had written nothing"
    );
}
struct Loses(MemoryDisk, Box<dyn FnMut(&Io) -> bool + Send>, Vec<Completion>);
impl Disk for Loses {
    fn submit(&mut self, io: Io) {
        if matches!(io.kind, IoKind::Write { .. }) && (self.1)(&io) {
            self.2.push(io.complete(Ok(())));
            return;
        }
        self.0.submit(io)
    }
    fn poll(&mut self, d: &mut Vec<Completion>) {
        d.append(&mut self.2);
        self.0.poll(d)
    }
    fn wait(&mut self, d: &mut Vec<Completion>) {
        if !self.2.is_empty() {
            d.append(&mut self.2);
        } else {
            self.0.wait(d)
        }
    }
    fn in_flight(&self) -> usize {
        self.0.in_flight() + self.2.len()
    }
    fn size_bytes(&self, z: Zone) -> u64 {
        self.0.size_bytes(z)
    }
}
fn rig_on(disk: &MemoryDisk, lose: impl FnMut(&Io) -> bool + Send + 'static) -> Rig {
    let (engine, client, _) = open(
        Box::new(Loses(disk.clone(), Box::new(lose), Vec::new())),
        Doorbell::new().unwrap(),
        &options(),
    )
    .unwrap();
    Rig { disk: disk.clone(), engine, client, inbox: Arc::default(), tag: 0 }
}
/// What is lost here is never followed by a sync of its zone: only volatile caches lose.
#[test]
fn the_directory_of_a_cut_life_is_not_taken() {
    const M: u64 = 4 << 20;
    let d = disk_of(1, 64 << 20, 1);
    {
        let mut r = rig(d.clone());
        r.volume(20_000);
        r.beside(|c| c.close().unwrap());
    }
    let d = d.restart(1);
    let end = |r: &mut Rig| {
        r.steps(400);
    };
    // Life 1: container 0 opened, filled, sealed and 1 opened, nothing flushed; the first segment
    // of container 0 is lost.
    let mut r = rig_on(&d, move |io| matches!(io.zone, Zone::Data(_)) && io.offset_bytes == 0);
    let v = r.open_volume();
    for at in (0..1280u64).step_by(128) {
        let b = chunks(1 + at, 128);
        r.write(&v, at * C, &b);
        r.steps(20);
    }
    end(&mut r);
    let d = r.disk.restart(3);
    // Life 2: the same with other bytes; this time the directory of container 0 is lost.
    let mut r = rig_on(&d, move |io| {
        matches!(io.zone, Zone::Data(_))
            && io.offset_bytes > M - (100 << 10)
            && io.offset_bytes < M
            && io.offset_bytes + io.kind_len() == M
    });
    let v = r.open_volume();
    for at in (0..1280u64).step_by(128) {
        let b = chunks(5001 + at, 128);
        r.write(&v, at * C, &b);
        r.steps(20);
    }
    end(&mut r);
    let d = r.disk.restart(4);
    let mut r = rig(d);
    let v = r.open_volume();
    let n = (0..1280u64)
        .filter(|&l| matches!(r.read(&v, l), Some(Ok(b)) if b == chunk(5001 + l)))
        .count();
    // Everything dies; its chunks are forgotten, by the directory that is there.
    let t = r.done();
    r.client.trim(&v, 0, 1280 * C, false, t);
    let f = r.flush();
    assert!(r.wait(f));
    for _ in 0..40 {
        r.steps(50);
        r.engine.tick();
        r.steps(50);
    }
    let f = r.flush();
    assert!(r.wait(f));
    let s = r.beside(|c| c.stats().unwrap());
    let p = check(Box::new(r.disk.crash(2)), &mut |_| {}).unwrap().problems;
    assert!(
        p.is_empty(),
        "{n} of 1280 were read, collected {}, problems {}: {:?}",
        s.counters.containers_collected,
        p.len(),
        p.first()
    );
}
trait KindLen {
    fn kind_len(&self) -> u64;
}
impl KindLen for Io {
    fn kind_len(&self) -> u64 {
        match &self.kind {
            IoKind::Write { buf, .. } => buf.len() as u64,
            _ => 0,
        }
    }
}
