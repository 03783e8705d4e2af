//! The Hash-PBN table of decision 018: young entries appended in the order they came, an index of
//! them in memory, and buckets in the order of hashes that a merge makes anew, round by round.
//!
//! What the model simplifies: the index never errs (32 bits of a hash nearly never do); a bucket of
//! the next turn is made of all entries whose hashes fall to it, found through a table that the
//! real one does not have; the buckets of a merge go past the cache, but where one that it takes
//! from was in memory, the one that it makes is. Young pages that the merge reads go through the
//! cache. The filter's mirror on disk is left out (one 42nd of a page for each bucket made).

use std::ops::Range;

use super::filter::Filter;
use super::lookup::{Lookup, hash_of};
use super::page_cache::Cache;
use super::tree::Tree;

/// Entries of a bucket, on average.
const BUCKET_MEAN: u64 = 78;
/// Entries of a page.
pub(super) const PAGE_ENTRIES: u64 = format::bucket::CAPACITY as u64;
/// Bytes of memory for each young entry.
pub(super) const INDEX_ENTRY_BYTES: u64 = 10;
/// So many sealed segments there are at least.
const SEGMENTS_MIN: u64 = 8;
const SEGMENT_PAGES_MAX: u64 = 64;

const NONE: u32 = u32::MAX;
/// The entry is in a bucket.
const MERGED: u32 = u32::MAX - 1;

/// The buckets of one turn.
struct Turn {
    buckets: u64,
    filter: Option<Filter>,
    /// Of their pages.
    first_page: u64,
}

impl Turn {
    fn bucket_of(&self, hash: u64) -> u64 {
        ((u128::from(hash) * u128::from(self.buckets)) >> 64) as u64
    }

    /// The first hash of a bucket.
    fn first_hash(&self, bucket: u64) -> u128 {
        (u128::from(bucket) << 64).div_ceil(u128::from(self.buckets.max(1)))
    }
}

pub(super) struct Gathered {
    seed: u64,
    filter_bits: u64,
    young_max: u64,
    segment_entries: u64,
    chunks_max: u64,
    /// By chunk: the young page of its entry, or [`MERGED`], or [`NONE`].
    places: Vec<u32>,
    entries: u64,
    young: u64,
    young_pages: u64,
    /// By young page: entries that are not merged.
    living: Vec<u8>,
    /// Chunks of the segment that is not sealed yet.
    open: Vec<u32>,
    last: Turn,
    next: Turn,
    /// Buckets of the next turn that are made.
    made: u64,
    /// Chunks by the first bits of their hashes.
    ranges: Vec<u32>,
    range_next: Vec<u32>,
}

impl Gathered {
    pub(super) fn new(chunks: u64, young_max: u64, filter_bits: u64, seed: u64) -> Self {
        let segment_pages = young_max / PAGE_ENTRIES / SEGMENTS_MIN;
        let segment_pages = segment_pages.clamp(1, SEGMENT_PAGES_MAX);
        let ranges = (chunks / 8).next_power_of_two().max(2) as usize;
        let turn = |first_page| Turn { buckets: 0, filter: None, first_page };
        Self {
            seed,
            filter_bits,
            young_max,
            segment_entries: segment_pages * PAGE_ENTRIES,
            chunks_max: chunks,
            places: vec![NONE; chunks as usize],
            entries: 0,
            young: 0,
            young_pages: 0,
            living: Vec::new(),
            open: Vec::new(),
            last: turn(0),
            next: turn(Self::turn_pages(chunks)),
            made: 0,
            ranges: vec![NONE; ranges],
            range_next: vec![NONE; chunks as usize],
        }
    }

    /// Pages of the buckets of both turns.
    pub(super) fn bucket_pages(chunks: u64) -> u64 {
        2 * Self::turn_pages(chunks)
    }

    /// No turn has more buckets than twice the entries need: a round begins with as many young
    /// entries as there are entries at most.
    fn turn_pages(chunks: u64) -> u64 {
        2 * (chunks / BUCKET_MEAN + 2)
    }

    /// Pages of all young entries that there ever are; their names are not used again.
    pub(super) fn young_pages(chunks: u64) -> u64 {
        chunks / PAGE_ENTRIES + 2
    }

    pub(super) fn look_up(&mut self, cache: &mut Cache, chunk: u32, is_new: bool) -> Lookup {
        let place = self.places[chunk as usize];
        if place != NONE && place != MERGED {
            return Lookup::of_page(cache.want(Tree::Young, u64::from(place)));
        }
        let hash = hash_of(self.seed, chunk);
        let lookup = self.look_into_bucket(cache, hash);
        if is_new {
            self.append(cache, chunk, hash);
        }
        lookup
    }

