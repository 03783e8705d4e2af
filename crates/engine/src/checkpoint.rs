//! Checkpoints: a frozen set of table pages and one root, while the core goes on.
//!
//! ```text
//! Idle -> freeze -> Pages (written, a few MiB at a time) -> TablesSync
//!      -> Durable (journal up to the freeze, its frames placed) -> Root -> RootSync -> Label
//!      -> Idle
//! ```
//!
//! The freeze gives every dirty page its new place and tag in one go, children before parents;
//! from then on the live tables are clean and go on changing (a page still to be written is copied
//! when it changes). The root is written last, into the slot of the older one. When it is durable:
//!
//! * the journal is released up to the *older* of the two roots, so that losing the newer root
//!   slot loses nothing: the older one replays to the same state;
//! * blocks freed two checkpoints ago become free: neither slot names them; so do PBNs freed before
//!   this one.
//!
//! Then the root is written once more, as its *label*, to a block of zone tables: another file,
//! for the day on which the superblock is lost. Nothing waits for that to be durable. The sync of
//! the next checkpoint's pages makes it so, before that root takes a slot; until then the label of
//! the root before leads to the same state, as that root does.
//!
//! Before a close freezes, the journal itself says that all is durable (`marking.rs`): should the
//! slot of the last root be lost, what only that proved is proven still.
//!
//! What is dirty may have become more than there are free blocks: what gives space back goes on
//! while a checkpoint is written. Then the newest root is written once more, under the next
//! generation, and freezes nothing: what only the older slot named is free, and the freeze follows.

pub(crate) mod checkpoints;
pub(crate) mod page_runs;

use std::collections::VecDeque;

use disk::{AlignedBuf, SharedBuf};
use format::BLOCK_BYTES;
use format::root::Root;
use format::units::{TreeId, Zone, block_offset_bytes};
use mutants::mutant;
use tables::{PageError, PageWrite};

use crate::checkpoint::checkpoints::{Checkpoints, Phase};
use crate::checkpoint::page_runs::{page_bytes, take_run};
use crate::core::Core;
use crate::core::invariant::Invariant;
use crate::devices::Purpose;
use crate::door::error::RequestError;
use crate::geometry::label_of;
use crate::notice::Notice;
use crate::pages::wanted::Wanted;
use crate::part::Part;
use crate::state::State;

/// Writes of table pages in flight at most: clients' I/O goes in between.
const WRITES_OUT_MAX: usize = 4;
/// Pages that are cleaned at a time to make room in the cache.
const CLEAN_PAGES: usize = 256;

impl Checkpoints {
    /// Moves the running checkpoint on, or begins one.
    pub(crate) fn advance(&mut self, core: &mut Core) -> bool {
        if core.stopped.is_some() {
            return false;
        }
        match &mut self.phase {
            Phase::Idle => self.begin_checkpoint(core),
            Phase::Pages { writes } => {
                let moved = write_frozen_pages(core, writes);
                if writes.is_empty() && core.devices.table_writes_out() < WRITES_OUT_MAX {
                    let mark = core.devices.mark();
                    return self.enter_phase(core, Phase::PagesOut { mark });
                }
                moved
            }
            Phase::PagesOut { mark } => {
                let mark = *mark;
                if !core.devices.tables_written_before(mark) {
                    return false;
                }
                let pages = if mutant!(WritesRootUnsynced) { Zone::Journal } else { Zone::Tables };
                core.devices.sync(pages, Purpose::TablesSync);
                self.enter_phase(core, Phase::TablesSync)
            }
            Phase::TablesSync if self.ended => {
                core.flushes.ask();
                self.enter_phase(core, Phase::Durable)
            }
            Phase::Durable => self.write_root_when_durable(core),
            Phase::Root if self.ended => {
                if core.table_room.last_is_asked && mutant!(ClosesUnsynced) {
                    return self.end_checkpoint(core);
                }
                core.devices.sync(Zone::Superblock, Purpose::RootSync);
                self.enter_phase(core, Phase::RootSync)
            }
            Phase::RootSync if self.ended => self.write_label(core),
            Phase::Label if self.ended => self.end_checkpoint(core),
            _ => false,
        }
    }

    fn enter_phase(&mut self, core: &mut Core, phase: Phase) -> bool {
        self.phase = phase;
        self.ended = false;
        core.table_room.is_under_way = self.is_under_way();
        core.superblock.is_writing_root = self.is_writing_root();
        true
    }

