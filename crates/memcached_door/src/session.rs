//! One client: its socket, its protocol, and what answers it.
//!
//! [`Session::drive`] goes on until there is something to wait for, and says what. It is the same
//! on an event thread, which waits for nothing, and in the pool, where one batch may wait for a
//! disk.

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use memcached::{Authentication, Authenticator, Buffers, Connection, Limits, Next};
use tenants::PartyId;

use crate::host::{Guest, Host, Meter};
use crate::place::{Counted, Facts, Presence};
use crate::seats::Seat;
use crate::socket::Socket;

/// What one turn of a connection may send or receive, about; then others have theirs.
const TURN_BYTES: usize = 1 << 20;
/// The same where connections of several parties take turns: a tenth of a millisecond.
const SHARED_TURN_BYTES: usize = 128 << 10;
/// Where they do, more changes than this are made in the pool and not in the turn: a client that
/// waits for each answer is spared the hop, and one that sends many at once keeps no thread busy on
/// which others are answered.
const SHARED_TURN_CHANGES_MAX: usize = 1;
/// How often something may be waited for in one job of the pool: a batch, or a part of a value.
const WAITS_A_JOB: u32 = 4;

/// What is waited for next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// More from the client.
    Read,
    /// The client, which does not read.
    Write,
    /// A disk, or the turn of its tenant: the pool goes on with it.
    Pool,
    /// The time until which it is not read, since its tenant is over its rate.
    Pause(Instant),
    /// Nothing but the turns of others.
    Turn,
    /// Its end.
    Close,
}

/// The time, read once for several turns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    pub(crate) now: Instant,
    /// Seconds since 1970.
    pub(crate) unix_s: u64,
}

impl Clock {
    pub(crate) fn read() -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { now: Instant::now(), unix_s: unix.as_secs() }
    }
}

/// The circumstances of a turn.
pub(crate) struct Turn<'a, H> {
    pub(crate) host: &'a H,
    pub(crate) facts: &'a Arc<Facts>,
    pub(crate) clock: Clock,
    /// Whether this thread may wait for a disk.
    pub(crate) may_wait: bool,
    /// Whether connections of several parties take turns on this thread.
    pub(crate) is_shared: bool,
    /// Whether more is to be received.
    pub(crate) may_receive: bool,
}

/// A connection and its client.
pub(crate) struct Session<H: Host> {
    socket: Socket,
    connection: Connection<Counted<H::Cache>>,
    client: Client<H::Cache>,
    pub(crate) seat: Seat,
    /// The event thread that it belongs to.
    thread: usize,
    /// The party for which its event thread counts it; nobody: it is not counted.
    pub(crate) counted_for: PartyId,
    /// For what its epoll waits; none: it is not in there.
    pub(crate) armed: Option<Interest>,
    /// When it has received or sent something last, in seconds since the start of the server.
    pub(crate) moved_s: u32,
    /// When the turn began that brought what is being worked on.
    begun: Instant,
}

/// Who a client is.
enum Client<C: memcached::Cache> {
    /// It has not said so yet. What has come since it was last looked at waits for a thread that
    /// may open buckets.
    Unknown { has_come: bool },
    /// It was let in.
    Known(Box<Known<C>>),
}

struct Known<C> {
    cache: Counted<C>,
    name: Option<Arc<str>>,
    meter: Option<Arc<dyn Meter>>,
    party: PartyId,
}

/// What an epoll is to tell of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    Input,
    Room,
    /// Its end alone.
    End,
}

/// What became of sending.
enum Sent {
    All,
    /// The client does not read.
    Blocked,
    /// The rest has to be read from a disk.
    Waits,
    Gone,
}

/// Asks the host, on a thread that may wait.
struct Asking<'a, H: Host>(&'a H);

impl<H: Host> Authenticator for Asking<'_, H> {
    type Identity = Guest<H::Cache>;

    fn check(&mut self, user: &[u8], password: &[u8]) -> Option<Guest<H::Cache>> {
        self.0.by_name(user, password)
    }
}

impl<H: Host> Session<H> {
    /// A client that has just connected, of the event thread with this number.
    pub(crate) fn new(
        (socket, seat): (Socket, Seat),
        limits: Limits,
        host: &H,
        facts: &Arc<Facts>,
        thread: usize,
    ) -> Self {
        let client = match host.without_name() {
            None => Client::Unknown { has_come: false },
            Some(guest) => Client::Known(Known::new(guest, facts, thread)),
        };
        let connection = Connection::new(limits);
        let begun = Instant::now();
        let moved_s = facts.age_s(begun);
        let counted_for = PartyId::NOBODY;
        Self { socket, connection, client, seat, thread, counted_for, armed: None, moved_s, begun }
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Whose turn it has to wait for in the pool.
    pub(crate) fn party(&self) -> PartyId {
        match &self.client {
            Client::Unknown { .. } => PartyId::NOBODY,
            Client::Known(known) => known.party,
        }
    }

    /// Whether it holds memory or a place without being at work: a part of a request, unsent
    /// answers, or a client that has not said who it is.
    pub(crate) fn is_half(&self) -> bool {
        !self.connection.is_idle() || matches!(self.client, Client::Unknown { .. })
    }

    /// Whether all its answers are sent.
    pub(crate) fn is_idle(&self) -> bool {
        !self.connection.has_unsent()
    }

    /// The name under which its client came.
    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        match &self.client {
            Client::Unknown { .. } => None,
            Client::Known(known) => known.name.as_ref(),
        }
    }

