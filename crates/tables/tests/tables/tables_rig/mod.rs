//! All tables beside plain maps: what the engine does to the tables is done to both, and every
//! answer is compared.

mod checkpoints;

use std::collections::{BTreeMap, VecDeque};

use format::container_page::ContainerEntry;
use format::detection::FilterBlocks;
use format::pba_page::PbaEntry;
use format::root::HashShape;
use format::units::{ContainerId, Fingerprint, FrameCheck, Lba, Pba, Pbn, TreeId, VolumeId};
use tables::pbn_pba::Retained;
use tables::{
    CatalogTable, ContainerTable, FreePbns, HashOptions, HashPbn, NextLeaf, PageStore,
    PageStoreOptions, PinSet, lba_pbn, pbn_pba,
};

use crate::device::{Device, work_on_hash};

pub(crate) const OPTIONS: PageStoreOptions =
    PageStoreOptions { cache_pages: 8, tables_blocks: 3000 };
pub(crate) const CONTAINERS: u64 = 600;
/// So that chunks pass it in a short run.
const POPULAR_ABOVE: u32 = 2;
pub(crate) const SEED: [u8; 16] = [9; 16];
/// So few young entries that merges go on all the time.
/// Young entries that fill a segment at once.
pub(crate) fn hash_options() -> HashOptions {
    HashOptions { young_max: 250, segment_pages: 1, filter: FilterBlocks::default() }
}

/// What the tables hold, as plain maps; and what a root holds beside the pages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) map: BTreeMap<(VolumeId, u64), Pbn>,
    pub(crate) chunks: BTreeMap<u64, (u64, PbaEntry)>,
    pub(crate) hash: BTreeMap<u64, u64>,
    pub(crate) free: VecDeque<u64>,
    pub(crate) containers: BTreeMap<u32, ContainerEntry>,
    pub(crate) volumes: BTreeMap<VolumeId, String>,
    pub(crate) next_pbn: u64,
    pub(crate) next_volume: u32,
    pub(crate) shape: HashShape,
    pub(crate) ends: (u64, u64),
    pub(crate) slots: u64,
}

pub(crate) fn fingerprint(number: u64) -> Fingerprint {
    let mut bytes = [0; 32];
    for (part, word) in bytes.chunks_exact_mut(8).zip(1_u64..) {
        let mixed = (number + word * 77).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        part.copy_from_slice(&(mixed ^ mixed >> 29).to_le_bytes());
    }
    Fingerprint(bytes)
}

fn pba(number: u64) -> Pba {
    let container = ContainerId((number % CONTAINERS) as u32);
    let check = FrameCheck::of_crc(number as u32);
    Pba { container, offset_bytes: (number % 4096) as u32 * 512, length_bytes: 100, check }
}

pub(crate) struct Rig {
    pub(crate) device: Device<Model>,
    pub(crate) store: PageStore,
    pub(crate) hash: HashPbn,
    pub(crate) free: FreePbns,
    pub(crate) containers: ContainerTable,
    pub(crate) catalog: CatalogTable,
    pub(crate) model: Model,
    pub(crate) next_content: u64,
    pub(crate) generation: u64,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let model = Model { next_pbn: 1, next_volume: 1, ..Model::default() };
        let mut device = Device::new(model.clone());
        let mut rig = Self {
            store: device.open(OPTIONS),
            device,
            hash: HashPbn::new(model.shape, SEED, hash_options()),
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

    pub(crate) fn volume(&self, number: u32) -> Option<VolumeId> {
        let ids: Vec<VolumeId> = self.model.volumes.keys().copied().collect();
        ids.get(number as usize % ids.len().max(1)).copied()
    }

    /// As a group is committed: everything is wanted first, then all of it is done.
    pub(crate) fn store_chunks(&mut self, count: u64) {
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
            let entry = PbaEntry { pba: pba(content), references: 0, aside: false };
            pbn_pba::set(&mut self.store, pbn, entry);
            self.hash.insert(&mut self.store, &fingerprint(content), pbn);
            assert_eq!(self.hash.lookup(&self.store, &fingerprint(content)), Some(pbn));
            self.model.chunks.insert(pbn.0, (content, entry));
            self.model.hash.insert(content, pbn.0);
        }
        self.store.release_pins(std::mem::take(&mut pins));
        self.store.release_pins(more);
    }

