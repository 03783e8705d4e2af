//! Collection: dead chunks leave the tables, live frames move, the container becomes free.
//!
//! Two kinds of work. A container in which nothing lives is taken whenever clients leave time for
//! it or half of the containers are in use: its dead chunks are forgotten and it is free. When
//! free containers become few, the emptiest container is compacted as well: its live frames are
//! copied as they are into the open container, only their PBA changes. It begins late, because
//! what waits dies meanwhile and need not be moved, and keeps pace with what clients store
//! ([`crate::collect::collection`]): the fewer are free, the more of it for each of their bytes.
//!
//! The victim is read whole, at once or in pieces; its directory says what is in it (or, should
//! that be damaged, a scan of its frames). Of one in which nothing lives only the directory is
//! read, unless it turns out that a frame is needed after all. Entries are worked off in slices,
//! each one journal record; an entry counts only if the tables still say that its chunk is *here*.
//! A chunk that a group is about to retain is moved even if nothing refers to it. A frame that
//! fails its check, or is known to hold other bytes, stays where it is, and so does its container:
//! what is lost stays visible, nothing else is lost with it. So does one whose directory is damaged
//! and whose frames do not follow each other: dead chunks that were not seen are still in the
//! tables, and would be found as duplicates in a container that is free. A dead chunk in what stays
//! is no duplicate of anything ([`crate::write::group`]). Room for what is moved, and why there is
//! enough: [`crate::collect::room`].
//!
//! A caller that wants room before asks for it ([`crate::collect::step`]), and may have what is
//! moved compressed harder: then workers make the frames of each slice anew before it is worked
//! off, and of those that became shorter the new one is stored.

pub(crate) mod collection;
mod fates;
mod orders;
pub(crate) mod room;
pub(crate) mod step;

use std::sync::Arc;

use containers::{directory_in_tail, directory_of, footer};
use disk::AlignedBuf;
use format::container_page::ContainerEntry;
use format::directory::DirectoryEntry;
use format::frame;
use format::record::Change;
use format::root::Stream;
use format::units::{CONTAINER_BYTES, ContainerId, FrameCheck, Pba, Pbn};
use reduce::{ChunkBuf, FramePlace, Image, Job};
use tables::PageError;

use crate::collect::collection::{Known, Order, Renewed, Victim};
use crate::collect::fates::{Fate, room_of_moves};
use crate::core::record::CHANGE_BYTES_MAX;
use crate::devices::Purpose;
use crate::door::error::RequestError;
use crate::engine::Engine;
use crate::notice::Notice;
use crate::open::frame_walk::entries_by_scan;
use crate::placement::{Placed, room_of};
use crate::scrub::damage::Evidence;

/// Where somebody reads, or somebody asked for the collection, the victim is read in pieces of this
/// size, one after the other: clients' reads go in between. One read of 4 MiB keeps a device busy
/// for milliseconds (measurements/023), but spares the core a copy.
const PIECE_BYTES: usize = 256 << 10;
const _: () = assert!((CONTAINER_BYTES as usize).is_multiple_of(PIECE_BYTES));

/// Of a container in which nothing lives so much is read, from its end on: nearly always all of its
/// directory.
const TAIL_BYTES: usize = 128 << 10;
// Who hears of a read knows by its length what it was.
const _: () = assert!(TAIL_BYTES < PIECE_BYTES);

/// What came of a slice.
#[derive(PartialEq, Eq)]
enum Turn {
    Done,
    /// Something is on its way.
    Waits,
    /// For what lives in it, and none comes.
    LacksRoom,
    /// Something that lives in the victim is damaged, and nothing has been moved.
    Damaged,
}

