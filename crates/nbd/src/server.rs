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
//! What bounds connections is in `places.rs`: those that have chosen an export have places of their
//! own, and those that have not cannot take them. Connections that were accepted elsewhere are
//! served by an [`Adopter`]: `tamis export` and its like come through the control socket and give
//! way to clients (`background_rate.rs`).
//!
//! After a stop nothing of this room uses the engine, unless the engine itself does not answer.

use std::fs::File;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use door::SharedGrace;
use engine::Client;
use threads::{AdaptiveSpin, SpinBudget};

use crate::background_rate::{BackgroundRate, Gate};
use crate::connection::{Buffers, Connection, Host, STACK_BYTES, Times};
use crate::error::NbdError;
use crate::handshake::NotServed;
use crate::listen::{Listen, Listener};
use crate::notice::{Notice, Notices};
use crate::places::Places;
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
    /// Connections that are served at one time: one that chooses an export beyond is refused.
    pub connections_max: usize,
    /// Connections beside those that have not chosen an export yet: beyond, the oldest is closed.
    pub half_open_max: usize,
    /// How long a client may take to choose its export.
    pub handshake_time_max: Duration,
    /// How long clients, all of them together, may take nothing of what they are sent while others
    /// wait for the memory of their replies; when that is spent each has a quarter of a second.
    pub stalled_time_max: Duration,
    /// For how many microseconds a connection polls for its next request before it sleeps, where
    /// that pays ([`threads::AdaptiveSpin`]).
    pub poll_us: u32,
    /// Takes what operators hear and no client does.
    pub notices: Notices,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            connections_max: 128,
            half_open_max: 64,
            handshake_time_max: Duration::from_secs(10),
            stalled_time_max: Duration::from_secs(10),
            poll_us: 0,
            notices: Notices::default(),
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
    times: Times,
    /// What each reader begins with; all share one budget.
    spin: AdaptiveSpin,
    closing: AtomicBool,
    places: Places,
    notices: Notices,
    /// Whose turn it is among those that give way.
    turn: Gate,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("places", &self.places).finish_non_exhaustive()
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
            times: Times {
                handshake_max: options.handshake_time_max,
                reply_grace: Arc::new(SharedGrace::of_replies(options.stalled_time_max)),
                payload_grace: Arc::new(SharedGrace::of_payloads()),
            },
            spin: AdaptiveSpin::up_to_us(options.poll_us).sharing(budget),
            closing: AtomicBool::new(false),
            places: Places::new(options.connections_max, options.half_open_max),
            notices: options.notices,
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
        self.shared.places.open()
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
        let places = &self.shared.places;
        places.for_each(Connection::drain);
        if !places.wait_until_none(DRAIN_TIME_MAX) {
            places.for_each(Connection::cut);
            places.wait_until_none(CUT_TIME_MAX);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    /// Serves a connection whose client takes its place by `admit`.
    fn serve(
        &self,
        connection: &Connection,
        buffers: Buffers,
        admit: &dyn Fn() -> Result<(), NotServed>,
    ) {
        let Self { client, closing, times, .. } = self;
        let host = Host { client, closing, times, background_rate: self, admit };
        connection.serve(buffers, host, self.spin.clone());
    }

    /// Waits until nothing is in flight, for a while.
    fn finish(&self) {
        let deadline = Instant::now() + FINISH_TIME_MAX;
        while self.places.are_busy() && Instant::now() < deadline {
            thread::sleep(LOOK_TIME);
        }
    }
}

impl BackgroundRate for Shared {
    fn await_turn(&self) {
        self.turn.await_turn(|| self.places.activity());
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
        let place = shared.places.adopt(Socket::Unix(stream), who);
        let _held = Held { shared: Arc::clone(shared), id: place.id };
        // Looked at behind the list: either this is seen here, or the stop sees the connection.
        if shared.closing.load(Ordering::Acquire) {
            return;
        }
        shared.serve(&place.connection, Buffers::new(), &|| Ok(()));
    }
}

fn accept_all(listener: &Listener, shared: &Arc<Shared>) {
    let mut spare = Spare::take();
    loop {
        let accepted = listener.accept();
        if shared.closing.load(Ordering::Acquire) {
            return;
        }
        match accepted {
            Ok(socket) => begin(socket, shared),
            Err(error) => {
                shared.notices.tell(&Notice::NotAccepted { reason: error.to_string() });
                thread::sleep(ACCEPT_PAUSE);
                if is_out_of_descriptors(&error)
                    && let Some(socket) = spare.accept(listener)
                    && !shared.closing.load(Ordering::Acquire)
                {
                    begin(socket, shared);
                }
            }
        }
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    let errno = rustix::io::Errno::from_io_error(error);
    matches!(errno, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
}

/// A file descriptor that is closed to accept a connection for which there is none, so that its
/// client sees it closed and does not wait.
struct Spare(Option<File>);

impl Spare {
    fn take() -> Self {
        Self(File::open("/dev/null").ok())
    }

    /// The next connection, if there is a file descriptor for it by then; else it is closed.
    fn accept(&mut self, listener: &Listener) -> Option<Socket> {
        self.0.take()?;
        let accepted = listener.accept().ok();
        *self = Self::take();
        accepted.filter(|_| self.0.is_some())
    }
}

fn begin(socket: Socket, shared: &Arc<Shared>) {
    let (place, dropped) = shared.places.take(socket);
    if let Some(oldest) = dropped {
        oldest.cut();
        shared
            .notices
            .tell(&Notice::HalfOpenDropped { half_open_max: shared.places.half_open_max });
    }
    let id = place.id;
    let (held, buffers) = (Held { shared: Arc::clone(shared), id }, Buffers::new());
    let begun = thread::Builder::new().name("nbd-reader".to_owned()).stack_size(STACK_BYTES).spawn(
        move || {
            let shared = &held.shared;
            shared.serve(&place.connection, buffers, &|| shared.admit(id));
        },
    );
    // The place is given back with the closure.
    if let Err(error) = begun {
        shared.notices.tell(&Notice::NotAccepted { reason: error.to_string() });
    }
}

impl Shared {
    /// Takes a place for a connection that has chosen its export.
    fn admit(&self, id: u64) -> Result<(), NotServed> {
        let admitted = self.places.establish(id);
        if let Err(NotServed::Full { connections_max }) = admitted {
            self.notices.tell(&Notice::Full { connections_max });
        }
        admitted
    }
}

/// Gives a connection's place back when dropped.
struct Held {
    shared: Arc<Shared>,
    id: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shared.places.give_back(self.id);
    }
}
