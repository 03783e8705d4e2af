//! What a caller chooses when a store is made and when it is opened.

use accelerator::{EmulatedSettings, Offload};
use format::detection::Detection;
use format::units::Compression;

use crate::duplicates::directories::ENTRY_COST_BYTES;
use crate::space::write_room::WriteRoom;

/// What is fixed when a store is made.
#[derive(Clone, Debug)]
pub struct CreateOptions {
    /// Physical room for frames, summed over all data zones; rounded down to whole containers.
    pub capacity_bytes: Vec<u64>,
    /// Chunk size: 4096, 8192, 16384, 32768 or 65536 bytes.
    pub chunk_bytes: u32,
    /// What new frames are written with; changeable later.
    pub compression: Compression,
    /// How duplicates are found, for good.
    pub detection: Detection,
    /// Room for table pages; by default 9/64 of the capacity, a sixteenth of what is beyond
    /// 8 GiB, and at least 64 MiB.
    pub tables_bytes: Option<u64>,
    /// Length of the journal's ring; by default 1/32 of the capacity, 16 to 256 MiB.
    pub journal_bytes: Option<u64>,
    /// Identity of the store: 16 random bytes of the caller's.
    pub uuid: [u8; 16],
    /// Key of the bucket hash, so that nobody without it can aim chunks at one bucket.
    pub bucket_seed: [u8; 16],
}

/// Smallest memory an engine works in.
pub const MEMORY_BYTES_MIN: u64 = 64 << 20;

/// What a page in the cache costs: its block, its frame, its places in map and queues.
pub(crate) const PAGE_COST_BYTES: u64 = 17 << 8;

/// Bytes of the chunks whose frames may be in memory beside them.
pub(crate) const FRAMES_BYTES_MAX: usize = 16 << 20;

/// What is taken whatever the memory: those frames, containers on their way to the device, those
/// of collection and scrub, and as much again for what the allocator keeps.
const FIXED_BYTES: u64 = 64 << 20;

/// What each worker takes beside: the codec's contexts and the allocator's heap of its thread.
const WORKER_BYTES: u64 = 1 << 20;

/// What is chosen each time a store is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bounds caches, write buffer and reads together; at least [`MEMORY_BYTES_MIN`]. What
    /// their shares leave over is for frames on their way and for what the allocator keeps.
    pub memory_bytes: u64,
    /// Threads that fingerprint and compress; 0 does it on the core's thread (deterministic).
    pub worker_threads: usize,
    /// Acknowledge only what is durable.
    pub sync: bool,
    /// Refuse everything that changes the store with [`crate::RequestError::StoreReadOnly`]. An
    /// opening writes all the same, what the journal says: the disk is one that takes writes and
    /// keeps them from the medium ([`disk::OverlayDisk`]).
    pub read_only: bool,
    /// How long the core polls for its next work before it sleeps, where that pays
    /// ([`threads::AdaptiveSpin`]); 0: it sleeps at once.
    pub poll_us: u32,
    /// What comparisons read ahead, in stores that compare.
    pub comparing_ahead: ComparingAhead,
    /// Room that all but reservations for releases leave alone, from the opening on
    /// ([`crate::Client::keep_for_release`]).
    pub kept_for_release: WriteRoom,
    /// A device that fingerprints and compresses clients' chunks in place of the workers, or the
    /// emulation of one by them (decision 077). What is stored is the same.
    pub accelerator: Option<EmulatedSettings>,
}

/// When comparisons read ahead, and how far: EaD's trigger and distance (decision 023). Nothing of
/// it is on disk.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ComparingAhead {
    /// Candidates of one group in one container that are a run.
    pub run_min: usize,
    /// Bytes of the container that are read behind a run; 0: none. Limited by the memory for it.
    pub bytes: u32,
}

impl Default for ComparingAhead {
    /// 2 MiB are the frames of two groups of half compressible chunks.
    fn default() -> Self {
        Self { run_min: 32, bytes: 2 << 20 }
    }
}

