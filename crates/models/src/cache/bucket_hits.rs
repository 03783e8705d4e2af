//! How often a look-up finds its bucket cached in FIDR's table, which caches nothing else: least
//! recently used buckets, 2.8% of those that the table ends with.

use traces::Direction;

use super::lookup::Lookup;
use super::page_cache::Cache;
use super::plain::Plain;
use super::plan::CACHED_PERCENT;
use super::policies::PolicyKind;
use super::sharing::Sharing;
use super::stream::Stream;

/// Look-ups of a stream's writes whose bucket was cached, in percent.
#[must_use]
pub fn bucket_hit_percent(stream: &Stream, seed: u64) -> f64 {
    let buckets = Plain::pages(stream.chunks);
    let cached = (buckets as f64 * CACHED_PERCENT / 100.0).round().max(1.0) as usize;
    let mut cache = Cache::new(PolicyKind::Lru, Sharing::Common, cached, [buckets, 0, 0, 0, 0]);
    let mut table = Plain::new(stream.chunks, 0, seed);
    let (mut known, mut hits, mut lookups) = (0, 0_u64, 0_u64);
    for access in stream.accesses.iter().filter(|access| access.direction == Direction::Write) {
        let is_new = access.chunk == known;
        known += u32::from(is_new);
        lookups += 1;
        hits += u64::from(table.look_up(&mut cache, access.chunk, is_new) == Lookup::Hit);
    }
    100.0 * hits as f64 / lookups.max(1) as f64
}

#[cfg(test)]
mod tests {
    use traces::{Workload, WorkloadKind};

    use super::{Stream, bucket_hit_percent};

    #[test]
    fn the_made_workloads_hit_as_often_as_the_paper_says() {
        for (kind, stated) in [(WorkloadKind::WriteM, 81.0), (WorkloadKind::WriteL, 45.0)] {
            let stream = Stream::of_workload(&Workload::new(kind, 1_000_000, 1));
            let found = bucket_hit_percent(&stream, 1);
            assert!((found - stated).abs() <= 1.0, "{kind:?}: {found}");
        }
    }
}
