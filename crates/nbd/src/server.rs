//! The server: what it listens at, the connections there are, and how it stops.
//!
//! One thread accepts at each address; each connection has a thread of its own and, in
//! transmission, a second one that writes. [`Server::stop`] goes from mild to hard:
//!
//! 1. No connection is accepted any more, and new requests are neither answered nor carried out:
//!    clients that reconnect send them again to the next server, but hand an ESHUTDOWN on as an
//!    error of the disk.
//! 2. When nothing is in flight, or after [`FINISH_TIME_MAX`], nothing further is read.
//! 3. When everything is answered, or after [`DRAIN_TIME_MAX`], the connections are cut.
//!
//! Whoever has a connection from elsewhere has it served by an [`Adopter`]: `tamis export` and its
//! like come through the control socket and give way to clients (`courtesy.rs`).
//!
//! After a stop nothing of this room uses the engine, unless the engine itself does not answer.

use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use engine::Client;
use threads::{AdaptiveSpin, SpinBudget};

use crate::connection::{Buffers, Connection, Host, STACK_BYTES, Times};
use crate::courtesy::{Activity, Courtesy, Gate};
use crate::error::NbdError;
use crate::listen::{Listen, Listener};
use crate::socket::Socket;

/// How long requests that are in flight at a stop may take.
const FINISH_TIME_MAX: Duration = Duration::from_millis(1000);
/// How long clients may then take to read their replies.
const DRAIN_TIME_MAX: Duration = Duration::from_millis(700);
/// How long threads may take to notice that they were cut off.
const CUT_TIME_MAX: Duration = Duration::from_millis(300);
/// How often a stop looks whether something is in flight.
const LOOK_TIME: Duration = Duration::from_millis(5);
/// Pause after a failed accept (no file descriptors left), so as not to spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a server is started with.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where to listen.
    pub listen: Vec<Listen>,
    /// Connections at one time; what comes beyond is closed at once.
    pub connections_max: usize,
    /// How long a client may take to choose its export.
    pub handshake_time_max: Duration,
    /// How long a client may take nothing of what it is sent while others wait for the memory of
    /// its replies.
    pub stalled_time_max: Duration,
    /// For how many microseconds a connection polls for its next request before it sleeps, where
    /// that pays ([`threads::AdaptiveSpin`]).
    pub poll_us: u32,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            connections_max: 128,
            handshake_time_max: Duration::from_secs(30),
            stalled_time_max: Duration::from_secs(10),
            poll_us: 0,
        }
    }
}

/// The volumes of an engine, served until [`Server::stop`] or drop.
#[derive(Debug)]
pub struct Server {
    addresses: Vec<Listen>,
    acceptors: Vec<(Arc<Listener>, JoinHandle<()>)>,
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    connections_max: usize,
    times: Times,
    /// What each reader begins with; all share one budget.
    spin: AdaptiveSpin,
    closing: AtomicBool,
    connections: Mutex<Connections>,
    /// A connection has ended.
    ended: Condvar,
    /// Whose turn it is among those that give way.
    turn: Gate,
}

#[derive(Default)]
struct Connections {
    next_id: u64,
    open: HashMap<u64, Arc<Connection>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let open = self.connections().open.len();
        f.debug_struct("Shared").field("connections", &open).finish_non_exhaustive()
    }
}

/// How many busy connections poll for their next request: a quarter of the processors.
fn spinning_max() -> usize {
    (thread::available_parallelism().map_or(1, usize::from) / 4).max(1)
}

impl Server {
    /// Serves the volumes of `client`'s engine at every address of `options`, or at none.
    ///
    /// # Errors
    /// [`NbdError`] names the address that cannot be listened at.
    pub fn start(client: Client, options: ServerOptions) -> Result<Self, NbdError> {
        let budget = Arc::new(SpinBudget::new(spinning_max()));
        let shared = Arc::new(Shared {
            client,
            connections_max: options.connections_max,
            times: Times {
                handshake_max: options.handshake_time_max,
                stalled_max: options.stalled_time_max,
            },
            spin: AdaptiveSpin::up_to_us(options.poll_us).sharing(budget),
            closing: AtomicBool::new(false),
            connections: Mutex::default(),
            ended: Condvar::new(),
            turn: Gate::default(),
        });
        let mut server = Self { addresses: Vec::new(), acceptors: Vec::new(), shared };
        for address in &options.listen {
            server.listen(address)?;
        }
        Ok(server)
    }

    /// Listens at one more address.
    ///
    /// # Errors
    /// [`NbdError`] says why that cannot be.
    pub fn listen(&mut self, address: &Listen) -> Result<(), NbdError> {
        let (listener, address) = Listener::bind(address)?;
        let listener = Arc::new(listener);
        let (for_thread, shared) = (Arc::clone(&listener), Arc::clone(&self.shared));
        let acceptor = thread::Builder::new()
            .name("nbd-accept".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || accept_all(&for_thread, &shared))
            .map_err(|source| NbdError::Thread { address: address.to_string(), source })?;
        self.acceptors.push((listener, acceptor));
        self.addresses.push(address);
        Ok(())
    }

