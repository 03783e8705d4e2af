//! Records come back; whatever the bytes are, there is an answer; limits are those of S3.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::prop_compose;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::subsequence;

use super::metadata::{
    Checksum, ChecksumAlgorithm, ContentHeader, ContentHeaders, MetadataError, Tags, UserMetadata,
};
use super::{
    CRC_AT, ETag, INLINE_BYTES_MAX, OBJECT_HEADER_BYTES, OBJECT_RECORD_BYTES_MAX, ObjectRecord,
    Value, checksum_of,
};
use crate::error::FormatError;
use crate::field::put_u32;
use crate::objects::segments::{ListEntry, Run, Subtree};

fn value() -> impl Strategy<Value = Value> {
    let run = (1..1_u64 << 30, 0..1_u64 << 37, 0..4096_u16).prop_map(
        |(length_bytes, first_chunk, skip_bytes)| {
            ListEntry::Run(Run { length_bytes, first_chunk, skip_bytes })
        },
    );
    let subtree = (1..1_u64 << 30, 0..1_u64 << 38, 1..=16_u8, any::<u32>()).prop_map(
        |(length_bytes, block_chunk, level, crc)| {
            ListEntry::Subtree(Subtree { length_bytes, block_chunk, level, crc })
        },
    );
    prop_oneof![
        vec(any::<u8>(), 0..=INLINE_BYTES_MAX).prop_map(Value::Inline),
        vec(prop_oneof![run, subtree], 1..=64).prop_map(Value::List),
    ]
}

fn checksums() -> impl Strategy<Value = Vec<Checksum>> {
    (subsequence(ChecksumAlgorithm::ALL.to_vec(), 0..=5), any::<[u8; 32]>(), any::<bool>())
        .prop_map(|(algorithms, bytes, composite)| {
            let one = |algorithm: ChecksumAlgorithm| {
                Checksum::new(algorithm, &bytes[..algorithm.digest_bytes()], composite).unwrap()
            };
            algorithms.into_iter().map(one).collect()
        })
}

fn numbered(texts: Vec<(String, String)>) -> Vec<(String, String)> {
    (0..).zip(texts).map(|(number, (name, value))| (format!("{number}{name}"), value)).collect()
}

prop_compose! {
    fn record()(
        numbers: (u64, u64, Option<u64>),
        md5: [u8; 16],
        parts in option::of(1..=10_000_u16),
        headers in subsequence(ContentHeader::ALL.to_vec(), 0..=7),
        text in ".{0,60}",
        pairs in vec((".{0,20}", ".{0,20}"), 0..8),
        tags in vec((".{0,100}", ".{0,250}"), 0..10),
        checksums in checksums(),
        value in value(),
    ) -> ObjectRecord {
        let headers = headers.into_iter().map(|header| (header, text.clone())).collect();
        let (version, created_unix_ms, expires_unix_ms) = numbers;
        ObjectRecord {
            expires_unix_ms,
            content_headers: ContentHeaders::new(headers).unwrap(),
            user_metadata: UserMetadata::new(numbered(pairs)).unwrap(),
            tags: Tags::new(numbered(tags)).unwrap(),
            checksums,
            ..ObjectRecord::new(version, created_unix_ms, ETag { md5, parts }, value)
        }
    }
}

fn seal(bytes: &mut [u8]) {
    let crc = checksum_of(bytes);
    put_u32(bytes, CRC_AT, crc);
}

proptest! {
    #[test]
    fn records_come_back(record in record()) {
        let bytes = record.encode();
        prop_assert!(bytes.len() <= OBJECT_RECORD_BYTES_MAX);
        prop_assert_eq!(ObjectRecord::decode(&bytes), Ok(record));
    }

    #[test]
    fn a_changed_bit_is_noticed(record in record(), at: proptest::sample::Index) {
        let mut bytes = record.encode();
        let bit = at.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(ObjectRecord::decode(&bytes).is_err());
    }

    #[test]
    fn a_cut_record_is_noticed(record in record(), at: proptest::sample::Index) {
        let bytes = record.encode();
        prop_assert!(ObjectRecord::decode(&bytes[..at.index(bytes.len())]).is_err());
    }

    #[test]
    fn arbitrary_bytes_are_an_answer(bytes: Vec<u8>) {
        let _ = ObjectRecord::decode(&bytes);
    }

    /// The checksum is right, and what it covers is arbitrary, or a record with bytes changed.
    #[test]
    fn arbitrary_contents_are_an_answer(
        mut arbitrary in vec(any::<u8>(), OBJECT_HEADER_BYTES..400),
        record in record(),
        changes in vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
    ) {
        arbitrary[0] = 1;
        let mut changed = record.encode();
        for (at, byte) in changes {
            let at = at.index(changed.len());
            changed[at] = byte;
        }
        for mut bytes in [arbitrary, changed] {
            seal(&mut bytes);
            if let Ok(found) = ObjectRecord::decode(&bytes) {
                prop_assert_eq!(found.encode(), bytes, "one record has one form");
            }
        }
    }
}