impl Engine {
    /// Moves the running collection on, or begins one.
    pub(crate) fn advance_collection(&mut self) -> bool {
        if self.core.stopped.is_some() {
            return false;
        }
        let free = self.core.placement.space.coming_containers();
        self.collection.pace.earn(self.core.counters.frame_bytes_stored, free, self.core.reserve());
        let Some(victim) = &self.collection.victim else { return self.begin_collection() };
        if matches!(victim.known, Known::Nothing) || !self.may_collect_now() {
            return false;
        }
        let collected = self.collect_slice();
        self.publish_victim();
        match collected {
            Ok(moved) => moved,
            Err(error) => self.stop_for(&error),
        }
    }

    /// Shows the victim, and what it may still take in vain: clients are not promised that.
    pub(crate) fn publish_victim(&mut self) {
        self.core.placement.victim = self.collection.victim_room();
    }

    fn begin_collection(&mut self) -> bool {
        if self.core.is_closing {
            self.collection.fail(&RequestError::Closing);
            return false;
        }
        let Some((id, order)) = self.next_victim() else { return false };
        let ContainerEntry { sequence, live_bytes, .. } = self.core.state.containers.get(id);
        let in_pieces = order.is_some() || self.reads.any();
        let piece_bytes = if in_pieces { PIECE_BYTES } else { CONTAINER_BYTES as usize };
        let mut victim = Victim::new(id, sequence, order, piece_bytes);
        victim.at_risk_bytes = self.room_to_risk_bytes(id);
        victim.verified = victim.at_risk_bytes > 0;
        self.core.tell(&Notice::CollectionBegan { container: id.0 });
        if live_bytes == 0 && victim.recompresses().is_none() {
            self.read_of_victim(id, CONTAINER_BYTES as usize - TAIL_BYTES, TAIL_BYTES);
        } else {
            self.read_piece(&victim);
        }
        self.collection.victim = Some(victim);
        self.publish_victim();
        true
    }

    /// Asks for the next piece of the victim.
    fn read_piece(&mut self, victim: &Victim) {
        self.read_of_victim(victim.id, victim.filled_bytes, victim.piece_bytes);
    }

    fn read_of_victim(&mut self, id: ContainerId, offset_bytes: usize, length_bytes: usize) {
        if let Some((zone, start_bytes)) = self.core.geometry.container_zone(id) {
            let offset_bytes = start_bytes + offset_bytes as u64;
            self.core.devices.read(zone, offset_bytes, length_bytes, Purpose::Victim);
        }
    }

    /// What clients need goes before what somebody asked for, and that before the rest.
    fn next_victim(&mut self) -> Option<(ContainerId, Option<Order>)> {
        let due = self.due_victim();
        let is_urgent = due.is_some() && self.core.must_collect();
        let ordered = if is_urgent { None } else { self.take_order(due.is_some()) };
        match ordered {
            Some((id, order)) => Some((id, Some(order))),
            None => Some((due?, None)),
        }
    }

    /// The container that it is time to collect.
    fn due_victim(&self) -> Option<ContainerId> {
        if !self.is_time_to_collect() {
            return None;
        }
        let compact = self.core.placement.space.coming_containers() < self.core.reserve().begin
            || self.core.must_collect();
        self.core.choose_victim(compact, u32::MAX)
    }

    /// Clients' work goes first while there is room for it.
    fn is_time_to_collect(&self) -> bool {
        let free = self.core.placement.space.reachable_containers();
        let idle = self.core.flushes_are_idle() && self.clients_are_idle();
        idle || self.core.must_collect() || free * 2 < self.core.geometry.containers_present()
    }

    /// Whether the next slice's turn has come: clients have stored enough since the last, or there
    /// is no time to lose, or none of them wants the device. Who asked for it sets the pace.
    fn may_collect_now(&self) -> bool {
        self.collection.pace.allows()
            || self.core.must_collect()
            || self.clients_are_idle()
            || self.collection.is_ordered()
    }

    pub(crate) fn clients_are_idle(&self) -> bool {
        self.core.buffer.groups.is_empty() && !self.reads.any()
    }

