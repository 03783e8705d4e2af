//! The merge: young entries into buckets, a few buckets at a time, round and round.
//!
//! A step makes the next buckets of this turn from those of the turn before that share hashes with
//! them, and from the events of all segments that fall there. All sealed events of a fingerprint
//! are taken by the same step; what is not sealed yet is newer than all of them and waits. When the
//! last bucket is made the round is over; the next begins when it is due, with as many buckets as
//! the entries that it is going to meet need.
//!
//! An entry that finds its bucket full stays young: it is appended anew. It must be one of which
//! nothing newer is known, or it would come back to life behind what took it back.

use std::ops::Range;

use format::bucket::{self, CAPACITY};
use format::root::HashShape;
use format::units::{Fingerprint, Pbn, TreeId};
use mutants::mutant;

use super::young::{Event, push_to};
use super::{HashPbn, LOAD_MEAN, bucket_of, leaf_of, start_of};
use crate::error::PageError;
use crate::store::{PageRead, PageStore, PinSet};

/// Buckets that one step makes.
const BUCKETS_PER_STEP: u64 = 32;
/// Entries of one step that may find their buckets full.
const LEFT_OVER_MAX: u64 = BUCKETS_PER_STEP * CAPACITY as u64;
/// Pages that a step changes beside buckets or a segment: leaves that are taken out change those
/// above them, at most three of each tree.
const STEP_PAGES_BESIDE: u64 = 16;
/// Entries of a bucket in the mean where blocks are short: of one in twenty an entry or more stays
/// young.
const LOAD_SHORT: u64 = 88;
/// The same when there is no room for so many buckets either: of one in ten.
const LOAD_MOST: u64 = 92;
/// Of the young that may be, so many more may wait for the merge before insertions do.
const BEHIND_PART: usize = 4;

/// An entry of a bucket with its hash.
type Entry = (u64, Fingerprint, Pbn);

impl HashPbn {
    /// Whether there is something to be sealed or merged.
    #[must_use]
    pub fn work_is_due(&self) -> bool {
        self.seal_is_due() || self.merge_is_due()
    }

