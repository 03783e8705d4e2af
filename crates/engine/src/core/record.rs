//! Changes become records of the journal.

use std::sync::Arc;

use format::BLOCK_BYTES;
use format::record::{BODY_BYTES_MAX, Change};
use format::root::Stream;

use crate::core::Core;
use crate::core::flush_queue::Answer;
use crate::core::invariant::Invariant;
use crate::core::record_log::Durability;
use crate::devices::Purpose;
use crate::state::LiveChange;
use crate::stats::stages::CoreStage;
use crate::write::partial::Ack;
use format::units::{Fingerprint, Pba, Pbn, Zone};
use mutants::mutant;

/// Largest encoding of one change that is not a long run or a name.
pub(crate) const CHANGE_BYTES_MAX: usize = 96;

/// Dirty pages beside which a version is copied.
const COPIED_PAGES_MAX: usize = 512;

/// Journal that only openings may use: a record each, until a checkpoint frees more.
const JOURNAL_SPARE_BYTES: u64 = 2 << 20;

/// The body of a record.
pub(crate) fn encoded(changes: &[Change]) -> Vec<u8> {
    let mut body = Vec::new();
    encode(changes, &mut body);
    body
}

/// How many changes as long as this one go into one record.
pub(crate) fn changes_in_a_record(change: &Change) -> usize {
    BODY_BYTES_MAX / encoded(std::slice::from_ref(change)).len()
}

/// Changes of one length, as few records as hold them, in order.
pub(crate) fn in_records(changes: Vec<Change>) -> Vec<Vec<Change>> {
    let most = changes.first().map_or(1, changes_in_a_record);
    changes.chunks(most).map(<[Change]>::to_vec).collect()
}

fn encode(changes: &[Change], body: &mut Vec<u8>) {
    let carried = changes.iter().map(|change| match change {
        Change::Carry { bytes, .. } => bytes.len(),
        _ => 0,
    });
    let body_bytes = changes.len() * CHANGE_BYTES_MAX + carried.sum::<usize>();
    body.clear();
    body.reserve(body_bytes);
    changes.iter().for_each(|change| change.encode(body));
}

/// Whether room of the tables comes back by a change. What chunks took comes back by collection.
fn gives_back(change: &Change) -> bool {
    matches!(
        change,
        Change::Unmap { .. }
            | Change::CutOff { .. }
            | Change::GiveBack { .. }
            | Change::DropVolume { .. }
    )
}

/// Whether what volumes read as changes otherwise than by what enters the write buffer.
fn changes_a_volume(change: &Change) -> bool {
    matches!(
        change,
        Change::Rollback { .. }
            | Change::ResizeVolume { .. }
            | Change::DeleteVolume { .. }
            | Change::CutOff { .. }
    )
}

impl Core {
    /// A chunk's frame is at another place; recovery is told what should be in it where no table
    /// may know.
    pub(crate) fn moved(&self, pbn: Pbn, to: Pba, fingerprint: &Fingerprint) -> Change {
        Change::Move { pbn, to, fingerprint: self.is_named(pbn).then_some(*fingerprint) }
    }

    /// The same of a second copy.
    pub(crate) fn copied(&self, pbn: Pbn, at: Pba, fingerprint: &Fingerprint) -> Change {
        Change::Copy { pbn, at, fingerprint: self.is_named(pbn).then_some(*fingerprint) }
    }

    /// Whether recovery may not learn from the tables what a frame of this chunk should hold.
    fn is_named(&self, pbn: Pbn) -> bool {
        let detection = self.geometry.detection;
        let is_aside = detection.asides && !self.state.is_entered(pbn);
        detection.verify || is_aside && !mutant!(MovesUnnamed)
    }

    /// Whether a record of `body_bytes` fits into the ring now; if not, a checkpoint is asked for.
    pub(crate) fn journal_has_room(&mut self, body_bytes: usize) -> bool {
        let spare = self.log.journal.free_bytes() >= JOURNAL_SPARE_BYTES;
        let fits = spare && self.log.journal.fits(body_bytes);
        if !fits {
            self.table_room.ask();
        }
        fits
    }

    /// Whether a copy of a version, and the record that says so, has room now. A copy doubles the
    /// pages that are dirty, and shares those that are not: there must be few.
    pub(crate) fn copies_have_room(&mut self) -> bool {
        let most = COPIED_PAGES_MAX.min(self.table_room.dirty_pages_due(&self.state) / 2);
        let few = self.state.store.dirty_pages() <= most;
        if !few || self.table_room.tables_are_behind(&self.state) {
            self.table_room.ask();
            return false;
        }
        self.journal_has_room(CHANGE_BYTES_MAX + BLOCK_BYTES)
    }

    /// Appends a record that the next sync makes durable. See [`Core::record_with`].
    pub(crate) fn record(&mut self, changes: &[Change]) {
        self.record_with(changes, Durability::BySync);
    }

