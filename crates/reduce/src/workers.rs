//! The threads on which batches are fingerprinted, compared, compressed, packed, verified and
//! compressed anew, and memory is prepared.
//!
//! One queue of jobs under a lock, N threads that take from it, one list of what is done. A job is
//! a whole batch, tens of microseconds of work, so a plain lock is never contended enough to
//! matter. Packing goes before all other jobs, because memory is held until it is done. Jobs that
//! no client waits for, of a scrub or a collection, have a queue and threads of their own, which
//! *step back*: they take what others leave of the processors, and no client's job waits behind one
//! of theirs. The submitter is told of each completion through a *waker*, rung after the result can
//! be polled: it can sleep on anything it likes and never polls in vain.
//!
//! With no threads at all a job runs inside [`Workers::submit`]: the simulator's way,
//! deterministic. So does a job of a few chunks, where waking a thread and being woken by it would
//! take longer than the work: a client that flushes after every write waits for that. What a job
//! computes is the same either way; only the order of completion differs.
//!
//! A job that panics must not leave its submitter waiting: it completes as [`JobDone::Panicked`],
//! and the thread goes on. Dropping the pool abandons jobs that have not begun, and joins the
//! threads.

use crate::chunk::{ChunkBatch, ChunkBuf};
use crate::comparison::{Comparison, Known, compare_batch};
use crate::compress::{FrameEnd, frame_bytes_max, make_frame};
use crate::errand::Errand;
use crate::fingerprint::Fingerprinters;
use crate::job_times::{JobKind, JobTimes, Spent};
use crate::lane::Lane;
use crate::memory::{MemoryWanted, PreparedMemory};
use crate::payload::{Payload, pack_batch};
use crate::recompress::recompress_frames;
use crate::verify::{FramePlace, Image, Verdict, verify_frames};
use format::domain::DomainId;
use format::frame::ChunkName;
use format::units::{Codec, Compression, Fingerprint, Pbn};
use std::iter::repeat;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// Bytes of chunks that a job may have to run where it is handed in: some ten microseconds.
const BYTES_INLINE_MAX: usize = 4 * 4096;

/// Threads for the background: it has no more jobs at a time.
const BACKGROUND_THREADS: usize = 2;

/// Of jobs that nobody tells apart.
const TAGLESS: u64 = u64::MAX;

/// A batch to work on. `tag` is the submitter's and comes back with the result.
#[derive(Debug)]
pub enum Job {
    /// Fingerprint every chunk.
    Fingerprint {
        /// Names the job.
        tag: u64,
        /// The store's way.
        by: Fingerprinters,
        /// The chunks.
        chunks: ChunkBatch,
        /// The domain of each; none at all where it is the default one of all.
        domains: Vec<DomainId>,
        /// With what each is compressed in the same pass; none at all where none is.
        ahead: Vec<Compression>,
    },
    /// Compare every chunk with one that is known.
    Compare {
        /// Names the job.
        tag: u64,
        /// The chunks.
        chunks: ChunkBatch,
        /// What each is compared with.
        known: Known,
    },
    /// Make a frame of every chunk.
    Compress {
        /// Names the job.
        tag: u64,
        /// With what.
        compression: Compression,
        /// With what each; none at all where it is `compression` of all.
        compressions: Vec<Compression>,
        /// The chunks.
        chunks: ChunkBatch,
        /// Their names.
        pbns: Vec<Pbn>,
        /// The domain of each; none at all where it is the default one of all.
        domains: Vec<DomainId>,
        /// Payloads of those that were compressed ahead; none at all where no chunk was.
        ready: Vec<Option<Payload>>,
    },
    /// Verify every frame.
    Verify {
        /// Names the job.
        tag: u64,
        /// What holds the frames.
        image: Arc<dyn Image>,
        /// Where they are.
        frames: Vec<FramePlace>,
        /// Length of the chunks, when they are to be fingerprinted.
        plain_bytes: Option<u32>,
        /// The store's way to do that.
        by: Fingerprinters,
    },
    /// Make anew what becomes shorter by it.
    Recompress {
        /// Names the job.
        tag: u64,
        /// With what.
        compression: Compression,
        /// What holds the frames.
        image: Arc<dyn Image>,
        /// Where they are.
        frames: Vec<FramePlace>,
        /// Length of the chunks.
        plain_bytes: u32,
    },
    /// Copy frames together, however their holder does that.
    Pack {
        /// Names the job.
        tag: u64,
        /// The work.
        errand: Errand,
    },
    /// Touch memory that will be needed ([`crate::memory`]).
    Prepare {
        /// How much.
        wanted: MemoryWanted,
    },
}

