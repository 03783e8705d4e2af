//! The engine's side of the disk: every I/O in flight has a purpose.
//!
//! Writes of frames and journal records are counted in the order they were issued, so that a flush
//! can ask whether everything issued up to a moment has reached the device before it syncs.
//!
//! A zone is synced once at a time. The kernel tells of what could not be written once for each
//! open file: of two syncs under way at once one might hear of it, and the other end well before.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use disk::{
    AlignedBuf, AllocationAhead, Completion, Disk, ForeignGrowth, Io, IoError, IoKind, SharedBuf,
    ZoneGrowth,
};
use format::units::{ContainerId, Pba, Zone};
use hashbrown::HashMap;
use mutants::mutant;
use tables::PageRead;

use crate::devices::allocation::Allocation;
use crate::devices::lacking_room::{LackingRoom, RoomChange};
use crate::placement::carried::Carried;

pub(crate) mod allocation;
pub(crate) mod lacking_room;

/// Container, and first byte in it.
pub(crate) type Place = (ContainerId, u32);

/// Why an I/O was issued.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// A table page for the cache.
    Page(PageRead),
    /// Table pages leaving the cache.
    Pages(Vec<u64>),
    /// Bytes of frames for a read, by the read's number and its span.
    Frames { read: u64, span: usize, container: ContainerId },
    /// A stretch of a container that was not asked for yet.
    Ahead(Place),
    /// Bytes of frames to compare with, by the number of the read.
    Known { read: u64, container: ContainerId },
    /// The container that is being collected.
    Victim,
    /// The frame of a chunk that is being explained.
    Explain(Pba),
    /// The end of a container, with its directory.
    Directory { container: ContainerId, sequence: u32 },
    /// A frame that is to be stored twice, or that seems damaged and is.
    Copy(Pba),
    /// A journal record, of so many bytes.
    Journal(usize),
    /// Frames or directory of a container.
    Container(ContainerId),
    /// A sync of the running flush.
    FlushSync,
    /// A sync of table pages, of the running checkpoint.
    TablesSync,
    /// A block of the geometry of a store that grows, or the sync behind it.
    Geometry,
    /// The root of the running checkpoint.
    Root,
    /// The sync behind it.
    RootSync,
    /// A read of the scrub's step under way, by its key.
    Scrub(u64),
    /// A write by which a scrub heals something: nothing was promised that it may break.
    ScrubWrite,
    /// The sync behind it. It covers what everybody wrote to the zone, and if it fails, no later
    /// one makes up for it.
    ScrubSync,
}

impl Purpose {
    /// Whether it may fail and the writing goes on: what waits for it is told.
    pub(crate) fn may_fail(&self) -> bool {
        match self {
            Self::Page(_)
            | Self::Frames { .. }
            | Self::Ahead(_)
            | Self::Known { .. }
            | Self::Victim
            | Self::Explain(_)
            | Self::Directory { .. }
            | Self::Copy(_)
            | Self::Scrub(_)
            | Self::ScrubWrite => true,
            Self::Pages(_)
            | Self::Journal(_)
            | Self::Container(_)
            | Self::FlushSync
            | Self::TablesSync
            | Self::Geometry
            | Self::Root
            | Self::RootSync
            | Self::ScrubSync => false,
        }
    }
}

/// Bytes of journal records in flight from which on no group is applied. They are in memory until
/// the device has taken them.
const JOURNAL_BYTES_OUT_MAX: usize = 16 << 20;

/// An I/O that has ended.
pub(crate) struct Ended {
    pub(crate) purpose: Purpose,
    pub(crate) zone: Zone,
    pub(crate) result: Result<(), IoError>,
    /// What was read; None where the device did not give it.
    pub(crate) buf: Option<AlignedBuf>,
}

/// Bytes handed to the device for writing, by zone; those of an opening included.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WrittenBytes {
    pub(crate) data: u64,
    pub(crate) tables: u64,
    pub(crate) journal: u64,
    pub(crate) superblock: u64,
}

impl WrittenBytes {
    fn add(&mut self, zone: Zone, bytes: u64) {
        let of_zone = match zone {
            Zone::Data(_) => &mut self.data,
            Zone::Tables => &mut self.tables,
            Zone::Journal => &mut self.journal,
            Zone::Superblock => &mut self.superblock,
        };
        *of_zone += bytes;
    }
}

