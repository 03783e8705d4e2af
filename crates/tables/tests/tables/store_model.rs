//! The page store against a plain map: whatever happens in whatever order, leaves read as they were
//! written, both durable roots stay readable in full, and no block that they name is written.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use format::map_page;
use format::units::{Pbn, TreeId, VolumeId};
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::{collection, proptest};
use tables::{NextLeaf, PageStore, PageStoreOptions, PinSet, Pointers};

use crate::device::{Checkpoint, Device, Leaves, Trees, freeze};

type Model = BTreeMap<(TreeId, u64), u64>;

const MAPS: [TreeId; 3] =
    [TreeId::volume(VolumeId(1)), TreeId::volume(VolumeId(2)), TreeId::volume(VolumeId(3))];

const TREES: [TreeId; 5] = [TreeId::CATALOG, TreeId::HASH_PBN, MAPS[0], MAPS[1], MAPS[2]];

#[derive(Clone, Debug)]
enum Op {
    Put(TreeId, u64, u64),
    Remove(TreeId, u64),
    Get(TreeId, u64),
    Next(TreeId, u64),
    /// The second becomes a copy of the first.
    Copy(TreeId, TreeId),
    /// Leaves from one up to another go.
    Cut(TreeId, u64, u64),
    /// The second becomes a copy of the first, which loses leaves at once.
    CutOff(TreeId, TreeId, u64, u64),
    Difference(TreeId, TreeId, u64),
    Clean(usize),
    CleanTree(TreeId),
    Shrink,
    Land(usize),
    Freeze,
    Durable,
    /// What is in flight lands or not, by the bits; the root being made exists or not.
    Crash(u64, bool),
    /// The newest root slot is lost as well.
    OlderRoot,
}

fn tree() -> impl Strategy<Value = TreeId> {
    (0..TREES.len()).prop_map(|tree| TREES[tree])
}

fn map() -> impl Strategy<Value = TreeId> {
    (0..MAPS.len()).prop_map(|map| MAPS[map])
}

/// Indices that make trees grow by one, two and more levels, and neighbours of each.
fn index() -> impl Strategy<Value = u64> {
    let bases = [0, 3, 506, 508, 508 * 508 - 2, 508 * 508, 508 * 508 * 508 + 5, 1 << 40];
    (0..bases.len(), 0_u64..3).prop_map(move |(base, offset)| bases[base] + offset)
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (tree(), index(), 1..1_u64 << 40).prop_map(|(t, i, v)| Op::Put(t, i, v)),
        6 => (tree(), index()).prop_map(|(t, i)| Op::Remove(t, i)),
        4 => (tree(), index()).prop_map(|(t, i)| Op::Get(t, i)),
        3 => (tree(), index()).prop_map(|(t, i)| Op::Next(t, i)),
        3 => (map(), map()).prop_map(|(from, to)| Op::Copy(from, to)),
        3 => (map(), index(), index()).prop_map(|(t, i, j)| Op::Cut(t, i.min(j), i.max(j))),
        2 => (map(), map(), index(), index())
            .prop_map(|(f, t, i, j)| Op::CutOff(f, t, i.min(j), i.max(j))),
        2 => (map(), map(), index()).prop_map(|(s, t, i)| Op::Difference(s, t, i)),
        4 => (1_usize..12).prop_map(Op::Clean),
        2 => map().prop_map(Op::CleanTree),
        3 => Just(Op::Shrink),
        5 => any::<usize>().prop_map(Op::Land),
        3 => Just(Op::Freeze),
        3 => Just(Op::Durable),
        1 => (any::<u64>(), any::<bool>()).prop_map(|(bits, rooted)| Op::Crash(bits, rooted)),
        1 => Just(Op::OlderRoot),
    ]
}

struct Rig {
    store: PageStore,
    device: Device<Model>,
    model: Model,
    options: PageStoreOptions,
    generation: u64,
    /// Frozen, its root not written yet.
    pending: Option<Checkpoint<Model>>,
}

fn matches(leaves: &Leaves, model: &Model) {
    let found: Model = leaves
        .iter()
        .map(|(&place, page)| (place, map_page::get(page, map_page::SLOTS - 1).0))
        .collect();
    assert_eq!(&found, model);
}

