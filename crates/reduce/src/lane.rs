//! A queue of jobs under a lock, from which the threads of one kind take.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Jobs that wait for a thread, oldest first.
pub(crate) struct Lane<J> {
    queue: Mutex<Queue<J>>,
    job_waits: Condvar,
}

struct Queue<J> {
    jobs: VecDeque<J>,
    closing: bool,
}

impl<J> Default for Lane<J> {
    fn default() -> Self {
        let queue = Queue { jobs: VecDeque::new(), closing: false };
        Self { queue: Mutex::new(queue), job_waits: Condvar::new() }
    }
}

impl<J> Lane<J> {
    /// A job more; one thread that sleeps is woken for it.
    pub(crate) fn push(&self, job: J) {
        self.lock().jobs.push_back(job);
        self.job_waits.notify_one();
    }

    /// The oldest job, as soon as there is one; None when the pool closes.
    pub(crate) fn next(&self) -> Option<J> {
        let queue = self.lock();
        let mut queue = self
            .job_waits
            .wait_while(queue, |queue| queue.jobs.is_empty() && !queue.closing)
            .unwrap_or_else(PoisonError::into_inner);
        if queue.closing { None } else { queue.jobs.pop_front() }
    }

    /// No job is given out from now on.
    pub(crate) fn close(&self) {
        self.lock().closing = true;
        self.job_waits.notify_all();
    }

    /// Every change under this lock is whole before anything can panic, so a poisoned one is sound.
    fn lock(&self) -> MutexGuard<'_, Queue<J>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
