//! The tables, and the one function that changes them.
//!
//! Everything durable changes by applying a [`Change`], live and in recovery alike: a live group
//! builds its changes, appends them to the journal and applies them; recovery decodes the same
//! changes and applies them again. There is no second path that could disagree.
//!
//! A change first names the pages it needs (`want_*`, which may ask for reads), and is applied only
//! when all are resident; then it runs to its end. Whatever a want finds resident is pinned.
//!
//! Counting: `Store` enters a chunk with no references, that is, dead; `Map` retains what it maps
//! before it releases what it replaces. Dead is exactly count 0, and the totals and the live bytes
//! of containers follow from the transitions alone. A second copy ([`crate::copies`]) lives
//! as long as it is in its table, and never lies in its chunk's container: a `Move` that brings
//! both together drops it, whatever moves.

pub(crate) mod mapping;
pub(crate) mod scratch;

use format::catalog::CatalogEntry;
use format::pba_page::PbaEntry;
use format::record::Change;
use format::root::{HashShape, OpenContainer, STREAMS, Totals};
use format::units::{Compression, ContainerId, Fingerprint, Pba, Pbn, TreeId};
use mutants::mutant;
use tables::pbn_pba::Retained;
use tables::{
    CatalogTable, ContainerTable, FreePbns, HashPbn, OutOfBlocks, PageError, PageStore, PageWrite,
    TableKind, pbn_pba, second_copies,
};

use crate::pages::wanted::Wanted;
use crate::state::scratch::Scratch;

/// Inner pages above the leaves that a freeze changes in its own lists, at the top of their trees.
const TOP_PAGES: u64 = 16;

/// All tables with their totals.
pub(crate) struct State {
    pub(crate) store: PageStore,
    pub(crate) hash: HashPbn,
    pub(crate) free: FreePbns,
    pub(crate) containers: ContainerTable,
    pub(crate) catalog: CatalogTable,
    pub(crate) totals: Totals,
    pub(crate) next_pbn: u64,
    pub(crate) next_volume: u32,
    /// Keyed domains that there have ever been.
    pub(crate) domains: u16,
    pub(crate) compression: Compression,
    pub(crate) open_containers: [Option<OpenContainer>; STREAMS],
    pub(crate) next_container_sequence: u32,
    pub(crate) entries_seen: EntriesSeen,
    /// Live bytes gained and lost by containers since this was last taken.
    pub(crate) live_changes: Vec<LiveChange>,
    /// References beyond which a chunk is to have a second copy; 0: none is.
    pub(crate) copies_above: u32,
    /// Chunks that have come to need one since this was last taken.
    pub(crate) popular: Vec<Pbn>,
    pub(crate) scratch: Scratch,
}

/// Entries that were looked up or changed since the store was opened: each once, however often
/// its page had to be waited for.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct EntriesSeen {
    pub(crate) hash_pbn: u64,
    pub(crate) pbn_pba: u64,
    pub(crate) maps: u64,
}

/// Live bytes that a container gained or lost.
pub(crate) struct LiveChange {
    pub(crate) container: ContainerId,
    pub(crate) added_bytes: u32,
    pub(crate) removed_bytes: u32,
}

impl State {
    /// The shape of the hash table, for a root.
    pub(crate) fn hash_shape(&self) -> HashShape {
        self.hash.shape()
    }

