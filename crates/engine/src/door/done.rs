//! Whom to tell when a request has ended.
//!
//! Each is told once, whatever becomes of the request: who is dropped silently, as when the
//! core panics over what it had in hands, is told of the close. A request's type says what answers
//! it. Sinks are shared, and take answers of all types as a [`Reply`]; who asks for one thing and
//! waits has a [`Pending`] of that type.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};

use crate::door::error::RequestError;
use crate::door::outcome::Reply;

/// Where outcomes go. Called on the core's thread: must not block.
pub trait Completions: Send + Sync {
    /// The request that was given `tag` has ended.
    fn complete(&self, tag: u64, outcome: Result<Reply, RequestError>);

    /// Whether nobody is left to hear of outcomes, so that what waits yet, for room or a quota, is
    /// not to be carried out: it may have been sent again, and more behind it that has ended since.
    /// Asked when a request that had to wait could go on, and of no other.
    fn is_gone(&self) -> bool {
        false
    }
}

/// Whom to tell when one request has ended that is answered with an `A`.
pub struct Done<A> {
    /// None once told.
    whom: Option<Whom<A>>,
    /// What the sink knows the request by.
    pub tag: u64,
}

enum Whom<A> {
    Sink(Arc<dyn Completions>, fn(A) -> Reply),
    Pending(Sender<Result<A, RequestError>>),
}

impl<A: Into<Reply>> Done<A> {
    /// Of the request that `sink` knows by `tag`.
    #[must_use]
    pub fn new(sink: Arc<impl Completions + 'static>, tag: u64) -> Self {
        Self { whom: Some(Whom::Sink(sink, A::into)), tag }
    }
}

impl<A> Done<A> {
    /// Of a request that somebody waits for.
    #[must_use]
    pub fn pending() -> (Self, Pending<A>) {
        let (sender, outcome) = mpsc::channel();
        (Self { whom: Some(Whom::Pending(sender)), tag: 0 }, Pending { outcome })
    }

    pub(crate) fn reply(self, answer: A) {
        self.finish(Ok(answer));
    }

    pub(crate) fn fail(self, error: RequestError) {
        self.finish(Err(error));
    }

    pub(crate) fn is_gone(&self) -> bool {
        matches!(&self.whom, Some(Whom::Sink(sink, _)) if sink.is_gone())
    }

    /// Tells whichever it is.
    pub(crate) fn finish(mut self, outcome: Result<A, RequestError>) {
        self.tell(outcome);
    }

    /// The request ends with the call that began it, which says so itself.
    pub(crate) fn not_needed(mut self) {
        self.whom = None;
    }

    fn tell(&mut self, outcome: Result<A, RequestError>) {
        match self.whom.take() {
            Some(Whom::Sink(sink, reply)) => sink.complete(self.tag, outcome.map(reply)),
            // A caller that has gone does not ask any more.
            Some(Whom::Pending(sender)) => drop(sender.send(outcome)),
            None => {}
        }
    }
}

impl<A> Drop for Done<A> {
    fn drop(&mut self) {
        self.tell(Err(RequestError::Closing));
    }
}

/// The outcome of one request, for the caller that waits for it.
#[derive(Debug)]
pub struct Pending<A> {
    outcome: Receiver<Result<A, RequestError>>,
}

impl<A> Pending<A> {
    /// Waits for it; never on the core's own thread.
    ///
    /// # Errors
    /// The [`RequestError`] of the request.
    pub fn wait(self) -> Result<A, RequestError> {
        self.outcome.recv().unwrap_or(Err(RequestError::Closing))
    }

    /// The outcome, if it has come; given once.
    #[must_use]
    pub fn try_take(&self) -> Option<Result<A, RequestError>> {
        match self.outcome.try_recv() {
            Ok(outcome) => Some(outcome),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(RequestError::Closing)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Done;
    use crate::door::error::RequestError::{Closing, NoSpace};
    use crate::door::outcome::Reply;
    use crate::small_store::Told;

    #[test]
    fn each_is_told_once_and_of_the_close_when_it_is_dropped() {
        let told = Arc::<Told>::default();
        Done::new(Arc::clone(&told), 1).reply(());
        Done::<()>::new(Arc::clone(&told), 2).fail(NoSpace);
        drop(Done::<()>::new(Arc::clone(&told), 3));
        Done::<()>::new(Arc::clone(&told), 4).not_needed();
        let told = told.take();
        assert!(
            matches!(told[..], [(1, Ok(Reply::Done)), (2, Err(NoSpace)), (3, Err(Closing))]),
            "{told:?}"
        );
    }

    #[test]
    fn whoever_waits_gets_the_answer_once_or_hears_of_the_close() {
        let (done, pending) = Done::pending();
        assert!(pending.try_take().is_none());
        done.reply(7);
        assert_eq!(pending.try_take(), Some(Ok(7)));
        let (done, pending) = Done::<u32>::pending();
        drop(done);
        assert_eq!(pending.wait(), Err(Closing));
    }
}
