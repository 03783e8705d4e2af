//! Opening a store: geometry, the newest root, the tables it names, the journal behind it.
//!
//! 1. Geometry (two copies) and the newest valid root slot.
//! 2. The trees are walked from both roots, so that every block either root names is known.
//! 3. Catalog and container table are loaded; data zones that hold something else than they say
//!    are refused, before anything is written ([`crate::open::belonging`]). The journal's prefix is
//!    applied ([`crate::open::recovery`]).
//! 4. The open containers' directories are made again from their frames. What no known sync covers
//!    has been written again by then, or is now: it may have been in a cache only.
//! 5. A record of a new incarnation is appended and synced: whatever stale records lie behind the
//!    journal's end can never be taken for a continuation.
//!
//! Opening the older root, when the newer slot is lost, replays a longer piece of the same journal
//! to the same state. What is left of the newer one may still tell how far the journal was durable.

pub(crate) mod batches;
pub(crate) mod belonging;
pub(crate) mod container_lives;
pub(crate) mod frame_walk;
pub(crate) mod gathering;
pub(crate) mod loading;
pub(crate) mod loading_hash;
pub(crate) mod mend;
pub(crate) mod open_error;
pub(crate) mod recovery;
pub(crate) mod whose_journal;

use std::sync::Arc;

use containers::{ContainerUse, OpenContainer, SealedUse, Space};
use disk::{Disk, Doorbell};
use format::container_page::{ContainerEntry, ContainerState};
use format::record::{Change, Settled};
use format::root::{JournalPosition, Root, Stream};
use format::superblock::{self, Geometry};
use format::units::Zone;
use format::{BLOCK_BYTES, bucket};
use journal::Writer;
use mutants::mutant;
use reduce::Workers;
use tables::{
    CatalogTable, ContainerTable, FreePbns, HashOptions, HashPbn, PageStore, PageStoreOptions,
};
use threads::AdaptiveSpin;

use crate::copies::COPIES_ABOVE_DEFAULT;
use crate::core::CoreParts;
use crate::core::record_log::RecordLog;
use crate::core::superblock::Superblock;
use crate::core::table_room::{TableRoom, blocks_kept, dirty_pages_sure};
use crate::devices::Devices;
use crate::door::client::Client;
use crate::door::error::RequestError;
use crate::door::intake::Intake;
use crate::engine::{Engine, Parts};
use crate::geometry::{
    agree_on_geometry, check_zones, of_blank, raise_version, read_geometry, read_superblock,
    refuse_to_write,
};
use crate::open::batches::Batches;
use crate::open::belonging::refuse_foreign_tables;
use crate::open::loading::{Loading, UnreadSlot};
use crate::open::open_error::{OpenError, OpenReport};
use crate::open::recovery::Recovered;
use crate::options::{Caches, MEMORY_BYTES_MIN, Options};
use crate::placement::Placement;
use crate::state::{EntriesSeen, State};
use crate::volumes::Volumes;

/// A store with its journal applied, not yet running.
pub(crate) struct Opened {
    pub(crate) geometry: Geometry,
    pub(crate) devices: Devices,
    pub(crate) state: State,
    pub(crate) batches: Batches,
    pub(crate) newest: Root,
    /// Where the older root's journal begins; the newest's, if there is no older.
    pub(crate) tail_offset_bytes: u64,
    pub(crate) recovered: Recovered,
    pub(crate) report: OpenReport,
}

/// Opens a store for work.
///
/// # Errors
/// [`OpenError`] names the structure that cannot be used.
pub fn open(
    disk: Box<dyn Disk>,
    doorbell: Doorbell,
    options: &Options,
) -> Result<(Engine, Client, OpenReport), OpenError> {
    if options.memory_bytes < MEMORY_BYTES_MIN {
        return Err(OpenError::Memory { memory_bytes: options.memory_bytes });
    }
    open_with_cache(disk, doorbell, options, options.caches())
}

