//! The whole group at once: look-ups and insertions where all pages are resident, which is nearly
//! always.
//!
//! A want holds each page with a pin, because pages that are missing may take a while, and what is
//! here must stay until they have come. When nothing is missing nothing has to stay: what is seen
//! here is used in the same breath. So a group is first looked at without pins, its
//! pages side by side (`store/touch.rs`), and only the few buckets with more than one page, or none
//! here, go through [`HashPbn::want_lookup`].

use std::hint::black_box;

use format::bucket::{self, CAPACITY};
use format::page::Page;
use format::units::{Fingerprint, Pbn, TreeId};

use super::HashPbn;
use crate::store::PageStore;

/// Entries of one group that may be meant for one bucket, or the group is not looked at as a whole.
const SAME_BUCKET_MAX: u8 = 16;
/// Buckets are told apart by so many of their low bits to count them.
const COUNTED_BUCKETS: usize = 256;

/// What the bucket of a fingerprint says of it at first sight.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It is stored.
    Stored(Pbn),
    /// It is not.
    Absent,
    /// The bucket has further pages: it has to be wanted and looked up.
    Further,
    /// The bucket has no page, or none that is resident: the same, after it has been read.
    Missing,
}

impl HashPbn {
    /// Looks a group up: what is seen of each fingerprint, in order, is added to `seen`.
    pub fn look_up_group<'a>(
        &self,
        store: &mut PageStore,
        fingerprints: impl Iterator<Item = &'a Fingerprint> + Clone,
        seen: &mut Vec<Seen>,
    ) {
        let mut of = fingerprints.clone();
        store.visit(self.buckets_of(fingerprints), |page| {
            let Some(fingerprint) = of.next() else { return };
            seen.push(match page {
                None => Seen::Missing,
                Some(page) => match bucket::find(page, fingerprint) {
                    Some(pbn) => Seen::Stored(pbn),
                    None if bucket::overflowed(page) => Seen::Further,
                    None => Seen::Absent,
                },
            });
        });
    }

    /// Those of a group of new fingerprints that have to be wanted before they are inserted are
    /// added to `to_want`, by their places in the group. None when they all have to be, because a
    /// page is missing or too many are meant for one bucket.
    #[must_use]
    pub fn room_for_group<'a>(
        &self,
        store: &mut PageStore,
        fingerprints: impl Iterator<Item = &'a Fingerprint>,
        to_want: &mut Vec<usize>,
    ) -> Option<()> {
        let mut counts = [0_u8; COUNTED_BUCKETS];
        let counted = self.buckets_of(fingerprints).inspect(|(_, bucket)| {
            let count = &mut counts[*bucket as usize % COUNTED_BUCKETS];
            *count = count.saturating_add(1);
        });
        let (mut all_here, mut place) = (true, 0);
        store.visit(counted, |page| {
            match page {
                None => all_here = false,
                Some(page) if has_room(page) => {}
                Some(_) => to_want.push(place),
            }
            place += 1;
        });
        (all_here && counts.iter().all(|&count| count <= SAME_BUCKET_MAX)).then_some(())
    }

    fn buckets_of<'a>(
        &self,
        fingerprints: impl Iterator<Item = &'a Fingerprint>,
    ) -> impl Iterator<Item = (TreeId, u64)> {
        fingerprints.map(|fingerprint| (TreeId::HASH_PBN, self.bucket_of(fingerprint)))
    }
}

/// Whether a bucket surely takes its part of a group without a further page.
fn has_room(page: &Page) -> bool {
    // The place of the next entry is far from the page's beginning: both come near now.
    black_box(bucket::byte_of_next(page));
    !bucket::overflowed(page) && bucket::len(page) + usize::from(SAME_BUCKET_MAX) <= CAPACITY
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use format::root::HashShape;
    use format::units::{Fingerprint, Pbn};

    use super::{HashPbn, Seen};
    use crate::store::{PageStore, PageStoreOptions, PinSet};

    fn fingerprint(number: u64) -> Fingerprint {
        let mut bytes = [0; 32];
        for (part, word) in bytes.chunks_exact_mut(8).zip(1..) {
            part.copy_from_slice(
                &(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ word).to_le_bytes(),
            );
        }
        Fingerprint(bytes)
    }

    /// Groups enter a table that grows from nothing through two doublings, with and without
    /// overflow pages, holding only what they are told to. Chains that lack room would panic.
    #[test]
    fn groups_enter_and_are_seen_again() {
        let options = PageStoreOptions { cache_pages: 1 << 20, tables_blocks: 2 };
        let mut store = PageStore::new(options);
        let mut hash = HashPbn::new(HashShape::default(), *b"a seed of a test");
        let (mut held_all, mut held_some, mut further) = (0, 0, 0);
        let mut model = HashMap::new();
        for group in 0..256_u64 {
            let keys: Vec<Fingerprint> = (0..200).map(|n| fingerprint(group * 200 + n)).collect();
            let (mut pins, mut reads, mut to_want) = (PinSet::default(), Vec::new(), Vec::new());
            hash.want_insert(&mut store, &mut pins, keys.len() as u64, &mut reads).unwrap();
            if hash.room_for_group(&mut store, keys.iter(), &mut to_want).is_none() {
                held_all += 1;
                to_want = (0..keys.len()).collect();
            } else {
                held_some += to_want.len();
            }
            for at in to_want {
                hash.want_lookup(&mut store, &mut pins, &keys[at], &mut reads).unwrap();
            }
            for (key, number) in keys.iter().zip(group * 200..) {
                assert_eq!(hash.insert(&mut store, key, Pbn(number)), None);
                model.insert(*key, Pbn(number));
            }
            store.release_pins(pins);

            let unknown = fingerprint(1 << 40 | group);
            let asked: Vec<Fingerprint> =
                (0..=group).map(|n| fingerprint(n * 199)).chain([unknown]).collect();
            let mut seen = Vec::new();
            hash.look_up_group(&mut store, asked.iter(), &mut seen);
            assert_eq!(seen.len(), asked.len());
            for (key, seen) in asked.iter().zip(seen) {
                match seen {
                    Seen::Stored(pbn) => assert_eq!(model.get(key), Some(&pbn)),
                    Seen::Absent => assert_eq!(model.get(key), None),
                    Seen::Further => further += 1,
                    Seen::Missing => panic!("nothing was dropped"),
                }
            }
        }
        assert!(held_all > 0 && held_some > 0 && further > 0, "{held_all} {held_some} {further}");
    }

    #[test]
    fn a_bucket_that_is_not_resident_is_missing() {
        let options = PageStoreOptions { cache_pages: 16, tables_blocks: 2 };
        let mut store = PageStore::new(options);
        let hash = HashPbn::new(HashShape::default(), *b"a seed of a test");
        let (mut seen, mut to_want) = (Vec::new(), Vec::new());
        hash.look_up_group(&mut store, [fingerprint(1)].iter(), &mut seen);
        assert_eq!(seen, [Seen::Missing]);
        assert_eq!(hash.room_for_group(&mut store, [fingerprint(1)].iter(), &mut to_want), None);
    }
}
