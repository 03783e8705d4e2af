//! The reader's thread in transmission: requests off the socket, into the engine.
//!
//! What ends at once is answered here: writes that the write buffer took, short reads of what is in
//! memory, refusals, CACHE. Those answers are gathered while the next request is already here, and
//! sent before this thread waits for anything: the client, room, or memory of the engine, which
//! [`Client::buffer`] waits for where [`Client::try_buffer`] finds none, and so for reads.
//!
//! Nothing is taken from the engine before it is needed: room among the requests in flight first,
//! then credits, then the payload, straight into the buffer that the engine keeps. A writer whose
//! volume holds it up for its quota waits for that before it takes credits. Only the client
//! can make us wait while we hold credits, and not for longer than [`PAYLOAD_TIME_MAX`]: what has
//! come by then is written, and for the rest credits are taken only when it is here, piece by piece
//! ([`Session::write_slowly`]). A slow client may take any time, and nobody waits for it.
//!
//! Behind each wait this thread looks whether the client is still there. For one that has given the
//! connection up nothing more is carried out, and [`crate::given_up`] says what that promises. And
//! it tells [`Link`] what the engine asks of it: what lies here while it waits, and how it ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use engine::{
    Accepted, ChunkBuf, Client, Completions, Done, OpenVolume, Permit, Reply, RequestError,
};

use crate::error::Hangup;
use crate::given_up::{end_of, has_given_up};
use crate::handshake::Agreed;
use crate::incoming::Incoming;
use crate::link::{Link, Outcome};
use crate::reply::{ReadRange, Replies};
use crate::socket::Watched;
use crate::validate::{self, Terms};
use crate::wire::{
    COMMAND_FUA, COMMAND_REQ_ONE, Command, Errno, PAYLOAD_BYTES_MAX, REQUEST_BYTES, Request,
};

/// How long the payload of one write may take to arrive in one piece.
const PAYLOAD_TIME_MAX: Duration = Duration::from_secs(1);
/// Pieces of one that takes longer end where this divides the address: every chunk is a part of one
/// piece, and a piece finds room among what has arrived.
const PIECE_BYTES: u64 = 64 << 10;
/// Payload that is refused is thrown away up to this length; beyond it the client is no client.
const DISCARDED_BYTES_MAX: usize = 2 * PAYLOAD_BYTES_MAX as usize;
/// Answers are sent when there are so many bytes of them: of a few reads.
const GATHERED_BYTES: usize = 32 << 10;
/// What answers find room in: those, and a read beside them.
pub(crate) const ANSWERS_BYTES: usize = GATHERED_BYTES + (48 << 10);
/// A read up to this length does not wait for memory that others hold, if it is alone: clients that
/// do not take their replies hold it for as long as they like. Each connection may take so much and
/// as much again beyond what is meant for reads.
const OWN_READ_BYTES_MAX: u32 = 128 << 10;
/// How often a writer at its volume's quota looks whether it may go on.
const QUOTA_PAUSE: Duration = Duration::from_millis(50);
/// Extents in one reply.
const EXTENTS_MAX: u32 = 1024;

