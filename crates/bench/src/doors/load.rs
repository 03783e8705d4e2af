//! What a client asks for, whatever answers: the same requests with the same bytes go to Tamis
//! through NBD, to the server that does nothing, and to the engine in this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::fio::{Job, Pattern};
use crate::source::{CHUNK_BYTES, Chance, fill};

/// Contents that are made before; an identifier stamped on each makes it another one.
const TEMPLATES: u64 = 64;
/// How many requests back a duplicate may reach.
const RECENT: u64 = 1024;
/// Identifiers of one run begin at a multiple of this.
const RUN_IDS: u64 = 1 << 44;
/// Chunks that random reads stay in: they fit into every cache.
const HOT_CHUNKS: u64 = 16 << 10;

/// When a write is answered.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    /// As soon as the server has it.
    Buffered,
    /// At once; a flush of its own follows before the next one.
    FlushEach,
    /// When it is durable (FUA).
    Fua,
}

/// What is done for a while.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) name: &'static str,
    /// Of a hundred requests so many read, the others write.
    pub(super) read_percent: u64,
    pub(super) random: bool,
    pub(super) block_bytes: u32,
    /// Requests in flight on each connection.
    pub(super) depth: usize,
    pub(super) connections: u64,
    pub(super) durability: Durability,
}

impl Load {
    const RANDOM_WRITE: Self = Self {
        name: "random write, depth 32",
        read_percent: 0,
        random: true,
        block_bytes: CHUNK_BYTES as u32,
        depth: 32,
        connections: 1,
        durability: Durability::Buffered,
    };
    /// Sequential requests of 1 MiB that write a volume.
    pub(super) const SEQUENTIAL_WRITE: Self = Self {
        name: "sequential write, 1 MiB, depth 4",
        random: false,
        block_bytes: 1 << 20,
        depth: 4,
        ..Self::RANDOM_WRITE
    };
    /// A client that waits for its write and then for its flush.
    pub(super) const FLUSHED: Self = Self {
        name: "flushed writes, 1 client",
        depth: 1,
        durability: Durability::FlushEach,
        ..Self::RANDOM_WRITE
    };
    /// The rows, in the order in which they are measured.
    pub(super) const ALL: [Self; 8] = [
        Self::SEQUENTIAL_WRITE,
        Self {
            name: "sequential read, 1 MiB, depth 4",
            read_percent: 100,
            ..Self::SEQUENTIAL_WRITE
        },
        Self { name: "random read, hot, depth 32", read_percent: 100, ..Self::RANDOM_WRITE },
        Self {
            name: "random read, hot, 4 x 32",
            read_percent: 100,
            connections: 4,
            ..Self::RANDOM_WRITE
        },
        Self::RANDOM_WRITE,
        Self { name: "random write, 4 x 32", connections: 4, ..Self::RANDOM_WRITE },
        Self::FLUSHED,
        Self { name: "flushed writes, 8 clients", connections: 8, ..Self::FLUSHED },
    ];

    /// The same for fio, as nearly as it can be asked for.
    pub(super) fn as_fio(self, volume_bytes: u64, round: u64, seconds: u64) -> Job {
        let pattern = match (self.random, self.read_percent) {
            (true, 0) => Pattern::RandomWrite,
            (true, 100) => Pattern::RandomRead,
            (true, _) => Pattern::Mixed,
            (false, 0) => Pattern::Write,
            (false, _) => Pattern::Read,
        };
        let hot = self.random && self.read_percent == 100;
        let size_bytes = match hot {
            true => volume_bytes.min(HOT_CHUNKS * CHUNK_BYTES as u64),
            false => volume_bytes,
        };
        Job {
            block_bytes: u64::from(self.block_bytes),
            connections: self.connections as u32,
            size_bytes,
            seconds,
            // Of each of its jobs.
            bytes_max: Some(volume_bytes / self.connections),
            seed: 1000 + round,
            flush: false,
            flush_each: self.durability == Durability::FlushEach,
            ..Job::sequential(pattern, self.depth as u32)
        }
    }
}

/// What a volume holds, chunk by chunk: 0 for zeros, else the identifier of a content.
#[derive(Clone)]
pub(super) struct Volume {
    ids: Arc<[AtomicU64]>,
}

