//! Made workloads: FIDR's four (MICRO'19, Table 3), each request a function of its number and a
//! seed. There is no table of what was made: the content of any request, and of any address, can be
//! asked for at any time, in no memory, up to the 180 million chunks of the paper and beyond.
//!
//! | workload | duplicate | cache hits | what |
//! |---|---|---|---|
//! | `write-h` | 88% | 90% | writes |
//! | `write-m` | 84% | 81% | writes |
//! | `write-l` | 43.1% | 45% | writes |
//! | `read-mixed` | as `write-h` | | a write of `write-h`, a read of something written, in turn |
//!
//! **Duplicates.** Chunks come in runs of [`RUN_CHUNKS`], as files do. A run is new, or repeats as
//! many chunks that were new before, in their order and from any of them on. In every 1000 runs
//! [`Recipe::unique_permille`] are new, at places that the seed scatters; never is the share off
//! by more than a run.
//!
//! **Hits.** What Table 3 calls the hit rate is that of the cache of the Hash-PBN table, least
//! recently used buckets, 2.8% of them. Fingerprints lie anywhere, so a new chunk hits by chance
//! only, and it is the duplicates that make the rate: one that is *near* repeats what was new or
//! wanted lately, and hits; one that is *far* repeats anything, and mostly misses. While a store
//! grows from nothing to B buckets under a cache of c B, chance makes `F = c (1 + ln 1/c)` of the
//! look-ups hit, 12.8% for c = 2.8% (all of them at first, c at last). From d of duplicates and a
//! rate of h over the whole run follows the share of near ones, `(h - F) / (1 - F) / d`. For
//! `write-h` that is a little more than all of them: 89.5% is what it can have. At the end of a
//! run, where chance makes c, the rates are 88.3%, 78.8% and 38.7%.
//!
//! Of the near ones an eighth repeat what is popular, a few runs from the start; the others go back
//! so far as the logarithm is even, up to a third of what the cache holds.
//!
//! **Addresses.** Each is written once, in extents of [`EXTENT_CHUNKS`] chunks scattered over the
//! volume. FIDR says nothing of them.

use crate::digest::{Digest, mix};
use crate::request::{BLOCK_SECTORS, Direction, Grain, Request};

/// Chunks that are new, or repeated, together.
const RUN_CHUNKS: u64 = 8;
/// Chunks that lie side by side in the volume.
const EXTENT_CHUNKS: u64 = 64;
/// Entries that a bucket holds on average: 62% of 107.
const BUCKET_ENTRIES: u64 = 66;
/// Of the buckets of a whole run, those that are cached.
const CACHED_PERMILLE: u64 = 28;
/// Of so many near duplicates one repeats what is popular.
const POPULAR_ONE_OF: u64 = 8;
const MYRIAD: u64 = 10_000;

/// Which workload.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum WorkloadKind {
    /// Most is duplicate, and most hits.
    WriteH,
    /// Most is duplicate, and less of it hits.
    WriteM,
    /// Most is new.
    WriteL,
    /// Half of it reads.
    ReadMixed,
}

/// What makes a workload.
struct Recipe {
    unique_permille: u64,
    /// Of the duplicates, those that repeat what is near, in parts of 10,000.
    near_myriad: u64,
}

impl WorkloadKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::WriteH, Self::WriteM, Self::WriteL, Self::ReadMixed];

    /// As people write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WriteH => "write-h",
            Self::WriteM => "write-m",
            Self::WriteL => "write-l",
            Self::ReadMixed => "read-mixed",
        }
    }

    fn recipe(self) -> Recipe {
        match self {
            Self::WriteH | Self::ReadMixed => Recipe { unique_permille: 120, near_myriad: 10_000 },
            Self::WriteM => Recipe { unique_permille: 160, near_myriad: 9_311 },
            Self::WriteL => Recipe { unique_permille: 569, near_myriad: 8_566 },
        }
    }
}

/// One request of a workload: a chunk of 4096 bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Which way.
    pub direction: Direction,
    /// Which block of the volume.
    pub block: u64,
    /// What it holds.
    pub digest: Digest,
}

/// A workload of so many requests.
#[derive(Clone, Debug)]
pub struct Workload {
    kind: WorkloadKind,
    requests: u64,
    seed: u64,
    unique_permille: u64,
    near_myriad: u64,
    /// How far back near duplicates reach, in new chunks.
    window_chunks: u64,
    /// Extents of the volume, a power of two of them.
    extents: u64,
}

impl Workload {
    /// The workload of this seed; how far back its duplicates reach follows from its length.
    #[must_use]
    pub fn new(kind: WorkloadKind, requests: u64, seed: u64) -> Self {
        let Recipe { unique_permille, near_myriad } = kind.recipe();
        let mut workload = Self {
            kind,
            requests,
            seed,
            unique_permille,
            near_myriad,
            window_chunks: 0,
            extents: 0,
        };
        let buckets = workload.unique_chunks() / BUCKET_ENTRIES;
        let cached_buckets = buckets * CACHED_PERMILLE / 1000;
        workload.window_chunks = (cached_buckets / 3).max(2 * RUN_CHUNKS);
        workload.extents = workload.writes().div_ceil(EXTENT_CHUNKS).next_power_of_two();
        workload
    }

