//! The same chunks written to a store for each way to find a duplicate: what a client waits for.
//!
//! Every chunk is a write of its own, at ascending addresses of one volume. All but the last of
//! them are written as fast as the store takes them; each is *acknowledged* when it is in the write
//! buffer, so its time is the engine's backpressure: that of a writer that waits for room. The last
//! ones ask to be *durable* (FUA): fingerprint, look-up, comparison, journal and a sync lie between
//! request and answer. They go out in blocks, one at depth 1, the next at depth 32, so that both
//! depths meet the same data. Each block begins and ends with nothing under way.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use engine::{Client, ComparingAhead, Detection, FingerprintKind, Stats};
use estimate::CHUNK_BYTES;
use serde::Serialize;
use threads::{cpu_time_between_ns, cpu_times_ns};

use super::latency::Latency;
use crate::commands::in_flight::InFlight;
use crate::commands::scratch::{CAPACITY_BYTES_BEYOND, ScratchShape, ScratchStore};
use crate::error::CliError;
use crate::opener::opener;
use crate::store::{OpenStore, processors};

/// What each store's engine gets as memory: less than most, so that large data meet its limits.
pub(super) const STORE_MEMORY_BYTES: u64 = 256 << 20;
/// Writes of a block.
const BLOCK_WRITES: usize = 256;
const DEPTH: usize = 32;
const VOLUME: &str = "bench";
/// After which stores are called.
pub(super) const COMMAND: &str = "bench";
/// A chunk as it is stored at most, with header and entry in its directory.
const FRAME_BYTES: u64 = CHUNK_BYTES as u64 + 128;

/// A way to find a duplicate that a store may be made with.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) kind: FingerprintKind,
    pub(super) verify: bool,
    pub(super) ahead: ComparingAhead,
}

/// What a store made of the chunks. Times of threads are processor time.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct InStore {
    /// As `tamis init` has it: the kind, and `--verify` where bytes are compared.
    pub(super) way: String,
    /// Of all but the durable writes, until a flush behind them was answered.
    pub(super) chunks_per_second: f64,
    pub(super) core_ns_per_chunk: f64,
    pub(super) workers_ns_per_chunk: f64,
    /// A write that needs not be durable, until it is in the write buffer.
    pub(super) acknowledged: Option<Latency>,
    /// A write until it is durable, with so many under way.
    pub(super) durable_depth_1: Option<Latency>,
    pub(super) durable_depth_32: Option<Latency>,
    pub(super) duplicates: u64,
    pub(super) cases: Cases,
    /// Reads of stored chunks to compare with, and the chunks and bytes they brought.
    pub(super) comparison_reads: u64,
    pub(super) comparison_chunks: u64,
    pub(super) comparison_bytes: u64,
    /// Stored chunks to compare with that were in memory, and those that had been read ahead.
    pub(super) comparison_chunks_held: u64,
    pub(super) comparison_chunks_ahead: u64,
    /// Bytes that were read ahead; nothing here reads but to compare.
    pub(super) ahead_bytes: u64,
    /// Filters, young entries and directories at the end: what finds duplicates, beside pages.
    pub(super) memory_bytes: u64,
}

/// What look-ups came to: EaD's four cases of access. The last two only where bytes are compared.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Cases {
    /// The filters knew that the chunk is new.
    pub(super) denied: u64,
    /// A page of the table had to be looked into to know it.
    pub(super) absent: u64,
    /// The fingerprint led to the same bytes.
    pub(super) equal: u64,
    /// The fingerprint led to other bytes.
    pub(super) differ: u64,
}

impl Way {
    /// Every kind as stores have it at least, and BLAKE3 compared as well, for what that costs.
    pub(super) fn all() -> impl Iterator<Item = Self> + Clone {
        let ahead = ComparingAhead::default();
        let plain = move |kind: FingerprintKind| Self { kind, verify: !kind.is_strong(), ahead };
        let compared = Self { kind: FingerprintKind::Blake3, verify: true, ahead };
        FingerprintKind::ALL.into_iter().map(plain).chain([compared])
    }

    fn name(self) -> String {
        if self.verify { format!("{} --verify", self.kind) } else { self.kind.to_string() }
    }

    /// Writes `chunks` to a store of this way under `dir`, the last ones, up to `durable_writes` at
    /// either depth, to be durable each. `watch` hears of the chunks written, and may end it by an
    /// error.
    pub(super) fn measure(
        self,
        chunks: &[[u8; CHUNK_BYTES]],
        dir: &Path,
        durable_writes: usize,
        mut watch: impl FnMut(u64) -> Result<(), CliError>,
    ) -> Result<InStore, CliError> {
        let shape = ScratchShape {
            capacity_bytes: chunks.len() as u64 * FRAME_BYTES + CAPACITY_BYTES_BEYOND,
            chunk_bytes: CHUNK_BYTES as u32,
            detection: Detection { kind: self.kind, verify: self.verify, ..Default::default() },
            tables_bytes_min: 0,
        };
        let scratch = ScratchStore::make(dir, COMMAND, &shape)?;
        let options = engine::Options {
            memory_bytes: STORE_MEMORY_BYTES,
            worker_threads: processors(),
            sync: false,
            comparing_ahead: self.ahead,
            ..engine::Options::default()
        };
        OpenStore::with(scratch.path(), options, |store| {
            let client = store.client();
            let size_bytes = (chunks.len() * CHUNK_BYTES) as u64;
            client.create_volume(VOLUME, size_bytes, false)?;
            let mut run = Run::new(client)?;
            let durable = (2 * durable_writes).min(chunks.len() / 2);
            let (before, last) = chunks.split_at(chunks.len() - durable);
            let mut found = InStore { way: self.name(), ..InStore::default() };
            run.fill(before, &mut found, &mut watch)?;
            let [depth_1, depth_32] = run.durable_blocks(before.len(), last, &mut watch)?;
            found.durable_depth_1 = Latency::of(depth_1);
            found.durable_depth_32 = Latency::of(depth_32);
            found.count(&client.stats()?);
            Ok(found)
        })
    }
}

