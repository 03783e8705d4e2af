//! Small stores made by the real engine, damage that no checksum shows, and an engine stepped in
//! place.
//!
//! A CRC is linear: which four bytes keep it as it was, after others changed, is 32 equations with
//! 32 unknowns. So any structure is changed here without its checksum, nor a tag of it in whatever
//! points to it, telling. The format has no hook for it, and no offset is known.

use std::fmt::Debug;
use std::sync::OnceLock;

use disk::{Doorbell, MemoryDisk};
use engine::{
    Ask, Caches, Client, DeleteRequest, DomainSecret, Done, Engine, NewVolume, OpenVolume, Opener,
    Options, RequestError, Structure, control, structures,
};
use format::checksum::crc32c;
use format::superblock::Geometry;
use format::units::{CONTAINER_BYTES, Codec, Compression, Zone};

const CHUNK_BYTES: usize = 4096;
const CONTAINERS: u32 = 4;
const TABLES_BYTES: u64 = 4 << 20;
const JOURNAL_BYTES: u64 = 3 << 20;
/// Pages in memory.
const CACHE: Caches = Caches {
    pages: 512,
    dirty_pages_max: 64,
    young_max: 400,
    directory_entries: 64,
    frame_bytes: 1 << 20,
    lends: false,
};
/// Steps without any movement after which nothing will come.
const STILL_MAX: u32 = 2_000;
/// Steps that a request may take: a small store is scrubbed in fewer.
const STEPS_MAX: u32 = 200_000;
/// Bytes that keep a checksum.
const PATCH_BYTES: usize = 4;

/// A store and where everything of it lies.
pub struct Sample {
    /// The store.
    pub disk: MemoryDisk,
    /// All that means something.
    pub structures: Vec<Structure>,
}

/// One that was closed, and one whose power went after a flush.
pub fn samples() -> &'static [Sample; 2] {
    static SAMPLES: OnceLock<[Sample; 2]> = OnceLock::new();
    SAMPLES.get_or_init(|| [sample(true), sample(false)])
}

fn new_disk() -> MemoryDisk {
    let geometry = Geometry {
        version: format::FORMAT_VERSION_COMMON,
        uuid: [7; 16],
        bucket_seed: [9; 16],
        chunk_bytes: CHUNK_BYTES as u32,
        container_bytes: CONTAINER_BYTES,
        journal_bytes: JOURNAL_BYTES,
        tables_bytes: TABLES_BYTES,
        data: vec![CONTAINERS; 2],
        detection: Default::default(),
        marked: true,
        features: Default::default(),
    };
    let zones: Vec<_> = geometry.zones().collect();
    let disk = MemoryDisk::new(&zones, 1);
    let lz4 = Compression { codec: Codec::Lz4, level: 0 };
    engine::create(Box::new(disk.clone()), &geometry, lz4).expect("a new store is made");
    disk
}

/// Volumes, one of them deleted, two in keyed domains; chunks, some twice; a sealed container and
/// an open one.
fn sample(closed: bool) -> Sample {
    let disk = new_disk();
    let mut life = Running::open(&disk).expect("a new store opens");
    let create = |name: &str, domain: Option<&str>| {
        let (name, size_bytes) = (name.to_owned(), 64 << 20);
        let domain = domain.map(str::to_owned);
        NewVolume { name, size_bytes, domain, ..NewVolume::default() }
    };
    for name in ["a", "b", "c"] {
        life.administer(create(name, None)).expect("there is room for a volume");
    }
    // One is in the journal of the store whose power went, with the chunks of both.
    life.administer(create("d", Some("tenant1"))).expect("the store has a secret to offer");
    if closed {
        life.administer(create("e", Some("tenant2"))).expect("the store has a secret");
    }
    let (a, b) = (life.volume("a"), life.volume("b"));
    for number in 0..1200 {
        life.write(&a, number * 5 % 1500, number);
    }
    life.flush();
    if !closed {
        life.administer(control::Close {}).expect("a sound store closes");
        drop(life);
        life = Running::open(&disk).expect("a closed store opens");
    }
    let b = if closed { b } else { life.volume("b") };
    for number in 0..100 {
        life.write(&b, 9000 + number, number * 20);
    }
    if !closed {
        life.administer(create("e", Some("tenant2"))).expect("the store has a secret");
    }
    // What the others have as well, and each for itself.
    for tenant in ["d", "e"] {
        let volume = life.volume(tenant);
        (0..60).for_each(|number| life.write(&volume, 9000 + number, number * 20));
    }
    life.administer(DeleteRequest::of("c")).expect("it is there");
    life.flush();
    if closed {
        life.administer(control::Close {}).expect("a sound store closes");
    }
    let disk = disk.left_by_power_loss(1, disk::Loss::All);
    let structures = structures(Box::new(disk.left_by_kill(1))).expect("a sound store is read");
    let found = engine::check(Box::new(disk.left_by_kill(1)), &mut |_| {}).expect("it opens");
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    Sample { disk, structures }
}

/// Half of it compresses.
fn content(number: u64) -> Vec<u8> {
    let mut bytes = vec![0; CHUNK_BYTES];
    for (at, byte) in bytes.iter_mut().enumerate().take(CHUNK_BYTES - 512) {
        *byte = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (at % 57)) as u8 ^ at as u8;
    }
    let mut noise = number;
    for word in bytes[..3500].chunks_exact_mut(8) {
        noise = noise.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        word.copy_from_slice(&(noise ^ noise >> 29).to_le_bytes());
    }
    bytes
}

