//! The Hash-PBN table: which stored chunk has this content. Exact, and as large as the store needs.
//!
//! Fingerprints lie anywhere, so a table that put each where it belongs would read and write a page
//! for every one. This one *gathers*: a new entry is appended to the pages of the **young**, in the
//! order they come, and a **merge** goes round the **buckets**, ascending by hash, and takes what
//! is due into each. Buckets are never changed once they are made.
//!
//! ```text
//! insert, take_back -> young pages -- seal -> segments, sorted -- merge -> buckets of this turn
//!                          |                                       ^             |
//!              index: where each stands             buckets of the turn before   filter: maybe
//! ```
//!
//! A look-up asks the index, then the filter of one bucket, and reads a page only where one of them
//! says maybe. Both are in memory and made again, or loaded, when a store is opened (`load.rs`).
//!
//! Invariants:
//!
//! - What the table holds follows from its events alone. How far the merge has come does not matter
//!   to anyone: replay may merge elsewhere, and need not merge at all.
//! - Events of one fingerprint are in the order of their places, and all that are young are newer
//!   than its bucket. What is taken back is exactly (fingerprint, PBN).
//! - The index knows each young event that the merge has not taken, and no other.
//! - A filter never denies what its bucket holds.
//! - Buckets of this turn count below the cursor, those of the turn before from it on.
//!
//! Why this way: `docs/decisions/018-entries-are-gathered.md`.

mod build;
mod filter;
mod key;
mod load;
mod look_up;
mod merge;
mod seal;
mod segment;
mod young;

use format::bucket;
use format::detection::FilterBlocks;
use format::root::HashShape;
use format::units::{Fingerprint, PageId, Pbn, TreeId};

use crate::error::PageError;
use crate::place_index::SpareSlots;
use crate::store::{PageRead, PageStore, PinSet};
pub use build::BuiltTable;
use filter::Filters;
use key::{BucketKey, bucket_of, start_of};
pub use load::YoungEntry;
pub use look_up::Seen;
use segment::Segment;
use young::{Event, Young};

const LOAD_MEAN: u64 = bucket::LOAD_MEAN as u64;

/// How much of a table is kept young.
#[derive(Copy, Clone, Debug)]
pub struct HashOptions {
    /// Young entries beyond which the merge goes on. Each costs 10 to 15 bytes of memory.
    pub young_max: usize,
    /// Pages of young entries that are sorted together.
    pub segment_pages: u64,
    /// The filter of each bucket, which is that of all buckets of the table before.
    pub filter: FilterBlocks,
}

impl HashOptions {
    /// Segments that the young are in at most, or nearly.
    const SEGMENTS: usize = 256;
    /// Sorting more pages would hold the core up.
    const SEGMENT_PAGES_MAX: usize = 160;

    /// With so many young entries.
    #[must_use]
    pub fn with_young(young_max: usize, filter: FilterBlocks) -> Self {
        let pages = young_max / format::bucket::CAPACITY / Self::SEGMENTS;
        Self { young_max, segment_pages: pages.clamp(1, Self::SEGMENT_PAGES_MAX) as u64, filter }
    }
}

/// The table's shape, key, index and filters; its pages are in the page store.
pub struct HashPbn {
    shape: HashShape,
    key: BucketKey,
    options: HashOptions,
    young: Young,
    filters: Filters,
    /// Sealed segments, oldest first, that the merge has not used up.
    segments: Vec<Segment>,
    /// Memory of what is sorted at a seal, kept for the next.
    sealing: Vec<Event>,
    /// Pages for which the merge goes on, however little is young.
    worth_pages: Option<u64>,
}

impl HashPbn {
    /// The table as a root knows it, of the store with this seed. Unless it is new, it has to be
    /// loaded ([`Self::load_filter`], [`Self::load_young`]) before it is used.
    #[must_use]
    pub fn new(shape: HashShape, seed: [u8; 16], options: HashOptions) -> Self {
        Self {
            shape,
            key: BucketKey::new(seed),
            options,
            young: Young::new(shape.tail),
            filters: Filters::new(options.filter),
            segments: Vec::new(),
            sealing: Vec::new(),
            worth_pages: None,
        }
    }

