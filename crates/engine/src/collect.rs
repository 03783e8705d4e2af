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
mod entries;
mod fates;
mod orders;
pub(crate) mod room;
pub(crate) mod step;

use std::sync::Arc;

use containers::{directory_in_tail, directory_of, footer, room_to_move_bytes};
use disk::AlignedBuf;
use format::container_page::ContainerEntry;
use format::directory::DirectoryEntry;
use format::record::Change;
use format::units::{CONTAINER_BYTES, ContainerId, Pbn};
use reduce::{ChunkBuf, FramePlace, Image, Job};
use tables::PageError;

use crate::collect::collection::{Collection, Known, Order, Renewed, Victim};
use crate::collect::entries::{collect_entry, movable};
use crate::collect::fates::{Fate, fates, room_of_moves, want_slice};
use crate::collect::orders::end_order;
use crate::collect::room::{room_to_collect_may_come, room_to_risk_bytes};
use crate::core::Core;
use crate::core::invariant::Invariant;
use crate::core::record::CHANGE_BYTES_MAX;
use crate::devices::Purpose;
use crate::door::error::RequestError;
use crate::notice::Notice;
use crate::open::frame_walk::entries_by_scan;
use crate::part::Part;
use crate::placement::room_of;
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

impl Collection {
    /// Moves the running collection on, or begins one.
    pub(crate) fn advance(&mut self, core: &mut Core, clients_read: bool) -> bool {
        if core.stopped.is_some() {
            return false;
        }
        let free = core.placement.space.coming_containers();
        self.pace.earn(core.counters.frame_bytes_stored, free, core.reserve());
        let Some(victim) = self.victim.take() else {
            return self.begin_collection(core, clients_read);
        };
        if matches!(victim.known, Known::Nothing) || !self.may_go_on(core, &victim, clients_read) {
            self.victim = Some(victim);
            return false;
        }
        let collected = self.collect_slice(core, victim);
        self.publish_victim(core);
        match collected {
            Ok(moved) => moved,
            Err(error) => core.stop_for(&error),
        }
    }

    /// Shows the victim, and what it may still take in vain: clients are not promised that.
    fn publish_victim(&self, core: &mut Core) {
        core.placement.victim = self.victim_room();
    }

    fn begin_collection(&mut self, core: &mut Core, clients_read: bool) -> bool {
        if core.is_closing {
            self.fail(&RequestError::Closing);
            return false;
        }
        let Some((id, order)) = self.next_victim(core, clients_read) else { return false };
        let ContainerEntry { sequence, live_bytes, .. } = core.state.containers.get(id);
        let in_pieces = order.is_some() || clients_read;
        let piece_bytes = if in_pieces { PIECE_BYTES } else { CONTAINER_BYTES as usize };
        let mut victim = Victim::new(id, sequence, order, piece_bytes);
        victim.at_risk_bytes = room_to_risk_bytes(core, id);
        victim.verified = victim.at_risk_bytes > 0;
        core.tell(&Notice::CollectionBegan { container: id.0 });
        if live_bytes == 0 && victim.recompresses().is_none() {
            read_of_victim(core, id, CONTAINER_BYTES as usize - TAIL_BYTES, TAIL_BYTES);
        } else {
            read_piece(core, &victim);
        }
        self.victim = Some(victim);
        self.publish_victim(core);
        true
    }

    /// What clients need goes before what somebody asked for, and that before the rest.
    fn next_victim(
        &mut self,
        core: &mut Core,
        clients_read: bool,
    ) -> Option<(ContainerId, Option<Order>)> {
        let due = due_victim(core, clients_read);
        let is_urgent = due.is_some() && core.must_collect();
        let ordered = if is_urgent { None } else { self.take_order(core, due.is_some()) };
        match ordered {
            Some((id, order)) => Some((id, Some(order))),
            None => Some((due?, None)),
        }
    }

    /// Whether the next slice's turn has come: clients have stored enough since the last, or there
    /// is no time to lose, or none of them wants the device. Who asked for it sets the pace.
    fn may_go_on(&self, core: &Core, victim: &Victim, clients_read: bool) -> bool {
        self.pace.allows()
            || core.must_collect()
            || core.clients_are_idle(clients_read)
            || victim.order.is_some()
    }

    /// A piece of the victim has come, or the end of it; None when the device did not give it.
    pub(crate) fn victim_read(&mut self, core: &mut Core, buf: Option<AlignedBuf>) {
        let Some(victim) = self.victim.take() else {
            return core.violated(Invariant::OnePending);
        };
        match buf {
            None => keep_victim(core, victim),
            Some(piece) if piece.len() == TAIL_BYTES => self.take_end(core, victim, &piece),
            Some(piece) => self.take_piece(core, victim, piece),
        }
        self.publish_victim(core);
    }

