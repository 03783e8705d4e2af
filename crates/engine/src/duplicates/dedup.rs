//! Volumes and writes without deduplication, or with as much as pays.
//!
//! `seeking.rs` says which of their chunks are looked for. The others are stored *aside*, as a
//! collision is where bytes are compared: they are not looked up, and the Hash-PBN table gets no
//! entry of them (`group.rs`). In all else one is a chunk like any other: it has a fingerprint, in
//! its directory and in the journal, and its entry in the PBN-PBA table says that it is aside. So a
//! check knows which chunks may be without an entry, and forgetting one takes nobody else's
//! entry back.
//!
//! A write may ask for the same of its own chunks ([`crate::WriteOptions`]): the hint lies in their
//! slots, and a later write to a chunk in the same group brings its own.
//!
//! The switch changes what becomes of later writes. What is stored stays what it is, shared or not.
//! A store says in its geometry that chunks may be aside before the first can be
//! (`enlarge.rs`): programs that know of none refuse it.

use crate::core::Core;
use crate::core::invariant::Invariant;
use crate::duplicates::Duplicates;
use crate::engine::Engine;
use crate::grow::enlarging::{GrowsFor, Then, Wish};
use crate::write::slot::Plan;

impl Engine {
    /// From now on `auto` chooses what to look for after so many chunks of a volume.
    pub fn judge_duplicates_every(&mut self, chunks: u64) {
        self.core.volumes.seeking.judge_every(chunks);
    }
}

impl Duplicates {
    /// Says which chunks of a group are looked for, once, when it is its turn: groups before it
    /// have been judged, and while it waits for pages it stays so.
    pub(crate) fn choose_sought(&mut self, core: &mut Core, group: u64) {
        if self.lookups.chosen <= group {
            self.lookups.chosen = group + 1;
            mark_sought(core, group);
        }
    }
}

/// Says so as it would be chosen now.
pub(crate) fn mark_sought(core: &mut Core, group: u64) {
    let Some(group) = core.buffer.group_mut(group) else {
        return core.violated(Invariant::GroupStaysUntilApplied);
    };
    let seeking = &core.volumes.seeking;
    if seeking.is_of_all() && !group.has_unindexed {
        return;
    }
    for slot in group.slots_mut() {
        let seeks = |fingerprint| seeking.seeks(slot.volume, fingerprint);
        slot.sought = !slot.unindexed && slot.fingerprint.as_ref().is_none_or(seeks);
    }
}

/// Whether a group has chunks that are not looked for, and the geometry does not say yet that
/// a store may have such: then it is made to say so first.
pub(crate) fn awaits_mark_of_asides(core: &mut Core, group: u64) -> bool {
    let has_unindexed = core.buffer.group(group).is_some_and(|group| group.has_unindexed);
    if !has_unindexed || core.geometry.detection.asides {
        return false;
    }
    if !core.superblock.will_grow_for(GrowsFor::Asides) {
        core.superblock.wishes.push_back(Wish::Geometry(Then::GoOn));
    }
    true
}

/// `auto` learns what the chunks of a group have turned out to be.
pub(crate) fn note_planned(core: &mut Core, group: u64, plans: &[Plan]) {
    let seeking = &mut core.volumes.seeking;
    if seeking.is_of_all() {
        return;
    }
    let Some(group) = core.buffer.group(group) else {
        return core.violated(Invariant::GroupStaysUntilApplied);
    };
    // What writers keep from being looked for says nothing of what looking is worth.
    for (slot, plan) in group.slots().iter().zip(plans).filter(|(slot, _)| !slot.unindexed) {
        let Some(fingerprint) = &slot.fingerprint else { continue };
        let duplicate = matches!(plan, Plan::Duplicate(_) | Plan::Heal { .. });
        seeking.note(slot.volume, fingerprint, slot.sought, duplicate);
    }
}