/// How much of the tables and of what is stored is in memory.
#[derive(Copy, Clone, Debug)]
pub struct Caches {
    /// Pages that stay when nobody uses them.
    pub pages: usize,
    /// Pages that may be dirty before a checkpoint begins, if the tables' file has blocks for them.
    /// While it is written as many may be in memory beside the cache.
    pub dirty_pages_max: usize,
    /// Entries of the Hash-PBN table that may be in no bucket; each takes 10 to 15 bytes of memory.
    pub young_max: usize,
    /// Entries of containers' directories that may be in memory, 96 bytes each at most.
    pub directory_entries: usize,
    /// Bytes of frames that were read, in case they are read again; 0: none.
    pub frame_bytes: u64,
    /// Whether pages may have what frames and young entries leave of theirs.
    pub lends: bool,
}

/// Frames have so many times as much memory as what finds them for doors.
const FRAMES_TO_LOOKASIDE: u64 = 15;

impl Caches {
    /// Bytes of what finds frames for doors.
    pub(crate) fn lookaside_bytes(&self) -> u64 {
        self.frame_bytes / FRAMES_TO_LOOKASIDE
    }
}

/// Of the write buffer, however little memory there is.
const WRITE_BUFFER_BYTES_MIN: u64 = 8 << 20;
/// Of the write buffer, four groups of chunks of 4 KiB for each worker.
const WRITE_BUFFER_BYTES_PER_WORKER: u64 = 4 << 20;

/// What a young entry costs at most: its slot in the index, which is filled to 53 to 80%.
pub(crate) const YOUNG_COST_BYTES: u64 = 15;
/// More young entries would take long to find again when a store is opened.
const YOUNG_MAX: u64 = 16 << 20;
/// More dirty pages would take long to freeze, and nobody is served meanwhile (measurements/022).
pub(crate) const DIRTY_PAGES_MAX: usize = 1 << 17;

impl Options {
    /// The caches. That of the tables has a third of the memory. Half of it finds young entries,
    /// which measured best (measurements/012); of the rest an eighth is for directories of
    /// containers, and what is left for pages, of which three quarters may be dirty, but no more
    /// than can be frozen quickly.
    pub(crate) fn caches(&self) -> Caches {
        let cache_bytes = self.memory_bytes / 3;
        let young_max = (cache_bytes / 2 / YOUNG_COST_BYTES).min(YOUNG_MAX);
        let left_bytes = cache_bytes - young_max * YOUNG_COST_BYTES;
        let directory_entries = (left_bytes / 8 / ENTRY_COST_BYTES) as usize;
        let pages_bytes = left_bytes - directory_entries as u64 * ENTRY_COST_BYTES;
        let pages = usize::try_from(pages_bytes / PAGE_COST_BYTES).unwrap_or(usize::MAX);
        let dirty_pages_max = (pages / 4 * 3).min(DIRTY_PAGES_MAX);
        let young_max = young_max as usize;
        // The rest finds them for doors ([`Caches::lookaside_bytes`]).
        let frame_bytes = self.frame_bytes() / 16 * FRAMES_TO_LOOKASIDE;
        let lends = true;
        Caches { pages, dirty_pages_max, young_max, directory_entries, frame_bytes, lends }
    }

    /// Bytes of reads that may be under way: a tenth, at most 128 MiB.
    pub(crate) fn read_bytes(&self) -> u64 {
        (self.memory_bytes / 10).clamp(8 << 20, 128 << 20)
    }

    /// What is taken beside the shares.
    fn fixed_bytes(&self) -> u64 {
        let workers_bytes = self.worker_threads as u64 * WORKER_BYTES;
        let predictor_bytes = self.accelerator.map_or(0, |_| Offload::PREDICTOR_BYTES as u64);
        FIXED_BYTES + workers_bytes + predictor_bytes + self.payloads_bytes() as u64
    }

    /// Of chunks that are compressed before they are looked up.
    fn payloads_bytes(&self) -> usize {
        self.accelerator.map_or(0, |_| FRAMES_BYTES_MAX)
    }

