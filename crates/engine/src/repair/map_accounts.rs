//! Maps in the accounts of a repair: what each volume maps, and which of it is lost.
//!
//! A chunk is lost if its frame is, or if the leaf that maps it is and the journal says nothing of
//! it. In a rebuilt map such a chunk names a PBN that names nothing: reading it is an error,
//! writing or unmapping it makes an end of that. What was lost with one page has a PBN of its own:
//! where versions shared the page they held the same, where each had its own nobody knows, and a
//! comparison of their maps must not say that they did.
//!
//! Most leaves of most versions are *plain*: shared with the parent, untouched by the journal, and
//! nothing in them is lost. What is known of one is kept by its block, so that it is read once for
//! all versions. Memory: about 20 bytes a leaf.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use format::catalog::VolumeState;
use format::map_page::{self, SLOTS};
use format::page::Page;
use format::units::{BlockPtr, Pbn, TreeId};
use tables::pbn_pba;

use crate::check::problem::{CheckProgress, Problem};
use crate::lba_runs::LbaRuns;
use crate::repair::ledger::{Ledger, Pages, Place, VolumeLedger};
use crate::repair::survey::Survey;
use crate::repair::tree_image::TreeImage;

/// Stands for what a lost leaf mapped.
const UNKNOWN: Pbn = Pbn::MAX;

/// One leaf of a map, as it should be.
pub(crate) struct MapLeaf {
    pub(crate) index: u64,
    pub(crate) slots: Vec<Pbn>,
    /// The page on disk, if it is intact.
    pub(crate) old: Option<(BlockPtr, Page)>,
    /// Else the block of the page with which it was lost.
    lost_with: Option<u64>,
}

/// What counting the maps came to.
#[derive(Default)]
pub(crate) struct MapAccounts {
    /// By PBN.
    pub(crate) references: Vec<u32>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) lost_chunks: u64,
    /// Pages with which leaves were lost that a rebuilt map needs PBNs for, by their blocks and
    /// numbered as they were met.
    lost_with: BTreeMap<Option<u64>, u64>,
    /// How many chunks a leaf maps of which nothing is lost, by its block.
    pub(crate) plain: BTreeMap<u64, u16>,
}

/// A volume that is being counted.
struct VolumeLook<'a> {
    ledger: &'a Ledger,
    found_again: &'a BTreeSet<Pbn>,
    /// The places of chunks as the root has them that an opening takes, if that is another one.
    hidden_places: Option<&'a TreeImage>,
    is_live: bool,
    lost: LbaRuns,
    hidden: LbaRuns,
}

impl MapAccounts {
    pub(crate) fn count(
        ledger: &Ledger,
        pages: &mut Pages<'_>,
        found_again: &BTreeSet<Pbn>,
        progress: &mut dyn FnMut(CheckProgress),
    ) -> Self {
        let mut accounts = Self { references: vec![0; ledger.places.len()], ..Self::default() };
        let total = ledger.volumes.len() as u64;
        let hidden_leaves = pages.survey.newer();
        let hidden_places = hidden_leaves.and_then(|newest| newest.trees.get(&TreeId::PBN_PBA));
        for (done, (id, volume)) in (0..).zip(&ledger.volumes) {
            progress(CheckProgress { stage: "maps", done, total });
            let newest = hidden_leaves.and_then(|newest| newest.trees.get(&TreeId::volume(*id)));
            // A deleted snapshot that others share is there, but nobody can read it.
            let is_live = volume.entry.state == VolumeState::Live;
            let (lost, hidden) = Default::default();
            let mut look = VolumeLook { ledger, found_again, hidden_places, is_live, lost, hidden };
            for index in leaf_indexes(pages.survey, volume) {
                let is_hidden = newest.is_some_and(|newest| newest.lost_with(index).is_some());
                let pointer = as_on_disk(pages.survey, volume, index);
                let parent = ledger.parent_at(volume, index);
                let of_parent = |parent| as_on_disk(pages.survey, parent, index);
                let inherits_all = pointer.is_some() && pointer == parent.and_then(of_parent);
                let is_plain = pointer.is_some_and(|at| accounts.plain.contains_key(&at.block()));
                if inherits_all && is_plain && !is_hidden {
                    continue;
                }
                let Some(leaf) = map_leaf(pages, volume, index) else { continue };
                let inherited = match parent {
                    _ if inherits_all => Some(leaf.slots.clone()),
                    Some(parent) => map_leaf(pages, parent, index).map(|leaf| leaf.slots),
                    None => None,
                };
                let count = accounts.count_leaf(&mut look, &leaf, inherited.as_deref(), is_hidden);
                let plain = pointer.filter(|_| leaf.old.is_some()).zip(count);
                accounts.plain.extend(plain.map(|(at, count)| (at.block(), count)));
            }
            let chunk_bytes = pages.survey.geometry.chunk_bytes;
            let name = ledger.full_name(&volume.entry);
            accounts.problems.extend(look.lost.lost(&name, chunk_bytes));
            accounts.problems.extend(look.hidden.hidden(&name, chunk_bytes));
        }
        accounts
    }

