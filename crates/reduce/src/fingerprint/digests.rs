//! Hashes that others have written: one call each, of one chunk.
//!
//! Those of RustCrypto choose at run time what the processor has: SHA instructions for SHA-256 and
//! SHA-1, vectors for others. Hashes of less than 256 bits are followed by zeros: the Hash-PBN
//! table hashes fingerprints once more with the store's seed, so it fills as evenly.

use format::units::Fingerprint;
use sha2::digest::Digest;
use sha2::digest::consts::U32;

pub(super) fn sha256(chunk: &[u8]) -> Fingerprint {
    digest::<sha2::Sha256>(chunk)
}

pub(super) fn sha3_256(chunk: &[u8]) -> Fingerprint {
    digest::<sha3::Sha3_256>(chunk)
}

pub(super) fn sha512_256(chunk: &[u8]) -> Fingerprint {
    digest::<sha2::Sha512_256>(chunk)
}

pub(super) fn blake2b(chunk: &[u8]) -> Fingerprint {
    digest::<blake2::Blake2b<U32>>(chunk)
}

pub(super) fn sha1(chunk: &[u8]) -> Fingerprint {
    digest::<sha1::Sha1>(chunk)
}

pub(super) fn md5(chunk: &[u8]) -> Fingerprint {
    digest::<md5::Md5>(chunk)
}

/// In the order of bytes that XXH3's authors print and store it in.
pub(super) fn xxh3(chunk: &[u8]) -> Fingerprint {
    Fingerprint::padded(&xxhash_rust::xxh3::xxh3_128(chunk).to_be_bytes())
}

fn digest<D: Digest>(chunk: &[u8]) -> Fingerprint {
    Fingerprint::padded(&D::digest(chunk))
}
