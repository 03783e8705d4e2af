//! The server: listeners, connections, and how it ends.
//!
//! ```text
//! started ──listen──> listening ──stop──> no new connection or request
//!                                          └ at most STOP_TIME ─> cut ─> threads joined
//! ```
//!
//! Few threads drive the connections. What the engine blocks on runs on others, at most
//! [`BLOCKING_THREADS`]; requests beyond wait for one of them, and tenants take turns.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use ::buckets::Buckets;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use objects::buffers::Buffers;
use s3s::config::{S3Config, StaticConfigProvider};
use s3s::service::{S3Service, S3ServiceBuilder};
use tenants::{Pool, Tenants};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

use crate::auth::BucketNames;
use crate::body::{PIECE_BYTES, PIECES_KEPT};
use crate::columns::FOOTERS_AT_ONCE;
use crate::door::{Door, Observer};
use crate::error::S3Error;
use crate::http;
use crate::patient::Patient;

/// Threads that drive connections.
const CONNECTION_THREADS: usize = 2;
/// Threads on which requests block, at most. A tenant that has its share leaves a part free:
/// requests may take long, and those of others find a thread at once.
const BLOCKING_THREADS: usize = 320;
const KEPT_THREADS: usize = 64;
/// Connections at once; others wait to be accepted.
const CONNECTIONS: u32 = 1024;
/// Most bytes that are received at once: what stays in the processor's cache until it is hashed.
const READ_BYTES_MAX: usize = 128 << 10;
/// How long requests may take that are under way when the server stops.
const STOP_TIME: Duration = Duration::from_secs(3);
/// Pause after the operating system refused a connection: it has no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What the door serves, and whom it tells what happens.
pub struct S3Options {
    /// The buckets.
    pub buckets: Buckets,
    /// Who may use them, and how much.
    pub tenants: Arc<Tenants>,
    /// Takes notes for the operator: damage, and files of accounts that cannot be read.
    pub observer: Box<dyn Fn(&str) + Send + Sync>,
    /// When connections of silent clients are closed.
    pub timeouts: Timeouts,
}

/// When the connection of a client is closed that does nothing with it.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// It sends no whole head of a request.
    pub head: Duration,
    /// It sends nothing of a body. A body of less than 1 KiB a second is cut off later.
    pub body: Duration,
    /// It reads nothing of an answer.
    pub answer: Duration,
}

impl Default for Timeouts {
    /// A minute, a minute, and two.
    fn default() -> Self {
        let minute = Duration::from_mins(1);
        Self { head: minute, body: minute, answer: 2 * minute }
    }
}

/// The door of S3. Dropped, it cuts all requests.
///
/// ```
/// # use std::sync::Arc;
/// # use accounts::Accounts;
/// # use tenants::Tenants;
/// # use buckets::{Buckets, BucketsOptions};
/// # use s3::{S3Options, S3Server, Timeouts};
/// # use store::{CreateOptions, Options, Store};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let disk = store::create_in_memory(&CreateOptions::new(64 << 20), 1)?;
/// # let store = Store::open_in_memory(&disk, Options::default())?;
/// # let buckets = Buckets::start(store.client().clone(), BucketsOptions::default())?;
/// # let accounts = Arc::new(Accounts::in_directory(std::path::Path::new("/tmp/nowhere")));
/// let options = S3Options {
///     buckets: buckets.clone(),
///     tenants: Arc::new(Tenants::over(accounts)?),
///     observer: Box::new(|note| eprintln!("{note}")),
///     timeouts: Timeouts::default(),
/// };
/// let mut server = S3Server::start(options)?;
/// let address = server.listen("127.0.0.1:0".parse()?)?;
/// assert!(address.port() != 0);
/// server.stop();
/// buckets.close()?;
/// # store.close()?;
/// # Ok(())
/// # }
/// ```
pub struct S3Server {
    runtime: Runtime,
    state: Arc<State>,
    stopping: watch::Sender<bool>,
}

