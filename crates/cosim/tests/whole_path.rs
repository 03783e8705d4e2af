//! One image through the hardware and into a store of SHA3-256 fingerprints: what the core says of
//! each page is what the engine says of it.
//!
//! An image of 2 MiB is made here. `COSIM_IMAGE` names another one, `COSIM_STORE` a directory for
//! the store, which else is in memory: `cargo xtask rtl --image FILE` sets both, and lets `tamis
//! check` open the store.

#![cfg(verilator)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::{HashMap, HashSet};
use std::path::Path;

use cosim::dedup::{Dice, Digest, Driver, PAGE_BYTES, Settings, Verdict, Written, page_of, spread};
use cosim::{Block, DedupCore, DedupInputs, DedupOutputs, StubbedDedup};
use engine::control::Explain;
use engine::{Address, CheckReport, Detection, ExplainedFrame, FingerprintKind};
use store::{CreateOptions, Options, Store, Volume};

/// Pages of the image that is made.
const MADE_PAGES: u64 = 512;
/// The least that a store has room for.
const STORE_BYTES_MIN: u64 = 64 << 20;
/// What one write of the store's client has.
const PIECE_BYTES: usize = 1 << 20;

/// Checks a store that was closed.
type Check = Box<dyn FnOnce() -> CheckReport>;

/// The image's bytes: an eighth zeros, half of it pages that come again.
fn image() -> Vec<u8> {
    if let Some(path) = std::env::var_os("COSIM_IMAGE") {
        let mut bytes = std::fs::read(path).unwrap();
        bytes.truncate(bytes.len() / PAGE_BYTES * PAGE_BYTES);
        return bytes;
    }
    let mut dice = Dice::new(41);
    let page = |at| match dice.below(8) {
        0 => vec![0; PAGE_BYTES],
        1..=4 => page_of(&spread(dice.below(60))),
        _ => page_of(&spread(1000 + at)),
    };
    (0..MADE_PAGES).flat_map(page).collect()
}

/// A new store with what checks it in the end; a store in files is left for `tamis check`.
fn new_store(image_bytes: usize) -> (Store, Option<Check>) {
    let options = CreateOptions {
        detection: Detection { kind: FingerprintKind::Sha3_256, ..Detection::default() },
        preallocate: false,
        ..CreateOptions::new(STORE_BYTES_MIN + 2 * image_bytes as u64)
    };
    if let Some(path) = std::env::var_os("COSIM_STORE") {
        store::create(Path::new(&path), &options).unwrap();
        return (Store::open(Path::new(&path), Options::default()).unwrap(), None);
    }
    let disk = store::create_in_memory(&options, 1).unwrap();
    let store = Store::open_in_memory(&disk, Options::default()).unwrap();
    let check = move || engine::check(Box::new(disk.clone()), &mut |_| {}).unwrap();
    (store, Some(Box::new(check)))
}

fn hex(digest: &Digest) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The same image in the hardware and in the store.
struct Both<B: Block<Inputs = DedupInputs, Outputs = DedupOutputs>> {
    driver: Driver<B>,
    store: Store,
    volume: Volume,
    pages: u32,
}

impl<B: Block<Inputs = DedupInputs, Outputs = DedupOutputs>> Both<B> {
    fn write(&mut self, lba: u32, bytes: &[u8]) -> Vec<Written> {
        self.driver.write(lba, bytes);
        let first = u64::from(lba) * PAGE_BYTES as u64;
        for (at, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
            self.volume.write_at(first + (at * PIECE_BYTES) as u64, piece).unwrap();
        }
        self.volume.flush_blocking().unwrap();
        self.driver.settle()
    }

    /// Holds digest and count of each page against the engine's, and gives the engine's name of the
    /// chunk at each address.
    fn compare(&self) -> Vec<Option<u64>> {
        let counts = self.driver.check_counts();
        let mut digests: HashMap<u64, Digest> = HashMap::new();
        let mut names = Vec::new();
        for lba in 0..self.pages {
            let address = Address::Lba(lba.into());
            let explain = Explain { volume: "image".to_owned(), address };
            let chunk = self.volume.client().ask(explain).unwrap().chunk;
            let digest = self.driver.digests().get(&lba);
            assert_eq!(chunk.is_some(), digest.is_some(), "address {lba} has a page in both");
            names.push(chunk.as_ref().map(|chunk| chunk.pbn));
            let (Some(chunk), Some(digest)) = (chunk, digest) else { continue };
            let place = chunk.place.expect("the chunk is somewhere");
            let ExplainedFrame { fingerprint, .. } = place.frame.expect("its frame is whole");
            assert_eq!(fingerprint, hex(digest), "address {lba}");
            assert_eq!(place.references, counts[digest], "count of the page at {lba}");
            assert_eq!(digests.entry(chunk.pbn).or_insert(*digest), digest, "one name a page");
        }
        assert_eq!(self.store.client().stats().unwrap().unique_chunks, counts.len() as u64);
        names
    }

