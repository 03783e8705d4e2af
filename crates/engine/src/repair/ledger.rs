//! The tables as far as they can be known: what is intact in them, and the journal behind them.
//!
//! A repair cannot run the journal through [`crate::state::State`], which takes its tables for
//! whole. It keeps accounts instead: where each chunk is and under which fingerprint, which volumes
//! there are, and what their maps say that differs from the pages on disk. What nobody knows is
//! *unknown* and stays so until a record or a container tells. Counts of references, live bytes,
//! free PBNs and totals are not looked at: they follow from the rest. Second copies are known as
//! far as their table tells: they stand in for frames that are damaged, and are made anew later.
//!
//! Memory: 53 bytes a PBN, and 24 bytes for each chunk that the journal maps.

mod copies;
mod versions;
mod volume;

use std::collections::{BTreeMap, BTreeSet};

use format::catalog::{CatalogEntry, VolumeState};
use format::container_page::{self, ContainerEntry, ContainerState};
use format::page::Page;
use format::record::Change;
use format::root::{JournalPosition, OpenContainer, Root, STREAMS};
use format::superblock::Geometry;
use format::units::{
    BlockPtr, Compression, ContainerId, Fingerprint, PageId, Pba, Pbn, TreeId, VolumeId,
};
use format::{bucket, pba_page};
use tables::{HashOptions, HashPbn};

use crate::check::problem::CheckProgress;
use crate::open::recovery::fingerprint_at;
use crate::placement::carrying::place_of_carried;
use crate::repair::damage_reads::DamageReads;
use crate::repair::journal_image::each_record;
pub(crate) use crate::repair::ledger::volume::VolumeLedger;
use crate::repair::survey::{RootImage, Survey};
use crate::repair::tree_image::read_page;

/// Where a chunk is.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nowhere: its PBN names nothing.
    #[default]
    Vacant,
    /// In a container.
    At(Pba),
    /// The page that says so is lost.
    Unknown,
}

/// All accounts.
pub(crate) struct Ledger {
    pub(crate) places: Vec<Place>,
    pub(crate) fingerprints: Vec<Option<Fingerprint>>,
    /// What stays out of the Hash-PBN table.
    pub(crate) asides: BTreeSet<Pbn>,
    pub(crate) copies: BTreeMap<Pbn, Pba>,
    /// Leaves of the table of second copies that are lost.
    pub(crate) copies_lost: BTreeSet<u64>,
    /// None: unknown.
    pub(crate) containers: Vec<Option<ContainerEntry>>,
    pub(crate) volumes: BTreeMap<VolumeId, VolumeLedger>,
    pub(crate) compression: Compression,
    pub(crate) open: [Option<OpenContainer>; STREAMS],
    pub(crate) next_volume: u32,
    pub(crate) domains: u16,
    pub(crate) next_container_sequence: u32,
    pub(crate) next_incarnation: u64,
    /// Whether pages of the Hash-PBN table are lost.
    pub(crate) fingerprints_lost: bool,
    /// Whether chunks may be stored unindexed, which the Hash-PBN table does not know.
    pub(crate) has_asides: bool,
    pub(crate) records: u64,
    /// The first record that is there and was not applied, and whether it is known to have been
    /// durable.
    pub(crate) cut: Option<Cut>,
}

/// Where the records end that could be applied, before the journal does.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Cut {
    pub(crate) at: JournalPosition,
    pub(crate) is_proven: bool,
}

impl Ledger {
    /// What the survey's base and its journal say.
    pub(crate) fn read(
        reads: &mut DamageReads,
        survey: &Survey,
        progress: &mut dyn FnMut(CheckProgress),
    ) -> Self {
        let mut ledger = Self::empty(&survey.geometry, &survey.base);
        let mut pages = Pages { reads, survey };
        progress(CheckProgress { stage: "tables", done: 0, total: 4 });
        ledger.read_places(&mut pages);
        ledger.read_copies(&mut pages);
        progress(CheckProgress { stage: "tables", done: 1, total: 4 });
        ledger.read_fingerprints(&mut pages);
        progress(CheckProgress { stage: "tables", done: 2, total: 4 });
        ledger.read_containers(&mut pages);
        progress(CheckProgress { stage: "tables", done: 3, total: 4 });
        ledger.replay(reads, survey);
        ledger.volumes.values_mut().for_each(VolumeLedger::settle);
        ledger
    }

