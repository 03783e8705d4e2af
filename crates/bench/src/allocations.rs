//! Who allocates how often for an operation of 4 KiB, in steady state: none should.
//!
//! The whole server is in this process, with its door: a client of ours (`peer.rs`) writes and
//! reads over a socket, and keeps its own buffers. A volume is written in full first; then each
//! kind of operation is done as often as it will be counted, and only then counted. What the
//! server does meanwhile by itself (checkpoints, merges, containers that are full) is counted as
//! well. A count is no time: it is much the same on any machine and in any build, but not exactly,
//! since how many operations the core finds waiting is chance.

mod page;
mod peer;
mod profile;

use std::io;
use std::path::Path;

use engine::Options;
use nbd::{Listen, Server, ServerOptions};
use serde::Serialize;

use crate::args::Args;
use crate::failure::Failure;
use crate::heap;
use crate::program::socket_path;
use crate::source::CHUNK_BYTES;
use crate::store::{Store, capacity_for};
use peer::{Ask, Peer};
use profile::{Part, Site, sites};

const VOLUME: &str = "bench";
/// Requests in flight, but for those who flush.
const DEPTH: usize = 32;
/// Chunks of what is read again and again.
const HOT_CHUNKS: u64 = 1024;
/// Odd, so that counting on by it meets every chunk of a volume of 2^n once.
const STRIDE: u64 = 40_503;
/// Places that are told of each operation.
const SITES_MAX: usize = 10;

/// What was counted.
#[derive(Debug, Serialize)]
pub(crate) struct Allocations {
    pub(crate) operations: u64,
    pub(crate) volume_bytes: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) kinds: Vec<Counted>,
}

/// What operations of one kind allocated.
#[derive(Debug, Serialize)]
pub(crate) struct Counted {
    pub(crate) operation: &'static str,
    pub(crate) operations: u64,
    /// Of the server's threads, and the places where most of them are made.
    pub(crate) allocations: u64,
    pub(crate) bytes: u64,
    pub(crate) parts: Vec<PartCount>,
    pub(crate) sites: Vec<Site>,
}

/// What threads of one kind allocated.
#[derive(Debug, Serialize)]
pub(crate) struct PartCount {
    pub(crate) part: Part,
    pub(crate) allocations: u64,
    pub(crate) bytes: u64,
}

#[derive(Copy, Clone, Debug)]
enum Operation {
    UniqueWrite,
    DuplicateWrite,
    HotRead,
    ColdRead,
    FlushedWrite,
}

impl Operation {
    const ALL: [Self; 5] = [
        Self::UniqueWrite,
        Self::DuplicateWrite,
        Self::HotRead,
        Self::ColdRead,
        Self::FlushedWrite,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::UniqueWrite => "write, unique",
            Self::DuplicateWrite => "write, duplicate",
            Self::HotRead => "read, hot",
            Self::ColdRead => "read, cold",
            Self::FlushedWrite => "write, unique, and a flush",
        }
    }
}

/// All kinds of operations, on a store in `folder`.
pub(crate) fn measure(args: &Args, folder: &Path) -> Result<Allocations, Failure> {
    if !heap::RECORDS {
        return Err(Failure::NotRecording);
    }
    count(args.volume_chunks(), args.operations, args.memory_bytes(), folder)
}

fn count(
    chunks: u64,
    operations: u64,
    memory_bytes: u64,
    folder: &Path,
) -> Result<Allocations, Failure> {
    let path = folder.join("allocations");
    let volume_bytes = chunks * CHUNK_BYTES as u64;
    Store::make(&path, capacity_for(volume_bytes))?;
    let options = Options { memory_bytes, worker_threads: 1, sync: false, ..Default::default() };
    let store = Store::open(&path, &options)?;
    store.client().create_volume(VOLUME, volume_bytes, false)?;
    let socket = socket_path("allocations");
    let listen = vec![Listen::Unix(socket.clone())];
    let door = Server::start(
        store.client().clone(),
        ServerOptions { listen, ..ServerOptions::default() },
    )?;
    let counted = Load::connect(&socket, chunks)
        .and_then(|load| load.count_all(operations, folder))
        .map_err(Failure::file(&socket));
    door.stop();
    let kinds = counted?;
    store.close()?;
    std::fs::remove_dir_all(&path).map_err(Failure::file(&path))?;
    Ok(Allocations { operations, volume_bytes, memory_bytes, kinds })
}

