//! A survey: what of superblock, roots, tables and journal is intact, and from which root to go on.
//!
//! Both roots give the same state, the older one by a longer journal. So damage to pages or to the
//! journal that only one of them needs costs nothing: the survey takes the root that loses least,
//! the newer one if neither loses more. That there is a newer one proves all records before it,
//! whichever is taken: a frame that one of them names and that is not there is a lost chunk.
//!
//! Going on from the older root never loses more of maps than going on from the newer: a leaf that
//! it has lost is taken from below that ([`crate::repair::ledger::VolumeLedger::newer_map`]).

use std::cmp::Ordering;
use std::collections::BTreeMap;

use disk::{IoError, ZoneName};
use format::catalog::{self, CatalogEntry};
use format::pointer_page::FANOUT;
use format::root::{JournalPosition, Root, TREES};
use format::superblock::{GEOMETRY_BLOCKS, Geometry, ROOT_BLOCKS, SUPERBLOCK_BYTES};
use format::units::{BlockPtr, PageId, TreeId, TreeRoot, Zone};
use format::{container_page, map_page, pba_page};
use tables::HashPbn;

use crate::check::problem::{CheckProgress, Problem};
use crate::geometry::{of_blank, refuse_newer};
use crate::open::open_error::OpenError;
use crate::repair::damage_reads::DamageReads;
use crate::repair::journal_image::{Behind, JournalImage};
use crate::repair::labels::{self, Labels};
use crate::repair::tree_image::{Blocks, Intact, TreeImage, TreeWalk, read_pages};

/// A root and the trees below it.
pub(crate) struct RootImage {
    pub(crate) root: Root,
    pub(crate) volumes: Vec<CatalogEntry>,
    pub(crate) trees: BTreeMap<TreeId, TreeImage>,
    pub(crate) blocks: Blocks,
    pub(crate) journal: JournalImage,
}

impl RootImage {
    /// Whether a page below this root, or a record behind it, is damaged.
    pub(crate) fn is_damaged(&self) -> bool {
        self.journal.is_damaged() || self.trees.values().any(|tree| !tree.damaged.is_empty())
    }

    /// What going on from here would lose that the other root may have, most important first: a
    /// journal, volumes, records. Where both journals are damaged, the older one may end long
    /// before the newer root.
    fn loss(&self) -> (bool, u64, u64) {
        // Of a leaf that has a valid checksum and is invalid, nothing is lost but all that it says.
        let bad_leaves = |tree: &TreeImage| tree.damaged.iter().filter(|id| id.level == 0).count();
        let catalog = self.trees.get(&TreeId::CATALOG).map_or(0, bad_leaves) as u64
            + self.lost_leaves(|id| id == TreeId::CATALOG);
        (self.journal.is_damaged(), catalog, self.journal.lost_records())
    }

    fn lost_leaves(&self, of: impl Fn(TreeId) -> bool) -> u64 {
        let trees = self.trees.iter().filter(|(id, _)| of(**id));
        trees.map(|(_, tree)| tree.lost_leaves()).sum()
    }

    /// Whether less is lost by going on from this root than from the newer one. Of maps, no more is
    /// ever lost: what this has not is taken from there, and the journal behind this says more. A
    /// damaged inner page below which all is found again loses nothing.
    fn loses_less_than(&self, newest: &Self) -> bool {
        let of_maps = |root: &Self| root.lost_leaves(|id| id.volume_id().is_some());
        let of_tables = |root: &Self| root.lost_leaves(|id| id.volume_id().is_none());
        match self.loss().cmp(&newest.loss()) {
            Ordering::Equal => of_maps(newest) > 0 || of_tables(self) < of_tables(newest),
            other => other.is_lt(),
        }
    }
}

/// What a survey found.
pub(crate) struct Survey {
    pub(crate) geometry: Geometry,
    /// Blocks of the superblock whose copy of the geometry is damaged.
    pub(crate) bad_copies: Vec<u64>,
    /// The root to go on from.
    pub(crate) base: RootImage,
    pub(crate) other: Option<RootImage>,
    /// Whether the base is the root that an opening takes.
    pub(crate) base_is_newest: bool,
    /// Whether geometry or roots are gone from the superblock: they are those of labels.
    pub(crate) by_labels: bool,
    pub(crate) problems: Vec<Problem>,
}

impl Survey {
    /// Blocks of the tables that a root leads to.
    pub(crate) fn blocks_in_use(&self) -> Blocks {
        let mut used = self.base.blocks.clone();
        self.other.iter().for_each(|other| used.add_all(&other.blocks));
        used
    }

