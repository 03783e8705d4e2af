//! Figures of a store, as `tamis stats` shows them: [`figures`] takes them from totals that are
//! exact at every step, [`stages`] and [`table_figures`] say where the core's time goes.

pub(crate) mod accelerator_figures;
pub(crate) mod figures;
pub(crate) mod stages;
pub(crate) mod table_figures;
pub(crate) mod volume_written;

pub use crate::stats::accelerator_figures::AcceleratorFigures;
use crate::stats::stages::StageTimes;
pub use crate::stats::volume_written::VolumeWritten;

/// Everything `tamis stats --json` prints; all sizes in bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// What messages name the store by, in hexadecimal digits; empty from servers of earlier
    /// releases.
    pub uuid: String,
    /// Mapped by volumes.
    pub logical_bytes: u64,
    /// Mapped by snapshots, each counted whole.
    pub snapshot_bytes: u64,
    /// Deleted volumes, snapshots and cut-off ranges whose space is yet to come back.
    pub deletions: u64,
    /// Deleted snapshots that several clones, or volumes rolled back to them, still share: their
    /// space comes back when at most one is left.
    pub deletions_held: u64,
    /// Chunks that are stored and referred to.
    pub unique_chunks: u64,
    /// The same before compression.
    pub unique_bytes: u64,
    /// Frames of those chunks.
    pub stored_bytes: u64,
    /// Table pages in use.
    pub table_bytes: u64,
    /// The journal's ring.
    pub journal_bytes: u64,
    /// In use in all: containers, table pages, journal, superblock.
    pub device_bytes: u64,
    /// What the files or devices of all zones take where they are, used or not.
    pub allocated_bytes: u64,
    /// What clients can write now, though all of it were new and could not be compressed: before
    /// collection gives anything back. Of a store whose files are allocated as they fill no more
    /// than their file systems have room for.
    pub free_bytes: u64,
    /// What volumes with a reservation do not map of it yet, at its worst case: free for them, and
    /// for nobody else, so that `free_bytes` leaves it out.
    pub promised_bytes: u64,
    /// Room for frames in all.
    pub capacity_bytes: u64,
    /// The part of that which only collection may use.
    pub kept_bytes: u64,
    /// Frames that nothing refers to.
    pub dead_bytes: u64,
    /// Room that collection would give back now: not all that is dead, since it takes no container
    /// of which nearly all lives.
    pub collectable_bytes: u64,
    /// Chunks that so many LBAs name that they are stored twice, in two containers.
    pub copied_chunks: u64,
    /// Frames of their second copies, which `stored_bytes` leaves out.
    pub copy_bytes: u64,
    /// Part of the room for frames that neither is free nor comes back by collection, what that
    /// needs to work in left out, 0 to 1.
    pub data_used_ratio: f64,
    /// The same with what comes back by collection: part that is not free now.
    pub data_taken_ratio: f64,
    /// Part of the room for table pages that is in use, the reserve left out, 0 to 1.
    pub tables_used_ratio: f64,
    /// The highest watermark that either has reached and not left again.
    pub watermark_percent: Option<u8>,
    /// `(logical_bytes + snapshot_bytes) / unique_bytes`. None while nothing is stored, and while
    /// deleted data that is not given back yet makes it less than 1.
    pub dedup_ratio: Option<f64>,
    /// `unique_bytes / stored_bytes`; none while nothing is stored.
    pub compression_ratio: Option<f64>,
    /// `(logical_bytes + snapshot_bytes) / stored_bytes`; none where `dedup_ratio` is.
    pub reduction_ratio: Option<f64>,
    /// Caches and write buffer as they are now.
    pub memory_bytes: u64,
    /// The bound they keep to.
    pub memory_bytes_max: u64,
    /// What requests on their way hold; nothing is left of it when all are answered and at rest.
    pub under_way: UnderWay,
    /// What new frames are written with.
    pub compression: String,
    /// Size of a chunk.
    pub chunk_bytes: u32,
    /// What makes fingerprints.
    pub fingerprint: String,
    /// Whether bytes are compared before a chunk counts as stored.
    pub verify: bool,
    /// Keyed domains that some volume or snapshot is in.
    pub domains: u64,
    /// Stored chunks that are known to be damaged.
    pub damaged_chunks: u64,
    /// Chunks that a repair found nothing of, whether or not something maps them still: a scrub
    /// says what does.
    pub given_up_chunks: u64,
    /// Every volume.
    pub volumes: Vec<VolumeStats>,
    /// Why nothing is written any more, until the store is opened again; none while all is well.
    pub writing_stopped: Option<String>,
    /// What clients wrote since the store was opened, and what of it was written to the device.
    pub written: Written,
    /// What the tables cost since the store was opened.
    pub tables: TablesFigures,
    /// What was read and is in memory.
    pub read_cache: ReadCacheFigures,
    /// What the accelerator did since the store was opened; none without one.
    pub accelerator: Option<AcceleratorFigures>,
    /// Where time went since the store was opened.
    pub stages: StageTimes,
    /// What happened since the store was opened.
    pub counters: Counters,
}