/// What became of a [`Job`].
#[derive(Debug)]
pub enum JobDone {
    /// Of [`Job::Fingerprint`].
    Fingerprints {
        /// The job's.
        tag: u64,
        /// One per chunk, in order; None is a chunk of zeros.
        fingerprints: Vec<Option<Fingerprint>>,
        /// One per chunk that is not of zeros, where they were compressed ahead; else none at all.
        payloads: Vec<Option<Payload>>,
    },
    /// Of [`Job::Compare`].
    Compared {
        /// The job's.
        tag: u64,
        /// One per chunk, in order.
        comparisons: Vec<Comparison>,
    },
    /// Of [`Job::Compress`].
    Frames {
        /// The job's.
        tag: u64,
        /// All frames, one after the other, and what means nothing behind them.
        bytes: ChunkBuf,
        /// Each frame.
        ends: Vec<FrameEnd>,
        /// Chunks that looked so much like noise that their codec was not tried.
        spared: u64,
    },
    /// Of [`Job::Verify`].
    Verified {
        /// The job's.
        tag: u64,
        /// One per frame, in order.
        verdicts: Vec<Verdict>,
    },
    /// Of [`Job::Recompress`].
    Recompressed {
        /// The job's.
        tag: u64,
        /// The frames that became shorter, one after the other, and what means nothing behind them.
        bytes: ChunkBuf,
        /// Where each ends in `bytes`; a frame without a length stays as it is.
        ends: Vec<u32>,
    },
    /// Of [`Job::Pack`].
    Packed {
        /// The job's.
        tag: u64,
    },
    /// Of [`Job::Prepare`].
    Prepared {
        /// The memory.
        memory: PreparedMemory,
    },
    /// The job hit a bug and has no result.
    Panicked {
        /// What it was.
        kind: JobKind,
        /// The job's.
        tag: u64,
    },
}

/// A pool of threads; see the head of this file.
pub struct Workers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    background: Vec<JoinHandle<()>>,
    /// Jobs handed in whose results have not been taken.
    out: AtomicUsize,
}

struct Shared {
    /// Of clients.
    jobs: Lane<Job>,
    /// Of what runs in the background.
    background: Lane<Job>,
    done: Mutex<Vec<JobDone>>,
    waker: Arc<dyn Fn() + Send + Sync>,
    times: JobTimes,
}

impl Workers {
    /// A pool of `threads` threads, and a few for the background; 0 runs jobs inside
    /// [`Workers::submit`]. `waker` is called once per completed job, on the thread that ran it,
    /// and must neither block for long nor panic.
    ///
    /// When the system refuses some of the threads the pool runs with those it got, if need be with
    /// none.
    #[must_use]
    pub fn new(threads: usize, waker: Arc<dyn Fn() + Send + Sync>) -> Self {
        let shared = Arc::new(Shared {
            jobs: Lane::default(),
            background: Lane::default(),
            done: Mutex::default(),
            waker,
            times: JobTimes::default(),
        });
        let spawn = |index| {
            let shared = Arc::clone(&shared);
            let work = move || shared.work(&shared.jobs);
            Builder::new().name(format!("reduce-{index}")).spawn(work).ok()
        };
        let spawn_background = |index| {
            let shared = Arc::clone(&shared);
            let work = move || {
                threads::lower_priority();
                shared.work(&shared.background);
            };
            Builder::new().name(format!("background-{index}")).spawn(work).ok()
        };
        let background = (0..threads.min(BACKGROUND_THREADS)).map_while(spawn_background).collect();
        let threads = (0..threads).map_while(spawn).collect();
        Self { shared, threads, background, out: AtomicUsize::new(0) }
    }

    /// Threads that run; 0 when jobs run inline.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Hands in a job. Never blocks for the work, unless it is small or there are no threads.
    pub fn submit(&self, job: Job) {
        self.out.fetch_add(1, Ordering::Relaxed);
        match self.lane_of(&job) {
            Some(lane) if job.gives_memory_back() => lane.push_first(job),
            Some(lane) => lane.push([job]),
            None => self.run_here(job),
        }
    }

    /// Hands in jobs that clients wait for and that are there at the same time: threads are woken
    /// once for all of them.
    pub fn submit_all(&self, mut jobs: Vec<Job>) {
        debug_assert!(!jobs.iter().any(Job::is_background), "they have a lane of their own");
        self.out.fetch_add(jobs.len(), Ordering::Relaxed);
        for job in jobs.extract_if(.., |job| self.lane_of(job).is_none()) {
            self.run_here(job);
        }
        if !jobs.is_empty() {
            self.shared.jobs.push(jobs);
        }
    }

