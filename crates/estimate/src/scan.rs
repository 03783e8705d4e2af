//! Threads that take pieces, cut them into chunks of every size, and tell the samples.
//!
//! A thread holds one lock at a time: the source's while it reads a piece, a sample's while it asks
//! which of the piece's chunks are new, and again when it has made their frames. Which thread meets
//! a chunk first changes nothing: its fingerprint and the length of its frame are the same.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use format::detection::FingerprintKind;
use format::frame::ChunkName;
use format::superblock::CHUNK_BYTES_MAX;
use format::units::{Compression, Fingerprint, Pbn};
use reduce::{Fingerprinter, compress_frame, frame_bytes_max};

use crate::figures::{SizeFigures, Tally};
use crate::pieces::{PIECE_BYTES, Piece, Pieces, Reading, UnreadableFiles};
use crate::sample::Sample;

/// The least memory that an estimate can be made in.
pub const MEMORY_BYTES_MIN: u64 = 16 << 20;
/// What a thread needs: its piece, what it knows of the chunks in it, and room for a frame.
const THREAD_BYTES: u64 = PIECE_BYTES as u64 + (256 << 10);
/// Between two looks at how far it is.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);
/// Of every frame: its length does not depend on it.
const NAME: ChunkName = ChunkName::unkeyed(Pbn(1));
/// Any kind finds the same duplicates; this is the fastest that needs no comparing.
const FINGERPRINTER: Fingerprinter = Fingerprinter::new(FingerprintKind::Blake3);

/// What is to be estimated, and with what.
#[derive(Clone, Debug)]
pub struct Options {
    /// Chunk sizes, each a power of two from 4 to 64 KiB.
    pub chunk_bytes: Vec<u32>,
    /// What to compress with, each with the name that it has for people.
    pub compressions: Vec<(String, Compression)>,
    /// Memory for buffers and fingerprints, at least [`MEMORY_BYTES_MIN`].
    pub memory_bytes: u64,
    /// Threads, at least one; no more than half of the memory has buffers for.
    pub threads: usize,
}

/// What was found.
#[derive(Debug)]
pub struct Estimate {
    /// Files, images and devices that were read.
    pub files: u64,
    /// Their sizes.
    pub logical_bytes: u64,
    /// Data in them that was read: holes are not.
    pub read_bytes: u64,
    /// What could not be read, or not to its end.
    pub unreadable: UnreadableFiles,
    /// In the order of the options.
    pub sizes: Vec<SizeFigures>,
}

/// Reads all that is under `paths` and estimates what a store would make of it. `watch` is told
/// some ten times a second how many bytes are done, and may break off: then there is no estimate.
pub fn estimate(
    paths: &[PathBuf],
    options: &Options,
    mut watch: impl FnMut(u64) -> ControlFlow<()>,
) -> Option<Estimate> {
    let reading = Reading::default();
    let scan = Scan::new(paths, options, &reading);
    let threads = scan.threads(options);
    thread::scope(|scope| {
        let (ended, end) = mpsc::channel::<()>();
        for _ in 0..threads {
            let (ended, scan) = (ended.clone(), &scan);
            scope.spawn(move || {
                scan.work();
                drop(ended);
            });
        }
        drop(ended);
        // The channel carries nothing: it ends when the last thread has.
        while end.recv_timeout(WATCH_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            if watch(reading.done_bytes.load(Ordering::Relaxed)).is_break() {
                reading.stop.store(true, Ordering::Relaxed);
            }
        }
    });
    // One more look, for who waited for the end in vain.
    let done_bytes = reading.done_bytes.load(Ordering::Relaxed);
    let stopped = reading.stop.load(Ordering::Relaxed) || watch(done_bytes).is_break();
    (!stopped).then(|| scan.into_estimate(options))
}

/// What the threads share.
struct Scan<'a> {
    pieces: Mutex<Pieces<'a>>,
    sizes: Vec<Size>,
    compressions: Vec<Compression>,
}

/// One chunk size.
struct Size {
    chunk_bytes: u32,
    counted: Mutex<Counted>,
}

struct Counted {
    tally: Tally,
    sample: Sample,
}

