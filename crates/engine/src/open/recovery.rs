//! The journal's prefix: which records count, and what they change.
//!
//! The journal is gone through twice. First only to learn the last known sync: every record
//! carries the sequence that was durable when it was written. So does a root, even a damaged one:
//! it says where the journal goes on behind what it holds. (If what stands behind the end says that
//! the journal went on, the store is not opened, and no change has been made.) Then to apply:
//! a record after that sync may name frames that never reached the disk, so its frames are checked,
//! and the journal is *cut* before the first record that misses one. What comes after the cut was
//! never promised.
//! Frames that a record carries count as arrived; the opening writes them to their containers
//! afterwards, unless a record says that they are there (`placed_sequence`).
//! Records are applied change by change, by the code that applied them live.
//!
//! What no known sync covers is *written again* where it was found: the records and the frames they
//! name. A sync of theirs may have failed before the process ended, and then what is read is in a
//! cache only, and no later sync brings it to the disk. What is written is what was checked.

use std::ops::Range;

use disk::{AlignedBuf, IoError, SharedBuf};
use format::BLOCK_BYTES;
use format::directory::DirectoryEntry;
use format::frame;
use format::record::{Change, Settled};
use format::root::{JournalPosition, OpenContainer, Root, STREAMS};
use format::superblock::Geometry;
use format::units::{CONTAINER_BYTES, ContainerId, Fingerprint, Pba, Pbn, Zone};
use journal::{Replay, ReplayRecord, ReplayStep};
use mutants::mutant;

use crate::core::frame::blocks_of;
use crate::devices::Devices;
use crate::open::container_lives::Lives;
use crate::open::frame_walk::{entries_by_scan, entry_of};
use crate::open::gathering::{Gathered, Gathering};
use crate::open::loading::Loading;
use crate::open::open_error::OpenError;
use crate::repair::damage_reads::read_blocks;
use crate::repair::journal_image::{Behind, LOOK_AHEAD_BYTES, last_missing, look_behind};

/// What the journal behind a root says before anything of it is applied.
pub(crate) struct Scanned {
    /// The last known sync.
    pub(crate) settled: Settled,
    pub(crate) behind: Behind,
    pub(crate) lives: Lives,
    /// Whether a record follows the root.
    pub(crate) any: bool,
}

/// What replaying came to.
pub(crate) struct Recovered {
    /// Where the journal goes on.
    pub(crate) position: JournalPosition,
    /// The newest incarnation seen.
    pub(crate) incarnation: u64,
    pub(crate) records: u64,
    pub(crate) frames_checked: u64,
    pub(crate) cut: bool,
    /// What the open containers hold, by stream.
    pub(crate) open_entries: [Option<Vec<DirectoryEntry>>; STREAMS],
    /// Containers sealed by records that no known sync covers.
    pub(crate) sealed: Vec<ContainerId>,
}

impl Loading {
    /// Goes through the journal from the root on; `told` is where it goes on behind a damaged root.
    pub(crate) fn scan_journal(
        &mut self,
        geometry: &Geometry,
        root: &Root,
        told: Option<JournalPosition>,
    ) -> Result<Scanned, OpenError> {
        let (mut settled, mut lives) = (Settled::default(), Lives::default());
        let mut scan = Replay::new(geometry.journal_bytes, geometry.uuid, root.journal);
        scan.read_ahead(self.batches.journal_bytes());
        let mut any = false;
        while let Some(record) = self.next_record(&mut scan)? {
            any = true;
            settled.learn(record.settled);
            lives.note(&record);
            if told == Some(scan.position()) {
                let placed_sequence = settled.placed_sequence;
                settled.learn(Settled { durable_sequence: record.sequence, placed_sequence });
            }
        }
        let mut behind = self.look_behind(geometry, scan.position());
        let missing = told.and_then(|told| last_missing(scan.position(), told));
        behind.durable_sequence = behind.durable_sequence.max(missing.unwrap_or(0));
        refuse_a_damaged_journal(behind, scan.position())?;
        Ok(Scanned { settled, behind, lives, any })
    }