    /// Goes on as far as it goes, in these buffers.
    pub(crate) fn drive(&mut self, turn: &Turn<'_, H>, buffers: &mut Buffers) -> Outcome {
        self.connection.lend(buffers);
        let now = turn.clock.now;
        self.moved_s = turn.facts.age_s(now);
        if !turn.may_wait {
            self.begun = now;
        }
        let gone_on = catch_unwind(AssertUnwindSafe(|| self.go_on(turn)));
        // A connection whose cache has panicked is closed, and others go on.
        let outcome = gone_on.unwrap_or(Outcome::Close);
        self.connection.take_back(buffers);
        let unsent = if outcome == Outcome::Write { self.connection.held_bytes() } else { 0 };
        match self.seat.keep_unsent(unsent) {
            true => outcome,
            false => Outcome::Close,
        }
    }

    fn go_on(&mut self, turn: &Turn<'_, H>) -> Outcome {
        let mut left_bytes = if turn.is_shared { SHARED_TURN_BYTES } else { TURN_BYTES };
        let mut waits = if turn.may_wait { WAITS_A_JOB } else { 0 };
        let mut is_drained = false;
        loop {
            let Some(next) = self.work(turn, &mut waits) else { return Outcome::Pool };
            match next {
                Next::Close => return Outcome::Close,
                Next::Send => match self.send(&mut left_bytes, &mut waits) {
                    Sent::All => {}
                    Sent::Blocked => return Outcome::Write,
                    Sent::Waits => return Outcome::Pool,
                    Sent::Gone => return Outcome::Close,
                },
                Next::Receive if is_drained || !turn.may_receive => return self.pay(Outcome::Read),
                Next::Receive => {
                    let room = self.connection.room();
                    match self.socket.receive(room) {
                        Ok(0) => return Outcome::Close,
                        Ok(received) => {
                            is_drained = received < room.len();
                            self.connection.received(received);
                            left_bytes = left_bytes.saturating_sub(received);
                            if let Client::Unknown { has_come } = &mut self.client {
                                *has_come = true;
                            }
                        }
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        Err(error) if error.kind() == ErrorKind::WouldBlock => {
                            return self.pay(Outcome::Read);
                        }
                        Err(_) => return Outcome::Close,
                    }
                }
            }
            if let pause @ Outcome::Pause(_) = self.pay(Outcome::Turn) {
                return pause;
            }
            if left_bytes == 0 {
                return Outcome::Turn;
            }
        }
    }

    /// Works on what has come. `None` if that has to be done where it may wait.
    fn work(&mut self, turn: &Turn<'_, H>, waits: &mut u32) -> Option<Next> {
        let known = match &mut self.client {
            Client::Known(known) => known,
            Client::Unknown { has_come: false } if self.connection.has_unsent() => {
                return Some(Next::Send);
            }
            Client::Unknown { has_come: false } => return Some(Next::Receive),
            Client::Unknown { .. } if !turn.may_wait => return None,
            Client::Unknown { has_come } => {
                match self.connection.authenticate(&mut Asking(turn.host)) {
                    Authentication::Waiting(next) => {
                        *has_come = next != Next::Receive;
                        return Some(next);
                    }
                    Authentication::Accepted(guest) => {
                        let known = Known::new(guest, turn.facts, self.thread);
                        self.client = Client::Known(known);
                        return self.work(turn, waits);
                    }
                }
            }
        };
        let changes_max = if turn.is_shared { SHARED_TURN_CHANGES_MAX } else { usize::MAX };
        known.cache.changes_at_once_max = changes_max;
        let next = self.connection.run_without_waiting(&mut known.cache, turn.clock.unix_s);
        if next.is_none() && *waits > 0 {
            *waits -= 1;
            return Some(self.connection.run_once(&mut known.cache, turn.clock.unix_s));
        }
        next
    }

    fn send(&mut self, left_bytes: &mut usize, waits: &mut u32) -> Sent {
        loop {
            if self.connection.chunk_would_wait() {
                if *waits == 0 {
                    return Sent::Waits;
                }
                *waits -= 1;
            }
            let chunk = match self.connection.chunk() {
                Ok([]) => return Sent::All,
                Ok(chunk) => chunk,
                Err(_) => return Sent::Gone,
            };
            match self.socket.send(chunk) {
                Ok(sent) => {
                    self.connection.sent(sent);
                    *left_bytes = left_bytes.saturating_sub(sent);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Sent::Blocked,
                Err(_) => return Sent::Gone,
            }
        }
    }

    /// Pays for what was asked; `outcome`, unless the tenant has to wait for its rate.
    fn pay(&mut self, outcome: Outcome) -> Outcome {
        let Client::Known(known) = &mut self.client else { return outcome };
        match known.pay(self.begun) {
            Some(until) => Outcome::Pause(until),
            None => outcome,
        }
    }
}

impl<C: memcached::Cache> Known<C> {
    fn new(guest: Guest<C>, facts: &Arc<Facts>, thread: usize) -> Box<Self> {
        let Guest { cache, place, name, meter, party } = guest;
        let cache = Counted::new(cache, Presence::at(place), Arc::clone(facts), thread);
        Box::new(Self { cache, name, meter, party })
    }

    fn pay(&mut self, begun: Instant) -> Option<Instant> {
        let meter = self.meter.as_ref()?;
        let unpaid = std::mem::take(&mut self.cache.unpaid);
        let (requests, bytes) = (unpaid.operations(), unpaid.bytes_read + unpaid.bytes_written);
        if requests == 0 && bytes == 0 {
            return None;
        }
        let now = Instant::now();
        meter.record(&unpaid, now.saturating_duration_since(begun));
        meter.charge(requests, bytes, now).map(|pause| now + pause)
    }
}