    /// What serves connections that were accepted elsewhere.
    #[must_use]
    pub fn adopter(&self) -> Adopter {
        Adopter { shared: Arc::clone(&self.shared) }
    }

    /// Where it listens, with the ports that it got.
    #[must_use]
    pub fn addresses(&self) -> &[Listen] {
        &self.addresses
    }

    /// Connections that are open.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.connections().open.len()
    }

    /// Stops serving; returns within about two seconds.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.shared.closing.store(true, Ordering::Release);
        for (listener, acceptor) in self.acceptors.drain(..) {
            listener.close();
            // It cannot have panicked with anything that is to be said here.
            let _ = acceptor.join();
        }
        self.shared.finish();
        self.shared.for_each(Connection::drain);
        if !self.shared.wait_until_none(DRAIN_TIME_MAX) {
            self.shared.for_each(Connection::cut);
            self.shared.wait_until_none(CUT_TIME_MAX);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, connection: &Connection, buffers: Buffers) {
        let Self { client, closing, times, .. } = self;
        let host = Host { client, closing, times, courtesy: self };
        connection.serve(buffers, host, self.spin.clone());
    }

    fn for_each(&self, action: impl Fn(&Connection)) {
        // Not under the lock: what is done to a connection may end it.
        let open: Vec<_> = self.connections().open.values().map(Arc::clone).collect();
        open.iter().for_each(|connection| action(connection));
    }

    /// Waits until nothing is in flight, for a while.
    fn finish(&self) {
        let deadline = Instant::now() + FINISH_TIME_MAX;
        let is_busy = || self.connections().open.values().any(|connection| connection.is_busy());
        while is_busy() && Instant::now() < deadline {
            thread::sleep(LOOK_TIME);
        }
    }

    /// Waits until no connection is open, for `time_max`; false when there still is one.
    fn wait_until_none(&self, time_max: Duration) -> bool {
        let connections = self.connections();
        let (connections, _) = self
            .ended
            .wait_timeout_while(connections, time_max, |connections| !connections.open.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        connections.open.is_empty()
    }

    fn admit(&self, socket: Socket) -> Option<(u64, Arc<Connection>)> {
        let mut connections = self.connections();
        if connections.open.len() >= self.connections_max {
            return None;
        }
        Some(connections.add(Connection::new(socket, None)))
    }
}

impl Connections {
    fn add(&mut self, connection: Connection) -> (u64, Arc<Connection>) {
        let (id, connection) = (self.next_id, Arc::new(connection));
        self.next_id += 1;
        self.open.insert(id, Arc::clone(&connection));
        (id, connection)
    }
}

impl Courtesy for Shared {
    fn give_way(&self) {
        self.turn.give_way(|| {
            let connections = self.connections();
            let mut clients = Activity::default();
            for client in connections.open.values().filter(|one| !one.is_background()) {
                clients.requests += client.requests();
                clients.is_busy |= client.is_busy();
            }
            clients
        });
    }
}

/// Serves connections that its owner has accepted, until the server stops.
#[derive(Clone, Debug)]
pub struct Adopter {
    shared: Arc<Shared>,
}

impl Adopter {
    /// Serves the client at the other end of `stream`, from the greeting on, until it has gone.
    /// It gives way to the clients that came through the server's own addresses; operators see it
    /// as `who`. It is not counted among [`ServerOptions::connections_max`]: the caller bounds how
    /// many there are.
    pub fn serve(&self, stream: UnixStream, who: String) {
        let shared = &self.shared;
        let connection = Connection::new(Socket::Unix(stream), Some(who));
        let (id, connection) = shared.connections().add(connection);
        let _place = Place { shared: Arc::clone(shared), id };
        // Looked at behind the list: either this is seen here, or the stop sees the connection.
        if shared.closing.load(Ordering::Acquire) {
            return;
        }
        shared.serve(&connection, Buffers::new());
    }
}

fn accept_all(listener: &Listener, shared: &Arc<Shared>) {
    loop {
        let accepted = listener.accept();
        if shared.closing.load(Ordering::Acquire) {
            return;
        }
        match accepted {
            Ok(socket) => begin(socket, shared),
            Err(_) => thread::sleep(ACCEPT_PAUSE),
        }
    }
}

fn begin(socket: Socket, shared: &Arc<Shared>) {
    // One too many is closed by being dropped.
    let Some((id, connection)) = shared.admit(socket) else { return };
    let place = Place { shared: Arc::clone(shared), id };
    let buffers = Buffers::new();
    // When no thread can be had, the place is given back with the closure.
    let _ = thread::Builder::new().name("nbd-reader".to_owned()).stack_size(STACK_BYTES).spawn(
        move || {
            place.shared.serve(&connection, buffers);
        },
    );
}

/// A connection's place among those that are open; given back when dropped.
struct Place {
    shared: Arc<Shared>,
    id: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.connections().open.remove(&self.id);
        self.shared.ended.notify_all();
    }
}
