//! The bytes that a digest stands for.
//!
//! A piece of content begins with its digest and a mark, so that different digests give different
//! bytes whatever follows; then come bytes that no codec makes smaller, and zeros for the rest. One
//! multiplication makes eight bytes: a core makes gigabytes of them in a second, so that a replay
//! measures the store and not its source.
//!
//! The digests that MD5 gives zeros become zeros: a store keeps nothing for them, as it would not
//! have for what the trace was taken of.

use crate::digest::{Digest, mix};
use crate::request::{BLOCK_BYTES, Grain, SECTOR_BYTES};

/// What stands behind the digest: content whose digest is zero is not all zeros.
const MARK: [u8; 8] = *b"digested";
/// Digest and mark.
const HEAD_BYTES: usize = 24;

/// How digests become bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Content {
    compressible_percent: u8,
}

impl Content {
    /// Contents of which so much goes away when they are compressed; 100 at most, and of each
    /// piece [`HEAD_BYTES`] stay.
    #[must_use]
    pub fn new(compressible_percent: u8) -> Self {
        Self { compressible_percent: compressible_percent.min(100) }
    }

    /// Fills `out` with what `digests` stand for, one after the other; `out` is as long as all of
    /// them, and what is longer stays as it is.
    pub fn fill(&self, grain: Grain, digests: &[Digest], out: &mut [u8]) {
        let zeros = match grain {
            Grain::Block => Digest::ZERO_BLOCK,
            Grain::Sector => Digest::ZERO_SECTOR,
        };
        for (digest, piece) in digests.iter().zip(out.chunks_exact_mut(grain.bytes() as usize)) {
            if *digest == zeros {
                piece.fill(0);
            } else {
                self.fill_piece(*digest, piece);
            }
        }
    }

    fn fill_piece(&self, digest: Digest, piece: &mut [u8]) {
        let random_bytes = piece.len() * (100 - usize::from(self.compressible_percent)) / 100;
        let random_bytes = random_bytes.next_multiple_of(8).max(HEAD_BYTES);
        let (random, rest) = piece.split_at_mut(random_bytes);
        rest.fill(0);
        let (head, random) = random.split_at_mut(HEAD_BYTES);
        head[..16].copy_from_slice(&digest.0);
        head[16..].copy_from_slice(&MARK);
        let [high, low] = digest.halves();
        let key = mix(high) | 1;
        let mut state = mix(low);
        for word in random.chunks_exact_mut(8) {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let product = u128::from(state) * u128::from(state ^ key);
            word.copy_from_slice(&((product >> 64) as u64 ^ product as u64).to_le_bytes());
        }
    }
}

const _: () = assert!(SECTOR_BYTES as usize > HEAD_BYTES && BLOCK_BYTES > SECTOR_BYTES);

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::any;
    use proptest::{prop_assert_eq, proptest};

    use super::Content;
    use crate::digest::{Digest, mix};
    use crate::request::Grain;

    fn block(content: Content, digest: Digest) -> Vec<u8> {
        // Stale bytes, as buffers that are used again have.
        let mut out = vec![0xa5; 4096];
        content.fill(Grain::Block, &[digest], &mut out);
        out
    }

    fn digest(number: u64) -> Digest {
        Digest::from_halves([mix(number), number])
    }

    /// What is left of contents when LZ4 has compressed each 4096 bytes, in percent.
    fn left_percent(compressible_percent: u8, grain: Grain) -> f64 {
        let content = Content::new(compressible_percent);
        let digests: Vec<Digest> = (0..256).map(digest).collect();
        let mut out = vec![0xa5; digests.len() * grain.bytes() as usize];
        content.fill(grain, &digests, &mut out);
        let frames = out.chunks(4096).map(|chunk| {
            let frame = lz4::block::compress(chunk, None, false).unwrap();
            frame.len().min(chunk.len())
        });
        frames.sum::<usize>() as f64 * 100.0 / out.len() as f64
    }

    #[test]
    fn frames_are_as_small_as_was_asked_for() {
        for compressible_percent in [0, 10, 30, 50, 70, 90, 97] {
            for grain in [Grain::Block, Grain::Sector] {
                let left = left_percent(compressible_percent, grain);
                let expected = 100.0 - f64::from(compressible_percent);
                // A sector keeps its head, and each of the eight costs a word or two of its own.
                let bound =
                    if grain == Grain::Sector && compressible_percent > 90 { 6.0 } else { 2.0 };
                assert!((left - expected).abs() <= bound, "{left} {expected} {grain:?}");
            }
        }
    }

    #[test]
    fn different_digests_differ_even_where_nothing_is_left() {
        for compressible_percent in [0, 50, 100] {
            let content = Content::new(compressible_percent);
            let mut digests: Vec<Digest> = (1..500).map(digest).collect();
            // Neighbours, zero, and zeros of the other grain.
            digests.extend((0..128).map(|bit| Digest((1_u128 << bit).to_be_bytes())));
            digests.extend([Digest([0; 16]), Digest::ZERO_SECTOR, Digest::ZERO_BLOCK]);
            let distinct: HashSet<Vec<u8>> =
                digests.iter().map(|&digest| block(content, digest)).collect();
            assert_eq!(distinct.len(), digests.len());
        }
    }

    #[test]
    fn only_what_was_zeros_is_zeros() {
        let zeros = vec![0; 4096];
        for compressible_percent in [0, 50, 100] {
            let content = Content::new(compressible_percent);
            assert_eq!(block(content, Digest::ZERO_BLOCK), zeros);
            assert_ne!(block(content, Digest([0; 16])), zeros);
            let mut out = vec![1; 4096];
            content.fill(Grain::Sector, &[Digest::ZERO_SECTOR; 8], &mut out);
            assert_eq!(out, zeros);
        }
    }

    proptest! {
        /// A sector's bytes follow from its own digest, wherever it stands.
        #[test]
        fn sectors_stand_for_themselves(numbers in any::<[u64; 8]>(), percent in 0_u8..=100) {
            let content = Content::new(percent);
            let digests = numbers.map(digest);
            let mut whole = vec![0xa5; 4096];
            content.fill(Grain::Sector, &digests, &mut whole);
            for (digest, found) in digests.iter().zip(whole.chunks_exact(512)) {
                let mut alone = vec![0x5a; 512];
                content.fill(Grain::Sector, &[*digest], &mut alone);
                prop_assert_eq!(found, &alone[..]);
            }
        }
    }
}
