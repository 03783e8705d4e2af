//! The Hash-PBN table loses nothing and invents nothing: through sealing, merging round and round,
//! checkpoints and openings, over a cache of a few pages.

use std::collections::BTreeMap;

use format::detection::FilterBlocks;
use format::root::HashShape;
use format::units::{Fingerprint, Pbn, TreeId};
use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::{collection, proptest};
use tables::{HashOptions, HashPbn, PageStore, PageStoreOptions, PinSet, Seen};

use crate::device::{Checkpoint, Device, Trees, freeze, load_hash, work_on_hash};

const SEED: [u8; 16] = *b"some store's own";
const TREES: [TreeId; 3] = [TreeId::HASH_PBN, TreeId::YOUNG, TreeId::HASH_FILTER];

fn fingerprint(number: u64) -> Fingerprint {
    let mut bytes = [0; 32];
    let mut state = number;
    for part in bytes.chunks_exact_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        part.copy_from_slice(&(mixed ^ mixed >> 27).to_le_bytes());
    }
    Fingerprint(bytes)
}

/// What the table holds, as a map; and its shape at a checkpoint.
#[derive(Clone, Debug, Default)]
struct Model {
    chunks: BTreeMap<u64, u64>,
    shape: HashShape,
    next: u64,
}

struct Table {
    device: Device<Model>,
    store: PageStore,
    hash: HashPbn,
    model: Model,
    options: HashOptions,
    generation: u64,
}

const CACHE: PageStoreOptions = PageStoreOptions { cache_pages: 8, tables_blocks: 1 << 16 };

impl Table {
    fn new(options: HashOptions) -> Self {
        let mut device = Device::new(Model::default());
        let store = device.open(CACHE);
        let hash = HashPbn::new(HashShape::default(), SEED, options);
        Self { device, store, hash, model: Model::default(), options, generation: 1 }
    }

    fn want_inserts(&mut self, count: u64) {
        let hash = &self.hash;
        let pins = self.device.wait_for(&mut self.store, |store, pins, reads| {
            hash.want_insert(store, pins, count, reads)
        });
        self.store.release_pins(pins);
    }

    fn insert(&mut self, count: u64) {
        self.want_inserts(count);
        for number in (self.model.next..).take(count as usize) {
            self.hash.insert(&mut self.store, &fingerprint(number), Pbn(number + 1));
            self.model.chunks.insert(number, number + 1);
        }
        self.model.next += count;
    }

    /// Takes back exactly these chunks.
    fn forget(&mut self, numbers: std::ops::Range<u64>) {
        self.want_inserts(numbers.end - numbers.start);
        for number in numbers {
            if let Some(pbn) = self.model.chunks.remove(&number) {
                self.hash.take_back(&mut self.store, &fingerprint(number), Pbn(pbn));
            }
        }
    }

    /// Takes chunks back, and stores some of them again, under other PBNs or their own.
    fn take_back(&mut self, from: u64, count: usize) {
        let from = from % self.model.next.max(1);
        let taken: Vec<(u64, u64)> = (self.model.chunks.range(from..).take(count))
            .map(|(&number, &pbn)| (number, pbn))
            .collect();
        self.want_inserts(2 * taken.len() as u64);
        for (number, pbn) in taken {
            let key = fingerprint(number);
            // Another chunk under the fingerprint, as after a repair: the one that is known stays.
            self.hash.take_back(&mut self.store, &key, Pbn(pbn + (1 << 40)));
            if number % 5 != 0 {
                self.hash.take_back(&mut self.store, &key, Pbn(pbn));
                self.model.chunks.remove(&number);
            }
            if number % 7 == 0 && number % 5 != 0 {
                let again = pbn + number % 2 * (1 << 30);
                self.hash.insert(&mut self.store, &key, Pbn(again));
                self.model.chunks.insert(number, again);
            }
        }
    }

    fn work(&mut self, steps: usize) {
        work_on_hash(&mut self.hash, &mut self.store, &mut self.device, steps);
    }

    fn clean(&mut self) {
        let writes = self.store.clean_batch(20);
        self.device.submit(writes);
        self.device.land_all(&mut self.store);
        self.store.shrink();
    }

    fn checkpoint(&mut self) {
        let hash = &self.hash;
        let pins = self
            .device
            .wait_for(&mut self.store, |store, pins, reads| hash.want_store(store, pins, reads));
        self.hash.store(&mut self.store);
        let writes = self.store.freeze_trees(self.generation).unwrap();
        self.device.submit(writes);
        let trees: Trees =
            freeze(&mut self.store, &mut self.device, self.generation, &TREES).unwrap();
        self.generation += 1;
        self.store.release_pins(pins);
        self.model.shape = self.hash.shape();
        let checkpoint = Checkpoint { trees, model: self.model.clone() };
        self.device.checkpoint(&mut self.store, checkpoint, |_, _| {});
    }

