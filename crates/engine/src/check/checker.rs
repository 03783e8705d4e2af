//! The walks of a check. See [`crate::check()`].

use std::collections::BTreeSet;

use containers::directory_of;
use disk::AlignedBuf;
use format::catalog::{CatalogEntry, VolumeState};
use format::container_page::ContainerState;
use format::frame;
use format::page::Page;
use format::root::Totals;
use format::superblock::Geometry;
use format::units::{ContainerId, Lba, Pba, Pbn, TreeId};
use format::{map_page, pba_page};
use tables::{NextLeaf, PageError, PageRead, lba_pbn, pbn_pba};

use crate::check::directories::directory_problems;
use crate::check::mapped_in::MappedIn;
use crate::check::problem::{CheckProgress, CheckReport, Problem};
use crate::lba_runs::LbaRuns;
use crate::open::Opened;
use crate::open::loading::Loading;
use crate::open::open_error::OpenError;
use crate::repair::damage_reads::read_with_holes;
use crate::state::State;

/// Leaves that are read together.
const LEAVES_AHEAD: usize = 256;

/// A frame's place.
pub(crate) struct Stored {
    pub(crate) pba: Pba,
    pub(crate) pbn: Pbn,
    pub(crate) kind: Kind,
}

/// What a frame is to its chunk.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Live,
    Dead,
    SecondCopy,
}

/// What the walks have gathered so far.
pub(crate) struct Checker {
    pub(crate) loading: Loading,
    pub(crate) geometry: Geometry,
    pub(crate) report: CheckReport,
    /// How often maps name each PBN.
    pub(crate) references: Vec<u32>,
    pub(crate) stored: Vec<Stored>,
    pub(crate) mapped_in: MappedIn,
    /// PBNs that the PBN-PBA table knows: bit by PBN.
    pub(crate) known: Vec<bool>,
    /// PBNs of which it says that they are in no other table.
    pub(crate) asides: Vec<bool>,
    pub(crate) fingerprinted: Vec<bool>,
    /// The first bytes of each fingerprint in the Hash-PBN table, by PBN.
    pub(crate) fingerprints: Vec<u64>,
    lost: BTreeSet<Pbn>,
    /// Chunks whose second copies are sound.
    copied: BTreeSet<Pbn>,
    /// Containers whose sealing no sync is known to cover: an opening mends their directories.
    to_mend: Vec<ContainerId>,
}

impl Checker {
    pub(crate) fn new(opened: Opened) -> Self {
        let Opened { geometry, devices, state, batches, report, recovered, .. } = opened;
        let pbns = state.next_pbn as usize;
        let records_replayed = report.records_replayed;
        let has_domains = geometry.detection.secret.is_some() || state.domains > 0;
        let mapped_in = MappedIn::new(has_domains, pbns);
        let Totals { unique_chunks, dead_chunks, copied_chunks, .. } = state.totals;
        // What is recorded may be wrong, and no chunk has more than one second copy.
        let stored = unique_chunks.saturating_add(dead_chunks).min(pbns as u64)
            + copied_chunks.min(pbns as u64);
        let stored = stored as usize;
        Self {
            loading: Loading {
                devices,
                state,
                may_write: false,
                kept_blocks: 0,
                unread: None,
                batches,
            },
            geometry,
            report: CheckReport { records_replayed, ..CheckReport::default() },
            references: vec![0; pbns],
            stored: Vec::with_capacity(stored),
            mapped_in,
            known: vec![false; pbns],
            asides: vec![false; pbns],
            fingerprinted: vec![false; pbns],
            fingerprints: vec![0; pbns],
            lost: BTreeSet::new(),
            copied: BTreeSet::new(),
            to_mend: recovered.sealed,
        }
    }

    pub(crate) fn into_report(self) -> CheckReport {
        self.report
    }

    pub(crate) fn found(&mut self, problem: Problem) {
        self.report.problems.push(problem);
    }

    /// Calls `look` with every leaf of a tree; a damaged leaf is a problem and is passed over.
    pub(crate) fn each_leaf(
        &mut self,
        tree: TreeId,
        mut look: impl FnMut(&mut Self, u64, &Page),
    ) -> Result<(), OpenError> {
        let mut from = 0;
        while let Some(index) = self.next_leaf(tree, &mut from)? {
            let page = self.loading.state.store.page(tree, index).cloned();
            if let Some(page) = page {
                look(self, index, &page);
            }
            self.loading.state.store.shrink();
            from = index + 1;
        }
        Ok(())
    }