    /// Where a job waits for a thread; None where it is not worth one, or there is none.
    fn lane_of(&self, job: &Job) -> Option<&Lane<Job>> {
        let (threads, lane) = match job.is_background() {
            true if !self.background.is_empty() => (&self.background, &self.shared.background),
            _ => (&self.threads, &self.shared.jobs),
        };
        (!threads.is_empty() && !job.is_small()).then_some(lane)
    }

    fn run_here(&self, job: Job) {
        let ticks = self.shared.run(job);
        self.shared.times.was_small(ticks);
    }

    /// From now on it is counted what jobs take, by `ticks`: a clock of the caller's, for this room
    /// has none. It is read twice a job.
    pub fn keep_time(&self, ticks: fn() -> u64) {
        self.shared.times.keep(ticks);
    }

    /// What jobs of this kind took so far.
    #[must_use]
    pub fn spent(&self, kind: JobKind) -> Spent {
        self.shared.times.spent(kind)
    }

    /// Ticks of all jobs that ran inside [`Workers::submit`].
    #[must_use]
    pub fn small_ticks(&self) -> u64 {
        self.shared.times.small_ticks()
    }

    /// Appends what has completed since the last call, in no particular order. Never blocks.
    pub fn poll(&self, done: &mut Vec<JobDone>) {
        let before = done.len();
        done.append(&mut lock(&self.shared.done));
        self.out.fetch_sub(done.len() - before, Ordering::Relaxed);
    }

