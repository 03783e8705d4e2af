//! The server: how it is started, and how it ends.
//!
//! ```text
//! started ──stop──> no new connection or request ── what was received is answered
//!                    └ at most two seconds ─> cut ─> threads joined
//! ```

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use memcached::Limits;
use rustix::event::{EventfdFlags, eventfd};

use crate::accept::Acceptor;
use crate::address::Address;
use crate::error::DoorError;
use crate::event_thread::EventThread;
use crate::host::Host;
use crate::listen::Listener;
use crate::mailbox::Mailbox;
use crate::place::Facts;
use crate::pool::Pool;
use crate::seats::Seats;
use crate::shared::Shared;

/// Threads that wait for disks, at most.
const POOL_THREADS: usize = 64;
/// What a thread of this room needs of stack.
const STACK_BYTES: usize = 512 << 10;
/// A line of `get` with more bytes than this closes its connection: 250 of the longest keys.
const GET_LINE_BYTES_MAX: usize = 64 << 10;

/// How a door is started.
pub struct MemcachedOptions {
    /// Where it listens: at least at one address.
    pub listen: Vec<Address>,
    /// Connections at once; one more is told so and closed.
    pub connections_max: usize,
    /// The longest value, in bytes.
    pub value_bytes_max: u64,
    /// Unsent bytes that all connections together keep for clients that do not read.
    pub unsent_bytes_max: usize,
    /// How long a client may do nothing with a request that is not whole, with answers that it does
    /// not read, or without saying who it is, where connections are scarce.
    pub stalled_time: Duration,
    /// What `stats` tells of the program.
    pub version: String,
    /// Whether clients have to say who they are, as `stats` tells it.
    pub is_authenticated: bool,
    /// Takes notes for the operator.
    pub observer: Box<dyn Fn(&str) + Send + Sync>,
}

impl Default for MemcachedOptions {
    /// Listens nowhere; 1024 connections, values of 1 MiB, 64 MiB unsent, and ten seconds.
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            connections_max: 1024,
            value_bytes_max: 1 << 20,
            unsent_bytes_max: 64 << 20,
            stalled_time: Duration::from_secs(10),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            is_authenticated: false,
            observer: Box::new(|_| {}),
        }
    }
}

/// The door of memcached. Dropped, it stops.
pub struct MemcachedServer {
    addresses: Vec<Address>,
    acceptor: Option<JoinHandle<()>>,
    event_threads: Vec<JoinHandle<()>>,
    stop: Arc<OwnedFd>,
    /// Ends what the type of the host is not needed for.
    ending: Box<dyn Ending>,
}

/// What a stop does to all connections, whatever thread hosts them.
trait Ending: Send + Sync {
    /// Nothing is received any more.
    fn close(&self);
    /// All jobs of the pool are done.
    fn end_pool(&self);
}

struct Ends<H: Host> {
    shared: Arc<Shared<H>>,
    mailboxes: Vec<Arc<Mailbox<H>>>,
}

impl<H: Host> Ending for Ends<H> {
    fn close(&self) {
        self.shared.close();
        self.mailboxes.iter().for_each(|mailbox| mailbox.ring());
    }

    fn end_pool(&self) {
        self.shared.pool.end();
    }
}

impl MemcachedServer {
    /// Listens, and serves the clients that `host` lets in.
    ///
    /// # Errors
    /// [`DoorError`] says which address cannot be listened at, or what the system lacks.
    pub fn start<H: Host>(host: H, options: MemcachedOptions) -> Result<Self, DoorError> {
        let bound: Result<Vec<_>, _> = options.listen.iter().map(Listener::bind).collect();
        let (listeners, addresses): (Vec<_>, Vec<_>) = bound?.into_iter().unzip();
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let shared = Arc::new(shared(host, options, &addresses, threads));
        let stop =
            eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| DoorError::Start(error.into()));
        let mailboxes: io::Result<Vec<_>> =
            (0..threads).map(|_| Mailbox::new().map(Arc::new)).collect();
        let mailboxes = mailboxes.map_err(DoorError::Start)?;
        let ends = Ends { shared: Arc::clone(&shared), mailboxes: mailboxes.clone() };
        // From here on what has begun ends with it, whatever fails.
        let mut server = Self {
            addresses,
            acceptor: None,
            event_threads: Vec::new(),
            stop: Arc::new(stop?),
            ending: Box::new(ends),
        };
        for (number, mailbox) in mailboxes.iter().enumerate() {
            let event_thread = EventThread::new(Arc::clone(&shared), number, Arc::clone(mailbox));
            let event_thread = event_thread.map_err(DoorError::Start)?;
            server.event_threads.push(begin("memcached", move || event_thread.run())?);
        }
        let stop = Arc::clone(&server.stop);
        let acceptor = Acceptor { shared, listeners, mailboxes, stop, told: None };
        server.acceptor = Some(begin("memcached-accept", move || acceptor.run())?);
        Ok(server)
    }

    /// Where it listens, with the ports that were chosen.
    #[must_use]
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Answers what was received, for two seconds at most, and ends.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.ending.close();
        // It is written to once, and fails for no reason that a stop could mend.
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
        // A panic of a thread has been printed, and is no reason not to end the others.
        let _ = self.acceptor.take().map(JoinHandle::join);
        for thread in self.event_threads.drain(..) {
            let _ = thread.join();
        }
        self.ending.end_pool();
    }
}

impl Drop for MemcachedServer {
    fn drop(&mut self) {
        self.end();
    }
}

fn shared<H: Host>(
    host: H,
    options: MemcachedOptions,
    addresses: &[Address],
    threads: usize,
) -> Shared<H> {
    let port = addresses.iter().find_map(|address| match address {
        Address::Tcp(address) => Some(address.port()),
        Address::Unix(_) => None,
    });
    let facts = Facts {
        started: Instant::now(),
        connections_max: options.connections_max as u64,
        connections_rejected: AtomicU64::new(0),
        threads: threads as u64,
        tcp_port: port.unwrap_or_default(),
        is_authenticated: options.is_authenticated,
        value_bytes_max: options.value_bytes_max,
        version: options.version,
    };
    let limits = Limits {
        value_bytes_max: options.value_bytes_max,
        get_line_bytes_max: GET_LINE_BYTES_MAX,
        ..Limits::default()
    };
    let seats = Seats::new(options.connections_max.max(1), options.unsent_bytes_max);
    let pool = Pool::new(POOL_THREADS);
    Shared::new((host, facts, limits), seats, options.stalled_time, pool, options.observer)
}

fn begin(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, DoorError> {
    let builder = thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
    builder.spawn(run).map_err(DoorError::Start)
}
