//! Random overwrites of a store that is nearly full: what reaches the device for each byte stored.
//!
//! The store is filled in order with chunks that nobody has written before, until the frames that
//! live take the share asked for. Then single chunks are written over, each time with new content,
//! until their frames come to so many times the store's room. The engine counts what it hands to
//! the device by kind; the clock runs tenth by tenth, each ended by a flush, so that a rate that
//! falls when space does is seen.
//!
//! Everything but the clock follows from the seed, as far as the order in which devices and workers
//! end does not matter.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use ::store::Answers;
use engine::{Accepted, Client, Counters, Done, OpenVolume, Opener, Options};
use serde::Serialize;

use crate::args::{Args, Pattern};
use crate::failure::Failure;
use crate::machine::load_average;
use crate::source::{CHUNK_BYTES, Chance, REQUEST_BYTES};
use crate::store::Store;

const VOLUME: &str = "bench";
const TENTHS: u64 = 10;
const BLOCK_BYTES: u64 = format::BLOCK_BYTES as u64;
const CONTAINER_BYTES: u64 = format::units::CONTAINER_BYTES as u64;

/// What was written in one stretch of the run, in bytes that reached the device.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Written {
    pub(crate) seconds: f64,
    pub(crate) chunks: u64,
    /// Frames of the clients' chunks: compressed, and stored nowhere before.
    pub(crate) reduced_bytes: u64,
    pub(crate) clients_bytes: u64,
    pub(crate) collection_bytes: u64,
    pub(crate) tables_bytes: u64,
    pub(crate) journal_bytes: u64,
    pub(crate) moved_frame_bytes: u64,
    pub(crate) containers_collected: u64,
    pub(crate) checkpoints: u64,
    pub(crate) syncs: u64,
}

/// Figures of one run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Overwrite {
    pub(crate) pattern: String,
    pub(crate) capacity_bytes: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) seed: u64,
    pub(crate) fill_percent: u64,
    pub(crate) compressible_percent: u64,
    pub(crate) times: u64,
    /// Chunks that live, and their frames.
    pub(crate) chunks: u64,
    pub(crate) live_bytes: u64,
    pub(crate) load_average: f64,
    pub(crate) tenths: Vec<Written>,
}

/// One run, in `folder`.
pub(crate) fn measure(args: &Args, folder: &Path) -> Result<Overwrite, Failure> {
    let path = folder.join("overwrite");
    let capacity_bytes = args.capacity_mib << 20;
    Store::make(&path, capacity_bytes)?;
    let worker_threads = thread::available_parallelism().map_or(1, usize::from);
    let memory_bytes = args.memory_bytes();
    let store = Store::open(
        &path,
        &Options { memory_bytes, worker_threads, sync: false, ..Default::default() },
    )?;
    // Chunks may be packed well: the volume promises more than the store has room for.
    store.client().create_volume(VOLUME, capacity_bytes * 16, false)?;
    let volume = store.client().open_volume(VOLUME, Opener::new("bench", 0))?;
    let load_average = load_average();
    let mut writer = Writer::new(store.client(), &volume, args);
    let chunks = writer.fill(capacity_bytes * args.fill / 100)?;
    let live_bytes = store.client().stats()?.stored_bytes;
    let tenths = writer.overwrite(args, chunks, live_bytes / chunks)?;
    store.close()?;
    Ok(Overwrite { load_average, ..Overwrite::new(args, chunks, live_bytes, tenths) })
}

impl Overwrite {
    /// What so many living chunks, whose frames are so long, came to.
    pub(crate) fn new(args: &Args, chunks: u64, live_bytes: u64, tenths: Vec<Written>) -> Self {
        Self {
            pattern: format!("{:?}", args.pattern),
            capacity_bytes: args.capacity_mib << 20,
            memory_bytes: args.memory_bytes(),
            seed: args.seed,
            fill_percent: args.fill,
            compressible_percent: args.compressible,
            times: args.times,
            chunks,
            live_bytes,
            load_average: 0.0,
            tenths,
        }
    }
}

struct Writer<'a> {
    client: &'a Client,
    volume: &'a OpenVolume,
    answers: Arc<Answers>,
    chance: Chance,
    /// Random bytes of a chunk; the rest is zeros.
    random_bytes: usize,
}

impl<'a> Writer<'a> {
    fn new(client: &'a Client, volume: &'a OpenVolume, args: &Args) -> Self {
        let random_bytes = CHUNK_BYTES * (100 - args.compressible as usize) / 100 / 8 * 8;
        let (answers, chance) = (Arc::new(Answers::counted()), Chance::new(args.seed));
        Self { client, volume, answers, chance, random_bytes }
    }

    /// Writes one chunk after the other until their frames take `live_bytes`; how many.
    fn fill(&mut self, live_bytes: u64) -> Result<u64, Failure> {
        let mut filled_bytes = 0;
        while self.client.stats()?.stored_bytes < live_bytes {
            for _ in 0..8 {
                self.write(filled_bytes, REQUEST_BYTES);
                filled_bytes += REQUEST_BYTES as u64;
            }
            self.settle()?;
        }
        Ok(filled_bytes / CHUNK_BYTES as u64)
    }

    fn overwrite(
        &mut self,
        args: &Args,
        chunks: u64,
        frame_bytes: u64,
    ) -> Result<Vec<Written>, Failure> {
        let writes = (args.capacity_mib << 20) * args.times / frame_bytes / TENTHS;
        let mut tenths = Vec::new();
        for _ in 0..TENTHS {
            let before = self.client.stats()?.counters;
            let begun = Instant::now();
            for _ in 0..writes {
                let chunk = self.pick(args.pattern, chunks);
                self.write(chunk * CHUNK_BYTES as u64, CHUNK_BYTES);
            }
            self.settle()?;
            let seconds = begun.elapsed().as_secs_f64();
            let after = self.client.stats()?.counters;
            tenths.push(Written::between(&before, &after, writes, seconds));
        }
        Ok(tenths)
    }