impl Rig {
    fn new(cache_pages: usize) -> Self {
        let options = PageStoreOptions { cache_pages, tables_blocks: 1600 };
        let mut device = Device::new(Model::new());
        let store = device.open(options);
        Self { store, device, model: Model::new(), options, generation: 1, pending: None }
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Put(tree, index, value) => self.put(tree, index, value),
            Op::Remove(tree, index) => {
                let pins = self.want(tree, index);
                self.store.remove_page(tree, index);
                self.store.release_pins(pins);
                self.model.remove(&(tree, index));
            }
            Op::Get(tree, index) => self.check(tree, index),
            Op::Next(tree, from) => self.check_next(tree, from),
            Op::Copy(from, to) if from != to => {
                self.cut(to, 0..u64::MAX);
                self.copy(from, to);
            }
            Op::Cut(tree, from, to) => self.cut(tree, from..to),
            Op::CutOff(from, to, first, end) if from != to => {
                self.cut(to, 0..u64::MAX);
                let pins = self.want_cut(from, &(first..end), true);
                self.copy(from, to);
                self.cut_wanted(from, first..end, pins);
            }
            Op::Copy(..) | Op::CutOff(..) => {}
            Op::Difference(one, other, from) => self.check_difference(one, other, from),
            Op::Clean(pages) => {
                let writes = self.store.clean_batch(pages);
                self.device.submit(writes);
            }
            Op::CleanTree(tree) => {
                let writes = self.store.clean_tree(tree);
                self.device.submit(writes);
            }
            Op::Shrink => self.store.shrink(),
            Op::Land(at) => self.land(at),
            Op::Freeze => self.freeze(),
            Op::Durable => self.durable(),
            Op::Crash(bits, rooted) => self.crash(bits, rooted),
            Op::OlderRoot => {
                if self.device.roots.len() == 2 {
                    self.device.lose_root();
                    self.reopen();
                }
            }
        }
    }

    fn want(&mut self, tree: TreeId, index: u64) -> tables::PinSet {
        let want = |store: &mut PageStore, pins: &mut _, reads: &mut _| {
            store.want(pins, tree, index, reads)
        };
        self.device.wait_for(&mut self.store, want)
    }

    fn put(&mut self, tree: TreeId, index: u64, value: u64) {
        let pins = self.want(tree, index);
        map_page::set(self.store.page_mut(tree, index), map_page::SLOTS - 1, Pbn(value));
        self.store.release_pins(pins);
        self.model.insert((tree, index), value);
    }

    fn check(&mut self, tree: TreeId, index: u64) {
        let pins = self.want(tree, index);
        let page = self.store.page(tree, index);
        let found = page.map(|page| map_page::get(page, map_page::SLOTS - 1).0);
        assert_eq!(found, self.model.get(&(tree, index)).copied());
        self.store.release_pins(pins);
    }

    fn check_next(&mut self, tree: TreeId, from: u64) {
        let mut reads = Vec::new();
        let found = loop {
            match self.store.next_leaf(tree, from, &mut reads).unwrap() {
                NextLeaf::Missing => self.device.serve(&mut self.store, &mut reads).unwrap(),
                NextLeaf::End => break None,
                NextLeaf::Found(index) => break Some(index),
            }
        };
        let mut behind = self.model.range((tree, from)..=(tree, u64::MAX));
        assert_eq!(found, behind.next().map(|(&(_, index), _)| index));
    }

    fn cut(&mut self, tree: TreeId, leaves: Range<u64>) {
        let pins = self.want_cut(tree, &leaves, false);
        self.cut_wanted(tree, leaves, pins);
    }

    fn want_cut(&mut self, tree: TreeId, leaves: &Range<u64>, edges_only: bool) -> PinSet {
        let want = |store: &mut PageStore, pins: &mut _, reads: &mut _| {
            store.want_cut(pins, tree, leaves, edges_only, reads)
        };
        self.device.wait_for(&mut self.store, want)
    }

    fn cut_wanted(&mut self, tree: TreeId, leaves: Range<u64>, pins: PinSet) {
        self.store.cut(tree, &leaves);
        self.store.release_pins(pins);
        self.model.retain(|&(of, index), _| of != tree || !leaves.contains(&index));
    }

    fn copy(&mut self, from: TreeId, to: TreeId) {
        assert_eq!(self.store.tree_root(to), Default::default());
        self.store.copy_tree(from, to);
        let copied = self.model.range((from, 0)..=(from, u64::MAX));
        let copied: Vec<_> = copied.map(|(&(_, index), &value)| ((to, index), value)).collect();
        self.model.extend(copied);
    }

    /// The next leaf that is not known to be the same is not behind the next that differs.
    fn check_difference(&mut self, one: TreeId, other: TreeId, from: u64) {
        let mut reads = Vec::new();
        let skip = |pointers: &Pointers<'_>, _: &Range<u64>| pointers.same(0, 1);
        let found = loop {
            match self.store.next_difference(&[one, other], from, skip, &mut reads).unwrap() {
                NextLeaf::Missing => self.device.serve(&mut self.store, &mut reads).unwrap(),
                NextLeaf::End => break None,
                NextLeaf::Found(index) => break Some(index),
            }
        };
        let holds = |tree, index| self.model.get(&(tree, index));
        let both = [one, other].map(|tree| self.model.range((tree, from)..=(tree, u64::MAX)));
        let indexes: BTreeSet<u64> = both.into_iter().flatten().map(|(&(_, i), _)| i).collect();
        let differs = indexes.into_iter().find(|&i| holds(one, i) != holds(other, i));
        if let Some(differs) = differs {
            assert!(found.is_some_and(|found| (from..=differs).contains(&found)));
        }
        if one == other {
            let dirty_only = found.is_none() || self.store.dirty_pages() > 0;
            assert!(dirty_only, "a tree differs from itself");
        }
    }

    fn land(&mut self, at: usize) {
        if !self.device.in_flight.is_empty() {
            let block = self.device.land(at % self.device.in_flight.len());
            self.store.write_done(&[block]);
        }
    }

    fn freeze(&mut self) {
        if self.pending.is_some() {
            return;
        }
        let Ok(trees) = freeze(&mut self.store, &mut self.device, self.generation, &TREES) else {
            return;
        };
        self.generation += 1;
        self.pending = Some(Checkpoint { trees, model: self.model.clone() });
    }

    fn durable(&mut self) {
        if let Some(checkpoint) = self.pending.take() {
            self.device.checkpoint(&mut self.store, checkpoint, matches);
        }
    }

    fn crash(&mut self, bits: u64, rooted: bool) {
        if rooted && let Some(checkpoint) = self.pending.take() {
            self.device.land_all(&mut self.store);
            self.device.add_root(checkpoint);
        }
        for number in 0..self.device.in_flight.len() {
            if bits >> (number % 64) & 1 == 1 {
                self.device.land(0);
            } else {
                self.device.in_flight.swap_remove(0);
            }
        }
        self.reopen();
    }

    fn reopen(&mut self) {
        self.device.in_flight.clear();
        self.pending = None;
        self.device.verify(matches);
        self.store = self.device.open(self.options);
        self.model = self.device.roots.last().unwrap().model.clone();
        let root = self.device.roots.last().unwrap();
        let missing = TREES.iter().filter(|&tree| !root.trees.contains_key(tree));
        missing.for_each(|&tree| self.store.add_tree(tree, Default::default()));
    }

    fn empty(&mut self) {
        for (tree, index) in self.model.keys().copied().collect::<Vec<_>>() {
            self.apply(&Op::Remove(tree, index));
        }
        assert!(TREES.iter().all(|&tree| self.store.tree_root(tree) == Default::default()));
        assert_eq!(self.store.shared_blocks(), 0);
        assert_eq!((self.store.resident_pages(), self.store.dirty_pages()), (0, 0));
        assert!(TREES.iter().all(|&tree| self.store.drop_tree(tree)));
    }

    /// After two checkpoints without a change, only what is live takes blocks.
    fn check_no_block_is_lost(&mut self) {
        self.durable();
        for _ in 0..3 {
            self.freeze();
            self.durable();
        }
        let trees: Trees = self.device.roots.last().unwrap().trees.clone();
        let named = self.device.walk(&trees).1.len() as u64;
        let store = &self.store;
        assert_eq!((store.used_blocks(), store.quarantined_blocks()), (named, 0));
        assert_eq!(store.free_blocks(), self.options.tables_blocks - 1 - named);
    }
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(192))]

    #[test]
    fn the_store_holds_what_the_model_holds(
        cache_pages in 1_usize..40,
        ops in collection::vec(op(), 1..160),
    ) {
        let mut rig = Rig::new(cache_pages);
        ops.iter().for_each(|op| rig.apply(op));
        for (tree, index) in rig.model.keys().copied().collect::<Vec<_>>() {
            rig.check(tree, index);
        }
        rig.check_no_block_is_lost();
        rig.empty();
    }
}