    /// A bucket of the last turn counts from the cursor on, one of the next turn below it.
    fn look_into_bucket(&self, cache: &mut Cache, hash: u64) -> Lookup {
        let next = self.next.bucket_of(hash);
        let is_made = self.next.buckets > 0 && next < self.made;
        let turn = if is_made { &self.next } else { &self.last };
        if turn.buckets == 0 {
            return Lookup::Denied;
        }
        let bucket = turn.bucket_of(hash);
        if turn.filter.as_ref().is_some_and(|filter| !filter.may_hold(bucket, hash)) {
            return Lookup::Denied;
        }
        Lookup::of_page(cache.want(Tree::Bucket, turn.first_page + bucket))
    }

    fn append(&mut self, cache: &mut Cache, chunk: u32, hash: u64) {
        if (self.open.len() as u64).is_multiple_of(PAGE_ENTRIES) {
            self.young_pages += 1;
            self.living.push(0);
            cache.make(Tree::Young, self.young_pages - 1);
        } else {
            cache.change(Tree::Young, self.young_pages - 1);
        }
        self.places[chunk as usize] = (self.young_pages - 1) as u32;
        self.living[self.young_pages as usize - 1] += 1;
        self.open.push(chunk);
        let range = self.range_of(hash);
        self.range_next[chunk as usize] = std::mem::replace(&mut self.ranges[range], chunk);
        self.entries += 1;
        self.young += 1;
        if self.open.len() as u64 == self.segment_entries {
            self.seal(cache);
        }
        while self.young > self.young_max {
            self.merge(cache);
        }
    }

    /// Sorts the open segment by hash, from the cursor on and round, and in place.
    fn seal(&mut self, cache: &mut Cache) {
        let pages = (self.open.len() as u64).div_ceil(PAGE_ENTRIES);
        let first = self.young_pages - pages;
        let cursor = self.next.first_hash(self.made) as u64;
        let mut chunks = std::mem::take(&mut self.open);
        chunks.retain(|&chunk| self.places[chunk as usize] != MERGED);
        chunks.sort_unstable_by_key(|&chunk| hash_of(self.seed, chunk).wrapping_sub(cursor));
        let mut sorted = chunks.chunks(PAGE_ENTRIES as usize);
        for page in first..first + pages {
            let entries = sorted.next().unwrap_or_default();
            for &chunk in entries {
                self.places[chunk as usize] = page as u32;
            }
            self.living[page as usize] = entries.len() as u8;
            if entries.is_empty() {
                cache.discard(Tree::Young, page);
            } else {
                cache.change(Tree::Young, page);
            }
        }
    }

    /// Makes one bucket of the next turn.
    fn merge(&mut self, cache: &mut Cache) {
        if self.next.buckets == 0 {
            self.begin_round();
        }
        let bucket = self.made;
        let hashes = self.next.first_hash(bucket)..self.next.first_hash(bucket + 1);
        let was_held = self.pass_last_turn(cache, &hashes);
        let mut held = 0;
        let mut due = Vec::new();
        let ranges = self.range_of(hashes.start as u64)..=self.range_of((hashes.end - 1) as u64);
        for range in ranges {
            let mut chunk = self.ranges[range];
            while chunk != NONE {
                let hash = hash_of(self.seed, chunk);
                if self.next.bucket_of(hash) == bucket {
                    if self.places[chunk as usize] == MERGED {
                        held += 1;
                        insert(&mut self.next, bucket, hash);
                    } else {
                        due.push((chunk, hash));
                    }
                }
                chunk = self.range_next[chunk as usize];
            }
        }
        // What finds the bucket full stays young, and the youngest stand first.
        let room = PAGE_ENTRIES.saturating_sub(held) as usize;
        for &(chunk, hash) in due.iter().rev().take(room) {
            insert(&mut self.next, bucket, hash);
            self.take_young(cache, chunk);
        }
        cache.stream(Tree::Bucket, 0, 1);
        if was_held {
            cache.place_clean(Tree::Bucket, self.next.first_page + bucket);
        }
        self.made += 1;
        if self.made == self.next.buckets {
            self.end_round(cache);
        }
    }

    fn begin_round(&mut self) {
        // While the cursor goes round, about as many entries come as are young now, twice; half of
        // them come too late.
        let entries = self.entries + self.young_max;
        self.next.buckets = entries.div_ceil(BUCKET_MEAN).min(Self::turn_pages(self.chunks_max));
        self.next.filter = Filter::new(self.filter_bits, BUCKET_MEAN, self.next.buckets);
        self.made = 0;
    }