/// One connection in transmission, from the reader's end.
pub(crate) struct Session<'a> {
    client: &'a Client,
    volume: OpenVolume,
    structured: bool,
    allocation: bool,
    source: Watched<'a>,
    incoming: Incoming,
    link: Arc<Link>,
    answers: Replies,
    closing: &'a AtomicBool,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        client: &'a Client,
        agreed: Agreed<OpenVolume>,
        source: Watched<'a>,
        incoming: Incoming,
        answers: Replies,
        link: Arc<Link>,
        closing: &'a AtomicBool,
    ) -> Self {
        let Agreed { export: volume, structured, allocation } = agreed;
        Self { client, volume, structured, allocation, source, incoming, link, answers, closing }
    }

    /// Serves requests until the client disconnects.
    ///
    /// # Errors
    /// [`Hangup`] when it does so without a word, or talks nonsense.
    pub(crate) fn run(&mut self) -> Result<(), Hangup> {
        let ended = self.serve_all();
        if ended.is_err() {
            self.link.end_without_a_word(self.incoming.unread());
        }
        ended
    }

    fn serve_all(&mut self) -> Result<(), Hangup> {
        loop {
            let request = self.next_request()?;
            if request.command == Command::Disconnect {
                return self.send_answers();
            }
            if self.closing.load(Ordering::Acquire) {
                return self.ignore_all();
            }
            match self.verdict(&request) {
                Ok(()) => self.serve(request)?,
                Err((errno, sentence)) => self.refuse(&request, errno, &sentence)?,
            }
            if self.answers.as_bytes().len() >= GATHERED_BYTES {
                self.send_answers()?;
            }
        }
    }

    fn next_request(&mut self) -> Result<Request, Hangup> {
        loop {
            if let Some(bytes) = self.incoming.take_array::<REQUEST_BYTES>() {
                self.source.found_request();
                return Request::decode(&bytes).ok_or(Hangup);
            }
            self.send_answers()?;
            self.incoming.fill(&mut self.source)?;
        }
    }

    /// The server stops: what comes now is neither answered nor carried out, until nothing more is
    /// read. It is taken all the same, for a connection that is closed over what nobody took is
    /// reset, and answers that are on their way are lost.
    fn ignore_all(&mut self) -> Result<(), Hangup> {
        self.send_answers()?;
        loop {
            self.incoming.consume(self.incoming.unread().len());
            self.incoming.fill(&mut self.source)?;
        }
    }

    fn send_answers(&mut self) -> Result<(), Hangup> {
        if !self.answers.is_empty() {
            self.link.send_or_hand_over(self.answers.as_bytes())?;
            self.answers.clear();
        }
        Ok(())
    }

    fn verdict(&self, request: &Request) -> Result<(), (Errno, String)> {
        if self.volume.is_gone() {
            let sentence = format!("volume {} has been deleted", self.volume.name());
            return Err((Errno::Shutdown, sentence));
        }
        let terms = Terms {
            size_bytes: self.volume.size_bytes(),
            read_only: self.volume.read_only(),
            structured: self.structured,
            allocation: self.allocation,
        };
        validate::check(request, &terms)
            .map_err(|refusal| (refusal.errno, refusal.sentence.to_owned()))
    }

    fn refuse(&mut self, request: &Request, errno: Errno, sentence: &str) -> Result<(), Hangup> {
        let payload_bytes = request.payload_bytes();
        if payload_bytes > DISCARDED_BYTES_MAX {
            return Err(Hangup);
        }
        if self.incoming.unread().len() < payload_bytes {
            self.send_answers()?;
        }
        // A client that is still sending its payload does not expect an answer to it.
        self.incoming.discard(&mut self.source, payload_bytes)?;
        self.answers.fail(request.cookie, errno, sentence);
        Ok(())
    }

    fn serve(&mut self, request: Request) -> Result<(), Hangup> {
        match request.command {
            Command::Read if request.length_bytes == 0 => {
                self.answers.empty_read(request.cookie);
                Ok(())
            }
            Command::Read => self.read(request),
            Command::Cache => self.nothing_to_do(&request),
            Command::Flush => {
                let done = self.begin(request)?;
                self.client.flush(done);
                Ok(())
            }
            _ if request.length_bytes == 0 => self.nothing_to_do(&request),
            Command::Write => self.write(request),
            _ => self.ask(request),
        }
    }

    fn read(&mut self, request: Request) -> Result<(), Hangup> {
        let Request { offset_bytes, length_bytes, .. } = request;
        match self.client.read_held(&self.volume, offset_bytes, length_bytes) {
            Some(pieces) => self.answers.read(&ReadRange::of(&request), &pieces),
            None => {
                self.wait_for_room(&request)?;
                let memory = self.read_memory(length_bytes)?;
                let done = self.begun(request);
                self.client.read_in(memory, &self.volume, offset_bytes, length_bytes, done);
            }
        }
        Ok(())
    }

    fn read_memory(&mut self, length_bytes: u32) -> Result<Permit, Hangup> {
        if let Some(memory) = self.client.try_read_memory(length_bytes) {
            return Ok(memory);
        }
        if length_bytes <= OWN_READ_BYTES_MAX && !self.link.is_reading() {
            return Ok(self.client.own_memory());
        }
        self.send_answers()?;
        self.wait(|| Ok(self.client.read_memory(length_bytes)))
    }

    fn nothing_to_do(&mut self, request: &Request) -> Result<(), Hangup> {
        self.answers.done(request.cookie);
        Ok(())
    }

    /// What the writer will answer.
    fn ask(&mut self, request: Request) -> Result<(), Hangup> {
        self.wait_for_room(&request)?;
        let Request { offset_bytes, length_bytes, command, .. } = request;
        let wide = u64::from(length_bytes);
        match command {
            Command::BlockStatus => {
                let count = if request.has(COMMAND_REQ_ONE) { 1 } else { EXTENTS_MAX };
                let done = self.begun(request);
                self.client.extents(&self.volume, offset_bytes, wide, count, done);
            }
            Command::Trim => {
                let (durable, done) = (request.has(COMMAND_FUA), self.begun(request));
                self.client.trim(&self.volume, offset_bytes, wide, durable, done);
            }
            _ => {
                let (durable, done) = (request.has(COMMAND_FUA), self.begun(request));
                self.client.write_zeroes(&self.volume, offset_bytes, wide, durable, done);
            }
        }
        Ok(())
    }

    fn write(&mut self, request: Request) -> Result<(), Hangup> {
        // Room first: waiting for it may depend on the client, and must not while we hold credits.
        self.wait_for_room(&request)?;
        let length = request.payload_bytes();
        if self.incoming.unread().len() < length {
            self.send_answers()?;
        }
        let mut buf = self.buffer(request.offset_bytes, length)?;
        let target = buf.bytes_mut();
        let filled = self.incoming.read_for(&mut self.source, target, PAYLOAD_TIME_MAX)?;
        if filled < length {
            return self.write_slowly(request, buf, filled);
        }
        self.write_last(request, request.offset_bytes, buf);
        Ok(())
    }

    fn buffer(&mut self, offset_bytes: u64, length: usize) -> Result<ChunkBuf, Hangup> {
        if self.volume.holds_writers_up() {
            self.send_answers()?;
            while self.volume.holds_writers_up() {
                self.wait(|| self.link.pause(QUOTA_PAUSE))?;
            }
        }
        if let Some(buf) = self.client.try_buffer(offset_bytes, length) {
            return Ok(buf);
        }
        self.send_answers()?;
        self.wait(|| Ok(self.client.buffer(offset_bytes, length)))
    }

    /// The payload of a write does not come, but for the `filled` bytes at the front of `buf`.
    fn write_slowly(
        &mut self,
        request: Request,
        mut buf: ChunkBuf,
        filled: usize,
    ) -> Result<(), Hangup> {
        let end_bytes = request.offset_bytes + request.payload_bytes() as u64;
        let mut at_bytes = request.offset_bytes;
        // What is here of the last piece waits for the rest of it, without credits.
        let here_bytes = at_bytes + filled as u64;
        let whole = (here_bytes - here_bytes % PIECE_BYTES).saturating_sub(at_bytes) as usize;
        self.incoming.put_back(&buf.bytes()[whole..filled]);
        buf.truncate(whole);
        let mut piece = (whole > 0).then_some(buf);
        loop {
            if let Some(buf) = piece.take() {
                let next_bytes = at_bytes + buf.bytes().len() as u64;
                if next_bytes == end_bytes {
                    self.write_last(request, at_bytes, buf);
                    return Ok(());
                }
                if let Err(error) = self.write_piece(at_bytes, buf)? {
                    let rest = (end_bytes - next_bytes) as usize;
                    self.incoming.discard(&mut self.source, rest)?;
                    self.answers.error(request.cookie, Command::Write, &error);
                    return Ok(());
                }
                at_bytes = next_bytes;
            }
            let piece_end_bytes = (at_bytes / PIECE_BYTES + 1) * PIECE_BYTES;
            let length = (piece_end_bytes.min(end_bytes) - at_bytes) as usize;
            self.incoming.await_here(&mut self.source, length)?;
            self.look_for_client()?;
            let mut buf = self.buffer(at_bytes, length)?;
            self.incoming.read_for(&mut self.source, buf.bytes_mut(), PAYLOAD_TIME_MAX)?;
            piece = Some(buf);
        }
    }

    /// A piece of a payload but the last, whose end nobody is told of.
    fn write_piece(
        &self,
        at_bytes: u64,
        buf: ChunkBuf,
    ) -> Result<Result<(), RequestError>, Hangup> {
        let (ended, outcome) = mpsc::channel();
        let done = Done::new(Arc::new(Piece { link: Arc::clone(&self.link), ended }), 0);
        match self.client.write(&self.volume, at_bytes, buf, false, done) {
            Accepted::Now => Ok(Ok(())),
            Accepted::Later => self.wait(|| {
                let outcome = outcome.recv().unwrap_or(Err(RequestError::Closing));
                Ok(outcome.map(drop))
            }),
        }
    }

    /// The write of a request's payload, or of the end of it, with which the request ends.
    fn write_last(&mut self, request: Request, at_bytes: u64, buf: ChunkBuf) {
        // Whoever reads is the only one to begin anything: there still is room.
        let done = self.begun(request);
        let (tag, durable) = (done.tag, request.has(COMMAND_FUA));
        match self.client.write(&self.volume, at_bytes, buf, durable, done) {
            Accepted::Now => {
                self.link.retire(tag);
                self.answers.done(request.cookie);
            }
            Accepted::Later => {}
        }
    }

    fn wait_for_room(&mut self, request: &Request) -> Result<(), Hangup> {
        if self.link.has_room_for(request) {
            return Ok(());
        }
        self.send_answers()?;
        self.wait(|| self.link.wait_for_room(request))
    }

    /// Waits for what is no word of the client, and then looks for it.
    fn wait<T>(&self, wait: impl FnOnce() -> Result<T, Hangup>) -> Result<T, Hangup> {
        self.link.leave_unread(Some(end_of(self.incoming.unread())));
        let waited = wait();
        self.link.leave_unread(None);
        self.look_for_client()?;
        waited
    }

    /// Behind a wait: whether there still is somebody to carry anything out for.
    fn look_for_client(&self) -> Result<(), Hangup> {
        match has_given_up(self.source.socket(), self.incoming.unread()) {
            true => Err(Hangup),
            false => Ok(()),
        }
    }

    fn begin<A: Into<Reply>>(&mut self, request: Request) -> Result<Done<A>, Hangup> {
        self.wait_for_room(&request)?;
        Ok(self.begun(request))
    }

    fn begun<A: Into<Reply>>(&self, request: Request) -> Done<A> {
        let tag = self.link.begin(request);
        Done::new(Arc::clone(&self.link), tag)
    }
}

/// Who is told of one piece of a write: whoever sends the next.
struct Piece {
    link: Arc<Link>,
    ended: Sender<Outcome>,
}

impl Completions for Piece {
    fn complete(&self, _tag: u64, outcome: Outcome) {
        // A reader that has ended does not ask any more.
        let _ = self.ended.send(outcome);
    }

    fn is_gone(&self) -> bool {
        self.link.is_gone()
    }
}
