//! Collection: dead chunks leave the tables, live frames move, the container becomes free.
//!
//! Two kinds of work. A container in which nothing lives is taken whenever clients leave time for
//! it or half of the containers are in use: its dead chunks are forgotten and it is free. When
//! free containers become few, the emptiest container is compacted as well: its live frames are
//! copied as they are into the open container, only their PBA changes. It begins late, because
//! what waits dies meanwhile and need not be moved, and keeps pace with what clients store
//! ([`crate::collection`]): the fewer are free, the more of it for each of their bytes.
//!
//! The victim is read whole, at once or in pieces; its directory says what is in it (or, should
//! that be damaged, a scan of its frames). Of one in which nothing lives only the directory is
//! read, unless it turns out that a frame is needed after all. Entries are worked off in slices,
//! each one journal record; an entry counts only if the tables still say that its chunk is *here*.
//! A chunk that a group is about to retain is moved even if nothing refers to it. A frame that
//! fails its check, or is known to hold other bytes, stays where it is, and so does its container:
//! what is lost stays visible, nothing else is lost with it.
//!
//! Whoever wants room before that asks for it ([`crate::collect_step`]), and may have what is moved
//! compressed harder: then workers make the frames of each slice anew before it is worked off, and
//! of those that became shorter the new one is stored.

use std::cell::LazyCell;
use std::sync::Arc;

use containers::{directory_in_tail, directory_of, footer};
use disk::AlignedBuf;
use format::container_page::ContainerEntry;
use format::directory::DirectoryEntry;
use format::frame;
use format::record::Change;
use format::root::Stream;
use format::units::{CONTAINER_BYTES, ContainerId, FrameCheck, Pba, Pbn};
use hashbrown::HashSet;
use mutants::mutant;
use reduce::{ChunkBuf, FramePlace, Image, Job};
use tables::{PageError, pbn_pba, second_copies};

use crate::collection::{Known, Order, Renewed, Reserve, Victim, room_of};
use crate::devices::Purpose;
use crate::engine::Engine;
use crate::error::RequestError;
use crate::notice::Notice;
use crate::placement::{Placed, Placement};
use crate::record::CHANGE_BYTES_MAX;
use crate::recovery::entries_by_scan;
use crate::scrub_damage::Evidence;
use crate::wanted::Wanted;

/// A container is compacted only if at least one byte in so many is dead.
const COMPACTED_ONE_IN: u32 = 16;

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

/// What becomes of one entry of a slice.
enum Fate {
    Stale,
    Move(FrameCheck),
    /// It is a second copy.
    Copy(FrameCheck),
    DropCopy,
    /// It is dead, and its second copy, there, takes its place: were it forgotten, a frame of its
    /// PBN would be left when that names another chunk.
    Promote(Pba),
    /// With the check that its frame must have, where only that frame says which chunk it was.
    Forget(Option<FrameCheck>),
}

impl Fate {
    /// Whether the chunk's frame is looked at.
    fn needs_frame(&self) -> bool {
        matches!(self, Self::Move(_) | Self::Copy(_) | Self::Forget(Some(_)))
    }
}

impl Engine {
    /// Moves the running collection on, or begins one.
    pub(crate) fn advance_collection(&mut self) -> bool {
        if self.stopped.is_some() {
            return false;
        }
        let free = self.placement.space.coming_containers();
        self.collection.pace.earn(self.counters.frame_bytes_stored, free, self.reserve());
        let Some(victim) = &self.collection.victim else { return self.begin_collection() };
        if matches!(victim.known, Known::Nothing) || !self.may_collect_now() {
            return false;
        }
        match self.collect_slice() {
            Ok(moved) => moved,
            Err(error) => {
                self.stop_for(&error);
                true
            }
        }
    }

    /// Whether a container is being collected, or one is worth it and can be: a close begins none.
    pub(crate) fn can_collect(&self) -> bool {
        let is_worth_it = || self.choose_victim(true, u32::MAX).is_some();
        self.collection.is_busy() || (!self.closing_now() && is_worth_it())
    }

