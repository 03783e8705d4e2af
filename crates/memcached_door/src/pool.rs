//! Threads on which something is waited for, and the queues before them.
//!
//! Each queue is one tenant's. A thread that is free takes the next job of the tenant for whom the
//! fewest run, and of several such of the one that was served longest ago ([`Shares`]). So a tenant
//! alone has all threads, and no tenant has more than its share for longer than one job.
//!
//! ```text
//! push ──> queue of the tenant ──a thread is free──> running ──> done
//! ```
//!
//! Invariant: a tenant holds a share for each thread that runs a job of its.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use tenants::{PartyId, Shares};

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
    /// Of the threads, and the jobs that wait for one.
    shares: Shares<J>,
    idle: usize,
    threads: Vec<JoinHandle<()>>,
    is_ending: bool,
}

/// A job that runs; dropped, also by a panic of it, another of its tenant may.
struct Running<'a, J> {
    shared: &'a Shared<J>,
    party: PartyId,
}

impl<J> Drop for Running<'_, J> {
    fn drop(&mut self) {
        self.shared.lock().shares.give_back(self.party, 1);
    }
}

impl<J> Clone for Pool<J> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<J: Send + 'static> Pool<J> {
    /// Without a thread yet; there will be at most `threads_max`.
    ///
    /// # Panics
    /// When that is none.
    pub(crate) fn new(threads_max: usize) -> Self {
        let shares = Shares::new(threads_max as u64, 0);
        let state = State { shares, idle: 0, threads: Vec::new(), is_ending: false };
        let shared = Shared { state: Mutex::new(state), wake: Condvar::new(), threads_max };
        Self { shared: Arc::new(shared) }
    }

    /// Has the job done when the turn of its party comes. A thread that is begun for it works with
    /// what `begin` makes. Gives the job back where there is no thread, and the machine gives none.
    pub(crate) fn push(
        &self,
        party: PartyId,
        job: J,
        begin: impl FnOnce() -> Worker<J>,
    ) -> Result<(), (J, io::Error)> {
        let mut state = self.shared.lock();
        state.threads.retain(|thread| !thread.is_finished());
        if state.idle <= state.shares.waiting() && state.threads.len() < self.shared.threads_max {
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
        state.shares.wait(party, 1, job);
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
            if let Some((party, _, job)) = state.shares.take_next() {
                drop(state);
                let running = Running { shared: self, party };
                worker(job);
                drop(running);
                state = self.lock();
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
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};

    use tenants::{PartyId, Shares};

    use super::{Pool, Worker};

    const THREADS: u64 = 40;

    fn push(shares: &mut Shares<u64>, party: u64, job: u64) {
        shares.wait(PartyId::new(party), 1, job);
    }

    fn done(shares: &mut Shares<u64>, party: u64) {
        shares.give_back(PartyId::new(party), 1);
    }

    #[test]
    fn the_tenant_for_whom_the_fewest_jobs_run_is_next() {
        let shares = &mut Shares::new(THREADS, 0);
        (0..4).for_each(|job| push(shares, 1, job));
        let one = Some(PartyId::new(1));
        let two = Some(PartyId::new(2));
        let taken = |shares: &mut Shares<u64>| shares.take_next().map(|(party, ..)| party);
        assert_eq!([taken(shares), taken(shares)], [one, one]);
        (0..3).for_each(|job| push(shares, 2, job));
        assert_eq!([taken(shares), taken(shares)], [two, two]);
        assert_eq!([taken(shares), taken(shares)], [one, two]);
        (0..3).for_each(|_| done(shares, 1));
        assert_eq!([taken(shares), taken(shares)], [one, None]);
        (0..3).for_each(|_| done(shares, 2));
        done(shares, 1);
        assert!(shares.free() == THREADS && shares.waiting() == 0);
    }

    #[test]
    fn tenants_take_turns() {
        let shares = &mut Shares::new(THREADS, 0);
        for job in 0..10 {
            (0..3).for_each(|party| push(shares, party, job));
        }
        let mut order = Vec::new();
        while let Some((party, _, job)) = shares.take_next() {
            order.push((job, party));
            shares.give_back(party, 1);
        }
        let parties = |job| (0..3).map(move |party| (job, PartyId::new(party)));
        let expected: Vec<_> = (0..10).flat_map(parties).collect();
        assert_eq!(order, expected);
    }

    #[test]
    fn a_job_that_panics_leaves_its_share() {
        let pool = Pool::new(2);
        let seen = Arc::new(AtomicU64::new(0));
        let begin = || -> Worker<u64> {
            let seen = Arc::clone(&seen);
            Box::new(move |job| {
                seen.fetch_add(1, Ordering::Relaxed);
                assert!(job % 2 == 0, "a job that is to panic");
            })
        };
        (0..20).for_each(|job| assert!(pool.push(PartyId::NOBODY, job, begin).is_ok()));
        while seen.load(Ordering::Relaxed) < 20 {
            // Each thread that has ended is replaced by the next push.
            assert!(pool.push(PartyId::NOBODY, 0, begin).is_ok());
            std::thread::yield_now();
        }
        pool.end();
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
        (1..=100).for_each(|job| assert!(pool.push(PartyId::new(job % 7), job, begin).is_ok()));
        pool.end();
        assert_eq!((sum.load(Ordering::Relaxed), *seen.lock().unwrap()), (5050, 100));
    }
}