    /// The root that an opening takes, if another is better to go on from.
    pub(crate) fn newer(&self) -> Option<&RootImage> {
        self.other.as_ref().filter(|_| !self.base_is_newest)
    }

    /// The root that an opening takes, and the one before it.
    pub(crate) fn by_age(&self) -> (&RootImage, Option<&RootImage>) {
        match self.newer() {
            Some(newer) => (newer, Some(&self.base)),
            None => (&self.base, self.other.as_ref()),
        }
    }

    /// Looks at everything but containers.
    pub(crate) fn of(
        reads: &mut DamageReads,
        progress: &mut dyn FnMut(CheckProgress),
    ) -> Result<Self, OpenError> {
        let mut problems = Vec::new();
        let mut labels = Labels::default();
        let (geometry, bad_copies) = match geometry(reads) {
            Err(error @ (OpenError::Geometry(_) | OpenError::Unfinished)) => {
                labels.geometry(reads).ok_or_else(|| no_label(error, reads))?
            }
            other => other?,
        };
        let copy = |&block: &u64| Problem::GeometryCopy { block };
        problems.extend(bad_copies.iter().map(copy));
        problems.extend(short_zones(reads, &geometry));
        let (mut roots, told) = match roots(reads, &geometry, &mut problems) {
            Ok(roots) => roots,
            Err(error) => {
                let found = labels.roots(reads, &geometry, &mut problems);
                (found.ok_or_else(|| no_label(error, reads))?, None)
            }
        };
        roots.sort_by_key(|root| std::cmp::Reverse(root.generation));
        let mut roots = roots.into_iter();
        let Some(newest) = roots.next() else { return Err(no_roots()) };
        let behind = Behind::whole_ring(reads, &geometry);
        let mut images = Images { reads, geometry: &geometry, intact: Intact::default(), behind };
        let newest = images.of(newest, told, progress);
        let mut older = roots.next().map(|root| images.of(root, None, progress));
        if let Some(older) = &mut older {
            // The newer root proves that all before it was durable.
            older.journal.proven_up_to(newest.root.journal.sequence.saturating_sub(1));
        }
        let older_is_better = older.as_ref().is_some_and(|older| older.loses_less_than(&newest));
        let (base, other) = match older {
            Some(older) if older_is_better => (older, Some(newest)),
            older => (newest, older),
        };
        let base_is_newest = !older_is_better;
        let by_labels = labels.are_needed();
        let mut survey =
            Self { geometry, bad_copies, base, other, base_is_newest, by_labels, problems };
        survey.name_damage();
        let older = survey.by_age().1.map_or(0, |older| older.root.label);
        survey.problems.extend(labels::damage(reads, survey.geometry.uuid, older));
        Ok(survey)
    }

    /// Whether an opening would fail or lose something.
    pub(crate) fn is_fatal(&self) -> bool {
        let short = |problem: &Problem| matches!(problem, Problem::ShortZone { .. });
        !self.base_is_newest
            || self.by_labels
            || self.base.is_damaged()
            || self.problems.iter().any(short)
    }

    /// What is wrong with a journal whose records are not applied from `at` on, although they
    /// are there; `is_proven`: they are known to have been durable. Otherwise it is what a crash
    /// leaves, unless a root is lost that might have told.
    pub(crate) fn cut_problem(&self, at: JournalPosition, is_proven: bool) -> Option<Problem> {
        let JournalPosition { sequence, offset_bytes, .. } = at;
        let last_sequence = self.base.journal.end.sequence - 1;
        let is_root = |problem: &Problem| matches!(problem, Problem::RootSlot { .. });
        match is_proven {
            true => Some(Problem::Journal { sequence, offset_bytes, last_sequence }),
            false if self.problems.iter().any(is_root) => {
                Some(Problem::CutJournal { sequence, offset_bytes, last_sequence })
            }
            false => None,
        }
    }

    fn name_damage(&mut self) {
        let (newest, older) = self.by_age();
        let mut problems: Vec<_> = damaged_pages(newest).map(page_problem).collect();
        problems.extend(newest.journal.is_damaged().then(|| {
            let JournalImage { end, behind, .. } = &newest.journal;
            let (sequence, offset_bytes) = (end.sequence, end.offset_bytes);
            Problem::Journal { sequence, offset_bytes, last_sequence: behind.last_sequence }
        }));
        problems.extend(self.base.journal.is_cut_short.then(|| {
            let JournalPosition { sequence, offset_bytes, .. } = self.base.journal.end;
            Problem::ShortJournal { sequence, offset_bytes }
        }));
        let catalog = self.base.trees.get(&TreeId::CATALOG);
        let lost = catalog.iter().flat_map(|catalog| catalog.lost());
        problems.extend(lost.map(|index| Problem::LostCatalog { index }));
        if let Some(older) = older {
            let shared = |id: &PageId| damaged_pages(newest).any(|other| other == *id);
            let own = damaged_pages(older).filter(|id| !shared(id));
            problems.extend(own.map(|PageId { tree, level, index }| Problem::OlderPage {
                table: tree.to_string(),
                level,
                index,
            }));
            let end = older.journal.end;
            // Its journal has to reach where the newer root goes on.
            if end.sequence < newest.root.journal.sequence {
                let (sequence, offset_bytes) = (end.sequence, end.offset_bytes);
                problems.push(Problem::OlderJournal { sequence, offset_bytes });
            }
        }
        self.problems.extend(problems);
    }
}