impl<'a> Scan<'a> {
    fn new(paths: &[PathBuf], options: &Options, reading: &'a Reading) -> Self {
        let memory_bytes = options.memory_bytes.max(MEMORY_BYTES_MIN);
        let threads = threads_within(memory_bytes, options.threads) as u64;
        let tables_bytes = memory_bytes - threads * THREAD_BYTES;
        // Half the chunk size, twice the chunks: all sizes become full at the same time.
        let weight = |chunk_bytes: u32| u64::from(CHUNK_BYTES_MAX / chunk_bytes.max(1)).max(1);
        let weights: u64 = options.chunk_bytes.iter().map(|bytes| weight(*bytes)).sum();
        let size = |chunk_bytes: &u32| {
            let share_bytes = tables_bytes / weights * weight(*chunk_bytes);
            let sample = Sample::new(share_bytes, options.compressions.len());
            let counted = Mutex::new(Counted { tally: Tally::default(), sample });
            Size { chunk_bytes: *chunk_bytes, counted }
        };
        Self {
            pieces: Mutex::new(Pieces::new(paths, reading)),
            sizes: options.chunk_bytes.iter().map(size).collect(),
            compressions: options
                .compressions
                .iter()
                .map(|(_, compression)| *compression)
                .collect(),
        }
    }

    fn threads(&self, options: &Options) -> usize {
        threads_within(options.memory_bytes.max(MEMORY_BYTES_MIN), options.threads)
    }

    /// A thread's life.
    fn work(&self) {
        let mut piece = Piece::new();
        let mut bench = Bench::default();
        while lock(&self.pieces).fill(&mut piece) {
            for size in &self.sizes {
                size.count(&piece, &self.compressions, &mut bench);
            }
        }
    }

    fn into_estimate(self, options: &Options) -> Estimate {
        let pieces = self.pieces.into_inner().unwrap_or_else(PoisonError::into_inner);
        let sources = pieces.into_sources();
        let names: Vec<String> =
            options.compressions.iter().map(|(name, _)| name.clone()).collect();
        let figures = |size: Size| {
            let counted = size.counted.into_inner().unwrap_or_else(PoisonError::into_inner);
            let Counted { tally, sample } = counted;
            let figures =
                SizeFigures::new(size.chunk_bytes, sources.logical_bytes, tally, &sample, &names);
            if sources.unreadable.in_part == 0 { figures } else { figures.of_a_part() }
        };
        let sizes = self.sizes.into_iter().map(figures).collect();
        Estimate {
            files: sources.files,
            logical_bytes: sources.logical_bytes,
            read_bytes: sources.read_bytes,
            unreadable: sources.unreadable,
            sizes,
        }
    }
}

/// What a thread works on, kept from piece to piece.
#[derive(Default)]
struct Bench {
    fingerprints: Vec<Option<Fingerprint>>,
    frame: Vec<u8>,
}

impl Size {
    /// Takes the chunks of `piece` in.
    fn count(&self, piece: &Piece, compressions: &[Compression], bench: &mut Bench) {
        let chunk_bytes = self.chunk_bytes as usize;
        let (chunks, real_bytes): (Vec<&[u8]>, Vec<usize>) = piece.chunks(chunk_bytes).unzip();
        bench.fingerprints.clear();
        FINGERPRINTER.batch(&chunks, &mut bench.fingerprints);
        let mut fresh = Vec::new();
        {
            let Counted { tally, sample } = &mut *lock(&self.counted);
            for ((chunk, real_bytes), fingerprint) in
                chunks.iter().zip(real_bytes).zip(&bench.fingerprints)
            {
                let Some(fingerprint) = fingerprint else { continue };
                tally.data_chunks += 1;
                tally.nonzero_bytes += real_bytes as u64;
                if sample.take_in(fingerprint) {
                    fresh.push((*chunk, *fingerprint));
                }
            }
        }
        bench.frame.resize(frame_bytes_max(CHUNK_BYTES_MAX as usize), 0);
        let mut lengths = Vec::with_capacity(fresh.len() * compressions.len());
        for (chunk, _) in &fresh {
            let frame_bytes = |compression: &Compression| {
                compress_frame(*compression, NAME, chunk, &mut bench.frame)
            };
            lengths.extend(compressions.iter().map(frame_bytes));
        }
        let sample = &mut lock(&self.counted).sample;
        for ((_, fingerprint), lengths) in fresh.iter().zip(lengths.chunks(compressions.len())) {
            sample.measure(fingerprint, lengths);
        }
    }
}

/// Of `threads` as many as half of the memory has buffers for.
fn threads_within(memory_bytes: u64, threads: usize) -> usize {
    let most = usize::try_from(memory_bytes / 2 / THREAD_BYTES).unwrap_or(usize::MAX);
    threads.clamp(1, most.max(1))
}

/// Every change under these locks is whole before anything can panic, so a poisoned lock is sound.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
