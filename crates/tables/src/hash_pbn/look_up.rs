//! Looking up: the index, the filter, and where they say maybe a page.
//!
//! Most answers need no page. A group of look-ups waits for memory side by side: first the places
//! in index and filter of all are touched, then the frames of the pages that they lead to, then
//! what stands in those, and only then is each decided.

use std::hint::black_box;

use format::bucket;
use format::page::Page;
use format::units::{Fingerprint, Pbn, TreeId};

use super::young::leaf_and_slot;
use super::{HashPbn, leaf_of, young};
use crate::error::PageError;
use crate::nearness::bring_near;
use crate::store::{PageRead, PageStore, PinSet, Wanted};

/// Fingerprints of a group that are touched side by side.
const SIDE_BY_SIDE: usize = 64;

/// What the table says of a fingerprint at first sight.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It is stored.
    Stored(Pbn),
    /// It is not, and no page had to be looked into: index and filter say so.
    Denied,
    /// It is not, as the pages say that index and filter led to.
    Absent,
    /// A page has to be wanted first.
    Missing,
}

impl Seen {
    /// The chunk that is stored, if one is.
    #[must_use]
    pub fn stored(&self) -> Option<Pbn> {
        if let Self::Stored(pbn) = self { Some(*pbn) } else { None }
    }
}

/// A page that a look-up needs is not resident.
struct NotResident;

/// An entry, and where it stands.
pub(super) struct Found {
    pub(super) pbn: Pbn,
    pub(super) place: (TreeId, u64),
}

/// What a look-up needs next.
#[derive(Copy, Clone)]
enum Next {
    /// The young event in this slot of this leaf.
    Event(u64, usize),
    /// The leaf of a bucket.
    Bucket(u64),
}

impl Next {
    fn page(self) -> (TreeId, u64) {
        match self {
            Self::Event(leaf, _) => (young::TREE, leaf),
            Self::Bucket(leaf) => (TreeId::HASH_PBN, leaf),
        }
    }
}

/// A look-up on its way from the newest event to the bucket.
struct Search<'a> {
    hash: u64,
    fingerprint: &'a Fingerprint,
    /// Events from here on have been looked at.
    end: u64,
    /// What they take back; nearly always nothing.
    taken: Vec<Pbn>,
    bucket_seen: bool,
    /// The page that was looked into last.
    page_seen: Option<(TreeId, u64)>,
}

impl<'a> Search<'a> {
    fn new(hash: u64, fingerprint: &'a Fingerprint) -> Self {
        let (end, taken) = (u64::MAX, Vec::new());
        Self { hash, fingerprint, end, taken, bucket_seen: false, page_seen: None }
    }

    /// Looks at an event; the chunk, if that is the answer.
    fn look_at_event(&mut self, page: &Page, slot: usize) -> Option<Pbn> {
        if slot >= bucket::len(page) {
            return None;
        }
        let (fingerprint, pbn) = bucket::entry(page, slot);
        if fingerprint != *self.fingerprint {
            return None;
        }
        let (pbn, is_taken) = bucket::young_pbn(pbn);
        if is_taken {
            self.taken.push(pbn);
        }
        (!is_taken).then_some(pbn).filter(|pbn| !self.taken.contains(pbn))
    }

    /// The answer of the bucket, which is the last.
    fn look_into_bucket(&self, page: &Page) -> Option<Pbn> {
        bucket::find(page, self.fingerprint).filter(|pbn| !self.taken.contains(pbn))
    }
}