/// The writes to one store.
struct Run<'a> {
    in_flight: InFlight<'a>,
}

impl<'a> Run<'a> {
    fn new(client: &'a Client) -> Result<Self, CliError> {
        Ok(Self { in_flight: InFlight::new(client, client.open_volume(VOLUME, opener("bench"))?) })
    }

    /// Writes from the volume's beginning, as fast as the store takes it, and flushes.
    fn fill(
        &mut self,
        chunks: &[[u8; CHUNK_BYTES]],
        found: &mut InStore,
        mut watch: impl FnMut(u64) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        let mut times = Vec::with_capacity(chunks.len());
        let (started, times_before_ns) = (Instant::now(), cpu_times_ns());
        for (block, first) in chunks.chunks(BLOCK_WRITES).zip((0..).step_by(BLOCK_WRITES)) {
            self.block(first, block, 1, false, &mut times)?;
            watch(block.len() as u64)?;
        }
        self.in_flight.flush()?;
        let times_after_ns = cpu_times_ns();
        let spent =
            |kind: &str| cpu_time_between_ns(&times_before_ns, &times_after_ns, kind) as f64;
        let count = (chunks.len() as f64).max(1.0);
        found.chunks_per_second = chunks.len() as f64 / started.elapsed().as_secs_f64().max(1e-9);
        found.core_ns_per_chunk = spent("core") / count;
        found.workers_ns_per_chunk = spent("reduce") / count;
        found.acknowledged = Latency::of(times);
        Ok(())
    }

    /// Writes behind the first `first` chunks, each to be durable: a block at depth 1, one at
    /// depth 32, and so on; returns the times of either depth.
    fn durable_blocks(
        &mut self,
        first: usize,
        chunks: &[[u8; CHUNK_BYTES]],
        mut watch: impl FnMut(u64) -> Result<(), CliError>,
    ) -> Result<[Vec<Duration>; 2], CliError> {
        let [mut depth_1, mut depth_32] = [Vec::new(), Vec::new()];
        // Few writes make short blocks, so that there are some at either depth.
        let block_writes = chunks.len().div_ceil(2).clamp(1, BLOCK_WRITES);
        let places = (first..).step_by(block_writes);
        for (number, (block, first)) in chunks.chunks(block_writes).zip(places).enumerate() {
            match number % 2 {
                0 => self.block(first, block, 1, true, &mut depth_1)?,
                _ => self.block(first, block, DEPTH, true, &mut depth_32)?,
            }
            watch(block.len() as u64)?;
        }
        Ok([depth_1, depth_32])
    }

    /// Writes with at most `depth` under way, until all are answered.
    fn block(
        &mut self,
        first: usize,
        chunks: &[[u8; CHUNK_BYTES]],
        depth: usize,
        durable: bool,
        times: &mut Vec<Duration>,
    ) -> Result<(), CliError> {
        let mut begun = HashMap::with_capacity(depth);
        for (number, chunk) in (first..).zip(chunks) {
            while begun.len() >= depth {
                self.settle(&mut begun, times)?;
            }
            let start = Instant::now();
            let offset_bytes = (number * CHUNK_BYTES) as u64;
            let mut buf = self.in_flight.buffer(offset_bytes, CHUNK_BYTES);
            buf.bytes_mut().copy_from_slice(chunk);
            match self.in_flight.write(offset_bytes, buf, durable) {
                Some(tag) => _ = begun.insert(tag, start),
                None => times.push(start.elapsed()),
            }
        }
        while !begun.is_empty() {
            self.settle(&mut begun, times)?;
        }
        Ok(())
    }

    /// Takes the answers that are here, or waits for one.
    fn settle(
        &self,
        begun: &mut HashMap<u64, Instant>,
        times: &mut Vec<Duration>,
    ) -> Result<(), CliError> {
        for (tag, outcome) in self.in_flight.take(0) {
            outcome?;
            times.extend(begun.remove(&tag).map(|start| start.elapsed()));
        }
        Ok(())
    }
}

impl InStore {
    fn count(&mut self, stats: &Stats) {
        let counters = &stats.counters;
        self.duplicates = counters.chunks_duplicate;
        self.cases = Cases {
            denied: counters.lookups_denied,
            absent: counters.lookups_absent,
            equal: counters.lookups_equal,
            differ: counters.lookups_differ,
        };
        self.comparison_reads = counters.comparison_reads;
        self.comparison_chunks = counters.chunks_read_to_compare;
        self.comparison_bytes = counters.comparison_bytes_read;
        self.comparison_chunks_held = counters.frames_hit_to_compare;
        self.comparison_chunks_ahead = counters.frames_ahead_to_compare;
        self.ahead_bytes = stats.read_cache.ahead_read_bytes;
        let tables = &stats.tables;
        self.memory_bytes = tables.filter_bytes + tables.young_bytes + tables.directory_bytes;
    }
}
