//! A store's tables made again from the accounts, below new roots.
//!
//! Nothing that either root names is overwritten: a crash leaves the store as it was before. The
//! order is that of a checkpoint: directories, pages, a sync of each, then a root into the slot
//! that does *not* hold the root from which the accounts started, a sync, and the same again into
//! the other slot. From then on the journal goes on where [`super::next_journal`] says.
//!
//! Second copies are left behind, as frames that nothing names: what runs makes them anew.

use std::collections::{BTreeMap, BTreeSet};

use disk::{AlignedBuf, IoError, SharedBuf};
use format::catalog::VolumeState;
use format::container_page::{self, ContainerEntry, ContainerState};
use format::directory::{DirectoryEntry, encode_tail};
use format::page::Page;
use format::pba_page::{self, PbaEntry};
use format::root::{HashShape, JournalPosition, Root, STREAMS, Totals};
use format::superblock::root_block;
use format::units::{
    BlockPtr, CONTAINER_BYTES, ContainerId, PageId, Pba, Pbn, TreeId, TreeRoot, VolumeId, Zone,
};
use format::{BLOCK_BYTES, catalog, map_page};
use mutants::mutant;
use tables::BuiltTable;

use crate::check::problem::CheckProgress;
use crate::geometry::label_of;
use crate::repair::damage_reads::DamageReads;
use crate::repair::error::RepairError;
use crate::repair::frame_accounts::{FrameAccounts, stored_chunks};
use crate::repair::ledger::{Ledger, Pages, Place};
use crate::repair::map_accounts::{MapAccounts, as_on_disk, leaf_indexes, map_leaf};
use crate::repair::page_writer::PageWriter;
use crate::repair::survey::Survey;
use crate::repair::tree_image::read_page;

/// Container sequences left out, so that no directory of a lost life passes for a new one.
const SEQUENCES_SKIPPED: u32 = 1024;

/// What a rebuild wrote.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Written {
    pub(crate) pages: u64,
    pub(crate) directories: u64,
}

/// A leaf to be written, or where it is.
type Leaf = Result<Page, BlockPtr>;

/// Everything that a rebuild works from.
pub(crate) struct Rebuild<'a> {
    pub(crate) reads: &'a mut DamageReads,
    pub(crate) survey: &'a Survey,
    pub(crate) ledger: Ledger,
    pub(crate) frames: FrameAccounts,
    pub(crate) maps: MapAccounts,
    journal: JournalPosition,
    writer: PageWriter,
    totals: Totals,
    trees: BTreeMap<TreeId, TreeRoot>,
    directories: u64,
}

impl<'a> Rebuild<'a> {
    pub(crate) fn new(
        reads: &'a mut DamageReads,
        survey: &'a Survey,
        ledger: Ledger,
        frames: FrameAccounts,
        maps: MapAccounts,
        journal: JournalPosition,
    ) -> Self {
        let writer = PageWriter::new(
            survey.blocks_in_use(),
            survey.geometry.tables_blocks(),
            generation(survey),
        );
        let (totals, trees) = (Totals::default(), BTreeMap::new());
        let directories = 0;
        Self { reads, survey, ledger, frames, maps, journal, writer, totals, trees, directories }
    }

    /// Writes it all; the last thing written is what makes it count.
    pub(crate) fn write(
        mut self,
        progress: &mut dyn FnMut(CheckProgress),
    ) -> Result<Written, RepairError> {
        let mut stage = |done| progress(CheckProgress { stage: "rebuilding", done, total: 6 });
        stage(0);
        self.reads.devices.place_carried(|_, _| u64::MAX)?;
        let shape = self.write_fingerprints()?;
        stage(1);
        self.write_containers()?;
        stage(2);
        self.write_places()?;
        stage(3);
        self.write_maps()?;
        let (next_pbn, free_tail) = self.write_free_pbns()?;
        stage(4);
        let catalog_slots = self.write_catalog()?;
        let mut root = self.root(shape, next_pbn, free_tail, catalog_slots);
        root.label = self.writer.take_block().unwrap_or(0);
        self.write_label(&root)?;
        self.writer.finish(&mut self.reads.devices)?;
        let geometry = &self.survey.geometry;
        let zones = 0..geometry.data.len() as u16;
        for number in zones.filter(|&number| geometry.has_data_zone(number)) {
            self.reads.devices.sync_now(Zone::Data(number))?;
        }
        stage(5);
        self.write_roots(root)?;
        stage(6);
        Ok(Written { pages: self.writer.pages_written, directories: self.directories })
    }