fn damaged_pages(image: &RootImage) -> impl Iterator<Item = PageId> {
    image.trees.values().flat_map(|tree| tree.damaged.iter().copied())
}

fn page_problem(PageId { tree, level, index }: PageId) -> Problem {
    match level {
        0 => Problem::DamagedPage { tree: tree.0, index },
        _ => Problem::DamagedInnerPage { table: tree.to_string(), level, index },
    }
}

/// That there is no root to go on from.
fn no_roots() -> OpenError {
    OpenError::Unfinished
}

/// Why there is nothing to go on from: the superblock has lost it, and no label says more.
fn no_label(error: OpenError, reads: &mut DamageReads) -> OpenError {
    short_superblock(reads).unwrap_or_else(|| of_blank(error, &mut reads.devices))
}

/// That the file of the superblock is too short for what should be in it.
fn short_superblock(reads: &DamageReads) -> Option<OpenError> {
    let (zone, expected_bytes) = (Zone::Superblock, SUPERBLOCK_BYTES);
    let found_bytes = reads.devices.size_bytes(zone);
    let short = found_bytes < expected_bytes;
    short.then_some(OpenError::ZoneTooShort { zone, expected_bytes, found_bytes })
}

fn geometry(reads: &mut DamageReads) -> Result<(Geometry, Vec<u64>), OpenError> {
    let mut bad = Vec::new();
    let (mut found, mut failure) = (None, None);
    let mut blank = true;
    let blocks = GEOMETRY_BLOCKS.map(|block| (block, reads.block(Zone::Superblock, block)));
    refuse_newer(blocks.iter().map(|(_, bytes)| &**bytes))?;
    for (block, bytes) in blocks {
        blank &= bytes.iter().all(|&byte| byte == 0);
        match Geometry::decode(&bytes) {
            Ok(geometry) => found = found.or(Some(geometry)),
            Err(error) => {
                bad.push(block);
                failure = failure.or(Some(error).filter(|_| !blank));
            }
        }
    }
    match (found, failure) {
        (Some(geometry), _) => Ok((geometry, bad)),
        (None, Some(error)) => Err(OpenError::Geometry(error)),
        (None, None) => Err(no_roots()),
    }
}

fn short_zones(reads: &DamageReads, geometry: &Geometry) -> Vec<Problem> {
    let problem = |(zone, expected_bytes)| {
        let found_bytes = reads.devices.size_bytes(zone);
        let zone = ZoneName(zone).to_string();
        let short = found_bytes < expected_bytes;
        short.then_some(Problem::ShortZone { zone, expected_bytes, found_bytes })
    };
    geometry.zones().filter_map(problem).collect()
}

/// The roots that are sound, and where the journal goes on according to one that is not.
fn roots(
    reads: &mut DamageReads,
    geometry: &Geometry,
    problems: &mut Vec<Problem>,
) -> Result<(Vec<Root>, Option<JournalPosition>), OpenError> {
    let (mut roots, mut told) = (Vec::new(), None);
    let mut damaged = Vec::new();
    for block in ROOT_BLOCKS {
        let bytes = reads.block(Zone::Superblock, block);
        match Root::decode_in(&bytes, geometry) {
            Ok(root) => roots.push(root),
            Err(error) => {
                told = Root::journal_in_damaged(&bytes, geometry.uuid);
                damaged.push((block, error, bytes.iter().all(|&byte| byte == 0)));
            }
        }
    }
    let [first, ..] = &roots[..] else {
        let blank = damaged.iter().all(|(_, _, blank)| *blank);
        let error = damaged.pop().filter(|_| !blank);
        return Err(error.map_or_else(no_roots, |(_, error, _)| OpenError::Roots(error)));
    };
    // A store that has seen no checkpoint has nothing in the other slot.
    let is_young = first.generation <= 1;
    let bad = damaged.into_iter().filter(|(_, _, blank)| !(is_young && *blank));
    problems.extend(bad.map(|(block, _, _)| Problem::RootSlot { block }));
    Ok((roots, told))
}