/// As [`open`], with these caches, whatever the memory: with a few hundred pages, pages leave
/// the cache and checkpoints come in the smallest store, which is what a simulator wants to see.
///
/// # Errors
/// As [`open`].
pub fn open_with_cache(
    disk: Box<dyn Disk>,
    doorbell: Doorbell,
    options: &Options,
    cache: Caches,
) -> Result<(Engine, Client, OpenReport), OpenError> {
    let opened = load(Devices::new(disk), cache, true)?;
    let placement = placement(&opened);
    let Opened { geometry, mut devices, state, newest, tail_offset_bytes, recovered, .. } = opened;
    let incarnation = recovered.incarnation + 1;
    let resume = recovered.position;
    let mut journal = Writer::resume(
        geometry.journal_bytes,
        geometry.uuid,
        resume,
        tail_offset_bytes,
        incarnation,
    );
    announce(&mut devices, &mut journal, incarnation, &geometry)?;
    let chunk_bytes = geometry.chunk_bytes;
    reduce::pool::keep_at_most(options.pooled_bytes());
    let lookaside_bytes = cache.lookaside_bytes();
    let intake = Arc::new(Intake::new(doorbell.clone(), options, chunk_bytes, lookaside_bytes));
    let waker = doorbell.clone();
    let workers = Workers::new(options.worker_threads, Arc::new(move || waker.ring()));
    let dirty_pages_sure = dirty_pages_sure(geometry.tables_bytes, cache.pages);
    let volumes = Volumes::load(&state, chunk_bytes, options.read_only);
    let core = CoreParts {
        log: RecordLog::new(journal, incarnation),
        table_room: TableRoom::new(dirty_pages_sure, cache.dirty_pages_max),
        superblock: Superblock::new(&newest),
        volumes,
        geometry,
        devices,
        intake: Arc::clone(&intake),
        workers,
        state,
        placement,
    };
    let mut engine = Engine::new(Parts {
        core,
        doorbell,
        spin: AdaptiveSpin::up_to_us(options.poll_us),
        memory_bytes_max: options.memory_bytes,
        caches: cache,
        accelerator: options.accelerator,
    });
    engine.copy_above(COPIES_ABOVE_DEFAULT);
    engine.ahead.of_comparisons = options.comparing_ahead;
    engine.core.publish_space();
    if options.read_only {
        engine.stop_writing(RequestError::StoreReadOnly);
    }
    Ok((engine, Client::new(intake), opened.report))
}

/// Container sequences left out after a crash: more than an unsynced window can open.
const SEQUENCES_SKIPPED: u32 = 1024;

