//! The short-term scheduler: which submission the device gets next.
//!
//! CIDR's rule is not in the texts; the talk says that it takes load off units that have too much
//! to do while others have too little. Ours: submissions of older groups go first, since all
//! groups behind wait for them. But where one kind of units has more to do than the other, for its
//! number, the oldest submission that does without the busier kind goes before; no submission is
//! passed by more than [`PASSED_MAX`] in a row.

use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::device::{Backlog, Capacity, Demand, Submission};

/// Submissions that may go before the oldest one.
const PASSED_MAX: usize = 8;

/// Submissions for which the device has had no room yet, by their tags.
#[derive(Default)]
pub struct Scheduler {
    waiting: VecDeque<Submission>,
    /// How many in a row went before the oldest.
    passed: usize,
}

impl Scheduler {
    /// Submissions that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// A submission waits from now on.
    pub fn wait(&mut self, submission: Submission) {
        let at = self.waiting.partition_point(|other| other.tag() <= submission.tag());
        self.waiting.insert(at, submission);
    }

    /// The next for a device that has this to do; None if it has no room, or nothing waits.
    pub fn choose(&mut self, capacity: &Capacity, backlog: &Backlog) -> Option<Submission> {
        if backlog.held >= capacity.queue {
            return None;
        }
        let fits = |demand: Demand| match busier(capacity, backlog) {
            Ordering::Greater => !demand.hash,
            Ordering::Less => !demand.compress,
            Ordering::Equal => true,
        };
        let at = match self.passed < PASSED_MAX {
            true => self.waiting.iter().position(|submission| fits(submission.demand())),
            false => None,
        };
        let at = at.unwrap_or(0);
        self.passed = if at == 0 { 0 } else { self.passed + 1 };
        self.waiting.remove(at)
    }
}

/// Greater: units that hash have more to do for their number than those that compress.
fn busier(capacity: &Capacity, backlog: &Backlog) -> Ordering {
    (backlog.hash * capacity.compress_units).cmp(&(backlog.compress * capacity.hash_units))
}
