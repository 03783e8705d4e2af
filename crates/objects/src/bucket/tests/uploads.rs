//! Copies and uploads: what they refuse, what they list, and that no byte moves.

use format::objects::record::ETag;
use format::objects::record::metadata::{Checksum, ChecksumAlgorithm, Tags};
use store::Durability;

use super::rig::{DELETE, LITTLE, NOW_MS, Shorthand, check_whole, create, md5_of, noise, store_of};
use crate::bucket::{
    Bucket, BucketError, CompleteOptions, Condition, CopyOptions, FinishOptions, PartOptions,
    PutOptions, TagOptions, UploadId, UploadOptions,
};
use crate::index::{Index, Table};

const PART: PartOptions = PartOptions { durability: Durability::Acknowledged, now_ms: NOW_MS };

fn begin(bucket: &Bucket, key: &[u8], now_ms: u64) -> UploadId {
    let options = UploadOptions::new(now_ms);
    bucket.begin_upload(key, options).unwrap()
}

fn put_part(bucket: &Bucket, key: &[u8], upload: UploadId, number: u16, bytes: &[u8]) -> ETag {
    let mut writer = bucket.put_part(key, upload, number, PART).unwrap();
    writer.write(bytes).unwrap();
    writer.finish(FinishOptions::new(md5_of(bytes))).unwrap().etag
}

fn complete() -> CompleteOptions {
    CompleteOptions {
        condition: Condition::None,
        md5: [9; 16],
        checksums: Vec::new(),
        durability: Durability::Durable,
        now_ms: NOW_MS,
    }
}

#[test]
fn a_completion_moves_nothing_and_gives_up_what_it_does_not_name() {
    let store = store_of(256 << 20);
    let (_, bucket) = create(&store, "bucket");
    let upload = begin(&bucket, b"key", NOW_MS);
    let parts: Vec<Vec<u8>> =
        (1..=4).map(|number| noise(2_000_000 * number, number as u64)).collect();
    let etags: Vec<(u16, ETag)> = (1..)
        .zip(&parts)
        .map(|(number, bytes)| (number, put_part(&bucket, b"key", upload, number, bytes)))
        .collect();
    assert_eq!(bucket.figures().parts, 4);
    let mark = bucket.core.values.high_water_bytes();
    let wrong = [(1, etags[1].1)];
    let refused = bucket.complete(b"key", upload, &wrong, complete());
    assert!(matches!(refused, Err(BucketError::NoSuchPart { number: 1 })));
    let refused = bucket.complete(b"key", upload, &[etags[1], etags[0]], complete());
    assert!(matches!(refused, Err(BucketError::PartOrder)));
    let refused = bucket.complete(b"other", upload, &etags, complete());
    assert!(matches!(refused, Err(BucketError::NoSuchUpload { .. })));
    let present = CompleteOptions { condition: Condition::Present, ..complete() };
    let refused = bucket.complete(b"key", upload, &etags, present);
    assert!(matches!(refused, Err(BucketError::ConditionFailed { found: None })));
    assert_eq!(bucket.list_parts(b"key", upload, 1, 2).unwrap().len(), 2);

    let put = bucket.complete(b"key", upload, &etags[..3], complete()).unwrap();
    assert_eq!(put.etag.parts, Some(3));
    assert!(bucket.bytes(b"key") == Some(parts[..3].concat()));
    assert_eq!((bucket.figures().parts, bucket.figures().objects), (0, 1));
    let blocks = 1 << 20;
    assert!(bucket.core.values.high_water_bytes() <= mark + blocks, "no byte has moved");
    check_whole(&bucket);
    bucket.delete(b"key", &Condition::None, DELETE).unwrap();
    while !bucket.trim_some(100).unwrap().is_done {}
    check_whole(&bucket);
}

#[test]
fn uploads_are_listed_by_key_and_abandoned_ones_expire() {
    let store = store_of(64 << 20);
    let (_, bucket) = create(&store, "bucket");
    let mut begun = Vec::new();
    for (number, key) in (0..).zip(["b", "a/2", "a/1", "a/1", "a"]) {
        let upload = begin(&bucket, key.as_bytes(), NOW_MS + number);
        put_part(&bucket, key.as_bytes(), upload, 7, &noise(3000, number));
        begun.push((key.as_bytes().to_vec(), upload));
    }
    let list = |prefix: &[u8], limit| {
        let (mut found, mut after): (Vec<(Vec<u8>, UploadId)>, _) = (Vec::new(), None);
        loop {
            let behind = after.as_ref().map(|(key, upload): &(Vec<u8>, _)| (&key[..], *upload));
            let listing = bucket.list_uploads(prefix, b"", behind, limit).unwrap();
            found.extend(listing.uploads.into_iter().map(|info| (info.key, info.upload)));
            after = found.last().cloned();
            if !listing.is_cut {
                return found;
            }
        }
    };
    let mut sorted = begun.clone();
    sorted.sort();
    for limit in 1..7 {
        assert_eq!(list(b"", limit), sorted);
        assert_eq!(list(b"a/", limit), sorted[1..4]);
    }
    let expired = bucket.expire_uploads(NOW_MS + 3, 100).unwrap();
    assert!(expired.aborted == 3 && expired.is_done, "{expired:?}");
    assert_eq!(list(b"", 9), [begun[4].clone(), begun[3].clone()]);
    bucket.abort(b"a", begun[4].1, Durability::Acknowledged).unwrap();
    assert!(bucket.abort(b"a", begun[4].1, Durability::Acknowledged).is_err());
    assert_eq!(bucket.figures().parts, 1);
    check_whole(&bucket);
}