/// Loads a store; with `may_write` table pages may leave the cache for blocks that no root names.
pub(crate) fn load(
    mut devices: Devices,
    cache: Caches,
    may_write: bool,
) -> Result<Opened, OpenError> {
    let geometry = read_geometry(&mut devices);
    let mut geometry = geometry.map_err(|error| of_blank(error, &mut devices))?;
    if may_write {
        refuse_to_write(&geometry)?;
    }
    check_zones(&devices, &geometry)?;
    devices.release_data_zones(geometry.data.len());
    if may_write {
        // The newest root may be in the device's cache only, left there by a process that was
        // killed. If the power took it back, the slot would hold a root again whose pages are
        // by then written over.
        devices.sync_now(Zone::Superblock)?;
        agree_on_geometry(&mut devices, &geometry)?;
    }
    let roots = read_roots(&mut devices, &geometry);
    let roots = roots.map_err(|error| of_blank(error, &mut devices))?;
    let Roots { newest, older, unread, told } = roots;
    refuse_foreign_tables(&mut devices, &geometry)?;
    let state = empty_state(&geometry, &newest, cache);
    let kept_blocks = blocks_kept(dirty_pages_sure(geometry.tables_bytes, cache.pages));
    let unread = unread.map(|at_bytes| UnreadSlot::new(at_bytes, &newest, &geometry));
    let batches = Batches::of(cache.pages, geometry.tables_blocks());
    let mut loading = Loading { devices, state, may_write, kept_blocks, unread, batches };
    loading.mark_reachable(&geometry, &newest, older.as_ref())?;
    loading.load_tables(&newest)?;
    let scanned = loading.scan_journal(&geometry, &newest, told)?;
    loading.refuse_foreign_zones(&geometry, &newest, &scanned)?;
    if may_write {
        raise_version(&mut loading.devices, &mut geometry)?;
    }
    loading.load_hash()?;
    loading.take_over_linear_hash()?;
    let recovered = loading.replay(&geometry, &newest, scanned)?;
    if may_write {
        // A slot that is written may come out torn: never the only one.
        if older.is_some() {
            loading.write_root_again(&newest, &geometry)?;
        }
        loading.replace_unread()?;
        loading.write_label_again(&newest, &geometry)?;
        if !mutant!(PlacesNoCarried) {
            loading.place_carried(&geometry)?;
        }
        loading.mend_directories(&geometry, &recovered.sealed)?;
    }
    let report = OpenReport {
        clean: newest.clean && recovered.records == 0,
        older_root: older.is_none() && newest.generation > 1,
        records_replayed: recovered.records,
        journal_bytes_replayed: recovered.position.offset_bytes - newest.journal.offset_bytes,
        frames_checked: recovered.frames_checked,
        cut: recovered.cut,
    };
    let Loading { devices, state, .. } = loading;
    let tail_offset_bytes =
        older.as_ref().map_or(newest.journal.offset_bytes, |root| root.journal.offset_bytes);
    Ok(Opened { geometry, devices, state, batches, newest, tail_offset_bytes, recovered, report })
}

/// What the two slots hold.
struct Roots {
    newest: Root,
    /// The one before it, if it is valid too.
    older: Option<Root>,
    /// Where a slot lies that the device did not give.
    unread: Option<u64>,
    /// Where the journal goes on according to a slot that is damaged.
    told: Option<JournalPosition>,
}

fn read_roots(devices: &mut Devices, geometry: &Geometry) -> Result<Roots, OpenError> {
    let mut roots = Vec::new();
    let (mut failure, mut unread, mut told) = (None, None, None);
    for slot in 0..2 {
        let offset_bytes = superblock::root_block(slot) * BLOCK_BYTES as u64;
        match read_superblock(devices, offset_bytes) {
            Ok(block) => match Root::decode_in(&block, geometry) {
                Ok(root) => roots.push(root),
                Err(_) if block.iter().all(|&byte| byte == 0) => {
                    failure = failure.or(Some(OpenError::Unfinished));
                }
                Err(error) => {
                    told = Root::journal_in_damaged(&block, geometry.uuid);
                    failure = Some(OpenError::Roots(error));
                }
            },
            // One slot that cannot be read is no worse than one that is damaged.
            Err(error) => {
                unread = Some(offset_bytes);
                failure = failure.or(Some(OpenError::Io(error)));
            }
        }
    }
    roots.sort_by_key(|root| std::cmp::Reverse(root.generation));
    let mut roots = roots.into_iter();
    match (roots.next(), failure) {
        (Some(newest), _) => Ok(Roots { newest, older: roots.next(), unread, told }),
        (None, Some(error)) => Err(error),
        (None, None) => Err(OpenError::Memory { memory_bytes: 0 }),
    }
}

/// Of the blocks of zone tables, those that young entries may take.
const YOUNG_BLOCKS_PART: u64 = 8;

