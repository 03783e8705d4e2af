//! The server's end: a thread that accepts, and one for each connection.
//!
//! Connections are few (a person's command, a script, a monitor), so threads are the simplest
//! thing that is right. Their number is bounded. One too many takes the place of the one that has
//! been *quiet* longest: of which the server waits for the next request, and which has asked for
//! nothing yet or has been quiet for [`QUIET_TIME_MAX`]. If none is, it is refused as busy. So
//! clients that stall keep nobody out, and one that asks loses nothing. [`Server::shut`]
//! shuts every socket, which wakes every thread that waits for its client, and [`Server::stop`]
//! waits for them: after it nothing of this room touches the engine any more. Between the two the
//! engine is closed: a request that waits, for room that a deletion gives back, is refused then,
//! and would be waited for until the deletion has ended.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::error::{CallError, ServeError};
use crate::line::{self, REQUEST_BYTES_MAX};
use crate::objects::serve_stream;
use crate::protocol::{Hello, OpenData, PROTOCOL_VERSION, RequestLine};
use crate::socket::{ControlSocket, SOCKET_NAME};
use crate::spoken::{self, Service};

/// Connections at one time.
pub(crate) const CONNECTIONS_MAX: usize = 32;
/// A connection on which nothing is asked for so long is closed: longer than a question at a
/// terminal waits for its answer, or a slow scrub between two steps. Who ends closes it at once.
const IDLE_TIME_MAX: Duration = Duration::from_hours(12);
/// A connection that has asked for something may be quiet for so long even if others want its
/// place: a scrub pauses between its steps.
pub(crate) const QUIET_TIME_MAX: Duration = Duration::from_mins(1);
/// A client that does not take its response for so long is let go.
const SEND_TIME_MAX: Duration = Duration::from_secs(30);
/// Pause after a failed accept (no file descriptors left), so as not to spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A control socket being served, until [`Server::stop`] or drop.
#[derive(Debug)]
pub struct Server {
    socket: Arc<ControlSocket>,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

/// The connections that are open.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    stopping: bool,
    next_id: u64,
    /// By their numbers, which are given in order.
    open: BTreeMap<u64, Open>,
}

#[derive(Debug)]
struct Open {
    stream: UnixStream,
    has_asked: bool,
    /// Since when the server waits for its next request.
    quiet_since: Option<Instant>,
}

impl Open {
    /// Since when it has been quiet, if another may take its place.
    fn yields_since(&self, now: Instant) -> Option<Instant> {
        self.quiet_since.filter(|since| !self.has_asked || now - *since >= QUIET_TIME_MAX)
    }
}

impl State {
    /// Cuts the connection that has been quiet longest, if any may be cut.
    fn cut_quiet(&mut self, now: Instant) -> bool {
        let quiet = self.open.iter().filter_map(|(id, open)| Some((open.yields_since(now)?, *id)));
        let Some((_, id)) = quiet.min() else { return false };
        let cut = self.open.remove(&id);
        // Its thread ends when it finds its socket shut.
        drop(cut.map(|open| open.stream.shutdown(Shutdown::Both)));
        true
    }
}

impl Server {
    /// Serves the control socket of the store in `directory`. The caller holds the store's lock,
    /// so a socket that nobody answers at is stale and is replaced.
    ///
    /// # Errors
    /// [`ServeError`] when a server is there already or the socket cannot be made.
    pub fn start(directory: &Path, service: impl Service) -> Result<Self, ServeError> {
        let socket = Arc::new(ControlSocket::listen(directory)?);
        let shared = Arc::new(Shared::default());
        let (socket_too, shared_too) = (Arc::clone(&socket), Arc::clone(&shared));
        let service = Arc::new(service);
        let acceptor = thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || accept_all(&socket_too, &shared_too, &service))
            .map_err(|source| ServeError::Bind { path: directory.join(SOCKET_NAME), source })?;
        Ok(Self { socket, shared, acceptor: Some(acceptor) })
    }

    /// Closes the socket and every connection. What is being answered goes on.
    pub fn shut(&mut self) {
        if self.shared.shut_all() {
            self.socket.close();
        }
    }

    /// The same, if that has not been done, and waits until no request is being answered.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.shut();
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False if that was done before.
    fn shut_all(&self) -> bool {
        let mut state = self.state();
        for open in state.open.values() {
            let _ = open.stream.shutdown(Shutdown::Both);
        }
        !std::mem::replace(&mut state.stopping, true)
    }

    /// Takes note of a connection; `None` when there are too many, or when the server stops.
    fn admit(&self, stream: &UnixStream) -> Option<u64> {
        let mut state = self.state();
        let now = Instant::now();
        if state.stopping || state.open.len() >= CONNECTIONS_MAX && !state.cut_quiet(now) {
            return None;
        }
        let (id, stream) = (state.next_id, stream.try_clone().ok()?);
        state.next_id += 1;
        let open = Open { stream, has_asked: false, quiet_since: Some(now) };
        state.open.insert(id, open);
        assert!(state.open.len() <= CONNECTIONS_MAX, "control connections are bounded");
        Some(id)
    }

    /// Takes note of whether a connection asks for something or is waited for.
    fn note(&self, id: u64, turn: Turn) {
        if let Some(open) = self.state().open.get_mut(&id) {
            open.has_asked |= turn == Turn::Asks;
            open.quiet_since = (turn == Turn::Quiet).then(Instant::now);
        }
    }

    fn dismiss(&self, id: u64) {
        self.state().open.remove(&id);
    }
}