    /// The shape, for a root.
    #[must_use]
    pub fn shape(&self) -> HashShape {
        HashShape { tail: self.young.tail(), ..self.shape }
    }

    /// Behind the last leaf that one of its trees can have.
    #[must_use]
    pub fn leaves_end_of(&self, tree: TreeId) -> u64 {
        Self::leaves_end(&self.shape(), self.options.filter, tree)
    }

    /// Number of buckets, as far as they are made.
    #[must_use]
    pub fn buckets(&self) -> u64 {
        let HashShape { before, after, merged, .. } = self.shape;
        let left = if merged == after { 0 } else { before - before.min(self.cursor_in(before)) };
        merged + left
    }

    /// Entries that are in no bucket yet, those that take another back among them.
    #[must_use]
    pub fn young_entries(&self) -> u64 {
        self.young.index.len() as u64
    }

    /// Memory of what finds young entries, and of those that are next to be merged.
    #[must_use]
    pub fn young_bytes(&self) -> u64 {
        let sealing_bytes = (self.sealing.capacity() * size_of::<Event>()) as u64;
        self.young.index.resident_bytes() + segment::resident_bytes(&self.segments) + sealing_bytes
    }

    /// What the index of the young should be brought before it grows.
    #[must_use]
    pub fn spares_wanted(&self) -> Option<SpareSlots> {
        self.young.index.spares_wanted()
    }

    /// Takes what [`Self::spares_wanted`] asked for.
    pub fn take_spares(&mut self, lists: Vec<Vec<u64>>) {
        self.young.index.take_spares(lists);
    }

    /// Memory of the filters.
    #[must_use]
    pub fn filter_bytes(&self) -> u64 {
        self.filters.resident_bytes()
    }

    /// The store's own hash of a fingerprint: clients do not know which meet.
    #[must_use]
    pub fn hash_of(&self, fingerprint: &Fingerprint) -> u64 {
        self.key.hash(fingerprint)
    }

