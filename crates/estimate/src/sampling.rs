//! CA-FTL's sampling, the baseline of EaD's figures: only what may be a duplicate is hashed.
//!
//! The first four bytes of a chunk are its *sample*. A chunk whose sample was never seen is new,
//! and is stored without a hash; any other is hashed and looked up. So the first copy of every
//! content is in no table, and its first duplicate is taken for new: what comes twice is not found
//! at all, what comes n times is found n - 2 times. The hash is the store's default, believed.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::time::Duration;

use format::detection::FingerprintKind;
use format::units::Fingerprint;
use reduce::Fingerprinter;

use crate::data_chunks::CHUNK_BYTES;
use crate::detected::{BATCH_CHUNKS, Counted, DetectedBy, NUMBER_BYTES, timed};

const SAMPLE_BYTES: usize = 4;
/// What hashes the chunks that are hashed.
const KIND: FingerprintKind = FingerprintKind::Blake3;

/// What sampling finds in `chunks`; `watch` hears of each batch.
pub(crate) fn detect_by_sampling(
    chunks: &[[u8; CHUNK_BYTES]],
    mut watch: impl FnMut(u64) -> ControlFlow<()>,
) -> Option<DetectedBy> {
    let fingerprinter = Fingerprinter::new(KIND);
    let [mut fingerprinting, mut looking_up] = [Duration::ZERO; 2];
    let mut samples: HashSet<[u8; SAMPLE_BYTES]> = HashSet::with_capacity(chunks.len());
    let mut table: HashMap<Fingerprint, ()> = HashMap::new();
    let mut suspects: Vec<&[u8]> = Vec::with_capacity(BATCH_CHUNKS);
    let mut made = Vec::with_capacity(BATCH_CHUNKS);
    let (mut duplicates, mut hashes) = (0, 0);
    for batch in chunks.chunks(BATCH_CHUNKS) {
        suspects.clear();
        timed(&mut looking_up, || {
            let sampled = batch.iter().filter_map(|chunk| Some((chunk, chunk.first_chunk()?)));
            let seen = sampled.filter(|(_, sample)| !samples.insert(**sample));
            suspects.extend(seen.map(|(chunk, _)| chunk.as_slice()));
        });
        made.clear();
        timed(&mut fingerprinting, || fingerprinter.batch(&suspects, &mut made));
        hashes += made.len() as u64;
        timed(&mut looking_up, || {
            for fingerprint in made.iter().flatten() {
                match table.entry(*fingerprint) {
                    Entry::Occupied(_) => duplicates += 1,
                    Entry::Vacant(place) => _ = place.insert(()),
                }
            }
        });
        watch(batch.len() as u64).continue_value()?;
    }
    let entry_bytes = table.len() * (KIND.length_bytes() + NUMBER_BYTES);
    let index_bytes = (entry_bytes + samples.len() * SAMPLE_BYTES) as u64;
    let counted = Counted { duplicates, collisions: 0, hashes, index_bytes };
    let times = [fingerprinting, looking_up, Duration::ZERO];
    Some(DetectedBy::new("sampling", true, chunks.len(), counted, times))
}
