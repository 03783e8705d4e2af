//! What sessions ask of the store as a whole: flushes, steps of a scrub, collection on request.

use engine::{Codec, CollectRequest, CollectStep, Compression, ScrubRequest};

use crate::failure::Broken;
use crate::session::Session;
use crate::session::doubt::Changed;
use crate::session::waiting::Waiting;
use crate::simulation::opening::strange;

impl Session<'_> {
    /// Asks for a flush, which covers all that was written before.
    pub(crate) fn ask_flush(&mut self) {
        let waiting = Waiting::Change(Changed { whole: true, ..Changed::default() });
        let done = self.done(waiting, Some(self.oracle.written()));
        self.opening.client.flush(done);
    }

    /// Asks for the next step of a scrub, and for so many more behind it.
    pub(crate) fn ask_scrub(&mut self, fingerprints: bool, more: u32) {
        let done = self.done(Waiting::Scrub(fingerprints, more), None);
        let request = ScrubRequest { position: self.scrub, fingerprints };
        self.opening.client.administer(request, done);
    }

    pub(crate) fn collect(&mut self, recompress: bool) {
        let done = self.done(Waiting::Collect(recompress), None);
        let position = self.collect[usize::from(recompress)];
        let compression = Compression { codec: Codec::Zstd, level: 1 };
        let recompress = recompress.then_some(compression);
        let request = CollectRequest { position, recompress };
        self.opening.client.administer(request, done);
    }

    /// A step of collection on request: after as many as there are containers it must be over.
    pub(crate) fn take_collect(&mut self, kind: usize, step: &CollectStep) -> Result<(), Broken> {
        self.collect[kind] = step.next;
        self.collected[kind] = if step.next.is_none() { 0 } else { self.collected[kind] + 1 };
        if self.collected[kind] > step.containers {
            return Err(strange("a collection of every container", step));
        }
        Ok(())
    }
}
