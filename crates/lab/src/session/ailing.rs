//! A session on a disk that something is wrong with, or will be.

use crate::failure::Broken;
use crate::range::Range;
use crate::session::Session;
use crate::simulation::trouble::{Asked, Trouble};
use crate::workload::SECTORS;

/// Ticks after which what waited for a page that could not be read has asked for it again.
const PASSED_TICKS: u64 = 4;

impl Session<'_> {
    /// That a chunk was read.
    pub(crate) fn read_of(volume: u32, lba: u64) -> Asked {
        Asked::Read(Range { volume, first: lba * SECTORS, count: SECTORS })
    }

    /// Effects of which a durable record says that they are durable: the record of the newest one
    /// was made when these had been answered.
    pub(crate) fn proven(&self) -> usize {
        let flushed = self.flushed();
        let known = self.flushes.iter().rev().find(|(written, _)| *written < flushed);
        known.map_or(0, |(_, known)| *known)
    }

    /// A page that failed is asked for again after a tick, if none was on its way then.
    pub(crate) fn note_passing(&mut self) {
        if self.over_from.is_some() || !self.opening.ear.heard().mischief.has_passed {
            return;
        }
        let since = *self.passed_ticks.get_or_insert(self.opening.ticks);
        if self.opening.ticks > since + PASSED_TICKS {
            self.over_from = Some(self.opening.tag());
        }
    }

    pub(crate) fn begin_trouble(&mut self, kind: Trouble, number: u64) -> Result<(), Broken> {
        self.wait_for_all()?;
        self.look_aside()?;
        let mut heard = self.opening.ear.heard();
        heard.mischief.begin(kind, number);
        self.slowed |= kind.delays();
        if !kind.delays() {
            // What a crash would leave now is judged by what it finds when the disk is mended.
            heard.stop();
            self.trouble = Some(kind);
            self.oracle.has_asides |= self.shape.detection.verify && kind.fails_reads();
        }
        Ok(())
    }
}