/// More parts than go into one batch.
#[test]
fn an_upload_of_many_parts_is_aborted() {
    let store = store_of(64 << 20);
    let (_, bucket) = create(&store, "bucket");
    let upload = begin(&bucket, b"key", NOW_MS);
    for number in 1..=150 {
        put_part(&bucket, b"key", upload, number, &noise(700, number.into()));
    }
    bucket.abort(b"key", upload, Durability::Acknowledged).unwrap();
    assert_eq!(bucket.figures(), Default::default());
    assert_eq!(bucket.core.index.scan(Table::Uploads, &[], 9).unwrap(), []);
    check_whole(&bucket);
}

#[test]
fn a_copy_names_what_its_source_does() {
    let store = store_of(256 << 20);
    let (_, bucket) = create(&store, "bucket");
    let bytes = noise(5 << 20, 1);
    let put = bucket.put_bytes(b"one", &bytes);
    let mark = bucket.core.values.high_water_bytes();
    let copy = bucket.copy(b"one", b"other", CopyOptions::new(NOW_MS)).unwrap();
    assert_eq!(copy.etag, put.etag);
    let range = CopyOptions { range: Some(5000..3_000_000), ..CopyOptions::new(NOW_MS) };
    let part = bucket.copy(b"one", b"part", range).unwrap();
    assert_ne!(part.etag, put.etag);
    bucket.copy(b"one", b"one", CopyOptions::new(NOW_MS)).unwrap();
    let beyond = CopyOptions { range: Some(0..(5 << 20) + 1), ..CopyOptions::new(NOW_MS) };
    let refused = bucket.copy(b"one", b"part", beyond);
    assert!(matches!(refused, Err(BucketError::OutsideObject { size_bytes: 5_242_880 })));
    let source_condition = Condition::Version(put.version);
    let stale = CopyOptions { source_condition, ..CopyOptions::new(NOW_MS) };
    assert!(matches!(
        bucket.copy(b"one", b"part", stale),
        Err(BucketError::ConditionFailed { found: Some(_) })
    ));
    assert!(bucket.core.values.high_water_bytes() <= mark + (1 << 20), "no byte has moved");
    check_whole(&bucket);
    bucket.delete(b"one", &Condition::None, DELETE).unwrap();
    while !bucket.trim_some(100).unwrap().is_done {}
    assert!(bucket.bytes(b"other").unwrap() == bytes);
    assert!(bucket.bytes(b"part").unwrap() == bytes[5000..3_000_000]);
    check_whole(&bucket);
}

/// Ranges of copies of ranges: when their list is too deep, the bytes are written again.
#[test]
fn copies_of_copies_go_on_for_ever() {
    let store = store_of(256 << 20);
    let (_, bucket) = create(&store, "bucket");
    let head = noise(70_000, 1);
    bucket.put_bytes(b"0", &noise(20 << 20, 7));
    for round in 1..40_u8 {
        let (from, to) = ([b'0' + (round - 1) % 2], [b'0' + round % 2]);
        let upload = begin(&bucket, &to, NOW_MS);
        let mut etags = Vec::new();
        for number in 1..=65_u16 {
            etags.push((number, put_part(&bucket, &to, upload, number, &head)));
        }
        let options = crate::bucket::CopyPartOptions {
            source_condition: Condition::None,
            range: Some(0..20_000),
            md5: None,
            part: PART,
        };
        let copied = bucket.copy_part(&from, &to, upload, 66, options).unwrap();
        etags.push((66, copied.etag));
        bucket.complete(&to, upload, &etags, complete()).unwrap();
        while !bucket.trim_some(1000).unwrap().is_done {}
    }
    check_whole(&bucket);
}