    pub(crate) fn map(&mut self, volume: u32, first: u64, chunks: &[Option<u64>]) {
        let stored: Vec<u64> = self.model.chunks.keys().copied().collect();
        let Some(volume) = self.volume(volume) else { return };
        let pick = |chunk: &Option<u64>| {
            chunk.and_then(|n| stored.get((n % stored.len().max(1) as u64) as usize))
        };
        let pbns: Vec<Pbn> =
            chunks.iter().map(|chunk| pick(chunk).map_or(Pbn::NONE, |&pbn| Pbn(pbn))).collect();
        let pins = self.want_run(volume, first, pbns.len() as u64, &pbns);
        let (mut revived_expected, mut popular_expected) = (Vec::new(), Vec::new());
        for &pbn in pbns.iter().filter(|pbn| !pbn.is_none()) {
            let entry = &mut self.model.chunks.get_mut(&pbn.0).unwrap().1;
            revived_expected.extend((entry.references == 0).then_some(entry.pba));
            popular_expected.extend((entry.references == POPULAR_ABOVE).then_some(pbn));
            entry.references += 1;
        }
        let mut retained = Retained { popular_above: POPULAR_ABOVE, ..Retained::default() };
        pbn_pba::retain(&mut self.store, &pbns, &mut retained);
        assert_eq!((retained.revived, retained.popular), (revived_expected, popular_expected));
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

    pub(crate) fn want_run(
        &mut self,
        volume: VolumeId,
        first: u64,
        count: u64,
        pbns: &[Pbn],
    ) -> PinSet {
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

    pub(crate) fn release(&mut self, released: &[Pbn]) {
        let mut died_expected = Vec::new();
        for &pbn in released {
            let entry = &mut self.model.chunks.get_mut(&pbn.0).unwrap().1;
            entry.references -= 1;
            died_expected.extend((entry.references == 0).then_some(entry.pba));
        }
        let mut died = Vec::new();
        pbn_pba::release(&mut self.store, released, &mut died);
        assert_eq!(died, died_expected);
    }

    /// As the engine unmaps: leaf by leaf, only those that exist.
    pub(crate) fn unmap(&mut self, volume: VolumeId, first: u64, count: u64) {
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

    pub(crate) fn merge(&mut self, steps: usize) {
        work_on_hash(&mut self.hash, &mut self.store, &mut self.device, steps);
    }

    pub(crate) fn forget(&mut self, from: u64, count: usize) {
        let from = from % self.model.next_pbn;
        let is_dead = |(_, (_, entry)): &(&u64, &(u64, PbaEntry))| entry.references == 0;
        let dead: Vec<(u64, u64)> = (self.model.chunks.range(from..).filter(is_dead))
            .map(|(&pbn, &(content, _))| (pbn, content))
            .take(count)
            .collect();
        let (hash, free) = (&self.hash, &self.free);
        let pins = self.device.wait_for(&mut self.store, |store, pins, reads| {
            let mut here = free.want_push(store, pins, dead.len() as u64, reads)?;
            here &= hash.want_insert(store, pins, dead.len() as u64, reads)?;
            for &(pbn, _) in &dead {
                here &= pbn_pba::want(store, pins, Pbn(pbn), reads)?;
            }
            Ok(here)
        });
        for (pbn, content) in dead {
            self.hash.take_back(&mut self.store, &fingerprint(content), Pbn(pbn));
            pbn_pba::clear(&mut self.store, Pbn(pbn));
            self.free.push(&mut self.store, Pbn(pbn));
            self.model.chunks.remove(&pbn);
            self.model.hash.remove(&content);
            self.model.free.push_back(pbn);
        }
        self.store.release_pins(pins);
    }
}