    fn put_leaf(&mut self, index: u64, page: Page) -> Result<(u64, BlockPtr), RepairError> {
        let tree = page.id().tree;
        let image = self.survey.base.trees.get(&tree);
        let pointer = image.and_then(|image| image.leaves.get(index));
        let mut pages = Pages { reads: self.reads, survey: self.survey };
        let old = pointer.and_then(|at| pages.page(tree, index, at).map(|page| (at, page)));
        Ok((index, self.writer.put(&mut self.reads.devices, page, old.as_ref())?))
    }

    fn put_tree(
        &mut self,
        tree: TreeId,
        leaves: Vec<(u64, BlockPtr)>,
    ) -> Result<TreeRoot, RepairError> {
        let image = self.survey.base.trees.get(&tree);
        let blocks = self.survey.geometry.tables_blocks();
        let root = self.writer.put_inner(self.reads, tree, leaves, |reads, id| {
            let pointer = *image?.inner.get(&(id.level, id.index))?;
            let page = read_page(reads, blocks, id, pointer).ok()?;
            Some((pointer, page))
        })?;
        self.trees.insert(tree, root);
        Ok(root)
    }

    /// The Hash-PBN table, without what is aside. So is a chunk whose fingerprint another one has:
    /// it lives under another PBN as well, or in a store that compares bytes is another chunk.
    fn write_fingerprints(&mut self) -> Result<HashShape, RepairError> {
        let mut entries: Vec<_> = stored_chunks(&self.ledger)
            .into_iter()
            .filter(|(_, pbn)| !self.ledger.asides.contains(pbn))
            .filter_map(|(_, pbn)| Some((self.ledger.fingerprints[pbn.0 as usize]?, pbn)))
            .collect();
        let references = &self.maps.references;
        entries.sort_unstable_by_key(|&(fingerprint, pbn)| {
            (fingerprint, std::cmp::Reverse(references[pbn.0 as usize]), pbn)
        });
        let Ledger { places, asides, .. } = &mut self.ledger;
        entries.dedup_by(|second, first| {
            let twice = second.0 == first.0;
            if twice && references[second.1.0 as usize] == 0 {
                places[second.1.0 as usize] = Place::Vacant;
            } else if twice {
                asides.insert(second.1);
            }
            twice
        });
        let geometry = &self.survey.geometry;
        let BuiltTable { shape, trees } =
            BuiltTable::of(&entries, geometry.bucket_seed, geometry.detection.filter);
        for (tree, pages) in trees {
            let leaves: Result<Vec<_>, _> =
                pages.into_iter().map(|page| self.put_leaf(page.id().index, page)).collect();
            self.put_tree(tree, leaves?)?;
        }
        Ok(shape)
    }

