//! A transport without a wire: answers go to a list, and tests say what the client does.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use disk::MemoryDisk;
use engine::{Client, Extent, OpenVolume, Opener, ReadPieces, Reply, RequestError};
use store::{CreateOptions, Options, Store};

use crate::{
    Admission, Batch, Connection, Errno, Hangup, Load, Operation, Outcome, Reader, Request,
    SharedGrace, SlowClientPolicy, Transport,
};

pub(crate) const MIB: u64 = 1 << 20;

/// What a client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    Bytes(Vec<u8>),
    Extents(Vec<Extent>),
    Failed(Errno),
}

pub(crate) type Answers = Vec<(u64, Answer)>;

fn read_of(pieces: &ReadPieces) -> Answer {
    let mut bytes = vec![0xaa; pieces.length_bytes()];
    match pieces.assemble(&mut bytes) {
        Ok(()) => Answer::Bytes(bytes),
        Err(error) => Answer::Failed(Errno::of(&error, Operation::Read)),
    }
}

fn answer_of(request: &Request<u64>, outcome: &Outcome) -> Answer {
    match outcome {
        Ok(Reply::Read(pieces)) => read_of(pieces),
        Ok(Reply::Extents(extents)) => Answer::Extents(extents.clone()),
        Ok(_) => Answer::Done,
        Err(error) => Answer::Failed(Errno::of(error, request.operation)),
    }
}

#[derive(Debug, Default)]
pub(crate) struct Fake {
    pub(crate) sent: Mutex<Answers>,
    turn: Mutex<()>,
    /// Whether the core may send.
    pub(crate) takes_at_once: AtomicBool,
    /// Answers that the core has sent.
    pub(crate) by_core: AtomicUsize,
    pub(crate) is_closed: AtomicBool,
    /// The client has gone, which only its reader, or who looks at what that left, sees.
    pub(crate) has_left: AtomicBool,
}

#[derive(Debug, Default)]
pub(crate) struct FakeOutbox(pub(crate) Answers);

impl crate::Outbox for FakeOutbox {
    type Encoded = Answers;

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn owes_rest(&self) -> bool {
        false
    }

    fn swap(&mut self, encoded: &mut Answers) {
        std::mem::swap(&mut self.0, encoded);
    }
}

impl Transport for Fake {
    type Tag = u64;
    type Unread = ();
    type Outbox = FakeOutbox;
    type Turn<'a> = MutexGuard<'a, ()>;

    fn try_turn(&self) -> Option<MutexGuard<'_, ()>> {
        if self.takes_at_once.load(Ordering::Acquire) { self.turn.try_lock().ok() } else { None }
    }

    fn answer_at_once(
        &self,
        _turn: MutexGuard<'_, ()>,
        _outbox: &mut FakeOutbox,
        request: &Request<u64>,
        outcome: Outcome,
    ) {
        self.by_core.fetch_add(1, Ordering::AcqRel);
        self.sent.lock().unwrap().push((request.tag, answer_of(request, &outcome)));
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    fn has_given_up(&self, (): &()) -> bool {
        self.has_left.load(Ordering::Acquire)
    }

    fn stop_receiving(&self) {}

    fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }
}

pub(crate) type FakeConnection = Connection<Fake>;

pub(crate) fn connection() -> Arc<FakeConnection> {
    connection_with(usize::MAX, || false)
}

pub(crate) fn connection_with(
    read_share_bytes: usize,
    is_memory_wanted: impl Fn() -> bool + Send + Sync + 'static,
) -> Arc<FakeConnection> {
    let slow_clients = SlowClientPolicy {
        reply_grace: Arc::new(SharedGrace::of_replies(Duration::ZERO)),
        is_memory_wanted: Box::new(is_memory_wanted),
        payload_grace: Arc::new(SharedGrace::of_payloads()),
    };
    let outbox = FakeOutbox::default();
    Arc::new(Connection::new(Fake::default(), outbox, read_share_bytes, slow_clients))
}

pub(crate) fn request(operation: Operation, offset_bytes: u64, length_bytes: u32) -> Request<u64> {
    Request { operation, offset_bytes, length_bytes, durable: false, tag: offset_bytes }
}

