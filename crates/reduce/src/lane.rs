//! A queue of jobs under a lock, from which the threads of one kind take.
//!
//! Jobs that are there at the same time come in together, and threads are woken once for all of
//! them. A thread that is woken often takes the processor from the one that woke it, and gives it
//! back when the queue is empty: a submitter who hands in one job after the other, waking a thread
//! for each, gets on as slowly as if it ran them itself. Nobody is woken while all work: to ask
//! the kernel for that is a system call, and a thread that has ended its job looks by itself.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Jobs that wait for a thread.
pub(crate) struct Lane<J> {
    queue: Mutex<Queue<J>>,
    job_waits: Condvar,
}

struct Queue<J> {
    jobs: VecDeque<J>,
    /// Threads that wait for a job, or have been woken for one and have not come to it.
    asleep: usize,
    closing: bool,
}

impl<J> Default for Lane<J> {
    fn default() -> Self {
        let queue = Queue { jobs: VecDeque::new(), asleep: 0, closing: false };
        Self { queue: Mutex::new(queue), job_waits: Condvar::new() }
    }
}

impl<J> Lane<J> {
    /// Jobs more; as many threads that sleep are woken for them.
    pub(crate) fn push(&self, jobs: impl IntoIterator<Item = J>) {
        let mut queue = self.lock();
        let before = queue.jobs.len();
        queue.jobs.extend(jobs);
        let (new, asleep) = (queue.jobs.len() - before, queue.asleep);
        drop(queue);
        self.wake(new, asleep);
    }

    /// A job before all others.
    pub(crate) fn push_first(&self, job: J) {
        let mut queue = self.lock();
        queue.jobs.push_front(job);
        let asleep = queue.asleep;
        drop(queue);
        self.wake(1, asleep);
    }

    fn wake(&self, new: usize, asleep: usize) {
        if new < asleep {
            (0..new).for_each(|_| self.job_waits.notify_one());
        } else if asleep > 0 {
            self.job_waits.notify_all();
        }
    }

    /// The next job, as soon as there is one: the oldest, if none was pushed before it. None when
    /// the pool closes.
    pub(crate) fn next(&self) -> Option<J> {
        let mut queue = self.lock();
        while queue.jobs.is_empty() && !queue.closing {
            queue.asleep += 1;
            queue = self.job_waits.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.asleep -= 1;
        }
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

#[cfg(test)]
mod tests {
    use std::iter::repeat_n;
    use std::sync::{Arc, Barrier};
    use std::thread;

    use super::Lane;

    const THREADS: usize = 3;

    #[test]
    fn a_job_that_is_pushed_first_is_next() {
        let lane = Lane::default();
        lane.push([1, 2]);
        lane.push_first(3);
        lane.push([4]);
        assert_eq!([(); 4].map(|()| lane.next()), [3, 1, 2, 4].map(Some));
    }

    /// Each job ends when all that came with it have begun: whether threads sleep or not, as many
    /// of them run as there are jobs, or this test never ends.
    #[test]
    fn jobs_that_come_together_run_side_by_side() {
        let lane = Lane::<Arc<Barrier>>::default();
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| while lane.next().map(|job| job.wait()).is_some() {});
            }
            for round in 0..600 {
                let count = 1 + round % THREADS;
                while round % 7 == 0 && lane.lock().asleep < THREADS {
                    thread::yield_now();
                }
                let together = Arc::new(Barrier::new(count + 1));
                lane.push(repeat_n(Arc::clone(&together), count));
                together.wait();
            }
            lane.close();
        });
    }
}