    /// Container table, totals of frames, and the directories that are missing.
    fn write_containers(&mut self) -> Result<(), RepairError> {
        let mut stored = stored_chunks(&self.ledger);
        stored.sort_unstable_by_key(|(pba, _)| (pba.container, pba.offset_bytes));
        let mut table = vec![ContainerEntry::default(); self.ledger.containers.len()];
        for chunks in stored.chunk_by(|one, other| one.0.container == other.0.container) {
            let Some(id) = chunks.first().map(|(pba, _)| pba.container) else { continue };
            let entry = self.container_entry(id, chunks);
            if self.frames.without_directory.contains(&id) {
                self.write_directory(id, entry.sequence, chunks)?;
            }
            if let Some(place) = table.get_mut(id.0 as usize) {
                *place = entry;
            }
        }
        let mut leaves = Vec::new();
        for (leaf, entries) in (0..).zip(table.chunks(container_page::SLOTS)) {
            if entries.iter().any(|entry| *entry != ContainerEntry::default()) {
                let id = PageId { tree: TreeId::CONTAINERS, level: 0, index: leaf };
                let mut page = Page::empty(id);
                for (slot, entry) in entries.iter().enumerate() {
                    container_page::set(&mut page, slot, entry);
                }
                leaves.push(self.put_leaf(leaf, page)?);
            }
        }
        self.put_tree(TreeId::CONTAINERS, leaves).map(|_| ())
    }

    fn container_entry(&mut self, id: ContainerId, chunks: &[(Pba, Pbn)]) -> ContainerEntry {
        let known = self.ledger.containers.get(id.0 as usize).copied().flatten();
        let known = known.filter(|entry| entry.state != ContainerState::Free).unwrap_or_default();
        let mut entry = ContainerEntry { live_bytes: 0, state: ContainerState::Sealed, ..known };
        for (pba, pbn) in chunks {
            entry.used_bytes = entry.used_bytes.max(pba.offset_bytes + pba.length_bytes);
            if self.maps.references[pbn.0 as usize] > 0 {
                entry.live_bytes += pba.length_bytes;
                self.totals.unique_chunks += 1;
                self.totals.live_frame_bytes += u64::from(pba.length_bytes);
            } else {
                self.totals.dead_chunks += 1;
                self.totals.dead_frame_bytes += u64::from(pba.length_bytes);
            }
        }
        if entry.sequence == 0 {
            entry.sequence = self.ledger.next_container_sequence;
            self.ledger.next_container_sequence += 1;
        }
        entry
    }

    /// Writes a directory, the bytes before it in its first block as they are.
    fn write_directory(
        &mut self,
        id: ContainerId,
        sequence: u32,
        chunks: &[(Pba, Pbn)],
    ) -> Result<(), RepairError> {
        let geometry = &self.survey.geometry;
        let Some((zone, start_bytes)) = geometry.container_zone(id) else { return Ok(()) };
        let entry = |&(pba, pbn): &(Pba, Pbn)| {
            let fingerprint = self.ledger.fingerprints[pbn.0 as usize]?;
            let Pba { offset_bytes, length_bytes, .. } = pba;
            Some(DirectoryEntry { fingerprint, pbn, offset_bytes, length_bytes })
        };
        let entries: Vec<_> = chunks.iter().filter_map(entry).collect();
        let tail = encode_tail(&entries, id, sequence, geometry.uuid);
        let length_bytes = tail.len().next_multiple_of(BLOCK_BYTES);
        let offset_bytes = start_bytes + u64::from(CONTAINER_BYTES) - length_bytes as u64;
        let mut buf = self.reads.read(zone, offset_bytes, length_bytes);
        let frames_end = chunks.last().map_or(0, |(pba, _)| pba.offset_bytes + pba.length_bytes);
        if frames_end as usize + tail.len() > CONTAINER_BYTES as usize {
            return Ok(());
        }
        buf[length_bytes - tail.len()..].copy_from_slice(&tail);
        self.reads.devices.write_now(zone, offset_bytes, buf.into())?;
        self.directories += 1;
        Ok(())
    }