    fn is_due(&self, core: &Core) -> bool {
        let room = &core.table_room;
        let begin_bytes = core.superblock.newest.journal.offset_bytes;
        let replay_bytes = core.log.journal.next().offset_bytes - begin_bytes;
        let pressed =
            core.waits_for_blocks() && core.buffer.groups.is_empty() && room.relief_may_come();
        room.asked
            || pressed
            || core.merge_waits_for_blocks()
            || (room.last_is_asked && !self.clean)
            || core.state.store.dirty_pages() >= room.dirty_pages_due(&core.state)
            || replay_bytes >= core.geometry.journal_bytes / 4
    }

    fn begin_checkpoint(&mut self, core: &mut Core) -> bool {
        if !self.is_due(core) {
            return false;
        }
        if core.table_room.last_is_asked && !core.is_marked() {
            return core.ask_for_mark();
        }
        if core.table_room.lacks_blocks_that_come(&core.state) {
            return self.repeat_root(core);
        }
        match self.freeze(core) {
            Ok(Some(writes)) => {
                core.table_room.asked = false;
                let generation = core.superblock.next_generation();
                core.tell(&Notice::CheckpointBegan { generation });
                self.enter_phase(core, Phase::Pages { writes })
            }
            Ok(None) => false,
            Err(error) => core.stop_for(&error),
        }
    }

    /// The next root names what the newest names: the checkpoint that was asked for comes after it.
    fn repeat_root(&mut self, core: &mut Core) -> bool {
        let generation = core.superblock.next_generation();
        let mut root = core.superblock.newest.clone();
        (root.generation, root.clean) = (generation, false);
        root.next_incarnation = core.log.incarnation + 1;
        self.next_root = Some(root);
        core.tell(&Notice::RootRepeated { generation });
        // No pages, but the label of the root before may be in a cache only.
        let mark = core.devices.mark();
        self.enter_phase(core, Phase::PagesOut { mark })
    }

    /// Freezes the tables as they are; None while pages that hold catalog or containers are read.
    fn freeze(&mut self, core: &mut Core) -> Result<Option<VecDeque<PageWrite>>, PageError> {
        let mut wanted = Wanted::default();
        let here = want_freeze(core, &mut wanted);
        let writes = if let Ok(true) = here { self.freeze_resident(core) } else { None };
        core.hold_in(&mut self.pins, wanted);
        here.map(|_| writes)
    }

    fn freeze_resident(&mut self, core: &mut Core) -> Option<VecDeque<PageWrite>> {
        let generation = core.superblock.next_generation();
        let Ok(mut writes) = core.state.freeze(generation) else {
            core.stop_writing(RequestError::NoSpace);
            return None;
        };
        writes.sort_unstable_by_key(|write| write.block);
        self.next_root = Some(Box::new(root_of(core, generation)));
        Some(writes.into())
    }

    fn write_root_when_durable(&mut self, core: &mut Core) -> bool {
        let Some(root) = &self.next_root else {
            core.violated(Invariant::RootIsMade);
            return false;
        };
        let settled = core.log.settled;
        let early = mutant!(WritesRootUnplaced);
        let reached = if early { settled.durable_sequence } else { settled.placed_sequence };
        if reached + 1 < root.journal.sequence && !mutant!(WritesRootBeforeRecords) {
            core.flushes.ask();
            return false;
        }
        if core.superblock.is_mended {
            return false;
        }
        if settled.placed_sequence + 1 < root.journal.sequence {
            core.violated(Invariant::RootBehindRecords);
            return false;
        }
        let mut buf = AlignedBuf::new_zeroed(BLOCK_BYTES);
        buf.copy_from_slice(&root.encode(core.geometry.uuid)[..]);
        let offset_bytes = block_offset_bytes(format::superblock::root_block(root.generation));
        core.devices.write(Zone::Superblock, offset_bytes, SharedBuf::from(buf), Purpose::Root);
        self.enter_phase(core, Phase::Root)
    }

    /// Writes the label of a root that is durable in its slot. A root that was repeated has none of
    /// its own: that of the root before says the same.
    fn write_label(&mut self, core: &mut Core) -> bool {
        let newest = core.superblock.newest.label;
        let root = self.next_root.as_ref().filter(|root| ![0, newest].contains(&root.label));
        let root = root.filter(|_| !mutant!(WritesNoLabel));
        let Some(root) = root else { return self.end_checkpoint(core) };
        let (offset_bytes, buf) = label_of(&core.geometry, root);
        core.devices.write(Zone::Tables, offset_bytes, buf, Purpose::Root);
        self.enter_phase(core, Phase::Label)
    }