/// Changes four bytes at `patch_at` so that the checksum of all is what it was of `before`. False
/// when `patch_at` is too near the end.
pub fn keep_checksum(bytes: &mut [u8], before: &[u8], patch_at: usize) -> bool {
    if patch_at + PATCH_BYTES > bytes.len() {
        return false;
    }
    let mut wanted = crc32c(bytes) ^ crc32c(before);
    // What each bit of the patch does to the checksum, and the bits that make it, reduced until
    // each row leads with a bit of its own.
    let mut rows: Vec<(u32, u32)> = Vec::with_capacity(32);
    let still = vec![0; bytes.len()];
    let base = crc32c(&still);
    for bit in 0..32 {
        let mut one = still.clone();
        one[patch_at + bit / 8] = 1 << (bit % 8);
        let mut row = (crc32c(&one) ^ base, 1u32 << bit);
        for &(effect, bits) in &rows {
            if row.0 ^ effect < row.0 {
                row = (row.0 ^ effect, row.1 ^ bits);
            }
        }
        rows.push(row);
        rows.sort_unstable_by(|a, b| b.cmp(a));
    }
    let mut patch = 0;
    for (effect, bits) in rows {
        if wanted ^ effect < wanted {
            (wanted, patch) = (wanted ^ effect, patch ^ bits);
        }
    }
    let place = &mut bytes[patch_at..patch_at + PATCH_BYTES];
    place.iter_mut().zip(patch.to_le_bytes()).for_each(|(byte, bits)| *byte ^= bits);
    assert!(crc32c(bytes) == crc32c(before), "four bytes make any checksum");
    true
}

/// Puts bytes on a disk behind everybody's back.
pub fn put(disk: &MemoryDisk, zone: Zone, offset_bytes: u64, bytes: &[u8]) {
    let held = disk.peek(zone, offset_bytes, bytes.len());
    for (at, (new, old)) in (0..).zip(bytes.iter().zip(held)) {
        if *new != old {
            disk.corrupt(zone, offset_bytes + at, |byte| *byte = *new);
        }
    }
}

/// A store that runs when it is asked something.
pub struct Running {
    engine: Engine,
    client: Client,
}

impl Running {
    /// Opens what is on the disk.
    ///
    /// # Errors
    /// The engine's sentence.
    pub fn open(disk: &MemoryDisk) -> Result<Self, String> {
        let doorbell = Doorbell::new().expect("the machine has an eventfd");
        let options = Options {
            memory_bytes: 64 << 20,
            worker_threads: 0,
            sync: false,
            ..Default::default()
        };
        let disk = Box::new(disk.clone());
        let opened = engine::open_with_cache(disk, doorbell, &options, CACHE);
        let (mut engine, client, _) = opened.map_err(|error| error.to_string())?;
        engine.offer_secret(DomainSecret([5; 32]));
        Ok(Self { engine, client })
    }

    /// Asks, and steps until there is an answer; None when none will come.
    pub fn ask<A>(
        &mut self,
        send: impl FnOnce(&Client, Done<A>),
    ) -> Option<Result<A, RequestError>> {
        let (done, pending) = Done::pending();
        send(&self.client, done);
        let mut still = 0;
        for _ in 0..STEPS_MAX {
            if !self.engine.step() {
                still += 1;
                self.engine.tick();
            }
            let outcome = pending.try_take();
            if outcome.is_some() || still > STILL_MAX {
                return outcome;
            }
        }
        None
    }

    /// Asks about volumes and the store.
    pub fn administer<A: Ask + Debug>(&mut self, verb: A) -> Result<A::Answer, RequestError> {
        let asked = format!("{verb:?}");
        let outcome = self.ask(|client, done| client.administer(verb, done));
        outcome.unwrap_or_else(|| panic!("no answer to {asked}"))
    }

    fn volume(&mut self, name: &str) -> OpenVolume {
        let (name, opener) = (name.to_owned(), Opener::new("a fuzzer", 0));
        self.administer(control::Open { name, opener }).expect("it is there")
    }

    fn write(&mut self, volume: &OpenVolume, lba: u64, number: u64) {
        let offset_bytes = lba * CHUNK_BYTES as u64;
        let buf = self.client.try_buffer(offset_bytes, CHUNK_BYTES);
        let mut buf = buf.expect("there is memory");
        buf.bytes_mut().copy_from_slice(&content(number));
        let (done, _) = Done::pending();
        self.client.write(volume, offset_bytes, buf, false, done);
        while self.engine.step() {}
    }

    /// Writes a chunk of what is stored, or is not, whatever becomes of that.
    pub fn overwrite(&mut self, volume: &OpenVolume, lba: u64, number: u64) {
        let offset_bytes = lba * CHUNK_BYTES as u64;
        let Some(mut buf) = self.client.try_buffer(offset_bytes, CHUNK_BYTES) else { return };
        buf.bytes_mut().copy_from_slice(&content(number));
        let (done, _) = Done::pending();
        self.client.write(volume, offset_bytes, buf, false, done);
        let ended = (0..STEPS_MAX).any(|_| !self.engine.step());
        assert!(ended, "a write goes on and on");
    }

    fn flush(&mut self) {
        let outcome = self.ask(|client, done| client.flush(done));
        assert!(matches!(outcome, Some(Ok(_))), "a flush on a sound disk");
    }

    /// Lets it do what it does when nobody asks.
    pub fn idle(&mut self) {
        for _ in 0..20 {
            self.engine.tick();
            for _ in 0..1_000 {
                if !self.engine.step() {
                    break;
                }
            }
        }
    }
}