impl Volume {
    /// A new one, all zeros.
    pub(super) fn new(size_bytes: u64) -> Self {
        Self { ids: (0..size_bytes / CHUNK_BYTES as u64).map(|_| AtomicU64::new(0)).collect() }
    }

    pub(super) fn size_bytes(&self) -> u64 {
        (self.ids.len() * CHUNK_BYTES) as u64
    }

    /// The contents that begin with `first_id` lie at `offset_bytes` now.
    fn record(&self, offset_bytes: u64, block_bytes: u32, first_id: u64) {
        for (chunk, id) in ids_of(first_id, block_bytes).enumerate() {
            self.id_at(offset_bytes, chunk).store(id, Ordering::Relaxed);
        }
    }

    fn id_at(&self, offset_bytes: u64, chunk: usize) -> &AtomicU64 {
        &self.ids[offset_bytes as usize / CHUNK_BYTES + chunk]
    }
}

/// The identifiers of a block's chunks: half of them repeat the one before, when there are several.
fn ids_of(first_id: u64, block_bytes: u32) -> impl Iterator<Item = u64> {
    (0..u64::from(block_bytes) / CHUNK_BYTES as u64).map(move |chunk| first_id + chunk / 2)
}

/// One request.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// Write the contents that begin with this identifier.
    Write {
        offset_bytes: u64,
        first_id: u64,
    },
    Read {
        offset_bytes: u64,
    },
    Flush,
}

/// The requests of one connection, without end.
pub(super) struct Asks {
    pub(super) load: Load,
    volume: Volume,
    /// The blocks of the volume that are this connection's alone.
    first_block: u64,
    blocks: u64,
    asked: u64,
    first_id: u64,
    written: u64,
    chance: Chance,
    templates: Vec<u8>,
}

impl Asks {
    /// Those of connection `connection`; runs of different numbers, from 1 on, write different
    /// contents.
    pub(super) fn new(load: Load, volume: &Volume, run: u64, connection: u64) -> Self {
        let blocks = volume.size_bytes() / u64::from(load.block_bytes) / load.connections;
        let mut templates = vec![0; TEMPLATES as usize * CHUNK_BYTES];
        (0..).zip(templates.chunks_exact_mut(CHUNK_BYTES)).for_each(|(n, chunk)| fill(n, chunk));
        Self {
            load,
            volume: volume.clone(),
            first_block: connection * blocks,
            blocks,
            asked: 0,
            first_id: run * RUN_IDS + connection * (RUN_IDS / 64),
            written: 0,
            chance: Chance::new(run << 8 | connection),
            templates,
        }
    }

    /// The next read or write.
    pub(super) fn next(&mut self) -> Ask {
        let reads = self.load.read_percent > self.chance.roll() % 100;
        let hot = (HOT_CHUNKS / self.load.connections).min(self.blocks);
        let block = match (self.load.random, reads) {
            (false, _) => self.asked % self.blocks,
            (true, true) if self.load.read_percent == 100 => self.chance.roll() % hot,
            (true, _) => self.chance.roll() % self.blocks,
        };
        self.asked += 1;
        let offset_bytes = (self.first_block + block) * u64::from(self.load.block_bytes);
        match reads {
            true => Ask::Read { offset_bytes },
            false => Ask::Write { offset_bytes, first_id: self.next_id() },
        }
    }

    /// Half of the single chunks repeat one of the last; so do half of the chunks of larger blocks.
    fn next_id(&mut self) -> u64 {
        let roll = self.chance.roll();
        let block_ids = u64::from(self.load.block_bytes) / CHUNK_BYTES as u64;
        if block_ids == 1 && self.written > 0 && roll.is_multiple_of(2) {
            return self.first_id + self.written - 1 - (roll >> 1) % self.written.min(RECENT);
        }
        self.written += block_ids;
        self.first_id + self.written - block_ids
    }

    /// The bytes of a write.
    pub(super) fn fill(&self, first_id: u64, out: &mut [u8]) {
        let ids = ids_of(first_id, self.load.block_bytes);
        for (id, chunk) in ids.zip(out.chunks_exact_mut(CHUNK_BYTES)) {
            self.fill_chunk(id, chunk);
        }
    }

