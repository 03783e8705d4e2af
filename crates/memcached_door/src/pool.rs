//! Threads on which something is waited for, and the queues before them.
//!
//! Each queue is one tenant's. A thread that is free takes the next job of the tenant for whom the
//! fewest run, and of several such of the one that has waited longest for its turn. So a tenant
//! alone has all threads, and no tenant has more than its share for longer than one job.
//!
//! ```text
//! push ──> queue of the tenant ──a thread is free──> running ──> done
//! ```
//!
//! Invariants: a queue is in the list of turns exactly while it has jobs; the count of running jobs
//! is that of threads which have taken one and are not done.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// What a thread needs of stack.
const STACK_BYTES: usize = 512 << 10;

/// Does jobs, on one thread.
pub(crate) type Worker<J> = Box<dyn FnMut(J) + Send>;

/// Jobs that wait, and the threads that take them; a clone is the same.
pub(crate) struct Pool<J> {
    shared: Arc<Shared<J>>,
}

struct Shared<J> {
    state: Mutex<State<J>>,
    /// There is a job, or the end.
    wake: Condvar,
    threads_max: usize,
}

struct State<J> {
    queues: HashMap<u64, Queue<J>>,
    /// Queues with jobs, in the order of their turns.
    turns: VecDeque<u64>,
    /// Jobs in all queues.
    waiting: usize,
    idle: usize,
    threads: Vec<JoinHandle<()>>,
    is_ending: bool,
}

struct Queue<J> {
    jobs: VecDeque<J>,
    running: usize,
}

impl<J> Clone for Pool<J> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<J> State<J> {
    fn push(&mut self, queue: u64, job: J) {
        let jobs = self.queues.entry(queue).or_insert(Queue { jobs: VecDeque::new(), running: 0 });
        if jobs.jobs.is_empty() {
            self.turns.push_back(queue);
        }
        jobs.jobs.push_back(job);
        self.waiting += 1;
    }

    /// The next job, and whose it is.
    fn take(&mut self) -> Option<(u64, J)> {
        let running = |queue: &u64| self.queues.get(queue).map_or(0, |queue| queue.running);
        let turn = (0..self.turns.len()).min_by_key(|turn| running(&self.turns[*turn]))?;
        let number = self.turns.remove(turn)?;
        let queue = self.queues.get_mut(&number)?;
        let job = queue.jobs.pop_front();
        assert!(job.is_some(), "a queue in the list of turns has jobs");
        queue.running += 1;
        self.waiting -= 1;
        if !queue.jobs.is_empty() {
            self.turns.push_back(number);
        }
        job.map(|job| (number, job))
    }

    fn done(&mut self, number: u64) {
        let Some(queue) = self.queues.get_mut(&number) else {
            unreachable!("a queue stays while its jobs run");
        };
        queue.running -= 1;
        if queue.running == 0 && queue.jobs.is_empty() {
            self.queues.remove(&number);
        }
    }
}

impl<J: Send + 'static> Pool<J> {
    /// Without a thread yet; there will be at most `threads_max`.
    pub(crate) fn new(threads_max: usize) -> Self {
        let state = State {
            queues: HashMap::new(),
            turns: VecDeque::new(),
            waiting: 0,
            idle: 0,
            threads: Vec::new(),
            is_ending: false,
        };
        let shared = Shared { state: Mutex::new(state), wake: Condvar::new(), threads_max };
        Self { shared: Arc::new(shared) }
    }

    /// Has the job done when the turn of its queue comes. A thread that is begun for it works with
    /// what `begin` makes. Gives the job back where there is no thread, and the machine gives none.
    pub(crate) fn push(
        &self,
        queue: u64,
        job: J,
        begin: impl FnOnce() -> Worker<J>,
    ) -> Result<(), (J, io::Error)> {
        let mut state = self.shared.lock();
        state.threads.retain(|thread| !thread.is_finished());
        if state.idle <= state.waiting && state.threads.len() < self.shared.threads_max {
            let (shared, worker) = (Arc::clone(&self.shared), begin());
            let begun = thread::Builder::new()
                .name("memcached-wait".to_owned())
                .stack_size(STACK_BYTES)
                .spawn(move || shared.run(worker));
            match begun {
                Ok(thread) => state.threads.push(thread),
                Err(error) if state.threads.is_empty() => return Err((job, error)),
                Err(_) => {}
            }
        }
        state.push(queue, job);
        drop(state);
        self.shared.wake.notify_one();
        Ok(())
    }

    /// Ends the threads when they have done all jobs.
    pub(crate) fn end(&self) {
        let threads = {
            let mut state = self.shared.lock();
            state.is_ending = true;
            std::mem::take(&mut state.threads)
        };
        self.shared.wake.notify_all();
        for thread in threads {
            // A panic of one has been printed, and concerns its connection.
            let _ = thread.join();
        }
    }
}

impl<J> Shared<J> {
    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, mut worker: Worker<J>) {
        let mut state = self.lock();
        loop {
            if let Some((queue, job)) = state.take() {
                drop(state);
                worker(job);
                state = self.lock();
                state.done(queue);
            } else if state.is_ending {
                return;
            } else {
                state.idle += 1;
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, VecDeque};
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};

    use super::{Pool, State, Worker};

    fn state() -> State<u64> {
        State {
            queues: HashMap::new(),
            turns: VecDeque::new(),
            waiting: 0,
            idle: 0,
            threads: Vec::new(),
            is_ending: false,
        }
    }

    #[test]
    fn the_tenant_for_whom_the_fewest_jobs_run_is_next() {
        let mut state = state();
        (0..4).for_each(|job| state.push(1, job));
        let taken = |state: &mut State<u64>| state.take().map(|(queue, _)| queue);
        assert_eq!([taken(&mut state), taken(&mut state)], [Some(1), Some(1)]);
        (0..3).for_each(|job| state.push(2, job));
        assert_eq!([taken(&mut state), taken(&mut state)], [Some(2), Some(2)]);
        assert_eq!([taken(&mut state), taken(&mut state)], [Some(1), Some(2)]);
        (0..3).for_each(|_| state.done(1));
        assert_eq!([taken(&mut state), taken(&mut state)], [Some(1), None]);
        (0..3).for_each(|_| state.done(2));
        state.done(1);
        assert!(state.queues.is_empty() && state.turns.is_empty());
    }

    #[test]
    fn tenants_take_turns() {
        let mut state = state();
        for job in 0..10 {
            (0..3).for_each(|queue| state.push(queue, job));
        }
        let mut order = Vec::new();
        while let Some((queue, job)) = state.take() {
            order.push((job, queue));
            state.done(queue);
        }
        let expected: Vec<_> = (0..10).flat_map(|job| (0..3).map(move |q| (job, q))).collect();
        assert_eq!(order, expected);
    }

    #[test]
    fn all_jobs_are_done_before_the_end() {
        let pool = Pool::new(3);
        let (sum, seen) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(0)));
        let (adding, seeing) = (Arc::clone(&sum), Arc::clone(&seen));
        let begin = || -> Worker<u64> {
            let (adding, seeing) = (Arc::clone(&adding), Arc::clone(&seeing));
            Box::new(move |job| {
                adding.fetch_add(job, Ordering::Relaxed);
                *seeing.lock().unwrap() += 1;
            })
        };
        (1..=100).for_each(|job| assert!(pool.push(job % 7, job, begin).is_ok()));
        pool.end();
        assert_eq!((sum.load(Ordering::Relaxed), *seen.lock().unwrap()), (5050, 100));
    }
}