    /// Prefetches what inserting these will change.
    pub fn touch_inserts<'a>(&self, fingerprints: impl Iterator<Item = &'a Fingerprint>) {
        self.young.index.touch_all(fingerprints.map(|one| self.key.hash(one)));
    }

    /// The bucket in which `fingerprint` stands if it is stored and not young; none when there are
    /// no buckets there.
    #[must_use]
    pub fn bucket_of(&self, fingerprint: &Fingerprint) -> Option<u64> {
        self.route(self.key.hash(fingerprint)).map(|(_, bucket)| bucket)
    }

    /// Asks for the pages to insert or take back `count` entries.
    ///
    /// # Errors
    /// [`PageError`] when one is damaged.
    pub fn want_insert(
        &self,
        store: &mut PageStore,
        pins: &mut PinSet,
        count: u64,
        reads: &mut Vec<PageRead>,
    ) -> Result<bool, PageError> {
        self.young.want_append(store, pins, count, reads)
    }

    /// Enters a chunk. The pages must have been wanted by [`Self::want_insert`].
    pub fn insert(&mut self, store: &mut PageStore, fingerprint: &Fingerprint, pbn: Pbn) {
        self.insert_all(store, std::iter::once((fingerprint, pbn)));
    }

    /// Enters chunks in turn, as [`Self::insert`] does; each page is found once.
    pub fn insert_all<'a>(
        &mut self,
        store: &mut PageStore,
        chunks: impl Iterator<Item = (&'a Fingerprint, Pbn)>,
    ) {
        let key = self.key;
        let events = chunks.map(|(fingerprint, pbn)| (key.hash(fingerprint), fingerprint, pbn));
        self.young.append_all(store, events);
    }

    /// From now on `fingerprint` does not lead to `pbn`; if it leads to another chunk, that stays.
    /// The pages must have been wanted by [`Self::want_insert`].
    pub fn take_back(&mut self, store: &mut PageStore, fingerprint: &Fingerprint, pbn: Pbn) {
        let hash = self.key.hash(fingerprint);
        self.young.append(store, hash, fingerprint, format::bucket::taken_back(pbn));
    }

    /// Asks for the leaves that [`Self::store`] will change.
    ///
    /// # Errors
    /// [`PageError`] when one is damaged.
    pub fn want_store(
        &self,
        store: &mut PageStore,
        pins: &mut PinSet,
        reads: &mut Vec<PageRead>,
    ) -> Result<bool, PageError> {
        self.filters.want_store(store, pins, reads)
    }

    /// Leaves of the filters that the next checkpoint writes: pages that are not dirty yet.
    #[must_use]
    pub fn filter_pages_to_store(&self) -> u64 {
        self.filters.leaves_to_store()
    }

    /// The next checkpoint writes a leaf of the filters anew; false if the page is none.
    pub fn rewrite_filter(&mut self, page: PageId) -> bool {
        page.tree == TreeId::HASH_FILTER && page.level == 0 && self.filters.rewrite(page.index)
    }

    /// Mirrors what has changed in memory into leaves, which must have been wanted.
    pub fn store(&mut self, store: &mut PageStore) {
        self.filters.store(store);
    }

    /// The least hash that the merge has not come to; none when it has gone round.
    fn cursor(&self) -> Option<u64> {
        let HashShape { after, merged, .. } = self.shape;
        if after == 0 { Some(0) } else { u64::try_from(start_of(merged, after)).ok() }
    }

    /// The bucket of so many in which the cursor stands.
    fn cursor_in(&self, buckets: u64) -> u64 {
        self.cursor().map_or(buckets, |cursor| bucket_of(cursor, buckets))
    }

    /// Turn and bucket of a hash.
    fn route(&self, hash: u64) -> Option<(bool, u64)> {
        let HashShape { turn, before, after, merged, .. } = self.shape;
        let bucket = bucket_of(hash, after);
        if bucket < merged {
            return Some((turn, bucket));
        }
        (before > 0).then(|| (!turn, bucket_of(hash, before)))
    }
}

/// The leaf of a bucket.
fn leaf_of(turn: bool, bucket: u64) -> u64 {
    2 * bucket + u64::from(turn)
}

impl HashPbn {
    /// The bucket that a leaf of the buckets is.
    #[must_use]
    pub fn bucket_in(leaf: u64) -> u64 {
        leaf / 2
    }

    /// Whether a leaf of the buckets is where `fingerprint` belongs in its turn.
    #[must_use]
    pub fn belongs(&self, leaf: u64, fingerprint: &Fingerprint) -> bool {
        let HashShape { turn, before, after, .. } = self.shape;
        let buckets = if (leaf % 2 == 1) == turn { after } else { before };
        bucket_of(self.key.hash(fingerprint), buckets) == Self::bucket_in(leaf)
    }

    /// Whether the entry of this fingerprint in a leaf of the buckets counts: the cursor has not
    /// passed it there.
    #[must_use]
    pub fn counts(&self, leaf: u64, fingerprint: &Fingerprint) -> bool {
        let route = self.route(self.key.hash(fingerprint));
        route.is_some_and(|(turn, bucket)| leaf_of(turn, bucket) == leaf)
    }

    /// Behind the last leaf that one of the table's trees can have.
    #[must_use]
    pub fn leaves_end(shape: &HashShape, filter: FilterBlocks, tree: TreeId) -> u64 {
        let buckets = shape.before.max(shape.after);
        match tree {
            TreeId::HASH_PBN => leaf_of(true, buckets),
            TreeId::HASH_FILTER => Filters::new(filter).leaf_of(true, buckets) + 1,
            _ => shape.tail + 1,
        }
    }

    /// Tree and leaf of the page that holds `fingerprint`, whose pages must have been wanted by
    /// [`Self::want_lookup`].
    #[must_use]
    pub fn place_of(&self, store: &PageStore, fingerprint: &Fingerprint) -> Option<(TreeId, u64)> {
        self.find_wanted(store, fingerprint).map(|found| found.place)
    }
}