    /// Counts one leaf beside what its parent maps there; how many chunks it maps, if all of them
    /// are where the tables say.
    fn count_leaf(
        &mut self,
        look: &mut VolumeLook<'_>,
        leaf: &MapLeaf,
        inherited: Option<&[Pbn]>,
        is_hidden: bool,
    ) -> Option<u16> {
        let (mut mapped, mut is_whole) = (0, true);
        for (slot, &pbn) in leaf.slots.iter().enumerate().filter(|(_, pbn)| !pbn.is_none()) {
            let lba = leaf.index * SLOTS as u64 + slot as u64;
            let is_own = inherited.is_none_or(|above| above[slot] != pbn);
            if let Some(references) = self.references.get_mut(pbn.0 as usize) {
                *references = references.saturating_add(u32::from(is_own));
            }
            if !look.ledger.is_known(pbn) {
                let met = self.lost_with.len() as u64;
                self.lost_with.entry(leaf.lost_with).or_insert(met);
            }
            let is_lost = !look.ledger.is_stored(pbn);
            let has_no_place = look.has_no_place(pbn);
            mapped += 1;
            is_whole &= !is_lost && !has_no_place;
            if look.is_live && is_lost {
                self.lost_chunks += 1;
                look.lost.add(lba);
            } else if look.is_live && (is_hidden || has_no_place) {
                look.hidden.add(lba);
            }
        }
        is_whole.then_some(mapped)
    }

    /// PBNs that rebuilt maps name what nobody knows by, behind all that were handed out.
    pub(crate) fn unknown_pbns(&self) -> u64 {
        self.lost_with.len() as u64
    }

    /// What a slot of a leaf holds in the rebuilt map.
    pub(crate) fn rebuilt(&self, ledger: &Ledger, leaf: &MapLeaf, pbn: Pbn) -> Pbn {
        if ledger.is_known(pbn) {
            return pbn;
        }
        let number = self.lost_with.get(&leaf.lost_with).copied().unwrap_or(0);
        Pbn(ledger.places.len() as u64 + number)
    }
}

impl VolumeLook<'_> {
    /// Whether the page that should say where a chunk is cannot, until a repair.
    fn has_no_place(&self, pbn: Pbn) -> bool {
        let (leaf, _) = pbn_pba::place(pbn);
        let is_hidden = |places: &TreeImage| places.lost_with(leaf).is_some();
        self.found_again.contains(&pbn) || self.hidden_places.is_some_and(is_hidden)
    }
}

impl VolumeLedger {
    /// Whether the journal says anything of these chunks.
    fn is_journaled(&self, lbas: &Range<u64>) -> bool {
        let at = self.cleared.partition_point(|range| range.end <= lbas.start);
        self.set.range(lbas.clone()).next().is_some()
            || self.cleared.get(at).is_some_and(|range| range.start < lbas.end)
    }
}

impl Ledger {
    /// Whether a PBN was ever handed out.
    fn is_known(&self, pbn: Pbn) -> bool {
        (pbn.0 as usize) < self.places.len()
    }

