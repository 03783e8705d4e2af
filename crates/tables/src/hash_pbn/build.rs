//! A table made at once from all that it is to hold, as a repair does.

use format::bucket::CAPACITY;
use format::detection::FilterBlocks;
use format::page::Page;
use format::root::HashShape;
use format::units::{Fingerprint, PageId, Pbn, TreeId};

use super::filter::Filters;
use super::key::{BucketKey, bucket_of};
use super::young::push_to;
use super::{LOAD_MEAN, leaf_of};

/// The pages of a table, by tree in ascending order of leaves, and its shape.
pub struct BuiltTable {
    /// For the root.
    pub shape: HashShape,
    /// The pages of each tree.
    pub trees: [(TreeId, Vec<Page>); 3],
}

fn page(tree: TreeId, index: u64) -> Page {
    Page::empty(PageId { tree, level: 0, index })
}

impl BuiltTable {
    /// The table of the store with this seed that holds these entries, no two of one fingerprint.
    /// All are in buckets, but for the few that find theirs full.
    #[must_use]
    pub fn of(entries: &[(Fingerprint, Pbn)], seed: [u8; 16], filter: FilterBlocks) -> Self {
        let key = BucketKey::new(seed);
        let mut hashed: Vec<_> = entries
            .iter()
            .map(|(fingerprint, pbn)| (key.hash(fingerprint), fingerprint, *pbn))
            .collect();
        hashed.sort_unstable();
        let after = (entries.len() as u64).div_ceil(LOAD_MEAN);
        let (mut buckets, mut left_over) = (Vec::new(), Vec::new());
        let mut filters = Filters::new(filter);
        let number = |hash| bucket_of(hash, after);
        // Every bucket has a filter, those without entries too.
        (0..after).for_each(|bucket| filters.fill(false, bucket, std::iter::empty()));
        for of_bucket in hashed.chunk_by(|one, other| number(one.0) == number(other.0)) {
            let Some(bucket) = of_bucket.first().map(|one| number(one.0)) else { continue };
            let (here, rest) = of_bucket.split_at(of_bucket.len().min(CAPACITY));
            filters.fill(false, bucket, here.iter().map(|one| one.0));
            let mut made = page(TreeId::HASH_PBN, leaf_of(false, bucket));
            here.iter().for_each(|(_, fingerprint, pbn)| push_to(&mut made, fingerprint, *pbn));
            buckets.push(made);
            left_over.extend(rest.iter().map(|&(_, fingerprint, pbn)| (fingerprint, pbn)));
        }
        let young: Vec<Page> = (0..)
            .zip(left_over.chunks(CAPACITY))
            .map(|(leaf, entries)| {
                let mut made = page(TreeId::YOUNG, leaf);
                entries.iter().for_each(|(fingerprint, pbn)| push_to(&mut made, fingerprint, *pbn));
                made
            })
            .collect();
        let shape = HashShape {
            after,
            merged: after,
            entries: (entries.len() - left_over.len()) as u64,
            tail: left_over.len() as u64 / CAPACITY as u64,
            ..HashShape::default()
        };
        let filters = filters.pages();
        let trees =
            [(TreeId::HASH_PBN, buckets), (TreeId::YOUNG, young), (TreeId::HASH_FILTER, filters)];
        Self { shape, trees }
    }
}
