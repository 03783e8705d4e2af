//! Leaves of maps that are asked for ahead: those behind the one that somebody waits for.
//!
//! A walk through a cold map leaf by leaf would else wait for a device as often as there are
//! leaves. What is asked for ahead is not held, and its damage is told when its own turn comes; so
//! it changes when pages come, and nothing else. There is no more of it than leaves most of the
//! cache to others.

use format::units::TreeId;
use tables::{NextLeaf, PageError, PageRead, PinSet};

use crate::state::State;

/// The part of the cache that is asked for ahead at most.
const CACHE_PART: usize = 4;

impl State {
    /// Leaves that may be asked for ahead, if not more than these are wanted.
    pub(crate) fn ahead_max(&self, leaves: usize) -> usize {
        leaves.min(self.store.cache_pages() / CACHE_PART)
    }

    /// Asks for the leaves that `next` gives from `from` on and before `end`, in all of these maps.
    pub(crate) fn want_ahead(
        &mut self,
        trees: &[TreeId],
        (from, end): (u64, u64),
        leaves_max: usize,
        reads: &mut Vec<PageRead>,
        next: impl Fn(&mut Self, u64, &mut Vec<PageRead>) -> Result<NextLeaf, PageError>,
    ) {
        let (mut pins, mut from) = (PinSet::default(), from);
        for _ in 0..self.ahead_max(leaves_max) {
            let Ok(NextLeaf::Found(leaf)) = next(self, from, reads) else { break };
            if leaf >= end {
                break;
            }
            for &tree in trees {
                let _ = self.store.want(&mut pins, tree, leaf, reads);
            }
            from = leaf + 1;
        }
        self.store.release_pins(pins);
    }
}