    fn begin_collection(&mut self) -> bool {
        if self.closing_now() {
            self.collection.fail(&RequestError::Closing);
            return false;
        }
        let Some((id, order)) = self.next_victim() else { return false };
        let ContainerEntry { sequence, live_bytes, .. } = self.state.containers.get(id);
        let in_pieces = order.is_some() || self.reads.any();
        let piece_bytes = if in_pieces { PIECE_BYTES } else { CONTAINER_BYTES as usize };
        let victim = Victim::new(id, sequence, order, piece_bytes);
        self.tell(&Notice::CollectionBegan { container: id.0 });
        if live_bytes == 0 && victim.recompresses().is_none() {
            self.read_of_victim(id, CONTAINER_BYTES as usize - TAIL_BYTES, TAIL_BYTES);
        } else {
            self.read_piece(&victim);
        }
        self.collection.victim = Some(victim);
        true
    }

    /// Asks for the next piece of the victim.
    fn read_piece(&mut self, victim: &Victim) {
        self.read_of_victim(victim.id, victim.filled_bytes, victim.piece_bytes);
    }

    fn read_of_victim(&mut self, id: ContainerId, offset_bytes: usize, length_bytes: usize) {
        if let Some((zone, start_bytes)) = self.geometry.container_zone(id) {
            let offset_bytes = start_bytes + offset_bytes as u64;
            self.devices.read(zone, offset_bytes, length_bytes, Purpose::Victim);
        }
    }

    /// What clients need goes before what somebody asked for, and that before the rest.
    fn next_victim(&mut self) -> Option<(ContainerId, Option<Order>)> {
        let due = self.due_victim();
        let is_urgent = due.is_some() && self.must_collect();
        let ordered = if is_urgent { None } else { self.take_order() };
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
        let compact =
            self.placement.space.coming_containers() < self.reserve().begin || self.must_collect();
        self.choose_victim(compact, u32::MAX)
    }

    /// Clients' work goes first while there is room for it.
    fn is_time_to_collect(&self) -> bool {
        let free = self.placement.space.free_containers();
        let idle = self.flushing.is_idle() && self.clients_are_idle();
        idle || self.must_collect() || free * 2 < self.geometry.containers_total()
    }

    /// Whether the next slice's turn has come: clients have stored enough since the last, or there
    /// is no time to lose, or none of them wants the device. Who asked for it sets the pace.
    fn may_collect_now(&self) -> bool {
        self.collection.pace.allows()
            || self.must_collect()
            || self.clients_are_idle()
            || self.collection.is_ordered()
    }

    pub(crate) fn clients_are_idle(&self) -> bool {
        self.buffer.groups.is_empty() && !self.reads.any()
    }

    fn reserve(&self) -> Reserve {
        Reserve::of(self.geometry.containers_total())
    }

    /// Whether everything else has to wait for containers.
    pub(crate) fn must_collect(&self) -> bool {
        let short = self.placement.space.coming_containers() < self.reserve().hurry;
        short || self.closing_now() || self.waits_for_containers()
    }

    /// Whether containers in quarantine are needed soon.
    pub(crate) fn free_containers_are_short(&self) -> bool {
        let free = self.placement.space.free_containers();
        free < self.reserve().hurry || self.waits_for_containers()
    }

    /// A wholly dead container, else (when `compact`) the one that is most worth it, of those that
    /// were opened before `until_sequence`. What is still being written is left alone.
    pub(crate) fn choose_victim(&self, compact: bool, until_sequence: u32) -> Option<ContainerId> {
        let Placement { space, .. } = &self.placement;
        let next_sequence = self.placement.next_sequence();
        let is_written = |id: &ContainerId| !self.placement.is_in_memory(*id);
        let best = || space.victim(next_sequence, until_sequence, COMPACTED_ONE_IN);
        let dead = space.dead(until_sequence).filter(is_written);
        dead.or_else(|| if compact { best().filter(is_written) } else { None })
    }

    /// A piece of the victim has been read, or the end of it.
    pub(crate) fn victim_read(&mut self, ok: bool, buf: Option<AlignedBuf>) {
        let Some(mut victim) = self.collection.victim.take() else { return };
        let Some(piece) = buf.filter(|_| ok) else { return self.keep_victim(victim) };
        if piece.len() == TAIL_BYTES {
            return self.victims_end_read(victim, &piece);
        }
        let Some(image) = victim.take_piece(piece) else {
            self.read_piece(&victim);
            self.collection.victim = Some(victim);
            return;
        };
        let ContainerEntry { sequence, used_bytes, .. } = self.state.containers.get(victim.id);
        let used = image.get(..used_bytes as usize).unwrap_or(&image);
        let listed = directory_of(victim.id, sequence, self.geometry.uuid, &image);
        victim.scanned = listed.is_err();
        victim.entries =
            listed.unwrap_or_else(|_| entries_by_scan(victim.id, used, &self.geometry));
        victim.known = Known::All(Arc::new(image));
        self.collection.victim = Some(victim);
    }

