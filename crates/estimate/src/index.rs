//! What one kind of fingerprint has entered, and what it finds in it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use format::detection::FingerprintKind;
use format::units::Fingerprint;
use reduce::Fingerprinter;

use crate::data_chunks::CHUNK_BYTES;
use crate::detected::{BATCH_CHUNKS, Found, NUMBER_BYTES, timed};

/// A table in memory of one kind of fingerprint. As in a store, a chunk whose fingerprint is
/// another chunk's is stored without an entry, so what repeats it is not found.
pub(crate) struct Index {
    kind: FingerprintKind,
    table: HashMap<Fingerprint, usize>,
    made: Vec<Option<Fingerprint>>,
    hits: Vec<(usize, usize)>,
    /// Spent so far on fingerprinting, looking up and comparing.
    pub(crate) times: [Duration; 3],
}

impl Index {
    /// An empty one with room for `chunks` chunks.
    pub(crate) fn new(kind: FingerprintKind, chunks: usize) -> Self {
        Self {
            kind,
            table: HashMap::with_capacity(chunks),
            made: Vec::with_capacity(BATCH_CHUNKS),
            hits: Vec::with_capacity(BATCH_CHUNKS),
            times: [Duration::ZERO; 3],
        }
    }

    /// Looks up those of `chunks` that have these `numbers`, and enters what is new.
    pub(crate) fn find(&mut self, chunks: &[[u8; CHUNK_BYTES]], numbers: &[usize]) -> Found {
        let Self { kind, table, made, hits, times } = self;
        let [fingerprinting, looking_up, comparing] = times;
        let chunk = |number: &usize| chunks.get(*number).map(<[u8; CHUNK_BYTES]>::as_slice);
        let refs: Vec<&[u8]> = numbers.iter().filter_map(chunk).collect();
        made.clear();
        timed(fingerprinting, || Fingerprinter::new(*kind).batch(&refs, made));
        hits.clear();
        timed(looking_up, || {
            for (&number, fingerprint) in numbers.iter().zip(made.iter().flatten()) {
                match table.entry(*fingerprint) {
                    Entry::Occupied(stored) => hits.push((number, *stored.get())),
                    Entry::Vacant(place) => _ = place.insert(number),
                }
            }
        });
        let same = if kind.is_strong() {
            hits.len()
        } else {
            let is_same = |hit: &&(usize, usize)| chunks.get(hit.0) == chunks.get(hit.1);
            timed(comparing, || hits.iter().filter(is_same).count())
        };
        Found { duplicates: same as u64, collisions: (hits.len() - same) as u64 }
    }

    /// What the entries take: fingerprint and number of each.
    pub(crate) fn entry_bytes(&self) -> u64 {
        (self.table.len() * (self.kind.length_bytes() + NUMBER_BYTES)) as u64
    }
}
