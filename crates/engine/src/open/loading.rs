//! A store before its engine runs: tables with a disk behind them that may be waited for.

use disk::{AlignedBuf, IoError, SharedBuf};
use format::BLOCK_BYTES;
use format::catalog::{self, CatalogEntry};
use format::page::Page;
use format::record::Change;
use format::root::Root;
use format::superblock::{Geometry, root_block};
use format::units::{TreeId, TreeRoot, VolumeId, Zone, block_offset_bytes};
use mutants::mutant;
use tables::{PageError, PageRead, PageWrite, ReachWalker};

use crate::checkpoint::page_runs::{page_bytes, take_run};
use crate::devices::Devices;
use crate::geometry::label_of;
use crate::open::batches::Batches;
use crate::open::open_error::OpenError;
use crate::pages::wanted::Wanted;
use crate::state::State;
use crate::volumes::versions::copied_versions;

/// Pages of neighbouring blocks that are read as one.
const PAGES_PER_READ: usize = 256;

/// Pages that are cleaned at a time to make room in the cache.
const CLEAN_PAGES: usize = 1024;

/// Tables and the disk that they wait for.
pub(crate) struct Loading {
    pub(crate) devices: Devices,
    pub(crate) state: State,
    /// False for a check, which changes nothing on disk.
    pub(crate) may_write: bool,
    /// Blocks that are left alone, for the first checkpoints and what must go on between them.
    pub(crate) kept_blocks: u64,
    /// A root slot that is written over before anything that a root may name.
    pub(crate) unread: Option<UnreadSlot>,
    /// How much is read at once.
    pub(crate) batches: Batches,
}

/// A root slot that the device did not give, or that holds an older root of which it did not give
/// all pages. It may hold a newer root than the one that is believed, or name what nobody knows of,
/// and be read next time: so it has to be gone before the store writes over what that names. And
/// not sooner, for the opening may yet find out that without it the store cannot be opened.
pub(crate) struct UnreadSlot {
    offset_bytes: u64,
    /// The root that is believed.
    block: SharedBuf,
}

impl UnreadSlot {
    pub(crate) fn new(offset_bytes: u64, newest: &Root, geometry: &Geometry) -> Self {
        let block = AlignedBuf::padded(&newest.encode(geometry.uuid)).into();
        Self { offset_bytes, block }
    }
}

impl Loading {
    /// Reads the pages that wants have named, and waits for all of them; the first that is damaged
    /// is the error.
    pub(crate) fn load_pages(&mut self, reads: Vec<PageRead>) -> Result<(), OpenError> {
        let (mut reads, mut outcome) = (reads, Ok(()));
        reads.sort_unstable_by_key(|read| read.pointer.block());
        let next_to =
            |one: &PageRead, other: &PageRead| one.pointer.block() + 1 == other.pointer.block();
        let runs: Vec<&[PageRead]> =
            reads.chunk_by(next_to).flat_map(|run| run.chunks(PAGES_PER_READ)).collect();
        for (run, bytes) in runs.iter().zip(self.read_runs(&runs)) {
            if bytes.is_err() && run.len() > 1 {
                // One that cannot be read takes no other with it.
                for (alone, bytes) in run.chunks(1).zip(self.read_blocks(run)) {
                    outcome = outcome.and(self.pages_arrived(alone, bytes));
                }
            } else {
                outcome = outcome.and(self.pages_arrived(run, bytes));
            }
        }
        outcome.map_err(OpenError::from)
    }

    /// Reads runs of neighbouring pages, all at once.
    fn read_runs(&mut self, runs: &[&[PageRead]]) -> Vec<Result<AlignedBuf, IoError>> {
        let place = |run: &&[PageRead]| {
            let block = run.first().map_or(0, |first| first.pointer.block());
            (block_offset_bytes(block), run.len() * BLOCK_BYTES)
        };
        self.devices.read_all_now(Zone::Tables, runs.iter().map(place))
    }

    fn pages_arrived(
        &mut self,
        run: &[PageRead],
        bytes: Result<AlignedBuf, IoError>,
    ) -> Result<(), PageError> {
        let mut outcome = Ok(());
        for (at, &read) in run.iter().enumerate() {
            let page = bytes.as_ref().map(|bytes| &bytes[at * BLOCK_BYTES..][..BLOCK_BYTES]);
            let arrived = self.state.store.page_arrived(read, page.map_err(|_| ()));
            outcome = outcome.and(arrived);
        }
        outcome
    }

    /// Reads these pages, all at once, past the cache.
    fn read_blocks(&mut self, reads: &[PageRead]) -> Vec<Result<AlignedBuf, IoError>> {
        let each: Vec<&[PageRead]> = reads.chunks(1).collect();
        self.read_runs(&each)
    }

