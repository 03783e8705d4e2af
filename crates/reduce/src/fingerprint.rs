//! Fingerprints: the name of a chunk by its content.
//!
//! A fingerprint is the BLAKE3-256 of the chunk's plain bytes. A chunk of nothing but zeros has
//! none: it is never stored, so the test for it comes before the hash. It costs next to nothing for
//! other data, because it stops at the first 64 bytes that hold anything.

use crate::lanes::{LANE_CHUNK_BYTES, Lanes, hash_one};
use format::units::Fingerprint;

/// Bytes looked at between two chances to stop: one cache line.
const STRIDE_BYTES: usize = 64;

/// Appends the fingerprint of each chunk to `out`, in order; None for a chunk of zeros.
pub fn fingerprint_batch(chunks: &[&[u8]], out: &mut Vec<Option<Fingerprint>>) {
    let first = out.len();
    out.resize(first + chunks.len(), None);
    let mut lanes = Lanes::new();
    for (chunk, result) in chunks.iter().zip(&mut out[first..]) {
        if is_zero(chunk) {
            continue;
        }
        match <&[u8; LANE_CHUNK_BYTES]>::try_from(*chunk) {
            Ok(chunk) => lanes.push(chunk, result),
            Err(_) => *result = Some(hash_one(chunk)),
        }
    }
    lanes.finish();
}

/// Whether there is no other byte than 0.
fn is_zero(chunk: &[u8]) -> bool {
    let (lines, rest) = chunk.as_chunks::<STRIDE_BYTES>();
    lines.iter().all(is_zero_line) && rest.iter().all(|byte| *byte == 0)
}

/// Ors the words without a branch between them, so that the compiler uses vectors.
fn is_zero_line(line: &[u8; STRIDE_BYTES]) -> bool {
    let (words, _) = line.as_chunks::<16>();
    words.iter().fold(0, |or, word| or | u128::from_ne_bytes(*word)) == 0
}

#[cfg(test)]
mod tests {
    use super::{fingerprint_batch, is_zero};
    use format::units::Fingerprint;
    use proptest::prelude::{Just, Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};

    fn batch(chunks: &[&[u8]]) -> Vec<Option<Fingerprint>> {
        let mut out = Vec::new();
        fingerprint_batch(chunks, &mut out);
        out
    }

    fn hex(fingerprint: Option<Fingerprint>) -> String {
        fingerprint.unwrap().0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// From the BLAKE3 reference repository, `test_vectors/test_vectors.json`: input byte i is i %
    /// 251.
    #[test]
    fn published_vectors_hold() {
        let input: Vec<u8> = (0..102_400).map(|i| (i % 251) as u8).collect();
        let vectors = [
            (1024, "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"),
            (2048, "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a"),
            (4096, "015094013f57a5277b59d8475c0501042c0b642e531b0a1c8f58d2163229e969"),
            (8192, "aae792484c8efe4f19e2ca7d371d8c467ffb10748d8a5a1ae579948f718a2a63"),
            (31_744, "62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47"),
        ];
        for (length_bytes, expected) in vectors {
            let chunks = vec![&input[..length_bytes]; 40];
            for fingerprint in batch(&chunks) {
                assert_eq!(hex(fingerprint), expected, "{length_bytes} bytes");
            }
        }
    }

    #[test]
    fn every_group_size_agrees_with_the_plain_hash() {
        let data: Vec<Vec<u8>> = (0..50u32)
            .map(|n| (0..4096u32).map(|i| (i.wrapping_mul(n + 3) >> 5) as u8 | 1).collect())
            .collect();
        for count in 0..data.len() {
            let chunks: Vec<&[u8]> = data[..count].iter().map(Vec::as_slice).collect();
            let expected: Vec<_> =
                chunks.iter().map(|c| Some(Fingerprint(*blake3::hash(c).as_bytes()))).collect();
            assert_eq!(batch(&chunks), expected, "{count} chunks");
        }
    }

    #[test]
    fn one_bit_anywhere_makes_a_chunk_not_zero() {
        for length_bytes in [512, 4096, 65_536, 100] {
            let mut chunk = vec![0; length_bytes];
            assert!(is_zero(&chunk));
            assert_eq!(batch(&[&chunk]), [None]);
            for at in [0, 1, 63, 64, length_bytes / 2, length_bytes - 1] {
                let at = at.min(length_bytes - 1);
                chunk[at] = 1;
                assert!(!is_zero(&chunk), "bit at {at} of {length_bytes}");
                chunk[at] = 0;
            }
        }
    }

    fn chunk() -> impl Strategy<Value = Vec<u8>> {
        let length_bytes = prop_oneof![
            4 => Just(4096usize),
            1 => (1..=128usize).prop_map(|sectors| sectors * 512),
        ];
        (length_bytes, any::<u64>(), 0..5u8).prop_map(|(length_bytes, seed, zero)| {
            let mut word = seed | 1;
            let step = |_| {
                word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (word >> 56) as u8
            };
            if zero == 0 { vec![0; length_bytes] } else { (0..length_bytes).map(step).collect() }
        })
    }

    proptest! {
        #[test]
        fn a_batch_equals_its_chunks_one_by_one(chunks in prop::collection::vec(chunk(), 0..40)) {
            let refs: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
            let hash = |chunk: &&[u8]| Fingerprint(*blake3::hash(chunk).as_bytes());
            let holds_data = |chunk: &&[u8]| chunk.iter().any(|byte| *byte != 0);
            let plain: Vec<_> = refs.iter().map(|c| holds_data(c).then(|| hash(c))).collect();
            prop_assert_eq!(batch(&refs), plain);
        }
    }
}