    fn empty(geometry: &Geometry, base: &RootImage) -> Self {
        let Root { next_pbn, .. } = base.root;
        let volumes = base.volumes.iter().cloned();
        Self {
            places: vec![Place::Vacant; next_pbn as usize],
            fingerprints: vec![None; next_pbn as usize],
            asides: BTreeSet::new(),
            copies: BTreeMap::new(),
            copies_lost: BTreeSet::new(),
            containers: vec![Some(ContainerEntry::default()); geometry.containers_total() as usize],
            volumes: volumes.map(|entry| (entry.id, VolumeLedger::new(entry))).collect(),
            compression: base.root.compression,
            open: base.root.open_containers,
            next_volume: base.root.next_volume,
            domains: base.root.domains,
            next_container_sequence: base.root.next_container_sequence,
            next_incarnation: base.root.next_incarnation,
            fingerprints_lost: false,
            has_asides: geometry.detection.has_asides(),
            records: 0,
            cut: None,
        }
    }

    fn read_places(&mut self, pages: &mut Pages<'_>) {
        pages.each_leaf(TreeId::PBN_PBA, |leaf, page| {
            let first = leaf * pba_page::SLOTS as u64;
            for (slot, place) in slots(&mut self.places, first, pba_page::SLOTS).enumerate() {
                let entry = page.map(|page| pba_page::get(page, slot));
                *place = match entry {
                    Some(entry) => entry.map_or(Place::Vacant, |entry| Place::At(entry.pba)),
                    None => Place::Unknown,
                };
                let is_aside = entry.flatten().is_some_and(|entry| entry.aside);
                self.asides.extend(is_aside.then_some(Pbn(first + slot as u64)));
            }
        });
        if let Some(none) = self.places.first_mut() {
            *none = Place::Vacant;
        }
    }

    fn read_fingerprints(&mut self, pages: &mut Pages<'_>) {
        let (shape, geometry) = (pages.survey.base.root.hash, &pages.survey.geometry);
        let options = HashOptions::with_young(0, geometry.detection.filter);
        let mut hash = HashPbn::new(shape, geometry.bucket_seed, options);
        for tree in [TreeId::LINEAR_HASH, TreeId::LINEAR_OVERFLOW, TreeId::HASH_PBN] {
            pages.each_leaf(tree, |leaf, page| {
                self.fingerprints_lost |= page.is_none();
                let Some(page) = page else { return };
                let counts = |of: &Fingerprint| tree != TreeId::HASH_PBN || hash.counts(leaf, of);
                for (fingerprint, pbn) in bucket::entries(page).filter(|(of, _)| counts(of)) {
                    self.know(pbn, |known| *known = Some(fingerprint));
                }
            });
        }
        pages.each_leaf(TreeId::YOUNG, |leaf, page| {
            self.fingerprints_lost |= page.is_none();
            let Some(page) = page else { return };
            for entry in hash.load_young(leaf, page) {
                self.know(entry.pbn, |known| match entry.taken_back {
                    true => *known = known.filter(|known| *known != entry.fingerprint),
                    false => *known = Some(entry.fingerprint),
                });
            }
        });
    }

    fn know(&mut self, pbn: Pbn, learn: impl FnOnce(&mut Option<Fingerprint>)) {
        self.fingerprints.get_mut(pbn.0 as usize).map(learn);
    }

    fn read_containers(&mut self, pages: &mut Pages<'_>) {
        pages.each_leaf(TreeId::CONTAINERS, |leaf, page| {
            let first = leaf * container_page::SLOTS as u64;
            let entries = slots(&mut self.containers, first, container_page::SLOTS);
            for (slot, entry) in entries.enumerate() {
                *entry = page.and_then(|page| container_page::get(page, slot).ok());
            }
        });
    }

    /// The open container of this number.
    pub(crate) fn open_container(&self, id: ContainerId) -> Option<OpenContainer> {
        self.open.iter().flatten().find(|open| open.id == id).copied()
    }

    /// Containers that hold something.
    pub(crate) fn containers_in_use(&self) -> u64 {
        let in_use = |entry: &&ContainerEntry| entry.state != ContainerState::Free;
        self.containers.iter().flatten().filter(in_use).count() as u64
    }

