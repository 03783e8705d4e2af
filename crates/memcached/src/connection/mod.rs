//! One connection: bytes in, batches of requests to a cache, bytes out. No socket, thread or clock.
//!
//! ```text
//!             +--> Ready --- a value in parts ---> Storing -+
//!   received  |     | ^ \--- a value to drop ---> Swallowing|    chunk
//!   --------> |     | +-------------------------------------+  --------> socket
//!             |   batch ---> Cache::run ---> Answers ---> Output
//!             +--> Closing: what is left is sent, and nothing more is read
//! ```
//!
//! [`Connection::run`] goes on until its input or the room for output is used up, and says what
//! is next. Requests that wait together are one batch, up to the first that needs more bytes, or
//! that the cache's items do not answer. Answers have the order of the requests, since a batch is
//! answered before anything behind it is looked at.

mod batch;
mod large;
mod login;
mod storing;
mod waiting;

use crate::answer::Fault;
use crate::binary;
use crate::cache::Cache;
use crate::input::Input;
use crate::limits::{Limits, VALUE_BYTES_MAX};
use crate::output::Output;
use crate::parser::Parser;
use crate::request::Request;
use crate::stats::Counts;

use large::Storing;
pub use login::Authentication;
pub use waiting::Buffers;

/// What `version` answers: which memcached is followed, and that this is none. Clients choose by it
/// what they may ask.
const FOLLOWED_VERSION: &str = "1.6.38-tamis";

/// What is to be done with a connection's socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Receive: [`Connection::room`], then [`Connection::received`].
    Receive,
    /// Send all that [`Connection::chunk`] gives, then run again.
    Send,
    /// Close the socket: all has been sent.
    Close,
}

/// What became of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// There may be more to do.
    Made,
    /// Nothing can be done until more has come.
    NeedsInput,
    /// Something would be waited for, and may not be.
    Waits,
}

/// What the front of the input belongs to.
#[derive(Debug)]
enum State<W> {
    /// A request.
    Ready,
    /// A value that the cache takes in parts.
    Storing(Storing<W>),
    /// A value that nobody takes.
    Swallowing { left_bytes: u64 },
    /// Nothing any more.
    Closing,
}

/// The state machine of a connection with a cache of type `C`.
///
/// ```
/// use memcached::model::ModelCache;
/// use memcached::{Connection, Limits, Next};
///
/// let mut cache = ModelCache::default();
/// let mut connection = Connection::<ModelCache>::new(Limits::default());
/// let request = b"set a 0 0 2\r\nhi\r\nget a\r\n";
/// connection.room()[..request.len()].copy_from_slice(request);
/// connection.received(request.len());
/// assert_eq!(connection.run(&mut cache, 1_700_000_000), Next::Send);
/// assert_eq!(connection.chunk().unwrap(), b"STORED\r\nVALUE a 0 2\r\nhi\r\nEND\r\n");
/// ```
#[derive(Debug)]
pub struct Connection<C: Cache> {
    limits: Limits,
    version: String,
    input: Input,
    output: Output<C::Reader>,
    parser: Parser,
    state: State<C::Writer>,
    /// The input that the connection needs to go on, in bytes.
    wanted_bytes: usize,
    /// Nothing has come yet: the first byte tells which protocol this is.
    is_fresh: bool,
    /// A token's length, once its line has come.
    token_bytes: Option<usize>,
    get_failed: bool,
    counts: Counts,
    /// The memory of the last batch.
    spare: Vec<Request<'static>>,
}

impl<C: Cache> Connection<C> {
    /// A connection of which nothing has come.
    ///
    /// # Panics
    /// If the limits contradict one another: values above [`VALUE_BYTES_MAX`], or no batch at all.
    pub fn new(limits: Limits) -> Self {
        assert!(limits.value_bytes_max <= VALUE_BYTES_MAX, "values are at most 1 GiB");
        assert!(limits.batch_operations_max > 0, "a batch has a request");
        Connection {
            limits,
            version: FOLLOWED_VERSION.to_owned(),
            input: Input::default(),
            output: Output::default(),
            parser: Parser::default(),
            state: State::Ready,
            wanted_bytes: 1,
            is_fresh: true,
            token_bytes: None,
            get_failed: false,
            counts: Counts::default(),
            spare: Vec::new(),
        }
    }