fn accept_all<S: Service>(socket: &ControlSocket, shared: &Arc<Shared>, service: &Arc<S>) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    while !shared.state().stopping {
        threads.retain(|thread| !thread.is_finished());
        match socket.accept() {
            Ok(stream) => threads.extend(begin(stream, shared, service)),
            Err(_) if shared.state().stopping => {}
            Err(_) => thread::sleep(ACCEPT_PAUSE),
        }
    }
    for thread in threads {
        let _ = thread.join();
    }
}

fn begin<S: Service>(
    mut stream: UnixStream,
    shared: &Arc<Shared>,
    service: &Arc<S>,
) -> Option<JoinHandle<()>> {
    let Some(id) = shared.admit(&stream) else {
        let _ = line::send(&mut stream, &hello(true));
        return None;
    };
    let (shared_too, service) = (Arc::clone(shared), Arc::clone(service));
    let thread = thread::Builder::new().name("control-connection".to_owned()).spawn(move || {
        // Whatever ends a connection ends only that connection; its client sees it closed.
        let _ = converse(stream, service.as_ref(), |turn| shared_too.note(id, turn));
        shared_too.dismiss(id);
    });
    if thread.is_err() {
        shared.dismiss(id);
    }
    thread.ok()
}

fn hello(busy: bool) -> Hello {
    Hello { protocol: PROTOCOL_VERSION, tamis: env!("CARGO_PKG_VERSION").to_owned(), busy }
}

/// Whose turn it is on a connection.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Turn {
    /// The client's, to ask for something.
    Quiet,
    /// The server's: it was asked.
    Asks,
}

fn converse(
    stream: UnixStream,
    service: &impl Service,
    note: impl FnMut(Turn),
) -> Result<(), CallError> {
    stream.set_read_timeout(Some(IDLE_TIME_MAX))?;
    stream.set_write_timeout(Some(SEND_TIME_MAX))?;
    let (mut reader, writer) = (BufReader::new(stream.try_clone()?), stream.try_clone()?);
    let wanted = answer_in_turns(&mut reader, writer, service, note)?;
    // Who speaks before the other protocol has greeted speaks neither.
    if let (Some(OpenData { who }), true) = (wanted, reader.buffer().is_empty())
        && let Some(serve) = service.data_door()
    {
        serve(stream, who);
    }
    Ok(())
}

/// Greets, and answers the requests that `reader` reads, until there are no more, or until bytes of
/// volumes are to go over the connection: then it is the service's data door's.
///
/// # Errors
/// [`CallError`] when one end fails, or the other side says what is no request and nobody can know
/// where the next one begins.
pub fn answer_all(
    reader: impl BufRead,
    writer: impl Write,
    service: &impl Service,
) -> Result<Option<OpenData>, CallError> {
    answer_in_turns(reader, writer, service, |_| {})
}

fn answer_in_turns(
    mut reader: impl BufRead,
    mut writer: impl Write,
    service: &impl Service,
    mut note: impl FnMut(Turn),
) -> Result<Option<OpenData>, CallError> {
    line::send(&mut writer, &hello(false))?;
    loop {
        note(Turn::Quiet);
        let asked = line::receive::<RequestLine>(&mut reader, REQUEST_BYTES_MAX);
        note(Turn::Asks);
        match asked {
            Ok(Some(asked)) => {
                if serve_stream(service, &asked, &mut reader, &mut writer)? {
                    continue;
                }
                let wanted = spoken::wanted_data(service, &asked);
                line::send_bytes(&mut writer, spoken::answer_line(service, asked)?)?;
                if wanted.is_some() {
                    return Ok(wanted);
                }
            }
            Ok(None) => return Ok(None),
            Err(error @ (CallError::Malformed(_) | CallError::TooLong { .. })) => {
                line::send_bytes(&mut writer, spoken::refuse(error.to_string())?)?;
                // After an overlong line nobody knows where the next one begins.
                if matches!(error, CallError::TooLong { .. }) {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
}