    /// A piece of the victim has come, or the end of it; None when the device did not give it.
    pub(crate) fn victim_read(&mut self, buf: Option<AlignedBuf>) {
        let Some(mut victim) = self.collection.victim.take() else { return };
        let Some(piece) = buf else { return self.keep_victim(victim) };
        if piece.len() == TAIL_BYTES {
            return self.victims_end_read(victim, &piece);
        }
        let Some(image) = victim.take_piece(piece) else {
            self.read_piece(&victim);
            self.collection.victim = Some(victim);
            return;
        };
        let ContainerEntry { sequence, used_bytes, .. } = self.core.state.containers.get(victim.id);
        let used = image.get(..used_bytes as usize).unwrap_or(&image);
        let listed = directory_of(victim.id, sequence, self.core.geometry.uuid, &image);
        victim.scanned = listed.is_err();
        victim.entries = listed.unwrap_or_else(|_| {
            let scanned = entries_by_scan(victim.id, used, &self.core.geometry);
            victim.hides_frames = !scanned.is_all;
            scanned.entries
        });
        victim.known = Known::All(Arc::new(image));
        self.collection.victim = Some(victim);
    }

    /// The end of a victim in which nothing lives has been read. If its directory is not in there,
    /// or is damaged, all of it is read.
    fn victims_end_read(&mut self, mut victim: Victim, tail: &[u8]) {
        let found = footer(victim.id, victim.sequence, self.core.geometry.uuid, tail).ok();
        match found.and_then(|footer| directory_in_tail(&footer, tail)?.ok()) {
            Some(entries) => (victim.known, victim.entries) = (Known::Directory, entries),
            None => self.read_piece(&victim),
        }
        self.collection.victim = Some(victim);
    }

    /// A frame of the victim is needed, of which only the directory has been read. It begins anew:
    /// what has been forgotten by now is not there any more, whatever the directory says.
    fn read_victim_whole(&mut self, victim: &mut Victim) {
        (victim.known, victim.cursor) = (Known::Nothing, 0);
        self.read_piece(victim);
    }

    /// The container cannot be freed: it stays as it is.
    pub(crate) fn keep_victim(&mut self, mut victim: Victim) {
        self.core.placement.space.mark_damaged(victim.id);
        self.core.tell(&Notice::CollectionEnded { container: victim.id.0, freed: false });
        self.end_order(&mut victim, false);
    }

    fn collect_slice(&mut self) -> Result<bool, PageError> {
        let Some(mut victim) = self.collection.victim.take() else { return Ok(false) };
        let is_verified = victim.verified || !matches!(victim.known, Known::All(_));
        let turn = match is_verified {
            true => self.try_collect_slice(&mut victim),
            false => self.verify_slice(&mut victim),
        };
        match turn {
            Ok(Turn::Damaged) => self.keep_victim(victim),
            Ok(Turn::LacksRoom) => self.let_victim_go(victim),
            Ok(Turn::Done) if victim.cursor >= victim.entries.len() => {
                return Ok(self.end_collection(victim));
            }
            Ok(Turn::Done | Turn::Waits) | Err(_) => self.collection.victim = Some(victim),
        }
        Ok(turn? != Turn::Waits)
    }

    fn try_collect_slice(&mut self, victim: &mut Victim) -> Result<Turn, PageError> {
        let end = victim.slice_end();
        if let Some(asked) = self.renew_slice(victim, end) {
            return Ok(if asked { Turn::Done } else { Turn::Waits });
        }
        let slice = &victim.entries[victim.cursor..end];
        // Pages last: to ask for those of a slice takes as long as to work it off.
        if !self.core.journal_has_room(CHANGE_BYTES_MAX * (slice.len() + 2))
            || self.core.placement.is_behind()
            || self.core.table_room.tables_are_behind(&self.core.state)
            || self.core.devices.journal_is_behind()
            || !self.want_slice(slice)?
        {
            return Ok(Turn::Waits);
        }
        let fates = self.fates(victim, end);
        if matches!(victim.known, Known::Directory) && fates.iter().any(Fate::needs_frame) {
            self.read_victim_whole(victim);
            return Ok(Turn::Waits);
        }
        if room_of_moves(victim, &fates) > self.core.collection_room_bytes() {
            let comes = self.room_to_collect_may_come();
            return Ok(if comes { Turn::Waits } else { Turn::LacksRoom });
        }
        self.collect_entries(victim, end, fates);
        Ok(Turn::Done)
    }