#[test]
fn tags_change_and_nothing_else() {
    let store = store_of(64 << 20);
    let (_, bucket) = create(&store, "bucket");
    let options = TagOptions {
        condition: Condition::None,
        durability: Durability::Acknowledged,
        now_ms: NOW_MS,
    };
    let tags = Tags::new(vec![("colour".to_owned(), "red".to_owned())]).unwrap();
    let refused = bucket.set_tags(b"key", tags.clone(), &options);
    assert!(matches!(refused, Err(BucketError::NoSuchObject)));
    let expiring = PutOptions { expires_unix_ms: Some(NOW_MS + 5), ..PutOptions::new(NOW_MS) };
    bucket.put_with(b"key", &noise(9000, 1), expiring).unwrap();
    let before = bucket.head(b"key", &Condition::None, NOW_MS).unwrap().unwrap();
    bucket.set_tags(b"key", tags.clone(), &options).unwrap();
    let mut after = bucket.head(b"key", &Condition::None, NOW_MS).unwrap().unwrap();
    assert_eq!(after.metadata.tags, tags);
    after.metadata.tags = before.metadata.tags.clone();
    assert_eq!(after, before);
    assert!(bucket.bytes(b"key") == Some(noise(9000, 1)));
    check_whole(&bucket);
    assert_eq!(bucket.expire_some(NOW_MS + 5, 9).unwrap().objects, 1);
    assert_eq!(bucket.figures(), Default::default());
    check_whole(&bucket);
}

/// As a plain list says it, page by page, whatever the limit.
#[test]
fn uploads_are_grouped_by_a_delimiter() {
    let store = store_of(64 << 20);
    let (_volume, bucket) = create(&store, "bucket");
    let keys: [&[u8]; 9] =
        [b"a/1", b"a/1", b"a/2", b"a0", b"b", b"c/d/1", b"c/e", b"\xff/1", b"\xff\xff"];
    for key in keys {
        begin(&bucket, key, NOW_MS);
    }
    for (prefix, delimiter) in
        [(&b""[..], &b"/"[..]), (b"", b""), (b"c/", b"/"), (b"a", b"/"), (b"\xff", b"\xff")]
    {
        let group_of = |key: &&[u8]| -> Vec<u8> {
            let rest = &key[prefix.len()..];
            let at = rest.windows(delimiter.len().max(1)).position(|part| part == delimiter);
            let end = at.map_or(key.len(), |at| prefix.len() + at + delimiter.len());
            key[..end].to_vec()
        };
        let is_group = |name: &Vec<u8>| !delimiter.is_empty() && name.ends_with(delimiter);
        let under = keys.iter().filter(|key| key.starts_with(prefix));
        let mut expected: Vec<Vec<u8>> = under.map(group_of).collect();
        expected.dedup_by(|one, other| one == other && is_group(one));
        for limit in 1..10 {
            let (mut found, mut after): (Vec<Vec<u8>>, _) = (Vec::new(), None);
            loop {
                let from = after.as_ref().map(|(key, upload): &(Vec<u8>, _)| (&key[..], *upload));
                let page = bucket.list_uploads(prefix, delimiter, from, limit).unwrap();
                let groups = page.prefixes.into_iter().map(|group| (group, UploadId(u64::MAX)));
                let uploads = page.uploads.into_iter().map(|one| (one.key, one.upload));
                let mut names: Vec<_> = uploads.chain(groups).collect();
                assert!(names.len() <= limit);
                names.sort();
                after = names.last().cloned();
                found.extend(names.into_iter().map(|(name, _)| name));
                if !page.is_cut {
                    break;
                }
            }
            assert_eq!(found, expected, "{prefix:?} {delimiter:?} {limit}");
        }
    }
}

#[test]
fn an_upload_remembers_the_checksum_that_it_is_begun_for() {
    let store = store_of(64 << 20);
    let (volume, bucket) = create(&store, "bucket");
    let planned = Checksum::planned(ChecksumAlgorithm::Crc32c, true);
    let options = UploadOptions { checksum: Some(planned), ..UploadOptions::new(NOW_MS) };
    let upload = bucket.begin_upload(b"key", options).unwrap();
    let part = bucket.put_part(b"key", upload, 1, PART).unwrap();
    let etag = part.finish(FinishOptions::new([1; 16])).unwrap().etag;
    bucket.close().unwrap();
    let bucket = Bucket::open(volume, &LITTLE).unwrap();
    assert_eq!(bucket.head_upload(b"key", upload).unwrap().checksums, [planned]);
    bucket.complete(b"key", upload, &[(1, etag)], complete()).unwrap();
    let info = bucket.head(b"key", &Condition::None, NOW_MS).unwrap().unwrap();
    assert!(info.checksums.is_empty(), "what is planned is no checksum");
    check_whole(&bucket);
}