/// A client of the volume, and how far it has come.
struct Load {
    peer: Peer,
    chunks: u64,
    /// The next content that nobody has seen; those below `chunks` fill the volume.
    unseen: u64,
    /// Operations that were done, of all kinds.
    turn: u64,
    asked: Vec<Ask>,
}

impl Load {
    /// A client that has written every chunk once.
    fn connect(socket: &Path, chunks: u64) -> io::Result<Self> {
        let peer = Peer::connect(socket, VOLUME)?;
        let mut load = Self { peer, chunks, unseen: 0, turn: 0, asked: Vec::new() };
        load.perform(Operation::UniqueWrite, chunks)?;
        load.peer.exchange(&[Ask::Flush])?;
        Ok(load)
    }

    fn count_all(mut self, operations: u64, folder: &Path) -> io::Result<Vec<Counted>> {
        let file = folder.join("heap.json");
        let mut kinds = Vec::new();
        for operation in Operation::ALL {
            self.perform(operation, operations)?;
            heap::recorded(&file, || self.perform(operation, operations))?;
            let json = if heap::RECORDS { std::fs::read_to_string(&file)? } else { String::new() };
            kinds.push(Counted::new(operation, operations, &json)?);
        }
        self.peer.disconnect()?;
        Ok(kinds)
    }

    /// Does so many operations of a kind.
    fn perform(&mut self, operation: Operation, operations: u64) -> io::Result<()> {
        let depth = if matches!(operation, Operation::FlushedWrite) { 1 } else { DEPTH };
        let mut left = operations;
        while left > 0 {
            let count = left.min(depth as u64);
            self.asked.clear();
            for _ in 0..count {
                let ask = self.next(operation);
                self.asked.push(ask);
            }
            self.peer.exchange(&self.asked)?;
            if matches!(operation, Operation::FlushedWrite) {
                self.peer.exchange(&[Ask::Flush])?;
            }
            left -= count;
        }
        Ok(())
    }

    fn next(&mut self, operation: Operation) -> Ask {
        self.turn += 1;
        let chunk = self.turn.wrapping_mul(STRIDE) % self.chunks;
        match operation {
            Operation::UniqueWrite | Operation::FlushedWrite => {
                self.unseen += 1;
                Ask::Write { chunk, content: self.unseen }
            }
            // The younger half of what fills the volume: the older may be gone.
            Operation::DuplicateWrite => {
                Ask::Write { chunk, content: self.unseen - chunk % (self.chunks / 2) }
            }
            Operation::HotRead => Ask::Read { chunk: chunk % HOT_CHUNKS },
            Operation::ColdRead => Ask::Read { chunk },
        }
    }
}

impl Counted {
    fn new(operation: Operation, operations: u64, json: &str) -> io::Result<Self> {
        let all = match json {
            "" => Some(Vec::new()),
            json => sites(json),
        };
        let all = all.ok_or_else(|| io::Error::other("DHAT wrote what is no profile"))?;
        // Else nobody would seem to allocate anything.
        if !all.is_empty() && all.iter().all(|site| !site.is_ours()) {
            let sentence =
                "this build does not name functions in full; one with --profile counting does";
            return Err(io::Error::other(sentence));
        }
        let count = |part| {
            let of = all.iter().filter(|site| site.part == part);
            let (allocations, bytes) =
                of.fold((0, 0), |(count, sum), site| (count + site.allocations, sum + site.bytes));
            PartCount { part, allocations, bytes }
        };
        let parts: Vec<_> = [Part::Core, Part::Workers, Part::Door].map(count).into();
        Ok(Self {
            operation: operation.name(),
            operations,
            allocations: parts.iter().map(|part| part.allocations).sum(),
            bytes: parts.iter().map(|part| part.bytes).sum(),
            parts,
            sites: {
                let servers = all.into_iter().filter(|site| site.part != Part::Others);
                servers.take(SITES_MAX).collect()
            },
        })
    }
}

#[cfg(test)]
mod tests;
