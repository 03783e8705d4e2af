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

use tables::PageError;

use crate::engine::Engine;
use crate::pages::wanted::Wanted;
use crate::space::write_room::PAGES_PER_CHUNK_MAX;

/// Steps that one step of the engine does at most: clients' work goes in between.
const STEPS_MAX: usize = 4;
/// Where blocks are short, what is merged for is such a part of them, and where a write waits for
/// some, such a part.
const SHORT_PART: u64 = 16;
const WAITED_FOR_PART: u64 = 256;

impl Engine {
    /// Does what is due, as far as its pages are here.
    pub(crate) fn advance_hash(&mut self) -> bool {
        let worth_pages = self.pages_worth_a_merge();
        self.core.state.hash.merge_while_it_gives(worth_pages);
        let mut moved = false;
        for _ in 0..STEPS_MAX {
            if self.core.stopped.is_some() || !self.hash_work_may_go_on() {
                break;
            }
            match self.hash_step() {
                Ok(true) => moved = true,
                Ok(false) => break,
                Err(error) => {
                    return self.stop_for(&error) || moved;
                }
            }
        }
        moved
    }

    fn hash_step(&mut self) -> Result<bool, PageError> {
        if self.core.state.store.awaits(&self.core.held_pages.hash) {
            return Ok(false);
        }
        let begins = self.core.state.hash.round_is_due();
        let spare_blocks = if begins { self.spare_blocks_of_round() } else { 0 };
        let mut wanted = Wanted::default();
        let here = self.core.state.want_hash_work(spare_blocks, &mut wanted);
        self.core.counters.merge_reads += wanted.reads.len() as u64;
        self.core.hold_pages(wanted, |held| &mut held.hash);
        if here? {
            self.core.state.hash.work(&mut self.core.state.store);
            self.core.table_room.merge_rounds = 0;
            if self.core.state.hash.merge_gives_pages() {
                // What it has removed comes back by checkpoints.
                self.core.table_room.relieved();
            }
            self.core.hold_pages(Wanted::default(), |held| &mut held.hash);
            return Ok(true);
        }
        Ok(false)
    }

    /// For how many pages that come back the merge is to go on although little is young: entries
    /// and what takes them back stand side by side in young pages, and in no bucket.
    fn pages_worth_a_merge(&self) -> Option<u64> {
        let blocks = self.core.geometry.tables_blocks();
        if self.waits_for_blocks() {
            return Some(blocks / WAITED_FOR_PART);
        }
        let is_short = self.core.blocks_to_promise() < blocks / SHORT_PART;
        is_short.then_some(blocks / SHORT_PART)
    }

    /// Whether a merge may still give back blocks that a write waits for.
    pub(crate) fn merge_may_give_blocks(&self) -> bool {
        self.core.state.hash.merge_gives_pages()
            && self.core.state.hash.work_is_due()
            && (self.hash_work_has_room() || self.core.table_room.merge_relief_may_come())
    }

    fn hash_work_may_go_on(&self) -> bool {
        self.hash_work_is_next() && self.hash_work_has_room()
    }

    fn hash_work_is_next(&self) -> bool {
        self.core.state.hash.work_is_due()
            && !self.core.table_room.last_is_asked
            && !self.core.table_room.tables_are_behind(&self.core.state)
    }

    fn hash_work_has_room(&self) -> bool {
        let promised_blocks = self.core.intake.lock().space.promised_chunks() * PAGES_PER_CHUNK_MAX;
        let needed_blocks = promised_blocks + self.core.state.hash.pages_per_step();
        self.core.table_room.room_blocks(&self.core.state) >= needed_blocks
    }

    /// Whether a merge waits for blocks that checkpoints may bring back.
    pub(crate) fn merge_waits_for_blocks(&self) -> bool {
        self.core.table_room.merge_relief_may_come()
            && self.hash_work_is_next()
            && !self.hash_work_has_room()
    }

    /// A checkpoint has ended: a merge that lacks blocks now asks for a few more at most.
    pub(crate) fn count_merge_round(&mut self) {
        if self.merge_waits_for_blocks() {
            self.core.table_room.merge_rounds += 1;
        }
    }

    /// Blocks that are neither promised nor kept. Until doors are told how many a round that
    /// begins leaves, they are promised nothing more.
    fn spare_blocks_of_round(&mut self) -> u64 {
        let mut intake = self.core.intake.lock();
        let promised_chunks = intake.space.promised_chunks();
        self.core.published.chunks = intake.space.withhold_chunks();
        drop(intake);
        let kept = promised_chunks * PAGES_PER_CHUNK_MAX + self.core.table_room.reserve_blocks();
        self.core.table_room.room_blocks(&self.core.state).saturating_sub(kept)
    }

    /// Whether groups must wait for a checkpoint, or for young entries to be merged.
    pub(crate) fn groups_wait_for_tables(&self) -> bool {
        self.core.table_room.tables_are_behind(&self.core.state)
            || self.core.state.hash.is_behind() && self.hash_work_may_go_on()
    }
}
