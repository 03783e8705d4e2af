//! What the core pays for a chunk when all pages are resident, in nanoseconds per call.
//!
//! `cargo run --release -p tables --example lookup_cost [chunks [young]]`
//!
//! Time on the core is counted, not time on the wall, so that a busy machine disturbs less. Each
//! figure is the whole of what the engine does: naming the pages, the operation, giving the
//! pins back, in groups of 256 chunks. Content and PBNs are visited in random order, LBAs in runs
//! of 16 and, for comparison, one by one at random.

use format::detection::FilterBlocks;
use format::map_page;
use format::pba_page::PbaEntry;
use format::root::HashShape;
use format::units::{ContainerId, Fingerprint, FrameCheck, Lba, Pba, Pbn, TreeId, VolumeId};
use tables::{
    HashOptions, HashPbn, PageError, PageRead, PageStore, PageStoreOptions, PinSet, lba_pbn,
    pbn_pba,
};

const GROUP: usize = 256;
const RUN: usize = 16;
const MAP: TreeId = TreeId::volume(VolumeId(1));
/// The core's budget for all tables together.
const BUDGET_NS: f64 = 400.0;

type Outcome = Result<(), PageError>;

struct Tables {
    store: PageStore,
    hash: HashPbn,
    pins: PinSet,
    reads: Vec<PageRead>,
}

fn mix(number: u64) -> u64 {
    let mixed = (number ^ number >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ mixed >> 32
}

fn fingerprint(number: u64) -> Fingerprint {
    let mut bytes = [0; 32];
    for (part, word) in bytes.chunks_exact_mut(8).zip(1_u64..) {
        part.copy_from_slice(&mix(number * 4 + word).to_le_bytes());
    }
    Fingerprint(bytes)
}

impl Tables {
    fn new(young: HashOptions) -> Self {
        let options = PageStoreOptions { cache_pages: 1 << 30, tables_blocks: 2 };
        Self {
            store: PageStore::new(options),
            hash: HashPbn::new(HashShape::default(), *b"a seed of a test", young),
            pins: PinSet::default(),
            reads: Vec::new(),
        }
    }

    fn let_go(&mut self) {
        self.store.release_pins(std::mem::take(&mut self.pins));
    }

    fn insert(&mut self, keys: &[(Fingerprint, u64)]) -> Outcome {
        let Self { store, hash, pins, reads } = self;
        hash.want_insert(store, pins, keys.len() as u64, reads)?;
        for (_, pbn) in keys {
            pbn_pba::want(store, pins, Pbn(*pbn), reads)?;
        }
        for (key, pbn) in keys {
            hash.insert(store, key, Pbn(*pbn));
            let pba = Pba {
                container: ContainerId((pbn >> 11) as u32),
                offset_bytes: 0,
                length_bytes: 1,
                check: FrameCheck::UNKNOWN,
            };
            pbn_pba::set(store, Pbn(*pbn), PbaEntry { pba, references: 0, aside: false });
        }
        self.let_go();
        self.work()
    }

    /// What is due in the background: it belongs to the cost of an entry.
    fn work(&mut self) -> Outcome {
        while self.hash.work_is_due() {
            let Self { store, hash, pins, reads } = self;
            hash.want_work(store, pins, reads, 1 << 20)?;
            hash.work(store);
            self.let_go();
        }
        Ok(())
    }

    fn look_up(&mut self, keys: &[(Fingerprint, u64)]) -> Outcome {
        let Self { store, hash, .. } = self;
        let mut seen = Vec::with_capacity(keys.len());
        hash.look_up_group(store, keys.iter().map(|(key, _)| key), &mut seen, |_, _| ());
        std::hint::black_box(seen);
        self.let_go();
        Ok(())
    }

    fn retain(&mut self, keys: &[(Fingerprint, u64)]) -> Outcome {
        for (_, pbn) in keys {
            pbn_pba::want(&mut self.store, &mut self.pins, Pbn(*pbn), &mut self.reads)?;
        }
        let pbns: Vec<Pbn> = keys.iter().map(|(_, pbn)| Pbn(*pbn)).collect();
        pbn_pba::retain(&mut self.store, &pbns, &mut pbn_pba::Retained::default());
        self.let_go();
        Ok(())
    }

    fn map(&mut self, keys: &[(Fingerprint, u64)], run: usize, leaves: u64) -> Outcome {
        let first = |number: u64| Lba(mix(number) % (leaves * map_page::SLOTS as u64));
        let mut released = Vec::new();
        for keys in keys.chunks(run) {
            let start = first(keys[0].1);
            let (leaf, slot) = lba_pbn::place(start);
            self.store.want(&mut self.pins, MAP, leaf, &mut self.reads)?;
            if slot + keys.len() > map_page::SLOTS {
                self.store.want(&mut self.pins, MAP, leaf + 1, &mut self.reads)?;
            }
            let mut pbns = [Pbn(1); RUN];
            pbns.iter_mut().zip(keys).for_each(|(pbn, key)| *pbn = Pbn(key.1));
            let pbns = &pbns[..keys.len()];
            lba_pbn::set_run(&mut self.store, MAP, start, pbns, &mut released);
        }
        self.let_go();
        Ok(())
    }
}

fn time(
    what: &str,
    chunks: u64,
    keys: &[(Fingerprint, u64)],
    mut group: impl FnMut(&[(Fingerprint, u64)]) -> Outcome,
) -> Result<f64, PageError> {
    let start_ns = core_ns();
    for keys in keys.chunks(GROUP) {
        group(keys)?;
    }
    let ns = (core_ns() - start_ns) as f64 / chunks as f64;
    println!("{what:<44} {ns:8.1} ns");
    Ok(ns)
}

/// Time that this thread has run, from the first field of the kernel's schedule statistics.
fn core_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|field| field.parse().ok()).unwrap_or(0)
}

