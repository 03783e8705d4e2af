//! A client of NBD, for programs that work with a volume that another process serves.
//!
//! ```text
//! any thread ── begin ─> request, sent at once ─────────────> server
//!    └── told by `done` <── receiver's thread <── replies.rs ── replies, in any order
//! ```
//!
//! Many threads may ask at the same time over one connection. Each request gets its own answer, and
//! [`REQUESTS_MAX`] are in flight at most: a thread that asks for one more waits. A
//! connection ends once, for all that is in flight and all that comes after: when the server closes
//! it, or says what no server says ([`ClientError`]). Dropping a [`Client`] says good-bye and waits
//! until the server has given the export up.

mod answer;
mod error;
mod handshake;
mod replies;

use std::collections::HashMap;
use std::io::{self, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub use self::answer::{Answer, ClientExtent, Done};
pub use self::error::ClientError;
use self::error::nonsense;
pub use self::handshake::{Context, Export, Wish, negotiate};
use self::replies::{InFlight, Pending, Wanted, take_reply};
use crate::wire::{COMMAND_FUA, Command, PAYLOAD_BYTES_MAX, Request};

/// Requests in flight on one connection.
pub const REQUESTS_MAX: usize = 64;
/// How long a server may take to close the connection at the end.
const GOOD_BYE_TIME_MAX: Duration = Duration::from_secs(5);
/// Longest range that a request without payload is about, in whole chunks of any size.
const RANGE_BYTES_MAX: u64 = 1 << 31;

/// A connection to an export.
pub struct Client {
    export: Export,
    shared: Arc<Shared>,
    receiver: Option<JoinHandle<()>>,
}

struct Shared {
    socket: UnixStream,
    /// A thread that sends a request holds it until all of the request is sent.
    sending: Mutex<()>,
    state: Mutex<State>,
    /// A request has ended.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    last_cookie: u64,
    in_flight: HashMap<u64, Pending>,
    /// Set once: nothing is answered any more.
    over: Option<ClientError>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("export", &self.export).finish_non_exhaustive()
    }
}

impl Client {
    /// Chooses an export over a connection on which the server is about to greet; what of that has
    /// been received already is in `stream`. Replies are structured.
    ///
    /// # Errors
    /// As [`negotiate`].
    pub fn over(mut stream: BufReader<UnixStream>, wish: Wish<'_>) -> Result<Self, ClientError> {
        let socket = stream.get_ref().try_clone()?;
        let wish = Wish { structured: true, ..wish };
        let export = negotiate(&mut stream, &mut &socket, wish)?;
        socket.set_read_timeout(None)?;
        socket.set_write_timeout(None)?;
        let shared = Arc::new(Shared {
            socket,
            sending: Mutex::default(),
            state: Mutex::default(),
            ended: Condvar::new(),
        });
        let for_thread = Arc::clone(&shared);
        let receiver = thread::Builder::new()
            .name("nbd-client".to_owned())
            .spawn(move || for_thread.receive(&mut stream))?;
        Ok(Self { export, shared, receiver: Some(receiver) })
    }

    /// What the server says of the export.
    #[must_use]
    pub fn export(&self) -> &Export {
        &self.export
    }

    /// Begins to read `bytes.len()` bytes at `offset_bytes`; they come in `bytes`. At most
    /// [`PAYLOAD_BYTES_MAX`].
    pub fn begin_read(&self, offset_bytes: u64, bytes: Vec<u8>, done: Done) {
        let length = bytes.len() as u64;
        let wanted = Wanted::Bytes { offset_bytes, bytes, filled: 0 };
        self.begin((Command::Read, 0), (offset_bytes, length), &[], wanted, done);
    }

    /// Begins to write `bytes`, of which there are at most [`PAYLOAD_BYTES_MAX`].
    pub fn begin_write(&self, offset_bytes: u64, bytes: &[u8], durable: bool, done: Done) {
        let flags = if durable { COMMAND_FUA } else { 0 };
        let range = (offset_bytes, bytes.len() as u64);
        self.begin((Command::Write, flags), range, bytes, Wanted::Nothing, done);
    }

    /// Begins to make a range read as zeros.
    pub fn begin_write_zeroes(&self, offset_bytes: u64, length_bytes: u64, done: Done) {
        let range = (offset_bytes, length_bytes);
        self.begin((Command::WriteZeroes, 0), range, &[], Wanted::Nothing, done);
    }

    /// Begins to trim a range.
    pub fn begin_trim(&self, offset_bytes: u64, length_bytes: u64, done: Done) {
        let range = (offset_bytes, length_bytes);
        self.begin((Command::Trim, 0), range, &[], Wanted::Nothing, done);
    }

    /// The bytes at `offset_bytes`, as many as `bytes` has room for, in place of those in `bytes`.
    ///
    /// # Errors
    /// [`ClientError`] when they were not read.
    pub fn read(&self, offset_bytes: u64, bytes: Vec<u8>) -> Result<Vec<u8>, ClientError> {
        match wait_for(|done| self.begin_read(offset_bytes, bytes, done))? {
            Answer::Bytes(bytes) => Ok(bytes),
            _ => Err(nonsense("it answered something else")),
        }
    }

