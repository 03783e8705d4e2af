//! Every way to find a duplicate, over the same data in one run, one thread each in turn.
//!
//! The chunks are in memory, so that nothing is measured but the processor: making
//! fingerprints, as a store's workers do it, 64 at a time; looking them up in a table in memory;
//! and, for kinds that two chunks may share, comparing the bytes.

use std::ops::ControlFlow;

use format::detection::FingerprintKind;

use crate::auto::detect_by_auto;
use crate::data_chunks::CHUNK_BYTES;
use crate::detected::{BATCH_CHUNKS, Counted, DetectedBy};
use crate::index::Index;
use crate::sampling::detect_by_sampling;

/// How many ways [`detect`] compares: every kind of fingerprint, `auto` and sampling.
pub const WAYS: usize = FingerprintKind::ALL.len() + 2;

/// Lets every way find the duplicates among `chunks`, none of which is zeros. `watch` hears of the
/// chunks that one more way has gone through, and may break it off; then there is no result.
pub fn detect(
    chunks: &[[u8; CHUNK_BYTES]],
    mut watch: impl FnMut(u64) -> ControlFlow<()>,
) -> Option<Vec<DetectedBy>> {
    let mut ways = Vec::with_capacity(WAYS);
    for kind in FingerprintKind::ALL {
        ways.push(detect_by(kind, chunks, &mut watch)?);
    }
    ways.push(detect_by_auto(chunks, &mut watch)?);
    ways.push(detect_by_sampling(chunks, watch)?);
    // The kind of which stores are made misses nothing.
    let exact = ways.iter().find(|by| by.kind == FingerprintKind::Blake3.name());
    let exact = exact.map_or(0, |by| by.duplicates);
    ways.iter_mut().for_each(|by| by.lost = exact.saturating_sub(by.duplicates));
    Some(ways)
}

fn detect_by(
    kind: FingerprintKind,
    chunks: &[[u8; CHUNK_BYTES]],
    mut watch: impl FnMut(u64) -> ControlFlow<()>,
) -> Option<DetectedBy> {
    let mut index = Index::new(kind, chunks.len());
    let mut counted = Counted::default();
    let numbers: Vec<usize> = (0..chunks.len()).collect();
    for batch in numbers.chunks(BATCH_CHUNKS) {
        counted.add(batch.len(), index.find(chunks, batch));
        watch(batch.len() as u64).continue_value()?;
    }
    counted.index_bytes = index.entry_bytes();
    Some(DetectedBy::new(kind.name(), kind.is_strong(), chunks.len(), counted, index.times))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::ops::ControlFlow;

    use super::{WAYS, detect};
    use crate::data_chunks::{CHUNK_BYTES, DataChunks};
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

    const GO_ON: fn(u64) -> ControlFlow<()> = |_| ControlFlow::Continue(());

    #[test]
    fn every_way_finds_what_repeats_and_tells_what_only_collides() {
        let folder = Folder::new();
        // The first ten come three times, ninety twice, fifty once.
        let chunks: Vec<Vec<u8>> = (0..150)
            .chain(0..100)
            .chain(0..10)
            .map(chunk)
            .chain([vec![0; CHUNK_BYTES], twin_by_crc64(7), twin_by_crc64(7), chunk(7)])
            .collect();
        fs::write(folder.path().join("data"), chunks.concat()).unwrap();
        let paths = [folder.path().to_owned()];
        let read = DataChunks::read(&paths, 1 << 30, GO_ON).unwrap();
        assert_eq!((read.zero_chunks, read.chunks().len(), read.whole), (1, 263, true));
        let mut passed = 0;
        let found = detect(read.chunks(), |chunks| {
            passed += chunks;
            ControlFlow::Continue(())
        });
        let found = found.unwrap();
        assert_eq!((found.len(), passed), (WAYS, WAYS as u64 * 263));
        let [kinds @ .., auto, sampling] = found.as_slice() else { panic!() };
        for by in kinds {
            // Two twins: aside both with CRC-64, and otherwise a chunk and its duplicate.
            let expected = if by.kind == "ecc-crc64" { (111, 2) } else { (112, 0) };
            assert_eq!((by.duplicates, by.collisions), expected, "{}", by.kind);
            assert_eq!((by.hashes, by.lost), (263, 112 - by.duplicates));
            assert!(by.fingerprint_ns > 0.0 && (by.compare_ns > 0.0) != by.strong, "{by:?}");
        }
        let crc64 = &kinds[9];
        assert_eq!(crc64.index_bytes_per_chunk, f64::from(150 * 16) / 263.0);
        // The ten at their third time, and chunk 7 at its fourth. A twin begins as chunk 7 does.
        assert_eq!((sampling.kind, sampling.duplicates), ("sampling", 12));
        assert_eq!((sampling.hashes, sampling.lost), (113, 100));
        // Its first window is BLAKE3's.
        assert_eq!((auto.kind, auto.duplicates, auto.lost), ("auto", 112, 0));
        let part = DataChunks::read(&paths, 100 << 12, GO_ON).unwrap();
        assert_eq!((part.chunks().len(), part.whole), (100, false));
        assert!(DataChunks::read(&paths, 1 << 30, |_| ControlFlow::Break(())).is_none());
        assert!(detect(part.chunks(), |_| ControlFlow::Break(())).is_none());
    }
}
