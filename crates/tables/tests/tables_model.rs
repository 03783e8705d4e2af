//! The tables against plain maps, over a cache of a few pages, with cleaning, checkpoints and
//! reopening in between: every change the engine makes, by the calls the engine uses.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod device;

use std::collections::{BTreeMap, VecDeque};

use device::{Checkpoint, Device, Trees, freeze};
use format::catalog::{CatalogEntry, VolumeState};
use format::container_page::{ContainerEntry, ContainerState};
use format::map_page;
use format::pba_page::PbaEntry;
use format::root::HashShape;
use format::units::{ContainerId, Fingerprint, Lba, Pba, Pbn, TreeId, VolumeId};
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::{collection, proptest};
use tables::{
    CatalogTable, ContainerTable, FreePbns, HashPbn, NextLeaf, PageStore, PageStoreOptions, PinSet,
    lba_pbn, pbn_pba,
};

const OPTIONS: PageStoreOptions =
    PageStoreOptions { cache_pages: 8, dirty_pages_max: 50, tables_blocks: 3000 };
const CONTAINERS: u64 = 600;
const SEED: [u8; 16] = [9; 16];

/// What the tables hold, as plain maps; and what a root holds beside the pages.
#[derive(Clone, Debug, Default)]
struct Model {
    map: BTreeMap<(VolumeId, u64), Pbn>,
    chunks: BTreeMap<u64, (u64, PbaEntry)>,
    hash: BTreeMap<u64, u64>,
    free: VecDeque<u64>,
    containers: BTreeMap<u32, ContainerEntry>,
    volumes: BTreeMap<VolumeId, String>,
    next_pbn: u64,
    next_volume: u32,
    shape: HashShape,
    ends: (u64, u64),
    slots: u64,
}

#[derive(Clone, Debug)]
enum Op {
    /// Stores chunks of new content, as one group.
    Store(u64),
    /// Maps a run in a volume to stored chunks.
    Map(u32, u64, Vec<Option<u64>>),
    Unmap(u32, u64, u64),
    /// Forgets dead chunks, the first from here on.
    Forget(u64, usize),
    CreateVolume,
    RenameVolume(u32),
    DropVolume(u32),
    Container(u32, u32),
    Clean,
    Land(usize),
    Checkpoint,
    Reopen(bool),
}

fn lba() -> impl Strategy<Value = u64> {
    prop_oneof![0..3000_u64, (0..4_u64).prop_map(|n| n * 677 * 508 + 675), Just(1 << 50)]
}

fn op() -> impl Strategy<Value = Op> {
    let chunk = proptest::option::weighted(0.8, any::<u64>());
    prop_oneof![
        8 => (1..200_u64).prop_map(Op::Store),
        8 => (any::<u32>(), lba(), collection::vec(chunk, 1..900))
            .prop_map(|(volume, first, chunks)| Op::Map(volume, first, chunks)),
        4 => (any::<u32>(), lba(), 1..3000_u64).prop_map(|(v, l, n)| Op::Unmap(v, l, n)),
        4 => (any::<u64>(), 1_usize..150).prop_map(|(from, count)| Op::Forget(from, count)),
        3 => Just(Op::CreateVolume),
        1 => any::<u32>().prop_map(Op::RenameVolume),
        1 => any::<u32>().prop_map(Op::DropVolume),
        3 => (0..CONTAINERS as u32, 1..1_u32 << 22).prop_map(|(id, bytes)| Op::Container(id, bytes)),
        5 => Just(Op::Clean),
        5 => any::<usize>().prop_map(Op::Land),
        4 => Just(Op::Checkpoint),
        1 => any::<bool>().prop_map(Op::Reopen),
    ]
}

fn fingerprint(number: u64) -> Fingerprint {
    let mut bytes = [0; 32];
    for (part, word) in bytes.chunks_exact_mut(8).zip(1_u64..) {
        let mixed = (number + word * 77).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        part.copy_from_slice(&(mixed ^ mixed >> 29).to_le_bytes());
    }
    Fingerprint(bytes)
}

