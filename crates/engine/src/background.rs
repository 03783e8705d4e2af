//! What is beside the way of every request, and the clock that tells both apart.

use crate::engine::Engine;
use crate::stages::{Clock, CoreStage, StageClock};

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

    /// Moves on what nobody waits for with every request.
    pub(crate) fn advance_background(&mut self) -> bool {
        let mut moved = self.advance_explaining();
        moved |= self.advance_walks();
        moved |= self.advance_enlarging();
        moved |= self.advance_deletions();
        moved |= self.advance_collection();
        moved |= self.advance_copies();
        moved |= self.advance_quarantine();
        moved |= self.advance_scrub();
        moved
    }
}
