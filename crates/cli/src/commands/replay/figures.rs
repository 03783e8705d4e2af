//! What a replay measured.
//!
//! All but time and memory comes from the engine's own counters, which begin when the store is
//! opened, that is, with the replay.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::{Stats, TablesFigures, Written};
use serde::Serialize;
use traces::Skipped;

use super::driver::Carried;
use super::truth::{Compared, Truth};

/// A page of a table.
const PAGE_BYTES: u64 = 4096;

/// One run. Times of threads are processor time; a chunk is one that was written or read.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Run {
    pub(super) chunk_bytes: u32,
    pub(super) memory_bytes: u64,
    pub(super) request_buffer_bytes: Option<u64>,
    pub(super) writes: u64,
    pub(super) reads: u64,
    pub(super) written_bytes: u64,
    pub(super) read_bytes: u64,
    /// Frames that were stored for it.
    pub(super) stored_bytes: u64,
    /// Part of what was written, zeros left out, that takes no room; none where nothing was stored.
    pub(super) saved_percent: Option<u64>,
    pub(super) skipped: SkippedFigures,
    pub(super) seconds: f64,
    pub(super) bytes_per_second: f64,
    pub(super) chunks_per_second: f64,
    pub(super) core_ns_per_chunk: f64,
    pub(super) workers_ns_per_chunk: f64,
    pub(super) client_ns_per_chunk: f64,
    pub(super) duplicates: Duplicates,
    #[serde(serialize_with = "admin::json::serialize")]
    pub(super) tables: TablesFigures,
    /// What the tables take, on the device or before they are there.
    pub(super) table_bytes: u64,
    /// Part of that for which the cache has room.
    #[serde(rename = "cached_ratio")]
    pub(super) cached_share: f64,
    pub(super) per_unique_chunk: PerUniqueChunk,
    pub(super) read_modify_write: ReadModifyWrite,
    pub(super) compared: ComparedFigures,
    /// With `--verify`: all that was written, read back at the end.
    pub(super) verified: Option<ComparedFigures>,
    #[serde(serialize_with = "admin::json::serialize")]
    pub(super) written: Written,
    /// Of this process at the end, what is remembered to judge by included.
    pub(super) resident_bytes: Option<u64>,
}

/// Requests and lines that were left out.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct SkippedFigures {
    /// Lines that are no requests.
    pub(super) bad_lines: u64,
    /// The first of them, and what is wrong with it.
    pub(super) first_bad_line: Option<u64>,
    pub(super) first_bad_reason: Option<String>,
    /// Lines with headers or padding of tar in them.
    pub(super) tar_lines: u64,
    /// Requests that end beyond 1 PiB.
    pub(super) beyond: u64,
}

/// What the store found beside what is there.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Duplicates {
    pub(super) chunks_duplicate: u64,
    pub(super) chunks_unique: u64,
    pub(super) chunks_zero: u64,
    /// Written over before they were looked up.
    pub(super) chunks_absorbed: u64,
    /// Duplicates among what was looked up.
    #[serde(rename = "duplicate_ratio")]
    pub(super) share: f64,
    /// Duplicates among the 4-KiB blocks of the source, if that is known.
    #[serde(rename = "source_duplicate_ratio")]
    pub(super) share_of_source: Option<f64>,
    /// Different chunks that are mapped at the end, by the store and by the source.
    pub(super) unique_stored: u64,
    pub(super) unique_written: Option<u64>,
    /// Whether nothing else is in the store, so that the two must be the same.
    pub(super) store_is_new: bool,
}

/// What the tables cost for each chunk that was new.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct PerUniqueChunk {
    pub(super) page_reads: f64,
    pub(super) page_writes: f64,
    /// Pages that have changed and are not written yet.
    pub(super) pages_yet_to_write: f64,
    #[serde(rename = "table_written_bytes")]
    pub(super) table_bytes_written: f64,
    #[serde(rename = "journal_written_bytes")]
    pub(super) journal_bytes_written: f64,
}

/// Chunks that are larger than what was written, counted before compression.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct ReadModifyWrite {
    /// Chunks whose other blocks had to be read.
    pub(super) chunks_read_back: u64,
    pub(super) read_back_bytes: u64,
    /// Of new chunks, all of which is written.
    pub(super) unique_bytes: u64,
    /// Both by what clients wrote.
    pub(super) amplification: f64,
}

/// What came back of what was written.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct ComparedFigures {
    pub(super) right_bytes: u64,
    pub(super) wrong_bytes: u64,
    pub(super) first_wrong_bytes: Option<u64>,
}

impl From<Compared> for ComparedFigures {
    fn from(compared: Compared) -> Self {
        let Compared { right_bytes, wrong_bytes, first_wrong_bytes } = compared;
        Self { right_bytes, wrong_bytes, first_wrong_bytes }
    }
}

/// What was measured around the requests.
pub(super) struct Measured {
    pub(super) carried: Carried,
    pub(super) elapsed: Duration,
    pub(super) times_before_ns: BTreeMap<String, u64>,
    pub(super) times_after_ns: BTreeMap<String, u64>,
    pub(super) stats: Stats,
    pub(super) skipped: Skipped,
}