    /// Makes durable what was answered before, over any connection.
    ///
    /// # Errors
    /// [`ClientError`] when it may not be durable.
    pub fn flush(&self) -> Result<(), ClientError> {
        let flush = (Command::Flush, 0);
        wait_for(|done| self.begin(flush, (0, 0), &[], Wanted::Nothing, done)).map(drop)
    }

    /// What the metadata context `id` says from `offset_bytes` on: some runs, which may be fewer
    /// than cover `length_bytes`.
    ///
    /// # Errors
    /// [`ClientError`] when it is not told.
    pub fn extents(
        &self,
        id: u32,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> Result<Vec<ClientExtent>, ClientError> {
        let wanted = Wanted::Extents { context: id, extents: Vec::new() };
        let range = (offset_bytes, length_bytes.min(RANGE_BYTES_MAX));
        let asked = (Command::BlockStatus, 0);
        match wait_for(|done| self.begin(asked, range, &[], wanted, done))? {
            Answer::Extents(extents) => Ok(extents),
            _ => Err(nonsense("it answered something else")),
        }
    }

    fn begin(
        &self,
        (command, flags): (Command, u16),
        (offset_bytes, length_bytes): (u64, u64),
        payload: &[u8],
        wanted: Wanted,
        done: Done,
    ) {
        let is_long = command == Command::Read || command == Command::Write;
        let most = if is_long { u64::from(PAYLOAD_BYTES_MAX) } else { RANGE_BYTES_MAX };
        assert!(length_bytes <= most, "a request of {length_bytes} bytes is too long");
        let length_bytes = u32::try_from(length_bytes).unwrap_or(u32::MAX);
        let pending = Pending::new(wanted, done);
        let Some(cookie) = self.shared.begin(pending) else { return };
        let mut head = Vec::new();
        Request { flags, command, cookie, offset_bytes, length_bytes }.encode(&mut head);
        if let Err(error) = self.shared.send(&head, payload) {
            self.shared.end(&error.into());
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let (command, cookie, offset_bytes, length_bytes) = (Command::Disconnect, 0, 0, 0);
        let mut good_bye = Vec::new();
        Request { flags: 0, command, cookie, offset_bytes, length_bytes }.encode(&mut good_bye);
        // The server closes the connection when it has given the export up: the next command that
        // deletes or resizes the volume does not find it in use. A server that has gone is not
        // waited for.
        if self.shared.send(&good_bye, &[]).is_ok() {
            let lives = |state: &mut State| state.over.is_none();
            let ended = &self.shared.ended;
            let _ = ended.wait_timeout_while(self.shared.state(), GOOD_BYE_TIME_MAX, lives);
        }
        let _ = self.shared.socket.shutdown(Shutdown::Both);
        if let Some(receiver) = self.receiver.take() {
            let _ = receiver.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a request in flight, when there is room; None where the connection is over, which the
    /// request has been told.
    fn begin(&self, pending: Pending) -> Option<u64> {
        let is_full =
            |state: &mut State| state.over.is_none() && state.in_flight.len() >= REQUESTS_MAX;
        let waited = self.ended.wait_while(self.state(), is_full);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = state.over.clone() {
            drop(state);
            pending.fail(error);
            return None;
        }
        state.last_cookie += 1;
        let cookie = state.last_cookie;
        state.in_flight.insert(cookie, pending);
        Some(cookie)
    }

    fn send(&self, head: &[u8], payload: &[u8]) -> io::Result<()> {
        let _turn = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        (&self.socket).write_all(head)?;
        (&self.socket).write_all(payload)
    }

    fn receive(&self, from: &mut BufReader<UnixStream>) {
        loop {
            if let Err(error) = take_reply(from, self) {
                return self.end(&error);
            }
        }
    }

    /// Ends the connection with `error`, if it has not ended: all that is in flight is told.
    fn end(&self, error: &ClientError) {
        let mut state = self.state();
        let error = state.over.get_or_insert_with(|| error.clone()).clone();
        let left: Vec<Pending> = state.in_flight.drain().map(|(_, pending)| pending).collect();
        drop(state);
        self.ended.notify_all();
        let _ = self.socket.shutdown(Shutdown::Both);
        left.into_iter().for_each(|pending| pending.fail(error.clone()));
    }
}

impl InFlight for Shared {
    fn take(&self, cookie: u64) -> Option<Pending> {
        let taken = self.state().in_flight.remove(&cookie);
        self.ended.notify_one();
        taken
    }

    fn put_back(&self, cookie: u64, pending: Pending) {
        let mut state = self.state();
        match state.over.clone() {
            None => drop(state.in_flight.insert(cookie, pending)),
            Some(error) => {
                drop(state);
                pending.fail(error);
            }
        }
    }
}

fn wait_for(begin: impl FnOnce(Done)) -> Result<Answer, ClientError> {
    let (told, outcome) = sync_channel(1);
    begin(Box::new(move |answer| drop(told.send(answer))));
    outcome.recv().unwrap_or(Err(ClientError::Closed))
}