    /// Whether its frame is there.
    pub(crate) fn is_stored(&self, pbn: Pbn) -> bool {
        matches!(self.places.get(pbn.0 as usize), Some(Place::At(_)))
    }
}

/// The leaves of a volume's map that may map anything, in ascending order.
pub(crate) fn leaf_indexes(survey: &Survey, volume: &VolumeLedger) -> BTreeSet<u64> {
    let mut indexes: BTreeSet<u64> = volume.set.keys().map(|lba| lba / SLOTS as u64).collect();
    if let Some(image) = survey.base.trees.get(&volume.base) {
        indexes.extend(image.leaves.iter().map(|(index, _)| index));
        indexes.extend(image.lost());
    }
    indexes
}

/// How many leaves a rebuilt map has only to say that what they mapped is lost.
pub(crate) fn lost_leaves(survey: &Survey, volume: &VolumeLedger) -> u64 {
    if volume.entry.state != VolumeState::Live {
        return 0;
    }
    let chunks = volume.entry.chunks(survey.geometry.chunk_bytes);
    let image = survey.base.trees.get(&volume.base);
    let end = chunks.div_ceil(SLOTS as u64);
    let newer = volume.newer_map(survey).map(|(_, newer)| newer);
    image.map_or(0, |image| image.lost_leaves_before(end, newer))
}

/// Where a leaf is on disk, if that is all there is to it: the journal says nothing of it, and the
/// volume does not end in it.
pub(crate) fn as_on_disk(survey: &Survey, volume: &VolumeLedger, index: u64) -> Option<BlockPtr> {
    let lbas = index * SLOTS as u64..(index + 1) * SLOTS as u64;
    let chunks = volume.entry.chunks(survey.geometry.chunk_bytes);
    let ends_here = volume.entry.state == VolumeState::Live && chunks < lbas.end;
    let is_changed = ends_here || volume.is_journaled(&lbas);
    let image = survey.base.trees.get(&volume.base).filter(|_| !is_changed);
    image.and_then(|image| image.leaves.get(index))
}

/// A leaf of a volume's map; none when it maps nothing.
pub(crate) fn map_leaf(
    pages: &mut Pages<'_>,
    volume: &VolumeLedger,
    index: u64,
) -> Option<MapLeaf> {
    let survey = pages.survey;
    let chunks = volume.entry.chunks(survey.geometry.chunk_bytes);
    let base = survey.base.trees.get(&volume.base).map(|image| (volume.base, image));
    let lost = base.filter(|(_, image)| image.lost_with(index).is_some());
    let map = lost.and_then(|_| volume.newer_map(survey)).or(base);
    let pointer = map.and_then(|(tree, image)| Some((tree, image.leaves.get(index)?)));
    let page = pointer.and_then(|(tree, at)| pages.page(tree, index, at));
    let lost_with = match (&page, pointer) {
        (Some(_), _) => None,
        (None, Some((_, pointer))) => Some(pointer.block()),
        (None, None) => map.and_then(|(_, image)| image.lost_with(index)),
    };
    let old = pointer.zip(page).map(|((_, at), page)| (at, page));
    let on_disk = old.as_ref().map(|(_, page)| page);
    let slots = slots_of(volume, index, on_disk, lost_with.is_some(), chunks);
    slots.iter().any(|pbn| !pbn.is_none()).then_some(MapLeaf { index, slots, old, lost_with })
}

fn slots_of(
    volume: &VolumeLedger,
    index: u64,
    old: Option<&Page>,
    is_lost: bool,
    chunks: u64,
) -> Vec<Pbn> {
    let is_live = volume.entry.state == VolumeState::Live;
    let on_disk = |slot| match old {
        Some(page) => map_page::get(page, slot),
        None if is_lost && is_live => UNKNOWN,
        None => Pbn::NONE,
    };
    let lbas = (index * SLOTS as u64..).zip(0..SLOTS);
    let slots = lbas.map(|(lba, slot)| match volume.journaled(lba) {
        _ if lba >= chunks && is_live => Pbn::NONE,
        Some(pbn) => pbn,
        None => on_disk(slot),
    });
    slots.collect()
}
