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

use crate::checkpoint::checkpoints::Phase;
use crate::checkpoint::page_runs::{page_bytes, take_run};
use crate::devices::Purpose;
use crate::door::error::RequestError;
use crate::engine::Engine;
use crate::geometry::label_of;
use crate::notice::Notice;
use crate::pages::wanted::Wanted;
use crate::state::State;

/// Writes of table pages in flight at most: clients' I/O goes in between.
const WRITES_OUT_MAX: usize = 4;
/// Pages that are cleaned at a time to make room in the cache.
const CLEAN_PAGES: usize = 256;

impl Engine {
    /// Moves the running checkpoint on, or begins one.
    pub(crate) fn advance_checkpoint(&mut self) -> bool {
        if self.core.stopped.is_some() {
            return false;
        }
        match &mut self.checkpoints.phase {
            Phase::Idle => self.begin_checkpoint(),
            Phase::Pages { .. } => self.write_frozen_pages(),
            Phase::PagesOut { mark } => {
                let mark = *mark;
                if !self.core.devices.tables_written_before(mark) {
                    return false;
                }
                let pages = if mutant!(WritesRootUnsynced) { Zone::Journal } else { Zone::Tables };
                self.core.devices.sync(pages, Purpose::TablesSync);
                self.enter_phase(Phase::TablesSync)
            }
            Phase::TablesSync if self.checkpoints.ended => {
                self.core.flushes.ask();
                self.enter_phase(Phase::Durable)
            }
            Phase::Durable => self.write_root_when_durable(),
            Phase::Root if self.checkpoints.ended => {
                if self.core.table_room.last_is_asked && mutant!(ClosesUnsynced) {
                    return self.end_checkpoint();
                }
                self.core.devices.sync(Zone::Superblock, Purpose::RootSync);
                self.enter_phase(Phase::RootSync)
            }
            Phase::RootSync if self.checkpoints.ended => self.write_label(),
            Phase::Label if self.checkpoints.ended => self.end_checkpoint(),
            _ => false,
        }
    }

    fn enter_phase(&mut self, phase: Phase) -> bool {
        self.checkpoints.phase = phase;
        self.checkpoints.ended = false;
        self.core.table_room.is_under_way = self.checkpoints.is_under_way();
        self.core.superblock.is_writing_root = self.checkpoints.is_writing_root();
        true
    }

    fn checkpoint_is_due(&self) -> bool {
        let room = &self.core.table_room;
        let begin_bytes = self.core.superblock.newest.journal.offset_bytes;
        let replay_bytes = self.core.log.journal.next().offset_bytes - begin_bytes;
        let pressed =
            self.waits_for_blocks() && self.core.buffer.groups.is_empty() && room.relief_may_come();
        room.asked
            || pressed
            || self.merge_waits_for_blocks()
            || (room.last_is_asked && !self.checkpoints.clean)
            || self.core.state.store.dirty_pages() >= room.dirty_pages_due(&self.core.state)
            || replay_bytes >= self.core.geometry.journal_bytes / 4
    }

    fn begin_checkpoint(&mut self) -> bool {
        if !self.checkpoint_is_due() {
            return false;
        }
        if self.core.table_room.last_is_asked && !self.core.is_marked() {
            let moved = self.core.ask_for_mark();
            self.answer_stop();
            return moved;
        }
        if self.core.table_room.lacks_blocks_that_come(&self.core.state) {
            return self.repeat_root();
        }
        match self.freeze() {
            Ok(Some(writes)) => {
                self.core.table_room.asked = false;
                let generation = self.core.superblock.next_generation();
                self.core.tell(&Notice::CheckpointBegan { generation });
                self.enter_phase(Phase::Pages { writes })
            }
            Ok(None) => false,
            Err(error) => self.stop_for(&error),
        }
    }

    /// The next root names what the newest names: the checkpoint that was asked for comes after it.
    fn repeat_root(&mut self) -> bool {
        let generation = self.core.superblock.next_generation();
        let mut root = self.core.superblock.newest.clone();
        (root.generation, root.clean) = (generation, false);
        root.next_incarnation = self.core.log.incarnation + 1;
        self.checkpoints.next_root = Some(root);
        self.core.tell(&Notice::RootRepeated { generation });
        // No pages, but the label of the root before may be in a cache only.
        let mark = self.core.devices.mark();
        self.enter_phase(Phase::PagesOut { mark })
    }

    /// Freezes the tables as they are; None while pages that hold catalog or containers are read.
    fn freeze(&mut self) -> Result<Option<VecDeque<PageWrite>>, PageError> {
        let mut wanted = Wanted::default();
        let here = self.want_freeze(&mut wanted);
        let writes = if let Ok(true) = here { self.freeze_resident() } else { None };
        self.core.hold_pages(wanted, |held| &mut held.freeze);
        here.map(|_| writes)
    }

    fn want_freeze(&mut self, wanted: &mut Wanted) -> Result<bool, PageError> {
        let State { store, hash, containers, catalog, .. } = &mut self.core.state;
        let mut here = containers.want_store(store, &mut wanted.pins, &mut wanted.reads)?;
        here &= catalog.want_store(store, &mut wanted.pins, &mut wanted.reads)?;
        here &= hash.want_store(store, &mut wanted.pins, &mut wanted.reads)?;
        Ok(here)
    }

