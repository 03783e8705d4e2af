//! Fingerprints: what a store calls a chunk by its content, in the way that it was made with.
//!
//! A [`Fingerprinter`] is a kind of fingerprint and, of a keyed domain, its key (`keyed`). Each
//! kind is a function over the chunk's plain bytes; some of them are faster over many chunks at
//! once, with the same results (`blake3_lanes`, `sha256_many`). The plain function is the
//! specification of the fast one.
//!
//! A chunk of nothing but zeros has no fingerprint, whatever the kind: it is never stored, so the
//! test for it comes before the hash. It costs next to nothing for other data, because it stops at
//! the first 64 bytes that hold anything.

mod bch;
mod blake3_lanes;
mod crc64;
mod digests;
mod keyed;
mod sectors;
mod sha256_many;

use format::detection::{Detection, FingerprintKind};
use format::domain::{DomainId, DomainSecret};
use format::units::Fingerprint;

/// Bytes looked at between two chances to stop: one cache line.
const STRIDE_BYTES: usize = 64;

/// Makes the fingerprints of a store, in all its domains.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Fingerprinters {
    kind: FingerprintKind,
    secret: Option<DomainSecret>,
}

impl Fingerprinters {
    /// Those of a store that finds duplicates so.
    #[must_use]
    pub const fn new(detection: &Detection) -> Self {
        Self { kind: detection.kind, secret: detection.secret }
    }

    /// Whether a chunk takes no more than a few microseconds.
    pub(crate) const fn is_quick(self) -> bool {
        use FingerprintKind::{Blake3, EccBch, EccCrc64, Xxh3};
        matches!(self.kind, Blake3 | Xxh3 | EccBch | EccCrc64)
    }

    /// What makes those of one domain. Of a keyed domain in a store without a secret, which no
    /// store of this program has, they are nobody's.
    #[must_use]
    pub fn of(self, domain: DomainId) -> Fingerprinter {
        let key = keyed::key_of(self.secret.unwrap_or(DomainSecret([0; 32])), domain);
        Fingerprinter { kind: self.kind, key }
    }

    /// Appends the fingerprint of each chunk in its own domain to `out`, in order; None for a chunk
    /// of zeros. Without any domain all are in the default one.
    pub fn batch(self, chunks: &[&[u8]], domains: &[DomainId], out: &mut Vec<Option<Fingerprint>>) {
        let first = domains.first().copied().unwrap_or_default();
        if domains.iter().all(|domain| *domain == first) {
            return self.of(first).batch(chunks, out);
        }
        let start = out.len();
        out.resize(start + chunks.len(), None);
        let mut present = domains.to_vec();
        present.sort_unstable();
        present.dedup();
        let mut made = Vec::with_capacity(chunks.len());
        for domain in present {
            let members = || (0..).zip(domains).filter(|(_, of)| **of == domain).map(|(at, _)| at);
            let together: Vec<&[u8]> = members().map(|at: usize| chunks[at]).collect();
            made.clear();
            self.of(domain).batch(&together, &mut made);
            members().zip(&made).for_each(|(at, fingerprint)| out[start + at] = *fingerprint);
        }
    }
}

/// Makes the fingerprints of one domain of a store.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Fingerprinter {
    kind: FingerprintKind,
    key: Option<keyed::Key>,
}

impl Fingerprinter {
    /// One for the default domain of stores of this kind.
    #[must_use]
    pub const fn new(kind: FingerprintKind) -> Self {
        Self { kind, key: None }
    }

    /// Appends the fingerprint of each chunk to `out`, in order; None for a chunk of zeros.
    pub fn batch(self, chunks: &[&[u8]], out: &mut Vec<Option<Fingerprint>>) {
        let first = out.len();
        out.resize(first + chunks.len(), None);
        let pairs = chunks.iter().copied().zip(&mut out[first..]);
        let with_data = pairs.filter(|(chunk, _)| !is_zero(chunk));
        match self.kind {
            FingerprintKind::Blake3 => {
                return blake3_lanes::hash_all(self.key.as_ref(), with_data);
            }
            FingerprintKind::Sha256 => sha256_many::hash_all(with_data),
            _ => with_data.for_each(|(chunk, result)| *result = Some(self.hash(chunk))),
        }
        if let Some(key) = &self.key {
            let made = out[first..].iter_mut().flatten();
            made.for_each(|made| *made = keyed::keyed(self.kind, key, made));
        }
    }

    /// The fingerprint of one chunk; None for a chunk of zeros. Many are faster in a batch.
    #[must_use]
    pub fn one(self, chunk: &[u8]) -> Option<Fingerprint> {
        if is_zero(chunk) {
            return None;
        }
        Some(match (self.kind, &self.key) {
            (FingerprintKind::Blake3, key) => blake3_lanes::hash_one(key.as_ref(), chunk),
            (_, None) => self.hash(chunk),
            (kind, Some(key)) => keyed::keyed(kind, key, &self.hash(chunk)),
        })
    }

    /// Without the key.
    fn hash(self, chunk: &[u8]) -> Fingerprint {
        match self.kind {
            FingerprintKind::Blake3 => blake3_lanes::hash_one(None, chunk),
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