    /// The next leaf from `from` on, resident.
    fn next_leaf(&mut self, tree: TreeId, from: &mut u64) -> Result<Option<u64>, OpenError> {
        loop {
            let mut reads = Vec::new();
            match self.loading.state.store.next_leaf(tree, *from, &mut reads) {
                Ok(NextLeaf::End) => return Ok(None),
                Ok(NextLeaf::Missing) => self.load(reads)?,
                Ok(NextLeaf::Found(index)) => {
                    let next = |state: &mut State, at, reads: &mut _| {
                        state.store.next_leaf(tree, at, reads)
                    };
                    self.read_ahead(&[tree], index, next)?;
                    if self.bring(tree, index)? {
                        return Ok(Some(index));
                    }
                    *from = index + 1;
                }
                Err(error) => {
                    let index = error.page().index;
                    self.found(Problem::DamagedPage { tree: tree.0, index });
                    return Ok(None);
                }
            }
        }
    }

    /// Reads a leaf of these maps, and those that `next` gives behind it, together, unless it is
    /// here. What is damaged is told by [`Self::bring`].
    pub(crate) fn read_ahead(
        &mut self,
        trees: &[TreeId],
        leaf: u64,
        next: impl Fn(&mut State, u64, &mut Vec<PageRead>) -> Result<NextLeaf, PageError>,
    ) -> Result<(), OpenError> {
        let state = &mut self.loading.state;
        if trees.iter().all(|&tree| state.store.page(tree, leaf).is_some()) {
            return Ok(());
        }
        let mut reads = Vec::new();
        state.want_ahead(trees, (leaf, u64::MAX), LEAVES_AHEAD, &mut reads, next);
        self.load(reads)
    }

