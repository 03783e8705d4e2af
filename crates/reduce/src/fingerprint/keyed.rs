//! Fingerprints in a keyed domain.
//!
//! BLAKE3 has a mode for it, which takes as long as the plain one (`blake3_lanes`). For the other
//! kinds the fingerprint that the chunk has without a key is hashed once more, with the key: a MAC
//! over a hash. So their batches stay as fast as they are, at one short hash a chunk, and nobody
//! without the key can tell a fingerprint from noise. Two chunks that share a plain fingerprint
//! share the keyed one as well: with a strong kind nobody has such chunks, and stores of a weak one
//! compare bytes, in the domain of him who made them as everywhere.

use blake2::Blake2bMac;
use format::detection::FingerprintKind;
use format::domain::{DomainId, DomainSecret};
use format::units::Fingerprint;
use hmac::{Hmac, KeyInit, Mac, SimpleHmac};
use sha2::digest::consts::U32;

/// Key of a domain.
pub(super) type Key = [u8; 32];

/// The key of a domain; the default one has none.
pub(super) fn key_of(secret: DomainSecret, domain: DomainId) -> Option<Key> {
    let mut message = *b"tamis domain 1\0\0";
    message[14..].copy_from_slice(&domain.number().to_le_bytes());
    domain.is_keyed().then(|| *blake3::keyed_hash(&secret.0, &message).as_bytes())
}

/// The fingerprint in a domain of a chunk that has the fingerprint `plain` without a key. Of every
/// kind but BLAKE3.
pub(super) fn keyed(kind: FingerprintKind, key: &Key, plain: &Fingerprint) -> Fingerprint {
    match kind {
        FingerprintKind::Sha256 => mac::<Hmac<sha2::Sha256>>(key, plain),
        FingerprintKind::Sha3_256 => mac::<SimpleHmac<sha3::Sha3_256>>(key, plain),
        FingerprintKind::Sha512_256 => mac::<Hmac<sha2::Sha512_256>>(key, plain),
        FingerprintKind::Blake2b => mac::<Blake2bMac<U32>>(key, plain),
        FingerprintKind::Blake3
        | FingerprintKind::Sha1
        | FingerprintKind::Md5
        | FingerprintKind::Xxh3
        | FingerprintKind::EccBch
        | FingerprintKind::EccCrc64 => Fingerprint(*blake3::keyed_hash(key, &plain.0).as_bytes()),
    }
}

fn mac<M: Mac + KeyInit>(key: &Key, plain: &Fingerprint) -> Fingerprint {
    #[expect(clippy::expect_used, reason = "HMAC takes keys of any length, BLAKE2b of up to 64")]
    let mut mac = <M as KeyInit>::new_from_slice(key).expect("a key of 32 bytes is none too long");
    mac.update(&plain.0);
    Fingerprint::padded(&mac.finalize().into_bytes())
}

#[cfg(test)]
mod tests {
    use crate::fingerprint::Fingerprinters;
    use format::detection::{Detection, FingerprintKind};
    use format::domain::{DomainId, DomainSecret};
    use format::units::Fingerprint;
    use sha2::digest::Digest;
    use std::collections::HashSet;

    const SECRET: DomainSecret = DomainSecret([0x5e; 32]);

    fn by(kind: FingerprintKind, secret: DomainSecret) -> Fingerprinters {
        Fingerprinters::new(&Detection { kind, secret: Some(secret), ..Detection::default() })
    }

    fn id(number: u16) -> DomainId {
        DomainId::new(number).unwrap()
    }

    fn chunks(count: u32) -> Vec<Vec<u8>> {
        let byte = |n: u32, at: u32| (at.wrapping_mul(n + 3) >> 5) as u8 | 1;
        (0..count).map(|n| (0..4096).map(|at| byte(n, at)).collect()).collect()
    }