    /// Works the next slice off, for which everything is here.
    fn collect_entries(&mut self, victim: &mut Victim, end: usize, fates: Vec<Fate>) {
        let renewed = std::mem::take(&mut victim.renewed);
        let mut changes = Vec::new();
        for (at, fate) in fates.into_iter().enumerate() {
            let entry = victim.entries[victim.cursor + at];
            let image = victim.known.bytes();
            self.collection.pace.spend(room_of(entry.length_bytes.into()));
            match self.collect_entry(fate, &entry, image, renewed.frame(at), &mut changes) {
                Some((moved_bytes, written_bytes)) => {
                    victim.moved_bytes += moved_bytes;
                    victim.written_bytes += written_bytes;
                }
                None => self.note_damaged(victim, entry.pbn),
            }
        }
        if !changes.is_empty() {
            self.record(&changes);
        }
        victim.cursor = end;
    }

    /// Looks whether what lives in the next slice is sound. Behind the last the victim begins anew,
    /// to be moved, unless something is damaged.
    fn verify_slice(&mut self, victim: &mut Victim) -> Result<Turn, PageError> {
        let end = victim.slice_end();
        if !self.want_slice(&victim.entries[victim.cursor..end])? {
            return Ok(Turn::Waits);
        }
        for (at, fate) in self.fates(victim, end).into_iter().enumerate() {
            let entry = victim.entries[victim.cursor + at];
            if let Fate::Move(check) = fate
                && self.movable(&entry, check, victim.known.bytes()).is_none()
            {
                self.note_damaged(victim, entry.pbn);
            }
        }
        victim.cursor = end;
        if end >= victim.entries.len() {
            (victim.verified, victim.cursor) = (true, 0);
            let is_damaged = victim.damaged && self.core.damage.may_be_in(victim.id);
            if victim.hides_frames || is_damaged {
                return Ok(Turn::Damaged);
            }
        }
        Ok(Turn::Done)
    }

    fn note_damaged(&mut self, victim: &mut Victim, pbn: Pbn) {
        victim.damaged = true;
        self.core.damage.note(pbn, victim.id, Evidence::Checksum);
        self.core.suspect(pbn);
    }

    /// Has workers make the frames of the slice anew, if that was asked for; whether that moved
    /// anything, none when they are here or not wanted.
    fn renew_slice(&mut self, victim: &mut Victim, end: usize) -> Option<bool> {
        let compression = victim.recompresses()?;
        match victim.renewed {
            Renewed::Here { .. } => return None,
            Renewed::Asked => return Some(false),
            Renewed::No => {}
        }
        let place = |entry: &DirectoryEntry| {
            let DirectoryEntry { offset_bytes, length_bytes, pbn, .. } = *entry;
            FramePlace { offset_bytes, length_bytes, pbn }
        };
        self.core.workers.submit(Job::Recompress {
            tag: victim.cursor as u64,
            compression,
            image: victim.known.image()? as Arc<dyn Image>,
            frames: victim.entries[victim.cursor..end].iter().map(place).collect(),
            plain_bytes: self.core.geometry.chunk_bytes,
        });
        victim.renewed = Renewed::Asked;
        Some(true)
    }

    /// Frames have been made anew.
    pub(crate) fn slice_renewed(&mut self, bytes: ChunkBuf, ends: Vec<u32>) {
        if let Some(victim) = &mut self.collection.victim {
            victim.renewed = Renewed::Here { bytes, ends };
        }
    }

