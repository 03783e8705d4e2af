//! A store in memory with a server before it, and a client that may send anything.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;
use std::{env, process};

use disk::{Loss, MemoryDisk};
use engine::Client;
use nbd::wire::option::{
    OPT_GO, OPT_SET_META_CONTEXT, OPT_STRUCTURED_REPLY, OptionHeader, REP_ACK,
};
use nbd::wire::{Command, Fields, Request, SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC};
use nbd::{Listen, Server, ServerOptions};
use store::{CreateOptions, Options};

/// A test that waits longer than this has failed.
const PATIENCE: Duration = Duration::from_secs(20);
const CAPACITY_BYTES: u64 = 256 << 20;

/// A running store in memory.
pub(crate) struct Store {
    pub(crate) client: Client,
    disk: MemoryDisk,
    /// None once it is closed.
    running: Option<store::Store>,
}

impl Store {
    pub(crate) fn new() -> Self {
        let options = CreateOptions {
            uuid: Some([1; 16]),
            bucket_seed: Some([2; 16]),
            ..CreateOptions::new(CAPACITY_BYTES)
        };
        Self::open(store::create_in_memory(&options, 3).unwrap())
    }

    fn open(disk: MemoryDisk) -> Self {
        let engine =
            engine::Options { memory_bytes: 64 << 20, worker_threads: 1, ..Default::default() };
        let options = Options { engine, ..Default::default() };
        let running = store::Store::open_in_memory(&disk, options).unwrap();
        Self { client: running.client().clone(), disk, running: Some(running) }
    }

    /// What a volume would hold, had the power gone now and taken all that it may.
    pub(crate) fn left_of(&self, volume: &str) -> Vec<u8> {
        let left = Self::open(self.disk.left_by_power_loss(1, Loss::All));
        let volume = left.running.as_ref().unwrap().volume(volume).unwrap();
        let mut bytes = vec![0xaa; usize::try_from(volume.size_bytes()).unwrap()];
        volume.read_at(0, &mut bytes).unwrap();
        bytes
    }

    /// A store with these volumes, and a server at a unix socket.
    pub(crate) fn serving(volumes: &[(&str, u64)]) -> (Self, Server) {
        Self::serving_with(volumes, ServerOptions::default())
    }

    pub(crate) fn serving_with(volumes: &[(&str, u64)], options: ServerOptions) -> (Self, Server) {
        let store = Self::new();
        for (name, size_bytes) in volumes {
            store.client.create_volume(name, *size_bytes, name.starts_with("ro")).unwrap();
        }
        let options = ServerOptions { listen: vec![Listen::Unix(socket_path())], ..options };
        let server = Server::start(store.client.clone(), options).unwrap();
        (store, server)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // After a failure the engine may be what stands still: it is not waited for.
        if !thread::panicking() {
            self.running.take().unwrap().close().unwrap();
        }
    }
}

pub(crate) fn socket_path() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    env::temp_dir().join(format!("tamis-nbd-{}-{number}", process::id()))
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Simple { errno: u32, cookie: u64 },
    Chunk { done: bool, kind: u16, cookie: u64, payload: Vec<u8> },
}

impl Answer {
    /// Its error, whichever way it is told; 0 when it is none.
    pub(crate) fn errno(&self) -> u32 {
        match self {
            Self::Simple { errno, .. } => *errno,
            Self::Chunk { kind, payload, .. } if *kind == 1 << 15 | 1 => {
                Fields::new(payload).u32().unwrap()
            }
            Self::Chunk { .. } => 0,
        }
    }
}

/// A client without manners.
pub(crate) struct Peer<S> {
    pub(crate) stream: S,
}

impl Peer<UnixStream> {
    pub(crate) fn unix(server: &Server) -> Self {
        let [Listen::Unix(path)] = server.addresses() else { panic!("not one unix socket") };
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { stream }
    }

    /// In transmission, with simple replies.
    pub(crate) fn simple(server: &Server, export: &str) -> Self {
        let mut peer = Self::unix(server);
        peer.greet();
        peer.go(export);
        peer
    }

    /// In transmission, with structured replies and `base:allocation`.
    pub(crate) fn structured(server: &Server, export: &str) -> Self {
        let mut peer = Self::unix(server);
        peer.greet();
        peer.choose_all(export);
        peer.go(export);
        peer
    }
}

impl Peer<TcpStream> {
    pub(crate) fn tcp(address: &Listen) -> Self {
        let Listen::Tcp(address) = address else { panic!("not a TCP address") };
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream }
    }
}