    /// Memory that the tables take.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.store.resident_bytes() + self.hash.young_bytes() + self.hash.filter_bytes()
    }

    /// Gives every changed page its place in the next root, the catalog's last: it holds the roots
    /// of the volumes' maps.
    pub(crate) fn freeze(&mut self, generation: u64) -> Result<Vec<PageWrite>, OutOfBlocks> {
        let Self { store, hash, containers, catalog, .. } = self;
        containers.store(store);
        hash.store(store);
        let mut writes = store.freeze_trees(generation)?;
        for id in catalog.ids() {
            catalog.set_root(id, store.tree_root(TreeId::volume(id)));
        }
        catalog.write_anew();
        catalog.store(store);
        writes.extend(store.freeze_catalog(generation)?);
        store.renew_label();
        Ok(writes)
    }

    /// Pages that a freeze needs blocks for, at most.
    pub(crate) fn pages_to_freeze(&self) -> u64 {
        let Self { store, hash, containers, catalog, .. } = self;
        let maps = store.held_of(TableKind::Maps).1 as u64;
        // What is above filters is a few pages, since merges change neighbours; above each leaf of
        // the others there may be a page of its own.
        let filters = hash.filter_pages_to_store();
        let lists = containers.pages_to_store() + catalog.pages_to_store(maps);
        store.dirty_pages() as u64 + filters + filters / 8 + 2 * lists + TOP_PAGES
    }

    /// Names the pages that `change` needs; true when all are here.
    pub(crate) fn want_change(
        &mut self,
        change: &Change,
        wanted: &mut Wanted,
    ) -> Result<bool, PageError> {
        match change {
            Change::Store { pbn, .. } | Change::StoreAside { pbn, .. } => {
                self.want_store(*pbn, wanted)
            }
            Change::Map { volume, first, pbns } => self.want_map(*volume, *first, pbns, wanted),
            Change::Unmap { volume, first, count } => {
                self.want_unmap(*volume, *first, *count, wanted)
            }
            Change::Move { pbn, .. } | Change::Copy { pbn, .. } | Change::DropCopy { pbn } => {
                self.want_move(*pbn, wanted)
            }
            Change::Forget { pbn, .. } => self.want_forget(*pbn, wanted),
            version_change => self.want_version_change(version_change, wanted),
        }
    }

    /// Pages to enter a new chunk.
    pub(crate) fn want_store(&mut self, pbn: Pbn, wanted: &mut Wanted) -> Result<bool, PageError> {
        let mut here = self.want_inserts(1, wanted)?;
        here &= self.want_pba(pbn, wanted)?;
        if pbn.0 < self.next_pbn {
            here &= self.want_free_pop(1, wanted)?;
        }
        Ok(here)
    }

    /// Pages of the next `inserts` changes of the Hash-PBN table.
    pub(crate) fn want_inserts(
        &mut self,
        inserts: u64,
        wanted: &mut Wanted,
    ) -> Result<bool, PageError> {
        self.hash.want_insert(&mut self.store, &mut wanted.pins, inserts, &mut wanted.reads)
    }

    /// Whether the Hash-PBN table is known to have an entry of a chunk; its page should be here.
    pub(crate) fn is_entered(&self, pbn: Pbn) -> bool {
        pbn_pba::get(&self.store, pbn).is_some_and(|entry| !entry.aside)
    }

    /// Pages to look a fingerprint up.
    pub(crate) fn want_lookup(
        &mut self,
        fingerprint: &Fingerprint,
        wanted: &mut Wanted,
    ) -> Result<bool, PageError> {
        self.hash.want_lookup(&mut self.store, &mut wanted.pins, fingerprint, &mut wanted.reads)
    }

    /// Pages to see everything that a fingerprint leads to.
    pub(crate) fn want_standing(
        &mut self,
        fingerprint: &Fingerprint,
        wanted: &mut Wanted,
    ) -> Result<bool, PageError> {
        self.hash.want_standing(&mut self.store, &mut wanted.pins, fingerprint, &mut wanted.reads)
    }

    /// Pages of the next step that the Hash-PBN table has to do in the background.
    pub(crate) fn want_hash_work(
        &mut self,
        spare_blocks: u64,
        wanted: &mut Wanted,
    ) -> Result<bool, PageError> {
        let Wanted { pins, reads, .. } = wanted;
        self.hash.want_work(&mut self.store, pins, reads, spare_blocks)
    }

    /// The page of one PBN.
    pub(crate) fn want_pba(&mut self, pbn: Pbn, wanted: &mut Wanted) -> Result<bool, PageError> {
        let leaf = pbn_pba::place(pbn).0;
        if let Some(here) = wanted.known_pba_leaf(leaf) {
            return Ok(here);
        }
        let here = pbn_pba::want(&mut self.store, &mut wanted.pins, pbn, &mut wanted.reads)?;
        wanted.know_pba_leaf(leaf, here);
        Ok(here)
    }

    /// The page that has the second copy of one PBN, if any.
    pub(crate) fn want_copy(&mut self, pbn: Pbn, wanted: &mut Wanted) -> Result<bool, PageError> {
        second_copies::want(&mut self.store, &mut wanted.pins, pbn, &mut wanted.reads)
    }

    /// Pages to give a chunk, or its second copy, another place.
    pub(crate) fn want_move(&mut self, pbn: Pbn, wanted: &mut Wanted) -> Result<bool, PageError> {
        Ok(self.want_pba(pbn, wanted)? & self.want_copy(pbn, wanted)?)
    }

    /// The same, as far as they can be had: whether those are here, and whether that is both. Each
    /// is asked for by itself, since that one is lost does not mean that the other has come.
    pub(crate) fn want_places(&mut self, pbn: Pbn, wanted: &mut Wanted) -> (bool, bool) {
        let (place, copy) = (self.want_pba(pbn, wanted), self.want_copy(pbn, wanted));
        let all = place.is_ok() && copy.is_ok();
        (place.unwrap_or(true) & copy.unwrap_or(true), all)
    }

    /// Pages of the next `count` free PBNs.
    pub(crate) fn want_free_pop(
        &mut self,
        count: u64,
        wanted: &mut Wanted,
    ) -> Result<bool, PageError> {
        self.free.want_pop(&mut self.store, &mut wanted.pins, count, &mut wanted.reads)
    }

    /// Pages to let a dead chunk leave the tables.
    pub(crate) fn want_forget(&mut self, pbn: Pbn, wanted: &mut Wanted) -> Result<bool, PageError> {
        Ok(self.want_move(pbn, wanted)? & self.want_forgets(1, wanted)?)
    }

    /// The same for so many chunks, but for the pages that have their places.
    pub(crate) fn want_forgets(
        &mut self,
        chunks: u64,
        wanted: &mut Wanted,
    ) -> Result<bool, PageError> {
        let here = self.want_inserts(chunks, wanted)?;
        let Wanted { pins, reads, .. } = wanted;
        Ok(here & self.free.want_push(&mut self.store, pins, chunks, reads)?)
    }

    /// Changes the tables by all of these in turn; every page that they need is resident. Of new
    /// chunks one after the other each page is found once.
    pub(crate) fn apply_all(&mut self, changes: &[Change]) {
        let are_new = |one: &Change, next: &Change| {
            matches!((one, next), (Change::Store { .. }, Change::Store { .. }))
        };
        for run in changes.chunk_by(are_new) {
            match run {
                [change] => self.apply(change),
                new_chunks => self.store_chunks(new_chunks),
            }
        }
    }

    fn store_chunks(&mut self, new_chunks: &[Change]) {
        let stored = || {
            new_chunks.iter().filter_map(|change| match change {
                Change::Store { pbn, fingerprint, pba } => Some((*pbn, fingerprint, *pba)),
                _ => None,
            })
        };
        stored().for_each(|(pbn, _, pba)| self.count_stored(pbn, pba));
        let entry_of = |pba| PbaEntry { pba, references: 0, aside: false };
        pbn_pba::set_all(&mut self.store, stored().map(|(pbn, _, pba)| (pbn, entry_of(pba))));
        let named = stored().map(|(pbn, fingerprint, _)| (fingerprint, pbn));
        self.hash.insert_all(&mut self.store, named);
    }

    /// Changes the tables; every page it needs is resident.
    pub(crate) fn apply(&mut self, change: &Change) {
        match change {
            Change::Store { .. } => self.store_chunks(std::slice::from_ref(change)),
            Change::StoreAside { pbn, fingerprint, pba } => {
                self.count_stored(*pbn, *pba);
                let entry = PbaEntry { pba: *pba, references: 0, aside: true };
                pbn_pba::set(&mut self.store, *pbn, entry);
                if mutant!(IndexesAside) {
                    self.hash.insert(&mut self.store, fingerprint, *pbn);
                }
            }
            Change::Map { volume, first, pbns } => self.map_run(*volume, *first, pbns),
            Change::Unmap { volume, first, count } => self.unmap(*volume, *first, *count),
            Change::Move { pbn, to, .. } => self.move_chunk(*pbn, *to),
            Change::Copy { pbn, at, .. } => self.copy_chunk(*pbn, *at),
            Change::DropCopy { pbn } => self.drop_copy(*pbn),
            Change::Forget { pbn, fingerprint } => self.forget(*pbn, fingerprint),
            Change::OpenContainer { id, sequence, stream } => {
                self.containers.open(*id, *sequence);
                self.next_container_sequence = sequence + 1;
                let open = OpenContainer { id: *id, fill_bytes: 0, sequence: *sequence };
                self.open_containers[*stream as usize] = Some(open);
            }
            Change::SealContainer { id, used_bytes } => {
                self.containers.seal(*id, *used_bytes);
                for open in &mut self.open_containers {
                    *open = open.filter(|open| open.id != *id);
                }
            }
            Change::FreeContainer { id } => self.containers.free(*id),
            Change::SetCompression(compression) => self.compression = *compression,
            Change::Opened { .. } | Change::Carry { .. } => {}
            volume_change => self.apply_to_catalog(volume_change),
        }
    }

    /// Takes a PBN, and counts its chunk, which nothing refers to yet.
    fn count_stored(&mut self, pbn: Pbn, pba: Pba) {
        if pbn.0 == self.next_pbn {
            self.next_pbn += 1;
        } else {
            self.free.pop(&mut self.store);
        }
        self.totals.dead_chunks += 1;
        self.totals.dead_frame_bytes += u64::from(pba.length_bytes);
        self.fill(pba);
    }

    fn fill(&mut self, pba: Pba) {
        let end_bytes = pba.offset_bytes + pba.length_bytes;
        self.containers.fill_to(pba.container, end_bytes);
        let mut open = self.open_containers.iter_mut().flatten();
        if let Some(open) = open.find(|open| open.id == pba.container) {
            open.fill_bytes = open.fill_bytes.max(end_bytes);
        }
    }

    pub(crate) fn retain(&mut self, pbns: &[Pbn]) {
        self.entries_seen.pbn_pba += pbns.len() as u64;
        let mut retained = Retained {
            revived: std::mem::take(&mut self.scratch.revived),
            popular_above: self.copies_above,
            popular: std::mem::take(&mut self.popular),
        };
        pbn_pba::retain(&mut self.store, pbns, &mut retained);
        self.popular = retained.popular;
        for Pba { container, length_bytes, .. } in retained.revived.drain(..) {
            lower(&mut self.totals.dead_chunks, 1);
            lower(&mut self.totals.dead_frame_bytes, u64::from(length_bytes));
            self.totals.unique_chunks += 1;
            self.totals.live_frame_bytes += u64::from(length_bytes);
            self.change_live(container, length_bytes, 0);
        }
        self.scratch.revived = retained.revived;
    }

    pub(crate) fn release(&mut self, pbns: &[Pbn]) {
        self.entries_seen.pbn_pba += pbns.len() as u64;
        let mut died = std::mem::take(&mut self.scratch.died);
        pbn_pba::release(&mut self.store, pbns, &mut died);
        for Pba { container, length_bytes, .. } in died.drain(..) {
            self.totals.dead_chunks += 1;
            self.totals.dead_frame_bytes += u64::from(length_bytes);
            lower(&mut self.totals.unique_chunks, 1);
            lower(&mut self.totals.live_frame_bytes, u64::from(length_bytes));
            self.change_live(container, 0, length_bytes);
        }
        self.scratch.died = died;
    }

    fn change_live(&mut self, container: ContainerId, added_bytes: u32, removed_bytes: u32) {
        self.containers.change_live(container, added_bytes, removed_bytes);
        // Chunks that are written together lie together: mostly one container for a whole group.
        if let Some(last) = self.live_changes.last_mut()
            && last.container == container
        {
            last.added_bytes = last.added_bytes.saturating_add(added_bytes);
            last.removed_bytes = last.removed_bytes.saturating_add(removed_bytes);
            return;
        }
        self.live_changes.push(LiveChange { container, added_bytes, removed_bytes });
    }

    fn move_chunk(&mut self, pbn: Pbn, to: Pba) {
        self.entries_seen.pbn_pba += 1;
        let Some(entry) = pbn_pba::get(&self.store, pbn) else { return };
        let aside = entry.aside && !mutant!(ForgetsAside);
        pbn_pba::set(&mut self.store, pbn, PbaEntry { pba: to, aside, ..entry });
        let totals = &mut self.totals;
        let is_live = entry.references > 0;
        let frames =
            if is_live { &mut totals.live_frame_bytes } else { &mut totals.dead_frame_bytes };
        // A chunk that is stored anew because its frame was damaged may be packed otherwise.
        *frames += u64::from(to.length_bytes);
        lower(frames, u64::from(entry.pba.length_bytes));
        if is_live {
            self.change_live(entry.pba.container, 0, entry.pba.length_bytes);
            self.change_live(to.container, to.length_bytes, 0);
        }
        self.fill(to);
        let copy = second_copies::get(&self.store, pbn);
        if copy.is_some_and(|copy| copy.container == to.container) {
            self.drop_copy(pbn);
        }
    }

    fn copy_chunk(&mut self, pbn: Pbn, at: Pba) {
        if let Some(earlier) = second_copies::get(&self.store, pbn) {
            lower(&mut self.totals.copied_chunks, 1);
            lower(&mut self.totals.copy_frame_bytes, u64::from(earlier.length_bytes));
            self.change_live(earlier.container, 0, earlier.length_bytes);
        }
        second_copies::set(&mut self.store, pbn, at);
        self.totals.copied_chunks += 1;
        self.totals.copy_frame_bytes += u64::from(at.length_bytes);
        self.change_live(at.container, at.length_bytes, 0);
        self.fill(at);
    }

    fn drop_copy(&mut self, pbn: Pbn) {
        let Some(Pba { container, length_bytes, .. }) = second_copies::get(&self.store, pbn) else {
            return;
        };
        second_copies::clear(&mut self.store, pbn);
        lower(&mut self.totals.copied_chunks, 1);
        lower(&mut self.totals.copy_frame_bytes, u64::from(length_bytes));
        self.change_live(container, 0, length_bytes);
        let entry = pbn_pba::get(&self.store, pbn);
        if entry.is_some_and(|entry| self.is_popular(entry.references)) {
            self.popular.push(pbn);
        }
    }

    fn forget(&mut self, pbn: Pbn, fingerprint: &Fingerprint) {
        self.entries_seen.pbn_pba += 1;
        self.entries_seen.hash_pbn += 1;
        let Some(entry) = pbn_pba::get(&self.store, pbn) else { return };
        if !entry.aside && !mutant!(KeepsHashEntry) {
            self.hash.take_back(&mut self.store, fingerprint, pbn);
        }
        pbn_pba::clear(&mut self.store, pbn);
        if !mutant!(ForgetsCopied) {
            self.drop_copy(pbn);
        }
        self.free.push(&mut self.store, pbn);
        lower(&mut self.totals.dead_chunks, 1);
        lower(&mut self.totals.dead_frame_bytes, u64::from(entry.pba.length_bytes));
    }

    fn apply_to_catalog(&mut self, change: &Change) {
        match change {
            Change::CreateVolume { id, size_bytes, read_only, name, domain, kind } => {
                let (name, domain, size_bytes) = (name.clone(), domain.clone(), *size_bytes);
                let entry =
                    CatalogEntry::of_new_volume(*id, name, size_bytes, *read_only, domain, *kind);
                self.domains = self.domains.max(entry.domain_number());
                self.catalog.insert(entry);
                self.store.add_tree(TreeId::volume(*id), Default::default());
                self.next_volume = self.next_volume.max(id.0 + 1);
            }
            Change::ResizeVolume { id, size_bytes } => {
                if let Some(entry) = self.catalog.get_mut(*id) {
                    entry.size_bytes = *size_bytes;
                }
            }
            Change::RenameVolume { id, name } => self.catalog.rename(*id, name),
            Change::SetQuota { id, quota_bytes } => {
                if let Some(entry) = self.catalog.get_mut(*id) {
                    entry.quota_bytes = *quota_bytes;
                }
            }
            Change::SetDedup { id, dedup } => {
                if let Some(entry) = self.catalog.get_mut(*id) {
                    entry.dedup = *dedup;
                }
            }
            Change::SetReservation { id, reservation_bytes } => {
                if let Some(entry) = self.catalog.get_mut(*id) {
                    entry.reservation_bytes = *reservation_bytes;
                }
            }
            Change::SetVolumeCompression { id, compression } => {
                if let Some(entry) = self.catalog.get_mut(*id) {
                    entry.compression = *compression;
                }
            }
            version_change => self.apply_to_versions(version_change),
        }
    }
}

/// Less of a total. Nothing that this program does brings one below zero, but a root may have a
/// valid checksum and count wrongly: a check, which counts for itself, must live to say so.
pub(crate) fn lower(total: &mut u64, by: u64) {
    *total = total.saturating_sub(by);
}
