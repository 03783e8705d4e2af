//! Weighing a volume: whose the chunks are that it maps, and what would go with it.
//!
//! A version holds a reference for each LBA that it maps to another chunk than its parent does,
//! and what came from it has what it does not map otherwise. So a reference goes with a version
//! where it maps the chunk, and neither its parent nor any of its children does: the same that
//! giving it back releases (`versions.rs`). A chunk of which all references go with it is nobody
//! else's.
//!
//! A version may have many children: they are seen beside a leaf one after the other, by their
//! pointers first, so that no turn takes longer, nor holds more pages, the more there are.
//!
//! Nothing is written to be exact of a store at rest; of one that changes meanwhile it is
//! what each part was when its turn came.

use format::map_page::SLOTS;
use format::units::{Lba, Pbn, TreeId, VolumeId};
use tables::{NextLeaf, PageError, lba_pbn, pbn_pba};

use crate::core::Core;
use crate::door::error::RequestError;
use crate::pages::wanted::Wanted;
use crate::state::State;
use crate::state::mapping::leaf_start;
use crate::walk::walks::Went;
use crate::walk::weight::{CountedChunk, LeafWalk, WeightRequest, WeightStep, WeightWalk};

/// Leaves that one step goes through.
const LEAVES_PER_STEP: u32 = 64;
/// Leaves, of the version and of its relatives, that are looked at before others have their turn.
const LEAVES_PER_TURN: u32 = 4;
/// Relatives that a leaf is compared with before that, most of them by their pointers.
const RELATIVES_PER_TURN: u32 = 64;
/// Relatives whose pages are read together with those of the one that is next.
const RELATIVES_AHEAD: usize = 16;
/// Leaves of the version that are read together with the one that is next.
const LEAVES_AHEAD: usize = 16;

impl State {
    /// The next map that is a change of a version's leaf, or that this is a change of: its
    /// parent's, and its children's; where one of those has given its leaf back, the maps of that
    /// one's children.
    fn next_relative(&self, id: VolumeId, at: &mut LeafWalk) -> Option<TreeId> {
        while at.others.len() <= RELATIVES_AHEAD
            && let Some(from) = at.next_child
        {
            let Some(child) = self.catalog.children_from(id, from).next() else {
                at.next_child = None;
                break;
            };
            at.next_child = child.0.checked_add(1).map(VolumeId);
            let entry = self.catalog.get(child);
            match entry.is_some_and(|entry| at.leaf < entry.lineage.given_back_leaves) {
                true => at.others.extend(self.catalog.children_of(child).map(TreeId::volume)),
                false => at.others.push_back(TreeId::volume(child)),
            }
        }
        at.others.front().copied()
    }
}

impl WeightWalk {
    pub(crate) fn begin(core: &Core, request: WeightRequest) -> Result<Self, RequestError> {
        let volume = core.volumes.get(&request.volume)?;
        let entry = core.state.catalog.get(volume.id);
        Ok(Self {
            version: volume.id,
            leaf: request.leaf,
            pbns: request.pbns,
            leaves_left: LEAVES_PER_STEP,
            several: Default::default(),
            open: None,
            step: WeightStep {
                number: volume.id.0,
                chunk_bytes: core.geometry.chunk_bytes,
                size_bytes: volume.size_bytes(),
                mapped_total: entry.map_or(0, |entry| entry.mapped_chunks),
                children: core.state.catalog.children_of(volume.id).count() as u64,
                ..WeightStep::default()
            },
        })
    }

    pub(crate) fn advance(
        &mut self,
        core: &mut Core,
        wanted: &mut Wanted,
    ) -> Result<Went, PageError> {
        let own = TreeId::volume(self.version);
        let (mut relatives, mut leaves) = (0, 0);
        while relatives < RELATIVES_PER_TURN && leaves < LEAVES_PER_TURN {
            let Some(at) = &mut self.open else {
                if self.leaves_left == 0 {
                    self.step.next_leaf = Some(self.leaf);
                    return Ok(Went::Done);
                }
                let store = &mut core.state.store;
                let leaf = match store.next_leaf(own, self.leaf, &mut wanted.reads)? {
                    NextLeaf::Found(leaf) => leaf,
                    NextLeaf::Missing => return Ok(Went::Waits),
                    NextLeaf::End => return Ok(Went::Done),
                };
                let parent = core.state.parent_at(self.version, leaf);
                self.open = Some(LeafWalk::new(leaf, parent));
                continue;
            };
            if let Some(other) = core.state.next_relative(self.version, at) {
                let Some(looked_at) = compare_leaves(core, own, other, at, wanted)? else {
                    want_relatives(core, own, at, wanted)?;
                    want_following(core, own, at.leaf, wanted);
                    return Ok(Went::Waits);
                };
                at.others.pop_front();
                (relatives, leaves) = (relatives + 1, leaves + u32::from(looked_at));
                continue;
            }
            if !want_weighed(core, own, at.leaf, wanted)? {
                want_following(core, own, at.leaf, wanted);
                return Ok(Went::Waits);
            }
            if let Some(at) = self.open.take() {
                self.weigh_leaf(core, own, &at);
                self.leaf = at.leaf + 1;
            }
            self.leaves_left -= 1;
            leaves += 1;
        }
        Ok(Went::On)
    }