    /// Whether there are jobs whose results have not been taken.
    #[must_use]
    pub fn are_busy(&self) -> bool {
        self.out.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shared.jobs.close();
        self.shared.background.close();
        for thread in self.threads.drain(..).chain(self.background.drain(..)) {
            // A thread that panicked outside a job has nothing left to give back.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// A thread's life.
    fn work(&self, lane: &Lane<Job>) {
        while let Some(job) = lane.next() {
            let _ = self.run(job);
        }
    }

    /// Runs a job; the ticks that it took.
    fn run(&self, job: Job) -> u64 {
        let (tag, kind, chunks) = (job.tag(), job.kind(), job.chunks());
        let begun = self.times.now();
        // Nothing that a job changes outlives it, so a panic leaves nothing half done.
        let result = catch_unwind(AssertUnwindSafe(|| job.run()));
        let ticks = self.times.ended(kind, begun, chunks);
        lock(&self.done).push(result.unwrap_or(JobDone::Panicked { kind, tag }));
        (self.waker)();
        ticks
    }
}

impl Job {
    /// The submitter's name for it.
    #[must_use]
    pub fn tag(&self) -> u64 {
        match self {
            Self::Fingerprint { tag, .. }
            | Self::Compare { tag, .. }
            | Self::Compress { tag, .. }
            | Self::Verify { tag, .. }
            | Self::Recompress { tag, .. }
            | Self::Pack { tag, .. } => *tag,
            Self::Prepare { .. } => TAGLESS,
        }
    }

    fn kind(&self) -> JobKind {
        match self {
            Self::Fingerprint { .. } => JobKind::Fingerprint,
            Self::Compare { .. } => JobKind::Compare,
            Self::Compress { .. } => JobKind::Compress,
            Self::Verify { .. } => JobKind::Verify,
            Self::Recompress { .. } => JobKind::Recompress,
            Self::Pack { .. } => JobKind::Pack,
            Self::Prepare { .. } => JobKind::Prepare,
        }
    }

    fn chunks(&self) -> usize {
        match self {
            Self::Fingerprint { chunks, .. }
            | Self::Compare { chunks, .. }
            | Self::Compress { chunks, .. } => chunks.len(),
            Self::Verify { frames, .. } | Self::Recompress { frames, .. } => frames.len(),
            Self::Pack { .. } | Self::Prepare { .. } => 0,
        }
    }

    /// Whether it takes less time than handing it over does.
    fn is_small(&self) -> bool {
        let fits = |chunks: &ChunkBatch| chunks.length_bytes() <= BYTES_INLINE_MAX;
        let is_slow = |with: &Compression| with.codec == Codec::Zstd;
        match self {
            Self::Fingerprint { by, chunks, ahead, .. } => {
                by.is_quick() && !ahead.iter().any(is_slow) && fits(chunks)
            }
            Self::Compare { chunks, .. } => fits(chunks),
            Self::Compress { compression, compressions, chunks, .. } => {
                let has_slow = match compressions.is_empty() {
                    true => is_slow(compression),
                    false => compressions.iter().any(is_slow),
                };
                !has_slow && fits(chunks)
            }
            Self::Verify { .. }
            | Self::Recompress { .. }
            | Self::Pack { .. }
            | Self::Prepare { .. } => false,
        }
    }

    /// Whether memory is held for it that others need.
    fn gives_memory_back(&self) -> bool {
        matches!(self, Self::Pack { .. })
    }

    /// Whether no client waits for it.
    fn is_background(&self) -> bool {
        matches!(self, Self::Verify { .. } | Self::Recompress { .. })
    }

    fn run(self) -> JobDone {
        match self {
            Self::Fingerprint { tag, by, chunks, domains, ahead } => {
                let bytes: Vec<&[u8]> = chunks.iter().collect();
                let mut fingerprints = Vec::with_capacity(bytes.len());
                by.batch(&bytes, &domains, &mut fingerprints);
                let payloads = match ahead.is_empty() {
                    true => Vec::new(),
                    false => pack_batch(&chunks, &fingerprints, &ahead),
                };
                JobDone::Fingerprints { tag, fingerprints, payloads }
            }
            Self::Compare { tag, chunks, known } => {
                JobDone::Compared { tag, comparisons: compare_batch(&chunks, &known) }
            }
            Self::Compress { tag, compression, compressions, chunks, pbns, domains, ready } => {
                let names = ChunkNames { pbns: &pbns, domains: &domains };
                let with = Codecs { compression, compressions: &compressions, ready: &ready };
                compress_batch(tag, &with, &chunks, names)
            }
            Self::Verify { tag, image, frames, plain_bytes, by } => {
                JobDone::Verified { tag, verdicts: verify_frames(&image, &frames, plain_bytes, by) }
            }
            Self::Recompress { tag, compression, image, frames, plain_bytes } => {
                let (bytes, ends) = recompress_frames(&image, &frames, compression, plain_bytes);
                JobDone::Recompressed { tag, bytes, ends }
            }
            Self::Pack { tag, errand } => {
                errand.run();
                JobDone::Packed { tag }
            }
            Self::Prepare { wanted } => JobDone::Prepared { memory: wanted.prepare() },
        }
    }
}

/// What chunks are called: as many PBNs, and as many domains or none at all.
struct ChunkNames<'a> {
    pbns: &'a [Pbn],
    domains: &'a [DomainId],
}

impl ChunkNames<'_> {
    fn iter(&self) -> impl Iterator<Item = ChunkName> {
        let domains = self.domains.iter().copied().chain(repeat(DomainId::DEFAULT));
        self.pbns.iter().zip(domains).map(|(&pbn, domain)| ChunkName { pbn, domain })
    }
}

/// What makes the frames of chunks.
struct Codecs<'a> {
    compression: Compression,
    compressions: &'a [Compression],
    ready: &'a [Option<Payload>],
}

impl Codecs<'_> {
    /// With what each is compressed, and its payload where that has been done.
    fn iter(&self) -> impl Iterator<Item = (Compression, Option<&Payload>)> {
        let with = self.compressions.iter().copied().chain(repeat(self.compression));
        with.zip(self.ready.iter().map(Option::as_ref).chain(repeat(None)))
    }
}

/// The chunks' frames one after the other, and where each ends.
fn compress_batch(
    tag: u64,
    with: &Codecs<'_>,
    chunks: &ChunkBatch,
    names: ChunkNames<'_>,
) -> JobDone {
    let bytes_max = chunks.iter().map(|chunk| frame_bytes_max(chunk.len())).sum();
    let mut bytes = ChunkBuf::pooled(bytes_max);
    let mut ends = Vec::with_capacity(chunks.len());
    let (mut end, mut spared) = (0, 0);
    for ((chunk, name), (with, ready)) in chunks.iter().zip(names.iter()).zip(with.iter()) {
        let out = &mut bytes.bytes_mut()[end..];
        let made = match ready {
            Some(payload) => payload.make_frame(name, chunk, out),
            None => make_frame(with, name, chunk, out),
        };
        end += made.frame_bytes;
        spared += u64::from(made.spared);
        ends.push(FrameEnd { end_bytes: end as u32, check: made.check });
    }
    JobDone::Frames { tag, bytes, ends, spared }
}

/// Every change under these locks is whole before anything can panic, so a poisoned lock is sound.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
