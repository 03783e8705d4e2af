//! Answers to the requests under way, gathered by the core's thread for the one that replays.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use engine::{Completions, Reply, RequestError};

/// An answer with its request's number.
pub(in crate::commands) type Answer = (u64, Result<Reply, RequestError>);

/// Answers that nobody has taken yet, and how many are to come.
#[derive(Default)]
pub(super) struct Answers {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    to_come: usize,
    here: Vec<Answer>,
}

impl Answers {
    /// One more is to come.
    pub(super) fn expect(&self) {
        self.lock().to_come += 1;
    }

    /// The one that was expected last is known already.
    pub(super) fn known(&self) {
        self.lock().to_come -= 1;
    }

    /// Takes what is here. While more than `to_come_max` are to come and nothing is here, it waits.
    pub(super) fn take(&self, to_come_max: usize) -> Vec<Answer> {
        let mut state = self.lock();
        while state.here.is_empty() && state.to_come > to_come_max {
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::take(&mut state.here)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Completions for Answers {
    fn complete(&self, tag: u64, outcome: Result<Reply, RequestError>) {
        let mut state = self.lock();
        state.to_come -= 1;
        state.here.push((tag, outcome));
        self.arrived.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use engine::{Completions, Reply, RequestError};

    use super::Answers;

    #[test]
    fn every_answer_is_taken_once_and_none_is_waited_for_in_vain() {
        let answers = Answers::default();
        (0..3).for_each(|_| answers.expect());
        assert!(answers.take(3).is_empty());
        answers.complete(7, Ok(Reply::Done));
        answers.complete(8, Err(RequestError::Closing));
        answers.known();
        let tags: Vec<u64> = answers.take(0).into_iter().map(|(tag, _)| tag).collect();
        assert_eq!(tags, [7, 8]);
        assert!(answers.take(0).is_empty());
    }
}