/// Makes images of roots, one after the other.
struct Images<'a> {
    reads: &'a mut DamageReads,
    geometry: &'a Geometry,
    intact: Intact,
    /// What stands anywhere in the journal.
    behind: Behind,
}

impl Images<'_> {
    /// Everything below a root. `told` is where the journal goes on behind a damaged one.
    fn of(
        &mut self,
        root: Root,
        told: Option<JournalPosition>,
        progress: &mut dyn FnMut(CheckProgress),
    ) -> RootImage {
        let tables_blocks = self.geometry.tables_blocks();
        let mut blocks = Blocks::new(tables_blocks);
        blocks.insert(root.label);
        let mut trees = BTreeMap::new();
        for (number, tree_root) in (0..TREES as u32).zip(root.trees) {
            let tree = TreeId(number);
            let leaves_end = leaves_end(&root, self.geometry, tree);
            trees.insert(tree, self.tree(&mut blocks, leaves_end, tree, tree_root));
        }
        let (reads, geometry) = (&mut *self.reads, self.geometry);
        let journal = JournalImage::read(reads, geometry, root.journal, self.behind, told);
        let mut image = RootImage { root, volumes: Vec::new(), trees, blocks, journal };
        image.volumes = volumes(reads, tables_blocks, &mut image);
        let total = image.volumes.len() as u64;
        for (done, volume) in (0..).zip(&image.volumes) {
            progress(CheckProgress { stage: "structures", done, total });
            let tree = TreeId::volume(volume.id);
            let chunks = volume.chunks(geometry.chunk_bytes);
            let leaves_end = chunks.div_ceil(map_page::SLOTS as u64);
            let walked = self.tree(&mut image.blocks, leaves_end, tree, volume.root);
            image.trees.insert(tree, walked);
        }
        image
    }

    fn tree(
        &mut self,
        blocks: &mut Blocks,
        leaves_end: u64,
        tree: TreeId,
        root: TreeRoot,
    ) -> TreeImage {
        let tables_blocks = self.geometry.tables_blocks();
        let (reads, intact) = (&mut *self.reads, &mut self.intact);
        TreeWalk { reads, tables_blocks, blocks, intact, leaves_end, ahead: Default::default() }
            .walk(tree, root)
    }
}

/// Leaves that a tree can have.
fn leaves_end(root: &Root, geometry: &Geometry, tree: TreeId) -> u64 {
    match tree {
        TreeId::CATALOG => root.catalog_slots.div_ceil(catalog::SLOTS as u64),
        TreeId::HASH_PBN | TreeId::YOUNG | TreeId::HASH_FILTER => {
            HashPbn::leaves_end(&root.hash, geometry.detection.filter, tree)
        }
        // No more buckets than chunks, and of each up to eight further pages.
        TreeId::LINEAR_HASH => root.next_pbn,
        TreeId::LINEAR_OVERFLOW => 8 * root.next_pbn,
        TreeId::PBN_PBA | TreeId::COPIES => root.next_pbn.div_ceil(pba_page::SLOTS as u64),
        TreeId::FREE_PBNS => root.free_tail.div_ceil(map_page::SLOTS as u64),
        _ => geometry.containers_total().div_ceil(container_page::SLOTS as u64),
    }
}

/// The volumes that intact leaves of the catalog hold.
fn volumes(
    reads: &mut DamageReads,
    tables_blocks: u64,
    image: &mut RootImage,
) -> Vec<CatalogEntry> {
    let Some(tree) = image.trees.get_mut(&TreeId::CATALOG) else { return Vec::new() };
    let mut volumes = Vec::new();
    let id = |index| PageId { tree: TreeId::CATALOG, level: 0, index };
    let leaves: Vec<(PageId, BlockPtr)> =
        tree.leaves.iter().map(|(index, pointer)| (id(index), pointer)).collect();
    let read = leaves.chunks(FANOUT).flat_map(|some| read_pages(reads, tables_blocks, some));
    for ((id, _), page) in leaves.iter().zip(read) {
        let Ok(page) = page else { continue };
        for slot in 0..catalog::SLOTS {
            match catalog::get(&page, slot) {
                Ok(entry) => volumes.extend(entry),
                Err(_) => tree.damaged.push(*id),
            }
        }
    }
    volumes
}

/// Whether an error means that the device failed, rather than that bytes are not there.
pub(crate) fn is_device_failure(error: &IoError) -> bool {
    !matches!(
        error,
        IoError::OutOfRange { .. } | IoError::EndOfFile { .. } | IoError::NoSuchZone { .. }
    )
}