/// What is on its way to the disk for a version is read by another one from there, also when the
/// first has left it.
#[test]
fn a_copy_reads_what_is_still_being_written() {
    let mut rig = Rig::new(1);
    let [one, other, _] = MAPS;
    rig.apply(&Op::Put(one, 506, 1));
    rig.apply(&Op::Freeze);
    rig.apply(&Op::CutOff(one, other, 0, 508));
    rig.check(other, 506);
}

/// What was cleaned is shared by a copy, inner pages as well; where there are no blocks, what finds
/// none is copied as it was.
#[test]
fn a_copy_of_a_cleaned_tree_shares_all_of_it() {
    let [one, other, third] = MAPS;
    let mut rig = Rig::new(40);
    [3, 506, 508 * 508].iter().for_each(|&leaf| rig.apply(&Op::Put(one, leaf, 1)));
    rig.apply(&Op::Put(third, 3, 1));
    let others = rig.store.dirty_pages() - 8;
    rig.apply(&Op::CleanTree(one));
    rig.apply(&Op::Copy(one, other));
    assert_eq!((rig.store.dirty_pages(), rig.store.shared_blocks()), (others, 1));
    rig.check(other, 506);
    rig.check_no_block_is_lost();

    let mut rig = Rig::new(40);
    rig.store = rig.device.open(PageStoreOptions { cache_pages: 40, tables_blocks: 5 });
    [3, 506, 508 * 508].iter().for_each(|&leaf| rig.apply(&Op::Put(one, leaf, 1)));
    rig.apply(&Op::CleanTree(one));
    assert_eq!((rig.store.free_blocks(), rig.store.dirty_pages()), (0, 4));
    rig.apply(&Op::Copy(one, other));
    assert_eq!(rig.store.dirty_pages(), 8);
    rig.check(other, 506);
}

