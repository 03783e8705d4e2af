//! An engine that does only the steps that a test asks for.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use disk::MemoryDisk;
use engine::{
    Accepted, ChunkBuf, Client, Completions, Done, Engine, OpenVolume, Reply, RequestError,
    Reservation, ReservedFor, WriteOptions, WriteRoom, control,
};

use super::{Opens, Wish};

/// Steps without any movement after which nothing will come.
const STILL_MAX: u32 = 2_000;

type Outcome = Result<Reply, RequestError>;

#[derive(Default)]
pub(crate) struct Inbox(pub(crate) Mutex<Vec<(u64, Outcome)>>);

impl Completions for Inbox {
    fn complete(&self, tag: u64, outcome: Outcome) {
        self.0.lock().unwrap().push((tag, outcome));
    }
}

/// A store whose engine is stepped by hand.
pub(crate) struct Hand {
    pub(crate) disk: MemoryDisk,
    pub(crate) engine: Engine,
    pub(crate) client: Client,
    inbox: Arc<Inbox>,
    next_tag: u64,
}

impl Hand {
    pub(crate) fn new(wish: &Wish) -> Self {
        Self::open(wish, wish.disk())
    }

    pub(crate) fn open(wish: &Wish, disk: MemoryDisk) -> Self {
        let (engine, client, _, _) = wish.load(&disk).unwrap();
        Self::of(disk, engine, client)
    }

    /// An engine whose disk is `disk`, whatever stands before it.
    pub(crate) fn of(disk: MemoryDisk, engine: Engine, client: Client) -> Self {
        Self { disk, engine, client, inbox: Arc::default(), next_tag: 0 }
    }

    pub(crate) fn done<A: Into<Reply>>(&mut self) -> (u64, Done<A>) {
        self.next_tag += 1;
        (self.next_tag, Done::new(Arc::clone(&self.inbox), self.next_tag))
    }

    /// How much is yet to be given back, asked without a tick.
    pub(crate) fn deletions(&mut self) -> u64 {
        let (tag, done) = self.done();
        self.client.administer(control::GetStats {}, done);
        let Ok(Reply::Stats(stats)) = self.wait(tag) else { panic!("no figures") };
        stats.deletions
    }

    /// The outcome of a request, if it has come.
    pub(crate) fn outcome(&self, tag: u64) -> Option<Outcome> {
        let mut arrived = self.inbox.0.lock().unwrap();
        let at = arrived.iter().position(|(of, _)| *of == tag)?;
        Some(arrived.swap_remove(at).1)
    }

    /// Steps until the outcome of a request has come.
    pub(crate) fn wait(&mut self, tag: u64) -> Outcome {
        let mut still = 0;
        loop {
            if let Some(outcome) = self.outcome(tag) {
                return outcome;
            }
            if !self.engine.step() {
                still += 1;
                self.engine.tick();
            }
            assert!(still < STILL_MAX, "the engine stands still");
        }
    }

    /// Steps until `is_so`; what another thread does beside ends between two steps.
    pub(crate) fn step_until(&mut self, what: &str, is_so: impl Fn() -> bool) {
        let mut still = 0;
        while !is_so() {
            if !self.engine.step() {
                still += 1;
                std::thread::sleep(Duration::from_millis(1));
            }
            assert!(still < STILL_MAX, "{what}: the engine stands still");
        }
    }

    pub(crate) fn steps(&mut self, count: u64) {
        for _ in 0..count {
            self.engine.step();
        }
    }

    /// Steps until nothing moves.
    pub(crate) fn settle(&mut self) {
        for _ in 0..100_000 {
            if !self.engine.step() {
                return;
            }
        }
        panic!("the engine never comes to rest");
    }

    /// A write; None when it is acknowledged at once, else the tag of its answer.
    pub(crate) fn write(&mut self, volume: &OpenVolume, offset: u64, bytes: &[u8]) -> Option<u64> {
        self.send_write(volume, offset, bytes, false)
    }

    /// A write with FUA.
    pub(crate) fn write_durable(&mut self, volume: &OpenVolume, offset: u64, bytes: &[u8]) -> u64 {
        self.send_write(volume, offset, bytes, true).unwrap()
    }

