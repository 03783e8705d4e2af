//! The reader's thread in transmission: requests off the socket, admitted by [`door`].
//!
//! What ends at once is answered here: writes that the write buffer took, short reads of what is in
//! memory, refusals, CACHE. Those answers are gathered while the next request is already here, and
//! sent before this thread waits for anything. What waits for what, and which client is
//! disconnected, is [`door::Admission`]'s to say; when a client counts as gone,
//! [`crate::given_up`]'s.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use door::{Admission, Errno, Hangup, Operation};
use engine::{Client, OpenVolume, ReadPieces, RequestError};

use crate::background_rate::Turns;
use crate::changed::{Asked, Run, runs_of};
use crate::given_up::{end_of, has_given_up};
use crate::handshake::{ALLOCATION_CONTEXT, Agreed, Changed};
use crate::incoming::Incoming;
use crate::link::{Link, Wire, send_or_hand_over};
use crate::reply::{ReadRange, Replies, run_of};
use crate::request::Request;
use crate::socket::{READ_TIME, Watched};
use crate::validate::{self, Terms};
use crate::wire::{self, Command, PAYLOAD_BYTES_MAX, REQUEST_BYTES};

/// Payload that is refused is thrown away up to this length; beyond it the client is no client.
const DISCARDED_BYTES_MAX: usize = 2 * PAYLOAD_BYTES_MAX as usize;
/// Answers are sent when there are so many bytes of them: of a few reads.
const GATHERED_BYTES: usize = 32 << 10;
/// What answers find room in: those, and a read beside them.
pub(crate) const ANSWERS_BYTES: usize = GATHERED_BYTES + (48 << 10);

/// One connection in transmission, from the reader's end.
pub(crate) struct Session<'a> {
    client: &'a Client,
    admission: Admission<'a, Wire>,
    stream: Stream<'a>,
    structured: bool,
    allocation: bool,
    /// Snapshots since which it may be asked what changed.
    changed: Vec<Changed<OpenVolume>>,
    closing: &'a AtomicBool,
    turns: Turns<'a>,
}

/// What comes from the client, and answers that need no writer.
pub(crate) struct Stream<'a> {
    source: Watched<'a>,
    incoming: Incoming,
    answers: Replies,
    link: Arc<Link>,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(
        source: Watched<'a>,
        incoming: Incoming,
        answers: Replies,
        link: Arc<Link>,
    ) -> Self {
        Self { source, incoming, answers, link }
    }
}

impl<'a> Session<'a> {
    /// The volume is open until this is dropped.
    pub(crate) fn new(
        client: &'a Client,
        agreed: Agreed<OpenVolume>,
        stream: Stream<'a>,
        closing: &'a AtomicBool,
        turns: Turns<'a>,
    ) -> Self {
        let Agreed { export: volume, structured, allocation, changed } = agreed;
        let admission = Admission::new(client, volume, Arc::clone(&stream.link));
        Self { client, admission, stream, structured, allocation, changed, closing, turns }
    }

    /// Serves requests until the client disconnects.
    ///
    /// # Errors
    /// [`Hangup`] when it does so silently, or talks nonsense.
    pub(crate) fn run(&mut self) -> Result<(), Hangup> {
        let ended = self.serve_all();
        if ended.is_err() {
            let stream = &self.stream;
            stream.link.note_end(&end_of(stream.incoming.unread()));
        }
        ended
    }

    fn serve_all(&mut self) -> Result<(), Hangup> {
        loop {
            let request = self.stream.next_request()?;
            if request.command == Command::Disconnect {
                return self.stream.send_answers();
            }
            self.turns.count();
            if let Some(background_rate) = self.turns.background_rate {
                self.stream.send_answers()?;
                background_rate.await_turn();
            }
            if self.closing.load(Ordering::Acquire) {
                return self.stream.ignore_all();
            }
            match self.verdict(&request) {
                Ok(Request { operation: Operation::Extents { extents_max }, .. })
                    if !self.changed.is_empty() =>
                {
                    self.tell_contexts(&request, extents_max)?;
                }
                Ok(request) => self.admission.serve(&mut self.stream, request)?,
                Err((errno, sentence)) => self.stream.refuse(&request, errno, &sentence)?,
            }
            if self.stream.answers.as_bytes().len() >= GATHERED_BYTES {
                self.stream.send_answers()?;
            }
        }
    }

