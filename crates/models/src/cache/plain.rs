//! The Hash-PBN table as FIDR has it: buckets that grow by linear hashing, each new entry put into
//! its bucket at once.
//!
//! A look-up wants the bucket, unless the filter denies; an insertion wants it in any case and
//! makes it dirty, so that a filter spares no read. Overflow pages are left out: they are few.

use super::filter::Filter;
use super::lookup::{Lookup, hash_of};
use super::page_cache::Cache;
use super::tree::Tree;

/// Entries per bucket above which the table grows.
pub(super) const LOAD_MEAN: u64 = 62;
const NONE: u32 = u32::MAX;

pub(super) struct Plain {
    seed: u64,
    buckets: u64,
    entries: u64,
    filter: Option<Filter>,
    /// Entries of each bucket, and which comes after which: wanted to make filters again.
    first: Vec<u32>,
    next: Vec<u32>,
}

impl Plain {
    pub(super) fn new(chunks: u64, filter_bits: u64, seed: u64) -> Self {
        let filter = Filter::new(filter_bits, LOAD_MEAN, 1);
        Self {
            seed,
            buckets: 1,
            entries: 0,
            filter,
            first: vec![NONE],
            next: vec![NONE; chunks as usize],
        }
    }

    /// Pages of a table of so many chunks.
    pub(super) fn pages(chunks: u64) -> u64 {
        chunks / LOAD_MEAN + 2
    }

    pub(super) fn look_up(&mut self, cache: &mut Cache, chunk: u32, is_new: bool) -> Lookup {
        if self.entries == 0 {
            cache.make(Tree::Bucket, 0);
        }
        let hash = hash_of(self.seed, chunk);
        let bucket = bucket_of(hash, self.buckets);
        let denied = |filter: &Filter| is_new && !filter.may_hold(bucket, hash);
        let lookup = if self.filter.as_ref().is_some_and(denied) {
            Lookup::Denied
        } else {
            Lookup::of_page(cache.want(Tree::Bucket, bucket))
        };
        if is_new {
            self.insert(cache, chunk, bucket);
        }
        lookup
    }

    fn insert(&mut self, cache: &mut Cache, chunk: u32, bucket: u64) {
        cache.change(Tree::Bucket, bucket);
        self.link(chunk, bucket);
        self.entries += 1;
        if self.entries > self.buckets * LOAD_MEAN {
            self.split(cache);
        }
    }

    fn link(&mut self, chunk: u32, bucket: u64) {
        self.next[chunk as usize] = self.first[bucket as usize];
        self.first[bucket as usize] = chunk;
        if let Some(filter) = &mut self.filter {
            filter.insert(bucket, hash_of(self.seed, chunk));
        }
    }

    /// The bucket whose turn it is gives about half its entries to a new one.
    fn split(&mut self, cache: &mut Cache) {
        let added = self.buckets;
        let source = added - (added + 1).next_power_of_two() / 2;
        self.buckets += 1;
        cache.change(Tree::Bucket, source);
        cache.make(Tree::Bucket, added);
        let mut chunk = std::mem::replace(&mut self.first[source as usize], NONE);
        self.first.push(NONE);
        if let Some(filter) = &mut self.filter {
            filter.clear(source);
            filter.push_block();
        }
        while chunk != NONE {
            let next = self.next[chunk as usize];
            let bucket = bucket_of(hash_of(self.seed, chunk), self.buckets);
            debug_assert!(bucket == source || bucket == added, "{bucket} is neither of the two");
            self.link(chunk, bucket);
            chunk = next;
        }
    }
}

/// Linear hashing: the buckets that have not been split yet hold those of two.
pub(super) fn bucket_of(hash: u64, buckets: u64) -> u64 {
    let whole = buckets.next_power_of_two();
    let place = hash & (whole - 1);
    if place < buckets { place } else { place - whole / 2 }
}

#[cfg(test)]
mod tests {
    use super::{LOAD_MEAN, NONE, Plain, bucket_of};
    use crate::cache::lookup::{Lookup, hash_of};
    use crate::cache::page_cache::Cache;
    use crate::cache::policies::PolicyKind;
    use crate::cache::sharing::Sharing;
    use crate::cache::tree::Tree;

    #[test]
    fn every_entry_is_in_its_bucket_and_the_filter_knows_it() {
        let chunks = 5_000;
        let mut cache =
            Cache::new(PolicyKind::Lru, Sharing::Common, 1_000, [Plain::pages(chunks), 0, 0, 0, 0]);
        let mut plain = Plain::new(chunks, 10, 1);
        let mut denied = 0;
        for chunk in 0..chunks as u32 {
            denied += u32::from(plain.look_up(&mut cache, chunk, true) == Lookup::Denied);
        }
        // Buckets that wait for their split are fuller than their blocks are made for.
        assert!(denied > 4_800, "{denied}");
        let mut entries = 0;
        for bucket in 0..plain.buckets {
            let mut chunk = plain.first[bucket as usize];
            while chunk != NONE {
                assert_eq!(bucket_of(hash_of(1, chunk), plain.buckets), bucket);
                entries += 1;
                chunk = plain.next[chunk as usize];
            }
        }
        assert_eq!(entries, chunks);
        assert!(plain.buckets * LOAD_MEAN >= chunks && plain.buckets <= Plain::pages(chunks));
        for chunk in 0..chunks as u32 {
            assert_ne!(plain.look_up(&mut cache, chunk, false), Lookup::Denied);
        }
        // All of it fits: nothing is read.
        assert_eq!(cache.traffic(Tree::Bucket).reads, 0);
    }
}
