//! FIDR's workloads through one engine store and through the model of its tables, with the same
//! rooms for both: 2.8% of all pages that plain tables would have.

use engine::{Caches, Stats};
use serde::{Deserialize, Serialize};
use traces::{Content, Direction, Grain, Workload, WorkloadKind};

use crate::cache::{
    CACHED_PERCENT, Design, FILTER_BITS, Figures, PolicyKind, Rooms, Setup, Sharing, Stream,
    bucket_hit_percent, rooms, run,
};

use super::drive::{CHUNK_BYTES, DriveError, Driven};

/// Of each content; the rest is zeros.
const COMPRESSIBLE_PERCENT: u8 = 98;
const INDEX_PERCENT: u64 = 50;

/// One workload.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct WorkloadRun {
    /// As Table 3 calls it, in small letters.
    pub workload: String,
    /// Of 4 KiB.
    pub requests: u64,
    /// Pages of tables that engine and model cache, beside what finds young entries.
    pub cache_pages: u64,
    /// Entries that are young at most.
    pub young_max: u64,
    /// Look-ups that find their bucket cached in FIDR's own table.
    pub bucket_hit_percent: f64,
    /// What the engine counted.
    pub engine: TableUse,
    /// What the model says.
    pub model: TableUse,
}

/// What the requests came to in the tables.
#[derive(Copy, Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct TableUse {
    /// Writes of what is stored already.
    pub duplicate_percent: f64,
    /// In the Hash-PBN table.
    pub lookups: u64,
    /// Look-ups for which no page had to be read.
    pub hit_percent: f64,
    /// Pages of entries that were read for each new chunk, of all tables.
    pub pages_read_per_new: f64,
    /// Pages that were written for each new chunk, of all tables.
    pub pages_written_per_new: f64,
}

/// Sends this number of requests of a workload through the engine and the model.
///
/// # Errors
/// [`DriveError`] when the engine refuses something.
pub fn run_workload(
    kind: WorkloadKind,
    requests: u64,
    seed: u64,
) -> Result<WorkloadRun, DriveError> {
    let workload = Workload::new(kind, requests, seed);
    let stream = Stream::of_workload(&workload);
    let setup = Setup {
        design: Design::Gathered,
        policy: PolicyKind::S3FifoClean,
        sharing: Sharing::FloorsHashFirst,
        cached_percent: CACHED_PERCENT,
        filter_bits: FILTER_BITS,
        index_percent: INDEX_PERCENT,
        locality: false,
        seed,
    };
    let rooms = rooms(&stream, &setup);
    Ok(WorkloadRun {
        workload: kind.name().to_owned(),
        requests,
        cache_pages: rooms.pages,
        young_max: rooms.young_max,
        bucket_hit_percent: bucket_hit_percent(&stream, seed),
        engine: TableUse::of_stats(&through_engine(&workload, rooms)?),
        model: TableUse::of_figures(&run(&stream, &setup)),
    })
}

fn through_engine(workload: &Workload, rooms: Rooms) -> Result<Stats, DriveError> {
    let pages = rooms.pages as usize;
    let caches = Caches {
        pages,
        dirty_pages_max: pages / 4 * 3,
        young_max: rooms.young_max as usize,
        directory_entries: 0,
        frame_bytes: 0,
        lends: false,
    };
    let driven = Driven::start(workload.volume_blocks(), Some(caches))?;
    let content = Content::new(COMPRESSIBLE_PERCENT);
    let mut bytes = vec![0; CHUNK_BYTES as usize];
    for number in 0..workload.requests() {
        let access = workload.access(number);
        match access.direction {
            Direction::Write => {
                content.fill(Grain::Block, &[access.digest], &mut bytes);
                driven.write(access.block, &bytes)?;
            }
            Direction::Read => driven.read(access.block, &mut bytes)?,
        }
    }
    driven.stats()
}

impl TableUse {
    fn of_stats(stats: &Stats) -> Self {
        let (tables, counters) = (&stats.tables, &stats.counters);
        let (new, old) = (counters.chunks_unique, counters.chunks_duplicate);
        let all = [&tables.hash_pbn, &tables.pbn_pba, &tables.maps];
        let reads: u64 = all.iter().map(|table| table.leaf_reads).sum();
        let writes: u64 = all.iter().map(|table| table.page_writes).sum();
        let of_table = &tables.hash_pbn;
        Self {
            duplicate_percent: percent(old, new + old),
            lookups: of_table.lookups,
            hit_percent: percent(of_table.hits, of_table.lookups),
            pages_read_per_new: reads as f64 / new.max(1) as f64,
            pages_written_per_new: writes as f64 / new.max(1) as f64,
        }
    }

    fn of_figures(figures: &Figures) -> Self {
        let new = figures.new_chunks.max(1) as f64;
        let lookups = figures.lookups;
        Self {
            duplicate_percent: percent(lookups - figures.lookups_new, lookups),
            lookups,
            hit_percent: percent(lookups - figures.missed, lookups),
            pages_read_per_new: figures.all_reads as f64 / new,
            pages_written_per_new: figures.all_writes as f64 / new,
        }
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::{WorkloadKind, run_workload};

    /// How far hits may differ: when a group closes, and so how many look-ups share a page, depends
    /// on the threads' timing (`drive.rs`).
    const HIT_POINTS_MAX: f64 = 15.0;

    #[test]
    fn the_engine_finds_what_the_model_finds_and_hits_about_as_often() {
        for kind in [WorkloadKind::WriteM, WorkloadKind::WriteL] {
            let run = run_workload(kind, 200_000, 1).unwrap();
            assert_eq!(run.engine.lookups, run.model.lookups, "{run:#?}");
            assert!((run.engine.duplicate_percent - run.model.duplicate_percent).abs() < 1e-9);
            let apart = (run.engine.hit_percent - run.model.hit_percent).abs();
            assert!(apart < HIT_POINTS_MAX, "{run:#?}");
        }
    }
}