    /// Whether so much is due that insertions should wait for it.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        let young_max = self.options.young_max;
        self.young.index.len() > young_max + young_max / BEHIND_PART
    }

    fn merge_is_due(&self) -> bool {
        let much = self.young.index.len() > self.options.young_max;
        (much || self.merge_gives_pages()) && !self.segments.is_empty()
    }

    /// From now on the merge also goes on, however little is young, while the table has at least
    /// so many pages less when all of it is in buckets; none: it does not.
    pub fn merge_while_it_gives(&mut self, pages: Option<u64>) {
        // A segment that is not sealed yet cannot be merged, and every round leaves room for it.
        self.worth_pages = pages.map(|pages| pages.max(3 * self.options.segment_pages));
    }

    /// Whether the merge goes on for the pages that it gives back.
    #[must_use]
    pub fn merge_gives_pages(&self) -> bool {
        self.worth_pages.is_some_and(|worth| self.pages_to_come_back(0) >= worth)
    }

    /// Whether the next step of what is due begins a round, which settles how many buckets there
    /// will be.
    #[must_use]
    pub fn round_is_due(&self) -> bool {
        self.merge_is_due() && !self.seal_is_due() && self.shape.merged == self.shape.after
    }

    /// Pages that one step of what is due changes at most, beside those above them.
    #[must_use]
    pub fn pages_per_step(&self) -> u64 {
        // Buckets, and what they have no room for. What else a step may touch is a page or two.
        let merged = BUCKETS_PER_STEP + BUCKETS_PER_STEP / 2;
        STEP_PAGES_BESIDE + merged.max(self.options.segment_pages)
    }

    /// Pages that the table has more when all that is young is in buckets, filters included: as
    /// many buckets as there are where blocks are short, and as the round under way makes.
    #[must_use]
    pub fn pages_owed(&self) -> u64 {
        let HashShape { after, merged, .. } = self.shape;
        let of_round = if merged == after { 0 } else { after };
        self.pages_of(of_round.max(self.buckets_needed(0))).saturating_sub(self.pages_now())
    }

    /// Pages that it has less when all that is young is in as few buckets, if need be by another
    /// round, and so many of its entries have been taken back.
    #[must_use]
    pub fn pages_to_come_back(&self, taken_back: u64) -> u64 {
        self.pages_now().saturating_sub(self.pages_of(self.buckets_needed(taken_back)))
    }

    fn pages_now(&self) -> u64 {
        self.pages_of(self.buckets()) + self.young.events().0.div_ceil(CAPACITY as u64)
    }

    /// Buckets for all entries where blocks are short.
    fn buckets_needed(&self, taken_back: u64) -> u64 {
        let HashShape { merged, entries, .. } = self.shape;
        let left = self.buckets() - merged;
        let stored = self.entries_merged(entries + left * LOAD_MEAN);
        stored.saturating_sub(taken_back).div_ceil(LOAD_SHORT)
    }

    /// What becomes of so many entries of buckets when all that is young is merged: one that takes
    /// back is no entry, and then another is none either.
    fn entries_merged(&self, of_buckets: u64) -> u64 {
        let (events, taking_back) = self.young.events();
        (of_buckets + events).saturating_sub(2 * taking_back)
    }

    /// Pages of so many buckets, with their filters.
    fn pages_of(&self, buckets: u64) -> u64 {
        buckets + self.filters.leaves_of(buckets)
    }

    /// Asks for the pages that the next step of what is due needs. A round that begins makes no
    /// more buckets than these spare blocks have room for, if that are enough.
    ///
    /// # Errors
    /// [`PageError`] when one is damaged.
    pub fn want_work(
        &mut self,
        store: &mut PageStore,
        pins: &mut PinSet,
        reads: &mut Vec<PageRead>,
        spare_blocks: u64,
    ) -> Result<bool, PageError> {
        if self.seal_is_due() {
            return self.want_seal(store, pins, reads);
        }
        if self.shape.merged == self.shape.after {
            self.begin_round(spare_blocks);
            if self.seal_is_due() {
                return self.want_seal(store, pins, reads);
            }
        }
        self.want_merge(store, pins, reads)
    }

    /// Does one step of what is due, and has been wanted.
    pub fn work(&mut self, store: &mut PageStore) {
        if self.seal_is_due() { self.seal(store) } else { self.merge(store) }
    }

    /// As many buckets as the entries need that are in buckets now and those that the round is
    /// going to take in: what is young now, and as many again that come meanwhile. What is not
    /// sealed takes nothing back in this round. For what may come half of the spare blocks are
    /// taken at most, and none in a round that is to give pages back; and if they are too few even
    /// for what is here, buckets become fuller than they should be.
    fn begin_round(&mut self, spare_blocks: u64) {
        let HashShape { turn, after: before, entries, tail, sealed, .. } = self.shape;
        let (young, taking_back) = self.young.events();
        let unsealed_pages = (self.young.tail() + 1).saturating_sub(sealed);
        let stored = self.entries_merged(entries) + young.min(unsealed_pages * CAPACITY as u64);
        let short = self.worth_pages.is_some();
        let (load, coming) =
            if short { (LOAD_SHORT, 0) } else { (LOAD_MEAN, young.saturating_sub(taking_back)) };
        let least = stored.div_ceil(load).max(1);
        let wished = (stored + coming).div_ceil(load).max(1);
        let given_back = self.pages_of(before) + young / CAPACITY as u64;
        // Of a page, so much is a bucket and the rest its filter.
        let room = given_back + spare_blocks;
        let room = room - self.filters.leaves_of(room);
        let after = match room.checked_sub(least) {
            Some(beyond) => wished.min(least + beyond / 2),
            None => room.max(stored.div_ceil(LOAD_MOST)),
        };
        self.filters.drop_turn(!turn);
        self.shape = HashShape { turn: !turn, before, after, merged: 0, entries: 0, tail, sealed };
    }

    /// The buckets of the next step, and their hashes.
    fn step_due(&self) -> (Range<u64>, Range<u128>) {
        let HashShape { after, merged, .. } = self.shape;
        let end = (merged + BUCKETS_PER_STEP).min(after);
        (merged..end, start_of(merged, after)..start_of(end, after))
    }

    /// Buckets of the turn before that share hashes with these.
    fn sources(&self, hashes: &Range<u128>) -> Range<u64> {
        match self.shape.before {
            0 => 0..0,
            before => {
                let [first, last] = [hashes.start, hashes.end - 1];
                bucket_of(first as u64, before)..bucket_of(last as u64, before) + 1
            }
        }
    }

    fn want_merge(
        &mut self,
        store: &mut PageStore,
        pins: &mut PinSet,
        reads: &mut Vec<PageRead>,
    ) -> Result<bool, PageError> {
        let (buckets, hashes) = self.step_due();
        let turn = self.shape.turn;
        let mut here = true;
        for bucket in self.sources(&hashes) {
            here &= store.want(pins, TreeId::HASH_PBN, leaf_of(!turn, bucket), reads)?;
        }
        for bucket in [buckets.start, buckets.end - 1] {
            here &= store.want(pins, TreeId::HASH_PBN, leaf_of(turn, bucket), reads)?;
        }
        here &= self.young.want_append(store, pins, LEFT_OVER_MAX, reads)?;
        let key = self.key;
        for segment in &mut self.segments {
            here &= segment.want(&hashes, |of| key.hash(of), store, pins, reads)?;
        }
        Ok(here)
    }

    fn merge(&mut self, store: &mut PageStore) {
        let (buckets, hashes) = self.step_due();
        let events = self.take_events(&hashes, store);
        let entries = self.take_entries(&hashes, store);
        let mut merged = merged(&entries, &events).into_iter().peekable();
        let HashShape { turn, after, .. } = self.shape;
        for bucket in buckets.clone() {
            let end = start_of(bucket + 1, after);
            let mut of_bucket = Vec::with_capacity(CAPACITY);
            while let Some(entry) = merged.next_if(|entry| u128::from(entry.0) < end) {
                of_bucket.push(entry);
            }
            self.leave_over(store, &mut of_bucket);
            self.shape.entries += of_bucket.len() as u64;
            self.make_bucket(store, turn, bucket, &of_bucket);
        }
        self.shape.merged = buckets.end;
        self.segments.retain(|segment| segment.front < segment.end);
    }

    /// All sealed events with these hashes, by hash and age; the index forgets them.
    fn take_events(&mut self, hashes: &Range<u128>, store: &mut PageStore) -> Vec<Event> {
        let mut events = Vec::new();
        for segment in &mut self.segments {
            segment.take(hashes, store, &mut events);
        }
        self.young.index.touch_all(events.iter().map(|event| event.hash));
        events.iter().for_each(|event| self.young.forget(event));
        events.sort_unstable_by_key(|event| (event.hash, event.place));
        events
    }

    /// The entries with these hashes from the buckets of the turn before, by hash. Buckets of which
    /// all is taken are removed.
    fn take_entries(&mut self, hashes: &Range<u128>, store: &mut PageStore) -> Vec<Entry> {
        let HashShape { turn, before, .. } = self.shape;
        let sources = self.sources(hashes);
        let mut entries = Vec::new();
        for source in sources.clone() {
            let leaf = leaf_of(!turn, source);
            let Some(page) = store.page(TreeId::HASH_PBN, leaf) else { continue };
            let all = (0..bucket::len(page)).map(|slot| {
                let (fingerprint, pbn) = bucket::entry(page, slot);
                (self.key.hash(&fingerprint), fingerprint, pbn)
            });
            entries.extend(all.filter(|(hash, ..)| hashes.contains(&u128::from(*hash))));
            if start_of(source + 1, before) <= hashes.end {
                store.remove_page(TreeId::HASH_PBN, leaf);
            }
        }
        self.filters.drop_before(!turn, sources.end.saturating_sub(1));
        entries.sort_unstable_by_key(|&(hash, fingerprint, _)| (hash, fingerprint));
        entries
    }

    /// What a bucket has no room for is appended to the young again.
    fn leave_over(&mut self, store: &mut PageStore, entries: &mut Vec<Entry>) {
        let mut at = entries.len();
        while entries.len() > CAPACITY && at > 0 {
            at -= 1;
            let (hash, fingerprint, pbn) = entries[at];
            if self.young.newest_before(hash, u64::MAX).is_none() {
                entries.remove(at);
                self.young.append(store, hash, &fingerprint, pbn);
            }
        }
        assert!(entries.len() <= CAPACITY, "a bucket of fingerprints that are all young as well");
    }

    fn make_bucket(&mut self, store: &mut PageStore, turn: bool, bucket: u64, entries: &[Entry]) {
        let denied = usize::from(mutant!(DeniesByFilter));
        let known = entries.iter().skip(denied).map(|&(hash, ..)| hash);
        self.filters.fill(turn, bucket, known);
        if entries.is_empty() {
            return;
        }
        let leaf = leaf_of(turn, bucket);
        let page = store.page_mut(TreeId::HASH_PBN, leaf);
        for (_, fingerprint, pbn) in entries {
            push_to(page, fingerprint, *pbn);
        }
        store.cool(TreeId::HASH_PBN, leaf);
    }
}

/// What the events make of the entries; both are sorted by hash.
fn merged(entries: &[Entry], events: &[Event]) -> Vec<Entry> {
    let mut merged: Vec<Entry> = Vec::with_capacity(entries.len() + events.len());
    let mut entries = entries.iter().copied().peekable();
    for event in events {
        while let Some(entry) = entries.next_if(|&(hash, ..)| hash <= event.hash) {
            merged.push(entry);
        }
        let mut same_hash = merged.iter().rev().take_while(|entry| entry.0 == event.hash);
        let behind = same_hash.position(|entry| entry.1 == event.fingerprint);
        let found = behind.map(|behind| merged.len() - 1 - behind);
        match (bucket::young_pbn(event.pbn), found) {
            ((pbn, false), Some(at)) => merged[at].2 = pbn,
            ((pbn, false), None) => merged.push((event.hash, event.fingerprint, pbn)),
            ((pbn, true), Some(at)) if merged[at].2 == pbn && !mutant!(RevivesTakenBack) => {
                merged.remove(at);
            }
            ((_, true), _) => {}
        }
    }
    merged.extend(entries);
    merged
}
