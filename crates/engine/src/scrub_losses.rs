//! The end of a scrub: which chunks of which volumes are lost with what is damaged by now.
//!
//! The maps are gone through only when something is damaged, leaf by leaf through the cache. What
//! has healed since it was found is not named.

use format::catalog::VolumeState;
use format::units::{Lba, Pbn, TreeId, VolumeId};
use tables::{NextLeaf, PageError, lba_pbn};

use crate::engine::Engine;
use crate::lba_runs::LbaRuns;
use crate::scrub::ScrubPosition;
use crate::scrub_stages::LossesScrub;
use crate::scrub_state::{FINDINGS_PER_STEP, Progress, Running};
use crate::wanted::Wanted;

impl Engine {
    pub(crate) fn scrub_losses(&mut self, running: &mut Running, at: &mut LossesScrub) -> Progress {
        let volumes = self.state.catalog.ids();
        let Some(id) = volumes.into_iter().find(|id| id.0 >= at.volume) else {
            return Progress::Done(None);
        };
        if self.scrub.damage.is_empty() {
            return Progress::Done(None);
        }
        if id.0 > at.volume {
            (at.volume, at.leaf) = (id.0, 0);
        }
        let is_over = at.leaves_left == 0 || running.step.findings.len() >= FINDINGS_PER_STEP;
        if is_over {
            let (volume, leaf) = (at.volume, at.leaf);
            return Progress::Done(Some(ScrubPosition::Losses { volume, leaf }));
        }
        let entry = self.state.catalog.get(id).filter(|entry| entry.state == VolumeState::Live);
        let Some(name) = entry.map(|entry| self.state.full_name(entry)) else {
            at.volume += 1;
            return Progress::Moved;
        };
        let mut wanted = Wanted::default();
        let next = self.want_next_leaf(id, at.leaf, &mut wanted);
        self.hold_pages(wanted, |held| &mut held.scrub);
        match next {
            Ok(Next::Waits) => return Progress::Waits,
            Ok(Next::Here(leaf)) => {
                self.name_losses(running, id, &name, leaf);
                at.leaf = leaf + 1;
                at.leaves_left -= 1;
            }
            Ok(Next::Damaged(leaf)) => at.leaf = leaf + 1,
            // What stands below a damaged inner page cannot be found.
            Ok(Next::End) | Err(_) => (at.volume, at.leaf) = (at.volume + 1, 0),
        }
        Progress::Moved
    }

    fn want_next_leaf(
        &mut self,
        id: VolumeId,
        from: u64,
        wanted: &mut Wanted,
    ) -> Result<Next, PageError> {
        let tree = TreeId::volume(id);
        let store = &mut self.state.store;
        Ok(match store.next_leaf(tree, from, &mut wanted.reads)? {
            NextLeaf::End => Next::End,
            NextLeaf::Missing => Next::Waits,
            NextLeaf::Found(leaf) => {
                match store.want(&mut wanted.pins, tree, leaf, &mut wanted.reads) {
                    Ok(true) => Next::Here(leaf),
                    Ok(false) => Next::Waits,
                    Err(_) => Next::Damaged(leaf),
                }
            }
        })
    }

    fn name_losses(&self, running: &mut Running, id: VolumeId, name: &str, leaf: u64) {
        let Some(page) = self.state.store.page(TreeId::volume(id), leaf) else { return };
        let mut runs = LbaRuns::default();
        let is_lost = |(_, pbn): &(Lba, Pbn)| self.scrub.damage.contains(*pbn);
        lba_pbn::mapped(leaf, page).filter(is_lost).for_each(|(lba, _)| runs.add(lba.0));
        for problem in runs.lost(name, self.geometry.chunk_bytes) {
            running.found(problem, false);
        }
    }
}

/// What comes next in a map.
enum Next {
    Waits,
    Here(u64),
    Damaged(u64),
    End,
}
