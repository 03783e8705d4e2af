//! Hot buckets: how many of the look-ups go to few of the buckets.

use serde::Serialize;
use traces::Direction;

use super::lookup::hash_of;
use super::plain::{LOAD_MEAN, bucket_of};
use super::stream::Stream;

/// How the look-ups of a workload spread over the buckets of the table that it ends with.
#[derive(Clone, Debug, Serialize)]
pub struct HotBuckets {
    /// Which requests.
    pub workload: String,
    /// Buckets of the table.
    pub buckets: u64,
    /// Of all look-ups, those in the hottest 1% of the buckets.
    pub hottest_1_percent: f64,
    /// Of all look-ups, those in the hottest 10% of the buckets.
    pub hottest_10_percent: f64,
    /// The same for look-ups of duplicates alone.
    pub duplicates_1_percent: f64,
    /// The same for look-ups of duplicates alone.
    pub duplicates_10_percent: f64,
}

pub(super) fn hot_buckets(stream: &Stream, seed: u64) -> HotBuckets {
    let buckets = stream.chunks.div_ceil(LOAD_MEAN).max(1);
    let (mut all, mut duplicates) = (vec![0_u32; buckets as usize], vec![0_u32; buckets as usize]);
    let mut known = 0;
    let writes = stream.accesses.iter().filter(|access| access.direction == Direction::Write);
    for access in writes {
        let bucket = bucket_of(hash_of(seed, access.chunk), buckets) as usize;
        all[bucket] += 1;
        duplicates[bucket] += u32::from(access.chunk < known);
        known += u32::from(access.chunk == known);
    }
    for counts in [&mut all, &mut duplicates] {
        counts.sort_unstable_by(|a, b| b.cmp(a));
    }
    HotBuckets {
        workload: stream.name.clone(),
        buckets,
        hottest_1_percent: share(&all, 1),
        hottest_10_percent: share(&all, 10),
        duplicates_1_percent: share(&duplicates, 1),
        duplicates_10_percent: share(&duplicates, 10),
    }
}

fn share(counts: &[u32], percent: usize) -> f64 {
    let sum = |counts: &[u32]| counts.iter().map(|&count| u64::from(count)).sum::<u64>();
    let hottest = (counts.len() * percent).div_ceil(100);
    100.0 * sum(&counts[..hottest]) as f64 / sum(counts).max(1) as f64
}
