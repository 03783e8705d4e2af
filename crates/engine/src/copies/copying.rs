//! Second copies, the work: frames are read, verified, placed and recorded. See [`crate::copies`].

use disk::AlignedBuf;
use format::frame;
use format::pba_page::PbaEntry;
use format::record::Change;
use format::root::Stream;
use format::superblock::Geometry;
use format::units::{Fingerprint, Pba, Pbn};
use mutants::mutant;
use tables::{PageError, PinSet, pbn_pba, second_copies};

use crate::copies::{Copies, Task};
use crate::core::Core;
use crate::core::frame::FoundFrame;
use crate::core::invariant::Invariant;
use crate::core::record::CHANGE_BYTES_MAX;
use crate::devices::Purpose;
use crate::engine::Engine;
use crate::open::frame_walk::entry_of;
use crate::pages::wanted::Wanted;
use crate::placement::Placed;
use crate::scrub::damage::Evidence;
use crate::space::watermarks::WARN_PERCENT_DEFAULT;

impl Engine {
    /// From now on a chunk that more LBAs than that name is stored twice; 0: none is.
    pub fn copy_above(&mut self, references: u32) {
        self.core.state.copies_above = references;
    }
}

impl Copies {
    /// Moves the chunk that is worked on further, or begins one.
    pub(crate) fn advance(&mut self, core: &mut Core, clients_are_idle: bool) -> bool {
        if self.reading || core.stopped.is_some() || core.table_room.last_is_asked {
            return false;
        }
        let Some(mut task) = self.take_task(core, clients_are_idle) else { return false };
        let outcome = if task.heals {
            self.heal_from_copy(core, &mut task)
        } else {
            self.copy(core, &mut task)
        };
        // What stands in a damaged page is found by itself.
        let is_over = outcome.unwrap_or(true);
        let is_reading = self.reading;
        if is_over {
            task.end(&mut core.copy_lists);
            core.hold_in(&mut self.pins, Wanted::default());
        } else {
            self.task = Some(task);
        }
        is_over || is_reading
    }

    fn take_task(&mut self, core: &mut Core, clients_are_idle: bool) -> Option<Task> {
        self.task.take().or_else(|| {
            let has_room = has_room_to_copy(core);
            if core.is_closing && !has_room {
                core.copy_lists.want_nothing();
            }
            self.next_task(&core.copy_lists, |is_due| has_room && (is_due || clients_are_idle))
        })
    }

    /// Gives a chunk its second copy; false while something is waited for.
    fn copy(&mut self, core: &mut Core, task: &mut Task) -> Result<bool, PageError> {
        let Some(entry) = wanted_entry(core, &mut self.pins, task.pbn)? else { return Ok(false) };
        let has_copy = second_copies::get(&core.state.store, task.pbn).is_some()
            && !core.copy_lists.needs_another(task.pbn);
        let Some(entry) = entry.filter(|entry| core.state.is_popular(entry.references)) else {
            return Ok(true);
        };
        if has_copy {
            return Ok(true);
        }
        let Some(found) = self.found_frame(core, task, entry.pba) else { return Ok(false) };
        if !may_record(core) || core.placement.is_behind() {
            task.frame = Some(found);
            return Ok(false);
        }
        match fingerprint_of(&core.geometry, &found, task.pbn) {
            Some(fingerprint) => place_copy(core, task.pbn, &found, fingerprint),
            None => {
                let bytes = found.bytes.as_deref().unwrap_or_default();
                let evidence = Evidence::of(bytes, task.pbn, entry.pba.check);
                core.damage.note(task.pbn, entry.pba.container, evidence);
            }
        }
        Ok(true)
    }