    /// The end of a victim in which nothing lives has been read. If its directory is not in there,
    /// or is damaged, all of it is read.
    fn victims_end_read(&mut self, mut victim: Victim, tail: &[u8]) {
        let found = footer(victim.id, victim.sequence, self.geometry.uuid, tail).ok();
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
    fn keep_victim(&mut self, mut victim: Victim) {
        self.placement.space.mark_damaged(victim.id);
        self.tell(&Notice::CollectionEnded { container: victim.id.0, freed: false });
        self.end_order(&mut victim, false);
    }

    fn collect_slice(&mut self) -> Result<bool, PageError> {
        let Some(mut victim) = self.collection.victim.take() else { return Ok(false) };
        let outcome = self.try_collect_slice(&mut victim);
        if matches!(outcome, Ok(true)) && victim.cursor >= victim.entries.len() {
            return Ok(self.end_collection(victim));
        }
        self.collection.victim = Some(victim);
        outcome
    }

    fn try_collect_slice(&mut self, victim: &mut Victim) -> Result<bool, PageError> {
        let end = victim.slice_end();
        if let Some(asked) = self.renew_slice(victim, end) {
            return Ok(asked);
        }
        let Victim { entries, known, cursor, id, damaged, scanned, .. } = victim;
        let slice = &entries[*cursor..end];
        if !self.want_slice(slice)? {
            return Ok(false);
        }
        let bytes = room_of(slice);
        if !self.journal_has_room(CHANGE_BYTES_MAX * (slice.len() + 2)) {
            return Ok(false);
        }
        if self.placement.is_behind() || self.checkpoints.tables_are_behind(&self.state) {
            return Ok(false);
        }
        if self.devices.journal_is_behind() {
            return Ok(false);
        }
        if !self.placement.has_room(Stream::Collection, bytes) {
            return Ok(false);
        }
        // Only what is dead is looked for among what groups hold.
        let held = LazyCell::new(|| self.buffer.held());
        let fate = |entry| match self.fate(*id, entry, &held) {
            Fate::Forget(_) if !*scanned => Fate::Forget(None),
            fate => fate,
        };
        let fates: Vec<Fate> = slice.iter().map(fate).collect();
        if matches!(known, Known::Directory) && fates.iter().any(Fate::needs_frame) {
            self.read_victim_whole(victim);
            return Ok(false);
        }
        self.collection.pace.spend(bytes);
        let renewed = std::mem::take(&mut victim.renewed);
        let mut changes = Vec::new();
        for (at, (entry, fate)) in slice.iter().zip(fates).enumerate() {
            let image = known.bytes();
            match self.collect_entry(fate, entry, image, renewed.frame(at), &mut changes) {
                Some((moved_bytes, written_bytes)) => {
                    victim.moved_bytes += moved_bytes;
                    victim.written_bytes += written_bytes;
                }
                None => {
                    *damaged = true;
                    self.scrub.damage.note(entry.pbn, *id, Evidence::Checksum);
                    self.suspect(entry.pbn);
                }
            }
        }
        if !changes.is_empty() {
            self.record(&changes);
        }
        *cursor = end;
        Ok(true)
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
        self.workers.submit(Job::Recompress {
            tag: victim.cursor as u64,
            compression,
            image: victim.known.image()? as Arc<dyn Image>,
            frames: victim.entries[victim.cursor..end].iter().map(place).collect(),
            plain_bytes: self.geometry.chunk_bytes,
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

    fn want_slice(&mut self, slice: &[DirectoryEntry]) -> Result<bool, PageError> {
        let mut wanted = Wanted::default();
        let mut here = true;
        for entry in slice {
            here &= self.state.want_pba(entry.pbn, &mut wanted)?;
            here &= self.state.want_forget(entry.pbn, &mut wanted)?;
        }
        self.hold_pages(wanted, |lookups| &mut lookups.collect_pins);
        Ok(here)
    }

    fn fate(
        &self,
        container: ContainerId,
        entry: &DirectoryEntry,
        held: &LazyCell<HashSet<Pbn>, impl FnOnce() -> HashSet<Pbn>>,
    ) -> Fate {
        let Some(stored) = pbn_pba::get(&self.state.store, entry.pbn) else { return Fate::Stale };
        let copy = second_copies::get(&self.state.store, entry.pbn);
        let DirectoryEntry { offset_bytes, length_bytes, .. } = *entry;
        let here = Pba { container, offset_bytes, length_bytes, ..Pba::default() };
        if !stored.pba.is_place_of(here) {
            return match copy.filter(|copy| copy.is_place_of(here)) {
                Some(copy) if self.copy_may_move(stored) => Fate::Copy(copy.check),
                Some(_) => Fate::DropCopy,
                None => Fate::Stale,
            };
        }
        let is_held = || held.contains(&entry.pbn) && !mutant!(ForgetsHeldChunk);
        let check = stored.pba.check;
        if stored.references > 0 || is_held() {
            Fate::Move(check)
        } else if let Some(copy) = copy.filter(|_| !mutant!(ForgetsCopied)) {
            Fate::Promote(copy)
        } else {
            Fate::Forget(Some(check))
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
        let DirectoryEntry { pbn, fingerprint, offset_bytes, length_bytes } = *entry;
        let start = offset_bytes as usize;
        let frame = image.get(start..start + length_bytes as usize);
        let meant = |check| frame.filter(|frame| frame::is_meant(frame, pbn, check));
        match fate {
            Fate::Stale => Some((0, 0)),
            Fate::Promote(to) => {
                changes.push(self.moved(pbn, to, &fingerprint));
                Some((0, 0))
            }
            Fate::DropCopy => {
                changes.push(Change::DropCopy { pbn });
                Some((0, 0))
            }
            Fate::Copy(check) => {
                let placed = |frame| Placed { frame: renewed.unwrap_or(frame), pbn, fingerprint };
                let place =
                    |frame| self.placement.place(Stream::Collection, &placed(frame), changes);
                // Without it the chunk itself is still there.
                let Some(at) = meant(check).and_then(place) else {
                    changes.push(Change::DropCopy { pbn });
                    return Some((0, 0));
                };
                changes.push(self.copied(pbn, at, &fingerprint));
                Some(self.count_moved(length_bytes, at))
            }
            Fate::Forget(check) => {
                if check.is_some_and(|check| meant(check).is_none()) {
                    return None;
                }
                changes.push(Change::Forget { pbn, fingerprint });
                Some((0, 0))
            }
            // Its checksum would say that it is sound, wherever it is.
            Fate::Move(_) if self.scrub.damage.lies_beneath_checksum(pbn) => None,
            Fate::Move(check) => {
                let frame = meant(check)?;
                let placed = Placed { frame: renewed.unwrap_or(frame), pbn, fingerprint };
                let to = self.placement.place(Stream::Collection, &placed, changes)?;
                changes.push(self.moved(pbn, to, &fingerprint));
                self.note_popular(pbn);
                Some(self.count_moved(length_bytes, to))
            }
        }
    }

    /// A frame of so many bytes has been stored at another place: what it was, and what it is.
    fn count_moved(&mut self, length_bytes: u32, to: Pba) -> (u64, u64) {
        self.counters.chunks_moved += 1;
        self.counters.frame_bytes_moved += u64::from(to.length_bytes);
        (length_bytes.into(), to.length_bytes.into())
    }

    /// All entries are worked off; false while the journal has no room to say so.
    fn end_collection(&mut self, mut victim: Victim) -> bool {
        // Whatever the directory left out stays where it is, and so does the container. What was
        // found damaged may have healed since, and then nothing of it is here any more.
        let left_bytes = self.state.containers.get(victim.id).live_bytes;
        if left_bytes > 0 || victim.damaged && self.scrub.damage.may_be_in(victim.id) {
            self.keep_victim(victim);
            return true;
        }
        if !self.journal_has_room(CHANGE_BYTES_MAX) {
            self.collection.victim = Some(victim);
            return false;
        }
        self.record(&[Change::FreeContainer { id: victim.id }]);
        self.placement.space.free(victim.id, self.appended_sequence);
        self.checkpoints.relieved();
        self.counters.containers_collected += 1;
        self.tell(&Notice::CollectionEnded { container: victim.id.0, freed: true });
        self.end_order(&mut victim, true);
        true
    }
}