    /// Applies the journal's prefix: up to its end, or up to a frame behind the last known sync
    /// that is not there.
    fn replay(&mut self, reads: &mut DamageReads, survey: &Survey) {
        let RootImage { root, journal, .. } = &survey.base;
        let geometry = &survey.geometry;
        let mut newer = survey.newer().map(|newer| newer.root.journal.sequence);
        let mut at = root.journal;
        each_record(reads, geometry, root.journal, |reads, record, end| {
            let is_proven = record.sequence <= journal.settled.durable_sequence;
            self.cut = Some(Cut { at, is_proven });
            let Ok(changes) = record.changes() else { return false };
            if !changes.iter().all(|change| has_place(geometry, change)) {
                return false;
            }
            if record.sequence > journal.settled.placed_sequence {
                reads.devices.carry(geometry, &changes);
            }
            if !is_proven && !self.frames_are_there(reads, geometry, &changes) {
                return false;
            }
            if newer.take_if(|newer| *newer == record.sequence).is_some() {
                self.reach_newer();
            }
            changes.iter().for_each(|change| self.apply(change));
            self.next_incarnation = self.next_incarnation.max(record.incarnation + 1);
            self.records += 1;
            (self.cut, at) = (None, end);
            true
        });
        if newer == Some(at.sequence) {
            self.reach_newer();
        }
    }

    /// All records that the newer root stands for were applied, and none behind it.
    fn reach_newer(&mut self) {
        for (id, volume) in &mut self.volumes {
            volume.newer = Some(TreeId::volume(*id));
        }
    }

    fn frames_are_there(
        &mut self,
        reads: &mut DamageReads,
        geometry: &Geometry,
        changes: &[Change],
    ) -> bool {
        changes.iter().all(|change| {
            let (pbn, expected, pba) = match change {
                Change::Store { pbn, fingerprint, pba }
                | Change::StoreAside { pbn, fingerprint, pba } => (*pbn, Some(*fingerprint), *pba),
                Change::Move { pbn, to, fingerprint }
                | Change::Copy { pbn, at: to, fingerprint } => {
                    let known = self.fingerprints.get(pbn.0 as usize).copied().flatten();
                    (*pbn, fingerprint.or(known), *to)
                }
                _ => return true,
            };
            let found = fingerprint_at(&mut reads.devices, geometry, pbn, pba).ok().flatten();
            found.is_some() && (expected.is_none() || found == expected)
        })
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::Store { pbn, fingerprint, pba }
            | Change::StoreAside { pbn, fingerprint, pba } => {
                self.place(*pbn, *pba);
                self.fingerprints[pbn.0 as usize] = Some(*fingerprint);
                self.asides.remove(pbn);
                let is_aside = matches!(change, Change::StoreAside { .. });
                self.asides.extend(is_aside.then_some(*pbn));
            }
            Change::Move { pbn, to, .. } => {
                self.place(*pbn, *to);
                if self.copies.get(pbn).is_some_and(|copy| copy.container == to.container) {
                    self.copies.remove(pbn);
                }
            }
            Change::Copy { pbn, at, .. } => {
                self.fill(*at);
                self.copies.insert(*pbn, *at);
            }
            Change::DropCopy { pbn } => drop(self.copies.remove(pbn)),
            Change::Forget { pbn, .. } => {
                self.reach(*pbn);
                self.copies.remove(pbn);
                self.places[pbn.0 as usize] = Place::Vacant;
                self.asides.remove(pbn);
                self.fingerprints[pbn.0 as usize] = None;
            }
            Change::OpenContainer { id, sequence, stream } => {
                let state = ContainerState::Open;
                let entry = ContainerEntry { state, sequence: *sequence, ..Default::default() };
                self.set_container(*id, entry);
                let open = OpenContainer { id: *id, fill_bytes: 0, sequence: *sequence };
                self.open[*stream as usize] = Some(open);
                self.next_container_sequence = sequence.wrapping_add(1);
            }
            Change::SealContainer { id, used_bytes } => {
                if let Some(Some(entry)) = self.containers.get_mut(id.0 as usize) {
                    (entry.state, entry.used_bytes) = (ContainerState::Sealed, *used_bytes);
                }
                for open in &mut self.open {
                    *open = open.filter(|open| open.id != *id);
                }
            }
            Change::FreeContainer { id } => self.set_container(*id, ContainerEntry::default()),
            Change::SetCompression(compression) => self.compression = *compression,
            Change::Opened { .. } | Change::Carry { .. } => {}
            volume_change => self.apply_to_volumes(volume_change),
        }
    }

    /// Makes room for a PBN that the tables can hold: damage may have hidden how many there are.
    fn reach(&mut self, pbn: Pbn) {
        let end = (pbn.0 as usize + 1).max(self.places.len());
        self.places.resize(end, Place::Vacant);
        self.fingerprints.resize(end, None);
    }

    fn place(&mut self, pbn: Pbn, pba: Pba) {
        self.reach(pbn);
        self.places[pbn.0 as usize] = Place::At(pba);
        self.fill(pba);
    }

    fn fill(&mut self, pba: Pba) {
        let end_bytes = pba.offset_bytes + pba.length_bytes;
        if let Some(Some(entry)) = self.containers.get_mut(pba.container.0 as usize) {
            entry.used_bytes = entry.used_bytes.max(end_bytes);
        }
        let mut open = self.open.iter_mut().flatten();
        if let Some(open) = open.find(|open| open.id == pba.container) {
            open.fill_bytes = open.fill_bytes.max(end_bytes);
        }
    }

    fn set_container(&mut self, id: ContainerId, entry: ContainerEntry) {
        if let Some(place) = self.containers.get_mut(id.0 as usize) {
            *place = Some(entry);
        }
    }

    fn apply_to_volumes(&mut self, change: &Change) {
        let volume = |ledger: &mut Self, id: &VolumeId, look: &dyn Fn(&mut VolumeLedger)| {
            if let Some(volume) = ledger.volumes.get_mut(id) {
                look(volume);
            }
        };
        match change {
            Change::Map { volume: id, first, pbns } => volume(self, id, &|volume| {
                volume.set.extend((first.0..).zip(pbns.iter().copied()));
            }),
            Change::Unmap { volume: id, first, count } => {
                volume(self, id, &|volume| volume.unmap(first.0, *count));
            }
            Change::CreateVolume { id, size_bytes, read_only, name, domain, kind } => {
                let (name, domain, size_bytes) = (name.clone(), domain.clone(), *size_bytes);
                let entry =
                    CatalogEntry::of_new_volume(*id, name, size_bytes, *read_only, domain, *kind);
                self.domains = self.domains.max(entry.domain_number());
                self.volumes.insert(*id, VolumeLedger::new(entry));
                self.next_volume = self.next_volume.max(id.0 + 1);
            }
            Change::ResizeVolume { id, size_bytes } => {
                volume(self, id, &|volume| volume.entry.size_bytes = *size_bytes);
            }
            Change::RenameVolume { id, name } => {
                volume(self, id, &|volume| volume.entry.name.clone_from(name));
            }
            Change::SetQuota { id, quota_bytes } => {
                volume(self, id, &|volume| volume.entry.quota_bytes = *quota_bytes);
            }
            Change::SetDedup { id, dedup } => {
                volume(self, id, &|volume| volume.entry.dedup = *dedup);
            }
            Change::SetReservation { id, reservation_bytes } => {
                volume(self, id, &|volume| volume.entry.reservation_bytes = *reservation_bytes);
            }
            Change::SetVolumeCompression { id, compression } => {
                volume(self, id, &|volume| volume.entry.compression = *compression);
            }
            Change::DeleteVolume { id } => {
                volume(self, id, &|volume| volume.entry.state = VolumeState::Deleting);
            }
            version_change => self.apply_to_versions(version_change),
        }
    }
}

