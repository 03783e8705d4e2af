//! One connection from its greeting to its end, on a thread of its own.
//!
//! Negotiation has a deadline, so that a silent client cannot hold a place for ever; transmission
//! has none, for a disk may be idle. A client that disconnects, or whose half of the connection
//! ends, is still sent what it is owed. [`Connection::drain`] ends that half from our side; after
//! [`Connection::cut`] nobody is waited for.

use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use engine::{Client, Ending, OpenVolume};
use threads::AdaptiveSpin;

use crate::background_rate::{BackgroundRate, Turns};
use crate::exports::Offered;
use crate::handshake::{Agreed, Handshake, NotServed, Step};
use crate::incoming::Incoming;
use crate::link::{self, Link};
use crate::reply::Replies;
use crate::session::{self, Session, Stream};
use crate::socket::{READ_TIME, Socket, Watched, time_left};
use crate::writer;
use door::{Hangup, SharedGrace, SlowClientPolicy};

/// How often a write that waits in transmission looks whether it is waited for.
const WRITE_TIME: Duration = Duration::from_millis(250);
/// What a thread of this room needs of stack.
pub(crate) const STACK_BYTES: usize = 512 << 10;

/// How long a client may take.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    /// To choose its export.
    pub(crate) handshake_max: Duration,
    /// Until they take the next bytes of their replies, all of them together, when others wait for
    /// their memory.
    pub(crate) reply_grace: Arc<SharedGrace>,
    /// For payloads that do not come, all of them together.
    pub(crate) payload_grace: Arc<SharedGrace>,
}

/// What a connection has of the server that it belongs to.
#[derive(Copy, Clone)]
pub(crate) struct Host<'a> {
    pub(crate) client: &'a Client,
    /// Set when the server stops.
    pub(crate) closing: &'a AtomicBool,
    pub(crate) times: &'a Times,
    /// Asked by connections in the background.
    pub(crate) background_rate: &'a dyn BackgroundRate,
    /// Takes a place among the connections that are served, when an export has been chosen.
    pub(crate) admit: &'a dyn Fn() -> Result<(), NotServed>,
}

/// A connection that is served.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: Arc<Socket>,
    /// The client, as operators are told of it, where it gives way to other clients.
    background: Option<String>,
    /// Requests that have come. Its reader alone counts them.
    requests: AtomicU64,
    /// Set when transmission begins.
    link: OnceLock<Arc<Link>>,
}

/// What a connection keeps for as long as it lasts.
///
/// The thread that accepts connections makes them for all: the allocator gives each thread pages of
/// its own for each size, and a page is a huge one as soon as it is touched.
pub(crate) struct Buffers {
    incoming: Incoming,
    answers: Box<[u8]>,
    replies: Box<[u8]>,
}

impl Buffers {
    pub(crate) fn new() -> Self {
        Self {
            incoming: Incoming::new(),
            answers: vec![0; session::ANSWERS_BYTES].into_boxed_slice(),
            replies: vec![0; writer::REPLIES_BYTES].into_boxed_slice(),
        }
    }
}

impl Connection {
    /// `background` describes a client that gives way to others.
    pub(crate) fn new(socket: Socket, background: Option<String>) -> Self {
        let (socket, requests) = (Arc::new(socket), AtomicU64::new(0));
        Self { socket, background, requests, link: OnceLock::new() }
    }

    /// Serves the client until it goes or is cut off. Its reader polls for the next
    /// request as `spin` says.
    pub(crate) fn serve(&self, mut buffers: Buffers, host: Host<'_>, spin: AdaptiveSpin) {
        let deadline = Instant::now() + host.times.handshake_max;
        let Host { client, closing, admit, .. } = host;
        let who = self.background.clone().unwrap_or_else(|| self.socket.peer());
        let offered = Offered { client, who: &who, admit };
        if let Ok(agreed) = self.negotiate(&mut buffers.incoming, &offered, closing, deadline) {
            // A client whose connection failed sees that for itself.
            let _ = self.transmit(buffers, agreed, host, spin);
        }
        self.socket.shutdown(Shutdown::Both);
    }