    fn end_checkpoint(&mut self, core: &mut Core) -> bool {
        let Some(root) = self.next_root.take() else {
            core.violated(Invariant::RootIsMade);
            return false;
        };
        // From now on the older one.
        let older_begins = core.superblock.newest.journal.offset_bytes;
        let forgets = mutant!(ForgetsOlderJournal);
        let release_to = if forgets { root.journal.offset_bytes } else { older_begins };
        core.log.journal.release_to(release_to);
        if core.log.begin_bytes() > older_begins {
            core.violated(Invariant::OlderRootKeepsJournal);
            return false;
        }
        self.clean = root.clean;
        core.state.store.checkpoint_durable();
        core.counters.checkpoints += 1;
        core.tell(&Notice::CheckpointEnded { generation: root.generation });
        core.superblock.newest = root;
        if !core.waiting.is_empty() {
            core.table_room.pressure_rounds += 1;
        }
        self.enter_phase(core, Phase::Idle);
        if core.merge_waits_for_blocks() {
            // A merge that lacks blocks now asks for a few more at most.
            core.table_room.merge_rounds += 1;
        }
        true
    }

    /// Lets cold pages go, so that the cache keeps its size, and gives cold dirty pages a place, so
    /// that they can go: early, before they squeeze out what is clean. Not in blocks that are kept
    /// for checkpoints: what stays dirty then brings the next one about, and that frees blocks.
    pub(crate) fn keep_cache_in_bounds(&self, core: &mut Core) {
        if !core.state.store.over_budget() {
            return;
        }
        core.state.store.shrink();
        let frozen = matches!(self.phase, Phase::Pages { .. });
        let busy = frozen || core.devices.table_writes_out() >= WRITES_OUT_MAX;
        let spare = core.table_room.has_blocks_for(CLEAN_PAGES, &core.state);
        if busy || !spare || core.stopped.is_some() || !core.state.store.cleaning_is_due() {
            return;
        }
        let mut writes = VecDeque::from(core.state.store.clean_batch(CLEAN_PAGES));
        while let Some(run) = take_run(&mut writes) {
            write_pages(core, run);
        }
    }
}

impl Part for Checkpoints {
    /// Nobody waits for an answer.
    fn fail(&mut self, _error: &RequestError) {}

    /// A close asks for the last checkpoint itself, and waits for it.
    fn is_idle(&self, _core: &Core) -> bool {
        true
    }

    fn check(&self, core: &Core) {
        let published = (core.table_room.is_under_way, core.superblock.is_writing_root);
        let phase = (self.is_under_way(), self.is_writing_root());
        assert_eq!(phase, published, "PhaseIsPublished");
        assert_eq!(self.next_root.is_some(), self.is_under_way(), "RootIsMade");
    }
}

fn want_freeze(core: &mut Core, wanted: &mut Wanted) -> Result<bool, PageError> {
    let State { store, hash, containers, catalog, .. } = &mut core.state;
    let mut here = containers.want_store(store, &mut wanted.pins, &mut wanted.reads)?;
    here &= catalog.want_store(store, &mut wanted.pins, &mut wanted.reads)?;
    here &= hash.want_store(store, &mut wanted.pins, &mut wanted.reads)?;
    Ok(here)
}

fn root_of(core: &Core, generation: u64) -> Root {
    let state = &core.state;
    let tree = |number| state.store.tree_root(TreeId(number));
    Root {
        generation,
        clean: core.table_room.last_is_asked,
        journal: core.log.journal.next(),
        next_incarnation: core.log.incarnation + 1,
        compression: state.compression,
        trees: std::array::from_fn(|number| tree(number as u32)),
        hash: state.hash_shape(),
        next_pbn: state.next_pbn,
        free_head: state.free.head(),
        free_tail: state.free.tail(),
        next_volume: state.next_volume,
        domains: state.domains,
        catalog_slots: state.catalog.slots(),
        open_containers: state.open_containers,
        next_container_sequence: state.next_container_sequence,
        totals: state.totals,
        label: state.store.label(),
    }
}

