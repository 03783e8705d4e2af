//! Answers to the requests of one thread, which the engine's thread brings: for a caller that has
//! many requests under way and no executor.
//!
//! ```text
//! expect ──send──> the engine ──complete──> here ──take, wait──> the caller
//!    └─────known: answered by the call that sent it
//! ```
//!
//! Invariant: [`Answers::expect`] comes before the request is sent, so no more answers come than
//! were expected.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use engine::{Completions, Reply, RequestError};

/// An answer, with the tag of its request.
pub type Answer = (u64, Result<Reply, RequestError>);

/// Where the answers to the requests under way come together.
///
/// ```
/// # use std::sync::Arc;
/// # use store::{Answers, CreateOptions, Options, Store};
/// use engine::{Accepted, Done};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let disk = store::create_in_memory(&CreateOptions::new(64 << 20), 1)?;
/// # let store = Store::open_in_memory(&disk, Options::default())?;
/// # let volume = store.create_volume("v", 1 << 20)?;
/// let answers = Arc::new(Answers::counted());
/// for number in 0..4_u64 {
///     let mut buf = store.client().buffer(number * 512, 512);
///     buf.bytes_mut().fill(7);
///     answers.expect();
///     let done = Done::new(Arc::clone(&answers), number);
///     if store.client().write(volume.handle(), number * 512, buf, false, done) == Accepted::Now {
///         answers.known();
///     }
/// }
/// answers.wait()?;
/// # Ok(store.close()?)
/// # }
/// ```
pub struct Answers {
    /// Whether answers are kept until they are taken.
    keeps: bool,
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    to_come: usize,
    here: Vec<Answer>,
    first_error: Option<RequestError>,
}

impl Answers {
    /// Each answer is kept for [`Answers::take`].
    #[must_use]
    pub fn kept() -> Self {
        Self { keeps: true, state: Mutex::default(), arrived: Condvar::new() }
    }

    /// Answers are counted for [`Answers::wait`], and only the first error is kept.
    #[must_use]
    pub fn counted() -> Self {
        Self { keeps: false, ..Self::kept() }
    }

    /// One more answer is to come.
    pub fn expect(&self) {
        self.lock().to_come += 1;
    }

    /// The answer that was expected last is known already and does not come.
    pub fn known(&self) {
        let mut state = self.lock();
        state.one_less();
        if state.to_come == 0 {
            self.arrived.notify_all();
        }
    }

    /// Takes what is kept. While more than `to_come_max` answers are to come and none is here, it
    /// waits.
    #[must_use]
    pub fn take(&self, to_come_max: usize) -> Vec<Answer> {
        let mut state = self.lock();
        while state.here.is_empty() && state.to_come > to_come_max {
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::take(&mut state.here)
    }

    /// Waits until none is to come.
    ///
    /// # Errors
    /// The first [`RequestError`] that came since this was last called.
    pub fn wait(&self) -> Result<(), RequestError> {
        let mut state = self.lock();
        while state.to_come > 0 {
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.first_error.take().map_or(Ok(()), Err)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn one_less(&mut self) {
        assert!(self.to_come > 0, "every answer has been expected");
        self.to_come -= 1;
    }
}

impl Completions for Answers {
    fn complete(&self, tag: u64, outcome: Result<Reply, RequestError>) {
        let mut state = self.lock();
        state.one_less();
        if let Err(error) = &outcome {
            state.first_error.get_or_insert_with(|| error.clone());
        }
        if self.keeps {
            state.here.push((tag, outcome));
        }
        if self.keeps || state.to_come == 0 {
            self.arrived.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::{Completions, Reply, RequestError};

    use super::Answers;

    #[test]
    fn every_answer_is_taken_once_and_none_is_waited_for_in_vain() {
        let answers = Answers::kept();
        (0..3).for_each(|_| answers.expect());
        assert!(answers.take(3).is_empty());
        answers.complete(7, Ok(Reply::Done));
        answers.complete(8, Err(RequestError::Closing));
        answers.known();
        let taken = answers.take(0);
        assert!(matches!(taken[..], [(7, Ok(_)), (8, Err(RequestError::Closing))]), "{taken:?}");
        assert!(answers.take(0).is_empty());
    }

    #[test]
    fn a_wait_ends_with_the_first_error_and_forgets_it() {
        let answers = Answers::counted();
        (0..3).for_each(|_| answers.expect());
        answers.complete(0, Ok(Reply::Done));
        answers.complete(1, Err(RequestError::NoSpace));
        answers.complete(2, Err(RequestError::Closing));
        assert_eq!(answers.wait(), Err(RequestError::NoSpace));
        assert_eq!(answers.wait(), Ok(()));
        assert!(answers.take(0).is_empty());
    }
}
