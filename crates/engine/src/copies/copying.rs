//! Second copies, the work: frames are read, verified, placed and recorded. See [`crate::copies`].

use disk::AlignedBuf;
use format::frame;
use format::pba_page::PbaEntry;
use format::record::Change;
use format::root::Stream;
use format::units::{Fingerprint, Pba, Pbn};
use mutants::mutant;
use tables::{PageError, pbn_pba, second_copies};

use crate::copies::Task;
use crate::core::frame::FoundFrame;
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

    /// Lists the chunk if it needs a second copy and has none; its pages are here.
    pub(crate) fn note_popular(&mut self, pbn: Pbn) {
        let entry = pbn_pba::get(&self.core.state.store, pbn);
        let is_popular = entry.is_some_and(|entry| self.core.state.is_popular(entry.references));
        if is_popular && second_copies::get(&self.core.state.store, pbn).is_none() {
            self.core.copy_lists.want(pbn);
        }
    }

    /// Has the chunk looked at, its frame being damaged, if it has a second copy; its pages are
    /// here.
    pub(crate) fn suspect(&mut self, pbn: Pbn) {
        if second_copies::get(&self.core.state.store, pbn).is_some() {
            self.core.copy_lists.suspect(pbn);
        }
    }

    /// Whether collection is to keep the second copy of this chunk, in its own open container.
    pub(crate) fn copy_may_move(&self, chunk: PbaEntry) -> bool {
        let beside = self.core.placement.open_id(Stream::Collection) == Some(chunk.pba.container);
        self.core.state.keeps_copy(chunk.references) && !beside
    }

    /// Moves the chunk that is worked on further, or begins one.
    pub(crate) fn advance_copies(&mut self) -> bool {
        if self.copies.reading || self.core.stopped.is_some() || self.core.table_room.last_is_asked
        {
            return false;
        }
        let Some(mut task) = self.next_task() else { return false };
        let outcome =
            if task.heals { self.heal_from_copy(&mut task) } else { self.copy(&mut task) };
        // What stands in a damaged page is found by itself.
        let is_over = outcome.unwrap_or(true);
        let is_reading = self.copies.reading;
        if is_over {
            task.end(&mut self.core.copy_lists);
            self.core.hold_pages(Wanted::default(), |held| &mut held.copy);
        } else {
            self.copies.task = Some(task);
        }
        is_over || is_reading
    }

    fn next_task(&mut self) -> Option<Task> {
        self.copies.task.take().or_else(|| {
            let has_room = self.has_room_to_copy();
            if self.core.is_closing && !has_room {
                self.core.copy_lists.want_nothing();
            }
            let is_idle = self.clients_are_idle();
            self.copies.next_task(&self.core.copy_lists, |is_due| has_room && (is_due || is_idle))
        })
    }

    /// Those that lack room go first.
    fn has_room_to_copy(&self) -> bool {
        let used_max = f64::from(WARN_PERCENT_DEFAULT[0]) / 100.0;
        self.core.waiting.is_empty()
            && self.core.placement.has_spare_container()
            && self.used_ratios().iter().all(|&used| used < used_max)
    }

    /// Gives a chunk its second copy; false while something is waited for.
    fn copy(&mut self, task: &mut Task) -> Result<bool, PageError> {
        let Some(entry) = self.wanted_entry(task.pbn)? else { return Ok(false) };
        let has_copy = second_copies::get(&self.core.state.store, task.pbn).is_some()
            && !self.core.copy_lists.needs_another(task.pbn);
        let Some(entry) = entry.filter(|entry| self.core.state.is_popular(entry.references)) else {
            return Ok(true);
        };
        if has_copy {
            return Ok(true);
        }
        let Some(found) = self.found_frame(task, entry.pba) else { return Ok(false) };
        if !self.may_record() || self.core.placement.is_behind() {
            task.frame = Some(found);
            return Ok(false);
        }
        match self.fingerprint_of(&found, task.pbn) {
            Some(fingerprint) => self.place_copy(task.pbn, &found, fingerprint),
            None => {
                let bytes = found.bytes.as_deref().unwrap_or_default();
                let evidence = Evidence::of(bytes, task.pbn, entry.pba.check);
                self.core.damage.note(task.pbn, entry.pba.container, evidence);
            }
        }
        Ok(true)
    }

    /// Stores the frame a second time, if there is still room to spare; if not, the chunk is met
    /// again some time.
    fn place_copy(&mut self, pbn: Pbn, found: &FoundFrame, fingerprint: Fingerprint) {
        let Some(frame) = &found.bytes else { return };
        if !self.core.placement.has_spare_container() {
            return;
        }
        self.store_reserved(|engine| {
            // It has lived long, as what collection moves has.
            let beside =
                engine.core.placement.open_id(Stream::Collection) == Some(found.pba.container);
            let with_clients = beside || mutant!(CopyBesideChunk);
            let stream = if with_clients { Stream::Clients } else { Stream::Collection };
            let mut changes = Vec::new();
            let placed = Placed { frame, pbn, fingerprint };
            if let Some(at) = engine.core.placement.place(stream, &placed, &mut changes) {
                changes.push(engine.core.copied(pbn, at, &fingerprint));
                engine.core.counters.chunks_copied += 1;
                engine.core.counters.frame_bytes_copied += u64::from(at.length_bytes);
                engine.record(&changes);
            }
        });
    }

    /// Finds out what a suspected frame is worth, and lets its copy take its place if nothing.
    fn heal_from_copy(&mut self, task: &mut Task) -> Result<bool, PageError> {
        let pbn = task.pbn;
        let Some(entry) = self.wanted_entry(pbn)? else { return Ok(false) };
        let copy = second_copies::get(&self.core.state.store, pbn);
        let (Some(PbaEntry { pba, .. }), Some(copy)) = (entry, copy) else { return Ok(true) };
        if task.damaged_at != Some(pba) {
            let Some(found) = self.found_frame(task, pba) else { return Ok(false) };
            if self.fingerprint_of(&found, pbn).is_some() {
                self.core.damage.clear(pbn, Evidence::Checksum);
                if !self.core.damage.may_be_in(pba.container) {
                    self.core.placement.space.mark_sound(pba.container);
                }
                return Ok(true);
            }
            task.damaged_at = Some(pba);
        }
        let Some(found) = self.found_frame(task, copy) else { return Ok(false) };
        if !self.may_record() {
            task.frame = Some(found);
            return Ok(false);
        }
        if let Some(fingerprint) = self.fingerprint_of(&found, pbn) {
            self.record(&[self.core.moved(pbn, copy, &fingerprint)]);
            self.core.counters.chunks_healed += 1;
        } else {
            self.core.damage.note(pbn, pba.container, Evidence::Checksum);
            if found.bytes.is_some() {
                self.record(&[Change::DropCopy { pbn }]);
            }
        }
        Ok(true)
    }

    /// What the tables say of a chunk; the outer None while pages are on their way.
    fn wanted_entry(&mut self, pbn: Pbn) -> Result<Option<Option<PbaEntry>>, PageError> {
        let mut wanted = Wanted::default();
        let here = self.core.state.want_move(pbn, &mut wanted);
        self.core.hold_pages(wanted, |held| &mut held.copy);
        if !here? {
            return Ok(None);
        }
        let entry = pbn_pba::get(&self.core.state.store, pbn);
        Ok(Some(entry.filter(|entry| self.core.geometry.has_place(entry.pba))))
    }

    fn may_record(&mut self) -> bool {
        self.core.journal_has_room(4 * CHANGE_BYTES_MAX)
            && !self.core.table_room.tables_are_behind(&self.core.state)
    }

    /// The fingerprint of the chunk, if its frame is the one that is meant and the chunk can be had
    /// from it.
    fn fingerprint_of(&self, found: &FoundFrame, pbn: Pbn) -> Option<Fingerprint> {
        let bytes = found.bytes.as_deref()?;
        let header = frame::meant(bytes, pbn, found.pba.check)?;
        let here = Pba { offset_bytes: 0, ..found.pba };
        entry_of(header, here, bytes, &self.core.geometry).map(|entry| entry.fingerprint)
    }

    /// The frame at `pba`; None while it is read.
    fn found_frame(&mut self, task: &mut Task, pba: Pba) -> Option<FoundFrame> {
        let found = task.frame.take().filter(|found| found.pba == pba);
        let found = found.or_else(|| self.core.find_frame(pba, Purpose::Copy));
        self.copies.reading = found.is_none();
        found
    }

    /// The frame that the task waits for has come; None when the device did not give it.
    pub(crate) fn copy_frame_read(&mut self, pba: Pba, buf: Option<AlignedBuf>) {
        let found = self.core.frame_found(pba, buf);
        self.copies.reading = false;
        if let Some(task) = &mut self.copies.task {
            task.frame = Some(found);
        }
    }
}