    /// Bytes of frames that were read: three quarters of what the other shares leave, but for what
    /// they all need together; never less than a thirty-second of the memory.
    fn frame_bytes(&self) -> u64 {
        let shares = self.memory_bytes / 3 + self.write_buffer_bytes() + self.read_bytes();
        let left_bytes = self.memory_bytes.saturating_sub(shares + self.fixed_bytes());
        (left_bytes / 4 * 3).max(self.memory_bytes / 32)
    }

    /// Bytes of recycled memory, in use and idle: of the write buffer, of the frames of what is
    /// looked up, and of replies to reads (half of what reads may take, the rest is frames), with
    /// the room for headers that the pool adds. Were that not counted, a full write buffer would
    /// leave no room for idle memory, and each request would take and touch new memory.
    pub(crate) fn pooled_bytes(&self) -> usize {
        let bytes = self.write_buffer_bytes() + self.read_bytes() / 2;
        let frames_bytes = FRAMES_BYTES_MAX + self.payloads_bytes();
        (usize::try_from(bytes).unwrap_or(usize::MAX / 65) + frames_bytes) / 64 * 65
    }

    /// Bytes of client data that may wait in the write buffer: enough that workers and the device
    /// always have some, of a fifth of the memory at most. More would be filled just as well
    /// whenever clients are faster than the store, and each byte be gone from the processor's
    /// caches before its turn comes (`docs/decisions/032`).
    pub(crate) fn write_buffer_bytes(&self) -> u64 {
        let busy_bytes =
            WRITE_BUFFER_BYTES_MIN + self.worker_threads as u64 * WRITE_BUFFER_BYTES_PER_WORKER;
        let most_bytes = (self.memory_bytes / 5).clamp(WRITE_BUFFER_BYTES_MIN, 256 << 20);
        busy_bytes.min(most_bytes)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memory_bytes: 1 << 30,
            worker_threads: 2,
            sync: false,
            read_only: false,
            poll_us: 0,
            comparing_ahead: ComparingAhead::default(),
            kept_for_release: WriteRoom::default(),
            accelerator: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DIRTY_PAGES_MAX, MEMORY_BYTES_MIN, Options};

    #[test]
    fn the_shares_leave_what_is_taken_whatever_the_memory() {
        let sizes_mib = [256, 300, 512, 1024, 4096, 1 << 16, 1 << 20].map(|mib| (mib, 2));
        let many = [(512, 64), (1024, 128), (4096, 128), (1 << 16, 1024)];
        for (mib, worker_threads) in sizes_mib.into_iter().chain(many) {
            let options = Options { memory_bytes: mib << 20, worker_threads, ..Options::default() };
            let shares = options.memory_bytes / 3
                + options.write_buffer_bytes()
                + options.read_bytes()
                + options.frame_bytes();
            let all_bytes = shares + options.fixed_bytes();
            assert!(all_bytes <= options.memory_bytes, "{mib} MiB, {worker_threads} workers");
            assert!(options.frame_bytes() >= options.memory_bytes / 32);
        }
        let buffer_bytes = |workers, mib: u64| {
            let memory_bytes = mib << 20;
            let options = Options { memory_bytes, worker_threads: workers, ..Options::default() };
            options.write_buffer_bytes() >> 20
        };
        assert_eq!(
            [(2, 512), (16, 512), (64, 4096), (2, 64)].map(|(w, m)| buffer_bytes(w, m)),
            [16, 72, 256, 12]
        );
        let dirty = |mib: u64| {
            let options = Options { memory_bytes: mib << 20, ..Options::default() };
            options.caches().dirty_pages_max
        };
        assert!(dirty(512) < dirty(1024) && dirty(1024) < DIRTY_PAGES_MAX);
        assert_eq!(dirty(1 << 16), DIRTY_PAGES_MAX, "however much memory there is");
        // The least memory is a floor: there is a small cache all the same.
        let least = Options { memory_bytes: MEMORY_BYTES_MIN, ..Options::default() };
        assert_eq!(least.frame_bytes(), 2 << 20);
    }
}
