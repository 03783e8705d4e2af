//! Pages that groups are going to want are asked for before they do.
//!
//! Groups are looked up and applied one after the other, so a page that is missing would hold up
//! all of them, and the device would see the reads of one group at a time. While the first group
//! waits, those behind it ask for what their look-ups miss; and a group that has been looked up
//! asks for the pages that applying it will change. Nothing is held: who comes too late asks again.
//! A page that is damaged is no matter here: it stops what needs it.

use format::units::{Fingerprint, TreeId};
use tables::{Seen, lba_pbn};

use crate::engine::Engine;
use crate::pages::wanted::Wanted;
use crate::state::State;
use crate::write::buffer::Stage;
use crate::write::slot::{Plan, Slot};

/// Groups behind the first that are looked at.
const GROUPS_AHEAD: usize = 8;
/// Of the cache, what pages that are asked for ahead may be.
const CACHE_PART: usize = 4;

impl Engine {
    /// Asks for the pages that the groups behind the first in their stage miss, each group once.
    pub(crate) fn prefetch_look_ups(&mut self, first: u64) {
        let most = self.core.state.store.cache_pages() / CACHE_PART / self.core.buffer.group_slots;
        let from = self.lookups.asked_ahead.max(first + 1);
        let end = first + 1 + most.min(GROUPS_AHEAD) as u64;
        let behind = self.core.buffer.groups.iter().skip_while(|group| group.id < from);
        let due: Vec<u64> = behind
            .take_while(|group| group.id < end && group.stage == Stage::LookingUp)
            .map(|group| group.id)
            .collect();
        for id in due {
            self.lookups.asked_ahead = id + 1;
            // By what is known now; when its turn comes it is chosen anew.
            self.mark_sought(id);
            let Some(group) = self.core.buffer.group(id) else { continue };
            let made: Vec<Fingerprint> =
                group.slots().iter().filter_map(Slot::sought_fingerprint).collect();
            let (mut seen, mut wanted) = (Vec::with_capacity(made.len()), Wanted::default());
            let State { store, hash, .. } = &self.core.state;
            hash.look_up_group(store, made.iter(), &mut seen, |_, _| ());
            self.mark_far(id, &seen);
            for (fingerprint, _) in made.iter().zip(seen).filter(|(_, seen)| *seen == Seen::Missing)
            {
                let _ = self.want_stored_chunk(fingerprint, &mut wanted);
            }
            self.ask_for(wanted);
        }
    }

    /// Asks for the pages that applying a group will change, which has been looked up.
    pub(crate) fn prefetch_changes(&mut self, id: u64) {
        let Some(group) = self.core.buffer.group(id) else { return };
        let known = |slot: &Slot| match slot.plan {
            Plan::Duplicate(pbn) => Some(pbn),
            _ => None,
        };
        let pbns: Vec<_> = group.slots().iter().filter_map(known).collect();
        let place = |slot: &Slot| (slot.volume, lba_pbn::place(slot.lba).0);
        let mut leaves: Vec<_> = group.slots().iter().map(place).collect();
        leaves.dedup();
        let mut wanted = Wanted::default();
        for pbn in pbns {
            let _ = self.core.state.want_pba(pbn, &mut wanted);
        }
        for (volume, leaf) in leaves {
            if self.core.state.is_live(volume) {
                let tree = TreeId::volume(volume);
                let _ = self.core.state.store.want(&mut wanted.pins, tree, leaf, &mut wanted.reads);
            }
        }
        self.ask_for(wanted);
    }

    fn ask_for(&mut self, wanted: Wanted) {
        self.core.state.store.release_pins(wanted.pins);
        self.core.submit_page_reads(wanted.reads);
    }
}
