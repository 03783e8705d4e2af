//! Where two versions differ: the LBAs that they map to different chunks.
//!
//! The maps are walked side by side from their roots down, and subtrees to which both have the same
//! pointer are passed over unread: what is alike costs nothing, however large. LBAs that are the
//! same here are the same in their bytes. Those that differ mostly are not, since a chunk of the
//! same content is stored once; but a chunk may be stored unindexed, or without a look for
//! duplicates, or twice after a repair, and what each version has lost with a page of its own may
//! differ.
//!
//! A step looks at some leaves and says where to go on; nothing is kept between steps. Snapshots do
//! not change, so of two of them the steps together are exact. A volume that is being written is
//! compared as it is when its turn comes.

use format::map_page::SLOTS;
use format::units::{Lba, TreeId};
use tables::{NextLeaf, PageError, lba_pbn};

use crate::core::Core;
use crate::door::error::RequestError;
use crate::pages::wanted::Wanted;
use crate::state::State;
use crate::state::mapping::leaf_start;
use crate::walk::difference::{ChangedRange, DifferenceRequest, DifferenceStep, DifferenceWalk};
use crate::walk::walks::Went;

/// Leaves that one step compares.
const LEAVES_PER_STEP: u32 = 64;
/// Leaves that are compared before others have their turn.
const LEAVES_PER_TURN: u32 = 4;
/// Leaves in which they differ that are read together with the one that is next.
const LEAVES_AHEAD: usize = 16;

impl DifferenceWalk {
    pub(crate) fn begin(core: &Core, request: &DifferenceRequest) -> Result<Self, RequestError> {
        let [from, to] = [core.volumes.get(&request.from)?, core.volumes.get(&request.to)?];
        Ok(Self {
            versions: [from.id, to.id],
            lba: request.lba,
            leaves_left: LEAVES_PER_STEP,
            step: DifferenceStep {
                numbers: [from.id.0, to.id.0],
                sizes_bytes: [from.size_bytes(), to.size_bytes()],
                chunk_bytes: core.geometry.chunk_bytes,
                ranges: Vec::new(),
                next_lba: None,
            },
        })
    }

    pub(crate) fn advance(
        &mut self,
        core: &mut Core,
        wanted: &mut Wanted,
    ) -> Result<Went, PageError> {
        let trees = self.versions.map(TreeId::volume);
        for _ in 0..LEAVES_PER_TURN {
            if self.leaves_left == 0 {
                self.step.next_lba = Some(self.lba);
                return Ok(Went::Done);
            }
            let from = self.lba / SLOTS as u64;
            let store = &mut core.state.store;
            let same = |pointers: &tables::Pointers<'_>, _: &_| pointers.same(0, 1);
            let leaf = match store.next_difference(&trees, from, same, &mut wanted.reads)? {
                NextLeaf::Found(leaf) => leaf,
                NextLeaf::Missing => return Ok(Went::Waits),
                NextLeaf::End => return Ok(Went::Done),
            };
            let mut here = true;
            for tree in trees {
                here &= store.want(&mut wanted.pins, tree, leaf, &mut wanted.reads)?;
            }
            if !here {
                let next = |state: &mut State, from, reads: &mut _| {
                    state.store.next_difference(&trees, from, same, reads)
                };
                let leaves = (leaf + 1, u64::MAX);
                core.state.want_ahead(&trees, leaves, LEAVES_AHEAD, &mut wanted.reads, next);
                return Ok(Went::Waits);
            }
            self.compare_leaf(core, trees, leaf);
            self.lba = leaf_start(leaf + 1);
            self.leaves_left -= 1;
        }
        Ok(Went::On)
    }

    fn compare_leaf(&mut self, core: &Core, trees: [TreeId; 2], leaf: u64) {
        let first = self.lba.max(leaf_start(leaf));
        let count = (leaf_start(leaf + 1) - first) as usize;
        let [from, to] = trees.map(|tree| {
            let mut mapped = Vec::with_capacity(count);
            lba_pbn::extend_run(&core.state.store, tree, Lba(first), count, &mut mapped);
            mapped
        });
        let chunk_bytes = u64::from(self.step.chunk_bytes);
        let end_bytes = self.step.sizes_bytes.into_iter().max().unwrap_or(0);
        for (lba, (from, to)) in (first..).zip(from.into_iter().zip(to)) {
            let offset_bytes = lba * chunk_bytes;
            if from != to && offset_bytes < end_bytes {
                let length_bytes = chunk_bytes.min(end_bytes - offset_bytes);
                let unmapped = to.is_none();
                ChangedRange { offset_bytes, length_bytes, unmapped }.add_to(&mut self.step.ranges);
            }
        }
    }
}