impl HashPbn {
    /// Looks a group up: what is seen of each fingerprint, in order, is added to `seen`; `note`
    /// hears of the page that each answer came from, where one was looked into.
    pub fn look_up_group<'a>(
        &self,
        store: &PageStore,
        fingerprints: impl Iterator<Item = &'a Fingerprint>,
        seen: &mut Vec<Seen>,
        mut note: impl FnMut(TreeId, u64),
    ) {
        let mut fingerprints = fingerprints.fuse();
        loop {
            let mut searches = [const { None }; SIDE_BY_SIDE];
            for (place, fingerprint) in searches.iter_mut().zip(&mut fingerprints) {
                *place = Some(Search::new(self.key.hash(fingerprint), fingerprint));
            }
            let hashes = searches.iter().flatten().map(|search| search.hash);
            bring_near(hashes.flat_map(|hash| self.first_read(hash)));
            let first = self.touch_pages(store, &mut searches);
            for (search, first) in searches.iter_mut().flatten().zip(first) {
                seen.push(self.see(store, search, first, &mut note));
            }
            if searches.last().is_some_and(Option::is_none) {
                return;
            }
        }
    }

    /// What a look-up reads of index and filter.
    fn first_read(&self, hash: u64) -> impl Iterator<Item = &u64> {
        let route = self.route(hash);
        let filter = route.and_then(|(turn, at)| self.filters.read_for(turn, at, hash));
        self.young.index.first_read(hash).into_iter().chain(filter.into_iter().flatten())
    }

    /// What each search needs first. The pages in which that is are prefetched, if they are
    /// resident: their frames, then what stands in them.
    fn touch_pages(
        &self,
        store: &PageStore,
        searches: &mut [Option<Search<'_>>; SIDE_BY_SIDE],
    ) -> [Option<Next>; SIDE_BY_SIDE] {
        let mut first = [None; SIDE_BY_SIDE];
        let mut pages = [None; SIDE_BY_SIDE];
        for ((first, page), search) in first.iter_mut().zip(&mut pages).zip(searches) {
            *first = search.as_mut().and_then(|search| self.next(search));
            *page = first.and_then(|next| {
                let (tree, leaf) = next.page();
                store.find_leaf(tree, leaf).map(|slot| (slot, next))
            });
        }
        let mut near = 0;
        for (slot, next) in pages.iter().flatten() {
            let page = store.page_at(*slot);
            near ^= match next {
                Next::Event(_, at) => bucket::touch_entry(page, *at),
                Next::Bucket(_) => bucket::touch_tags(page),
            };
        }
        black_box(near);
        first
    }

    fn see(
        &self,
        store: &PageStore,
        search: &mut Search<'_>,
        first: Option<Next>,
        note: &mut impl FnMut(TreeId, u64),
    ) -> Seen {
        let found = self.find_from(store, search, first);
        if let Some((tree, leaf)) = search.page_seen {
            note(tree, leaf);
        }
        match found {
            Ok(Some(found)) => Seen::Stored(found.pbn),
            Ok(None) if search.page_seen.is_some() => Seen::Absent,
            Ok(None) => Seen::Denied,
            Err(NotResident) => Seen::Missing,
        }
    }

    /// Asks for the pages to look `fingerprint` up.
    ///
    /// # Errors
    /// [`PageError`] when one is damaged.
    pub fn want_lookup(
        &self,
        store: &mut PageStore,
        pins: &mut PinSet,
        fingerprint: &Fingerprint,
        reads: &mut Vec<PageRead>,
    ) -> Result<bool, PageError> {
        self.want_pages(store, pins, fingerprint, reads, false)
    }

    /// Asks for the pages of [`Self::standing`].
    ///
    /// # Errors
    /// [`PageError`] when one is damaged.
    pub fn want_standing(
        &self,
        store: &mut PageStore,
        pins: &mut PinSet,
        fingerprint: &Fingerprint,
        reads: &mut Vec<PageRead>,
    ) -> Result<bool, PageError> {
        self.want_pages(store, pins, fingerprint, reads, true)
    }

    fn want_pages(
        &self,
        store: &mut PageStore,
        pins: &mut PinSet,
        fingerprint: &Fingerprint,
        reads: &mut Vec<PageRead>,
        to_the_end: bool,
    ) -> Result<bool, PageError> {
        let mut search = Search::new(self.key.hash(fingerprint), fingerprint);
        while let Some(next) = self.next(&mut search) {
            let (tree, leaf) = next.page();
            let slot = match store.want_leaf(pins, tree, leaf, reads)? {
                Wanted::Coming => return Ok(false),
                Wanted::Here(slot) => slot,
                Wanted::Absent => continue,
            };
            let Next::Event(_, at) = next else { break };
            if search.look_at_event(store.page_at(slot), at).is_some() && !to_the_end {
                break;
            }
        }
        Ok(true)
    }

    /// The chunk with this fingerprint, which must have been wanted.
    #[must_use]
    pub fn lookup(&self, store: &PageStore, fingerprint: &Fingerprint) -> Option<Pbn> {
        self.find_wanted(store, fingerprint).map(|found| found.pbn)
    }

    /// As [`Self::lookup`]: a page that is not resident now does not exist.
    pub(super) fn find_wanted(
        &self,
        store: &PageStore,
        fingerprint: &Fingerprint,
    ) -> Option<Found> {
        self.find(store, self.key.hash(fingerprint), fingerprint).unwrap_or(None)
    }

    /// Every chunk that this fingerprint leads to, the newest first, which must have been wanted by
    /// [`Self::want_standing`]: more than one is a flaw, for look-ups find the first only.
    #[must_use]
    pub fn standing(&self, store: &PageStore, fingerprint: &Fingerprint) -> Vec<Pbn> {
        let mut search = Search::new(self.key.hash(fingerprint), fingerprint);
        let mut next = || self.find_next(store, &mut search).unwrap_or(None);
        std::iter::from_fn(|| next().map(|found| found.pbn)).collect()
    }

    fn find(
        &self,
        store: &PageStore,
        hash: u64,
        fingerprint: &Fingerprint,
    ) -> Result<Option<Found>, NotResident> {
        self.find_next(store, &mut Search::new(hash, fingerprint))
    }

    fn find_next(
        &self,
        store: &PageStore,
        search: &mut Search<'_>,
    ) -> Result<Option<Found>, NotResident> {
        let first = self.next(search);
        self.find_from(store, search, first)
    }

    /// The search goes on with what it needs `next`.
    fn find_from(
        &self,
        store: &PageStore,
        search: &mut Search<'_>,
        mut next: Option<Next>,
    ) -> Result<Option<Found>, NotResident> {
        while let Some(step) = next {
            let (tree, leaf) = step.page();
            let page = store.glance(tree, leaf).ok_or(NotResident)?;
            search.page_seen = Some((tree, leaf));
            let pbn = match step {
                Next::Event(_, slot) => search.look_at_event(page, slot),
                Next::Bucket(_) => search.look_into_bucket(page),
            };
            if let Some(pbn) = pbn {
                return Ok(Some(Found { pbn, place: (tree, leaf) }));
            }
            next = self.next(search);
        }
        Ok(None)
    }

    /// What has to be looked at next: events from the newest on, then the bucket if its filter says
    /// maybe, then nothing.
    fn next(&self, search: &mut Search<'_>) -> Option<Next> {
        if let Some(place) = self.young.newest_before(search.hash, search.end) {
            search.end = place;
            let (leaf, slot) = leaf_and_slot(place);
            return Some(Next::Event(leaf, slot));
        }
        if std::mem::replace(&mut search.bucket_seen, true) {
            return None;
        }
        let (turn, at) = self.route(search.hash)?;
        let may_hold = self.filters.may_hold(turn, at, search.hash);
        may_hold.then(|| Next::Bucket(leaf_of(turn, at)))
    }
}