    /// The same; a page that does not come is asked for once more, alone.
    fn read_blocks_twice(&mut self, reads: &[PageRead]) -> Vec<Result<AlignedBuf, IoError>> {
        let mut all = self.read_blocks(reads);
        for (read, bytes) in reads.iter().zip(&mut all) {
            if bytes.is_err()
                && let Some(again) = self.read_blocks(std::slice::from_ref(read)).pop()
            {
                *bytes = again;
            }
        }
        all
    }

    /// Repeats `want` until all it names is here.
    pub(crate) fn wait_for(
        &mut self,
        mut want: impl FnMut(&mut State, &mut Wanted) -> Result<bool, PageError>,
    ) -> Result<Wanted, OpenError> {
        loop {
            let mut wanted = Wanted::default();
            let here = want(&mut self.state, &mut wanted);
            if matches!(here, Ok(true)) {
                return Ok(wanted);
            }
            let loaded = self.load_pages(std::mem::take(&mut wanted.reads));
            self.state.store.release_pins(wanted.pins);
            here?;
            loaded?;
        }
    }

    /// Reads what these changes are going to need, all at once as far as that can be told before
    /// the first is applied, and holds it. What fails here fails again when its change is applied.
    pub(crate) fn read_for(&mut self, changes: &[&Change]) -> Wanted {
        let wanted = self.wait_for(|state, wanted| {
            changes
                .iter()
                .try_fold(true, |here, change| Ok(here & state.want_change(change, wanted)?))
        });
        wanted.unwrap_or_default()
    }

    /// Applies one change, its pages read first.
    pub(crate) fn apply(&mut self, change: &Change) -> Result<(), OpenError> {
        let wanted = self.wait_for(|state, wanted| state.want_change(change, wanted))?;
        copied_versions(change).try_for_each(|version| self.write_version(version))?;
        self.state.apply(change);
        self.state.live_changes.clear();
        self.state.store.release_pins(wanted.pins);
        self.work_on_hash()?;
        self.keep_cache_in_bounds()
    }

    /// Writes the root that is believed once more, durably: it may be in a cache only, and the next
    /// one takes the place of the only other.
    pub(crate) fn write_root_again(
        &mut self,
        newest: &Root,
        geometry: &Geometry,
    ) -> Result<(), IoError> {
        let offset_bytes = block_offset_bytes(root_block(newest.generation));
        let block = AlignedBuf::padded(&newest.encode(geometry.uuid)).into();
        self.devices.write_now(Zone::Superblock, offset_bytes, block)?;
        self.devices.sync_now(Zone::Superblock)
    }

    /// Writes the label of the root that is believed, durably: a kill may have come between that
    /// root and it, and a store that was closed once has no other.
    pub(crate) fn write_label_again(
        &mut self,
        newest: &Root,
        geometry: &Geometry,
    ) -> Result<(), IoError> {
        if self.state.store.label() == 0 || mutant!(TrustsLabelAtOpening) {
            return Ok(());
        }
        let (offset_bytes, buf) = label_of(geometry, newest);
        self.devices.write_now(Zone::Tables, offset_bytes, buf)?;
        self.devices.sync_now(Zone::Tables)
    }

    /// Writes the root that is believed over the slot that could not be read, durably.
    pub(crate) fn replace_unread(&mut self) -> Result<(), IoError> {
        let Some(UnreadSlot { offset_bytes, block }) = self.unread.take() else { return Ok(()) };
        self.devices.write_now(Zone::Superblock, offset_bytes, block)?;
        self.devices.sync_now(Zone::Superblock)
    }

    /// Writes what is dirty of a version that is about to be copied, so that the copy shares it.
    /// Live, copies are made behind a freeze that gave these pages blocks; its root is not durable.
    /// Were they copied instead, each for each copy, no freeze might ever find blocks for all.
    fn write_version(&mut self, version: VolumeId) -> Result<(), OpenError> {
        if !self.may_write {
            return Ok(());
        }
        let writes = self.state.store.clean_tree(TreeId::volume(version));
        self.write_pages(writes)
    }

    /// Writes what records carry to its place ([`crate::placement::carrying`]).
    pub(crate) fn place_carried(&mut self, geometry: &Geometry) -> Result<(), IoError> {
        let containers = &self.state.containers;
        self.devices.place_carried(|zone, at_bytes| {
            let container = geometry.container_at(zone, at_bytes);
            let frames_end = container.and_then(|id| {
                let (_, start_bytes) = geometry.container_zone(id)?;
                Some(start_bytes + u64::from(containers.get(id).used_bytes))
            });
            frames_end.unwrap_or(u64::MAX)
        })
    }