    /// Finds out what a suspected frame is worth, and lets its copy take its place if nothing.
    fn heal_from_copy(&mut self, core: &mut Core, task: &mut Task) -> Result<bool, PageError> {
        let pbn = task.pbn;
        let Some(entry) = wanted_entry(core, &mut self.pins, pbn)? else { return Ok(false) };
        let copy = second_copies::get(&core.state.store, pbn);
        let (Some(PbaEntry { pba, .. }), Some(copy)) = (entry, copy) else { return Ok(true) };
        if task.damaged_at != Some(pba) {
            let Some(found) = self.found_frame(core, task, pba) else { return Ok(false) };
            if fingerprint_of(&core.geometry, &found, pbn).is_some() {
                core.damage.clear(pbn, Evidence::Checksum);
                if !core.damage.may_be_in(pba.container) {
                    core.placement.space.mark_sound(pba.container);
                }
                return Ok(true);
            }
            task.damaged_at = Some(pba);
        }
        let Some(found) = self.found_frame(core, task, copy) else { return Ok(false) };
        if !may_record(core) {
            task.frame = Some(found);
            return Ok(false);
        }
        if let Some(fingerprint) = fingerprint_of(&core.geometry, &found, pbn) {
            core.record(&[core.moved(pbn, copy, &fingerprint)]);
            core.counters.chunks_healed += 1;
        } else {
            core.damage.note(pbn, pba.container, Evidence::Checksum);
            if found.bytes.is_some() {
                core.record(&[Change::DropCopy { pbn }]);
            }
        }
        Ok(true)
    }

    /// The frame at `pba`; None while it is read.
    fn found_frame(&mut self, core: &mut Core, task: &mut Task, pba: Pba) -> Option<FoundFrame> {
        let found = task.frame.take().filter(|found| found.pba == pba);
        let found = found.or_else(|| core.find_frame(pba, Purpose::Copy));
        self.reading = found.is_none();
        found
    }

    /// The frame that the task waits for has come; None when the device did not give it.
    pub(crate) fn frame_read(&mut self, core: &mut Core, pba: Pba, buf: Option<AlignedBuf>) {
        let found = core.frame_found(pba, buf);
        self.reading = false;
        if let Some(task) = &mut self.task {
            task.frame = Some(found);
        }
    }
}

/// Those that lack room go first.
fn has_room_to_copy(core: &Core) -> bool {
    let used_max = f64::from(WARN_PERCENT_DEFAULT[0]) / 100.0;
    core.waiting.is_empty()
        && core.placement.has_spare_container()
        && core.used_ratios().iter().all(|&used| used < used_max)
}

/// Stores the frame a second time, if there is still room to spare; if not, the chunk is met
/// again some time.
fn place_copy(core: &mut Core, pbn: Pbn, found: &FoundFrame, fingerprint: Fingerprint) {
    let Some(frame) = &found.bytes else { return };
    if !core.placement.has_spare_container() {
        return;
    }
    core.store_reserved(|core| {
        // It has lived long, as what collection moves has.
        let beside = core.placement.open_id(Stream::Collection) == Some(found.pba.container);
        let with_clients = beside || mutant!(CopyBesideChunk);
        let stream = if with_clients { Stream::Clients } else { Stream::Collection };
        let mut changes = Vec::new();
        let placed = Placed { frame, pbn, fingerprint };
        if let Some(at) = core.placement.place(stream, &placed, &mut changes) {
            if at.container == found.pba.container {
                return core.violated(Invariant::CopyElsewhere);
            }
            changes.push(core.copied(pbn, at, &fingerprint));
            core.counters.chunks_copied += 1;
            core.counters.frame_bytes_copied += u64::from(at.length_bytes);
            core.record(&changes);
        }
    });
}

/// What the tables say of a chunk; the outer None while pages are on their way.
fn wanted_entry(
    core: &mut Core,
    pins: &mut PinSet,
    pbn: Pbn,
) -> Result<Option<Option<PbaEntry>>, PageError> {
    let mut wanted = Wanted::default();
    let here = core.state.want_move(pbn, &mut wanted);
    core.hold_in(pins, wanted);
    if !here? {
        return Ok(None);
    }
    let entry = pbn_pba::get(&core.state.store, pbn);
    Ok(Some(entry.filter(|entry| core.geometry.has_place(entry.pba))))
}

fn may_record(core: &mut Core) -> bool {
    core.journal_has_room(4 * CHANGE_BYTES_MAX) && !core.table_room.tables_are_behind(&core.state)
}

/// The fingerprint of the chunk, if its frame is the one that is meant and expands to it.
fn fingerprint_of(geometry: &Geometry, found: &FoundFrame, pbn: Pbn) -> Option<Fingerprint> {
    let bytes = found.bytes.as_deref()?;
    let header = frame::meant(bytes, pbn, found.pba.check)?;
    let here = Pba { offset_bytes: 0, ..found.pba };
    entry_of(header, here, bytes, geometry).map(|entry| entry.fingerprint)
}