    /// Moves or forgets one chunk, and says how long its frame was and is if it moved; none if it
    /// is damaged. A `renewed` frame takes its place.
    fn collect_entry(
        &mut self,
        fate: Fate,
        entry: &DirectoryEntry,
        image: &[u8],
        renewed: Option<&[u8]>,
        changes: &mut Vec<Change>,
    ) -> Option<(u64, u64)> {
        let DirectoryEntry { pbn, fingerprint, length_bytes, .. } = *entry;
        let frame = image.get(entry.range());
        let meant = |check| frame.filter(|frame| frame::is_meant(frame, pbn, check));
        match fate {
            Fate::Stale => Some((0, 0)),
            Fate::Promote(to) => {
                changes.push(self.core.moved(pbn, to, &fingerprint));
                Some((0, 0))
            }
            Fate::DropCopy => {
                changes.push(Change::DropCopy { pbn });
                Some((0, 0))
            }
            Fate::Copy(check) => {
                let placed = |frame| Placed { frame: renewed.unwrap_or(frame), pbn, fingerprint };
                let place =
                    |frame| self.core.placement.place(Stream::Collection, &placed(frame), changes);
                // Without it the chunk itself is still there.
                let Some(at) = meant(check).and_then(place) else {
                    changes.push(Change::DropCopy { pbn });
                    return Some((0, 0));
                };
                changes.push(self.core.copied(pbn, at, &fingerprint));
                Some(self.count_moved(length_bytes, at))
            }
            Fate::Forget(check) => {
                if check.is_some_and(|check| meant(check).is_none()) {
                    return None;
                }
                changes.push(Change::Forget { pbn, fingerprint });
                Some((0, 0))
            }
            Fate::Move(check) => {
                let frame = self.movable(entry, check, image)?;
                let placed = Placed { frame: renewed.unwrap_or(frame), pbn, fingerprint };
                let to = self.core.placement.place(Stream::Collection, &placed, changes)?;
                changes.push(self.core.moved(pbn, to, &fingerprint));
                self.core.note_popular(pbn);
                Some(self.count_moved(length_bytes, to))
            }
        }
    }

    /// The frame of a chunk that lives, if it may be moved.
    fn movable<'a>(
        &self,
        entry: &DirectoryEntry,
        check: FrameCheck,
        image: &'a [u8],
    ) -> Option<&'a [u8]> {
        // Its checksum would say that it is sound, wherever it is.
        if self.core.damage.lies_beneath_checksum(entry.pbn) {
            return None;
        }
        let frame = image.get(entry.range());
        frame.filter(|frame| frame::is_meant(frame, entry.pbn, check))
    }

    /// A frame of so many bytes has been stored at another place: what it was, and what it is.
    fn count_moved(&mut self, length_bytes: u32, to: Pba) -> (u64, u64) {
        self.core.counters.chunks_moved += 1;
        self.core.counters.frame_bytes_moved += u64::from(to.length_bytes);
        (length_bytes.into(), to.length_bytes.into())
    }

    /// All entries are worked off; false while the journal has no room to say so.
    fn end_collection(&mut self, mut victim: Victim) -> bool {
        // Whatever the directory left out stays where it is, and so does the container. What was
        // found damaged may have healed since, and then nothing of it is here any more.
        let left_bytes = self.core.state.containers.get(victim.id).live_bytes;
        let is_damaged = victim.damaged && self.core.damage.may_be_in(victim.id);
        if left_bytes > 0 || victim.hides_frames || is_damaged {
            self.keep_victim(victim);
            return true;
        }
        if !self.core.journal_has_room(CHANGE_BYTES_MAX) {
            self.collection.victim = Some(victim);
            return false;
        }
        self.record(&[Change::FreeContainer { id: victim.id }]);
        self.core.placement.space.free(victim.id, self.core.log.appended_sequence);
        self.core.table_room.relieved();
        self.core.counters.containers_collected += 1;
        self.core.tell(&Notice::CollectionEnded { container: victim.id.0, freed: true });
        self.end_order(&mut victim, true);
        true
    }
}