impl Measured {
    /// Processor time of the threads of this name while requests were made.
    fn spent_ns(&self, name: &str) -> f64 {
        threads::cpu_time_between_ns(&self.times_before_ns, &self.times_after_ns, name) as f64
    }

    /// The figures of a replay into `volume`.
    pub(super) fn figures(
        self,
        volume: &str,
        truth: &Truth,
        request_buffer_bytes: Option<u64>,
    ) -> Run {
        let Carried { reads, writes, read_bytes, written_bytes, .. } = self.carried;
        let seconds = self.elapsed.as_secs_f64().max(1e-9);
        let carried_bytes = (written_bytes + read_bytes) as f64;
        let chunk_bytes = self.stats.chunk_bytes;
        let chunks = (carried_bytes / f64::from(chunk_bytes)).max(1.0);
        let stats = &self.stats;
        let written = stats.written_into(volume);
        let beside_bytes = stats.tables.young_bytes + stats.tables.directory_bytes;
        let cache_bytes = stats.tables.cached_pages_max * PAGE_BYTES + beside_bytes;
        // What was never written yet is in no block.
        let tables_bytes = stats.table_bytes.max(stats.tables.cached_pages * PAGE_BYTES);
        Run {
            chunk_bytes,
            memory_bytes: stats.memory_bytes_max,
            request_buffer_bytes,
            writes,
            reads,
            written_bytes,
            read_bytes,
            stored_bytes: written.stored_bytes,
            saved_percent: written.saved_percent(),
            skipped: self.skipped(),
            seconds,
            bytes_per_second: carried_bytes / seconds,
            chunks_per_second: chunks / seconds,
            core_ns_per_chunk: self.spent_ns("core") / chunks,
            workers_ns_per_chunk: self.spent_ns("reduce") / chunks,
            client_ns_per_chunk: self.spent_ns("tamis") / chunks,
            duplicates: duplicates(stats, truth),
            tables: stats.tables.clone(),
            table_bytes: tables_bytes,
            cached_share: (cache_bytes as f64 / tables_bytes.max(1) as f64).min(1.0),
            per_unique_chunk: per_unique_chunk(stats),
            read_modify_write: read_modify_write(stats),
            compared: self.carried.compared.into(),
            verified: None,
            written: stats.written.clone(),
            resident_bytes: disk::rss_bytes(),
        }
    }

    fn skipped(&self) -> SkippedFigures {
        let Skipped { bad_lines, first_bad, tar_lines } = &self.skipped;
        SkippedFigures {
            bad_lines: *bad_lines,
            first_bad_line: first_bad.as_ref().map(|(line, _)| *line),
            first_bad_reason: first_bad.as_ref().map(|(_, error)| error.to_string()),
            tar_lines: *tar_lines,
            beyond: self.carried.beyond,
        }
    }
}

fn duplicates(stats: &Stats, truth: &Truth) -> Duplicates {
    let counters = &stats.counters;
    let (chunks_duplicate, chunks_unique) = (counters.chunks_duplicate, counters.chunks_unique);
    let looked_up = (chunks_duplicate + chunks_unique).max(1);
    Duplicates {
        chunks_duplicate,
        chunks_unique,
        chunks_zero: counters.chunks_zero,
        chunks_absorbed: counters.chunks_absorbed,
        share: chunks_duplicate as f64 / looked_up as f64,
        share_of_source: truth.duplicate_share(),
        unique_stored: stats.unique_chunks,
        unique_written: truth.mapped_unique_chunks(stats.chunk_bytes),
        store_is_new: false,
    }
}

fn per_unique_chunk(stats: &Stats) -> PerUniqueChunk {
    let tables = &stats.tables;
    let all = [&tables.hash_pbn, &tables.pbn_pba, &tables.maps, &tables.others];
    let unique = stats.counters.chunks_unique.max(1) as f64;
    let reads: u64 = all.iter().map(|table| table.leaf_reads + table.inner_reads).sum();
    let writes: u64 = all.iter().map(|table| table.page_writes).sum();
    PerUniqueChunk {
        page_reads: reads as f64 / unique,
        page_writes: writes as f64 / unique,
        pages_yet_to_write: tables.dirty_pages as f64 / unique,
        table_bytes_written: stats.written.table_bytes as f64 / unique,
        journal_bytes_written: stats.written.journal_bytes as f64 / unique,
    }
}

fn read_modify_write(stats: &Stats) -> ReadModifyWrite {
    let chunk_bytes = u64::from(stats.chunk_bytes);
    let chunks_read_back = stats.counters.chunks_read_back;
    let read_back_bytes = chunks_read_back * chunk_bytes;
    let unique_bytes = stats.counters.chunks_unique * chunk_bytes;
    let client_bytes = stats.counters.bytes_written.max(1) as f64;
    ReadModifyWrite {
        chunks_read_back,
        read_back_bytes,
        unique_bytes,
        amplification: (read_back_bytes + unique_bytes) as f64 / client_bytes,
    }
}