    fn take_piece(&mut self, core: &mut Core, mut victim: Victim, piece: AlignedBuf) {
        let Some(image) = victim.take_piece(piece) else {
            read_piece(core, &victim);
            self.victim = Some(victim);
            return;
        };
        let ContainerEntry { sequence, used_bytes, .. } = core.state.containers.get(victim.id);
        let used = image.get(..used_bytes as usize).unwrap_or(&image);
        let listed = directory_of(victim.id, sequence, core.geometry.uuid, &image);
        victim.scanned = listed.is_err();
        victim.entries = listed.unwrap_or_else(|_| {
            let scanned = entries_by_scan(victim.id, used, &core.geometry);
            victim.hides_frames = !scanned.is_all;
            scanned.entries
        });
        victim.known = Known::All(Arc::new(image));
        self.victim = Some(victim);
    }

    /// The end of a victim in which nothing lives has been read. If its directory is not in there,
    /// or is damaged, all of it is read.
    fn take_end(&mut self, core: &mut Core, mut victim: Victim, tail: &[u8]) {
        let found = footer(victim.id, victim.sequence, core.geometry.uuid, tail).ok();
        match found.and_then(|footer| directory_in_tail(&footer, tail)?.ok()) {
            Some(entries) => (victim.known, victim.entries) = (Known::Directory, entries),
            None => read_piece(core, &victim),
        }
        self.victim = Some(victim);
    }

    fn collect_slice(&mut self, core: &mut Core, mut victim: Victim) -> Result<bool, PageError> {
        let is_verified = victim.verified || !matches!(victim.known, Known::All(_));
        let turn = match is_verified {
            true => self.try_collect_slice(core, &mut victim),
            false => self.verify_slice(core, &mut victim),
        };
        match turn {
            Ok(Turn::Damaged) => keep_victim(core, victim),
            Ok(Turn::LacksRoom) => let_victim_go(core, victim),
            Ok(Turn::Done) if victim.cursor >= victim.entries.len() => {
                return Ok(self.end_collection(core, victim));
            }
            Ok(Turn::Done | Turn::Waits) | Err(_) => self.victim = Some(victim),
        }
        Ok(turn? != Turn::Waits)
    }

    fn try_collect_slice(
        &mut self,
        core: &mut Core,
        victim: &mut Victim,
    ) -> Result<Turn, PageError> {
        let end = victim.slice_end();
        if let Some(asked) = renew_slice(core, victim, end) {
            return Ok(if asked { Turn::Done } else { Turn::Waits });
        }
        let slice = &victim.entries[victim.cursor..end];
        // Pages last: to ask for those of a slice takes as long as to work it off.
        if !core.journal_has_room(CHANGE_BYTES_MAX * (slice.len() + 2))
            || core.placement.is_behind()
            || core.table_room.tables_are_behind(&core.state)
            || core.devices.journal_is_behind()
            || !want_slice(core, &mut self.pins, slice)?
        {
            return Ok(Turn::Waits);
        }
        let fates = fates(core, victim, end);
        if matches!(victim.known, Known::Directory) && fates.iter().any(Fate::needs_frame) {
            read_victim_whole(core, victim);
            return Ok(Turn::Waits);
        }
        if room_of_moves(victim, &fates) > core.collection_room_bytes() {
            let comes = room_to_collect_may_come(core);
            return Ok(if comes { Turn::Waits } else { Turn::LacksRoom });
        }
        self.collect_entries(core, victim, end, fates);
        Ok(Turn::Done)
    }

    /// Works the next slice off, for which everything is here.
    fn collect_entries(
        &mut self,
        core: &mut Core,
        victim: &mut Victim,
        end: usize,
        fates: Vec<Fate>,
    ) {
        let renewed = std::mem::take(&mut victim.renewed);
        let mut changes = Vec::new();
        for (at, fate) in fates.into_iter().enumerate() {
            let entry = victim.entries[victim.cursor + at];
            let image = victim.known.bytes();
            self.pace.spend(room_of(entry.length_bytes.into()));
            match collect_entry(core, fate, &entry, (image, renewed.frame(at)), &mut changes) {
                Some((moved_bytes, written_bytes)) => {
                    victim.moved_bytes += moved_bytes;
                    victim.written_bytes += written_bytes;
                }
                None => note_damaged(core, victim, entry.pbn),
            }
        }
        if !changes.is_empty() {
            core.record(&changes);
        }
        victim.cursor = end;
    }

