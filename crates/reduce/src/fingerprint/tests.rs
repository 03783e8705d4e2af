//! Every kind makes what its authors published, and a batch is its chunks one by one.

use super::{Fingerprinter, is_zero};
use format::detection::FingerprintKind;
use format::units::Fingerprint;
use proptest::prelude::{Just, Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;

fn batch(kind: FingerprintKind, chunks: &[&[u8]]) -> Vec<Option<Fingerprint>> {
    let mut out = Vec::new();
    Fingerprinter::new(kind).batch(chunks, &mut out);
    out
}

/// The hash in hex, without the zeros that pad it.
fn hex(kind: FingerprintKind, chunk: &[u8], hash_bytes: usize) -> String {
    let fingerprint = Fingerprinter::new(kind).one(chunk).unwrap();
    let (hash, padding) = fingerprint.0.split_at(hash_bytes);
    assert!(padding.iter().all(|&byte| byte == 0), "{kind}: {fingerprint}");
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// From the BLAKE3 reference repository, `test_vectors/test_vectors.json`: input byte i is i %
/// 251.
#[test]
fn published_vectors_of_blake3_hold() {
    let input: Vec<u8> = (0..102_400).map(|i| (i % 251) as u8).collect();
    let vectors = [
        (1024, "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"),
        (2048, "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a"),
        (4096, "015094013f57a5277b59d8475c0501042c0b642e531b0a1c8f58d2163229e969"),
        (8192, "aae792484c8efe4f19e2ca7d371d8c467ffb10748d8a5a1ae579948f718a2a63"),
        (31_744, "62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47"),
    ];
    for (length_bytes, expected) in vectors {
        let chunks = vec![&input[..length_bytes]; 40];
        for fingerprint in batch(FingerprintKind::Blake3, &chunks) {
            assert_eq!(fingerprint.unwrap().to_string(), expected, "{length_bytes} bytes");
        }
    }
}

/// `abc` and a million times `a`: the examples of FIPS 180-4 and FIPS 202 (NIST, "Examples with
/// Intermediate Values"), RFC 3174 and RFC 1321; of BLAKE2b, whose RFC 7693 has the digest of 512
/// bits only, what Python's `hashlib` says.
#[test]
fn published_vectors_of_digests_hold() {
    let million = vec![b'a'; 1_000_000];
    let vectors = [
        (
            FingerprintKind::Sha256,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
        ),
        (
            FingerprintKind::Sha3_256,
            "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532",
            "5c8875ae474a3634ba4fd55ec85bffd661f32aca75c6d699d0cdcb6c115891c1",
        ),
        (
            FingerprintKind::Sha512_256,
            "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23",
            "9a59a052930187a97038cae692f30708aa6491923ef5194394dc68d56c74fb21",
        ),
        (
            FingerprintKind::Blake2b,
            "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319",
            "0741850f36cba4259628355d1073e24ddb9ca0e1bfac36fd39ae5dc2101e23a4",
        ),
        (
            FingerprintKind::Sha1,
            "a9993e364706816aba3e25717850c26c9cd0d89d",
            "34aa973cd4c4daa4f61eeb2bdbad27316534016f",
        ),
        (
            FingerprintKind::Md5,
            "900150983cd24fb0d6963f7d28e17f72",
            "7707d6ae4e027c70eea2a935c2296f21",
        ),
    ];
    for (kind, of_abc, of_million) in vectors {
        assert_eq!(hex(kind, b"abc", of_abc.len() / 2), of_abc, "{kind}");
        assert_eq!(hex(kind, &million, of_million.len() / 2), of_million, "{kind}");
    }
}

/// From xxHash's own sanity checks (`tests/sanity_test.c`, seed 0): the buffer is made as there.
#[test]
fn published_vectors_of_xxh3_hold() {
    let mut word: u64 = 2_654_435_761;
    let input: Vec<u8> = std::iter::repeat_with(|| {
        let byte = (word >> 56) as u8;
        word = word.wrapping_mul(11_400_714_785_074_694_797);
        byte
    })
    .take(2048)
    .collect();
    let vectors = [
        (241, "99a80ecf0ecfc647c5a639ecd2030e5e"),
        (512, "18d2d110dcc9bca1617e49599013cb6b"),
        (2048, "f736557fd47073a5dd59e2c3a5f038e0"),
    ];
    for (length_bytes, expected) in vectors {
        assert_eq!(hex(FingerprintKind::Xxh3, &input[..length_bytes], 16), expected);
    }
    assert_eq!(hex(FingerprintKind::Xxh3, b"abc", 16), "06b05ab6733a618578af5f94892f3950");
}

/// Adds a polynomial to the chunk, its highest coefficient at this bit.
fn add(chunk: &mut [u8], at_byte: usize, pattern: &[u8]) {
    for (byte, added) in chunk[at_byte..].iter_mut().zip(pattern) {
        *byte ^= added;
    }
}

/// Codes are linear: a multiple of the polynomial, added to a sector, leaves its code as it was.
#[test]
fn collisions_of_codes_are_easily_made() {
    let generator = 0x115_f914_e07b_0c13_8741_c5c4_fb23_u128 << 23;
    let polynomial = u128::from(0xad93_d235_94c9_3659_u64.reverse_bits()) << 1 | 1;
    for (kind, pattern) in [
        (FingerprintKind::EccBch, generator.to_be_bytes()),
        (FingerprintKind::EccCrc64, polynomial.to_le_bytes()),
    ] {
        for length_bytes in [512, 4096, 4096 + 512, 65_536] {
            let chunk: Vec<u8> = (0..length_bytes).map(|at| (at * at % 253) as u8).collect();
            let made = Fingerprinter::new(kind).one(&chunk);
            for at_byte in [0, 17, 400, length_bytes - 16] {
                let mut twin = chunk.clone();
                add(&mut twin, at_byte, &pattern);
                assert_ne!(twin, chunk);
                assert_eq!(Fingerprinter::new(kind).one(&twin), made, "{kind} at {at_byte}");
                twin[at_byte] ^= 1;
                assert_ne!(Fingerprinter::new(kind).one(&twin), made, "{kind} at {at_byte}");
            }
        }
    }
}

/// A sector that ends in one bit has the generator without its highest coefficient for a BCH code,
/// and zeros have 0; CRCs from a register one bit wide. BLAKE2b of those as Python's `hashlib` has
/// it.
#[test]
fn keys_are_digests_of_codes() {
    let mut chunk = vec![0; 4096];
    chunk[4095] = 1;
    assert_eq!(hex(FingerprintKind::EccBch, &chunk, 10), "3e7a1a17cf71f555b194");
    assert_eq!(hex(FingerprintKind::EccCrc64, &chunk, 10), "22fdd744e0df1c24e306");
}

#[test]
fn every_group_size_agrees_with_the_plain_hash() {
    let data: Vec<Vec<u8>> = (0..50u32)
        .map(|n| (0..4096u32).map(|i| (i.wrapping_mul(n + 3) >> 5) as u8 | 1).collect())
        .collect();
    for kind in FingerprintKind::ALL {
        let plain = |chunk: &&[u8]| Fingerprinter::new(kind).one(chunk);
        for count in 0..data.len() {
            let chunks: Vec<&[u8]> = data[..count].iter().map(Vec::as_slice).collect();
            let expected: Vec<_> = chunks.iter().map(plain).collect();
            assert_eq!(batch(kind, &chunks), expected, "{kind}, {count} chunks");
        }
    }
}

#[test]
fn one_bit_anywhere_makes_a_chunk_not_zero() {
    for length_bytes in [512, 4096, 65_536, 100] {
        let mut chunk = vec![0; length_bytes];
        assert!(is_zero(&chunk));
        for kind in FingerprintKind::ALL {
            assert_eq!(batch(kind, &[&chunk]), [None], "{kind}");
            assert_eq!(Fingerprinter::new(kind).one(&chunk), None, "{kind}");
        }
        for at in [0, 1, 63, 64, length_bytes / 2, length_bytes - 1] {
            let at = at.min(length_bytes - 1);
            chunk[at] = 1;
            assert!(!is_zero(&chunk), "bit at {at} of {length_bytes}");
            chunk[at] = 0;
        }
    }
}

fn chunk() -> impl Strategy<Value = Vec<u8>> {
    let length_bytes = prop_oneof![
        4 => Just(4096usize),
        1 => (1..=128usize).prop_map(|sectors| sectors * 512),
    ];
    (length_bytes, any::<u64>(), 0..5u8).prop_map(|(length_bytes, seed, zero)| {
        let mut word = seed | 1;
        let step = |_| {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (word >> 56) as u8
        };
        if zero == 0 { vec![0; length_bytes] } else { (0..length_bytes).map(step).collect() }
    })
}

proptest! {
    #[test]
    fn a_batch_equals_its_chunks_one_by_one(
        kind in select(&FingerprintKind::ALL[..]),
        chunks in prop::collection::vec(chunk(), 0..40),
    ) {
        let refs: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
        let plain: Vec<_> = refs.iter().map(|c| Fingerprinter::new(kind).one(c)).collect();
        prop_assert_eq!(batch(kind, &refs), plain);
    }

    #[test]
    fn one_chunk_of_blake3_is_what_its_authors_hash(chunk in chunk()) {
        let holds_data = chunk.iter().any(|byte| *byte != 0);
        let expected = holds_data.then(|| Fingerprint(*blake3::hash(&chunk).as_bytes()));
        prop_assert_eq!(Fingerprinter::new(FingerprintKind::Blake3).one(&chunk), expected);
    }
}

#[test]
fn a_fingerprint_is_as_long_as_its_kind_says() {
    for kind in FingerprintKind::ALL {
        let chunks: Vec<Vec<u8>> = (1..64_u8).map(|value| vec![value; 4096]).collect();
        let mut longest = 0;
        for chunk in &chunks {
            let fingerprint = Fingerprinter::new(kind).one(chunk).unwrap();
            let zeros = fingerprint.0.iter().rev().take_while(|byte| **byte == 0).count();
            longest = longest.max(fingerprint.0.len() - zeros);
        }
        assert_eq!(longest, kind.length_bytes(), "{kind}");
    }
}