fn slots<T>(all: &mut [T], first: u64, count: usize) -> impl Iterator<Item = &mut T> {
    all.iter_mut().skip(first as usize).take(count)
}

/// The base's pages, one by one.
pub(crate) struct Pages<'a> {
    pub(crate) reads: &'a mut DamageReads,
    pub(crate) survey: &'a Survey,
}

impl Pages<'_> {
    /// Leaf `index` at `pointer`, if it still is what the survey found.
    pub(crate) fn page(&mut self, tree: TreeId, index: u64, pointer: BlockPtr) -> Option<Page> {
        let tables_blocks = self.survey.geometry.tables_blocks();
        read_page(self.reads, tables_blocks, PageId { tree, level: 0, index }, pointer).ok()
    }

    /// Every leaf that is intact, and every one that is lost, as None.
    pub(crate) fn each_leaf(&mut self, tree: TreeId, mut look: impl FnMut(u64, Option<&Page>)) {
        let Some(image) = self.survey.base.trees.get(&tree) else { return };
        for (index, pointer) in image.leaves.iter() {
            let page = self.page(tree, index, pointer);
            look(index, page.as_ref());
        }
        for index in image.lost() {
            look(index, None);
        }
    }
}

/// Whether the store has room for what a change names; a record that passes its checks and says
/// otherwise was written by a bug or an enemy.
fn has_place(geometry: &Geometry, change: &Change) -> bool {
    match change {
        Change::Store { pbn, pba: to, .. }
        | Change::StoreAside { pbn, pba: to, .. }
        | Change::Move { pbn, to, .. }
        | Change::Copy { pbn, at: to, .. } => geometry.has_pbn(*pbn) && geometry.has_place(*to),
        Change::Forget { pbn, .. } => geometry.has_pbn(*pbn),
        Change::Carry { container, offset_bytes, bytes } => {
            geometry.has_place(place_of_carried(*container, *offset_bytes, bytes))
        }
        _ => true,
    }
}
