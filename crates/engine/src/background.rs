//! What is beside the way of every request: background work, sleep, and the clock that tells all
//! apart.

use reduce::{Job, MemoryWanted, PreparedMemory};
use tables::SpareSlots;

use crate::devices::lacking_room::RoomChange;
use crate::door::error::RequestError;
use crate::engine::{Engine, TICK_MS};
use crate::notice::Notice;
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
        self.stages = StageClock::by(clock, &self.workers);
        self.workers.keep_time(clock.ticks);
        self.intake.expanding.keep_time(clock);
    }

    /// Moves one stage on; its end is noted if it moved.
    pub(crate) fn timed(&mut self, stage: CoreStage, advance: fn(&mut Self) -> bool) -> bool {
        let moved = advance(self);
        if moved {
            self.stages.lap(stage, &self.workers);
        }
        moved
    }

    /// Waits for work; false when nothing came for a tick. The core does not spin while workers
    /// work, which need the processors, nor while the devices have many operations in flight:
    /// several of them end together then, and no client waits for one alone.
    pub(crate) fn sleep(&mut self) -> bool {
        if self.workers.are_busy() || self.devices.in_flight() > LOOKED_FOR_MAX {
            return self.doorbell.wait(Some(TICK_MS));
        }
        let devices = &mut self.devices;
        self.doorbell.spin_then_wait(&mut self.spin, TICK_MS, || devices.has_ended())
    }

    /// Says once what makes the disk slower than it should be.
    pub(crate) fn tell_degradation(&mut self) {
        if let Some(reason) = self.devices.new_degradation() {
            self.tell(&Notice::DiskDegraded { reason });
        }
    }

    /// Says when a device has no room for what is written, and when it has some again, and what
    /// makes it slow since then. A store that is being closed, or soon will be, does not wait for
    /// ever: who asks for the close may first wait for a write.
    pub(crate) fn watch_devices(&mut self) {
        self.tick_allocation();
        match self.devices.tick() {
            Some(RoomChange::Lacks(error)) => {
                self.tell(&Notice::DeviceFull { reason: error.to_string() });
            }
            Some(RoomChange::Came) => self.tell(&Notice::DeviceHasRoom),
            None => {}
        }
        self.tell_degradation();
        let ends = self.closing_now() || self.intake.is_close_announced();
        let full = self.devices.lacking_room().filter(|_| ends);
        if let Some((ticks, error)) = full
            && ticks >= CLOSE_TICKS_MAX
        {
            let reason = error.to_string();
            self.stop_writing(RequestError::DeviceFull { reason });
        }
    }

    /// What every step ends with; `moved`: it found something to do. True if there is more.
    pub(crate) fn end_step(&mut self, moved: bool) -> bool {
        self.lend_memory();
        self.keep_cache_in_bounds();
        self.prepare_memory();
        self.publish_space();
        if moved {
            return true;
        }
        self.intake.call_waiters();
        self.close_for_writers()
    }

    /// All writers wait until one of them finds more of the write buffer free, and nothing but the
    /// open group will give any back: it is closed now and not with the next tick.
    fn close_for_writers(&mut self) -> bool {
        let closes = self.buffer.has_open()
            && self.buffer.closed_groups() == 0
            && self.intake.credits.are_saved();
        if closes {
            self.buffer.close_open();
        }
        closes
    }

    /// Has memory touched that the tables will grow into, a little at a time.
    fn prepare_memory(&mut self) {
        if self.preparing {
            return;
        }
        let SpareSlots { lists, slots } = self.state.hash.spares_wanted().unwrap_or_default();
        let pages = self.state.store.spares_wanted();
        let wanted = MemoryWanted { pages, lists, slots };
        if !wanted.is_empty() {
            self.preparing = true;
            self.workers.submit(Job::Prepare { wanted });
        }
    }

    pub(crate) fn memory_prepared(&mut self, memory: PreparedMemory) {
        self.preparing = false;
        self.state.store.take_spares(memory.pages);
        self.state.hash.take_spares(memory.lists);
    }

    /// Moves on what nobody waits for with every request.
    pub(crate) fn advance_background(&mut self) -> bool {
        let mut moved = self.advance_allocation();
        moved |= self.advance_explaining();
        moved |= self.advance_walks();
        moved |= self.advance_enlarging();
        moved |= self.advance_retiring();
        moved |= self.advance_deletions();
        moved |= self.advance_collection();
        moved |= self.advance_copies();
        moved |= self.advance_quarantine();
        moved |= self.advance_marking();
        moved |= self.advance_scrub();
        moved
    }
}