    /// Looks whether what lives in the next slice is sound. Behind the last the victim begins anew,
    /// to be moved, unless something is damaged.
    fn verify_slice(&mut self, core: &mut Core, victim: &mut Victim) -> Result<Turn, PageError> {
        let end = victim.slice_end();
        if !want_slice(core, &mut self.pins, &victim.entries[victim.cursor..end])? {
            return Ok(Turn::Waits);
        }
        for (at, fate) in fates(core, victim, end).into_iter().enumerate() {
            let entry = victim.entries[victim.cursor + at];
            if let Fate::Move(check) = fate
                && movable(core, &entry, check, victim.known.bytes()).is_none()
            {
                note_damaged(core, victim, entry.pbn);
            }
        }
        victim.cursor = end;
        if end >= victim.entries.len() {
            (victim.verified, victim.cursor) = (true, 0);
            let is_damaged = victim.damaged && core.damage.may_be_in(victim.id);
            if victim.hides_frames || is_damaged {
                return Ok(Turn::Damaged);
            }
        }
        Ok(Turn::Done)
    }

    /// Frames have been made anew.
    pub(crate) fn slice_renewed(&mut self, core: &mut Core, bytes: ChunkBuf, ends: Vec<u32>) {
        let waits = |victim: &&mut Victim| matches!(victim.renewed, Renewed::Asked);
        match self.victim.as_mut().filter(waits) {
            Some(victim) => victim.renewed = Renewed::Here { bytes, ends },
            None => core.violated(Invariant::OnePending),
        }
    }

    /// All entries are worked off; false while the journal has no room to say so.
    fn end_collection(&mut self, core: &mut Core, mut victim: Victim) -> bool {
        // Whatever the directory left out stays where it is, and so does the container. What was
        // found damaged may have healed since, and then nothing of it is here any more.
        let left_bytes = core.state.containers.get(victim.id).live_bytes;
        let is_damaged = victim.damaged && core.damage.may_be_in(victim.id);
        if left_bytes > 0 || victim.hides_frames || is_damaged {
            keep_victim(core, victim);
            return true;
        }
        if !core.journal_has_room(CHANGE_BYTES_MAX) {
            self.victim = Some(victim);
            return false;
        }
        core.record(&[Change::FreeContainer { id: victim.id }]);
        if core.stopped.is_some() {
            // The journal did not take it: who asked is told why.
            self.victim = Some(victim);
            return false;
        }
        core.placement.space.free(victim.id, core.log.appended_sequence);
        core.table_room.relieved();
        core.counters.containers_collected += 1;
        core.tell(&Notice::CollectionEnded { container: victim.id.0, freed: true });
        end_order(core, &mut victim, true);
        true
    }
}

impl Part for Collection {
    /// What has been asked for does not come any more.
    fn fail(&mut self, error: &RequestError) {
        let under_way = self.victim.as_mut().and_then(|victim| victim.order.take());
        let under_way = under_way.map(|order| order.done);
        let waiting = self.orders.drain(..).map(|(_, done)| done);
        let leaving = self.evacuations.drain(..).map(|(_, done)| done);
        let all = under_way.into_iter().chain(waiting).chain(leaving);
        all.for_each(|done| done.fail(error.clone()));
    }

    /// A close begins no collection, and ends the one that is under way.
    fn is_idle(&self, _core: &Core) -> bool {
        self.victim.is_none()
    }

    fn check(&self, core: &Core) {
        assert_eq!(self.victim_room(), core.placement.victim, "VictimIsPublished");
    }
}

/// Asks for the next piece of the victim.
fn read_piece(core: &mut Core, victim: &Victim) {
    read_of_victim(core, victim.id, victim.filled_bytes, victim.piece_bytes);
}

fn read_of_victim(core: &mut Core, id: ContainerId, offset_bytes: usize, length_bytes: usize) {
    let Some((zone, start_bytes)) = core.geometry.container_zone(id) else {
        return core.violated(Invariant::ContainersKeepNumbers);
    };
    let offset_bytes = start_bytes + offset_bytes as u64;
    core.devices.read(zone, offset_bytes, length_bytes, Purpose::Victim);
}

/// The container that it is time to collect.
fn due_victim(core: &Core, clients_read: bool) -> Option<ContainerId> {
    if !is_time_to_collect(core, clients_read) {
        return None;
    }
    let compact =
        core.placement.space.coming_containers() < core.reserve().begin || core.must_collect();
    core.choose_victim(compact, u32::MAX)
}

/// Clients' work goes first while there is room for it.
fn is_time_to_collect(core: &Core, clients_read: bool) -> bool {
    let free = core.placement.space.reachable_containers();
    let idle = core.flushes_are_idle() && core.clients_are_idle(clients_read);
    idle || core.must_collect() || free * 2 < core.geometry.containers_present()
}