/// The disk, and why each I/O on it was issued.
pub(crate) struct Devices {
    disk: Box<dyn Disk>,
    purposes: HashMap<u64, Purpose>,
    next_tag: u64,
    written: WrittenBytes,
    /// Tags of frame and journal writes in flight.
    promised_writes: BTreeSet<u64>,
    /// Bytes of journal writes in flight.
    journal_bytes_out: usize,
    /// Tags of table page writes in flight.
    table_writes: BTreeSet<u64>,
    /// Tags of syncs in flight, by zone.
    syncs: BTreeMap<Zone, u64>,
    /// Syncs that wait for one of these to end.
    syncs_waiting: VecDeque<(Zone, Purpose)>,
    done: Vec<Completion>,
    is_degradation_told: bool,
    room: LackingRoom,
    pub(crate) allocation: Allocation,
    /// Frames that came with records and may not be in their containers.
    pub(crate) carried: Carried,
}

impl Devices {
    pub(crate) fn new(disk: Box<dyn Disk>) -> Self {
        Self {
            disk,
            purposes: HashMap::new(),
            next_tag: 1,
            written: WrittenBytes::default(),
            promised_writes: BTreeSet::new(),
            journal_bytes_out: 0,
            table_writes: BTreeSet::new(),
            syncs: BTreeMap::new(),
            syncs_waiting: VecDeque::new(),
            done: Vec::new(),
            is_degradation_told: false,
            room: LackingRoom::default(),
            allocation: Allocation::default(),
            carried: Carried::default(),
        }
    }

    fn issue(&mut self, zone: Zone, offset_bytes: u64, kind: IoKind, purpose: Purpose) {
        let tag = self.name(purpose);
        self.disk.submit(Io { zone, offset_bytes, kind, tag });
    }

    /// The tag of an I/O that counts as issued from now on.
    fn name(&mut self, purpose: Purpose) -> u64 {
        let tag = self.next_tag;
        self.next_tag += 1;
        if let Purpose::Journal(length_bytes) = purpose {
            self.journal_bytes_out += length_bytes;
        }
        match purpose {
            Purpose::Journal(_) | Purpose::Container(_) => self.promised_writes.insert(tag),
            Purpose::Pages(_) => self.table_writes.insert(tag),
            _ => false,
        };
        self.purposes.insert(tag, purpose);
        tag
    }

    /// Promises a write, which counts as issued from now on, and names it.
    pub(crate) fn promise(&mut self, purpose: Purpose) -> u64 {
        let tag = self.name(purpose);
        if mutant!(SyncsBeforePacked) {
            self.promised_writes.remove(&tag);
        }
        tag
    }

    /// Writes what was promised under this tag.
    pub(crate) fn write_promised(
        &mut self,
        tag: u64,
        zone: Zone,
        offset_bytes: u64,
        buf: SharedBuf,
    ) {
        self.written.add(zone, buf.len() as u64);
        self.disk.submit(Io {
            zone,
            offset_bytes,
            kind: IoKind::Write { buf, durable: false },
            tag,
        });
    }

    /// What was promised under this tag will not come. Only where nothing is written any more: who
    /// waits for it must not take it for done.
    pub(crate) fn give_up_promised(&mut self, tag: u64) {
        self.purposes.remove(&tag);
        self.promised_writes.remove(&tag);
    }

    pub(crate) fn read(
        &mut self,
        zone: Zone,
        offset_bytes: u64,
        length_bytes: usize,
        purpose: Purpose,
    ) {
        let buf = AlignedBuf::new_stale(length_bytes);
        self.issue(zone, offset_bytes, IoKind::Read { buf }, purpose);
    }

    pub(crate) fn write(
        &mut self,
        zone: Zone,
        offset_bytes: u64,
        buf: SharedBuf,
        purpose: Purpose,
    ) {
        self.issue_write(zone, offset_bytes, buf, false, purpose);
    }

    /// As [`Self::write`]; what is written is durable when that has ended.
    pub(crate) fn write_durably(
        &mut self,
        zone: Zone,
        offset_bytes: u64,
        buf: SharedBuf,
        purpose: Purpose,
    ) {
        self.issue_write(zone, offset_bytes, buf, !mutant!(WritesRecordPlainly), purpose);
    }

    fn issue_write(
        &mut self,
        zone: Zone,
        offset_bytes: u64,
        buf: SharedBuf,
        durable: bool,
        purpose: Purpose,
    ) {
        self.written.add(zone, buf.len() as u64);
        self.issue(zone, offset_bytes, IoKind::Write { buf, durable }, purpose);
    }

    /// Syncs a zone, behind all syncs of it that were asked for before.
    pub(crate) fn sync(&mut self, zone: Zone, purpose: Purpose) {
        if self.syncs.contains_key(&zone) {
            self.syncs_waiting.push_back((zone, purpose));
        } else {
            self.syncs.insert(zone, self.next_tag);
            self.issue(zone, 0, IoKind::Sync, purpose);
        }
    }

