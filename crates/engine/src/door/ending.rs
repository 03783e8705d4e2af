//! Whom to tell when no more is done: nobody waits for what never comes.

use crate::door::error::RequestError;
use crate::engine::{Closing, Engine};
use crate::pages::wanted::Wanted;
use crate::part::Part;
use crate::write::buffer::Work;

impl Engine {
    /// Every write, flush and change that is under way is answered with `error`.
    pub(crate) fn fail_writing(&mut self, error: &RequestError) {
        std::mem::take(&mut self.core.waiting).into_iter().for_each(|waiting| waiting.fail(error));
        for mut write in std::mem::take(&mut self.core.quota_line.writes) {
            write.fail(error);
        }
        self.core.quota_line.let_go();
        self.core.hold_pages(Wanted::default(), |held| &mut held.quota);
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
