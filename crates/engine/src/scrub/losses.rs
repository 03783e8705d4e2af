//! The end of a scrub: which chunks of which volumes are lost, with what is damaged by now or
//! since a repair gave them up.
//!
//! The maps are gone through only when there may be such chunks, leaf by leaf through the cache.
//! What has healed since it was found is not named.
//!
//! What a repair abandons is a PBN that names nothing and is not free, because a map names it
//! (decision 011). Nothing else makes such PBNs, nor makes an end of one: the first to be written
//! over leaves it behind, in no map any more. So their number is what PBNs there are less those of
//! chunks and the free ones, exact at every step and none in a store that never lost anything:
//! it costs a sound store nothing, and the format has no mark that could be wrong. Where there are
//! any, each chunk that is mapped is looked for in the PBN-PBA table. That is once more for every
//! scrub, until a repair of anything frees what no map names.

use std::collections::BTreeSet;

use format::catalog::VolumeState;
use format::units::{Lba, Pbn, TreeId, VolumeId};
use tables::{NextLeaf, PageError, lba_pbn, pbn_pba};

use crate::core::Core;
use crate::core::invariant::Invariant;
use crate::lba_runs::LbaRuns;
use crate::pages::wanted::Wanted;
use crate::scrub::ScrubPosition;
use crate::scrub::stages::LossesScrub;
use crate::scrub::state::{FINDINGS_PER_STEP, Progress, Running};
use crate::state::State;

impl LossesScrub {
    pub(crate) fn scrub_losses(&mut self, core: &mut Core, running: &mut Running) -> Progress {
        let volumes = core.state.catalog.ids();
        let Some(id) = volumes.into_iter().find(|id| id.0 >= self.volume) else {
            return Progress::Done(None);
        };
        if core.damage.is_empty() && core.state.given_up_chunks() == 0 {
            return Progress::Done(None);
        }
        if id.0 > self.volume {
            (self.volume, self.leaf) = (id.0, 0);
        }
        let is_over = self.leaves_left == 0 || running.step.findings.len() >= FINDINGS_PER_STEP;
        if is_over {
            let (volume, leaf) = (self.volume, self.leaf);
            return Progress::Done(Some(ScrubPosition::Losses { volume, leaf }));
        }
        let entry = core.state.catalog.get(id).filter(|entry| entry.state == VolumeState::Live);
        let Some(name) = entry.map(|entry| core.state.full_name(entry)) else {
            self.volume += 1;
            return Progress::Moved;
        };
        let mut wanted = Wanted::default();
        let next = want_next_leaf(core, id, self.leaf, &mut wanted);
        core.hold_in(&mut running.pins, wanted);
        match next {
            Ok(Next::Waits) => return Progress::Waits,
            Ok(Next::Here { leaf, given_up }) => {
                name_losses(core, running, (id, &name), leaf, &given_up);
                self.leaf = leaf + 1;
                self.leaves_left -= 1;
            }
            Ok(Next::Damaged(leaf)) => self.leaf = leaf + 1,
            // What stands below a damaged inner page cannot be found.
            Ok(Next::End) | Err(_) => (self.volume, self.leaf) = (self.volume + 1, 0),
        }
        Progress::Moved
    }
}

fn want_next_leaf(
    core: &mut Core,
    id: VolumeId,
    from: u64,
    wanted: &mut Wanted,
) -> Result<Next, PageError> {
    let tree = TreeId::volume(id);
    let store = &mut core.state.store;
    Ok(match store.next_leaf(tree, from, &mut wanted.reads)? {
        NextLeaf::End => Next::End,
        NextLeaf::Missing => Next::Waits,
        NextLeaf::Found(leaf) => {
            match store.want(&mut wanted.pins, tree, leaf, &mut wanted.reads) {
                Ok(true) => match core.state.given_up_in(tree, leaf, wanted) {
                    Some(given_up) => Next::Here { leaf, given_up },
                    None => Next::Waits,
                },
                Ok(false) => Next::Waits,
                Err(_) => Next::Damaged(leaf),
            }
        }
    })
}

fn name_losses(
    core: &mut Core,
    running: &mut Running,
    (id, name): (VolumeId, &str),
    leaf: u64,
    given_up: &BTreeSet<Pbn>,
) {
    let Some(page) = core.state.store.page(TreeId::volume(id), leaf) else {
        return core.violated(Invariant::PinnedWhileRead);
    };
    let mut runs = LbaRuns::default();
    let is_lost = |(_, pbn): &(Lba, Pbn)| core.damage.contains(*pbn) || given_up.contains(pbn);
    lba_pbn::mapped(leaf, page).filter(is_lost).for_each(|(lba, _)| runs.add(lba.0));
    for problem in runs.lost(name, core.geometry.chunk_bytes) {
        running.found(problem, false);
    }
}

impl State {
    /// Chunks of which a repair found nothing, whether or not a map names them still.
    pub(crate) fn given_up_chunks(&self) -> u64 {
        let stored = self.totals.unique_chunks.saturating_add(self.totals.dead_chunks);
        let handed_out = self.next_pbn.saturating_sub(1);
        handed_out.saturating_sub(stored.saturating_add(self.free.len()))
    }

    /// Those of a leaf that is here; none while a page is waited for.
    fn given_up_in(
        &mut self,
        tree: TreeId,
        leaf: u64,
        wanted: &mut Wanted,
    ) -> Option<BTreeSet<Pbn>> {
        let mut given_up = BTreeSet::new();
        if self.given_up_chunks() == 0 {
            return Some(given_up);
        }
        // In order, so that each page of places is asked for once.
        let page = self.store.page(tree, leaf)?;
        let mapped: BTreeSet<Pbn> = lba_pbn::mapped(leaf, page).map(|(_, pbn)| pbn).collect();
        let mut all_here = true;
        for pbn in mapped {
            match self.want_pba(pbn, wanted) {
                Ok(true) if pbn_pba::get(&self.store, pbn).is_none() => drop(given_up.insert(pbn)),
                Ok(is_here) => all_here &= is_here,
                // A page of places that is damaged has been named as that, and may be mended.
                Err(_) => {}
            }
        }
        all_here.then_some(given_up)
    }
}

/// What comes next in a map.
enum Next {
    Waits,
    Here { leaf: u64, given_up: BTreeSet<Pbn> },
    Damaged(u64),
    End,
}