    /// Which it is.
    #[must_use]
    pub fn kind(&self) -> WorkloadKind {
        self.kind
    }

    /// Requests in all.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Those that write.
    #[must_use]
    pub fn writes(&self) -> u64 {
        match self.kind {
            WorkloadKind::ReadMixed => self.requests.div_ceil(2),
            _ => self.requests,
        }
    }

    /// Different chunks among what is written.
    #[must_use]
    pub fn unique_chunks(&self) -> u64 {
        let writes = self.writes();
        let (runs, rest) = (writes / RUN_CHUNKS, writes % RUN_CHUNKS);
        let rest = if self.is_unique(runs) { rest } else { 0 };
        self.unique_runs_before(runs) * RUN_CHUNKS + rest
    }

    /// Blocks that the volume must have.
    #[must_use]
    pub fn volume_blocks(&self) -> u64 {
        self.extents * EXTENT_CHUNKS
    }

    /// Request `number`, counted from 0.
    #[must_use]
    pub fn access(&self, number: u64) -> Access {
        let (direction, write) = match self.kind {
            WorkloadKind::ReadMixed if number % 2 == 1 => {
                let written = number / 2 + 1;
                (Direction::Read, below(self.chance(number, Purpose::Reads), written))
            }
            WorkloadKind::ReadMixed => (Direction::Write, number / 2),
            _ => (Direction::Write, number),
        };
        Access { direction, block: self.block_of(write), digest: self.digest_of(write) }
    }

    /// The same in the form of a trace, for those who know no other.
    pub fn request(&self, number: u64, request: &mut Request) {
        let Access { direction, block, digest } = self.access(number);
        request.time_ns = number * 1000;
        request.pid = 1;
        request.process.clear();
        request.process.push_str(self.kind.name());
        (request.first_sector, request.sectors) = (block * BLOCK_SECTORS, BLOCK_SECTORS as u32);
        (request.direction, request.grain) = (direction, Grain::Block);
        (request.major, request.minor) = (6, 0);
        request.digests.clear();
        request.digests.push(digest);
    }

    /// Which write of a whole run goes to `block`, if one does.
    #[must_use]
    pub fn write_to(&self, block: u64) -> Option<u64> {
        let (extent, within) = (block / EXTENT_CHUNKS, block % EXTENT_CHUNKS);
        let extent = extent.wrapping_mul(SCATTER_BACK) & (self.extents - 1);
        let write = extent * EXTENT_CHUNKS + within;
        (block < self.volume_blocks() && write < self.writes()).then_some(write)
    }

    /// Where write `write` goes.
    fn block_of(&self, write: u64) -> u64 {
        let (extent, within) = (write / EXTENT_CHUNKS, write % EXTENT_CHUNKS);
        let extent = extent.wrapping_mul(SCATTER) & (self.extents - 1);
        extent * EXTENT_CHUNKS + within
    }

    /// What write `write` holds.
    #[must_use]
    pub fn digest_of(&self, write: u64) -> Digest {
        let (run, within) = (write / RUN_CHUNKS, write % RUN_CHUNKS);
        let first = match self.is_unique(run) {
            true => self.unique_runs_before(run) * RUN_CHUNKS,
            false => self.repeated_from(run),
        };
        self.digest_of_unique(first + within)
    }

    /// Names the new chunk of this number: both halves differ for different numbers.
    fn digest_of_unique(&self, number: u64) -> Digest {
        let low = mix(number.wrapping_add(mix(self.seed)));
        Digest::from_halves([mix(low ^ self.seed), low])
    }

    /// The new chunk from which on run `run`, which is not new, repeats.
    fn repeated_from(&self, run: u64) -> u64 {
        let known = self.unique_runs_before(run) * RUN_CHUNKS;
        // So far back at least, so that the whole run is known.
        let farthest = known - RUN_CHUNKS;
        let place = self.chance(run, Purpose::Place);
        if below(self.chance(run, Purpose::Near), MYRIAD) >= self.near_myriad {
            return below(place, farthest + 1);
        }
        if below(self.chance(run, Purpose::Popular), POPULAR_ONE_OF) == 0 {
            let popular = (self.window_chunks / 16).min(farthest);
            return below(place, popular + 1);
        }
        let octaves = u64::from((self.window_chunks / RUN_CHUNKS).ilog2());
        let nearest = RUN_CHUNKS << below(self.chance(run, Purpose::Octave), octaves.max(1));
        let back = nearest + below(place, nearest);
        known - back.min(known)
    }