    /// Appends a record of `changes` to the journal and applies them. The caller has made sure of
    /// the pages and of the journal's room. A record that carries all that it stores may be durable
    /// by its write.
    pub(crate) fn record_with(&mut self, changes: &[Change], durability: Durability) {
        let begun = self.stages.now();
        let mut body = std::mem::take(&mut self.state.scratch.body);
        encode(changes, &mut body);
        let appended = self.append(&body, durability);
        self.state.scratch.body = body;
        if !appended {
            return;
        }
        self.stages.within(CoreStage::Journal, begun);
        if !changes.is_empty() {
            self.log.newest_change = self.log.appended_sequence;
        }
        if changes.iter().any(gives_back) {
            // What it sets free is behind checkpoints, which some write may wait for.
            self.table_room.relieved();
        }
        self.state.touch(changes);
        self.state.apply_all(changes);
        for change in changes {
            self.frames.settle(change);
            if let Change::Forget { pbn, .. } = change {
                self.intake.lookaside.forget(*pbn);
            }
            if changes_a_volume(change) {
                self.intake.lookaside.stamp_all();
            }
            if let Some(container) = self.damage.settle(change) {
                self.placement.space.mark_sound(container);
            }
        }
        for live in self.state.live_changes.drain(..) {
            let LiveChange { container, added_bytes, removed_bytes } = live;
            self.placement.space.change_live(container, added_bytes, removed_bytes);
            if let Some((watched, changed)) = &mut self.live_watch {
                *changed |= *watched == container;
            }
        }
        for pbn in self.state.popular.drain(..) {
            self.copy_lists.want(pbn);
        }
        self.issue_frames(false);
    }

    /// Hands the device what frames there are, with `flush` to the last.
    pub(crate) fn issue_frames(&mut self, flush: bool) {
        let (geometry, devices) = (&self.geometry, &mut self.devices);
        let bytes = self.placement.issue(flush, geometry, devices, &self.workers);
        self.counters.data_bytes_written += bytes.iter().sum::<u64>();
        self.counters.collection_bytes_written += bytes[Stream::Collection as usize];
    }

    /// Ends the request's own part of its answer: now, or when it is durable.
    pub(crate) fn acknowledge(&mut self, ack: Arc<Ack>, durable: bool) {
        if durable {
            let group = self.buffer.newest_group();
            self.flushes.wait_for(group, Answer::Ack(ack));
        } else {
            ack.part_done();
        }
    }

    /// The oldest group has been applied: it leaves the write buffer.
    pub(crate) fn finish_group(&mut self) {
        let Some(group) = self.buffer.pop_applied() else {
            return self.violated(Invariant::GroupStaysUntilApplied);
        };
        self.counters.groups += 1;
        // First less is promised, then the reservation ends: never the other way round.
        self.publish_space();
        let mut intake = self.intake.lock();
        for chunks in group.reservations.into_iter().filter(|_| !mutant!(KeepsPromise)) {
            intake.space.settle(chunks);
        }
        drop(intake);
        group.answers.iter().for_each(|ack| ack.part_done());
    }

    fn append(&mut self, body: &[u8], durability: Durability) -> bool {
        let mut settled = self.log.settled;
        if mutant!(TellsDurableEarly)
            && let Some(sequence) = self.log.syncing
        {
            settled.durable_sequence = sequence;
        }
        if mutant!(TellsPlacedEarly) {
            settled.placed_sequence = settled.durable_sequence;
        }
        let Ok(appended) = self.log.journal.append(body, settled) else {
            self.violated(Invariant::RecordFits);
            return false;
        };
        self.log.told = settled.durable_sequence;
        for write in appended.writes {
            self.counters.journal_bytes_written += write.buf.len() as u64;
            let (zone, at) = (Zone::Journal, write.offset_bytes);
            let purpose = Purpose::Journal(write.buf.len());
            match durability {
                Durability::BySync => self.devices.write(zone, at, write.buf, purpose),
                Durability::ByWrite => self.devices.write_durably(zone, at, write.buf, purpose),
            }
        }
        self.log.journal_unsynced |= durability == Durability::BySync;
        self.log.appended_sequence = appended.sequence;
        true
    }
}

#[cfg(test)]
mod tests {
    use format::record::{BODY_BYTES_MAX, Change};
    use format::units::VolumeId;

    use super::{encoded, in_records};

    #[test]
    fn what_is_too_much_for_one_record_goes_into_several_in_order() {
        assert!(in_records(Vec::new()).is_empty());
        for (count, records) in [(1, 1), (209_702, 1), (209_703, 2), (500_000, 3)] {
            let changes: Vec<Change> =
                (0..count).map(|id| Change::DeleteVolume { id: VolumeId(id) }).collect();
            let parts = in_records(changes.clone());
            assert_eq!(parts.len(), records);
            assert!(parts.iter().all(|part| encoded(part).len() <= BODY_BYTES_MAX));
            assert!(parts.concat() == changes);
        }
    }
}
