//! Streams: a snapshot, or what changed between two, on its way from one store to another.
//!
//! ```text
//! header | section | section | ... | end
//! ```
//!
//! The header names the version that the stream leads to, its *target*, and the one that it begins
//! at, its *base*, if it has one. Sections say in ascending order which ranges hold which bytes, or
//! nothing, in the target; what no section names is as in the base, or zeros. Each carries its
//! number and a checksum, and the end a checksum of the whole: a stream that is cut, damaged, or
//! put together from others is told from a whole one, whatever its source.
//!
//! A stream is no part of a store, and has a version of its own.

use crate::checksum::crc32c;

pub(crate) mod header;
pub(crate) mod section;
mod start;

pub use header::{STREAM_HEADER_BYTES, StreamHeader, StreamVersion};
pub use section::{DATA_BYTES_MAX, SECTION_HEADER_BYTES, Section, StreamCourse};
pub use start::{STREAM_START_BYTES, StreamStart};

/// Version of the stream format that this program writes, and the newest that it reads.
pub const STREAM_VERSION: u32 = 1;

/// Places at which versions are compared, and bytes of each.
const SAMPLES: u64 = 256;
const SAMPLE_BYTES: u64 = 4096;

/// Ranges of a volume of this size from which its sample is made: offset and length. They are
/// spread over all of it.
pub fn sample_ranges(size_bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    let length_bytes = SAMPLE_BYTES.min(size_bytes);
    let last = u128::from(size_bytes - length_bytes);
    (0..SAMPLES).map(move |number| {
        let at = last * u128::from(number) / u128::from(SAMPLES - 1);
        (at as u64 / 512 * 512, length_bytes)
    })
}

/// The sample of a version whose bytes at [`sample_ranges`], one after another, are these.
#[must_use]
pub fn sample_of(bytes: &[u8]) -> u32 {
    crc32c(bytes)
}
