//! Every way to find a duplicate, over the same data in one run, one thread each in turn.
//!
//! The chunks are read into memory first, so that nothing is measured but the processor: making
//! fingerprints, as a store's workers do it, 64 at a time; looking them up in a table in memory;
//! and, for kinds that two chunks may share, comparing the bytes. As in a store, a chunk whose
//! fingerprint is another chunk's is stored without an entry, so what repeats it is not found.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use format::detection::FingerprintKind;
use format::units::Fingerprint;
use reduce::Fingerprinter;
use serde::Serialize;

use crate::pieces::{Piece, Pieces, Reading, UnreadableFiles};

/// What is deduplicated as one.
const CHUNK_BYTES: usize = 4096;
/// Chunks that a worker gets at a time.
const BATCH_CHUNKS: usize = 64;

/// What every kind found in the same data.
#[derive(Debug)]
pub struct Detected {
    /// Files, images and devices that were read, the last perhaps in part.
    pub files: u64,
    /// Chunks of zeros, which have no fingerprint.
    pub zero_chunks: u64,
    /// The others.
    pub data_chunks: u64,
    /// Whether all data had room in the memory that was given; else what is behind was left out.
    pub whole: bool,
    /// What could not be read.
    pub unreadable: UnreadableFiles,
    /// Kind by kind.
    pub kinds: Vec<DetectedBy>,
}

/// What one kind found, and what it took of a core, in nanoseconds per chunk that is not zeros.
#[derive(Clone, Debug, Serialize)]
pub struct DetectedBy {
    /// Its name.
    pub kind: &'static str,
    /// Whether it is believed without a look at the bytes; the others' are compared.
    pub strong: bool,
    /// Chunks that were there already.
    pub duplicates: u64,
    /// Chunks whose fingerprint was that of other bytes.
    pub collisions: u64,
    /// Making the fingerprint.
    pub fingerprint_ns: f64,
    /// Looking it up, or entering it.
    pub lookup_ns: f64,
    /// Comparing, where there was something to compare with; from memory.
    pub compare_ns: f64,
    /// All three.
    pub total_ns: f64,
}

/// Reads what is under `paths`, up to `memory_bytes` of chunks that are not zeros, and lets every
/// kind find its duplicates. `watch` hears of the bytes that were read, and may break it off; then
/// there is no result.
pub fn detect(
    paths: &[PathBuf],
    memory_bytes: u64,
    mut watch: impl FnMut(u64) -> ControlFlow<()>,
) -> Option<Detected> {
    let reading = Reading::default();
    let mut pieces = Pieces::new(paths, &reading);
    let mut piece = Piece::new();
    let (mut data, mut zero_chunks, mut read_bytes, mut whole) = (Vec::new(), 0, 0, true);
    while whole && pieces.fill(&mut piece) {
        for (chunk, real_bytes) in piece.chunks(CHUNK_BYTES) {
            read_bytes += real_bytes as u64;
            if chunk.iter().all(|byte| *byte == 0) {
                zero_chunks += 1;
            } else if (data.len() + CHUNK_BYTES) as u64 <= memory_bytes {
                data.extend_from_slice(chunk);
            } else {
                whole = false;
            }
        }
        watch(read_bytes).continue_value()?;
    }
    let (chunks, _) = data.as_chunks::<CHUNK_BYTES>();
    let mut kinds = Vec::new();
    for kind in FingerprintKind::ALL {
        kinds.push(detect_by(kind, chunks));
        watch(read_bytes).continue_value()?;
    }
    let data_chunks = chunks.len() as u64;
    let sources = pieces.into_sources();
    let (files, unreadable) = (sources.files, sources.unreadable);
    Some(Detected { files, zero_chunks, data_chunks, whole, unreadable, kinds })
}