impl Stats {
    /// What was written into the volume of this name; nothing where there is none.
    #[must_use]
    pub fn written_into(&self, name: &str) -> VolumeWritten {
        let volume = self.volumes.iter().find(|volume| volume.name == name);
        volume.map_or_else(VolumeWritten::default, |volume| volume.written)
    }
}

/// What requests hold until they have been answered, and what they wrote is in the tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnderWay {
    /// Chunks for which there is room, whatever comes.
    pub reserved_chunks: u64,
    /// Chunks that quotas have room for.
    pub quota_chunks: u64,
    /// Memory of writes.
    pub write_bytes: u64,
    /// Memory of reads, their answers included until somebody has taken them.
    pub read_bytes: u64,
}

/// What was read and is in memory, in case it is read again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadCacheFigures {
    /// Frames, as they are stored; without what was read ahead.
    pub frames: u64,
    /// Memory that they take.
    pub bytes: u64,
    /// Memory that they may take.
    pub bytes_max: u64,
    /// Chunks of reads that were found.
    pub hits: u64,
    /// Those of them that were answered where they were asked, without the core.
    pub hits_at_doors: u64,
    /// Chunks that had been read ahead.
    pub hits_ahead: u64,
    /// Chunks that had to be read.
    pub misses: u64,
    /// Part of all these that were found, 0 to 1; 0 before anything was read.
    pub hit_ratio: f64,
    /// Chunks to compare with that were found.
    pub hits_to_compare: u64,
    /// Chunks to compare with that had been read ahead, or were on their way.
    pub hits_ahead_to_compare: u64,
    /// Bytes that were read ahead.
    pub ahead_read_bytes: u64,
    /// Those of them that somebody then needed.
    pub ahead_used_bytes: u64,
}

/// What the tables cost since the store was opened, and their cache as it is now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TablesFigures {
    /// Fingerprints to chunks.
    pub hash_pbn: TableFigures,
    /// Chunks to places.
    pub pbn_pba: TableFigures,
    /// Addresses of all volumes to chunks.
    pub maps: TableFigures,
    /// Catalog, containers, free PBNs; what is looked up in them is not counted.
    pub others: TableFigures,
    /// Pages in the cache.
    pub cached_pages: u64,
    /// Pages that it keeps.
    pub cached_pages_max: u64,
    /// Pages that are yet to be written.
    pub dirty_pages: u64,
    /// Entries of the Hash-PBN table that are in no bucket yet.
    pub young_entries: u64,
    /// Pages of the Hash-PBN table that were read to merge them: no look-up had to wait for one.
    pub merge_reads: u64,
    /// Duplicates that were found in a directory of their container, without their bucket.
    pub found_by_directory: u64,
    /// Directories that were brought in for that.
    pub directories_read: u64,
    /// Memory of those that are held: part of the cache.
    pub directory_bytes: u64,
    /// Memory of what finds those: part of the cache.
    pub young_bytes: u64,
    /// Memory of the Hash-PBN table's filters, which comes to the cache: it grows with the store.
    pub filter_bytes: u64,
}

/// What one table costs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableFigures {
    /// Entries that were looked up or changed.
    pub lookups: u64,
    /// Pages with entries that had to be read for that, and for the table's growth.
    pub leaf_reads: u64,
    /// Pages above those.
    pub inner_reads: u64,
    /// Pages that were written, or are about to be.
    pub page_writes: u64,
    /// Part of the entries whose page was in the cache: `1 - leaf_reads / lookups`.
    pub hit_ratio: f64,
    /// Entries whose page was in the cache, or that no page had to be looked into for.
    pub hits: u64,
    /// Pages that had to be read for an entry; without those that a merge read.
    pub misses: u64,
    /// Pages in the cache.
    pub cached_pages: u64,
    /// Those of them that are yet to be written.
    pub dirty_pages: u64,
    /// How the accesses lately spread over the pages with entries.
    pub heat: HeatFigures,
}

/// How concentrated the accesses to a table have been lately.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatFigures {
    /// Pages that were accessed, estimated where they are many.
    pub pages: u64,
    /// Part of the accesses, 0 to 1, that went to the hottest hundredth of those pages, at least
    /// one.
    pub hottest_1_percent_ratio: f64,
    /// Part of the accesses that went to the hottest tenth.
    pub hottest_10_percent_ratio: f64,
    /// Pages of the Hash-PBN table that are hot by themselves, hottest first; none of others.
    pub hot_pages: Vec<HotPageFigures>,
}

