//! What all threads of the door share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use memcached::{Buffers, Limits};

use crate::host::Host;
use crate::mailbox::{Letter, Mailbox};
use crate::place::Facts;
use crate::pool::{Pool, Worker};
use crate::seats::Seats;
use crate::session::{Clock, Outcome, Session, Turn};

/// What one turn receives at once, in bytes.
pub(crate) const RECEIVED_BYTES: usize = 64 << 10;

/// A connection in the pool, and where it comes back.
pub(crate) struct Job<H: Host> {
    session: Box<Session<H>>,
    home: Arc<Mailbox<H>>,
}

/// What the threads share.
pub(crate) struct Shared<H: Host> {
    pub(crate) host: H,
    pub(crate) facts: Arc<Facts>,
    pub(crate) limits: Limits,
    pub(crate) seats: Arc<Seats>,
    /// When a connection that does nothing with its seat loses it, where seats are scarce.
    pub(crate) stalled_time: Duration,
    pub(crate) pool: Pool<Job<H>>,
    closing: AtomicBool,
    pub(crate) observer: Box<dyn Fn(&str) + Send + Sync>,
}

impl<H: Host> Shared<H> {
    pub(crate) fn new(
        (host, facts, limits): (H, Facts, Limits),
        seats: Arc<Seats>,
        stalled_time: Duration,
        pool: Pool<Job<H>>,
        observer: Box<dyn Fn(&str) + Send + Sync>,
    ) -> Self {
        let (facts, closing) = (Arc::new(facts), AtomicBool::new(false));
        Self { host, facts, limits, seats, stalled_time, pool, closing, observer }
    }

    /// The circumstances of a turn at this time.
    pub(crate) fn turn(&self, clock: Clock, may_wait: bool, is_shared: bool) -> Turn<'_, H> {
        Turn {
            host: &self.host,
            facts: &self.facts,
            clock,
            may_wait,
            is_shared,
            may_receive: !self.is_closing(),
        }
    }

    /// From now on nothing is received.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }
}

/// Has the pool go on with a connection.
pub(crate) fn hand_over<H: Host>(
    shared: &Arc<Shared<H>>,
    session: Box<Session<H>>,
    home: Arc<Mailbox<H>>,
) {
    let party = session.party();
    let begin = || -> Worker<Job<H>> {
        let (shared, mut buffers) = (Arc::clone(shared), Buffers::receiving(RECEIVED_BYTES));
        Box::new(move |job| go_on(&shared, job, &mut buffers))
    };
    if let Err((job, error)) = shared.pool.push(party, Job { session, home }, begin) {
        (shared.observer)(&format!("memcached closes a connection, for want of a thread: {error}"));
        job.home.post(Letter::Back(job.session, Outcome::Close));
    }
}

/// One turn of a connection in the pool.
fn go_on<H: Host>(shared: &Arc<Shared<H>>, job: Job<H>, buffers: &mut Buffers) {
    let Job { mut session, home } = job;
    match session.drive(&shared.turn(Clock::read(), true, false), buffers) {
        Outcome::Pool => hand_over(shared, session, home),
        outcome => home.post(Letter::Back(session, outcome)),
    }
}