fn detect_by(kind: FingerprintKind, chunks: &[[u8; CHUNK_BYTES]]) -> DetectedBy {
    let fingerprinter = Fingerprinter::new(kind);
    let [mut fingerprinting, mut looking_up, mut comparing] = [Duration::ZERO; 3];
    let mut table: HashMap<Fingerprint, usize> = HashMap::with_capacity(chunks.len());
    let mut made = Vec::with_capacity(BATCH_CHUNKS);
    let mut hits = Vec::with_capacity(BATCH_CHUNKS);
    let (mut duplicates, mut collisions) = (0, 0);
    for (batch, first) in chunks.chunks(BATCH_CHUNKS).zip((0..).step_by(BATCH_CHUNKS)) {
        let refs: Vec<&[u8]> = batch.iter().map(<[u8; CHUNK_BYTES]>::as_slice).collect();
        made.clear();
        timed(&mut fingerprinting, || fingerprinter.batch(&refs, &mut made));
        hits.clear();
        timed(&mut looking_up, || {
            for (number, fingerprint) in (first..).zip(made.iter().flatten()) {
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
            timed(&mut comparing, || hits.iter().filter(is_same).count())
        };
        duplicates += same as u64;
        collisions += (hits.len() - same) as u64;
    }
    let per_chunk = |time: Duration| time.as_nanos() as f64 / (chunks.len() as f64).max(1.0);
    DetectedBy {
        kind: kind.name(),
        strong: kind.is_strong(),
        duplicates,
        collisions,
        fingerprint_ns: per_chunk(fingerprinting),
        lookup_ns: per_chunk(looking_up),
        compare_ns: per_chunk(comparing),
        total_ns: per_chunk(fingerprinting + looking_up + comparing),
    }
}

fn timed<T>(sum: &mut Duration, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let result = work();
    *sum += begun.elapsed();
    result
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::ops::ControlFlow;

    use super::{CHUNK_BYTES, detect};
    use crate::pieces::tests::Folder;

    fn chunk(number: u64) -> Vec<u8> {
        let word = |at: u64| (at + 1).wrapping_mul(number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (0..512).flat_map(|at| word(at).to_be_bytes()).collect()
    }

    /// A multiple of CRC-64/NVME's polynomial, added: the codes are the same, the bytes are not.
    fn twin_by_crc64(number: u64) -> Vec<u8> {
        let polynomial = u128::from(0xad93_d235_94c9_3659_u64.reverse_bits()) << 1 | 1;
        let mut chunk = chunk(number);
        for (byte, added) in chunk[1000..].iter_mut().zip(polynomial.to_le_bytes()) {
            *byte ^= added;
        }
        chunk
    }

    #[test]
    fn every_kind_finds_what_repeats_and_tells_what_only_collides() {
        let folder = Folder::new();
        let chunks: Vec<Vec<u8>> = (0..150)
            .chain(0..100)
            .map(chunk)
            .chain([vec![0; CHUNK_BYTES], twin_by_crc64(7), twin_by_crc64(7), chunk(7)])
            .collect();
        fs::write(folder.path().join("data"), chunks.concat()).unwrap();
        let paths = [folder.path().to_owned()];
        let found = detect(&paths, 1 << 30, |_| ControlFlow::Continue(())).unwrap();
        assert_eq!((found.zero_chunks, found.data_chunks, found.whole), (1, 253, true));
        for by in &found.kinds {
            // Two twins: aside both with CRC-64, and otherwise a chunk and its duplicate.
            let expected = if by.kind == "ecc-crc64" { (101, 2) } else { (102, 0) };
            assert_eq!((by.duplicates, by.collisions), expected, "{}", by.kind);
            assert!(by.fingerprint_ns > 0.0 && (by.compare_ns > 0.0) != by.strong, "{by:?}");
        }
        let part = detect(&paths, 100 << 12, |_| ControlFlow::Continue(())).unwrap();
        assert_eq!((part.data_chunks, part.whole, part.kinds[0].duplicates), (100, false, 0));
        assert!(detect(&paths, 1 << 30, |_| ControlFlow::Break(())).is_none());
    }
}