    fn sync_ended(&mut self, zone: Zone) {
        self.syncs.remove(&zone);
        let next = self.syncs_waiting.iter().position(|(of, _)| *of == zone);
        if let Some((zone, purpose)) = next.and_then(|at| self.syncs_waiting.remove(at)) {
            self.sync(zone, purpose);
        }
    }

    /// The tag that the next I/O will have: all issued before are smaller.
    pub(crate) fn mark(&self) -> u64 {
        self.next_tag
    }

    /// Whether every frame and journal write issued before `mark` has ended.
    pub(crate) fn written_before(&self, mark: u64) -> bool {
        self.promised_writes.first().is_none_or(|&tag| tag >= mark)
    }

    /// Whether the journal's device lags behind: what has much to record waits.
    pub(crate) fn journal_is_behind(&self) -> bool {
        self.journal_bytes_out > JOURNAL_BYTES_OUT_MAX
    }

    /// Whether every table page write issued before `mark` has ended.
    pub(crate) fn tables_written_before(&self, mark: u64) -> bool {
        self.table_writes.first().is_none_or(|&tag| tag >= mark)
    }

    /// Table page writes in flight.
    pub(crate) fn table_writes_out(&self) -> usize {
        self.table_writes.len()
    }

    /// What has ended since the last call, without waiting.
    pub(crate) fn poll(&mut self, ended: &mut Vec<Ended>) {
        let mut done = std::mem::take(&mut self.done);
        self.disk.poll(&mut done);
        for mut completion in done.drain(..) {
            let tag = completion.tag;
            let may_fail = || self.purposes.get(&tag).is_none_or(Purpose::may_fail);
            if self.room.holds(&mut completion, may_fail) {
                continue;
            }
            let Completion { tag, zone, result, buf, .. } = completion;
            let Some(purpose) = self.purposes.remove(&tag) else { continue };
            self.promised_writes.remove(&tag);
            self.table_writes.remove(&tag);
            if let Purpose::Journal(length_bytes) = purpose {
                self.journal_bytes_out -= length_bytes;
            }
            if self.syncs.get(&zone) == Some(&tag) {
                self.sync_ended(zone);
            }
            let buf = buf.filter(|_| result.is_ok());
            ended.push(Ended { purpose, zone, result, buf });
        }
        self.done = done;
    }

    /// A tick has passed: what the device had no room for is tried again now and then.
    pub(crate) fn tick(&mut self) -> Option<RoomChange> {
        let Self { room, disk, .. } = self;
        room.tick(|io| disk.submit(io))
    }

    /// How long the device has had no room for what was written, and the failure that said so.
    pub(crate) fn lacking_room(&self) -> Option<(u32, &IoError)> {
        self.room.lacking()
    }

    /// Nothing waits for room on the device any more: what has waited ends with its failure.
    pub(crate) fn stop_waiting_for_room(&mut self) {
        self.room.give_up(&mut self.done);
    }