/// The writer's thread: answers outcomes in the order in which they come.
pub(crate) fn writer(connection: &Arc<FakeConnection>) -> JoinHandle<()> {
    let connection = Arc::clone(connection);
    thread::spawn(move || {
        let mut batch = Batch::default();
        while connection.next_batch(&mut batch) {
            connection.transport().sent.lock().unwrap().append(&mut batch.encoded);
            let mut load = Load::default();
            for (request, outcome) in batch.outcomes.drain(..) {
                let answer = answer_of(&request, &outcome);
                connection.transport().sent.lock().unwrap().push((request.tag, answer));
                load.add(&request);
            }
            connection.release(load);
        }
    })
}

/// A reader whose payloads are here already, or come in parts.
pub(crate) struct FakeReader {
    connection: Arc<FakeConnection>,
    pub(crate) received: VecDeque<u8>,
    /// What comes when somebody waits for it; nothing more is the end of the client.
    pub(crate) to_come: VecDeque<Vec<u8>>,
    gathered: Answers,
    /// How often this was asked to send before it would wait.
    pub(crate) sends: Arc<AtomicUsize>,
    /// Called while a payload is waited for.
    pub(crate) while_waiting: Box<dyn FnMut() + Send>,
}

impl FakeReader {
    pub(crate) fn new(connection: &Arc<FakeConnection>) -> Self {
        Self {
            connection: Arc::clone(connection),
            received: VecDeque::new(),
            to_come: VecDeque::new(),
            gathered: Vec::new(),
            sends: Arc::default(),
            while_waiting: Box::new(|| {}),
        }
    }
}

impl Reader<Fake> for FakeReader {
    fn received_bytes(&self) -> usize {
        self.received.len()
    }

    fn receive(&mut self, target: &mut [u8], _time_max: Duration) -> Result<usize, Hangup> {
        let length = target.len().min(self.received.len());
        for (to, from) in target.iter_mut().zip(self.received.drain(..length)) {
            *to = from;
        }
        Ok(length)
    }

    fn await_received(&mut self, length: usize) -> Result<(), Hangup> {
        while self.received.len() < length {
            (self.while_waiting)();
            self.received.extend(self.to_come.pop_front().ok_or(Hangup)?);
        }
        Ok(())
    }

    fn put_back(&mut self, bytes: &[u8]) {
        assert!(self.received.is_empty(), "only what came last is put back");
        self.received.extend(bytes);
    }

    fn discard(&mut self, length: usize) -> Result<(), Hangup> {
        self.await_received(length)?;
        self.received.drain(..length);
        Ok(())
    }

    fn answer_done(&mut self, request: &Request<u64>) {
        self.gathered.push((request.tag, Answer::Done));
    }

    fn answer_read(&mut self, request: &Request<u64>, pieces: &ReadPieces) {
        self.gathered.push((request.tag, read_of(pieces)));
    }

    fn answer_error(&mut self, request: &Request<u64>, error: &RequestError) {
        let answer = Answer::Failed(Errno::of(error, request.operation));
        self.gathered.push((request.tag, answer));
    }

    fn send_answers(&mut self) -> Result<(), Hangup> {
        self.connection.transport().sent.lock().unwrap().append(&mut self.gathered);
        self.sends.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    fn unread(&self) {}

    fn has_given_up(&self) -> bool {
        self.connection.transport().has_left.load(Ordering::Acquire)
    }
}

/// A store that runs, and its volume `v`.
pub(crate) fn running(size_bytes: u64) -> (Store, OpenVolume) {
    let disk: MemoryDisk = store::create_in_memory(&CreateOptions::new(64 * MIB), 1).unwrap();
    let engine = engine::Options { memory_bytes: 64 * MIB, ..engine::Options::default() };
    let options = Options { engine, ..Options::default() };
    let store = Store::open_in_memory(&disk, options).unwrap();
    store.client().create_volume("v", size_bytes, false).unwrap();
    let volume = open(store.client());
    (store, volume)
}

pub(crate) fn open(client: &Client) -> OpenVolume {
    client.open_volume("v", Opener::new("a test", 0)).unwrap()
}

/// Serves one request whose payload is here.
pub(crate) fn serve(
    admission: &mut Admission<'_, Fake>,
    reader: &mut FakeReader,
    request: Request<u64>,
    payload: &[u8],
) -> Result<(), Hangup> {
    reader.received.extend(payload);
    admission.serve(reader, request)
}

/// No further request; what was answered comes when all has been.
pub(crate) fn finish(
    connection: &Arc<FakeConnection>,
    reader: &mut FakeReader,
    writer: JoinHandle<()>,
) -> Answers {
    reader.send_answers().unwrap();
    connection.end_reading();
    writer.join().unwrap();
    assert!(!connection.is_busy());
    connection.transport().sent.lock().unwrap().clone()
}