    fn freeze_resident(&mut self) -> Option<VecDeque<PageWrite>> {
        let generation = self.core.superblock.next_generation();
        let Ok(mut writes) = self.core.state.freeze(generation) else {
            self.stop_writing(RequestError::NoSpace);
            return None;
        };
        writes.sort_unstable_by_key(|write| write.block);
        self.checkpoints.next_root = Some(Box::new(self.root(generation)));
        Some(writes.into())
    }

    fn root(&self, generation: u64) -> Root {
        let state = &self.core.state;
        let tree = |number| state.store.tree_root(TreeId(number));
        Root {
            generation,
            clean: self.core.table_room.last_is_asked,
            journal: self.core.log.journal.next(),
            next_incarnation: self.core.log.incarnation + 1,
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

    fn write_frozen_pages(&mut self) -> bool {
        let mut moved = false;
        while self.core.devices.table_writes_out() < WRITES_OUT_MAX {
            let Phase::Pages { writes } = &mut self.checkpoints.phase else { return moved };
            let Some(run) = take_run(writes) else {
                let mark = self.core.devices.mark();
                return self.enter_phase(Phase::PagesOut { mark });
            };
            self.write_pages(run);
            moved = true;
        }
        moved
    }

    /// Writes pages of consecutive blocks as one.
    pub(crate) fn write_pages(&mut self, run: Vec<PageWrite>) {
        let Some(first) = run.first() else { return };
        self.core.counters.table_writes += run.len() as u64;
        let blocks = run.iter().map(|write| write.block).collect();
        let offset_bytes = block_offset_bytes(first.block);
        self.core.devices.write(
            Zone::Tables,
            offset_bytes,
            page_bytes(&run),
            Purpose::Pages(blocks),
        );
        self.core.state.store.take_written(run);
    }

    fn write_root_when_durable(&mut self) -> bool {
        let Some(root) = &self.checkpoints.next_root else { return false };
        let settled = self.core.log.settled;
        let early = mutant!(WritesRootUnplaced);
        let reached = if early { settled.durable_sequence } else { settled.placed_sequence };
        if reached + 1 < root.journal.sequence && !mutant!(WritesRootBeforeRecords) {
            self.core.flushes.ask();
            return false;
        }
        if self.core.superblock.is_mended {
            return false;
        }
        let mut buf = AlignedBuf::new_zeroed(BLOCK_BYTES);
        buf.copy_from_slice(&root.encode(self.core.geometry.uuid)[..]);
        let offset_bytes = block_offset_bytes(format::superblock::root_block(root.generation));
        self.core.devices.write(
            Zone::Superblock,
            offset_bytes,
            SharedBuf::from(buf),
            Purpose::Root,
        );
        self.enter_phase(Phase::Root)
    }

    /// Writes the label of a root that is durable in its slot. A root that was repeated has none of
    /// its own: that of the root before says the same.
    fn write_label(&mut self) -> bool {
        let newest = self.core.superblock.newest.label;
        let root =
            self.checkpoints.next_root.as_ref().filter(|root| ![0, newest].contains(&root.label));
        let Some(root) = root else { return self.end_checkpoint() };
        let (offset_bytes, buf) = label_of(&self.core.geometry, root);
        self.core.devices.write(Zone::Tables, offset_bytes, buf, Purpose::Root);
        self.enter_phase(Phase::Label)
    }

    fn end_checkpoint(&mut self) -> bool {
        let Some(root) = self.checkpoints.next_root.take() else { return false };
        let newest = &self.core.superblock.newest;
        let older = if mutant!(ForgetsOlderJournal) { &root } else { newest };
        self.core.log.journal.release_to(older.journal.offset_bytes);
        self.checkpoints.clean = root.clean;
        self.core.state.store.checkpoint_durable();
        self.core.counters.checkpoints += 1;
        self.core.tell(&Notice::CheckpointEnded { generation: root.generation });
        self.core.superblock.newest = root;
        if !self.core.waiting.is_empty() {
            self.core.table_room.pressure_rounds += 1;
        }
        self.enter_phase(Phase::Idle);
        self.count_merge_round();
        true
    }

    /// Lets cold pages go, so that the cache keeps its size, and gives cold dirty pages a place, so
    /// that they can go: early, before they squeeze out what is clean. Not in blocks that are kept
    /// for checkpoints: what stays dirty then brings the next one about, and that frees blocks.
    pub(crate) fn keep_cache_in_bounds(&mut self) {
        if !self.core.state.store.over_budget() {
            return;
        }
        self.core.state.store.shrink();
        let frozen = matches!(self.checkpoints.phase, Phase::Pages { .. });
        let busy = frozen || self.core.devices.table_writes_out() >= WRITES_OUT_MAX;
        let spare = self.core.table_room.has_blocks_for(CLEAN_PAGES, &self.core.state);
        if busy || !spare || self.core.stopped.is_some() || !self.core.state.store.cleaning_is_due()
        {
            return;
        }
        let mut writes = VecDeque::from(self.core.state.store.clean_batch(CLEAN_PAGES));
        while let Some(run) = take_run(&mut writes) {
            self.write_pages(run);
        }
    }
}