    fn compare_bytes(&mut self) {
        let mut stored = vec![0; self.pages as usize * PAGE_BYTES];
        self.volume.read_at(0, &mut stored).unwrap();
        let piece_pages = (PIECE_BYTES / PAGE_BYTES) as u32;
        for (first, piece) in (0..).step_by(piece_pages as usize).zip(stored.chunks(PIECE_BYTES)) {
            let lbas = first..first + (piece.len() / PAGE_BYTES) as u32;
            assert!(self.driver.read(lbas) == piece, "bytes from page {first} on");
        }
    }

    /// The pages of the hardware's device go into the store as well, page by page at its index: for
    /// the engine each of them is a duplicate.
    fn store_device(&self) {
        let unique = || self.store.client().stats().unwrap().unique_chunks;
        let before = unique();
        let size_bytes = u64::from(self.pages) * PAGE_BYTES as u64;
        let device = self.store.create_volume("device", size_bytes).unwrap();
        for (index, _, bytes) in self.driver.rig().device_pages() {
            device.write_at(u64::from(index) * PAGE_BYTES as u64, &bytes).unwrap();
        }
        device.flush_blocking().unwrap();
        assert_eq!(unique(), before, "the device's pages are the store's chunks");
    }
}

/// What the engine found page by page: a name that it gave at an earlier address is a duplicate.
fn verdicts(names: &[Option<u64>]) -> Vec<Written> {
    let mut seen = HashSet::new();
    let named = (0..).zip(names).filter_map(|(lba, name)| name.map(|name| (lba, name)));
    let verdict = |is_new| if is_new { Verdict::New } else { Verdict::Shared };
    named.map(|(lba, name)| Written { lba, verdict: verdict(seen.insert(name)) }).collect()
}

fn check<B: Block<Inputs = DedupInputs, Outputs = DedupOutputs>>(page_tenths: u64) {
    let image = image();
    let pages = (image.len() / PAGE_BYTES) as u32;
    let bucket_mask = (pages / 8).next_power_of_two() - 1;
    let settings = Settings { bucket_mask, capacity: pages, page_tenths, ..Settings::default() };
    let (store, check) = new_store(image.len());
    let volume = store.create_volume("image", image.len() as u64).unwrap();
    let mut both: Both<B> = Both { driver: Driver::new(settings), store, volume, pages };

    let written = both.write(0, &image);
    let cycles = both.driver.rig().cycles();
    assert_eq!(written, verdicts(&both.compare()), "the verdict of each page");
    let shared = written.iter().filter(|page| page.verdict == Verdict::Shared).count();
    let counted = both.store.client().stats().unwrap().written;
    assert_eq!(counted.duplicate_bytes, (shared * PAGE_BYTES) as u64);
    println!("{pages} pages, {} written, {shared} duplicates, {cycles} cycles", written.len());
    both.compare_bytes();

    // A quarter is written over with what is elsewhere, an eighth is trimmed.
    let quarter = image.len() / PAGE_BYTES / 4 * PAGE_BYTES;
    both.write(1, &image[quarter..2 * quarter]);
    let trimmed = pages / 2..pages / 2 + pages / 8;
    both.driver.trim(trimmed.clone());
    both.driver.settle();
    let trimmed_bytes = trimmed.len() * PAGE_BYTES;
    let first = u64::from(trimmed.start) * PAGE_BYTES as u64;
    both.volume.trim_blocking(first, trimmed_bytes as u64).unwrap();
    both.volume.flush_blocking().unwrap();
    both.compare();
    both.compare_bytes();
    both.store_device();

    let Both { store, volume, .. } = both;
    drop(volume);
    store.close().unwrap();
    if let Some(check) = check {
        assert_eq!(check().problems, [], "the store is sound");
    }
}

#[test]
fn an_image_is_the_same_to_the_hardware_and_to_the_engine() {
    check::<StubbedDedup>(806);
}

#[test]
#[ignore = "real cores take minutes for a large image"]
fn the_same_with_real_cores() {
    check::<DedupCore>(806);
}