#[test]
fn a_newer_version_asks_for_a_newer_program() {
    let etag = ETag { md5: [0; 16], parts: None };
    let mut bytes = ObjectRecord::new(1, 2, etag, Value::EMPTY).encode();
    bytes[0] = 2;
    seal(&mut bytes);
    let found = ObjectRecord::decode(&bytes);
    assert!(matches!(found, Err(FormatError::NewerVersion { found: 2, supported: 1, .. })));
}

/// The bytes of a record are frozen.
#[test]
fn a_record_is_written_as_ever() {
    let etag = ETag { md5: [9; 16], parts: Some(3) };
    let record = ObjectRecord {
        expires_unix_ms: Some(8),
        content_headers: ContentHeaders::new(vec![(ContentHeader::Type, "a/b".into())]).unwrap(),
        user_metadata: UserMetadata::new(vec![("n".into(), "v".into())]).unwrap(),
        tags: Tags::new(vec![("k".into(), "w".into())]).unwrap(),
        checksums: vec![Checksum::new(ChecksumAlgorithm::Crc32, &[1, 2, 3, 4], true).unwrap()],
        ..ObjectRecord::new(5, 6, etag, Value::Inline(vec![7]))
    };
    let bytes = record.encode();
    assert_eq!((bytes.len(), bytes[..4].to_vec()), (88, vec![1, 0, 3, 1]));
    let behind = [3, 0, 0x81, 1, 2, 3, 4, 6, 0, 1, 3, 0, b'a', b'/', b'b'];
    assert_eq!(bytes[OBJECT_HEADER_BYTES..][..15], behind);
    let end = [6, 0, 1, 0, b'n', 1, 0, b'v', 6, 0, 1, 0, b'k', 1, 0, b'w', 7];
    assert_eq!(bytes[bytes.len() - 17..], end);
}

fn pair(name_bytes: usize, value_bytes: usize) -> (String, String) {
    ("n".repeat(name_bytes), "v".repeat(value_bytes))
}

#[test]
fn limits_are_those_of_s3() {
    assert!(UserMetadata::new(vec![pair(48, 2000)]).is_ok());
    let refused = UserMetadata::new(vec![pair(48, 2001)]).unwrap_err();
    let expected = "user metadata may have at most 2048 bytes, and has 2049";
    assert_eq!(refused.to_string(), expected);
    assert!(Tags::new(vec![("ä".repeat(128), "ö".repeat(256))]).is_ok());
    assert!(Tags::new(vec![pair(129, 1)]).is_err());
    assert!(Tags::new(vec![pair(1, 257)]).is_err());
    let eleven = (0..11).map(|n| (n.to_string(), String::new())).collect();
    assert!(Tags::new(eleven).is_err());
    let twice = vec![pair(1, 1), pair(2, 2), pair(1, 3)];
    let expected = MetadataError::Name { what: "tag", number: 3 };
    assert_eq!(Tags::new(twice.clone()), Err(expected));
    assert!(UserMetadata::new(twice).is_err());
    assert!(Tags::new(vec![pair(0, 1)]).is_err());
    let long = vec![(ContentHeader::Type, "x".repeat(8190))];
    assert!(ContentHeaders::new(long).is_err());
    let both = vec![(ContentHeader::Type, String::new()); 2];
    assert!(ContentHeaders::new(both).is_err());
}

/// The longest that users can make it.
#[test]
fn the_longest_record_fits() {
    let pairs = (0..2048 / 4).map(|n| (format!("{n:04}"), String::new())).collect();
    let tag = |n: u32| {
        let key = char::from_u32(0x1_0000 + n).unwrap().to_string().repeat(128);
        (key, "\u{10000}".repeat(256))
    };
    let run = ListEntry::Run(Run { length_bytes: 1, first_chunk: 1, skip_bytes: 0 });
    let etag = ETag { md5: [9; 16], parts: Some(10_000) };
    let all = ChecksumAlgorithm::ALL;
    let sum = |one: ChecksumAlgorithm| Checksum::new(one, &[1; 32][..one.digest_bytes()], true);
    let record = ObjectRecord {
        content_headers: ContentHeaders::new(vec![(ContentHeader::Type, "x".repeat(8189))])
            .unwrap(),
        user_metadata: UserMetadata::new(pairs).unwrap(),
        tags: Tags::new((0..10).map(tag).collect()).unwrap(),
        checksums: all.map(|one| sum(one).unwrap()).to_vec(),
        ..ObjectRecord::new(5, 6, etag, Value::List(vec![run; 64]))
    };
    let bytes = record.encode();
    assert!(bytes.len() <= OBJECT_RECORD_BYTES_MAX);
    assert_eq!(ObjectRecord::decode(&bytes), Ok(record));
}
