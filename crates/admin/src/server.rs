//! The server's end: a thread that accepts, and one for each connection.
//!
//! Connections are few (a person's command, a script, a monitor), so threads are the simplest
//! thing that is right. Their number is bounded; one too many is refused as busy. [`Server::shut`]
//! shuts every socket, which wakes every thread that waits for its client, and [`Server::stop`]
//! waits for them: after it nothing of this room touches the engine any more. Between the two the
//! engine is closed: a request that waits, for room that a deletion gives back, is refused then,
//! and would be waited for until the deletion has ended.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

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
    open: HashMap<u64, UnixStream>,
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
        for stream in state.open.values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        !std::mem::replace(&mut state.stopping, true)
    }

    /// Takes note of a connection; `None` when there are too many, or when the server stops.
    fn admit(&self, stream: &UnixStream) -> Option<u64> {
        let mut state = self.state();
        if state.stopping || state.open.len() >= CONNECTIONS_MAX {
            return None;
        }
        let (id, stream) = (state.next_id, stream.try_clone().ok()?);
        state.next_id += 1;
        state.open.insert(id, stream);
        Some(id)
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
        let _ = converse(stream, service.as_ref());
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

fn converse(stream: UnixStream, service: &impl Service) -> Result<(), CallError> {
    stream.set_read_timeout(Some(IDLE_TIME_MAX))?;
    stream.set_write_timeout(Some(SEND_TIME_MAX))?;
    let (mut reader, writer) = (BufReader::new(stream.try_clone()?), stream.try_clone()?);
    let wanted = answer_all(&mut reader, writer, service)?;
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
    mut reader: impl BufRead,
    mut writer: impl Write,
    service: &impl Service,
) -> Result<Option<OpenData>, CallError> {
    line::send(&mut writer, &hello(false))?;
    loop {
        match line::receive::<RequestLine>(&mut reader, REQUEST_BYTES_MAX) {
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
