//! One run: a stream through the pages of the tables, on one cache.
//!
//! A write looks its fingerprint up in the Hash-PBN table, changes the count of its chunk in the
//! PBN-PBA table, and its page of the LBA-PBN map; a read wants the pages of the latter two. Pages
//! that lead to pages, checkpoints and collection are left out: what is dirty is written when the
//! policy says so, and what is dirty at the end is told apart.

use traces::Direction;

use super::gathered::{Gathered, INDEX_ENTRY_BYTES};
use super::lookup::Lookup;
use super::page_cache::{Cache, Traffic};
use super::plain::Plain;
use super::policies::PolicyKind;
use super::sharing::Sharing;
use super::stream::{Access, Stream};
use super::tree::Tree;

const PAGE_BYTES: u64 = format::BLOCK_BYTES as u64;
/// Chunks of a page of the PBN-PBA table.
const PBA_CHUNKS: u64 = format::pba_page::SLOTS as u64;
/// Chunks of a page of a container's directory.
const DIRECTORY_CHUNKS: u64 = PAGE_BYTES / format::directory::DIRECTORY_ENTRY_BYTES as u64;
/// Pages that any cache has.
const CACHE_PAGES_MIN: u64 = 16;

/// How the Hash-PBN table is built.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Design {
    /// Buckets that are changed in place, as FIDR has them.
    Plain,
    /// Young entries, and buckets that a merge makes (decision 018).
    Gathered,
}

impl Design {
    /// As tables name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Gathered => "gathered",
        }
    }
}

/// What is run.
#[derive(Copy, Clone, Debug)]
pub struct Setup {
    /// Of the Hash-PBN table.
    pub design: Design,
    /// Of the cache.
    pub policy: PolicyKind,
    /// How the three tables share the cache.
    pub sharing: Sharing,
    /// Room of the cache, by the pages that all tables have at last if they are plain.
    pub cached_percent: f64,
    /// Of the filter, for an entry; 0 for none.
    pub filter_bits: u64,
    /// Room of the index of young entries, by that of the cache.
    pub index_percent: u64,
    /// A duplicate whose page had to be read brings the directory that names it.
    pub locality: bool,
    /// Says where fingerprints lie.
    pub seed: u64,
}

/// What a run cost.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Room of the cache; of the gathered design the index takes some of it.
    pub cache_pages: u64,
    /// All writes.
    pub writes: u64,
    /// Those of chunks that were new.
    pub new_chunks: u64,
    /// Look-ups in the Hash-PBN table of the stream that is looked at.
    pub lookups: u64,
    /// Those that wanted a page, and found it in memory.
    pub hits: u64,
    /// Those that had to read one.
    pub missed: u64,
    /// Those of new chunks that wanted a page although there was a filter.
    pub filter_wrong: u64,
    /// New chunks of the stream that is looked at.
    pub lookups_new: u64,
    /// Pages read for the Hash-PBN table, its directories included.
    pub hash_reads: u64,
    /// Pages written for it.
    pub hash_writes: u64,
    /// Pages of it that were still to be written at the end.
    pub hash_writes_to_come: u64,
    /// Pages read for the PBN-PBA table.
    pub pba_reads: u64,
    /// Pages read for the LBA-PBN map.
    pub map_reads: u64,
    /// Pages read for all tables.
    pub all_reads: u64,
    /// Pages written for all tables.
    pub all_writes: u64,
}

impl Figures {
    fn count(&mut self, lookup: Lookup, is_new: bool) {
        self.lookups += 1;
        self.lookups_new += u64::from(is_new);
        self.filter_wrong += u64::from(is_new && lookup != Lookup::Denied);
        match lookup {
            Lookup::Denied => {}
            Lookup::Hit => self.hits += 1,
            Lookup::Read => self.missed += 1,
        }
    }
}

/// The cache that has room for so much of all tables of the plain design.
pub(super) fn cache_pages(stream: &Stream, cached_percent: f64) -> u64 {
    let all = Plain::pages(stream.chunks) + pba_pages(stream.chunks) + stream.map_pages;
    ((all as f64 * cached_percent / 100.0).round() as u64).max(CACHE_PAGES_MIN)
}

fn pba_pages(chunks: u64) -> u64 {
    chunks / PBA_CHUNKS + 1
}

/// Of a cache, what finds young entries. More than for a quarter of all would save little.
fn index_pages(chunks: u64, cache_pages: u64, index_percent: u64) -> u64 {
    let wanted = (chunks / 4 * INDEX_ENTRY_BYTES).div_ceil(PAGE_BYTES);
    wanted.clamp(1, (cache_pages * index_percent / 100).max(1))
}

/// The number of young entries that an index of this number of pages holds.
fn young_max(index_pages: u64) -> u64 {
    index_pages * PAGE_BYTES / INDEX_ENTRY_BYTES
}

/// What the gathered design has of the cache in a run, for an engine that is to have the same.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Rooms {
    /// Pages of tables.
    pub pages: u64,
    /// Young entries.
    pub young_max: u64,
}