    fn send_write(
        &mut self,
        volume: &OpenVolume,
        offset_bytes: u64,
        bytes: &[u8],
        durable: bool,
    ) -> Option<u64> {
        let (tag, done) = self.done();
        let mut buf = self.client.buffer(offset_bytes, bytes.len());
        buf.bytes_mut().copy_from_slice(bytes);
        let accepted = self.client.write(volume, offset_bytes, buf, durable, done);
        (accepted == Accepted::Later).then_some(tag)
    }

    /// The writes of a vector; None when they are acknowledged at once.
    pub(crate) fn write_vector(
        &mut self,
        volume: &OpenVolume,
        writes: &[(u64, &[u8])],
        options: WriteOptions,
    ) -> Option<u64> {
        let (tag, done) = self.done();
        let writes = self.filled(writes);
        let accepted = self.client.write_vectored(volume, writes, options, done);
        (accepted == Accepted::Later).then_some(tag)
    }

    /// The same with room that is reserved.
    pub(crate) fn write_reserved(
        &mut self,
        reservation: &Reservation,
        writes: &[(u64, &[u8])],
        options: WriteOptions,
    ) -> Option<u64> {
        let (tag, done) = self.done();
        let writes = self.filled(writes);
        let accepted = self.client.write_reserved(reservation, writes, options, done);
        (accepted == Accepted::Later).then_some(tag)
    }

    fn filled(&self, writes: &[(u64, &[u8])]) -> Vec<(u64, ChunkBuf)> {
        let lengths = writes.iter().map(|(offset_bytes, bytes)| (*offset_bytes, bytes.len()));
        let bufs = self.client.buffers(lengths);
        let fill = |(&(offset_bytes, bytes), mut buf): (&(u64, &[u8]), ChunkBuf)| {
            buf.bytes_mut().copy_from_slice(bytes);
            (offset_bytes, buf)
        };
        writes.iter().zip(bufs).map(fill).collect()
    }

    /// Room for writes, or why there is none.
    pub(crate) fn reserve(
        &mut self,
        volume: &OpenVolume,
        room: WriteRoom,
        reserved_for: ReservedFor,
    ) -> Result<Reservation, RequestError> {
        let (tag, done) = self.done();
        self.client.reserve_with(volume, room, reserved_for, done);
        match self.wait(tag)? {
            Reply::Reservation(reservation) => Ok(reservation),
            other => panic!("no reservation: {other:?}"),
        }
    }

    pub(crate) fn trim(
        &mut self,
        volume: &OpenVolume,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> u64 {
        let (tag, done) = self.done();
        self.client.trim(volume, offset_bytes, length_bytes, false, done);
        tag
    }

    pub(crate) fn flush(&mut self) -> u64 {
        let (tag, done) = self.done();
        self.client.flush(done);
        tag
    }

    pub(crate) fn read(&mut self, volume: &OpenVolume, offset: u64, length: u32) -> Vec<u8> {
        let (tag, done) = self.done();
        self.client.read(volume, offset, length, done);
        self.bytes_of(tag)
    }

    /// What a read comes to.
    pub(crate) fn bytes_of(&mut self, tag: u64) -> Vec<u8> {
        let Reply::Read(pieces) = self.wait(tag).unwrap() else { panic!("no bytes") };
        let mut bytes = vec![0xaa; pieces.length_bytes()];
        pieces.assemble(&mut bytes).unwrap();
        bytes
    }

    /// A blocking call, made on a thread of its own while the engine is stepped.
    pub(crate) fn beside<T: Send + 'static>(
        &mut self,
        call: impl FnOnce(Client) -> T + Send + 'static,
    ) -> T {
        let client = self.client.clone();
        let caller = std::thread::spawn(move || call(client));
        while !caller.is_finished() {
            if !self.engine.step() {
                self.engine.tick();
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        caller.join().unwrap()
    }

    pub(crate) fn volume(&mut self, name: &str, size_bytes: u64) -> OpenVolume {
        let name = name.to_owned();
        self.beside(move |client| {
            client.create_volume(&name, size_bytes, false).unwrap();
            client.volume(&name).unwrap()
        })
    }

    /// Closes the store, at once, and gives its disk.
    pub(crate) fn close(mut self) -> MemoryDisk {
        let (tag, done) = self.done();
        self.client.administer(control::Close {}, done);
        self.wait(tag).unwrap();
        self.disk
    }
}
