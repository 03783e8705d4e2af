//! The stages that compute, timed on one thread of this machine with the very code of a store.

use std::hint::black_box;
use std::time::{Duration, Instant};

use format::detection::FingerprintKind;
use format::frame::ChunkName;
use format::units::{Codec, Compression, Pbn};
use reduce::{Fingerprinter, compress_frame, expand_frame, frame_bytes_max};

use crate::costs::StageCosts;

const CHUNK_BYTES: usize = 4096;
/// Chunks that are gone through: more than a core's caches hold.
const CHUNKS: usize = 4096;
/// Chunks of a round: less than a millisecond, so that some fall between two interruptions.
const ROUND_CHUNKS: usize = 256;
const NAME: ChunkName = ChunkName::unkeyed(Pbn(1));
const COMPRESSION: Compression = Compression { codec: Codec::Lz4, level: 0 };

/// What is compressed.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Sample {
    /// Of a chunk's bytes, those that are left.
    pub compressed_share: f64,
    /// How long each stage is timed at least.
    pub stage: Duration,
}

/// The costs of this machine; all that does not compute is `others`'.
///
/// The bytes are made: so much of each chunk repeats that LZ4 leaves about what the sample says.
#[must_use]
pub fn measure(sample: &Sample, others: &StageCosts) -> StageCosts {
    let bytes = made(sample.compressed_share);
    let chunks: Vec<&[u8]> = bytes.chunks_exact(CHUNK_BYTES).collect();
    let fingerprinter = Fingerprinter::new(FingerprintKind::Blake3);
    let mut names = Vec::with_capacity(ROUND_CHUNKS);
    let fingerprint_ns = per_chunk(sample.stage, &chunks, |round| {
        names.clear();
        round.chunks(64).for_each(|batch| fingerprinter.batch(batch, &mut names));
        black_box(names.len());
    });
    let mut out = vec![0; frame_bytes_max(CHUNK_BYTES)];
    let compress_ns = per_chunk(sample.stage, &chunks, |round| {
        for chunk in round {
            let length = compress_frame(COMPRESSION, NAME, chunk, &mut out);
            black_box(length);
        }
    });
    let frame = |chunk: &&[u8]| {
        let length = compress_frame(COMPRESSION, NAME, chunk, &mut out);
        out[..length].to_vec()
    };
    let frames: Vec<Vec<u8>> = chunks.iter().map(frame).collect();
    let mut plain = vec![0; CHUNK_BYTES];
    let expand_ns = per_chunk(sample.stage, &frames, |round| {
        for frame in round {
            let expanded = expand_frame(frame, &mut plain);
            assert!(expanded.is_ok(), "a frame that was made here is sound");
        }
    });
    StageCosts { fingerprint_ns, compress_ns, expand_ns, ..*others }
}

/// Nanoseconds of a chunk: of the fastest round, since whatever disturbs a round makes it longer.
/// All chunks are gone through at least once.
fn per_chunk<T>(at_least: Duration, all: &[T], mut work: impl FnMut(&[T])) -> f64 {
    let begin = Instant::now();
    let mut fastest = f64::INFINITY;
    loop {
        for round in all.chunks_exact(ROUND_CHUNKS) {
            let start = Instant::now();
            work(round);
            fastest = fastest.min(start.elapsed().as_nanos() as f64 / round.len() as f64);
        }
        if begin.elapsed() >= at_least {
            return fastest;
        }
    }
}

/// Chunks that do not repeat one another, of which so much repeats within.
fn made(compressed_share: f64) -> Vec<u8> {
    let mut bytes = vec![0; CHUNKS * CHUNK_BYTES];
    let random = (CHUNK_BYTES as f64 * compressed_share.clamp(0.0, 1.0)) as usize;
    let mut state = 1_u64;
    for chunk in bytes.chunks_exact_mut(CHUNK_BYTES) {
        for word in chunk[..random].chunks_mut(8) {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let mixed = (state ^ state >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word.copy_from_slice(&mixed.to_le_bytes()[..word.len()]);
        }
        chunk[random..].fill(b'.');
        // Chunks that compress wholly are different still.
        chunk[CHUNK_BYTES - 8..].copy_from_slice(&state.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{CHUNK_BYTES, COMPRESSION, NAME, Sample, compress_frame, made, measure};
    use crate::StageCosts;

    #[test]
    fn made_chunks_compress_as_they_were_asked_to() {
        let mut out = vec![0; reduce::frame_bytes_max(CHUNK_BYTES)];
        for share in [0.25, 0.5, 0.75] {
            let bytes = made(share);
            let frame = compress_frame(COMPRESSION, NAME, &bytes[..CHUNK_BYTES], &mut out);
            let left = frame as f64 / CHUNK_BYTES as f64;
            assert!((left - share).abs() < 0.05, "{share}: {left}");
        }
    }

    #[test]
    fn every_stage_that_computes_is_measured_and_no_other() {
        let sample = Sample { compressed_share: 0.5, stage: Duration::ZERO };
        let costs = measure(&sample, &StageCosts::CALIBRATED);
        let measured = [costs.fingerprint_ns, costs.compress_ns, costs.expand_ns];
        assert!(measured.iter().all(|ns| ns.is_finite() && *ns > 0.0), "{costs:?}");
        let StageCosts { fingerprint_ns, compress_ns, expand_ns, .. } = costs;
        let others =
            StageCosts { fingerprint_ns, compress_ns, expand_ns, ..StageCosts::CALIBRATED };
        assert_eq!(costs, others);
    }
}
