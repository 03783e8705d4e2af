//! What the fuzz targets share: bytes with checksums that fit.
//!
//! A fuzzer does not find a CRC by trying, and would never see what lies behind one. But a decoder
//! that refuses a checksum says both the one it read and the one it expected to read. [`heal`]
//! puts the one in the place of the other, so that no target knows an offset and the format has no
//! hook for fuzzers. Every input is decoded as it came as well.

pub mod canary;
pub mod input;
pub mod ring;
pub mod s3;
pub mod script;
pub mod segments;
pub mod served;
pub mod store;

use format::{BLOCK_BYTES, FormatError};

/// Checksums in a structure, of structures in structures.
const HEALINGS_MAX: usize = 3;

/// The input, filled with zeros or cut to a block.
#[must_use]
pub fn block(input: &[u8]) -> [u8; BLOCK_BYTES] {
    let mut block = [0; BLOCK_BYTES];
    let length = input.len().min(BLOCK_BYTES);
    block[..length].copy_from_slice(&input[..length]);
    block
}

/// Makes the checksums in `bytes` right, one after another, as far as `decode` complains of them.
pub fn heal(bytes: &mut [u8], decode: impl Fn(&[u8]) -> Result<(), FormatError>) {
    for _ in 0..HEALINGS_MAX {
        let Err(FormatError::Checksum { expected, found, .. }) = decode(bytes) else { return };
        if !replace(bytes, expected, found, &decode) {
            return;
        }
    }
}

/// Tries every place that holds `expected`; true when the complaint is gone or another.
fn replace(
    bytes: &mut [u8],
    expected: u32,
    found: u32,
    decode: impl Fn(&[u8]) -> Result<(), FormatError>,
) -> bool {
    let complaint = decode(bytes);
    for at in 0..bytes.len().saturating_sub(3) {
        if bytes[at..at + 4] != expected.to_le_bytes() {
            continue;
        }
        bytes[at..at + 4].copy_from_slice(&found.to_le_bytes());
        let now = decode(bytes);
        let still = matches!(now, Err(FormatError::Checksum { expected, .. }) if expected == found);
        if now != complaint && !still {
            return true;
        }
        bytes[at..at + 4].copy_from_slice(&expected.to_le_bytes());
    }
    false
}