    /// Room to receive into; never empty.
    pub fn room(&mut self) -> &mut [u8] {
        self.input.room(self.wanted_bytes)
    }

    /// The socket has received `bytes` bytes into the room.
    pub fn received(&mut self, bytes: usize) {
        self.counts.bytes_read += bytes as u64;
        self.input.received(bytes);
    }

    /// What is to be sent next; empty if there is nothing.
    ///
    /// # Errors
    /// If a long value cannot be read to its end. The socket is to be closed: nothing that could be
    /// sent instead would be understood.
    pub fn chunk(&mut self) -> Result<&[u8], Fault> {
        self.output.chunk()
    }

    /// The socket has sent the first `bytes` bytes of the chunk.
    pub fn sent(&mut self, bytes: usize) {
        self.counts.bytes_written += bytes as u64;
        self.output.advance(bytes);
    }

    /// Gives back buffers that hold nothing: for a connection that is idle among many.
    pub fn release_buffers(&mut self) {
        self.input.release();
        if self.output.is_empty() {
            self.output = Output::default();
        }
        self.spare = Vec::new();
    }

    /// Works on what has been received, as far as it goes.
    ///
    /// # Panics
    /// If the cache does not answer each request of a batch once.
    pub fn run(&mut self, cache: &mut C, now_s: u64) -> Next {
        while !self.is_output_full() && self.advance(cache, now_s, true) == Progress::Made {}
        self.pass_counts(cache);
        self.next()
    }

    fn next(&self) -> Next {
        match self.state {
            _ if !self.output.is_empty() => Next::Send,
            State::Closing => Next::Close,
            _ => Next::Receive,
        }
    }

    fn is_output_full(&self) -> bool {
        self.output.has_streams() || self.output.unsent_bytes() >= self.limits.output_bytes_max
    }

    /// Does one thing, unless more input is needed.
    fn advance(&mut self, cache: &mut C, now_s: u64, may_wait: bool) -> Progress {
        let available = self.input.unused_bytes();
        if available < self.wanted_bytes && !matches!(self.state, State::Closing) {
            return Progress::NeedsInput;
        }
        if !may_wait && matches!(self.state, State::Storing(_)) {
            return Progress::Waits;
        }
        match std::mem::replace(&mut self.state, State::Ready) {
            State::Closing => {
                self.state = State::Closing;
                self.input.take(available);
                Progress::NeedsInput
            }
            State::Ready => {
                if self.is_fresh && self.refuse_binary() {
                    return Progress::Made;
                }
                match self.run_batch(cache, now_s, may_wait) {
                    true => Progress::Made,
                    false => Progress::Waits,
                }
            }
            State::Swallowing { left_bytes } => {
                let taken = left_bytes.min(available as u64);
                self.input.take(taken as usize);
                if taken < left_bytes {
                    self.state = State::Swallowing { left_bytes: left_bytes - taken };
                }
                self.wanted_bytes = 1;
                Progress::Made
            }
            State::Storing(storing) => {
                self.go_on_storing(storing, cache, now_s);
                Progress::Made
            }
        }
    }

    /// Looks at the first byte, and says whether it was answered, or has to be waited for more.
    fn refuse_binary(&mut self) -> bool {
        let unused = self.input.unused();
        if unused.first() != Some(&binary::REQUEST_MAGIC) {
            self.is_fresh = false;
            return false;
        }
        match unused.first_chunk() {
            None => self.wanted_bytes = binary::HEADER_BYTES,
            Some(header) => {
                binary::refuse(header, &mut self.output.bytes);
                self.state = State::Closing;
            }
        }
        true
    }

    fn say(&mut self, line: &[u8]) {
        self.output.bytes.extend_from_slice(line);
    }

    fn pass_counts(&mut self, cache: &mut C) {
        if self.counts != Counts::default() {
            cache.count(&self.counts);
            self.counts = Counts::default();
        }
    }

    /// What [`Connection::run`] answers to `version`; without it, which memcached is followed.
    pub fn set_version(&mut self, version: impl Into<String>) {
        self.version = version.into();
    }
}