fn empty_state(geometry: &Geometry, root: &Root, cache: Caches) -> State {
    let tables_blocks = geometry.tables_blocks();
    let cache_pages = cache.pages;
    let store = PageStore::new(PageStoreOptions { cache_pages, tables_blocks });
    let young_blocks = (tables_blocks / YOUNG_BLOCKS_PART) as usize;
    let young_max = cache.young_max.min(young_blocks.saturating_mul(bucket::CAPACITY));
    let options = HashOptions::with_young(young_max, geometry.detection.filter);
    State {
        store,
        hash: HashPbn::new(root.hash, geometry.bucket_seed, options),
        free: FreePbns::new(root.free_head, root.free_tail),
        containers: ContainerTable::new(geometry.containers_total()),
        catalog: CatalogTable::new(root.catalog_slots),
        totals: root.totals,
        next_pbn: root.next_pbn,
        next_volume: root.next_volume,
        domains: root.domains,
        compression: root.compression,
        open_containers: root.open_containers,
        next_container_sequence: root.next_container_sequence,
        entries_seen: EntriesSeen::default(),
        live_changes: Vec::new(),
        copies_above: 0,
        popular: Vec::new(),
        scratch: Default::default(),
    }
}

/// The containers as the tables know them, the open ones resumed.
fn placement(opened: &Opened) -> Placement {
    let state = &opened.state;
    let uses = state.containers.iter().map(|(_, entry)| container_use(&entry));
    let ahead = opened.devices.allocation_ahead();
    let allocated = |number| ahead.and_then(|ahead| ahead.allocated_bytes(number));
    let zones = 0..opened.geometry.data.len() as u16;
    // What is not allocated as it fills has all of its room.
    let allocated_bytes: Vec<_> =
        zones.map(|number| allocated(number).unwrap_or(u64::MAX)).collect();
    let space = Space::with_allocated(&opened.geometry, &allocated_bytes, uses);
    let resume = |stream: Stream| {
        let open = state.open_containers[stream as usize]?;
        let entries = opened.recovered.open_entries[stream as usize].clone()?;
        Some(OpenContainer::resume(open.id, open.sequence, open.fill_bytes, entries))
    };
    let open = Stream::ALL.map(resume);
    // What was cut may have used the next numbers: its directories must not pass for new ones.
    let skipped = if opened.report.clean { 0 } else { SEQUENCES_SKIPPED };
    let next_sequence = state.next_container_sequence.wrapping_add(skipped);
    Placement::new(space, open, next_sequence, &opened.geometry)
}

/// What was freed is free: the record that opens the store says that all before it is durable.
fn container_use(entry: &ContainerEntry) -> ContainerUse {
    let ContainerEntry { live_bytes, used_bytes, state, sequence } = *entry;
    match state {
        ContainerState::Free => ContainerUse::Free,
        ContainerState::Open => ContainerUse::Open { live_bytes },
        ContainerState::Sealed => {
            ContainerUse::Sealed(SealedUse { live_bytes, used_bytes, sequence, damaged: false })
        }
    }
}

/// Appends the record that opens a new incarnation, and syncs it with all that was replayed and
/// written again.
fn announce(
    devices: &mut Devices,
    journal: &mut Writer,
    incarnation: u64,
    geometry: &Geometry,
) -> Result<(), OpenError> {
    let mut body = Vec::new();
    Change::Opened { incarnation }.encode(&mut body);
    let before = journal.next().sequence - 1;
    let settled = Settled { durable_sequence: before, placed_sequence: before };
    // The record says that all before it is durable: so it must be, before the record is written.
    let there = (0..geometry.data.len() as u16).filter(|&number| geometry.has_data_zone(number));
    for number in there.filter(|_| !mutant!(AnnouncesUnsynced)) {
        devices.sync_now(Zone::Data(number))?;
    }
    // The journal as well: if this record alone outlived the power, those that it calls durable
    // would seem to have rotted.
    if !mutant!(AnnouncesBeforeJournal) {
        devices.sync_now(Zone::Journal)?;
    }
    let appended = journal.append(&body, settled).map_err(|_| OpenError::JournalFull)?;
    for write in appended.writes {
        devices.write_now(Zone::Journal, write.offset_bytes, write.buf)?;
    }
    if !mutant!(OpensUnsynced) {
        devices.sync_now(Zone::Journal)?;
    }
    Ok(())
}