    /// Applies the journal from the root on.
    pub(crate) fn replay(
        &mut self,
        geometry: &Geometry,
        root: &Root,
        scanned: Scanned,
    ) -> Result<Recovered, OpenError> {
        let Scanned { settled, behind, .. } = scanned;
        let mut recovered = Recovered {
            position: root.journal,
            incarnation: root.next_incarnation.saturating_sub(1),
            records: 0,
            frames_checked: 0,
            cut: false,
            open_entries: Default::default(),
            sealed: Vec::new(),
        };
        let mut replay = Replay::new(geometry.journal_bytes, geometry.uuid, root.journal);
        replay.keep_from(settled.durable_sequence + 1);
        replay.read_ahead(self.batches.journal_bytes());
        let mut gathering = Gathering::default();
        while !recovered.cut {
            let gathered = self.gather(&mut replay, &mut gathering, settled.durable_sequence)?;
            let Some(last) = gathered.last() else { break };
            for record in &gathered {
                if record.sequence > settled.placed_sequence && !mutant!(ForgetsCarriedFrames) {
                    self.devices.carry(geometry, &record.changes);
                }
            }
            if last.sequence > settled.durable_sequence {
                if !self.frames_are_there(geometry, &last.changes, &mut recovered)? {
                    recovered.cut = true;
                    break;
                }
                recovered.note_seals(&last.changes);
                self.write_records_again(replay.take_kept())?;
            }
            self.apply_gathered(&gathered)?;
            recovered.note(&gathered);
        }
        refuse_a_damaged_journal(behind, recovered.position)?;
        for (at, open) in self.state.open_containers.into_iter().enumerate() {
            let Some(open) = open else { continue };
            recovered.open_entries[at] = self.open_entries(geometry, open)?;
        }
        Ok(recovered)
    }

    fn write_records_again(&mut self, records: Vec<(u64, Vec<u8>)>) -> Result<(), IoError> {
        for (offset_bytes, bytes) in records.into_iter().filter(|_| self.may_write) {
            let buf = AlignedBuf::padded(&bytes).into();
            self.devices.write_now(Zone::Journal, offset_bytes, buf)?;
        }
        Ok(())
    }