    /// Makes a leaf resident; false, and a problem, when it is damaged.
    pub(crate) fn bring(&mut self, tree: TreeId, index: u64) -> Result<bool, OpenError> {
        let want = self.loading.wait_for(|state, wanted| {
            state.store.want(&mut wanted.pins, tree, index, &mut wanted.reads)
        });
        match want {
            Ok(wanted) => {
                self.loading.state.store.release_pins(wanted.pins);
                Ok(true)
            }
            Err(OpenError::Page(_)) => {
                self.found(Problem::DamagedPage { tree: tree.0, index });
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn load(&mut self, reads: Vec<PageRead>) -> Result<(), OpenError> {
        match self.loading.load_pages(reads) {
            // A damaged page is remembered and met again by the next that wants it.
            Ok(()) | Err(OpenError::Page(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn volumes(&self) -> Vec<CatalogEntry> {
        self.loading.state.catalog.iter().cloned().collect()
    }

    /// Compares the PBN-PBA table with what the maps name, and gathers places.
    pub(crate) fn check_chunks(
        &mut self,
        progress: &mut dyn FnMut(CheckProgress),
    ) -> Result<(), OpenError> {
        let total = self.loading.state.next_pbn;
        self.each_leaf(TreeId::PBN_PBA, |checker, leaf, page| {
            let done = leaf * pba_page::SLOTS as u64;
            progress(CheckProgress { stage: "chunks", done, total });
            for (pbn, entry) in pbn_pba::entries(leaf, page) {
                checker.check_chunk(pbn, entry);
            }
        })?;
        let unknown = |&at: &usize| self.references[at] > 0 && !self.known[at];
        let lost: Vec<usize> = (0..self.references.len()).filter(unknown).collect();
        self.lost.extend(lost.into_iter().map(|pbn| Pbn(pbn as u64)));
        self.tell_shared();
        Ok(())
    }

    fn check_chunk(&mut self, pbn: Pbn, entry: pba_page::PbaEntry) {
        let counted = self.references.get(pbn.0 as usize).copied().unwrap_or(0);
        if !pbn_pba::is_count_of(entry.references, counted) {
            let recorded = entry.references;
            self.found(Problem::References { pbn: pbn.0, counted, recorded });
        }
        if let Some(known) = self.known.get_mut(pbn.0 as usize) {
            *known = true;
        }
        if let Some(aside) = self.asides.get_mut(pbn.0 as usize) {
            *aside = entry.aside;
        }
        self.report.stored_chunks += 1;
        let kind = if entry.references > 0 { Kind::Live } else { Kind::Dead };
        self.stored.push(Stored { pba: entry.pba, pbn, kind });
    }

    /// No free PBN names a chunk, none is free twice.
    pub(crate) fn check_free_pbns(&mut self) -> Result<(), OpenError> {
        let free = &self.loading.state.free;
        let (head, tail) = (free.head(), free.tail());
        let mut seen = BTreeSet::new();
        self.each_leaf(TreeId::FREE_PBNS, |checker, leaf, page| {
            for slot in 0..map_page::SLOTS {
                let place = leaf * map_page::SLOTS as u64 + slot as u64;
                let pbn = map_page::get(page, slot);
                if (head..tail).contains(&place)
                    && (checker.known.get(pbn.0 as usize) != Some(&false) || !seen.insert(pbn))
                {
                    checker.found(Problem::FreePbnInUse { pbn: pbn.0 });
                }
            }
        })
    }

    /// Compares containers with the chunks that lie in them, and reads every frame.
    pub(crate) fn check_containers(
        &mut self,
        progress: &mut dyn FnMut(CheckProgress),
    ) -> Result<(), OpenError> {
        let mut stored = std::mem::take(&mut self.stored);
        stored.sort_unstable_by_key(|chunk| {
            (chunk.pba.container, chunk.pba.offset_bytes, chunk.pbn, chunk.kind)
        });
        let total = self.geometry.containers_total();
        let ids: Vec<ContainerId> =
            self.loading.state.containers.iter().map(|(id, _)| id).collect();
        let mut rest = &stored[..];
        for id in ids {
            let count = rest.partition_point(|chunk| chunk.pba.container <= id);
            let (chunks, after) = rest.split_at(count);
            rest = after;
            progress(CheckProgress { stage: "containers", done: u64::from(id.0), total });
            self.check_container(id, chunks);
        }
        for chunk in rest {
            self.misplaced(chunk);
        }
        self.stored = stored;
        Ok(())
    }

    fn misplaced(&mut self, chunk: &Stored) {
        let Pba { container, offset_bytes, .. } = chunk.pba;
        let (pbn, container) = (chunk.pbn.0, container.0);
        self.found(Problem::FrameMisplaced { pbn, container, offset_bytes });
        if chunk.kind != Kind::SecondCopy {
            self.lost.insert(chunk.pbn);
        }
    }

    fn check_container(&mut self, id: ContainerId, chunks: &[Stored]) {
        let entry = self.loading.state.containers.get(id);
        let live = chunks.iter().filter(|chunk| chunk.kind != Kind::Dead);
        let counted: u64 = live.map(|chunk| u64::from(chunk.pba.length_bytes)).sum();
        if counted != u64::from(entry.live_bytes) {
            let (container, recorded) = (id.0, u64::from(entry.live_bytes));
            self.found(Problem::LiveBytes { container, counted, recorded });
        }
        for pair in chunks.windows(2) {
            if pair[0].pba.offset_bytes + pair[0].pba.length_bytes > pair[1].pba.offset_bytes {
                let (container, pbn, other) = (id.0, pair[0].pbn.0, pair[1].pbn.0);
                self.found(Problem::FramesOverlap { container, pbn, other });
            }
        }
        let end = |chunk: &&Stored| chunk.pba.offset_bytes + chunk.pba.length_bytes;
        let free = entry.state == ContainerState::Free;
        for chunk in chunks.iter().filter(|chunk| free || end(chunk) > entry.used_bytes) {
            self.misplaced(chunk);
        }
        if !free {
            self.report.containers += 1;
            self.check_frames(id, entry.state, entry.sequence, chunks);
        }
    }

    fn check_frames(
        &mut self,
        id: ContainerId,
        state: ContainerState,
        sequence: u32,
        chunks: &[Stored],
    ) {
        let image = self.read_container(id);
        for chunk in chunks {
            let frame = image.get(chunk.pba.range());
            let meant = frame.and_then(|frame| frame::meant(frame, chunk.pbn, chunk.pba.check));
            self.report.frames_verified += 1;
            let elsewhere = meant.and_then(|header| self.mapped_in.check(&header));
            self.report.problems.extend(elsewhere);
            match (meant.is_some(), chunk.kind) {
                (true, Kind::SecondCopy) => drop(self.copied.insert(chunk.pbn)),
                (true, _) => {}
                (false, Kind::SecondCopy) => {
                    self.found(Problem::DamagedCopy { pbn: chunk.pbn.0, container: id.0 });
                }
                (false, _) => {
                    self.found(Problem::DamagedFrame { pbn: chunk.pbn.0, container: id.0 });
                    self.lost.insert(chunk.pbn);
                }
            }
        }
        if state == ContainerState::Sealed && !self.to_mend.contains(&id) {
            self.check_directory(id, sequence, &image, chunks);
        }
    }

    /// A container's bytes; what the device does not give is zeros, and a problem.
    fn read_container(&mut self, id: ContainerId) -> AlignedBuf {
        let devices = &mut self.loading.devices;
        let (image, failed) = read_with_holes(devices, &self.geometry, id);
        if !failed.is_empty() {
            self.found(Problem::UnreadableContainer { container: id.0 });
        }
        image
    }

    fn check_directory(&mut self, id: ContainerId, sequence: u32, image: &[u8], chunks: &[Stored]) {
        let Ok(entries) = directory_of(id, sequence, self.geometry.uuid, image) else {
            self.found(Problem::Directory { container: id.0 });
            return;
        };
        let placed = chunks.iter().map(|chunk| (chunk.pba, chunk.pbn));
        let known = |pbn: Pbn| {
            let at = pbn.0 as usize;
            let is_aside = self.fingerprinted.get(at) == Some(&false);
            (!is_aside).then(|| self.fingerprints.get(at).copied().unwrap_or(0))
        };
        let problems = directory_problems(id, &entries, placed, known);
        self.report.problems.extend(problems);
    }

    /// Compares the totals of the store with what was counted.
    pub(crate) fn check_totals(&mut self) {
        let totals = self.loading.state.totals;
        let sum = |kind: Kind| {
            let chunks = self.stored.iter().filter(|chunk| chunk.kind == kind);
            chunks.fold((0, 0), |(count, bytes), chunk| {
                (count + 1, bytes + u64::from(chunk.pba.length_bytes))
            })
        };
        let ((unique, live_bytes), (dead, dead_bytes)) = (sum(Kind::Live), sum(Kind::Dead));
        let (copied, copy_bytes) = sum(Kind::SecondCopy);
        let mapped = self.report.mapped_chunks;
        for (what, counted, recorded) in [
            ("mapped chunks", mapped, totals.mapped_chunks),
            ("unique chunks", unique, totals.unique_chunks),
            ("bytes of live frames", live_bytes, totals.live_frame_bytes),
            ("dead chunks", dead, totals.dead_chunks),
            ("bytes of dead frames", dead_bytes, totals.dead_frame_bytes),
            ("second copies", copied, totals.copied_chunks),
            ("bytes of second copies", copy_bytes, totals.copy_frame_bytes),
        ] {
            if counted != recorded {
                self.found(Problem::Total { what: what.into(), counted, recorded });
            }
        }
    }

    /// Says which chunks of which volumes lost frames mean.
    pub(crate) fn name_losses(
        &mut self,
        progress: &mut dyn FnMut(CheckProgress),
    ) -> Result<(), OpenError> {
        // What has a sound second copy can be read.
        self.lost.retain(|pbn| !self.copied.contains(pbn));
        if self.lost.is_empty() {
            return Ok(());
        }
        let volumes = self.volumes();
        let total = volumes.len() as u64;
        let live = volumes.iter().filter(|volume| volume.state == VolumeState::Live);
        for (done, volume) in (0..).zip(live) {
            progress(CheckProgress { stage: "losses", done, total });
            let mut runs = LbaRuns::default();
            self.each_leaf(TreeId::volume(volume.id), |checker, leaf, page| {
                let is_lost = |(_, pbn): &(Lba, Pbn)| checker.lost.contains(pbn);
                lba_pbn::mapped(leaf, page).filter(is_lost).for_each(|(lba, _)| runs.add(lba.0));
            })?;
            let chunk_bytes = self.geometry.chunk_bytes;
            let name = self.loading.state.full_name(volume);
            self.report.problems.extend(runs.lost(&name, chunk_bytes));
        }
        Ok(())
    }
}