fn pba(number: u64) -> Pba {
    let container = ContainerId((number % CONTAINERS) as u32);
    Pba { container, offset_bytes: (number % 4096) as u32 * 512, length_bytes: 100 }
}

struct Rig {
    device: Device<Model>,
    store: PageStore,
    hash: HashPbn,
    free: FreePbns,
    containers: ContainerTable,
    catalog: CatalogTable,
    model: Model,
    next_content: u64,
    generation: u64,
}

impl Rig {
    fn new() -> Self {
        let model = Model { next_pbn: 1, next_volume: 1, ..Model::default() };
        let mut device = Device::new(model.clone());
        let mut rig = Self {
            store: device.open(OPTIONS),
            device,
            hash: HashPbn::new(model.shape, SEED),
            free: FreePbns::new(0, 0),
            containers: ContainerTable::new(CONTAINERS),
            catalog: CatalogTable::new(0),
            model,
            next_content: 1,
            generation: 1,
        };
        rig.reopen();
        rig
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Store(count) => self.store_chunks(*count),
            Op::Map(volume, first, chunks) => self.map(*volume, *first, chunks),
            Op::Unmap(volume, first, count) => {
                if let Some(volume) = self.volume(*volume) {
                    self.unmap(volume, *first, *count);
                }
            }
            Op::Forget(from, count) => self.forget(*from, *count),
            Op::CreateVolume => self.create_volume(),
            Op::RenameVolume(volume) => self.rename_volume(*volume),
            Op::DropVolume(volume) => self.drop_volume(*volume),
            Op::Container(id, bytes) => self.use_container(*id, *bytes),
            Op::Clean => {
                let writes = self.store.clean_batch(20);
                self.device.submit(writes);
            }
            Op::Land(at) => {
                if !self.device.in_flight.is_empty() {
                    let block = self.device.land(at % self.device.in_flight.len());
                    self.store.write_done(&[block]);
                }
            }
            Op::Checkpoint => self.checkpoint(),
            Op::Reopen(older) => {
                if *older && self.device.roots.len() == 2 {
                    self.device.lose_root();
                }
                self.reopen();
            }
        }
        assert_eq!(self.hash.shape().entries, self.model.hash.len() as u64);
    }

    fn volume(&self, number: u32) -> Option<VolumeId> {
        let ids: Vec<VolumeId> = self.model.volumes.keys().copied().collect();
        ids.get(number as usize % ids.len().max(1)).copied()
    }

    /// As a group is committed: everything is wanted first, then all of it is done.
    fn store_chunks(&mut self, count: u64) {
        let contents: Vec<u64> = (self.next_content..).take(count as usize).collect();
        self.next_content += count;
        let pops = count.min(self.free.len());
        let (hash, free, fresh) = (&self.hash, &self.free, self.model.next_pbn);
        let mut pins = self.device.wait_for(&mut self.store, |store, pins, reads| {
            let mut here = hash.want_insert(store, pins, count, reads)?;
            for &content in &contents {
                here &= hash.want_lookup(store, pins, &fingerprint(content), reads)?;
            }
            here &= free.want_pop(store, pins, pops, reads)?;
            Ok(here)
        });
        let peeked: Vec<Pbn> =
            (0..pops).map(|skip| free.peek(&self.store, skip).unwrap()).collect();
        let pbns: Vec<Pbn> =
            peeked.into_iter().chain((fresh..).map(Pbn)).take(contents.len()).collect();
        let more = self.device.wait_for(&mut self.store, |store, pins, reads| {
            pbns.iter()
                .try_fold(true, |here, &pbn| Ok(here & pbn_pba::want(store, pins, pbn, reads)?))
        });
        for (&content, &pbn) in contents.iter().zip(&pbns) {
            if pbn.0 < self.model.next_pbn {
                assert_eq!(self.free.pop(&mut self.store), Some(pbn));
                assert_eq!(self.model.free.pop_front(), Some(pbn.0));
            } else {
                self.model.next_pbn += 1;
            }
            assert_eq!(self.hash.lookup(&self.store, &fingerprint(content)), None);
            let entry = PbaEntry { pba: pba(content), references: 0 };
            pbn_pba::set(&mut self.store, pbn, entry);
            assert_eq!(self.hash.insert(&mut self.store, &fingerprint(content), pbn), None);
            assert_eq!(self.hash.lookup(&self.store, &fingerprint(content)), Some(pbn));
            self.model.chunks.insert(pbn.0, (content, entry));
            self.model.hash.insert(content, pbn.0);
        }
        self.store.release_pins(std::mem::take(&mut pins));
        self.store.release_pins(more);
    }

    fn map(&mut self, volume: u32, first: u64, chunks: &[Option<u64>]) {
        let stored: Vec<u64> = self.model.chunks.keys().copied().collect();
        let Some(volume) = self.volume(volume) else { return };
        let pick = |chunk: &Option<u64>| {
            chunk.and_then(|n| stored.get((n % stored.len().max(1) as u64) as usize))
        };
        let pbns: Vec<Pbn> =
            chunks.iter().map(|chunk| pick(chunk).map_or(Pbn::NONE, |&pbn| Pbn(pbn))).collect();
        let pins = self.want_run(volume, first, pbns.len() as u64, &pbns);
        for &pbn in pbns.iter().filter(|pbn| !pbn.is_none()) {
            let entry = &mut self.model.chunks.get_mut(&pbn.0).unwrap().1;
            let retained = pbn_pba::retain(&mut self.store, pbn);
            assert_eq!((retained.revived, retained.pba), (entry.references == 0, entry.pba));
            entry.references += 1;
        }
        let mut released = Vec::new();
        let tree = TreeId::volume(volume);
        lba_pbn::set_run(&mut self.store, tree, Lba(first), &pbns, &mut released);
        let mut expected = Vec::new();
        for (lba, &pbn) in (first..).zip(&pbns) {
            expected.extend(self.model.map.remove(&(volume, lba)));
            if !pbn.is_none() {
                self.model.map.insert((volume, lba), pbn);
            }
        }
        assert_eq!(released, expected);
        self.release(&released);
        self.store.release_pins(pins);
    }

    fn want_run(&mut self, volume: VolumeId, first: u64, count: u64, pbns: &[Pbn]) -> PinSet {
        let tree = TreeId::volume(volume);
        self.device.wait_for(&mut self.store, |store, pins, reads| {
            let mut here = true;
            for leaf in first / 677..=(first + count - 1) / 677 {
                here &= store.want(pins, tree, leaf, reads)?;
            }
            if !here {
                return Ok(false);
            }
            let old = (first..first + count).map(|lba| lba_pbn::get(store, tree, Lba(lba)));
            let old: Vec<Pbn> = old.collect();
            for &pbn in old.iter().chain(pbns).filter(|pbn| !pbn.is_none()) {
                here &= pbn_pba::want(store, pins, pbn, reads)?;
            }
            Ok(here)
        })
    }

    fn release(&mut self, released: &[Pbn]) {
        for &pbn in released {
            let entry = &mut self.model.chunks.get_mut(&pbn.0).unwrap().1;
            entry.references -= 1;
            let released = pbn_pba::release(&mut self.store, pbn);
            assert_eq!((released.died, released.pba), (entry.references == 0, entry.pba));
        }
    }

    /// As the engine unmaps: leaf by leaf, only those that exist.
    fn unmap(&mut self, volume: VolumeId, first: u64, count: u64) {
        let tree = TreeId::volume(volume);
        let end = first.saturating_add(count);
        let mut from = first / 677;
        loop {
            let mut reads = Vec::new();
            let leaf = match self.store.next_leaf(tree, from, &mut reads).unwrap() {
                NextLeaf::Missing => {
                    self.device.serve(&mut self.store, &mut reads).unwrap();
                    continue;
                }
                NextLeaf::Found(leaf) if leaf * 677 < end => leaf,
                NextLeaf::Found(_) | NextLeaf::End => break,
            };
            let (start, stop) = ((leaf * 677).max(first), (leaf * 677 + 677).min(end));
            let pins = self.want_run(volume, start, stop - start, &[]);
            let mut released = Vec::new();
            let run = (stop - start) as usize;
            lba_pbn::clear_run(&mut self.store, tree, Lba(start), run, &mut released);
            let mapped = self.model.map.range((volume, start)..(volume, stop));
            let expected: Vec<Pbn> = mapped.map(|(_, &pbn)| pbn).collect();
            assert_eq!(released, expected);
            self.release(&released);
            self.store.release_pins(pins);
            from = leaf + 1;
        }
        self.model.map.retain(|&(of, lba), _| of != volume || !(first..end).contains(&lba));
    }

    fn forget(&mut self, from: u64, count: usize) {
        let from = from % self.model.next_pbn;
        let is_dead = |(_, (_, entry)): &(&u64, &(u64, PbaEntry))| entry.references == 0;
        let dead: Vec<(u64, u64)> = (self.model.chunks.range(from..).filter(is_dead))
            .map(|(&pbn, &(content, _))| (pbn, content))
            .take(count)
            .collect();
        let (hash, free) = (&self.hash, &self.free);
        let pins = self.device.wait_for(&mut self.store, |store, pins, reads| {
            let mut here = free.want_push(store, pins, dead.len() as u64, reads)?;
            for &(pbn, content) in &dead {
                here &= hash.want_remove(store, pins, &fingerprint(content), reads)?;
                here &= pbn_pba::want(store, pins, Pbn(pbn), reads)?;
            }
            Ok(here)
        });
        for (pbn, content) in dead {
            let removed = self.hash.remove(&mut self.store, &fingerprint(content));
            assert_eq!(removed, Some(Pbn(pbn)));
            pbn_pba::clear(&mut self.store, Pbn(pbn));
            self.free.push(&mut self.store, Pbn(pbn));
            self.model.chunks.remove(&pbn);
            self.model.hash.remove(&content);
            self.model.free.push_back(pbn);
        }
        self.store.release_pins(pins);
    }

    fn create_volume(&mut self) {
        let id = VolumeId(self.model.next_volume);
        self.model.next_volume += 1;
        let name = format!("volume-{id}");
        self.catalog.insert(CatalogEntry {
            id,
            name: name.clone(),
            size_bytes: 1 << 40,
            mapped_chunks: 0,
            state: VolumeState::Live,
            read_only: false,
            root: Default::default(),
            created_generation: self.generation,
        });
        self.store.add_tree(TreeId::volume(id), Default::default());
        self.model.volumes.insert(id, name);
    }

    fn rename_volume(&mut self, volume: u32) {
        let Some(id) = self.volume(volume) else { return };
        let name = format!("other-{id}-{}", self.generation);
        self.catalog.rename(id, &name);
        assert_eq!(self.catalog.by_name(&name).map(|entry| entry.id), Some(id));
        assert!(
            self.catalog.by_name(&self.model.volumes[&id]).is_none()
                || self.model.volumes[&id] == name
        );
        self.model.volumes.insert(id, name);
    }

    fn drop_volume(&mut self, volume: u32) {
        let Some(id) = self.volume(volume) else { return };
        self.catalog.mark_deleting(id);
        assert!(self.catalog.by_name(&self.model.volumes[&id]).is_none());
        self.unmap(id, 0, u64::MAX);
        self.catalog.remove(id);
        assert!(self.store.drop_tree(TreeId::volume(id)), "the map is empty");
        self.model.volumes.remove(&id);
    }

    fn use_container(&mut self, id: u32, bytes: u32) {
        let entry = self.model.containers.entry(id).or_default();
        let container = ContainerId(id);
        match entry.state {
            ContainerState::Free => {
                self.containers.open(container, bytes);
                *entry = ContainerEntry { state: ContainerState::Open, sequence: bytes, ..*entry };
            }
            ContainerState::Open if bytes.is_multiple_of(2) => {
                self.containers.fill_to(container, bytes);
                self.containers.add_live(container, bytes / 2);
                entry.used_bytes = entry.used_bytes.max(bytes);
                entry.live_bytes += bytes / 2;
            }
            ContainerState::Open => {
                self.containers.seal(container, 4 << 20);
                entry.state = ContainerState::Sealed;
                entry.used_bytes = 4 << 20;
            }
            ContainerState::Sealed if entry.live_bytes > 0 => {
                self.containers.remove_live(container, entry.live_bytes);
                entry.live_bytes = 0;
            }
            ContainerState::Sealed => {
                self.containers.free(container);
                *entry = ContainerEntry::default();
            }
        }
        assert_eq!(self.containers.get(container), *entry);
    }

    fn trees(&self) -> Vec<TreeId> {
        let volumes = self.model.volumes.keys().map(|&id| TreeId::volume(id));
        (0..6).map(TreeId).chain(volumes).collect()
    }

    fn checkpoint(&mut self) {
        let (containers, catalog) = (&self.containers, &self.catalog);
        let pins = self.device.wait_for(&mut self.store, |store, pins, reads| {
            let here = containers.want_store(store, pins, reads)?;
            Ok(here & catalog.want_store(store, pins, reads)?)
        });
        self.containers.store(&mut self.store);
        let writes = self.store.freeze_trees(self.generation).unwrap();
        self.device.submit(writes);
        for id in self.catalog.ids() {
            self.catalog.set_root(id, self.store.tree_root(TreeId::volume(id)));
        }
        self.catalog.store(&mut self.store);
        let trees = self.trees();
        let trees: Trees =
            freeze(&mut self.store, &mut self.device, self.generation, &trees).unwrap();
        self.generation += 1;
        self.store.release_pins(pins);
        self.model.shape = self.hash.shape();
        self.model.ends = (self.free.head(), self.free.tail());
        self.model.slots = self.catalog.slots();
        let checkpoint = Checkpoint { trees, model: self.model.clone() };
        self.device.checkpoint(&mut self.store, checkpoint, |leaves, model| {
            let mapped = leaves
                .iter()
                .filter_map(|((tree, leaf), page)| Some((tree.volume_id()?, leaf, page)));
            let entries = mapped.flat_map(|(volume, leaf, page)| {
                (0..677).map(move |slot| {
                    ((volume, leaf * 677 + slot as u64), map_page::get(page, slot))
                })
            });
            let map: BTreeMap<_, _> = entries.filter(|(_, pbn)| !pbn.is_none()).collect();
            assert_eq!(map, model.map);
        });
    }

    fn reopen(&mut self) {
        self.device.in_flight.clear();
        self.model = self.device.roots.last().unwrap().model.clone();
        self.store = self.device.open(OPTIONS);
        self.hash = HashPbn::new(self.model.shape, SEED);
        self.free = FreePbns::new(self.model.ends.0, self.model.ends.1);
        self.containers = ContainerTable::new(CONTAINERS);
        self.catalog = CatalogTable::new(self.model.slots);
        let (containers, catalog) = (&self.containers, &self.catalog);
        let pins = self.device.wait_for(&mut self.store, |store, pins, reads| {
            let here = containers.want_load(store, pins, reads)?;
            Ok(here & catalog.want_load(store, pins, reads)?)
        });
        self.containers.load(&self.store).unwrap();
        self.catalog.load(&self.store).unwrap();
        self.store.release_pins(pins);
        let trees = &self.device.roots.last().unwrap().trees;
        for entry in self.catalog.iter() {
            assert_eq!(trees.get(&TreeId::volume(entry.id)), Some(&entry.root));
        }
        self.check_small_tables();
    }

    fn check_small_tables(&self) {
        let volumes: BTreeMap<VolumeId, String> =
            self.catalog.iter().map(|entry| (entry.id, entry.name.clone())).collect();
        assert_eq!(volumes, self.model.volumes);
        for (id, entry) in self.containers.iter() {
            let expected = self.model.containers.get(&id.0).copied().unwrap_or_default();
            assert_eq!(entry, expected);
        }
    }

    fn check_all(&mut self) {
        self.check_small_tables();
        assert_eq!(self.free.len(), self.model.free.len() as u64);
        for (&pbn, &(content, entry)) in &self.model.chunks {
            let (hash, key) = (&self.hash, fingerprint(content));
            let pins = self.device.wait_for(&mut self.store, |store, pins, reads| {
                let here = pbn_pba::want(store, pins, Pbn(pbn), reads)?;
                Ok(here & hash.want_lookup(store, pins, &key, reads)?)
            });
            assert_eq!(pbn_pba::get(&self.store, Pbn(pbn)), Some(entry));
            assert_eq!(self.hash.lookup(&self.store, &key), Some(Pbn(pbn)));
            self.store.release_pins(pins);
        }
        for (&(volume, lba), &pbn) in &self.model.map {
            let tree = TreeId::volume(volume);
            let pins = self.device.wait_for(&mut self.store, |store, pins, reads| {
                store.want(pins, tree, lba_pbn::place(Lba(lba)).0, reads)
            });
            assert_eq!(lba_pbn::get(&self.store, tree, Lba(lba)), pbn);
            self.store.release_pins(pins);
        }
    }
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(48))]

    #[test]
    fn the_tables_hold_what_the_models_hold(ops in collection::vec(op(), 1..120)) {
        let mut rig = Rig::new();
        ops.iter().for_each(|op| rig.apply(op));
        rig.check_all();
        rig.checkpoint();
        rig.reopen();
        rig.check_all();
    }
}