/// The rooms of a run of the gathered design.
#[must_use]
pub fn rooms(stream: &Stream, setup: &Setup) -> Rooms {
    let pages = cache_pages(stream, setup.cached_percent);
    let index_pages = index_pages(stream.chunks, pages, setup.index_percent);
    Rooms { pages: pages - index_pages, young_max: young_max(index_pages) }
}

enum HashTable {
    Plain(Plain),
    Gathered(Gathered),
}

struct Run {
    table: HashTable,
    cache: Cache,
    locality: bool,
    /// Pages of the map that exist.
    mapped: Vec<bool>,
    /// Chunks that are stored.
    known: u32,
    figures: Figures,
}

/// Runs all of a stream.
#[must_use]
pub fn run(stream: &Stream, setup: &Setup) -> Figures {
    run_in(stream, setup, cache_pages(stream, setup.cached_percent))
}

/// The same with a cache of so many pages.
pub(super) fn run_in(stream: &Stream, setup: &Setup, cache_pages: u64) -> Figures {
    let mut run = Run::new(stream, setup, cache_pages);
    for &access in &stream.accesses {
        match access.direction {
            Direction::Write => run.write(access),
            Direction::Read => run.read(access),
        }
    }
    run.figures()
}

impl Run {
    fn new(stream: &Stream, setup: &Setup, cache_pages: u64) -> Self {
        let Setup { design, policy, sharing, filter_bits, locality, seed, .. } = *setup;
        let chunks = stream.chunks;
        let (bucket_pages, young_pages, index_pages, table) = match design {
            Design::Plain => {
                let table = Plain::new(chunks, filter_bits, seed);
                (Plain::pages(chunks), 0, 0, HashTable::Plain(table))
            }
            Design::Gathered => {
                let index_pages = index_pages(chunks, cache_pages, setup.index_percent);
                let table = Gathered::new(chunks, young_max(index_pages), filter_bits, seed);
                let pages = (Gathered::bucket_pages(chunks), Gathered::young_pages(chunks));
                (pages.0, pages.1, index_pages, HashTable::Gathered(table))
            }
        };
        let directories = if locality { chunks / DIRECTORY_CHUNKS + 1 } else { 0 };
        let sizes = [bucket_pages, young_pages, pba_pages(chunks), stream.map_pages, directories];
        Self {
            table,
            cache: Cache::new(policy, sharing, (cache_pages - index_pages) as usize, sizes),
            locality,
            mapped: vec![false; stream.map_pages as usize],
            known: 0,
            figures: Figures { cache_pages, ..Figures::default() },
        }
    }

    fn write(&mut self, access: Access) {
        let is_new = access.chunk == self.known;
        self.known += u32::from(is_new);
        let lookup = self.look_up(access.chunk, is_new);
        if access.counted {
            self.figures.count(lookup, is_new);
        }
        self.figures.writes += 1;
        self.figures.new_chunks += u64::from(is_new);
        let chunk = u64::from(access.chunk);
        if is_new && chunk.is_multiple_of(PBA_CHUNKS) {
            self.cache.make(Tree::Pba, chunk / PBA_CHUNKS);
        } else {
            self.cache.change(Tree::Pba, chunk / PBA_CHUNKS);
        }
        if std::mem::replace(&mut self.mapped[access.map_page as usize], true) {
            self.cache.change(Tree::Map, u64::from(access.map_page));
        } else {
            self.cache.make(Tree::Map, u64::from(access.map_page));
        }
    }

    fn read(&mut self, access: Access) {
        if self.mapped[access.map_page as usize] {
            self.cache.want(Tree::Map, u64::from(access.map_page));
        }
        self.cache.want(Tree::Pba, u64::from(access.chunk) / PBA_CHUNKS);
    }

    fn look_up(&mut self, chunk: u32, is_new: bool) -> Lookup {
        let directory = u64::from(chunk) / DIRECTORY_CHUNKS;
        let predicts = self.locality && !is_new;
        if predicts && self.cache.holds(Tree::Directory, directory) {
            self.cache.want(Tree::Directory, directory);
            return Lookup::Hit;
        }
        let lookup = match &mut self.table {
            HashTable::Plain(table) => table.look_up(&mut self.cache, chunk, is_new),
            HashTable::Gathered(table) => table.look_up(&mut self.cache, chunk, is_new),
        };
        if predicts && lookup == Lookup::Read {
            self.cache.want(Tree::Directory, directory);
        }
        lookup
    }

    fn figures(self) -> Figures {
        let mut figures = self.figures;
        let hash = [Tree::Bucket, Tree::Young, Tree::Directory];
        for tree in hash.into_iter().chain([Tree::Pba, Tree::Map]) {
            let Traffic { reads, writes } = self.cache.traffic(tree);
            figures.all_reads += reads;
            figures.all_writes += writes;
            match tree {
                Tree::Pba => figures.pba_reads = reads,
                Tree::Map => figures.map_reads = reads,
                Tree::Bucket | Tree::Young | Tree::Directory => {}
            }
            if hash.contains(&tree) {
                figures.hash_reads += reads;
                figures.hash_writes += writes;
                figures.hash_writes_to_come += self.cache.dirty_pages(tree);
            }
        }
        figures
    }
}