    fn pick(&mut self, pattern: Pattern, chunks: u64) -> u64 {
        let hot = chunks / 10;
        match pattern {
            Pattern::Uniform => self.chance.roll() % chunks,
            Pattern::HotCold if !self.chance.roll().is_multiple_of(10) => self.chance.roll() % hot,
            Pattern::HotCold => hot + self.chance.roll() % (chunks - hot),
        }
    }

    /// Writes chunks with content that nobody has seen.
    fn write(&mut self, offset_bytes: u64, length_bytes: usize) {
        let mut buffer = self.client.buffer(offset_bytes, length_bytes);
        for chunk in buffer.bytes_mut().chunks_exact_mut(CHUNK_BYTES) {
            let (random, zeros) = chunk.split_at_mut(self.random_bytes);
            let words = random.chunks_exact_mut(8);
            words.for_each(|word| word.copy_from_slice(&self.chance.roll().to_le_bytes()));
            zeros.fill(0);
        }
        let done = Done::new(Arc::clone(&self.answers), 0);
        self.answers.expect();
        let accepted = self.client.write(self.volume, offset_bytes, buffer, false, done);
        if accepted == Accepted::Now {
            self.answers.known();
        }
    }

    /// Waits until all that was written is durable.
    fn settle(&self) -> Result<(), Failure> {
        self.answers.wait()?;
        Ok(self.client.flush_blocking()?)
    }
}

impl Written {
    fn between(before: &Counters, after: &Counters, chunks: u64, seconds: f64) -> Self {
        let grown = |of: fn(&Counters) -> u64| of(after) - of(before);
        let data_bytes = grown(|counters| counters.data_bytes_written);
        let moved_frame_bytes = grown(|counters| counters.frame_bytes_moved);
        let collection_bytes = grown(|counters| counters.collection_bytes_written);
        let checkpoints = grown(|counters| counters.checkpoints);
        Self {
            seconds,
            chunks,
            reduced_bytes: grown(|counters| counters.frame_bytes_stored),
            clients_bytes: data_bytes - collection_bytes,
            collection_bytes,
            tables_bytes: (grown(|counters| counters.table_writes) + checkpoints) * BLOCK_BYTES,
            journal_bytes: grown(|counters| counters.journal_bytes_written),
            moved_frame_bytes,
            containers_collected: grown(|counters| counters.containers_collected),
            checkpoints,
            syncs: grown(|counters| counters.syncs),
        }
    }

    /// All stretches as one.
    pub(crate) fn sum(parts: &[Self]) -> Self {
        let total = |of: fn(&Self) -> u64| parts.iter().map(of).sum();
        Self {
            seconds: parts.iter().map(|part| part.seconds).sum(),
            chunks: total(|part| part.chunks),
            reduced_bytes: total(|part| part.reduced_bytes),
            clients_bytes: total(|part| part.clients_bytes),
            collection_bytes: total(|part| part.collection_bytes),
            tables_bytes: total(|part| part.tables_bytes),
            journal_bytes: total(|part| part.journal_bytes),
            moved_frame_bytes: total(|part| part.moved_frame_bytes),
            containers_collected: total(|part| part.containers_collected),
            checkpoints: total(|part| part.checkpoints),
            syncs: total(|part| part.syncs),
        }
    }

    /// Bytes of a kind for each reduced byte.
    pub(crate) fn per_reduced_byte(&self, bytes: u64) -> f64 {
        bytes as f64 / self.reduced_bytes.max(1) as f64
    }

    /// All that reached the device for each reduced byte.
    pub(crate) fn all_per_reduced_byte(&self) -> f64 {
        let [.., (_, all_bytes)] = self.kinds();
        self.per_reduced_byte(all_bytes)
    }

    /// What reached the device, by what it was for, and last all of it.
    pub(crate) fn kinds(&self) -> [(&'static str, u64); 5] {
        let Self { clients_bytes, collection_bytes, tables_bytes, journal_bytes, .. } = *self;
        let all_bytes = clients_bytes + collection_bytes + tables_bytes + journal_bytes;
        [
            ("data of clients", clients_bytes),
            ("collection", collection_bytes),
            ("tables", tables_bytes),
            ("journal", journal_bytes),
            ("**in all**", all_bytes),
        ]
    }

    /// How much of a collected container had to be moved, on average.
    pub(crate) fn liveness(&self) -> f64 {
        let collected_bytes = self.containers_collected * CONTAINER_BYTES;
        self.moved_frame_bytes as f64 / collected_bytes.max(1) as f64
    }

    /// Chunks a second.
    pub(crate) fn rate(&self) -> f64 {
        self.chunks as f64 / self.seconds
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{Written, measure};
    use crate::args::Args;
    use crate::store::alone;

    /// At toy size, so that the benchmark never rots; a figure of it means nothing.
    #[test]
    fn every_byte_is_of_some_kind() {
        let _alone = alone();
        let folder = std::env::temp_dir().join(format!("tamis-overwrite-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let sizes = ["--capacity-mib", "256", "--memory-mib", "64", "--fill", "20%"];
        let arguments = ["bench", "overwrite", "--times", "1"].into_iter().chain(sizes);
        let figures = measure(&Args::parse_from(arguments), &folder).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let all = Written::sum(&figures.tenths);
        assert_eq!(figures.tenths.len(), 10);
        assert!(all.clients_bytes >= all.reduced_bytes && all.reduced_bytes > 200 << 20);
        assert!(all.tables_bytes > 0 && all.journal_bytes > 0);
    }
}
