//! Fingerprints: what a store calls a chunk by its content, in the way that it was made with.
//!
//! A [`Fingerprinter`] is a kind of fingerprint and nothing else. Each kind is a function over the
//! chunk's plain bytes; some of them are faster over many chunks at once, with the same results
//! (`blake3_lanes`, `sha256_many`). The plain function is the specification of the fast one.
//!
//! A chunk of nothing but zeros has no fingerprint, whatever the kind: it is never stored, so the
//! test for it comes before the hash. It costs next to nothing for other data, because it stops at
//! the first 64 bytes that hold anything.

mod bch;
mod blake3_lanes;
mod crc64;
mod digests;
mod sectors;
mod sha256_many;

use format::detection::FingerprintKind;
use format::units::Fingerprint;

/// Bytes looked at between two chances to stop: one cache line.
const STRIDE_BYTES: usize = 64;

/// Makes the fingerprints of a store.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Fingerprinter {
    kind: FingerprintKind,
}

impl Fingerprinter {
    /// One for stores of this kind.
    #[must_use]
    pub const fn new(kind: FingerprintKind) -> Self {
        Self { kind }
    }

    /// Appends the fingerprint of each chunk to `out`, in order; None for a chunk of zeros.
    pub fn batch(self, chunks: &[&[u8]], out: &mut Vec<Option<Fingerprint>>) {
        let first = out.len();
        out.resize(first + chunks.len(), None);
        let pairs = chunks.iter().copied().zip(&mut out[first..]);
        let with_data = pairs.filter(|(chunk, _)| !is_zero(chunk));
        match self.kind {
            FingerprintKind::Blake3 => blake3_lanes::hash_all(with_data),
            FingerprintKind::Sha256 => sha256_many::hash_all(with_data),
            _ => with_data.for_each(|(chunk, result)| *result = Some(self.hash(chunk))),
        }
    }

    /// The fingerprint of one chunk; None for a chunk of zeros. Many are faster in a batch.
    #[must_use]
    pub fn one(self, chunk: &[u8]) -> Option<Fingerprint> {
        (!is_zero(chunk)).then(|| self.hash(chunk))
    }

    fn hash(self, chunk: &[u8]) -> Fingerprint {
        match self.kind {
            FingerprintKind::Blake3 => blake3_lanes::hash_one(chunk),
            FingerprintKind::Sha256 => digests::sha256(chunk),
            FingerprintKind::Sha3_256 => digests::sha3_256(chunk),
            FingerprintKind::Sha512_256 => digests::sha512_256(chunk),
            FingerprintKind::Blake2b => digests::blake2b(chunk),
            FingerprintKind::Sha1 => digests::sha1(chunk),
            FingerprintKind::Md5 => digests::md5(chunk),
            FingerprintKind::Xxh3 => digests::xxh3(chunk),
            FingerprintKind::EccBch => sectors::key(chunk, bch::codes, bch::codes),
            FingerprintKind::EccCrc64 => sectors::key(chunk, crc64::codes, crc64::codes),
        }
    }
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
mod tests;
