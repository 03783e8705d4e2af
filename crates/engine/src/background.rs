//! What is beside the way of every request: background work, sleep, and the clock that tells all
//! apart.

use format::domain::DomainSecret;
use reduce::{Job, MemoryWanted, PreparedMemory};
use tables::SpareSlots;

use crate::devices::lacking_room::RoomChange;
use crate::door::error::RequestError;
use crate::engine::{Engine, TICK_MS};
use crate::notice::Notice;
use crate::placement::quarantine::advance_quarantine;
use crate::space::allocation::{advance_allocation, tick_allocation};
use crate::space::watermarks::Watermarks;
use crate::stats::stages::{Clock, CoreStage, StageClock};

/// What is under way on the devices while somebody may wait for the next that ends: the write of a
/// flush, or its sync, and one read.
const LOOKED_FOR_MAX: usize = 2;

/// Ticks after which a close, or a command that ends before one, no longer waits for a device
/// without room: 10 s.
const CLOSE_TICKS_MAX: u32 = 100;

impl Engine {
    /// From now on it is kept where time goes, by `clock`: `tamis stats` shows it. To be called
    /// before the engine runs.
    pub fn keep_time(&mut self, clock: Clock) {
        self.core.stages = StageClock::by(clock, &self.core.workers);
        self.core.workers.keep_time(clock.ticks);
        self.core.intake.expanding.keep_time(clock);
    }

    /// From now on the operator is told when room reaches one of these percentages.
    pub fn warn_at(&mut self, percents: &[u8]) {
        let mut percents = percents.to_vec();
        percents.sort_unstable();
        percents.dedup();
        self.core.watermarks = Watermarks::at(percents);
    }

    /// From what the keys of domains are to be made, should the store get its first one: 32 random
    /// bytes of the caller's, of which nobody else knows. Without them it gets none.
    pub fn offer_secret(&mut self, secret: DomainSecret) {
        self.enlarging.offered_secret = Some(secret);
    }

    /// Moves one stage on; its end is noted if it moved.
    pub(crate) fn timed(&mut self, stage: CoreStage, advance: fn(&mut Self) -> bool) -> bool {
        let moved = advance(self);
        if moved {
            self.core.stages.lap(stage, &self.core.workers);
        }
        moved
    }

    /// Waits for work; false when nothing came for a tick. The core does not spin while workers
    /// work, which need the processors, nor while the devices have many operations in flight:
    /// several of them end together then, and no client waits for one alone.
    pub(crate) fn sleep(&mut self) -> bool {
        if self.core.workers.are_busy() || self.core.devices.in_flight() > LOOKED_FOR_MAX {
            return self.doorbell.wait(Some(TICK_MS));
        }
        let devices = &mut self.core.devices;
        self.doorbell.spin_then_wait(&mut self.spin, TICK_MS, || devices.has_ended())
    }

    /// Says once what makes the disk slower than it should be.
    pub(crate) fn tell_degradation(&mut self) {
        if let Some(reason) = self.core.devices.new_degradation() {
            self.core.tell(&Notice::DiskDegraded { reason });
        }
    }

    /// Says when a device has no room for what is written, and when it has some again, and what
    /// makes it slow since then. A store that is being closed, or soon will be, does not wait for
    /// ever: who asks for the close may first wait for a write.
    pub(crate) fn watch_devices(&mut self) {
        tick_allocation(&mut self.core);
        match self.core.devices.tick() {
            Some(RoomChange::Lacks(error)) => {
                self.core.tell(&Notice::DeviceFull { reason: error.to_string() });
            }
            Some(RoomChange::Came) => self.core.tell(&Notice::DeviceHasRoom),
            None => {}
        }
        self.tell_degradation();
        let ends = self.core.is_closing || self.core.intake.is_close_announced();
        let full = self.core.devices.lacking_room().filter(|_| ends);
        if let Some((ticks, error)) = full
            && ticks >= CLOSE_TICKS_MAX
        {
            let reason = error.to_string();
            self.stop_writing(RequestError::DeviceFull { reason });
        }
    }

    /// What every step ends with; `moved`: it found something to do. True if there is more.
    pub(crate) fn end_step(&mut self, moved: bool) -> bool {
        self.lending.advance(&mut self.core);
        self.checkpoints.keep_cache_in_bounds(&mut self.core);
        self.prepare_memory();
        self.core.publish_space();
        if moved {
            return true;
        }
        self.core.intake.call_waiters();
        self.close_for_writers()
    }

    /// All writers wait until one of them finds more of the write buffer free, and nothing but the
    /// open group will give any back: it is closed now and not with the next tick.
    fn close_for_writers(&mut self) -> bool {
        let closes = self.core.buffer.has_open()
            && self.core.buffer.closed_groups() == 0
            && self.core.intake.credits.are_saved();
        if closes {
            self.core.buffer.close_open();
        }
        closes
    }

    /// Has memory touched that the tables will grow into, a little at a time.
    fn prepare_memory(&mut self) {
        if self.preparing {
            return;
        }
        let SpareSlots { lists, slots } = self.core.state.hash.spares_wanted().unwrap_or_default();
        let pages = self.core.state.store.spares_wanted();
        let wanted = MemoryWanted { pages, lists, slots };
        if !wanted.is_empty() {
            self.preparing = true;
            self.core.workers.submit(Job::Prepare { wanted });
        }
    }

    pub(crate) fn memory_prepared(&mut self, memory: PreparedMemory) {
        self.preparing = false;
        self.core.state.store.take_spares(memory.pages);
        self.core.state.hash.take_spares(memory.lists);
    }

    /// Moves on what nobody waits for with every request.
    pub(crate) fn advance_background(&mut self) -> bool {
        let mut moved = advance_allocation(&mut self.core);
        moved |= self.explaining.advance(&mut self.core);
        moved |= self.walks.advance(&mut self.core);
        moved |= self.enlarging.advance(&mut self.core, self.lending.own_pages());
        if let Some(then) = self.enlarging.resumed.take() {
            self.go_on(then);
        }
        moved |= self.evacuation.advance(&mut self.core);
        let clients_read = self.reads.any();
        let clients_wait = clients_read || !self.reads.extents.is_empty();
        moved |= self.give_back.advance(&mut self.core, clients_wait);
        self.answer_stop();
        moved |= self.collection.advance(&mut self.core, clients_read);
        self.answer_stop();
        let clients_are_idle = self.core.clients_are_idle(clients_read);
        moved |= self.copies.advance(&mut self.core, clients_are_idle);
        self.answer_stop();
        let zone_waits = self.collection.evacuates() || self.evacuation.awaits_quarantine();
        moved |= advance_quarantine(&mut self.core, zone_waits);
        self.answer_stop();
        moved |= self.core.advance_marking();
        self.answer_stop();
        moved |= self.scrub.advance(&mut self.core, clients_read);
        self.answer_stop();
        moved
    }
}
