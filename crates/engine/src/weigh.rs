//! Weighing a volume: whose the chunks are that it maps, and what would go with it.
//!
//! A version holds a reference for each LBA that it maps to another chunk than its parent does,
//! and whoever came from it has what it does not map otherwise. So a reference goes with a version
//! where it maps the chunk, and neither its parent nor any of its children does: the same that
//! giving it back releases (`versions.rs`). A chunk of which all references go with it is nobody
//! else's.
//!
//! Nothing is written to be exact of a store that stands still; of one that changes meanwhile it is
//! what each part was when its turn came.

use format::map_page::SLOTS;
use format::units::{Lba, Pbn, TreeId, VolumeId};
use tables::{NextLeaf, PageError, lba_pbn, pbn_pba};

use crate::engine::Engine;
use crate::error::RequestError;
use crate::mapping::leaf_start;
use crate::state::State;
use crate::walks::{Walk, Went};
use crate::wanted::Wanted;
use crate::weight::{CountedChunk, WeightRequest, WeightStep, WeightWalk};

/// Leaves that one step goes through.
const LEAVES_PER_STEP: u32 = 64;
/// Leaves that are gone through before others have their turn.
const LEAVES_PER_TURN: u32 = 4;

impl State {
    /// The maps that are changes of a version's leaf: its children's, and where one of those has
    /// given its leaf back, the maps of that one's children.
    fn children_at(&self, id: VolumeId, leaf: u64) -> Vec<TreeId> {
        let mut found = Vec::new();
        for child in self.catalog.children_of(id) {
            let entry = self.catalog.get(child);
            match entry.is_some_and(|entry| leaf < entry.lineage.given_back_leaves) {
                true => found.extend(self.catalog.children_of(child).map(TreeId::volume)),
                false => found.push(TreeId::volume(child)),
            }
        }
        found
    }
}

impl Engine {
    pub(crate) fn begin_weighing(&self, request: WeightRequest) -> Result<Walk, RequestError> {
        let volume = self.volumes.get(&request.volume)?;
        let entry = self.state.catalog.get(volume.id);
        Ok(Walk::Weight(WeightWalk {
            version: volume.id,
            leaf: request.leaf,
            pbns: request.pbns,
            leaves_left: LEAVES_PER_STEP,
            several: Default::default(),
            step: WeightStep {
                number: volume.id.0,
                chunk_bytes: self.geometry.chunk_bytes,
                size_bytes: volume.size_bytes(),
                mapped_total: entry.map_or(0, |entry| entry.mapped_chunks),
                children: self.state.catalog.children_of(volume.id).count() as u64,
                ..WeightStep::default()
            },
        }))
    }

    pub(crate) fn walk_weight(
        &mut self,
        walk: &mut WeightWalk,
        wanted: &mut Wanted,
    ) -> Result<Went, PageError> {
        let own = TreeId::volume(walk.version);
        for _ in 0..LEAVES_PER_TURN {
            if walk.leaves_left == 0 {
                walk.step.next_leaf = Some(walk.leaf);
                return Ok(Went::Done);
            }
            let store = &mut self.state.store;
            let leaf = match store.next_leaf(own, walk.leaf, &mut wanted.reads)? {
                NextLeaf::Found(leaf) => leaf,
                NextLeaf::Missing => return Ok(Went::Waits),
                NextLeaf::End => return Ok(Went::Done),
            };
            let others = self.relatives_at(walk.version, leaf);
            if !self.want_weighed(own, &others, leaf, wanted)? {
                return Ok(Went::Waits);
            }
            self.weigh_leaf(walk, own, &others, leaf);
            walk.leaf = leaf + 1;
            walk.leaves_left -= 1;
        }
        Ok(Went::On)
    }

    /// The maps beside which a version's leaf is seen: its parent's and its children's.
    fn relatives_at(&self, id: VolumeId, leaf: u64) -> Vec<TreeId> {
        let mut relatives = self.state.children_at(id, leaf);
        relatives.extend(self.state.parent_at(id, leaf));
        relatives
    }

    fn want_weighed(
        &mut self,
        own: TreeId,
        others: &[TreeId],
        leaf: u64,
        wanted: &mut Wanted,
    ) -> Result<bool, PageError> {
        let store = &mut self.state.store;
        let mut here = store.want(&mut wanted.pins, own, leaf, &mut wanted.reads)?;
        for &other in others {
            here &= store.want(&mut wanted.pins, other, leaf, &mut wanted.reads)?;
        }
        if here {
            let first = Lba(leaf_start(leaf));
            here = self.state.want_mapped(own, first, SLOTS, wanted)?;
        }
        Ok(here)
    }

    fn weigh_leaf(&self, walk: &mut WeightWalk, own: TreeId, others: &[TreeId], leaf: u64) {
        let slots = |tree: TreeId| {
            let mut slots = Vec::with_capacity(SLOTS);
            let first = Lba(leaf_start(leaf));
            lba_pbn::extend_run(&self.state.store, tree, first, SLOTS, &mut slots);
            slots
        };
        let others: Vec<Vec<Pbn>> = others.iter().map(|&tree| slots(tree)).collect();
        for (slot, pbn) in slots(own).into_iter().enumerate() {
            if !pbn.is_none() {
                let goes_with_it = others.iter().all(|other| other[slot] != pbn);
                self.weigh_chunk(walk, pbn, goes_with_it);
            }
        }
    }

    fn weigh_chunk(&self, walk: &mut WeightWalk, pbn: Pbn, goes_with_it: bool) {
        walk.step.mapped += 1;
        let Some(entry) = pbn_pba::get(&self.state.store, pbn) else {
            walk.step.lost += 1;
            return;
        };
        let frame_bytes = entry.pba.length_bytes;
        if entry.references <= 1 {
            walk.step.single.add(frame_bytes);
            if goes_with_it {
                walk.step.single_own.add(frame_bytes);
            }
        } else if walk.pbns.contains(&pbn.0) {
            let counted = walk.several.entry(pbn.0).or_insert(CountedChunk {
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