impl<S: Read + Write> Peer<S> {
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub(crate) fn receive(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Whether the server has closed the connection, with nothing more to read.
    pub(crate) fn is_closed(&mut self) -> bool {
        is_end(&self.stream.read(&mut [0; 1]))
    }

    pub(crate) fn greet(&mut self) {
        assert_eq!(self.receive(18), b"NBDMAGICIHAVEOPT\0\x03");
        self.send(&[0, 0, 0, 3]);
    }

    pub(crate) fn option(&mut self, option: u32, data: &[u8]) {
        let mut bytes = Vec::new();
        let length_bytes = u32::try_from(data.len()).unwrap();
        OptionHeader { option, length_bytes }.encode(&mut bytes);
        self.send(&[&bytes, data].concat());
    }

    pub(crate) fn option_reply(&mut self) -> (u32, Vec<u8>) {
        let header = self.receive(20);
        let mut fields = Fields::new(&header[12..]);
        let (kind, length) = (fields.u32().unwrap(), fields.u32().unwrap());
        (kind, self.receive(length as usize))
    }

    /// Takes replies up to the last of an option, and returns that one's kind.
    pub(crate) fn last_option_reply(&mut self) -> u32 {
        loop {
            let (kind, _) = self.option_reply();
            if kind == REP_ACK || kind >= 1 << 31 {
                return kind;
            }
        }
    }

    pub(crate) fn choose_all(&mut self, export: &str) {
        self.option(OPT_STRUCTURED_REPLY, b"");
        assert_eq!(self.last_option_reply(), REP_ACK);
        let query = b"\0\0\0\x01\0\0\0\x0fbase:allocation";
        self.option(OPT_SET_META_CONTEXT, &[&string(export), query.as_slice()].concat());
        assert_eq!(self.last_option_reply(), REP_ACK);
    }

    pub(crate) fn go(&mut self, export: &str) {
        self.option(OPT_GO, &[&string(export), [0, 0].as_slice()].concat());
        assert_eq!(self.last_option_reply(), REP_ACK);
    }

    pub(crate) fn answer(&mut self) -> Answer {
        self.next_answer().unwrap()
    }

    /// The next answer; none when the server has closed the connection before it.
    pub(crate) fn next_answer(&mut self) -> Option<Answer> {
        let mut front = [0; 16];
        let begun = self.stream.read(&mut front[..1]);
        if is_end(&begun) {
            return None;
        }
        begun.unwrap();
        self.stream.read_exact(&mut front[1..]).unwrap();
        let mut fields = Fields::new(&front);
        Some(match fields.u32().unwrap() {
            SIMPLE_REPLY_MAGIC => {
                let errno = fields.u32().unwrap();
                Answer::Simple { errno, cookie: fields.u64().unwrap() }
            }
            STRUCTURED_REPLY_MAGIC => {
                let (flags, kind) = (fields.u16().unwrap(), fields.u16().unwrap());
                let cookie = fields.u64().unwrap();
                let length = Fields::new(&self.receive(4)).u32().unwrap();
                let payload = self.receive(length as usize);
                Answer::Chunk { done: flags & 1 != 0, kind, cookie, payload }
            }
            other => panic!("{other:#x} begins no reply"),
        })
    }

    /// Sends one request and takes the one answer to it.
    pub(crate) fn ask(&mut self, request: &Request, payload: &[u8]) -> Answer {
        let mut bytes = Vec::new();
        request.encode(&mut bytes);
        self.send(&bytes);
        self.send(payload);
        self.answer()
    }

    /// A read with simple replies.
    pub(crate) fn read(&mut self, offset_bytes: u64, length_bytes: u32) -> Vec<u8> {
        let request = request(Command::Read, 0, offset_bytes, length_bytes);
        assert_eq!(self.ask(&request, b"").errno(), 0);
        self.receive(length_bytes as usize)
    }
}

fn is_end(read: &io::Result<usize>) -> bool {
    match read {
        Ok(length) => *length == 0,
        Err(error) => matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe),
    }
}

/// A string behind its length.
pub(crate) fn string(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap().to_be_bytes();
    [length.as_slice(), text.as_bytes()].concat()
}

pub(crate) fn request(
    command: Command,
    flags: u16,
    offset_bytes: u64,
    length_bytes: u32,
) -> Request {
    Request { flags, command, cookie: 77, offset_bytes, length_bytes }
}