    /// Dirty pages leave the cache as they do live: no root that counts names the blocks they are
    /// given.
    pub(crate) fn keep_cache_in_bounds(&mut self) -> Result<(), OpenError> {
        if !self.state.store.over_budget() {
            return Ok(());
        }
        self.state.store.shrink();
        if !self.may_write || !self.state.store.cleaning_is_due() {
            return Ok(());
        }
        let writes = self.state.store.clean_batch(CLEAN_PAGES);
        self.write_pages(writes)
    }

    fn write_pages(&mut self, writes: Vec<PageWrite>) -> Result<(), OpenError> {
        if writes.is_empty() {
            return Ok(());
        }
        self.replace_unread()?;
        let mut pages = writes.into();
        let (mut blocks, mut writes) = (Vec::new(), Vec::new());
        while let Some(run) = take_run(&mut pages) {
            blocks.extend(run.iter().map(|write| write.block));
            let offset_bytes = run.first().map_or(0, |write| block_offset_bytes(write.block));
            writes.push((offset_bytes, page_bytes(&run)));
        }
        self.devices.write_all_now(Zone::Tables, writes)?;
        self.state.store.write_done(&blocks);
        Ok(())
    }

    /// Marks every block that either root names; the older's own stay out of use for now. If they
    /// cannot all be found because the device does not give a page, the older root is to go.
    pub(crate) fn mark_reachable(
        &mut self,
        geometry: &Geometry,
        newest: &Root,
        older: Option<&Root>,
    ) -> Result<(), OpenError> {
        let mut walker =
            ReachWalker::new(self.devices.size_bytes(Zone::Tables) / BLOCK_BYTES as u64);
        self.walk_root(&mut walker, newest)?;
        if let Some(older) = older {
            walker.begin_older();
            // With a page that is damaged it is no root any more.
            if let Err(OpenError::Io(_)) = self.walk_root(&mut walker, older) {
                let offset_bytes = block_offset_bytes(root_block(older.generation));
                self.unread = Some(UnreadSlot::new(offset_bytes, newest, geometry));
            }
        }
        self.state.store.adopt_reach(walker);
        self.state.store.adopt_label(newest.label);
        Ok(())
    }

    fn walk_root(&mut self, walker: &mut ReachWalker, root: &Root) -> Result<(), OpenError> {
        walker.add_label(root.label);
        for (number, tree) in root.trees.iter().enumerate() {
            walker.add_tree(TreeId(number as u32), *tree)?;
        }
        self.walk(walker)?;
        let leaves = walker.take_catalog_leaves();
        for entry in self.catalog_entries(&leaves)? {
            walker.add_tree(TreeId::volume(entry.id), entry.root)?;
        }
        self.walk(walker)
    }

    fn walk(&mut self, walker: &mut ReachWalker) -> Result<(), OpenError> {
        loop {
            let reads = walker.next_reads(self.batches.walked_pages());
            if reads.is_empty() {
                return Ok(());
            }
            for (read, bytes) in reads.iter().zip(self.read_blocks_twice(&reads)) {
                walker.feed(read, &bytes?)?;
            }
        }
    }

    /// The volumes that the given leaves of a catalog hold.
    fn catalog_entries(&mut self, leaves: &[PageRead]) -> Result<Vec<CatalogEntry>, OpenError> {
        let mut entries = Vec::new();
        for (leaf, bytes) in leaves.iter().zip(self.read_blocks_twice(leaves)) {
            let page = Page::from_bytes(&bytes?).map_err(OpenError::Catalog)?;
            page.check(leaf.id, leaf.pointer.tag()).map_err(OpenError::Catalog)?;
            for slot in 0..catalog::SLOTS {
                entries.extend(catalog::get(&page, slot).map_err(OpenError::Catalog)?);
            }
        }
        Ok(entries)
    }

    /// Brings catalog and container table into memory.
    pub(crate) fn load_tables(&mut self, root: &Root) -> Result<(), OpenError> {
        for (number, tree) in root.trees.iter().enumerate() {
            self.state.store.add_tree(TreeId(number as u32), *tree);
        }
        let wanted = self.wait_for(|state, wanted| {
            let State { store, catalog, containers, .. } = state;
            let here = catalog.want_load(store, &mut wanted.pins, &mut wanted.reads)?;
            Ok(here & containers.want_load(store, &mut wanted.pins, &mut wanted.reads)?)
        })?;
        let State { store, catalog, containers, .. } = &mut self.state;
        catalog.load(store)?;
        containers.load(store)?;
        self.state.store.release_pins(wanted.pins);
        let roots: Vec<(TreeId, TreeRoot)> =
            self.state.catalog.iter().map(|entry| (TreeId::volume(entry.id), entry.root)).collect();
        for (tree, root) in roots {
            self.state.store.add_tree(tree, root);
        }
        Ok(())
    }
}