    /// Whether something has ended, as far as is known.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.disk.has_ended()
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.purposes.len() + self.syncs_waiting.len()
    }

    pub(crate) fn written(&self) -> WrittenBytes {
        self.written
    }

    /// Takes zones that were added, and the lengths that zones have by now.
    pub(crate) fn grow(&mut self, growth: ZoneGrowth) -> Result<(), ForeignGrowth> {
        self.disk.grow(growth)
    }

    /// The geometry knows no data zones from this number on.
    pub(crate) fn release_data_zones(&mut self, data_zones: usize) {
        self.disk.release_data_zones(data_zones);
    }

    /// What allocates room for data zones as they fill, if anything has to.
    pub(crate) fn allocation_ahead(&self) -> Option<&AllocationAhead> {
        self.disk.allocation_ahead()
    }

    /// Hears of what has come of it since the last call; false when nothing has.
    pub(crate) fn hear_of_allocation(&mut self) -> bool {
        self.allocation.hear(&*self.disk)
    }

    /// Has a data zone allocated up to this offset.
    pub(crate) fn allocate_ahead(&mut self, number: u16, end_bytes: u64) {
        if let Some(ahead) = self.disk.allocation_ahead() {
            self.allocation.ask(ahead, number, end_bytes);
        }
    }

    pub(crate) fn size_bytes(&self, zone: Zone) -> u64 {
        self.disk.size_bytes(zone)
    }

    /// Reads and waits: only before the engine runs, and for checks. What is carried counts as
    /// written.
    pub(crate) fn read_now(
        &mut self,
        zone: Zone,
        offset_bytes: u64,
        length_bytes: usize,
    ) -> Result<AlignedBuf, IoError> {
        let mut read = self.read_below(zone, offset_bytes, length_bytes)?;
        self.carried.lay_over(zone, offset_bytes, &mut read);
        Ok(read)
    }

    /// Reads from many places of a zone at once, as [`Self::read_now`] from one: offset and length.
    pub(crate) fn read_all_now(
        &mut self,
        zone: Zone,
        places: impl IntoIterator<Item = (u64, usize)>,
    ) -> Vec<Result<AlignedBuf, IoError>> {
        let read = |(offset_bytes, length_bytes)| {
            (offset_bytes, IoKind::Read { buf: AlignedBuf::new_stale(length_bytes) })
        };
        let all = self.run_all_now(zone, places.into_iter().map(read).collect());
        let laid_over = |(offset_bytes, result): (u64, Result<Option<AlignedBuf>, IoError>)| {
            let mut buf = result?.ok_or_else(|| IoError::lost(zone, offset_bytes))?;
            self.carried.lay_over(zone, offset_bytes, &mut buf);
            Ok(buf)
        };
        all.into_iter().map(laid_over).collect()
    }

    /// The same of what the device has.
    pub(crate) fn read_below(
        &mut self,
        zone: Zone,
        offset_bytes: u64,
        length_bytes: usize,
    ) -> Result<AlignedBuf, IoError> {
        let buf = AlignedBuf::new_stale(length_bytes);
        self.run_now(zone, offset_bytes, IoKind::Read { buf })
            .map(|buf| buf.unwrap_or_else(|| AlignedBuf::new_zeroed(length_bytes)))
    }

    /// Writes and waits: only before the engine runs.
    pub(crate) fn write_now(
        &mut self,
        zone: Zone,
        offset_bytes: u64,
        buf: SharedBuf,
    ) -> Result<(), IoError> {
        self.written.add(zone, buf.len() as u64);
        self.run_now(zone, offset_bytes, IoKind::Write { buf, durable: false }).map(|_| ())
    }

    /// Writes to many places of a zone at once and waits for all; the first failure is the error.
    pub(crate) fn write_all_now(
        &mut self,
        zone: Zone,
        writes: Vec<(u64, SharedBuf)>,
    ) -> Result<(), IoError> {
        self.written.add(zone, writes.iter().map(|(_, buf)| buf.len() as u64).sum());
        let write = |(offset_bytes, buf)| (offset_bytes, IoKind::Write { buf, durable: false });
        let all = self.run_all_now(zone, writes.into_iter().map(write).collect());
        all.into_iter().try_for_each(|(_, result)| result.map(drop))
    }

    /// Syncs and waits: only before the engine has begun to run.
    pub(crate) fn sync_now(&mut self, zone: Zone) -> Result<(), IoError> {
        self.run_now(zone, 0, IoKind::Sync).map(|_| ())
    }

    /// What makes the disk slower than it should be, in a sentence, when that is new.
    pub(crate) fn new_degradation(&mut self) -> Option<String> {
        let reason = self.disk.degradation()?.to_owned();
        (!std::mem::replace(&mut self.is_degradation_told, true)).then_some(reason)
    }

    fn run_now(
        &mut self,
        zone: Zone,
        offset_bytes: u64,
        kind: IoKind,
    ) -> Result<Option<AlignedBuf>, IoError> {
        let all = self.run_all_now(zone, vec![(offset_bytes, kind)]);
        let lost = Err(IoError::lost(zone, offset_bytes));
        all.into_iter().next().map_or(lost, |(_, result)| result)
    }

    /// Submits all and waits for all; nothing else is in flight. What came of each, in their order.
    fn run_all_now(
        &mut self,
        zone: Zone,
        all: Vec<(u64, IoKind)>,
    ) -> Vec<(u64, Result<Option<AlignedBuf>, IoError>)> {
        let first_tag = self.next_tag;
        let mut results = Vec::with_capacity(all.len());
        for (offset_bytes, kind) in all {
            results.push((offset_bytes, Err(IoError::lost(zone, offset_bytes))));
            self.disk.submit(Io { zone, offset_bytes, kind, tag: self.next_tag });
            self.next_tag += 1;
        }
        let mut left = results.len();
        while left > 0 {
            self.disk.wait(&mut self.done);
            let is_lost = self.done.is_empty() && self.disk.in_flight() == 0;
            for Completion { tag, result, buf, .. } in self.done.drain(..) {
                let at = tag.checked_sub(first_tag).and_then(|at| usize::try_from(at).ok());
                if let Some((_, ended)) = at.and_then(|at| results.get_mut(at)) {
                    *ended = result.map(|()| buf);
                    left -= 1;
                }
            }
            if is_lost {
                break;
            }
        }
        results
    }
}

#[cfg(test)]
mod tests;