    /// The same at the end of `out`.
    pub(super) fn append(&self, first_id: u64, out: &mut Vec<u8>) {
        for id in ids_of(first_id, self.load.block_bytes) {
            out.extend_from_slice(&id.to_le_bytes());
            out.extend_from_slice(&self.template(id)[8..]);
        }
    }

    fn fill_chunk(&self, id: u64, chunk: &mut [u8]) {
        chunk.copy_from_slice(self.template(id));
        chunk[..8].copy_from_slice(&id.to_le_bytes());
    }

    fn template(&self, id: u64) -> &[u8] {
        let begin = (id % TEMPLATES) as usize * CHUNK_BYTES;
        &self.templates[begin..begin + CHUNK_BYTES]
    }

    /// A write was answered.
    pub(super) fn record(&self, ask: Ask) {
        if let Ask::Write { offset_bytes, first_id } = ask {
            self.volume.record(offset_bytes, self.load.block_bytes, first_id);
        }
    }

    /// Whether `bytes` are what was written at `offset_bytes` last.
    pub(super) fn matches(&self, offset_bytes: u64, bytes: &[u8]) -> bool {
        let mut wanted = vec![0; CHUNK_BYTES];
        bytes.chunks_exact(CHUNK_BYTES).enumerate().all(|(number, chunk)| {
            match self.volume.id_at(offset_bytes, number).load(Ordering::Relaxed) {
                0 => wanted.fill(0),
                id => self.fill_chunk(id, &mut wanted),
            }
            chunk == wanted
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Ask, Asks, Load, Volume};
    use crate::source::CHUNK_BYTES;

    #[test]
    fn connections_never_meet_and_stay_inside_the_volume() {
        let volume = Volume::new(4 << 20);
        for load in Load::ALL {
            let mut ends = Vec::new();
            for connection in 0..load.connections {
                let mut asks = Asks::new(load, &volume, 1, connection);
                let offsets: Vec<u64> = (0..500)
                    .map(|_| match asks.next() {
                        Ask::Write { offset_bytes, .. } | Ask::Read { offset_bytes } => {
                            offset_bytes
                        }
                        Ask::Flush => panic!("nobody asked for a flush"),
                    })
                    .collect();
                let (first, last) = (offsets.iter().min().unwrap(), offsets.iter().max().unwrap());
                ends.push((*first, *last + u64::from(load.block_bytes)));
            }
            assert!(ends.windows(2).all(|two| two[0].1 <= two[1].0), "{ends:?}");
            assert!(ends.last().unwrap().1 <= volume.size_bytes());
        }
    }

    #[test]
    fn half_of_what_is_written_repeats_and_runs_share_nothing() {
        let volume = Volume::new(4 << 20);
        let mut seen = std::collections::BTreeSet::new();
        for run in 1..4 {
            let mut asks = Asks::new(Load::RANDOM_WRITE, &volume, run, 0);
            let before = seen.len();
            for _ in 0..2000 {
                let Ask::Write { first_id, .. } = asks.next() else { panic!("only writes") };
                seen.insert(first_id);
            }
            let new = seen.len() - before;
            assert!((900..1100).contains(&new), "{new}");
        }
    }

    #[test]
    fn what_was_written_is_known_again() {
        let volume = Volume::new(4 << 20);
        let asks = Asks::new(Load::SEQUENTIAL_WRITE, &volume, 1, 0);
        let mut bytes = vec![0; 1 << 20];
        assert!(asks.matches(0, &bytes), "a new volume is zeros");
        asks.fill(77, &mut bytes);
        let mut appended = Vec::new();
        asks.append(77, &mut appended);
        assert_eq!(appended, bytes);
        assert_eq!(bytes[..CHUNK_BYTES], bytes[CHUNK_BYTES..2 * CHUNK_BYTES]);
        assert!(!asks.matches(0, &bytes));
        asks.record(Ask::Write { offset_bytes: 0, first_id: 77 });
        assert!(asks.matches(0, &bytes));
        bytes[4097] ^= 1;
        assert!(!asks.matches(0, &bytes));
    }
}
