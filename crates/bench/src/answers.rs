//! Waiting for writes that were not acknowledged at once.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use engine::{Completions, Reply, RequestError};

/// Counts answers, and keeps the first error.
#[derive(Default)]
pub(crate) struct Answers {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    outstanding: u64,
    error: Option<RequestError>,
}

impl Answers {
    /// One more answer will come.
    pub(crate) fn expect(&self) {
        self.lock().outstanding += 1;
    }

    /// Waits for all answers.
    pub(crate) fn wait(&self) -> Result<(), RequestError> {
        let mut state = self.lock();
        while state.outstanding > 0 {
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.error.take().map_or(Ok(()), Err)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Completions for Answers {
    fn complete(&self, _tag: u64, outcome: Result<Reply, RequestError>) {
        let mut state = self.lock();
        state.outstanding -= 1;
        if let Err(error) = outcome {
            state.error.get_or_insert(error);
        }
        if state.outstanding == 0 {
            self.arrived.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::{Completions, Reply, RequestError};

    use super::Answers;

    #[test]
    fn the_first_error_is_told_when_all_have_answered() {
        let answers = Answers::default();
        for _ in 0..3 {
            answers.expect();
        }
        answers.complete(0, Ok(Reply::Done));
        answers.complete(1, Err(RequestError::NoSpace));
        answers.complete(2, Err(RequestError::Closing));
        assert!(matches!(answers.wait(), Err(RequestError::NoSpace)));
        assert!(answers.wait().is_ok());
    }
}