    fn reopen(&mut self) {
        self.device.in_flight.clear();
        self.model = self.device.roots.last().unwrap().model.clone();
        self.store = self.device.open(CACHE);
        self.hash = HashPbn::new(self.model.shape, SEED, self.options);
        load_hash(&mut self.hash, &mut self.store, &mut self.device);
    }

    fn look_up(&mut self, number: u64) -> Option<u64> {
        let (hash, key) = (&self.hash, fingerprint(number));
        let pins = self.device.wait_for(&mut self.store, |store, pins, reads| {
            hash.want_lookup(store, pins, &key, reads)
        });
        let found = hash.lookup(&self.store, &key).map(|pbn| pbn.0);
        let mut seen = Vec::new();
        hash.look_up_group(&self.store, [&key].into_iter(), &mut seen, |_, _| ());
        match found {
            Some(pbn) => assert_eq!(seen, [Seen::Stored(Pbn(pbn))]),
            None => assert!(matches!(seen[..], [Seen::Absent | Seen::Denied]), "{seen:?}"),
        }
        self.store.release_pins(pins);
        found
    }

    fn check(&mut self) {
        for number in 0..self.model.next + 100 {
            let expected = self.model.chunks.get(&number).copied();
            assert_eq!(self.look_up(number), expected, "chunk {number}");
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    Insert(u64),
    TakeBack(u64, usize),
    Work(usize),
    MergeFor(Option<u64>),
    Clean,
    Checkpoint,
    Reopen(bool),
    Look(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (1..700_u64).prop_map(Op::Insert),
        4 => (any::<u64>(), 1..400_usize).prop_map(|(from, count)| Op::TakeBack(from, count)),
        8 => (1..12_usize).prop_map(Op::Work),
        2 => proptest::option::of(0..20_u64).prop_map(Op::MergeFor),
        3 => proptest::strategy::Just(Op::Clean),
        3 => proptest::strategy::Just(Op::Checkpoint),
        1 => any::<bool>().prop_map(Op::Reopen),
        4 => any::<u64>().prop_map(Op::Look),
    ]
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(64))]

    #[test]
    fn the_table_holds_what_a_map_holds(
        young_max in 50..3000_usize,
        segment_pages in 1..5_u64,
        filter in (3..27_u32).prop_map(|bits| FilterBlocks::nearest_to(bits).unwrap()),
        ops in collection::vec(op(), 1..150),
    ) {
        let mut table = Table::new(HashOptions { young_max, segment_pages, filter });
        for op in ops {
            match op {
                Op::Insert(count) => table.insert(count),
                Op::TakeBack(from, count) => table.take_back(from, count),
                Op::Work(steps) => table.work(steps),
                Op::MergeFor(pages) => table.hash.merge_while_it_gives(pages),
                Op::Clean => table.clean(),
                Op::Checkpoint => table.checkpoint(),
                Op::Reopen(older) => {
                    if older && table.device.roots.len() == 2 {
                        table.device.lose_root();
                    }
                    table.reopen();
                }
                Op::Look(number) => {
                    let number = number % (table.model.next + 10);
                    let expected = table.model.chunks.get(&number).copied();
                    assert_eq!(table.look_up(number), expected);
                }
            }
        }
        table.check();
        table.checkpoint();
        table.reopen();
        table.check();
    }
}

/// Many rounds over a table that is far larger than its cache and its young: what a new entry costs
/// is far less than a page.
#[test]
fn a_table_far_larger_than_memory_writes_far_less_than_a_page_for_an_entry() {
    let mut table = Table::new(HashOptions {
        young_max: 20_000,
        segment_pages: 8,
        filter: FilterBlocks::default(),
    });
    for round in 0..800 {
        table.insert(250);
        while table.hash.work_is_due() {
            table.work(4);
        }
        if table.store.over_budget() {
            table.clean();
        }
        if round % 40 == 0 {
            table.checkpoint();
        }
    }
    let shape = table.hash.shape();
    let written = table.device.pages_written as f64 / 200_000.0;
    assert!(table.hash.young_entries() <= 20_000 && shape.entries > 100_000, "{shape:?}");
    assert!(written < 0.15, "{written} pages for an entry");
    let per_entry = table.hash.filter_bytes() as f64 / shape.entries as f64;
    assert!(per_entry < 2.0, "{per_entry} bytes of filters for an entry");
    let before = table.device.pages_read;
    let (mut absent, mut reads) = (0, Vec::new());
    for number in 1 << 40..(1 << 40) + 10_000 {
        let mut pins = PinSet::default();
        let key = fingerprint(number);
        absent += u64::from(
            table.hash.want_lookup(&mut table.store, &mut pins, &key, &mut reads).unwrap(),
        );
        table.device.serve(&mut table.store, &mut reads).unwrap();
        table.store.release_pins(pins);
        table.store.shrink();
    }
    let reads = table.device.pages_read - before;
    assert!(absent > 9_700 && reads < 400, "{absent} of 10,000 are absent at sight, {reads} reads");
    table.check();
}

