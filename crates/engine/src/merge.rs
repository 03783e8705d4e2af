//! What the Hash-PBN table does in the background: sealing and merging, a step at a time.
//!
//! A step touches a few dozen pages, so that clients' groups go in between. It is due when more
//! entries are young than should be; when far more are, groups wait for it. It changes pages as
//! groups do: while a checkpoint has to come first, both wait, and neither waits for the other. A
//! store that is being closed leaves the rest to its next opening.
//!
//! A merge needs blocks: buckets are emptier than young pages, and what it takes in comes back by
//! checkpoints. Clients are promised nothing of what it needs for all that is young
//! ([`tables::HashPbn::pages_owed`]), so with however little memory a store is opened, what is
//! young can be merged. A store that has no room all the same, because an earlier release has
//! filled it, keeps entries young, in more memory than it should take, until room comes: a step
//! goes on only where the next freeze and what was promised find their blocks as well.

use tables::{PageError, PinSet};

use crate::core::Core;
use crate::door::error::RequestError;
use crate::pages::wanted::Wanted;
use crate::part::Part;
use crate::space::write_room::PAGES_PER_CHUNK_MAX;

/// Steps that one step of the engine does at most: clients' work goes in between.
const STEPS_MAX: usize = 4;
/// Where blocks are short, what is merged for is such a part of them, and where a write waits for
/// some, such a part.
const SHORT_PART: u64 = 16;
const WAITED_FOR_PART: u64 = 256;

/// The merge under way: what it is to do stands in the table.
#[derive(Default)]
pub(crate) struct Merge {
    /// Pages that the next step needs.
    pins: PinSet,
}

impl Merge {
    /// Does what is due, as far as its pages are here.
    pub(crate) fn advance(&mut self, core: &mut Core) -> bool {
        let worth_pages = pages_worth_a_merge(core);
        core.state.hash.merge_while_it_gives(worth_pages);
        let mut moved = false;
        for _ in 0..STEPS_MAX {
            if core.stopped.is_some() || !core.merge_may_go_on() {
                break;
            }
            match self.step(core) {
                Ok(true) => moved = true,
                Ok(false) => break,
                Err(error) => {
                    return core.stop_for(&error) || moved;
                }
            }
        }
        moved
    }

    fn step(&mut self, core: &mut Core) -> Result<bool, PageError> {
        if core.state.store.awaits(&self.pins) {
            return Ok(false);
        }
        let begins = core.state.hash.round_is_due();
        let spare_blocks = if begins { spare_blocks_of_round(core) } else { 0 };
        let mut wanted = Wanted::default();
        let here = core.state.want_hash_work(spare_blocks, &mut wanted);
        core.counters.merge_reads += wanted.reads.len() as u64;
        core.hold_in(&mut self.pins, wanted);
        if here? {
            let least_blocks = if cfg!(debug_assertions) { room_after_a_step(core) } else { 0 };
            core.state.hash.work(&mut core.state.store);
            let keeps_blocks = || core.table_room.room_blocks(&core.state) >= least_blocks;
            debug_assert!(keeps_blocks(), "BlocksKept: a step takes no more than it may");
            core.table_room.merge_rounds = 0;
            if core.state.hash.merge_gives_pages() {
                // What it has removed comes back by checkpoints.
                core.table_room.relieved();
            }
            core.hold_in(&mut self.pins, Wanted::default());
            return Ok(true);
        }
        Ok(false)
    }
}

impl Part for Merge {
    /// Nobody waits for an answer.
    fn fail(&mut self, _error: &RequestError) {}

    /// A close leaves the rest to the next opening.
    fn is_idle(&self, _core: &Core) -> bool {
        true
    }

    fn check(&self, _core: &Core) {}
}

/// For how many pages that come back the merge is to go on although little is young: entries
/// and what takes them back stand side by side in young pages, and in no bucket.
fn pages_worth_a_merge(core: &Core) -> Option<u64> {
    let blocks = core.geometry.tables_blocks();
    if core.waits_for_blocks() {
        return Some(blocks / WAITED_FOR_PART);
    }
    let is_short = core.blocks_to_promise() < blocks / SHORT_PART;
    is_short.then_some(blocks / SHORT_PART)
}

/// Blocks that are neither promised nor kept. Until doors are told how many a round that
/// begins leaves, they are promised nothing more.
fn spare_blocks_of_round(core: &mut Core) -> u64 {
    let mut intake = core.intake.lock();
    let promised_chunks = intake.space.promised_chunks();
    core.published.chunks = intake.space.withhold_chunks();
    drop(intake);
    let kept = promised_chunks * PAGES_PER_CHUNK_MAX + core.table_room.reserve_blocks();
    core.table_room.room_blocks(&core.state).saturating_sub(kept)
}

/// Blocks that pages may still become dirty for behind the next step, at least.
fn room_after_a_step(core: &Core) -> u64 {
    let room_blocks = core.table_room.room_blocks(&core.state);
    room_blocks.saturating_sub(core.state.hash.pages_per_step())
}

#[cfg(test)]
mod tests {
    use super::Merge;
    use crate::door::error::RequestError;
    use crate::part::Part;
    use crate::small_store::store;

    #[test]
    fn nothing_is_merged_where_nothing_is_young_or_the_writing_has_stopped() {
        let (mut engine, _client) = store(Default::default());
        let (mut merge, core) = (Merge::default(), &mut engine.core);
        assert!(!merge.advance(core) && merge.is_idle(core));
        core.stop_writing(RequestError::WorkerLost);
        assert!(!merge.advance(core));
    }
}