    /// HMAC as RFC 2104 writes it, for a key shorter than a block.
    fn hmac_by_hand<D: Digest>(block_bytes: usize, key: &[u8; 32], message: &[u8]) -> Vec<u8> {
        let pad = |with: u8| {
            let mut block = vec![with; block_bytes];
            block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
            block
        };
        let inner = D::new().chain_update(pad(0x36)).chain_update(message).finalize();
        D::new().chain_update(pad(0x5c)).chain_update(inner).finalize().to_vec()
    }

    #[test]
    fn keyed_fingerprints_are_what_the_document_says() {
        let chunk = &chunks(1)[0];
        let mut message = b"tamis domain 1".to_vec();
        message.extend_from_slice(&0x1234_u16.to_le_bytes());
        let key = *blake3::keyed_hash(&SECRET.0, &message).as_bytes();
        for kind in FingerprintKind::ALL {
            let plain = by(kind, SECRET).of(DomainId::DEFAULT).one(chunk).unwrap();
            let over_plain = blake3::keyed_hash(&key, &plain.0).as_bytes().to_vec();
            let expected = match kind {
                FingerprintKind::Blake3 => blake3::keyed_hash(&key, chunk).as_bytes().to_vec(),
                FingerprintKind::Sha256 => hmac_by_hand::<sha2::Sha256>(64, &key, &plain.0),
                FingerprintKind::Sha3_256 => hmac_by_hand::<sha3::Sha3_256>(136, &key, &plain.0),
                FingerprintKind::Sha512_256 => {
                    hmac_by_hand::<sha2::Sha512_256>(128, &key, &plain.0)
                }
                FingerprintKind::Blake2b => continue,
                _ => over_plain,
            };
            let found = by(kind, SECRET).of(id(0x1234)).one(chunk).unwrap();
            assert_eq!(found.0[..], expected, "{kind}");
        }
    }

    /// Made by Python: `hashlib.blake2b(b"\x22" * 32, digest_size=32, key=b"\x11" * 32)`.
    #[test]
    fn blake2b_is_keyed_as_others_key_it() {
        let key = [0x11; 32];
        let plain = Fingerprint([0x22; 32]);
        let found = super::keyed(FingerprintKind::Blake2b, &key, &plain);
        assert_eq!(found.to_string(), BLAKE2B_BY_PYTHON);
    }

    const BLAKE2B_BY_PYTHON: &str =
        "d48c96fce9805f689b0bfa602feacdf3c7770d27e76c25d980eff0955e3714d2";

    #[test]
    fn domains_secrets_and_no_key_share_nothing() {
        let chunk = &chunks(1)[0];
        for kind in FingerprintKind::ALL {
            let of =
                |secret, domain| by(kind, DomainSecret([secret; 32])).of(id(domain)).one(chunk);
            let made = [of(1, 0), of(1, 1), of(1, 2), of(1, 256), of(2, 1), of(2, 2)];
            assert_eq!(made.iter().collect::<HashSet<_>>().len(), made.len(), "{kind}");
            assert_eq!(of(1, 0), of(2, 0), "{kind}: the default domain has no key");
        }
    }

    #[test]
    fn a_batch_of_many_domains_equals_its_chunks_one_by_one() {
        let mut data = chunks(70);
        data[13].fill(0);
        data[40].truncate(512);
        let refs: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        let one: Vec<DomainId> = vec![id(7); 70];
        let runs: Vec<DomainId> = (0..70).map(|at| id(at / 25)).collect();
        let mixed: Vec<DomainId> = (0..70).map(|at| id(at * at % 5)).collect();
        for kind in FingerprintKind::ALL {
            for domains in [&one, &runs, &mixed] {
                let expected: Vec<_> =
                    refs.iter().zip(domains).map(|(c, d)| by(kind, SECRET).of(*d).one(c)).collect();
                let mut made = vec![None];
                by(kind, SECRET).batch(&refs, domains, &mut made);
                assert_eq!(made[1..], expected, "{kind}");
            }
        }
    }
}