/// What all connections share.
struct State {
    door: Door,
    service: S3Service,
    places: Arc<Semaphore>,
    timeouts: Timeouts,
}

impl S3Server {
    /// Starts the threads; nobody can connect yet.
    ///
    /// # Errors
    /// [`S3Error::Runtime`].
    pub fn start(options: S3Options) -> Result<Self, S3Error> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(CONNECTION_THREADS)
            .max_blocking_threads(BLOCKING_THREADS)
            .thread_name("s3")
            .enable_io()
            .enable_time()
            .build()
            .map_err(S3Error::Runtime)?;
        let S3Options { buckets, tenants, observer, timeouts } = options;
        let observer = Observer::from(observer);
        let pieces = Buffers::new(PIECES_KEPT, PIECE_BYTES as usize);
        let pool = Pool::new(BLOCKING_THREADS as u64, KEPT_THREADS as u64);
        let footers = Arc::new(Semaphore::new(FOOTERS_AT_ONCE));
        let door = Door { buckets, tenants, pool, observer, pieces, footers };
        let mut builder = S3ServiceBuilder::new(door.clone());
        builder.set_auth(door.clone());
        builder.set_access(door.clone());
        builder.set_validation(BucketNames);
        let mut config = S3Config::default();
        config.xml_max_body_size = http::DOCUMENT_BYTES_MAX;
        builder.set_config(Arc::new(StaticConfigProvider::new(Arc::new(config))));
        let places = Arc::new(Semaphore::new(CONNECTIONS as usize));
        let state = Arc::new(State { door, service: builder.build(), places, timeouts });
        Ok(Self { runtime, state, stopping: watch::Sender::new(false) })
    }

    /// Listens at an address, besides others; returns it with the port that was chosen for 0.
    ///
    /// # Errors
    /// [`S3Error::Listen`].
    pub fn listen(&mut self, address: SocketAddr) -> Result<SocketAddr, S3Error> {
        let failed = |source| S3Error::Listen { address, source };
        let listener = self.runtime.block_on(TcpListener::bind(address)).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let (state, stopping) = (Arc::clone(&self.state), self.stopping.subscribe());
        self.runtime.spawn(accept(listener, state, stopping));
        Ok(bound)
    }

    /// Ends requests that are under way, cuts those that take longer than three seconds, and joins
    /// the threads.
    pub fn stop(self) {
        let _ = self.stopping.send(true); // Nobody hears it when nobody is connected.
        let all_ended = self.state.places.acquire_many(CONNECTIONS);
        let _ = self.runtime.block_on(async { timeout(STOP_TIME, all_ended).await.map(drop) });
        self.runtime.shutdown_timeout(STOP_TIME);
    }
}

async fn accept(listener: TcpListener, state: Arc<State>, mut stopping: watch::Receiver<bool>) {
    loop {
        let Ok(place) = Arc::clone(&state.places).acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.wait_for(|stopping| *stopping) => return,
        };
        let Ok((stream, _)) = accepted else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (state, stopping) = (Arc::clone(&state), stopping.clone());
        tokio::spawn(async move {
            serve(stream, &state, stopping).await;
            drop(place);
        });
    }
}

async fn serve(stream: TcpStream, state: &Arc<State>, mut stopping: watch::Receiver<bool>) {
    // Answers are sent whole; that the option cannot be set costs time only.
    let _ = stream.set_nodelay(true);
    let stream = Patient::new(stream, state.timeouts.answer);
    let service = service_fn(|request| {
        let state = Arc::clone(state);
        let idle_time = state.timeouts.body;
        async move { http::answer(&state.door, &state.service, request, idle_time).await }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(state.timeouts.head)
        .max_buf_size(READ_BYTES_MAX)
        // Who says that no more comes still hears the answer.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    // How a connection ends is its client's matter: requests have had their answers.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopping.wait_for(|stopping| *stopping) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