    /// Reads the buckets of the last turn that begin in these hashes; whether one of all that
    /// reach into them was in memory.
    fn pass_last_turn(&self, cache: &mut Cache, hashes: &Range<u128>) -> bool {
        if self.last.buckets == 0 {
            return false;
        }
        let first = self.last.bucket_of(hashes.start as u64);
        let end = self.last.bucket_of((hashes.end - 1) as u64) + 1;
        let mut any_held = false;
        for bucket in first..end {
            let held = cache.holds(Tree::Bucket, self.last.first_page + bucket);
            any_held |= held;
            let begins = hashes.contains(&self.last.first_hash(bucket));
            cache.stream(Tree::Bucket, u64::from(begins && !held), 0);
            if self.last.first_hash(bucket + 1) <= hashes.end {
                cache.discard(Tree::Bucket, self.last.first_page + bucket);
            }
        }
        any_held
    }

    fn take_young(&mut self, cache: &mut Cache, chunk: u32) {
        let page = std::mem::replace(&mut self.places[chunk as usize], MERGED) as usize;
        cache.want(Tree::Young, page as u64);
        self.young -= 1;
        self.living[page] -= 1;
        let open_pages = self.open.len().div_ceil(PAGE_ENTRIES as usize);
        let is_sealed = page + open_pages < self.young_pages as usize;
        if self.living[page] == 0 && is_sealed {
            cache.discard(Tree::Young, page as u64);
        }
    }

    /// The turns change places.
    fn end_round(&mut self, cache: &mut Cache) {
        std::mem::swap(&mut self.last, &mut self.next);
        for bucket in 0..self.next.buckets {
            cache.discard(Tree::Bucket, self.next.first_page + bucket);
        }
        self.next.buckets = 0;
        self.next.filter = None;
        self.made = 0;
    }

    fn range_of(&self, hash: u64) -> usize {
        (hash >> (64 - self.ranges.len().ilog2())) as usize
    }
}

fn insert(turn: &mut Turn, bucket: u64, hash: u64) {
    if let Some(filter) = &mut turn.filter {
        filter.insert(bucket, hash);
    }
}

#[cfg(test)]
mod tests {
    use super::{Gathered, MERGED, PAGE_ENTRIES};
    use crate::cache::lookup::{Lookup, hash_of};
    use crate::cache::page_cache::Cache;
    use crate::cache::policies::PolicyKind;
    use crate::cache::sharing::Sharing;
    use crate::cache::tree::Tree;

    const CHUNKS: u64 = 40_000;
    const YOUNG_MAX: u64 = 5_000;

    fn filled() -> (Gathered, Cache) {
        let sizes = [Gathered::bucket_pages(CHUNKS), Gathered::young_pages(CHUNKS), 0, 0, 0];
        let mut cache = Cache::new(PolicyKind::Lru, Sharing::Common, 100, sizes);
        let mut gathered = Gathered::new(CHUNKS, YOUNG_MAX, 10, 1);
        let mut wrong = 0;
        for chunk in 0..CHUNKS as u32 {
            wrong += u32::from(gathered.look_up(&mut cache, chunk, true) != Lookup::Denied);
            assert!(gathered.young <= YOUNG_MAX);
        }
        assert!(wrong < CHUNKS as u32 / 50, "{wrong}");
        (gathered, cache)
    }

    #[test]
    fn every_entry_is_found_where_it_should_be() {
        let (mut gathered, mut cache) = filled();
        let mut merged = vec![0_u64; 2 * Gathered::bucket_pages(CHUNKS) as usize];
        let mut living = vec![0; gathered.living.len()];
        for chunk in 0..CHUNKS as u32 {
            assert_ne!(gathered.look_up(&mut cache, chunk, false), Lookup::Denied, "{chunk}");
            let place = gathered.places[chunk as usize];
            if place != MERGED {
                living[place as usize] += 1;
                continue;
            }
            let hash = hash_of(1, chunk);
            let next = gathered.next.bucket_of(hash);
            let turn = if next < gathered.made { &gathered.next } else { &gathered.last };
            merged[(turn.first_page + turn.bucket_of(hash)) as usize] += 1;
        }
        assert_eq!(living, gathered.living);
        assert_eq!(living.iter().map(|&living| u64::from(living)).sum::<u64>(), gathered.young);
        assert!(merged.iter().all(|&entries| entries <= PAGE_ENTRIES));
    }

    /// A round takes in twice as many entries as are young.
    #[test]
    fn merging_costs_what_the_decision_says() {
        let (gathered, cache) = filled();
        let rounds = CHUNKS as f64 / (2 * YOUNG_MAX) as f64;
        let buckets = cache.traffic(Tree::Bucket).writes as f64;
        let mean = gathered.last.buckets.max(gathered.next.buckets) as f64 / 2.0;
        let ratio = buckets / (rounds * mean);
        assert!((0.7..1.4).contains(&ratio), "{buckets} buckets in {rounds} rounds of {mean}");
    }
}