/// Everything that was ever stored can go again, and then the tables take no block.
#[test]
fn an_emptied_store_takes_no_block() {
    let mut rig = Rig::new();
    rig.apply(&Op::CreateVolume);
    for round in 0..30 {
        rig.apply(&Op::Store(199));
        rig.apply(&Op::Map(0, round * 700, (0..800).map(Some).collect()));
        rig.apply(&Op::Clean);
        rig.apply(&Op::Land(0));
    }
    rig.apply(&Op::Checkpoint);
    rig.apply(&Op::DropVolume(0));
    rig.apply(&Op::Forget(0, usize::MAX));
    let count = rig.free.len();
    assert_eq!((count, rig.hash.shape().entries), (30 * 199, 0));
    for expected in rig.model.free.clone() {
        let free = &rig.free;
        let pins = rig
            .device
            .wait_for(&mut rig.store, |store, pins, reads| free.want_pop(store, pins, 1, reads));
        assert_eq!(rig.free.pop(&mut rig.store), Some(Pbn(expected)));
        rig.store.release_pins(pins);
    }
    rig.model.free.clear();
    (0..3).for_each(|_| rig.checkpoint());
    // The leaf that holds the queue's ends, and its parent, stay.
    assert!(rig.store.used_blocks() <= 2 + u64::from(rig.store.tree_root(TreeId::FREE_PBNS).depth));
    assert_eq!(rig.store.tree_root(TreeId::HASH_PBN), Default::default());
    assert_eq!(rig.store.tree_root(TreeId::PBN_PBA), Default::default());
}
