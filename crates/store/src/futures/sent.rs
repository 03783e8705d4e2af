//! One request that has been sent, and the task that waits for its answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use engine::{Completions, Done, Reply, RequestError};

/// A request on its way; dropping it leaves the request without a listener.
pub(crate) struct Sent {
    slot: Arc<Slot>,
}

/// Where the engine's thread leaves the answer.
#[derive(Default)]
struct Slot {
    state: Mutex<Waiting>,
    /// Nobody waits any more.
    gone: AtomicBool,
}

#[derive(Default)]
struct Waiting {
    outcome: Option<Result<Reply, RequestError>>,
    task: Option<Waker>,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Completions for Slot {
    fn complete(&self, _tag: u64, outcome: Result<Reply, RequestError>) {
        let mut state = self.lock();
        state.outcome = Some(outcome);
        let task = state.task.take();
        drop(state);
        if let Some(task) = task {
            task.wake();
        }
    }

    fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }
}

impl Sent {
    /// Sends a request by `send`, which gets whom to tell of its end.
    pub(crate) fn by<A: Into<Reply>, T>(send: impl FnOnce(Done<A>) -> T) -> (Self, T) {
        let slot = Arc::<Slot>::default();
        let accepted = send(Done::new(Arc::clone(&slot), 0));
        (Self { slot }, accepted)
    }

    /// The answer, when it is there; the task of `cx` is woken when it comes.
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<Result<Reply, RequestError>> {
        let mut state = self.slot.lock();
        match state.outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                match &mut state.task {
                    Some(task) => task.clone_from(cx.waker()),
                    none => *none = Some(cx.waker().clone()),
                }
                Poll::Pending
            }
        }
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.slot.gone.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::{Context, Waker};

    use engine::{Completions, Done, RequestError};

    use super::Sent;

    #[test]
    fn whoever_drops_it_is_gone_and_an_answer_then_harms_nobody() {
        let mut kept = None;
        let (mut sent, ()) = Sent::by(|done: Done<()>| kept = Some(done));
        assert!(sent.poll(&Context::from_waker(Waker::noop())).is_pending());
        let slot = Arc::clone(&sent.slot);
        assert!(!slot.is_gone());
        drop(sent);
        assert!(slot.is_gone());
        drop(kept);
        assert_eq!(slot.lock().outcome.take().map(Result::unwrap_err), Some(RequestError::Closing));
    }
}
