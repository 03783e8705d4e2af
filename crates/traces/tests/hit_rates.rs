//! The workloads' hit rates are those of FIDR's Table 3, by a model of FIDR's cache: least recently
//! used buckets of a table that grows with what is stored, 2.8% of the buckets that it ends with.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::HashSet;

use traces::{Digest, Direction, Workload, WorkloadKind};

/// Entries of a bucket, on average: 107 of them fit, and 62% are used.
const BUCKET_ENTRIES: usize = 66;
const NONE: u32 = u32::MAX;

/// Buckets in the order in which they were used, as far as they are cached.
struct Cache {
    newer: Vec<u32>,
    older: Vec<u32>,
    cached: Vec<bool>,
    newest: u32,
    oldest: u32,
    len: usize,
    capacity: usize,
}

impl Cache {
    fn new(buckets: usize, capacity: usize) -> Self {
        let links = || vec![NONE; buckets];
        let (newest, oldest) = (NONE, NONE);
        Self {
            newer: links(),
            older: links(),
            cached: vec![false; buckets],
            newest,
            oldest,
            len: 0,
            capacity,
        }
    }

    /// Whether the bucket was there.
    fn touch(&mut self, bucket: u32) -> bool {
        let hit = std::mem::replace(&mut self.cached[bucket as usize], true);
        if hit {
            self.unlink(bucket);
        } else {
            self.len += 1;
        }
        self.older[bucket as usize] = self.newest;
        self.newer[bucket as usize] = NONE;
        match self.newest {
            NONE => self.oldest = bucket,
            newest => self.newer[newest as usize] = bucket,
        }
        self.newest = bucket;
        if self.len > self.capacity {
            let victim = self.oldest;
            self.unlink(victim);
            self.cached[victim as usize] = false;
            self.len -= 1;
        }
        hit
    }

    fn unlink(&mut self, bucket: u32) {
        let (newer, older) = (self.newer[bucket as usize], self.older[bucket as usize]);
        match newer {
            NONE => self.newest = older,
            newer => self.older[newer as usize] = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.newer[older as usize] = newer,
        }
    }
}

/// Fingerprints that lie anywhere, as a strong hash of the contents does.
fn bucket(digest: Digest, buckets: u64) -> u32 {
    let hash = digest.halves()[0].wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(32);
    let mixed = (hash ^ hash >> 29).wrapping_mul(0xa076_1d64_78bd_642f);
    let whole = buckets.next_power_of_two();
    // Linear hashing: the buckets that have not been split yet hold those of two.
    let place = (mixed >> 20) & (whole - 1);
    (if place < buckets { place } else { place - whole / 2 }) as u32
}

/// Hits of all look-ups, and of those of the last tenth, in percent.
fn hit_rates(workload: &Workload) -> (f64, f64) {
    let buckets_at_last = workload.unique_chunks() as usize / BUCKET_ENTRIES + 1;
    let mut cache = Cache::new(buckets_at_last, buckets_at_last * 28 / 1000);
    let mut known = HashSet::new();
    let (mut hits, mut late_hits, mut buckets) = (0, 0, 1);
    let late = workload.requests() / 10 * 9;
    for number in 0..workload.requests() {
        let access = workload.access(number);
        assert_eq!(access.direction, Direction::Write);
        let hit = u64::from(cache.touch(bucket(access.digest, buckets)));
        hits += hit;
        late_hits += if number >= late { hit } else { 0 };
        if known.insert(access.digest) && known.len() / BUCKET_ENTRIES + 1 > buckets as usize {
            // The bucket that is split from another is written, and so cached.
            cache.touch(buckets as u32);
            buckets += 1;
        }
    }
    let percent = |hits: u64, of: u64| hits as f64 * 100.0 / of as f64;
    (percent(hits, workload.requests()), percent(late_hits, workload.requests() - late))
}

#[test]
fn hit_rates_are_those_of_the_paper() {
    for (kind, expected, expected_late) in [
        (WorkloadKind::WriteH, 90.0, 88.3),
        (WorkloadKind::WriteM, 81.0, 78.8),
        (WorkloadKind::WriteL, 45.0, 38.7),
    ] {
        for (requests, seed) in [(2_000_000, 1), (4_000_000, 2)] {
            let workload = Workload::new(kind, requests, seed);
            let (found, late) = hit_rates(&workload);
            println!("{}: {found:.2}% of all, {late:.2}% at last", kind.name());
            assert!((found - expected).abs() < 1.0, "{kind:?} {requests}: {found}");
            assert!((late - expected_late).abs() < 1.0, "{kind:?} {requests}: {late} at last");
        }
    }
}