    fn weigh_leaf(&mut self, core: &Core, own: TreeId, at: &LeafWalk) {
        let slots = lba_pbn::slots(&core.state.store, own, at.leaf);
        for (pbn, &goes_with_it) in slots.into_iter().zip(&at.goes) {
            if !pbn.is_none() {
                self.weigh_chunk(core, pbn, goes_with_it);
            }
        }
    }

    fn weigh_chunk(&mut self, core: &Core, pbn: Pbn, goes_with_it: bool) {
        self.step.mapped += 1;
        let Some(entry) = pbn_pba::get(&core.state.store, pbn) else {
            self.step.lost += 1;
            return;
        };
        let frame_bytes = entry.pba.length_bytes;
        if entry.references <= 1 {
            self.step.single.add(frame_bytes);
            if goes_with_it {
                self.step.single_own.add(frame_bytes);
            }
        } else if self.pbns.contains(&pbn.0) {
            let counted = self.several.entry(pbn.0).or_insert(CountedChunk {
                pbn: pbn.0,
                references: entry.references,
                frame_bytes,
                mapped: 0,
                own: 0,
            });
            counted.mapped += 1;
            counted.own += u32::from(goes_with_it);
        }
    }
}

/// Notes what a relative maps as well; whether its leaf had to be looked at. None while pages
/// are on their way.
fn compare_leaves(
    core: &mut Core,
    own: TreeId,
    other: TreeId,
    at: &mut LeafWalk,
    wanted: &mut Wanted,
) -> Result<Option<bool>, PageError> {
    let store = &mut core.state.store;
    match store.shares_leaf((own, other), at.leaf, &mut wanted.reads)? {
        None => return Ok(None),
        Some(true) => {
            at.keeps_all();
            return Ok(Some(false));
        }
        Some(false) => {}
    }
    let mut here = true;
    for tree in [own, other] {
        here &= store.want(&mut wanted.pins, tree, at.leaf, &mut wanted.reads)?;
    }
    if !here {
        return Ok(None);
    }
    let slots = |tree| lba_pbn::slots(&core.state.store, tree, at.leaf);
    let slots = slots(own).into_iter().zip(slots(other));
    let mut goes_any = false;
    for (goes, (pbn, of_other)) in at.goes.iter_mut().zip(slots) {
        *goes &= pbn != of_other;
        goes_any |= *goes && !pbn.is_none();
    }
    if !goes_any {
        at.keeps_all();
    }
    Ok(Some(true))
}

/// Asks for what the relatives that follow will need, while pages of the next one are read.
fn want_relatives(
    core: &mut Core,
    own: TreeId,
    at: &LeafWalk,
    wanted: &mut Wanted,
) -> Result<(), PageError> {
    let store = &mut core.state.store;
    for &other in at.others.iter().skip(1).take(RELATIVES_AHEAD) {
        if store.shares_leaf((own, other), at.leaf, &mut wanted.reads)? == Some(false) {
            store.want(&mut wanted.pins, other, at.leaf, &mut wanted.reads)?;
        }
    }
    Ok(())
}

/// Asks for the version's own leaves that follow, while pages for this one are read.
fn want_following(core: &mut Core, own: TreeId, leaf: u64, wanted: &mut Wanted) {
    let next = |state: &mut State, from, reads: &mut _| state.store.next_leaf(own, from, reads);
    let leaves = (leaf + 1, u64::MAX);
    core.state.want_ahead(&[own], leaves, LEAVES_AHEAD, &mut wanted.reads, next);
}

fn want_weighed(
    core: &mut Core,
    own: TreeId,
    leaf: u64,
    wanted: &mut Wanted,
) -> Result<bool, PageError> {
    let store = &mut core.state.store;
    let here = store.want(&mut wanted.pins, own, leaf, &mut wanted.reads)?;
    Ok(here && core.state.want_mapped(own, Lba(leaf_start(leaf)), SLOTS, wanted)?)
}