fn main() -> Outcome {
    let chunks: u64 =
        std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let young: usize =
        std::env::args().nth(2).and_then(|text| text.parse().ok()).unwrap_or(100_000);
    let mut tables = Tables::new(HashOptions::with_young(young, FilterBlocks::default()));
    let keys: Vec<_> = (1..=chunks).map(|number| (fingerprint(number), number)).collect();
    let strange: Vec<_> = keys.iter().map(|&(_, n)| (fingerprint(n + chunks), n)).collect();
    let mut shuffled = keys.clone();
    shuffled.sort_unstable_by_key(|(_, number)| mix(*number));
    let leaves = chunks.div_ceil(map_page::SLOTS as u64);

    let insert = time("enter a new chunk, merges included", chunks, &keys, |g| tables.insert(g))?;
    let hit = time("look a stored fingerprint up", chunks, &shuffled, |g| tables.look_up(g))?;
    let miss = time("look an unknown fingerprint up", chunks, &strange, |g| tables.look_up(g))?;
    let retain = time("retain a chunk, any", chunks, &shuffled, |g| tables.retain(g))?;
    let again = time("retain a chunk, in order", chunks, &keys, |g| tables.retain(g))?;
    time("map an LBA, making the leaves", chunks, &keys, |g| tables.map(g, RUN, leaves))?;
    let map = time("map an LBA, runs of 16", chunks, &shuffled, |g| tables.map(g, RUN, leaves))?;
    time("map an LBA, each anywhere", chunks, &shuffled, |g| tables.map(g, 1, leaves))?;

    println!();
    let sum = |what: &str, ns: f64| println!("{what:<44} {ns:8.1} ns of {BUDGET_NS}");
    sum("a duplicate, its like stored together", hit + again + map);
    sum("a duplicate, its like stored anywhere", hit + retain + map);
    sum("a new chunk", miss + insert + again + map);
    let resident_mib = tables.store.resident_bytes() >> 20;
    println!("{} pages, {resident_mib} MiB", tables.store.resident_pages());
    Ok(())
}
