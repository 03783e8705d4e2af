//! What each codec takes of a core for a frame, by how much of the chunk is noise: all of it, half
//! of it, and the half again in the other half, which no count of bytes tells from noise.
//!
//! One thread over one mebibyte that the caches hold, as in `kinds`. What noise takes is what it
//! takes to leave it alone: `docs/decisions/026-noise-is-not-compressed.md`.

use std::fmt::{self, Display, Formatter};
use std::hint::black_box;

use engine::{Codec, Compression};
use format::frame::ChunkName;
use format::units::Pbn;
use reduce::{compress_frame, frame_bytes_max};
use serde::Serialize;

use crate::args::Args;
use crate::machine::load_average;
use crate::passes;
use crate::samples::Samples;
use crate::source::{CHUNK_BYTES, Chance, REQUEST_BYTES};

const SEED: u64 = 4;
/// With the level, which LZ4 has none of.
const CODECS: [(&str, Codec, i8); 6] = [
    ("lz4", Codec::Lz4, 0),
    ("zstd:-3", Codec::Zstd, -3),
    ("zstd:-1", Codec::Zstd, -1),
    ("zstd:1", Codec::Zstd, 1),
    ("zstd:3", Codec::Zstd, 3),
    ("zstd:9", Codec::Zstd, 9),
];

/// Figures of all rounds, in nanoseconds of a core's clock per 4-KiB chunk.
#[derive(Debug, Serialize)]
pub(crate) struct Codecs {
    pub(crate) codecs: Vec<CodecTimes>,
    /// Of the last minute, when a round began.
    pub(crate) load_average: Samples,
}

/// One codec's.
#[derive(Debug, Serialize)]
pub(crate) struct CodecTimes {
    pub(crate) codec: &'static str,
    pub(crate) noise_ns: Samples,
    pub(crate) half_ns: Samples,
    pub(crate) repeated_ns: Samples,
}

/// All rounds.
pub(crate) fn measure(args: &Args) -> Codecs {
    let mut chance = Chance::new(SEED);
    let noise: Vec<u8> = (0..REQUEST_BYTES / 8).flat_map(|_| chance.roll().to_le_bytes()).collect();
    let (mut half, mut repeated) = (noise.clone(), noise.clone());
    for chunk in half.chunks_exact_mut(CHUNK_BYTES) {
        chunk[CHUNK_BYTES / 2..].fill(0);
    }
    for chunk in repeated.chunks_exact_mut(CHUNK_BYTES) {
        chunk.copy_within(..CHUNK_BYTES / 2, CHUNK_BYTES / 2);
    }
    let new = |codec| CodecTimes {
        codec,
        noise_ns: Samples::default(),
        half_ns: Samples::default(),
        repeated_ns: Samples::default(),
    };
    let codecs = CODECS.iter().map(|(name, ..)| new(*name)).collect();
    let mut figures = Codecs { codecs, load_average: Samples::default() };
    for _ in 0..args.rounds {
        figures.load_average.push(load_average());
        for ((_, codec, level), times) in CODECS.into_iter().zip(&mut figures.codecs) {
            let compression = Compression { codec, level };
            times.noise_ns.push(ns_per_chunk(compression, &noise));
            times.half_ns.push(ns_per_chunk(compression, &half));
            times.repeated_ns.push(ns_per_chunk(compression, &repeated));
        }
    }
    figures
}

fn ns_per_chunk(compression: Compression, bytes: &[u8]) -> f64 {
    let mut out = vec![0; frame_bytes_max(CHUNK_BYTES)];
    let name = ChunkName::unkeyed(Pbn(1));
    passes::ns_per_chunk(1, || {
        for chunk in black_box(bytes).chunks_exact(CHUNK_BYTES) {
            compress_frame(compression, name, chunk, &mut out);
            black_box(&out);
        }
    })
}

impl Display for Codecs {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "One thread, chunks of 4 KiB in the caches; ns of a core's clock per frame, median \
             (min to max).\n\n\
             | codec | noise | half noise, half zeros | the same noise twice |\n|---|---|---|---|"
        )?;
        for CodecTimes { codec, noise_ns, half_ns, repeated_ns } in &self.codecs {
            writeln!(f, "| {codec} | {noise_ns} | {half_ns} | {repeated_ns} |")?;
        }
        writeln!(f, "\nLoad average when a round began: {}.", self.load_average)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{CODECS, measure};
    use crate::args::Args;

    /// Once, so that it never rots; a figure of it means nothing.
    #[test]
    fn every_codec_is_measured_and_shown() {
        let args = Args::parse_from(["bench", "codecs", "--rounds", "1"]);
        let shown = measure(&args).to_string();
        for (codec, ..) in CODECS {
            assert!(shown.contains(&format!("| {codec} | ")), "{shown}");
        }
    }
}