    fn write_places(&mut self) -> Result<(), RepairError> {
        let mut leaves = Vec::new();
        let count = self.ledger.places.len().div_ceil(pba_page::SLOTS) as u64;
        for leaf in 0..count {
            let mut page = Page::empty(PageId { tree: TreeId::PBN_PBA, level: 0, index: leaf });
            let first = leaf as usize * pba_page::SLOTS;
            let places = self.ledger.places.iter().zip(&self.maps.references).skip(first);
            let mut any = false;
            for (slot, (place, &references)) in places.take(pba_page::SLOTS).enumerate() {
                if let Place::At(pba) = *place {
                    let aside = self.ledger.asides.contains(&Pbn((first + slot) as u64));
                    pba_page::set(&mut page, slot, Some(PbaEntry { pba, references, aside }));
                    any = true;
                }
            }
            if any {
                leaves.push(self.put_leaf(leaf, page)?);
            }
        }
        self.put_tree(TreeId::PBN_PBA, leaves).map(|_| ())
    }

    fn write_maps(&mut self) -> Result<(), RepairError> {
        for (id, first) in self.ledger.lines() {
            self.writer.begin_line(first);
            let tree = TreeId::volume(id);
            let (mut mapped, mut leaves) = (0, Vec::new());
            for index in self.leaf_indexes(id) {
                let Some((chunks, leaf)) = self.leaf_of(id, index) else { continue };
                mapped += chunks;
                leaves.push(match leaf {
                    Ok(page) => self.put_leaf(index, page)?,
                    Err(pointer) => (index, pointer),
                });
            }
            let root = self.put_tree(tree, leaves)?;
            if let Some(volume) = self.ledger.volumes.get_mut(&id) {
                let entry = &mut volume.entry;
                let is_live = entry.state == VolumeState::Live;
                entry.mapped_chunks = if is_live { mapped } else { 0 };
                entry.root = root;
                entry.lineage.cut_leaves = 0..0;
                if entry.lineage.snapshot_of.is_none() {
                    self.totals.mapped_chunks += entry.mapped_chunks;
                }
            }
        }
        Ok(())
    }

    fn leaf_indexes(&self, id: VolumeId) -> BTreeSet<u64> {
        let volume = self.ledger.volumes.get(&id);
        volume.map(|volume| leaf_indexes(self.survey, volume)).unwrap_or_default()
    }

    /// A leaf of a map as a page, or where it is if it stays; and how many chunks it maps. None
    /// where it maps nothing. One at a time: a lost inner page may stand for more leaves than
    /// memory has room for.
    fn leaf_of(&mut self, id: VolumeId, index: u64) -> Option<(u64, Leaf)> {
        let volume = self.ledger.volumes.get(&id)?;
        let survey = self.survey;
        let plain = as_on_disk(survey, volume, index)
            .and_then(|at| Some((at, *self.maps.plain.get(&at.block())?)));
        if let Some((at, count)) = plain {
            return Some((u64::from(count), Err(at)));
        }
        let leaf = map_leaf(&mut Pages { reads: self.reads, survey }, volume, index)?;
        let mut page = Page::empty(PageId { tree: TreeId::volume(id), level: 0, index });
        let mut mapped = 0;
        for (slot, pbn) in leaf.slots.iter().enumerate() {
            mapped += u64::from(!pbn.is_none());
            map_page::set(&mut page, slot, self.maps.rebuilt(&self.ledger, &leaf, *pbn));
        }
        let stays = leaf.old.filter(|(_, old)| old.payload() == page.payload());
        Some((mapped, stays.map_or(Ok(page), |(at, _)| Err(at))))
    }