/// A filter's leaf that is lost costs reads, and no answer.
#[test]
fn a_lost_filter_says_maybe() {
    let mut table = Table::new(HashOptions {
        young_max: 1000,
        segment_pages: 2,
        filter: FilterBlocks::default(),
    });
    for _ in 0..40 {
        table.insert(300);
        table.work(1000);
    }
    table.checkpoint();
    let HashShape { turn, merged, after, .. } = table.hash.shape();
    let leaves = table.hash.filter_leaves();
    assert!(merged % 42 > 9 && merged < after && leaves.len() > 3, "{merged} of {after}");
    table.store = table.device.open(CACHE);
    for leaf in [leaves[0], leaves[leaves.len() - 1]] {
        table.hash.load_filter(&table.store, leaf);
    }
    table.check();
    // Buckets that are made now share the last leaf with some whose filters are lost.
    while table.hash.shape().turn == turn {
        table.insert(300);
        table.work(3);
        table.check();
    }
    table.checkpoint();
    table.reopen();
    table.check();
}

fn overwritten(young_max: usize) -> HashOptions {
    HashOptions { young_max, segment_pages: 4, filter: FilterBlocks::default() }
}

/// Chunks that come and chunks that go in the same number take young pages, and nothing more: those
/// come back when blocks are short, as many as was said.
#[test]
fn what_comes_and_goes_gives_its_pages_back() {
    let mut table = Table::new(overwritten(100));
    for part in 0..200 {
        table.insert(100);
        table.work(1000);
        if part % 10 == 0 {
            table.checkpoint();
        }
    }
    table.options = overwritten(30_000);
    table.checkpoint();
    table.reopen();
    let used = table.store.used_blocks();
    for part in 0..100 {
        table.insert(100);
        table.forget(part * 100..(part + 1) * 100);
        table.work(1000);
        if part % 10 == 0 {
            table.checkpoint();
        }
    }
    table.checkpoint();
    table.reopen();
    let said = table.hash.pages_to_come_back(0);
    assert!(!table.hash.work_is_due() && table.hash.pages_owed() == 0);
    assert!((200..260).contains(&said), "{said} pages of 20,000 events come back");
    table.hash.merge_while_it_gives(Some(1));
    while table.hash.work_is_due() {
        table.work(1);
        table.checkpoint();
    }
    let left = table.store.used_blocks();
    assert!(left < used + 20, "{left} pages where {used} were enough before");
    table.check();
    table.checkpoint();
    table.reopen();
    table.check();
}

/// A table of which all is taken back has room in its buckets for what is not sealed yet.
#[test]
fn all_may_be_taken_back() {
    let mut table = Table::new(overwritten(900));
    for _ in 0..10 {
        table.insert(200);
        table.work(1000);
    }
    for part in 0..20 {
        table.forget(part * 100..(part + 1) * 100);
        table.hash.merge_while_it_gives(Some(1));
        table.work(part as usize % 3);
    }
    table.work(1000);
    table.check();
    table.checkpoint();
    table.reopen();
    table.check();
}

/// The same where much memory makes segments long, so that more is not sealed than the few buckets
/// of what is left have room for: deleted before the round begins, or while it goes on.
#[test]
fn all_may_be_taken_back_that_long_segments_have_not_sealed() {
    for goes_before_the_round in [true, false] {
        let options = HashOptions { segment_pages: 160, ..overwritten(1_000_000) };
        let mut table = Table::new(options);
        for _ in 0..660 {
            table.insert(100);
            table.work(1000);
        }
        let early = if goes_before_the_round { 660 } else { 560 };
        for part in 0..early {
            table.forget(part * 100..(part + 1) * 100);
            table.work(1000);
        }
        table.hash.merge_while_it_gives(Some(1));
        table.work(2);
        for part in early..660 {
            table.forget(part * 100..(part + 1) * 100);
        }
        table.work(1000);
        table.check();
        table.checkpoint();
        table.reopen();
        table.check();
    }
}