    /// Answers for every context that was chosen, where some are of changes. It waits for the
    /// engine meanwhile, and what came before goes on.
    fn tell_contexts(&mut self, request: &wire::Request, extents_max: u32) -> Result<(), Hangup> {
        self.stream.send_answers()?;
        let (cookie, operation) = (request.cookie, Operation::Extents { extents_max });
        match self.contexts(request, extents_max) {
            Ok(contexts) => self.stream.answers.statuses(cookie, &contexts),
            Err(error) => self.stream.answers.error(cookie, operation, &error),
        }
        Ok(())
    }

    fn contexts(
        &self,
        request: &wire::Request,
        extents_max: u32,
    ) -> Result<Vec<(u32, Vec<Run>)>, RequestError> {
        let (client, volume) = (self.client, self.admission.volume());
        let (offset_bytes, length_bytes) = (request.offset_bytes, u64::from(request.length_bytes));
        let mut contexts = Vec::new();
        if self.allocation {
            let extents =
                client.extents_blocking(volume, offset_bytes, length_bytes, extents_max)?;
            contexts.push((ALLOCATION_CONTEXT, extents.iter().map(run_of).collect()));
        }
        let asked = Asked { offset_bytes, length_bytes, one: extents_max == 1 };
        for context in &self.changed {
            contexts.push((context.id, runs_of(client, volume, context, asked)?));
        }
        Ok(contexts)
    }

    fn verdict(&self, request: &wire::Request) -> Result<Request, (wire::Errno, String)> {
        let volume = self.admission.volume();
        if volume.is_gone() {
            let sentence = format!("volume {} has been deleted", volume.name());
            return Err((Errno::Shutdown.into(), sentence));
        }
        let terms = Terms {
            size_bytes: volume.size_bytes(),
            read_only: volume.read_only(),
            structured: self.structured,
            contexts: self.allocation || !self.changed.is_empty(),
        };
        validate::check(request, &terms)
            .map_err(|refusal| (refusal.errno, refusal.sentence.to_owned()))
    }
}

impl Stream<'_> {
    fn next_request(&mut self) -> Result<wire::Request, Hangup> {
        loop {
            if let Some(bytes) = self.incoming.take_array::<REQUEST_BYTES>() {
                self.source.found_request();
                return wire::Request::decode(&bytes).ok_or(Hangup);
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
            send_or_hand_over(&self.link, self.answers.as_bytes())?;
            self.answers.clear();
        }
        Ok(())
    }

    fn refuse(
        &mut self,
        request: &wire::Request,
        errno: wire::Errno,
        sentence: &str,
    ) -> Result<(), Hangup> {
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
}

impl door::Reader<Wire> for Stream<'_> {
    fn received_bytes(&self) -> usize {
        self.incoming.unread().len()
    }

    fn receive(&mut self, target: &mut [u8], time_max: Duration) -> Result<usize, Hangup> {
        if time_max >= READ_TIME {
            return self.incoming.read_for(&mut self.source, target, time_max);
        }
        // A read of the socket waits for longer than that.
        self.source.socket().set_read_timeout(Some(time_max)).map_err(|_| Hangup)?;
        let filled = self.incoming.read_for(&mut self.source, target, time_max);
        self.source.socket().set_read_timeout(Some(READ_TIME)).map_err(|_| Hangup)?;
        filled
    }

    fn await_received(&mut self, length: usize) -> Result<(), Hangup> {
        self.incoming.await_here(&mut self.source, length)
    }

    fn put_back(&mut self, bytes: &[u8]) {
        self.incoming.put_back(bytes);
    }

    fn discard(&mut self, length: usize) -> Result<(), Hangup> {
        self.incoming.discard(&mut self.source, length)
    }

    fn answer_done(&mut self, request: &Request) {
        match request.operation {
            Operation::Read => self.answers.empty_read(request.tag.cookie),
            _ => self.answers.done(request.tag.cookie),
        }
    }

    fn answer_read(&mut self, request: &Request, pieces: &ReadPieces) {
        self.answers.read(&ReadRange::of(request), pieces);
    }

    fn answer_error(&mut self, request: &Request, error: &RequestError) {
        self.answers.error(request.tag.cookie, request.operation, error);
    }

    fn send_answers(&mut self) -> Result<(), Hangup> {
        self.send_answers()
    }

    fn unread(&self) -> Vec<u8> {
        end_of(self.incoming.unread())
    }

    fn has_given_up(&self) -> bool {
        has_given_up(self.source.socket(), self.incoming.unread())
    }
}