    /// The queue of free PBNs, from its beginning: all that name nothing and that no map names.
    fn write_free_pbns(&mut self) -> Result<(u64, u64), RepairError> {
        let next_pbn = self.ledger.places.len() as u64 + self.maps.unknown_pbns();
        let used = self.ledger.places.iter().zip(&self.maps.references);
        let free: Vec<Pbn> = (0..)
            .map(Pbn)
            .zip(used)
            .filter(|(pbn, (place, references))| {
                !pbn.is_none() && **place == Place::Vacant && **references == 0
            })
            .map(|(pbn, _)| pbn)
            .collect();
        let mut leaves = Vec::new();
        for (leaf, pbns) in (0..).zip(free.chunks(map_page::SLOTS)) {
            let mut page = Page::empty(PageId { tree: TreeId::FREE_PBNS, level: 0, index: leaf });
            pbns.iter().enumerate().for_each(|(slot, pbn)| map_page::set(&mut page, slot, *pbn));
            leaves.push(self.put_leaf(leaf, page)?);
        }
        self.put_tree(TreeId::FREE_PBNS, leaves)?;
        Ok((next_pbn, free.len() as u64))
    }

    fn write_catalog(&mut self) -> Result<u64, RepairError> {
        let volumes: Vec<_> =
            self.ledger.volumes.values().map(|volume| volume.entry.clone()).collect();
        let mut leaves = Vec::new();
        for (leaf, entries) in (0..).zip(volumes.chunks(catalog::SLOTS)) {
            let mut page = Page::empty(PageId { tree: TreeId::CATALOG, level: 0, index: leaf });
            for (slot, entry) in entries.iter().enumerate() {
                catalog::set(&mut page, slot, Some(entry));
            }
            leaves.push(self.put_leaf(leaf, page)?);
        }
        self.put_tree(TreeId::CATALOG, leaves)?;
        Ok(volumes.len() as u64)
    }

    fn root(&self, hash: HashShape, next_pbn: u64, free_tail: u64, catalog_slots: u64) -> Root {
        let trees = std::array::from_fn(|number| {
            self.trees.get(&TreeId(number as u32)).copied().unwrap_or_default()
        });
        Root {
            generation: generation(self.survey),
            clean: true,
            journal: self.journal,
            next_incarnation: self.ledger.next_incarnation + 1,
            compression: self.ledger.compression,
            trees,
            hash,
            next_pbn,
            free_head: 0,
            free_tail,
            next_volume: self.ledger.next_volume,
            domains: self.ledger.domains,
            catalog_slots,
            open_containers: [None; STREAMS],
            next_container_sequence: self.ledger.next_container_sequence + SEQUENCES_SKIPPED,
            totals: self.totals,
            label: 0,
        }
    }

    /// Writes the label of the second of the roots that come, whose first one leads to the same.
    fn write_label(&mut self, first: &Root) -> Result<(), IoError> {
        if first.label == 0 || mutant!(RepairsWithoutLabel) {
            return Ok(());
        }
        let root = Root { generation: first.generation + 1, ..first.clone() };
        let (offset_bytes, buf) = label_of(&self.survey.geometry, &root);
        self.reads.devices.write_now(Zone::Tables, offset_bytes, buf)
    }

    fn write_roots(&mut self, mut root: Root) -> Result<(), IoError> {
        let Survey { geometry, bad_copies, .. } = self.survey;
        for &block in bad_copies {
            self.write_block(block, &geometry.encode())?;
        }
        for _ in 0..if mutant!(RepairsOneRoot) { 1 } else { 2 } {
            self.write_block(root_block(root.generation), &root.encode(geometry.uuid))?;
            self.reads.devices.sync_now(Zone::Superblock)?;
            root.generation += 1;
        }
        Ok(())
    }

    fn write_block(&mut self, block: u64, bytes: &[u8]) -> Result<(), IoError> {
        let buf = SharedBuf::from(AlignedBuf::padded(bytes));
        self.reads.devices.write_now(Zone::Superblock, block * BLOCK_BYTES as u64, buf)
    }
}

/// Of the first new root: newer than both, and in the slot that does not hold the base.
fn generation(survey: &Survey) -> u64 {
    let base = survey.base.root.generation;
    let newest = survey.other.as_ref().map_or(base, |other| base.max(other.root.generation));
    if (newest + 1) % 2 == base % 2 { newest + 2 } else { newest + 1 }
}