/// A frame of the victim is needed, of which only the directory has been read. It begins anew:
/// what has been forgotten by now is not there any more, whatever the directory says.
fn read_victim_whole(core: &mut Core, victim: &mut Victim) {
    (victim.known, victim.cursor) = (Known::Nothing, 0);
    read_piece(core, victim);
}

/// The container cannot be freed: it stays as it is.
fn keep_victim(core: &mut Core, mut victim: Victim) {
    core.placement.space.mark_damaged(victim.id);
    core.tell(&Notice::CollectionEnded { container: victim.id.0, freed: false });
    end_order(core, &mut victim, false);
}

fn note_damaged(core: &mut Core, victim: &mut Victim, pbn: Pbn) {
    victim.damaged = true;
    core.damage.note(pbn, victim.id, Evidence::Checksum);
    core.suspect(pbn);
}

/// Has workers make the frames of the slice anew, if that was asked for; whether that moved
/// anything, none when they are here or not wanted.
fn renew_slice(core: &mut Core, victim: &mut Victim, end: usize) -> Option<bool> {
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
    core.workers.submit(Job::Recompress {
        tag: victim.cursor as u64,
        compression,
        image: victim.known.image()? as Arc<dyn Image>,
        frames: victim.entries[victim.cursor..end].iter().map(place).collect(),
        plain_bytes: core.geometry.chunk_bytes,
    });
    victim.renewed = Renewed::Asked;
    Some(true)
}

/// What lives in the victim finds no room: it stays, and is chosen again when it fits.
fn let_victim_go(core: &mut Core, mut victim: Victim) {
    let ContainerEntry { live_bytes, used_bytes, .. } = core.state.containers.get(victim.id);
    if room_to_move_bytes(live_bytes, used_bytes) <= core.collection_room_bytes() {
        // It would be chosen for ever: more is in it than the tables say.
        return keep_victim(core, victim);
    }
    core.tell(&Notice::CollectionEnded { container: victim.id.0, freed: false });
    if let Some(order) = victim.order.take() {
        order.done.fail(RequestError::NoSpace);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use format::units::ContainerId;
    use reduce::ChunkBuf;

    use crate::collect::collection::Collection;
    use crate::collect::step::CollectRequest;
    use crate::door::done::Done;
    use crate::door::error::RequestError;
    use crate::door::outcome::Reply;
    use crate::part::Part;
    use crate::placement::VictimRoom;
    use crate::small_store::{Told, store};

    #[test]
    fn who_asks_where_nothing_can_be_collected_is_answered() {
        let (mut engine, _client) = store(Default::default());
        let (mut collection, told) = (Collection::default(), Arc::<Told>::default());
        collection.accept(&engine.core, CollectRequest::default(), Done::new(Arc::clone(&told), 1));
        collection.advance(&mut engine.core, false);
        collection.check(&engine.core);
        let told = told.take();
        let [(1, Ok(Reply::Collect(step)))] = &told[..] else { panic!("{told:?}") };
        assert!(step.next.is_none() && step.collected.is_none());
        assert!(collection.is_idle(&engine.core));
    }

    #[test]
    fn who_waits_for_a_container_is_told_when_none_will_be_collected() {
        let (mut engine, _client) = store(Default::default());
        let (mut collection, told) = (Collection::default(), Arc::<Told>::default());
        for tag in 1..3 {
            let done = Done::new(Arc::clone(&told), tag);
            collection.accept(&engine.core, CollectRequest::default(), done);
        }
        collection.fail(&RequestError::Closing);
        assert_eq!(told.take().len(), 2);
        engine.core.stop_writing(RequestError::WorkerLost);
        collection.accept(&engine.core, CollectRequest::default(), Done::new(Arc::clone(&told), 3));
        assert!(matches!(told.take()[..], [(3, Err(RequestError::WorkerLost))]));
        assert!(!collection.advance(&mut engine.core, false));
    }

    #[test]
    #[should_panic(expected = "VictimIsPublished")]
    fn the_core_knows_of_the_container_that_is_collected() {
        let (mut engine, _client) = store(Default::default());
        engine.core.placement.victim = Some(VictimRoom { id: ContainerId(0), at_risk_bytes: 0 });
        Collection::default().check(&engine.core);
    }

    #[test]
    #[should_panic(expected = "OnePending")]
    fn nothing_is_read_of_a_container_that_is_not_collected() {
        let (mut engine, _client) = store(Default::default());
        Collection::default().victim_read(&mut engine.core, None);
    }

    #[test]
    #[should_panic(expected = "OnePending")]
    fn no_slice_is_renewed_that_was_not_asked_for() {
        let (mut engine, _client) = store(Default::default());
        let renewed = (ChunkBuf::new(Vec::new()), Vec::new());
        Collection::default().slice_renewed(&mut engine.core, renewed.0, renewed.1);
    }
}