    pub(crate) fn next_record(
        &mut self,
        replay: &mut Replay,
    ) -> Result<Option<ReplayRecord>, OpenError> {
        let mut step = replay.buffered();
        loop {
            match step {
                Some(ReplayStep::Record(record)) => return Ok(Some(record)),
                Some(ReplayStep::End(_)) => return Ok(None),
                Some(ReplayStep::More) | None => {
                    let (offset_bytes, length_bytes) = replay.needs();
                    match self.devices.read_now(Zone::Journal, offset_bytes, length_bytes) {
                        Ok(bytes) => step = Some(replay.feed(&bytes)),
                        // What lies behind the journal's end is nobody's.
                        Err(_) if replay.narrow() => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
    }

    /// What stands behind the journal's end. It is nobody's, and blocks of it may be unreadable:
    /// what stands in the others counts all the same.
    fn look_behind(&mut self, geometry: &Geometry, end: JournalPosition) -> Behind {
        look_behind(geometry, end.offset_bytes, LOOK_AHEAD_BYTES, |at_bytes, length_bytes| {
            read_blocks(&mut self.devices, Zone::Journal, at_bytes, length_bytes).0
        })
    }

    /// Whether every frame that a record names has reached the disk. Its checksum and name are not
    /// enough: after an earlier cut the frame of another chunk, never promised, may lie at the same
    /// place under the same PBN. Its bytes must have the chunk's fingerprint.
    fn frames_are_there(
        &mut self,
        geometry: &Geometry,
        changes: &[Change],
        recovered: &mut Recovered,
    ) -> Result<bool, OpenError> {
        let mut stretch: Option<Stretch> = None;
        for change in changes {
            let there = match change {
                Change::Copy { .. } if mutant!(BelievesCopies) => continue,
                Change::Store { pbn, fingerprint, pba }
                | Change::StoreAside { pbn, fingerprint, pba }
                | Change::Move { pbn, to: pba, fingerprint: Some(fingerprint) }
                | Change::Copy { pbn, at: pba, fingerprint: Some(fingerprint) } => {
                    self.fingerprint_in(&mut stretch, geometry, *pbn, *pba)? == Some(*fingerprint)
                }
                Change::Move { pbn, to, fingerprint: None }
                | Change::Copy { pbn, at: to, fingerprint: None } => {
                    match self.fingerprint_in(&mut stretch, geometry, *pbn, *to)? {
                        Some(fingerprint) => self.names(&fingerprint, *pbn)?,
                        None => false,
                    }
                }
                _ => continue,
            };
            recovered.frames_checked += 1;
            if !there && !mutant!(BelievesFrames) {
                return Ok(false);
            }
        }
        self.write_frames_again(geometry, stretch)?;
        Ok(true)
    }

    fn write_frames_again(
        &mut self,
        geometry: &Geometry,
        stretch: Option<Stretch>,
    ) -> Result<(), IoError> {
        let Some(stretch) = stretch.filter(|_| self.may_write) else { return Ok(()) };
        let Some((zone, start_bytes)) = geometry.container_zone(stretch.container) else {
            return Ok(());
        };
        let Range { start, end } = stretch.believed;
        if start < end {
            let offset_bytes = start_bytes + u64::from(start);
            let within = |at: u32| (at - stretch.start_bytes) as usize;
            let blocks = SharedBuf::from(stretch.bytes).slice(within(start)..within(end));
            self.devices.write_now(zone, offset_bytes, blocks)?;
        }
        Ok(())
    }

    /// As [`fingerprint_at`], of a frame that most often lies behind the one before.
    fn fingerprint_in(
        &mut self,
        stretch: &mut Option<Stretch>,
        geometry: &Geometry,
        pbn: Pbn,
        pba: Pba,
    ) -> Result<Option<Fingerprint>, IoError> {
        if !stretch.as_ref().is_some_and(|here| here.holds(pba)) {
            self.write_frames_again(geometry, stretch.take())?;
            let ahead_bytes = self.batches.stretch_bytes();
            *stretch = Stretch::read(&mut self.devices, geometry, pba, ahead_bytes)?;
        }
        let Some(here) = stretch else { return Ok(None) };
        let fingerprint = here.fingerprint(geometry, pbn, pba);
        if fingerprint.is_some() {
            here.believe(pba);
        }
        Ok(fingerprint)
    }

    /// Whether the Hash-PBN table finds this chunk by this fingerprint.
    fn names(&mut self, fingerprint: &Fingerprint, pbn: Pbn) -> Result<bool, OpenError> {
        let wanted = self.wait_for(|state, wanted| state.want_lookup(fingerprint, wanted))?;
        let found = self.state.hash.lookup(&self.state.store, fingerprint);
        self.state.store.release_pins(wanted.pins);
        Ok(found == Some(pbn))
    }

    /// What an open container holds, from its frames. None when one that lives is damaged or cannot
    /// be read: its directory would lack chunks, so nothing is added to it any more, and it is
    /// never collected. What lies behind its fill is nobody's.
    fn open_entries(
        &mut self,
        geometry: &Geometry,
        open: OpenContainer,
    ) -> Result<Option<Vec<DirectoryEntry>>, OpenError> {
        let Some((zone, start_bytes)) = geometry.container_zone(open.id) else { return Ok(None) };
        let filled_bytes = open.fill_bytes.min(CONTAINER_BYTES) as usize;
        let length_bytes = filled_bytes.next_multiple_of(BLOCK_BYTES);
        let (image, _) = read_blocks(&mut self.devices, zone, start_bytes, length_bytes);
        let filled = &image[..filled_bytes];
        let scanned = entries_by_scan(open.id, filled, geometry);
        let (entries, live_bytes) = self.placed_here(open.id, filled, scanned.entries)?;
        let recorded_bytes = u64::from(self.state.containers.get(open.id).live_bytes);
        Ok((live_bytes == recorded_bytes).then_some(entries))
    }
}

/// A journal that ends where a record behind its end says that it went on has lost what was
/// flushed: to open the store would be to serve old bytes.
fn refuse_a_damaged_journal(behind: Behind, end: JournalPosition) -> Result<(), OpenError> {
    let JournalPosition { sequence, offset_bytes, .. } = end;
    if behind.durable_sequence >= sequence {
        return Err(OpenError::Journal { sequence, offset_bytes });
    }
    Ok(())
}

impl Recovered {
    fn note(&mut self, gathered: &[Gathered]) {
        self.records += gathered.len() as u64;
        let newest = gathered.iter().map(|record| record.incarnation).max();
        self.incarnation = self.incarnation.max(newest.unwrap_or(0));
        self.position = gathered.last().map_or(self.position, |record| record.end);
    }

    fn note_seals(&mut self, changes: &[Change]) {
        let sealed = changes.iter().filter_map(|change| match change {
            Change::SealContainer { id, .. } => Some(*id),
            _ => None,
        });
        self.sealed.extend(sealed);
    }
}

/// The fingerprint of the chunk whose frame is at `pba`; None when the frame of `pbn` that is meant
/// is not there.
pub(crate) fn fingerprint_at(
    devices: &mut Devices,
    geometry: &Geometry,
    pbn: Pbn,
    pba: Pba,
) -> Result<Option<Fingerprint>, IoError> {
    let stretch = Stretch::of(devices, geometry, pba.container, blocks_of(pba))?;
    Ok(stretch.and_then(|here| here.fingerprint(geometry, pbn, pba)))
}

/// Neighbouring blocks of a container.
struct Stretch {
    container: ContainerId,
    start_bytes: u32,
    bytes: AlignedBuf,
    /// What of it, whole blocks, holds frames that were found as they should be, and is not known
    /// to be on the medium.
    believed: Range<u32>,
}

impl Stretch {
    /// The frame at `pba` and what lies behind it; if that cannot be read, nothing but the frame,
    /// for which no device is needed if a record carries it.
    fn read(
        devices: &mut Devices,
        geometry: &Geometry,
        pba: Pba,
        ahead_bytes: u32,
    ) -> Result<Option<Self>, IoError> {
        let blocks = blocks_of(pba);
        let end = blocks.end.max(blocks.start.saturating_add(ahead_bytes).min(CONTAINER_BYTES));
        Self::of(devices, geometry, pba.container, blocks.start..end)
            .or_else(|_| Self::of(devices, geometry, pba.container, blocks))
            .or_else(|error| Self::carried(devices, geometry, pba).map(Some).ok_or(error))
    }

    fn carried(devices: &Devices, geometry: &Geometry, pba: Pba) -> Option<Self> {
        let Pba { container, offset_bytes, length_bytes, .. } = pba;
        let (zone, start_bytes) = geometry.container_zone(container)?;
        let at = start_bytes + u64::from(offset_bytes);
        if !devices.carried.has(zone, at..at + u64::from(length_bytes)) {
            return None;
        }
        let mut bytes = AlignedBuf::new_zeroed(length_bytes as usize);
        devices.carried.lay_over(zone, at, &mut bytes);
        Some(Self { container, start_bytes: offset_bytes, bytes, believed: 0..0 })
    }

    fn of(
        devices: &mut Devices,
        geometry: &Geometry,
        container: ContainerId,
        blocks: Range<u32>,
    ) -> Result<Option<Self>, IoError> {
        let Some((zone, start_bytes)) = geometry.container_zone(container) else {
            return Ok(None);
        };
        let offset_bytes = start_bytes + u64::from(blocks.start);
        let bytes = devices.read_now(zone, offset_bytes, blocks.len())?;
        Ok(Some(Self { container, start_bytes: blocks.start, bytes, believed: 0..0 }))
    }

    /// The frame at `pba` is there. One that is carried is written to its place by itself.
    fn believe(&mut self, pba: Pba) {
        let blocks = blocks_of(pba);
        if blocks.start < self.start_bytes {
            return;
        }
        if self.believed.is_empty() {
            self.believed = blocks;
        } else {
            self.believed.start = self.believed.start.min(blocks.start);
            self.believed.end = self.believed.end.max(blocks.end);
        }
    }

    fn holds(&self, pba: Pba) -> bool {
        let end_bytes = self.start_bytes as usize + self.bytes.len();
        self.container == pba.container
            && self.start_bytes <= pba.offset_bytes
            && pba.offset_bytes as usize + pba.length_bytes as usize <= end_bytes
    }

    fn fingerprint(&self, geometry: &Geometry, pbn: Pbn, pba: Pba) -> Option<Fingerprint> {
        let offset_bytes = pba.offset_bytes.checked_sub(self.start_bytes)?;
        let frame = self.bytes.get(offset_bytes as usize..)?.get(..pba.length_bytes as usize)?;
        let header = frame::meant(frame, pbn, pba.check)?;
        let here = Pba { offset_bytes, ..pba };
        entry_of(header, here, &self.bytes, geometry).map(|entry| entry.fingerprint)
    }
}