/// However many versions share a page when the store is opened: it stays until the last has left.
#[test]
fn a_page_that_three_versions_share_outlives_two_of_them_after_an_opening() {
    let mut rig = Rig::new(40);
    let [first, second, third] = MAPS;
    let all = [
        Op::Put(first, 3, 7),
        Op::Freeze,
        Op::Durable,
        Op::Copy(first, second),
        Op::Copy(first, third),
        Op::Freeze,
        Op::Durable,
        Op::Crash(0, false),
        Op::Cut(second, 0, u64::MAX),
        Op::Cut(third, 0, u64::MAX),
    ];
    all.iter().for_each(|op| rig.apply(op));
    rig.check(first, 3);
    rig.check_no_block_is_lost();
}

/// The same calls give the same blocks and the same reads.
#[test]
fn the_store_is_deterministic() {
    let run = || {
        let mut rig = Rig::new(6);
        let mut state = 1_u64;
        for step in 0..3000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (tree, index) = (TREES[(state >> 33) as usize % 5], (state >> 40) % 40 * 97);
            rig.apply(&match step % 16 {
                0..8 => Op::Put(tree, index, step + 1),
                8 => Op::Remove(tree, index),
                9 | 10 => Op::Clean(5),
                11 | 12 => Op::Land(state as usize >> 1),
                13 => Op::Shrink,
                14 => Op::Freeze,
                _ => Op::Durable,
            });
        }
        (rig.device.blocks, rig.device.pages_written, rig.device.pages_read)
    };
    assert!(run() == run());
}