/// Writes pages of consecutive blocks, of which there is one at least, as one.
fn write_pages(core: &mut Core, run: Vec<PageWrite>) {
    let first = run[0].block;
    core.counters.table_writes += run.len() as u64;
    let blocks = run.iter().map(|write| write.block).collect();
    let offset_bytes = block_offset_bytes(first);
    core.devices.write(Zone::Tables, offset_bytes, page_bytes(&run), Purpose::Pages(blocks));
    core.state.store.take_written(run);
}

/// Writes frozen pages, as many at a time as leave room for clients' I/O.
fn write_frozen_pages(core: &mut Core, writes: &mut VecDeque<PageWrite>) -> bool {
    let mut moved = false;
    while core.devices.table_writes_out() < WRITES_OUT_MAX
        && let Some(run) = take_run(writes)
    {
        write_pages(core, run);
        moved = true;
    }
    moved
}

#[cfg(test)]
mod tests {
    use mutants::Mutant;

    use crate::checkpoint::checkpoints::{Checkpoints, Phase};
    use crate::core::Core;
    use crate::devices::Purpose;
    use crate::door::error::RequestError;
    use crate::part::Part;
    use crate::small_store::{Alive, ended, store};

    /// Moves a checkpoint on that was asked for, until it is durable.
    fn run(checkpoints: &mut Checkpoints, core: &mut Core) {
        core.table_room.ask();
        while core.table_room.asked || checkpoints.is_under_way() {
            checkpoints.advance(core);
            checkpoints.check(core);
            for io in ended(core) {
                match io.purpose {
                    Purpose::Pages(blocks) => core.state.store.write_done(&blocks),
                    Purpose::Page(read) => {
                        core.state.store.page_arrived(read, io.buf.as_deref().ok_or(())).unwrap();
                    }
                    Purpose::TablesSync | Purpose::Root | Purpose::RootSync => {
                        checkpoints.io_ended();
                    }
                    Purpose::Journal(_) => {}
                    purpose => panic!("a checkpoint does not ask for {purpose:?}"),
                }
            }
        }
    }

    #[test]
    fn a_checkpoint_that_is_asked_for_ends_with_the_next_root() {
        let (mut engine, _client) = store(Default::default());
        let (mut checkpoints, core) = (Checkpoints::new(), &mut engine.core);
        let generation = core.superblock.next_generation();
        run(&mut checkpoints, core);
        assert_eq!(core.superblock.newest.generation, generation);
        assert!(!checkpoints.advance(core), "none is asked for");
    }

    #[test]
    fn none_begins_and_none_goes_on_once_the_writing_has_stopped() {
        let (mut engine, _client) = store(Default::default());
        let (mut checkpoints, core) = (Checkpoints::new(), &mut engine.core);
        core.table_room.ask();
        core.stop_writing(RequestError::WorkerLost);
        assert!(!checkpoints.advance(core) && !checkpoints.is_under_way());
    }

    #[test]
    #[should_panic(expected = "PhaseIsPublished")]
    fn the_core_knows_of_a_checkpoint_that_is_under_way() {
        let (mut engine, _client) = store(Default::default());
        engine.core.table_room.is_under_way = true;
        Checkpoints::new().check(&engine.core);
    }

    #[test]
    #[should_panic(expected = "RootIsMade")]
    fn a_checkpoint_has_the_root_that_it_ends_with() {
        let (mut engine, _client) = store(Default::default());
        let mut checkpoints = Checkpoints { phase: Phase::Durable, ..Checkpoints::new() };
        checkpoints.advance(&mut engine.core);
    }

    #[test]
    #[should_panic(expected = "RootBehindRecords")]
    fn no_root_is_written_before_what_it_counts_in_is_durable() {
        let (mut engine, _client) = store(Default::default());
        let core = &mut engine.core;
        core.record(&[]);
        let _alive = Alive::let_live(Mutant::WritesRootBeforeRecords);
        run(&mut Checkpoints::new(), core);
    }

    #[test]
    #[should_panic(expected = "OlderRootKeepsJournal")]
    fn the_journal_is_kept_from_where_the_older_root_begins() {
        let (mut engine, _client) = store(Default::default());
        let core = &mut engine.core;
        core.record(&[]);
        let sequence = core.log.appended_sequence;
        core.log.settled.durable_sequence = sequence;
        core.log.settled.placed_sequence = sequence;
        let _alive = Alive::let_live(Mutant::ForgetsOlderJournal);
        run(&mut Checkpoints::new(), core);
    }
}