    /// New runs among the first `run` ones.
    ///
    /// The new run of number v is run `(1000 v + jitter of v) / unique_permille`. A jitter is
    /// smaller than `1000 - unique_permille`, so no two are the same, and which are before a run
    /// follows from one division.
    fn unique_runs_before(&self, run: u64) -> u64 {
        let scaled = run * self.unique_permille;
        let candidate = scaled / 1000;
        candidate + u64::from(candidate * 1000 + self.jitter(candidate) < scaled)
    }

    fn is_unique(&self, run: u64) -> bool {
        self.unique_runs_before(run + 1) > self.unique_runs_before(run)
    }

    /// The first run is new, since there is nothing that it could repeat.
    fn jitter(&self, unique_run: u64) -> u64 {
        if unique_run == 0 {
            return 0;
        }
        below(self.chance(unique_run, Purpose::Jitter), 1000 - self.unique_permille)
    }

    fn chance(&self, number: u64, purpose: Purpose) -> u64 {
        mix(mix(self.seed ^ purpose as u64).wrapping_add(number))
    }
}

/// What chance decides; each has numbers of its own.
#[derive(Copy, Clone)]
enum Purpose {
    Jitter = 1,
    Near,
    Popular,
    Octave,
    Place,
    Reads,
}

/// Scatters extents: odd, so that it can be undone.
const SCATTER: u64 = 0x9e37_79b9_7f4a_7c15;
/// Undoes it.
const SCATTER_BACK: u64 = inverse(SCATTER);

/// What an odd number is to be multiplied with to give 1, by Newton's method.
const fn inverse(odd: u64) -> u64 {
    let mut inverse = odd;
    let mut right_bits = 3;
    while right_bits < 64 {
        let product = odd.wrapping_mul(inverse);
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(product));
        right_bits *= 2;
    }
    inverse
}

const _: () = assert!(SCATTER.wrapping_mul(SCATTER_BACK) == 1);

/// A number below `bound`, as likely as any other.
fn below(chance: u64, bound: u64) -> u64 {
    ((u128::from(chance) * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use proptest::prelude::any;
    use proptest::proptest;

    use super::{Workload, WorkloadKind};
    use crate::request::Direction;

    const KINDS: [(WorkloadKind, f64); 4] = [
        (WorkloadKind::WriteH, 88.0),
        (WorkloadKind::WriteM, 84.0),
        (WorkloadKind::WriteL, 43.1),
        (WorkloadKind::ReadMixed, 88.0),
    ];

    #[test]
    fn duplicates_are_as_many_as_the_paper_says() {
        for (kind, duplicate_percent) in KINDS {
            for (requests, bound) in [(20_000, 0.5), (400_000, 0.05)] {
                let workload = Workload::new(kind, requests, 7);
                let mut distinct = HashSet::new();
                for number in 0..requests {
                    let access = workload.access(number);
                    if access.direction == Direction::Write {
                        distinct.insert(access.digest);
                    }
                }
                let (unique, writes) = (distinct.len() as u64, workload.writes());
                assert_eq!(unique, workload.unique_chunks(), "{kind:?}");
                let found = (writes - unique) as f64 * 100.0 / writes as f64;
                assert!((found - duplicate_percent).abs() < bound, "{kind:?}: {found}");
            }
        }
    }

    #[test]
    fn the_last_requests_are_no_others_in_a_longer_run_of_the_same_reach() {
        let short = Workload::new(WorkloadKind::WriteM, 5_000, 3);
        let longer = Workload::new(WorkloadKind::WriteM, 5_001, 3);
        assert!((0..5_000).all(|number| short.access(number) == longer.access(number)));
        let other = Workload::new(WorkloadKind::WriteM, 5_000, 4);
        assert_ne!(short.access(9).digest, other.access(9).digest);
    }

    proptest! {
        /// Against what a table of all that was written would say.
        #[test]
        fn any_content_can_be_asked_for_at_any_time(
            kind in 0..4_usize,
            requests in 1..3_000_u64,
            seed in any::<u64>(),
        ) {
            let workload = Workload::new(WorkloadKind::ALL[kind], requests, seed);
            let mut written = HashMap::new();
            let mut distinct = HashSet::new();
            for number in 0..requests {
                let access = workload.access(number);
                assert!(access.block < workload.volume_blocks());
                match access.direction {
                    Direction::Write => {
                        distinct.insert(access.digest);
                        assert_eq!(written.insert(access.block, access.digest), None);
                    }
                    Direction::Read => {
                        assert_eq!(written.get(&access.block), Some(&access.digest));
                    }
                }
            }
            assert_eq!(written.len() as u64, workload.writes());
            assert_eq!(distinct.len() as u64, workload.unique_chunks());
            for block in 0..workload.volume_blocks() {
                let write = workload.write_to(block);
                let digest = write.map(|write| workload.digest_of(write));
                assert_eq!(digest.as_ref(), written.get(&block));
            }
        }
    }
}
