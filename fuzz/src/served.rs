//! A store in memory, the real server before it, and connections that are past the handshake.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nbd::wire::Fields;
use nbd::wire::option::{
    OPT_GO, OPT_SET_META_CONTEXT, OPT_STRUCTURED_REPLY, OptionHeader, REP_ACK,
};
use nbd::{Listen, Server, ServerOptions};
use store::{CreateOptions, Options, Store};

/// Of every volume.
pub const VOLUME_BYTES: u64 = 1 << 20;
const CAPACITY_BYTES: u64 = 256 << 20;
const MEMORY_BYTES: u64 = 64 << 20;
/// A server that neither answers nor ends for so long hangs.
const PATIENCE: Duration = Duration::from_secs(20);
const GREETING_BYTES: usize = 18;
const OPTION_REPLY_BYTES: usize = 20;

/// The store and its server, for as long as the process lives.
pub struct Served {
    store: Store,
    socket: PathBuf,
    volumes: AtomicU64,
    _server: Server,
}

/// A volume that nobody has written, and a connection to it.
pub struct Visit {
    /// The connection, in transmission.
    pub stream: UnixStream,
    volume: String,
}

/// The one of this process.
pub fn served() -> &'static Served {
    static SERVED: OnceLock<Served> = OnceLock::new();
    SERVED.get_or_init(Served::begin)
}

impl Served {
    fn begin() -> Self {
        let store = run_store();
        let socket = PathBuf::from(format!("/tmp/tamis-fuzz-{}.sock", std::process::id()));
        let listen = vec![Listen::Unix(socket.clone())];
        let options = ServerOptions { listen, ..ServerOptions::default() };
        let server = Server::start(store.client().clone(), options).expect("it can listen there");
        Self { store, socket, volumes: AtomicU64::new(0), _server: server }
    }

    /// A new volume, and a connection to it: with structured replies and extents, or simple ones.
    pub fn visit(&self, read_only: bool, structured: bool) -> Visit {
        let volume = format!("v{}", self.volumes.fetch_add(1, Ordering::Relaxed));
        let made = self.store.client().create_volume(&volume, VOLUME_BYTES, read_only);
        made.expect("there is room for a volume");
        let stream = UnixStream::connect(&self.socket).expect("the server accepts");
        let mut visit = Visit { stream, volume };
        visit.negotiate(structured).expect("the server goes on after any client");
        visit
    }

    /// Gives back what a visit wrote.
    pub fn leave(&self, visit: Visit) {
        self.store.client().delete_volume(&visit.volume).expect("it is there");
    }
}

impl Visit {
    fn negotiate(&mut self, structured: bool) -> std::io::Result<()> {
        self.stream.set_read_timeout(Some(PATIENCE))?;
        self.stream.read_exact(&mut [0; GREETING_BYTES])?;
        self.stream.write_all(&3_u32.to_be_bytes())?;
        let name = [&(self.volume.len() as u32).to_be_bytes(), self.volume.as_bytes()].concat();
        if structured {
            self.choose(OPT_STRUCTURED_REPLY, &[])?;
            let context = b"\0\0\0\x01\0\0\0\x0fbase:allocation";
            self.choose(OPT_SET_META_CONTEXT, &[name.as_slice(), context].concat())?;
        }
        self.choose(OPT_GO, &[name.as_slice(), &[0, 0]].concat())
    }

    fn choose(&mut self, option: u32, data: &[u8]) -> std::io::Result<()> {
        let mut out = Vec::new();
        OptionHeader { option, length_bytes: data.len() as u32 }.encode(&mut out);
        out.extend_from_slice(data);
        self.stream.write_all(&out)?;
        loop {
            let mut head = [0; OPTION_REPLY_BYTES];
            self.stream.read_exact(&mut head)?;
            let mut fields = Fields::new(&head[12..]);
            let (kind, length) = (fields.u32(), fields.u32().unwrap_or(0));
            self.stream.read_exact(&mut vec![0; length as usize])?;
            match kind {
                Some(REP_ACK) => return Ok(()),
                Some(kind) if kind < 1 << 31 => {}
                refused => panic!("option {option} is refused: {refused:?}"),
            }
        }
    }
}

/// Begins a store in memory.
fn run_store() -> Store {
    let options = CreateOptions {
        uuid: Some([1; 16]),
        bucket_seed: Some([2; 16]),
        ..CreateOptions::new(CAPACITY_BYTES)
    };
    let disk = store::create_in_memory(&options, 3);
    let disk = disk.expect("such stores are made every day");
    let engine =
        engine::Options { memory_bytes: MEMORY_BYTES, worker_threads: 1, ..Default::default() };
    let options = Options { engine, ..Default::default() };
    Store::open_in_memory(&disk, options).expect("a new store opens")
}
