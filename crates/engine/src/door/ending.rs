//! Whom to tell when no more is done: nobody waits for what never comes.

use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::engine::{Closing, Engine};
use crate::part::Part;
use crate::write::buffer::Work;

impl Engine {
    /// Every write, flush and change that is under way is answered with `error`.
    pub(crate) fn fail_writing(&mut self, error: &RequestError) {
        std::mem::take(&mut self.core.waiting).into_iter().for_each(|waiting| waiting.fail(error));
        self.admission.fail_writes(&mut self.core, error);
        self.flushing.round = None;
        self.core.log.syncing = None;
        self.core.flushes.fail(error);
        self.collection.fail(error);
        self.core.volumes.rolling_back.clear();
        let copies =
            self.core.buffer.groups.iter().any(|group| matches!(group.work, Work::Copy(_)));
        self.core.buffer.groups.iter_mut().for_each(|group| group.fail(error));
        if copies {
            // Reads waited for what is not copied any more.
            self.reads.retry_parked();
        }
    }
}

impl Engine {
    /// Why the engine ends without having written everything out, if so.
    pub(crate) fn failure(&self) -> Option<RequestError> {
        self.core.stopped.clone().filter(|error| *error != RequestError::StoreReadOnly)
    }

    pub(crate) fn begin_close(&mut self, done: Done<()>) {
        self.core.intake.refuse(RequestError::Closing);
        // What slipped in just before is part of what is drained.
        self.core.intake.take(&mut self.requests);
        self.core.buffer.close_open();
        match &mut self.closing {
            Closing::Draining(waiters) => waiters.push(done),
            Closing::Closed => done.reply(()),
            Closing::No => {
                self.core.is_closing = true;
                self.closing = Closing::Draining(vec![done]);
            }
        }
    }

    /// Asks for the last, clean checkpoint; true once it is durable.
    fn close_tables(&mut self) -> bool {
        self.core.table_room.last_is_asked = true;
        self.checkpoints.clean
    }

    /// Drains, checkpoints and ends, once a close was asked for.
    pub(crate) fn advance_closing(&mut self) -> bool {
        if !matches!(self.closing, Closing::Draining(_)) {
            return false;
        }
        let drained = self.core.buffer.groups.is_empty()
            && self.core.waiting.is_empty()
            && self.requests.is_empty()
            && !self.reads.any()
            && self.parts().iter().all(|part| part.is_idle(&self.core));
        let ready = self.core.stopped.is_some() || (drained && self.close_tables());
        // Not even a read that nobody wants any more may reach the next that opens the disk.
        if !ready || self.core.devices.in_flight() > 0 {
            return false;
        }
        if let Closing::Draining(waiters) = std::mem::replace(&mut self.closing, Closing::Closed) {
            for done in waiters {
                done.finish(self.failure().map_or(Ok(()), Err));
            }
        }
        true
    }
    /// Answers all who wait if the writing has stopped since this was last done.
    pub(crate) fn answer_stop(&mut self) {
        if self.core.stop_is_answered {
            return;
        }
        let Some(error) = self.core.stopped.clone() else { return };
        self.core.stop_is_answered = true;
        self.fail_writing(&error);
        if self.core.is_fenced() {
            self.end_fenced(&error);
        }
    }

    /// Another owner has the store: all are told so, whatever they asked for, and the engine ends.
    pub(crate) fn end_fenced(&mut self, error: &RequestError) {
        self.core.intake.fence(error.clone());
        self.answer_all(error);
    }

    /// Answers all that was asked with `error`; the store is closed then.
    fn answer_all(&mut self, error: &RequestError) {
        self.fail_writing(error);
        self.reads.fail(error);
        self.parts_mut().into_iter().for_each(|part| part.fail(error));
        self.core.superblock.fail_wishes(error);
        self.core.intake.take(&mut self.requests);
        self.requests.drain(..).for_each(|request| request.fail(error.clone()));
        self.core.is_closing = true;
        if let Closing::Draining(waiters) = std::mem::replace(&mut self.closing, Closing::Closed) {
            waiters.into_iter().for_each(|done| done.fail(error.clone()));
        }
    }
}

impl Drop for Engine {
    /// A caller that asks after the end, or asked before and was not answered, is told: after a
    /// clean end those who asked at the last moment, after a panic of this thread all that there
    /// are. Who asked for what it panicked over has been told by then ([`crate::door::done`]).
    fn drop(&mut self) {
        let error = RequestError::Closing;
        self.core.intake.refuse(error.clone());
        self.answer_all(&error);
    }
}
