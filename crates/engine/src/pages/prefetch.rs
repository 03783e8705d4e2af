//! Pages that groups are going to want are asked for before they do.
//!
//! Groups are looked up and applied one after the other, so a page that is missing would hold up
//! all of them, and the device would see the reads of one group at a time. While the first group
//! waits, those behind it ask for what their look-ups miss; and a group that has been looked up
//! asks for the pages that applying it will change. Nothing is held: who comes too late asks again.
//! A page that is damaged is no matter here: it stops what needs it.

use format::units::{Fingerprint, TreeId};
use tables::{Seen, lba_pbn};

use crate::core::Core;
use crate::duplicates::Duplicates;
use crate::duplicates::dedup::mark_sought;
use crate::duplicates::directory_reads::mark_far;
use crate::pages::wanted::Wanted;
use crate::state::State;
use crate::write::buffer::Stage;
use crate::write::slot::{Plan, Slot};

/// Groups behind the first that are looked at.
const GROUPS_AHEAD: usize = 8;
/// Of the cache, what pages that are asked for ahead may be.
const CACHE_PART: usize = 4;

impl Duplicates {
    /// Asks for the pages that the groups behind the first in their stage miss, each group once.
    pub(crate) fn prefetch_look_ups(&mut self, core: &mut Core, first: u64) {
        let most = core.state.store.cache_pages() / CACHE_PART / core.buffer.group_slots;
        let from = self.lookups.asked_ahead.max(first + 1);
        let end = first + 1 + most.min(GROUPS_AHEAD) as u64;
        let behind = core.buffer.groups.iter().skip_while(|group| group.id < from);
        let due: Vec<u64> = behind
            .take_while(|group| group.id < end && group.stage == Stage::LookingUp)
            .map(|group| group.id)
            .collect();
        for id in due {
            self.lookups.asked_ahead = id + 1;
            // By what is known now; when its turn comes it is chosen anew.
            mark_sought(core, id);
            let Some(group) = core.buffer.group(id) else { continue };
            let made: Vec<Fingerprint> =
                group.slots().iter().filter_map(Slot::sought_fingerprint).collect();
            let (mut seen, mut wanted) = (Vec::with_capacity(made.len()), Wanted::default());
            let State { store, hash, .. } = &core.state;
            hash.look_up_group(store, made.iter(), &mut seen, |_, _| ());
            mark_far(core, id, &seen);
            for (fingerprint, _) in made.iter().zip(seen).filter(|(_, seen)| *seen == Seen::Missing)
            {
                let _ = self.want_stored_chunk(core, fingerprint, &mut wanted);
            }
            ask_for(core, wanted);
        }
    }
}

/// Asks for the pages that applying a group will change, which has been looked up.
pub(crate) fn prefetch_changes(core: &mut Core, id: u64) {
    let Some(group) = core.buffer.group(id) else { return };
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
        let _ = core.state.want_pba(pbn, &mut wanted);
    }
    for (volume, leaf) in leaves {
        if core.state.is_live(volume) {
            let tree = TreeId::volume(volume);
            let _ = core.state.store.want(&mut wanted.pins, tree, leaf, &mut wanted.reads);
        }
    }
    ask_for(core, wanted);
}

fn ask_for(core: &mut Core, wanted: Wanted) {
    core.state.store.release_pins(wanted.pins);
    core.submit_page_reads(wanted.reads);
}