/// A page that is hot by itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HotPageFigures {
    /// The bucket, or the page of young entries.
    pub number: u64,
    /// Whether it is one of young entries, which are in no bucket yet.
    pub is_young: bool,
    /// Part of the accesses that went to it, 0 to 1.
    pub ratio: f64,
}

/// Where the bytes went that were written since the store was opened: those of clients, and those
/// handed to the device, its opening included.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Written {
    /// By clients.
    pub client_bytes: u64,
    /// Of chunks that were stored already, and took no room.
    pub duplicate_bytes: u64,
    /// Of chunks of zeros, and of those written over before they were stored.
    pub dropped_bytes: u64,
    /// To the device: frames of chunks that were new.
    pub new_frame_bytes: u64,
    /// Frames that collection moved.
    pub moved_frame_bytes: u64,
    /// Frames of second copies.
    pub copied_frame_bytes: u64,
    /// The rest of the data zones: directories of containers, and padding before flushes. Frames
    /// that wait in memory for their container's next write are not in it yet.
    pub container_bytes: u64,
    /// Table pages.
    pub table_bytes: u64,
    /// Journal records.
    pub journal_bytes: u64,
    /// Roots and geometry.
    pub superblock_bytes: u64,
    /// All that was written to the device.
    pub device_bytes: u64,
    /// `device_bytes / client_bytes`; 0 before anything was written.
    pub amplification: f64,
}

/// Figures of one volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeStats {
    /// Its name.
    pub name: String,
    /// Its logical size.
    pub size_bytes: u64,
    /// Mapped to chunks.
    pub mapped_bytes: u64,
    /// What was written into it since the store was opened.
    pub written: VolumeWritten,
}

/// What happened since the store was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each name says it; all count events since the store was opened")]
pub struct Counters {
    pub reads: u64,
    pub writes: u64,
    pub trims: u64,
    pub flushes: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub chunks_duplicate: u64,
    pub chunks_unique: u64,
    pub chunks_zero: u64,
    /// Chunks written over at once, in the write buffer.
    pub chunks_absorbed: u64,
    /// New chunks that looked like noise, and on which the codec was not tried.
    pub chunks_spared: u64,
    /// New chunks that the Hash-PBN table denied without a page.
    pub lookups_denied: u64,
    /// New chunks for which a page of it had to be looked into.
    pub lookups_absent: u64,
    /// Of a store that compares bytes: chunks whose fingerprint led to the same bytes.
    pub lookups_equal: u64,
    /// Chunks whose fingerprint led to other bytes.
    pub lookups_differ: u64,
    /// Looked-up chunks that were stored unindexed: those whose fingerprint led to other bytes, and
    /// those whose candidate could not be compared or had no reference left.
    pub chunks_unindexed: u64,
    /// Chunks that were stored without a look-up, unindexed too: of volumes without deduplication.
    pub lookups_skipped: u64,
    /// Frames that were read from the device to be compared with.
    pub chunks_read_to_compare: u64,
    /// Reads by which they came.
    pub comparison_reads: u64,
    pub comparison_bytes_read: u64,
    /// Chunks of reads whose frames were in memory, and those that had to be read.
    pub frames_hit: u64,
    pub frames_missed: u64,
    /// Chunks of reads that had been read ahead.
    pub frames_ahead: u64,
    /// Frames to compare with that were in memory, and those that had been read ahead.
    pub frames_hit_to_compare: u64,
    pub frames_ahead_to_compare: u64,
    /// Pages of the Hash-PBN table that were read to merge them.
    pub merge_reads: u64,
    pub chunks_found_by_directory: u64,
    pub directories_read: u64,
    /// Partly written chunks whose other sectors were read from what is stored.
    pub chunks_read_back: u64,
    pub chunks_damaged: u64,
    pub chunks_healed: u64,
    /// Chunks of reads whose frames were damaged, and that were read from their second copies.
    pub chunks_read_from_copies: u64,
    /// Second copies made.
    pub chunks_copied: u64,
    pub groups: u64,
    pub syncs: u64,
    pub checkpoints: u64,
    pub containers_collected: u64,
    pub chunks_moved: u64,
    pub table_reads: u64,
    pub table_writes: u64,
    pub data_bytes_written: u64,
    pub journal_bytes_written: u64,
    /// The part of `data_bytes_written` that collection moved.
    pub collection_bytes_written: u64,
    /// Frames of clients' new chunks: what was left of their writes to be stored.
    pub frame_bytes_stored: u64,
    /// Frames that collection moved.
    pub frame_bytes_moved: u64,
    /// Frames of second copies.
    pub frame_bytes_copied: u64,
}