    fn negotiate(
        &self,
        incoming: &mut Incoming,
        offered: &Offered<'_>,
        closing: &AtomicBool,
        deadline: Instant,
    ) -> Result<Agreed<OpenVolume>, Hangup> {
        let mut out = Vec::new();
        let mut handshake = Handshake::begin(&mut out);
        loop {
            let (taken, step) = handshake.advance(
                incoming.unread(),
                offered,
                closing.load(Ordering::Acquire),
                &mut out,
            );
            incoming.consume(taken);
            self.socket.send_until(&out, deadline)?;
            out.clear();
            match step {
                Step::Transmit(agreed) => return Ok(agreed),
                Step::Close => return Err(Hangup),
                Step::Negotiate if taken > 0 => {}
                Step::Negotiate => {
                    self.socket.set_read_timeout(Some(time_left(deadline)?))?;
                    incoming.fill(&mut &*self.socket)?;
                }
            }
        }
    }

    fn transmit(
        &self,
        buffers: Buffers,
        agreed: Agreed<OpenVolume>,
        host: Host<'_>,
        spin: AdaptiveSpin,
    ) -> Result<(), Hangup> {
        let Host { client, closing, times, background_rate, .. } = host;
        self.socket.set_read_timeout(Some(READ_TIME))?;
        self.socket.set_write_timeout(Some(WRITE_TIME))?;
        let structured = agreed.structured;
        let Buffers { incoming, answers, replies } = buffers;
        let answers = Replies::new(answers, structured);
        let replies = Replies::new(replies, structured);
        let share_bytes = client.read_share_bytes();
        let engine = client.clone();
        let slow_clients = SlowClientPolicy {
            reply_grace: Arc::clone(&times.reply_grace),
            is_memory_wanted: Box::new(move || engine.is_read_memory_wanted()),
            payload_grace: Arc::clone(&times.payload_grace),
        };
        let socket = Arc::clone(&self.socket);
        let new_link = || Arc::new(link::link(socket, share_bytes, structured, slow_clients));
        let link = Arc::clone(self.link.get_or_init(new_link));
        let source = Watched::new(&self.socket, spin);
        let stream = Stream::new(source, incoming, answers, Arc::clone(&link));
        let (volume, closing_link) = (&agreed.export, Arc::downgrade(&link));
        volume.on_close(move |ending| match (closing_link.upgrade(), ending) {
            (Some(link), Ending::Drain) => link.drain(),
            (Some(link), Ending::Cut) => link.abort(),
            (None, _) => {}
        });
        // The volume stays open until all that was asked of it has been answered.
        let turns = Turns {
            requests: &self.requests,
            background_rate: self.background.is_some().then_some(background_rate),
        };
        let mut session = Session::new(client, agreed, stream, closing, turns);
        thread::scope(|scope| {
            // However the reader ends, by a panic too, the writer must come to know.
            let _ending = EndReading(&link);
            let writer_link = &link;
            thread::Builder::new()
                .name("nbd-writer".to_owned())
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, move || {
                    let mut ending = BreakOff { link: writer_link, has_sent_all: false };
                    ending.has_sent_all = writer::run(writer_link, replies);
                })?;
            session.run()
        })
    }

    /// Whether it gives way to others.
    pub(crate) fn is_background(&self) -> bool {
        self.background.is_some()
    }

    /// Requests that have come.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Whether the client is still owed a reply.
    pub(crate) fn is_busy(&self) -> bool {
        self.link.get().is_some_and(|link| link.is_busy())
    }

    /// Takes no further requests; what is in flight is answered, and then it is over.
    pub(crate) fn drain(&self) {
        match self.link.get() {
            Some(link) => link.drain(),
            None => self.socket.shutdown(Shutdown::Read),
        }
    }

    /// Ends it now.
    pub(crate) fn cut(&self) {
        match self.link.get() {
            Some(link) => link.abort(),
            None => self.socket.shutdown(Shutdown::Both),
        }
    }
}

/// Tells the writer, when dropped, that no request will follow.
struct EndReading<'a>(&'a Link);

impl Drop for EndReading<'_> {
    fn drop(&mut self) {
        self.0.end_reading();
    }
}

/// Ends the connection when the writer ends before all is sent: a reader without a writer would
/// wait for ever. Behind the last reply the reader has ended; the connection is closed when the
/// volume is, so that a client who sees its end finds the volume unused.
struct BreakOff<'a> {
    link: &'a Link,
    has_sent_all: bool,
}

impl Drop for BreakOff<'_> {
    fn drop(&mut self) {
        if !self.has_sent_all {
            self.link.abort();
        }
    }
}
