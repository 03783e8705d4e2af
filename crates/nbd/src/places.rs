//! Who may connect: places of the connections that are served, and others for those that have not
//! chosen an export yet.
//!
//! A connection is *half-open* from its acceptance until it has chosen an export, *established*
//! from then on. The two are bounded apart, so that clients that say nothing cannot keep out those
//! that work. One half-open connection too many takes the place of the oldest: who negotiates is
//! done in milliseconds, so the oldest is hardly one that will. *Adopted* connections were accepted
//! elsewhere, and are bounded there.
//!
//! Invariants: every connection that is served is open here, with one standing; half-open ones are
//! at most `half_open_max`, established ones at most `connections_max`.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::background_rate::Activity;
use crate::connection::Connection;
use crate::handshake::NotServed;
use crate::socket::Socket;

/// The connections there are, by their numbers, which are given in order.
pub(crate) struct Places {
    connections_max: usize,
    pub(crate) half_open_max: usize,
    taken: Mutex<Taken>,
    /// A connection has ended.
    ended: Condvar,
}

#[derive(Default)]
struct Taken {
    next_id: u64,
    open: BTreeMap<u64, Open>,
    half_open: usize,
    established: usize,
}

struct Open {
    connection: Arc<Connection>,
    standing: Standing,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Standing {
    HalfOpen,
    /// It was half-open, lost its place and has not ended yet.
    Dropped,
    Established,
    Adopted,
}

/// A connection that has been given a place.
pub(crate) struct Place {
    pub(crate) id: u64,
    pub(crate) connection: Arc<Connection>,
}

impl std::fmt::Debug for Places {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let taken = self.taken();
        let (open, established) = (taken.open.len(), taken.established);
        let mut places = f.debug_struct("Places");
        places.field("open", &open).field("established", &established).finish_non_exhaustive()
    }
}

impl Taken {
    fn add(&mut self, connection: Connection, standing: Standing) -> Place {
        let (id, connection) = (self.next_id, Arc::new(connection));
        self.next_id += 1;
        if standing == Standing::HalfOpen {
            self.half_open += 1;
        }
        self.open.insert(id, Open { connection: Arc::clone(&connection), standing });
        Place { id, connection }
    }

    fn connections(&self) -> impl Iterator<Item = &Arc<Connection>> {
        self.open.values().map(|open| &open.connection)
    }

    /// Takes the place of the oldest half-open connection.
    fn drop_oldest(&mut self) -> Option<Arc<Connection>> {
        let oldest = self.open.values_mut().find(|open| open.standing == Standing::HalfOpen)?;
        oldest.standing = Standing::Dropped;
        self.half_open -= 1;
        Some(Arc::clone(&oldest.connection))
    }
}

impl Places {
    /// Each bound is at least one.
    pub(crate) fn new(connections_max: usize, half_open_max: usize) -> Self {
        let (connections_max, half_open_max) = (connections_max.max(1), half_open_max.max(1));
        Self { connections_max, half_open_max, taken: Mutex::default(), ended: Condvar::new() }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection that was accepted, and the one that is to be cut for it.
    pub(crate) fn take(&self, socket: Socket) -> (Place, Option<Arc<Connection>>) {
        let mut taken = self.taken();
        let is_full = taken.half_open >= self.half_open_max;
        let dropped = if is_full { taken.drop_oldest() } else { None };
        assert!(taken.half_open < self.half_open_max, "half-open connections are bounded");
        (taken.add(Connection::new(socket, None), Standing::HalfOpen), dropped)
    }

    /// A place for a connection that was accepted elsewhere, in the background.
    pub(crate) fn adopt(&self, socket: Socket, who: String) -> Place {
        self.taken().add(Connection::new(socket, Some(who)), Standing::Adopted)
    }

    /// A half-open connection has chosen its export.
    ///
    /// # Errors
    /// [`NotServed::Full`] when no place is left for it, [`NotServed::Closing`] when it has lost
    /// its own.
    pub(crate) fn establish(&self, id: u64) -> Result<(), NotServed> {
        let mut taken = self.taken();
        let has_room = taken.established < self.connections_max;
        let Some(open) = taken.open.get_mut(&id) else {
            unreachable!("a connection that negotiates is open");
        };
        match open.standing {
            Standing::Established | Standing::Adopted => Ok(()),
            Standing::Dropped => Err(NotServed::Closing),
            Standing::HalfOpen if has_room => {
                open.standing = Standing::Established;
                taken.half_open -= 1;
                taken.established += 1;
                Ok(())
            }
            Standing::HalfOpen => Err(NotServed::Full { connections_max: self.connections_max }),
        }
    }

    /// A connection has ended.
    pub(crate) fn give_back(&self, id: u64) {
        let mut taken = self.taken();
        match taken.open.remove(&id).map(|open| open.standing) {
            Some(Standing::HalfOpen) => taken.half_open -= 1,
            Some(Standing::Established) => taken.established -= 1,
            Some(Standing::Dropped | Standing::Adopted) | None => {}
        }
        drop(taken);
        self.ended.notify_all();
    }

    /// What clients that do not give way have asked for.
    pub(crate) fn activity(&self) -> Activity {
        let mut clients = Activity::default();
        let taken = self.taken();
        for client in taken.connections().filter(|one| !one.is_background()) {
            clients.requests += client.requests();
            clients.is_busy |= client.is_busy();
        }
        clients
    }

    /// How many there are.
    pub(crate) fn open(&self) -> usize {
        self.taken().open.len()
    }

    /// Whether any owes its client a reply.
    pub(crate) fn are_busy(&self) -> bool {
        self.taken().connections().any(|connection| connection.is_busy())
    }

    pub(crate) fn for_each(&self, action: impl Fn(&Connection)) {
        // Not under the lock: what is done to a connection may end it.
        let open: Vec<_> = self.taken().connections().map(Arc::clone).collect();
        open.iter().for_each(|connection| action(connection));
    }

    /// Waits until no connection is open, for `time_max`; false when there still is one.
    pub(crate) fn wait_until_none(&self, time_max: Duration) -> bool {
        let is_any = |taken: &mut Taken| !taken.open.is_empty();
        let waited = self.ended.wait_timeout_while(self.taken(), time_max, is_any);
        let (taken, _) = waited.unwrap_or_else(PoisonError::into_inner);
        taken.open.is_empty()
    }
}
