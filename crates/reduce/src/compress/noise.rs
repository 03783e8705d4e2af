//! Which chunks a slow codec is spared: those in which a short look finds nothing to save.
//!
//! Archives, pictures and what is encrypted do not shrink, and Zstandard takes 3 to 15 us a chunk
//! to find that out, as long as the rest of a write. What it could use is either bytes that are
//! more frequent than others, or stretches that repeat. The look asks for both: it counts the
//! bytes of a part of the chunk, and only where they are spread as evenly as those of noise are it
//! lets LZ4 look for repetitions, with long steps.
//!
//! The answer depends on the chunk alone, not on what came before it: what a store takes for a
//! chunk is the same in whatever order and batch it comes, and an estimate is exact. In doubt the
//! codec is asked. Figures: `docs/decisions/026-noise-is-not-compressed.md`.

use format::units::{Codec, Compression};
use lz4::block::CompressionMode;

/// Levels below 0, which is another name of 3, see noise nearly as soon as the look does.
const LEVEL_SPARED_MIN: i8 = 0;
/// A shorter chunk shows too little.
const PLAIN_BYTES_MIN: usize = 4096;
/// Of every so many bytes the first ones are counted.
const STRIDE_BYTES: usize = 512;
const COUNTED_BYTES: usize = 64;
/// How much more often than in noise two bytes are the same, in percent, is still taken for noise.
/// A codec that saves a sixteenth by frequencies alone needs 141.
const EVENNESS_PERCENT: u64 = 125;
/// LZ4 begins with steps of so many bytes.
const STEP_BYTES: i32 = 8;
/// It has to save this fraction, 1 in so many bytes, for the chunk to be worth more.
const SAVING_MIN: usize = 64;

/// Whether `plain` is stored uncompressed without asking the codec. Writes to `room`, which is at
/// least as long as the chunk.
pub(super) fn is_spared(compression: Compression, plain: &[u8], room: &mut [u8]) -> bool {
    compression.codec == Codec::Zstd
        && compression.level >= LEVEL_SPARED_MIN
        && plain.len() >= PLAIN_BYTES_MIN
        && is_even(plain)
        && !repeats(plain, room)
}

/// Whether no byte is much more frequent than others, in the part that is counted.
fn is_even(plain: &[u8]) -> bool {
    // Four tables, so that equal bytes in a row do not wait for each other.
    let mut tables = [[0_u16; 256]; 4];
    let mut counted = 0_u64;
    for stretch in plain.chunks_exact(STRIDE_BYTES) {
        for four in stretch[..COUNTED_BYTES].as_chunks::<4>().0 {
            for (table, byte) in tables.iter_mut().zip(four) {
                table[usize::from(*byte)] += 1;
            }
        }
        counted += COUNTED_BYTES as u64;
    }
    let total = |byte: usize| tables.iter().map(|table| u64::from(table[byte])).sum::<u64>();
    // Ordered pairs of two places with the same byte, and how many noise has.
    let pairs = (0..256).map(|byte| total(byte) * total(byte)).sum::<u64>() - counted;
    let pairs_of_noise = counted * (counted - 1) / 256;
    pairs * 100 < pairs_of_noise * EVENNESS_PERCENT
}

/// Whether LZ4 finds enough that repeats.
fn repeats(plain: &[u8], room: &mut [u8]) -> bool {
    let room = &mut room[..plain.len() - plain.len() / SAVING_MIN];
    let quickly = Some(CompressionMode::FAST(STEP_BYTES));
    lz4::block::compress_to_buffer(plain, quickly, false, room).is_ok()
}

#[cfg(test)]
mod tests {
    use format::frame::{self, ChunkName};
    use format::units::{Codec, Compression, Pbn};
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::is_spared;
    use crate::compress::{Made, expand_frame, frame_bytes_max, make_frame};

    const ZSTD: Compression = Compression { codec: Codec::Zstd, level: 3 };

    /// Noise of bytes below `values`.
    fn noise(length_bytes: usize, seed: u64, values: u64) -> Vec<u8> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            ((mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB) >> 32) % values
        };
        (0..length_bytes).map(|_| next() as u8).collect()
    }

    fn is_noise(plain: &[u8]) -> bool {
        is_spared(ZSTD, plain, &mut vec![0; plain.len()])
    }

    proptest! {
        /// Whatever the look says, the chunk comes back; and what is spared is stored as it is.
        #[test]
        fn what_is_spared_is_stored_raw_and_read_back(
            seed in any::<u64>(), sectors in 1..=128_usize, values in 1..=256_u64,
            level in -7..=9_i8, repeated in any::<bool>(),
        ) {
            let mut plain = noise(sectors * 512, seed, values);
            if repeated {
                let half = plain.len() / 2;
                plain.copy_within(..half, half);
            }
            let compression = Compression { codec: Codec::Zstd, level };
            let mut out = vec![0xEE; frame_bytes_max(plain.len())];
            let name = ChunkName::unkeyed(Pbn(1));
            let Made { frame_bytes, spared, .. } = make_frame(compression, name, &plain, &mut out);
            prop_assert_eq!(spared, is_spared(compression, &plain, &mut vec![7; plain.len()]));
            if spared {
                prop_assert_eq!(frame_bytes, frame_bytes_max(plain.len()));
                prop_assert_eq!(frame::decode(&out[..frame_bytes]).unwrap().0.codec, Codec::Raw);
            }
            let mut back = vec![0; plain.len()];
            expand_frame(&out[..frame_bytes], &mut back).unwrap();
            prop_assert!(back == plain);
        }
    }

    #[test]
    fn noise_is_spared_in_chunks_of_every_size() {
        for length_bytes in [4096, 8192, 16_384, 32_768, 65_536] {
            let spared = (0..200).filter(|seed| is_noise(&noise(length_bytes, *seed, 256)));
            assert!(spared.count() >= 198, "{length_bytes}");
            assert!(!is_noise(&vec![7; length_bytes]));
        }
        assert!(!is_noise(&noise(3584, 1, 256)));
        let quick = Compression { codec: Codec::Zstd, level: -1 };
        let lz4 = Compression { codec: Codec::Lz4, level: 0 };
        for compression in [quick, lz4] {
            assert!(!is_spared(compression, &noise(4096, 1, 256), &mut [0; 4096]));
        }
    }

    /// Seven bits and a half a byte is where a codec may save its sixteenth.
    #[test]
    fn what_frequencies_make_smaller_is_tried() {
        for length_bytes in [4096, 65_536] {
            let spared = (0..200).filter(|seed| is_noise(&noise(length_bytes, *seed, 181)));
            assert_eq!(spared.count(), 0, "{length_bytes}");
        }
    }

    /// Bytes as frequent as in noise, that come twice.
    #[test]
    fn what_repeats_is_tried() {
        for length_bytes in [4096, 65_536] {
            let spared = (0..200).filter(|seed| {
                let mut plain = noise(length_bytes, *seed, 256);
                plain.copy_within(..length_bytes / 2, length_bytes / 2);
                is_noise(&plain)
            });
            assert_eq!(spared.count(), 0, "{length_bytes}");
        }
    }
}
