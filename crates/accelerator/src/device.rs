//! What an accelerator is: a device with units that hash and units that compress, and a queue of
//! submissions, each a batch of chunks.

use reduce::{Job, Workers};

/// A device that hashes chunks, and compresses those that it is asked to in the same pass.
///
/// Results come back through the pool ([`Workers::poll`]), as those of any job do.
pub trait Accelerator: Send {
    /// What it has room and units for.
    fn capacity(&self) -> Capacity;

    /// What it has taken and not ended.
    fn backlog(&self) -> Backlog;

    /// Takes submissions, for which its queue has room. `now` is the engine's clock, in ticks.
    fn submit(&mut self, submissions: Vec<Submission>, lanes: &Workers, now: u64);

    /// The job of this tag has come back; whether it was a submission of this device.
    fn ended(&mut self, tag: u64, lanes: &Workers, now: u64) -> bool;

    /// What it has done until `now`.
    fn figures(&self, now: u64) -> DeviceFigures;
}

/// What a device has room and units for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Chunks of one submission, at most.
    pub batch_chunks: usize,
    /// Submissions that it holds, at most: those at work and those that wait in it.
    pub queue: usize,
    /// Submissions that are hashed at a time.
    pub hash_units: usize,
    /// Submissions that are compressed at a time.
    pub compress_units: usize,
}

/// What a submission wants of a device.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// A unit that hashes.
    pub hash: bool,
    /// A unit that compresses.
    pub compress: bool,
}

/// Submissions that a device holds.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// All of them.
    pub held: usize,
    /// Those that want a unit that hashes.
    pub hash: usize,
    /// Those that want a unit that compresses.
    pub compress: usize,
}

impl Backlog {
    /// One submission more.
    pub fn add(&mut self, demand: Demand) {
        self.held += 1;
        self.hash += usize::from(demand.hash);
        self.compress += usize::from(demand.compress);
    }
}

/// A job that a device does.
#[derive(Debug)]
pub struct Submission {
    pub(crate) job: Job,
    pub(crate) hashed: usize,
    pub(crate) compressed: usize,
}

impl Submission {
    /// What is there for a device to do.
    ///
    /// # Errors
    /// The job comes back where there is nothing: frames whose payloads are all ready, and work
    /// of other kinds.
    pub fn new(job: Job) -> Result<Self, Box<Job>> {
        let (hashed, compressed) = match &job {
            Job::Fingerprint { chunks, ahead, .. } => (chunks.len(), ahead.len()),
            Job::Compress { chunks, ready, .. } => {
                (0, chunks.len() - ready.iter().flatten().count())
            }
            _ => (0, 0),
        };
        match hashed + compressed {
            0 => Err(Box::new(job)),
            _ => Ok(Self { job, hashed, compressed }),
        }
    }

    /// The tag of its job, which it comes back with.
    #[must_use]
    pub fn tag(&self) -> u64 {
        self.job.tag()
    }

    /// The units that it wants.
    #[must_use]
    pub fn demand(&self) -> Demand {
        Demand { hash: self.hashed > 0, compress: self.compressed > 0 }
    }

    /// Chunks that go to the device.
    pub(crate) fn chunks(&self) -> usize {
        self.hashed.max(self.compressed)
    }
}

/// What a device has done. Ticks are of the engine's clock, and 0 where there is none.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceFigures {
    /// Submissions that it has begun with.
    pub submissions: u64,
    /// Their chunks.
    pub chunks: u64,
    /// Chunks that were hashed.
    pub chunks_hashed: u64,
    /// Chunks that were compressed.
    pub chunks_compressed: u64,
    /// Submissions that it held at one time, at most.
    pub held_max: u64,
    /// Time in which it had something to do.
    pub active_ticks: u64,
    /// Time of units that hash, all together, from the start of a submission to its end.
    pub hash_ticks: u64,
    /// The same of units that compress.
    pub compress_ticks: u64,
}
