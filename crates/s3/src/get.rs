//! GetObject, HeadObject and GetObjectAttributes.

use std::ops::Range;

use buckets::OpenBucket;
use format::objects::record::metadata::ContentHeader;
use hyper::StatusCode;
use objects::bucket::{Condition, ObjectInfo, Reader};
use s3s::dto::{
    self, ChecksumMode, GetObjectAttributesInput, GetObjectAttributesOutput,
    GetObjectAttributesParts, GetObjectInput, GetObjectOutput, HeadObjectInput, HeadObjectOutput,
    ObjectAttributes, StorageClass,
};
use s3s::{S3Response, S3Result, s3_error};

use crate::body::Unread;
use crate::checksums::Texts;
use crate::conditions::Conditions;
use crate::door::{Door, now_ms, place, timestamp};
use crate::errors::no_part;
use crate::parts::Parts;
use crate::{etags, metadata};

/// Reads an object, or a range of it.
pub(crate) async fn get(
    door: &Door,
    input: GetObjectInput,
) -> S3Result<S3Response<GetObjectOutput>> {
    let wants_checksums = wants_checksums(input.checksum_mode.as_ref());
    let conditions = Conditions {
        if_match: input.if_match,
        if_none_match: input.if_none_match,
        if_modified_since: input.if_modified_since,
        if_unmodified_since: input.if_unmodified_since,
    };
    let (bucket, key) = (input.bucket, input.key);
    let (asked, part) = (input.range, input.part_number);
    let found = door.blocking(move |door| {
        let place = place(&bucket, &key);
        let open = door.open(&bucket)?;
        let reader = opened(door, &open, &key, &conditions, &place)?;
        let info = reader.info().clone();
        let range = bytes_of(asked, part, &info)?;
        let parts = Parts::one(range.clone().unwrap_or(0..info.size_bytes));
        let mut unread = Unread { reader, parts, place, _bucket: open };
        let first = unread.next(door)?;
        Ok((info, range, first, unread))
    });
    let (info, range, first, unread) = found.await?;
    let body = door.sending(first, unread);
    let mut output = described(&info, range.as_ref(), wants_checksums);
    output.parts_count = part.and(info.etag.parts).map(i32::from);
    output.body = Some(body);
    let status = if range.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
    Ok(S3Response::with_status(output, status))
}

/// The object of a key, if it meets the conditions.
pub(crate) fn opened(
    door: &Door,
    bucket: &OpenBucket,
    key: &str,
    conditions: &Conditions,
    place: &str,
) -> S3Result<Reader> {
    let reader = bucket.get(key.as_bytes(), &Condition::None, now_ms());
    let reader = reader.map_err(|error| door.refuse(error, place))?;
    let reader = reader.ok_or_else(|| s3_error!(NoSuchKey))?;
    conditions.judge_read(reader.info())?;
    Ok(reader)
}

/// An object without its bytes.
pub(crate) async fn head(
    door: &Door,
    input: HeadObjectInput,
) -> S3Result<S3Response<HeadObjectOutput>> {
    let wants_checksums = wants_checksums(input.checksum_mode.as_ref());
    let conditions = Conditions {
        if_match: input.if_match,
        if_none_match: input.if_none_match,
        if_modified_since: input.if_modified_since,
        if_unmodified_since: input.if_unmodified_since,
    };
    let info = info(door, input.bucket, input.key).await?;
    conditions.judge_read(&info)?;
    let range = bytes_of(input.range, input.part_number, &info)?;
    let mut output = described(&info, range.as_ref(), wants_checksums);
    output.parts_count = input.part_number.and(info.etag.parts).map(i32::from);
    let status = if range.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
    Ok(S3Response::with_status(without_body(output), status))
}

/// What a client asks of an object by names.
pub(crate) async fn attributes(
    door: &Door,
    input: GetObjectAttributesInput,
) -> S3Result<S3Response<GetObjectAttributesOutput>> {
    let info = info(door, input.bucket, input.key).await?;
    let wants = |name: &str| input.object_attributes.iter().any(|asked| asked.as_str() == name);
    let texts = Texts::new(&info.checksums, info.etag.parts);
    let checksum = (wants(ObjectAttributes::CHECKSUM) && !info.checksums.is_empty()).then_some(
        dto::Checksum {
            checksum_crc32: texts.crc32,
            checksum_crc32c: texts.crc32c,
            checksum_crc64nvme: texts.crc64nvme,
            checksum_sha1: texts.sha1,
            checksum_sha256: texts.sha256,
            checksum_type: texts.kind,
        },
    );
    Ok(S3Response::new(GetObjectAttributesOutput {
        checksum,
        e_tag: wants(ObjectAttributes::ETAG).then(|| etags::outgoing(&info.etag)),
        last_modified: Some(timestamp(info.created_unix_ms)),
        object_size: wants(ObjectAttributes::OBJECT_SIZE).then_some(info.size_bytes as i64),
        object_parts: info.etag.parts.filter(|_| wants(ObjectAttributes::OBJECT_PARTS)).map(
            |parts| GetObjectAttributesParts {
                total_parts_count: Some(i32::from(parts)),
                ..GetObjectAttributesParts::default()
            },
        ),
        storage_class: wants(ObjectAttributes::STORAGE_CLASS)
            .then(|| StorageClass::from_static(StorageClass::STANDARD)),
        ..GetObjectAttributesOutput::default()
    }))
}

/// The object of a key.
pub(crate) async fn info(door: &Door, bucket: String, key: String) -> S3Result<ObjectInfo> {
    door.blocking(move |door| {
        let open = door.open(&bucket)?;
        let info = open.head(key.as_bytes(), &Condition::None, now_ms());
        let info = info.map_err(|error| door.refuse(error, &place(&bucket, &key)))?;
        info.ok_or_else(|| s3_error!(NoSuchKey))
    })
    .await
}

fn wants_checksums(mode: Option<&ChecksumMode>) -> bool {
    mode.is_some_and(|mode| mode.as_str() == ChecksumMode::ENABLED)
}

/// The bytes that a range or the number of a part names; none: the whole object is asked for.
fn bytes_of(
    range: Option<dto::Range>,
    part: Option<i32>,
    info: &ObjectInfo,
) -> S3Result<Option<Range<u64>>> {
    match (range, part) {
        (Some(_), Some(_)) => Err(s3_error!(InvalidRequest, "a range and a part are two things")),
        (Some(range), None) => match range.check(info.size_bytes)? {
            // The last bytes of an empty object.
            none if none.is_empty() => Err(s3_error!(InvalidRange)),
            range => Ok(Some(range)),
        },
        (None, Some(part)) => bytes_of_part(part, info),
        (None, None) => Ok(None),
    }
}

/// Objects do not remember where their parts began: one with several is not read by their numbers.
fn bytes_of_part(part: i32, info: &ObjectInfo) -> S3Result<Option<Range<u64>>> {
    let parts = info.etag.parts.unwrap_or(1);
    if !(1..=i32::from(parts)).contains(&part) {
        return Err(no_part(parts));
    }
    match parts {
        1 if info.size_bytes == 0 => Ok(None),
        1 => Ok(Some(0..info.size_bytes)),
        _ => Err(s3_error!(
            NotImplemented,
            "the store does not keep where the {parts} parts of the object begin"
        )),
    }
}

fn described(info: &ObjectInfo, range: Option<&Range<u64>>, checksums: bool) -> GetObjectOutput {
    let said = &info.metadata;
    let length = range.map_or(info.size_bytes, |range| range.end - range.start);
    // A checksum is that of the whole object, so a range is sent without it.
    let texts = match checksums && range.is_none() {
        true => Texts::new(&info.checksums, info.etag.parts),
        false => Texts::default(),
    };
    let tags = said.tags.pairs().len();
    let (user, missing_meta) = metadata::user(said);
    GetObjectOutput {
        accept_ranges: Some("bytes".to_owned()),
        content_length: Some(length as i64),
        content_range: range
            .map(|range| format!("bytes {}-{}/{}", range.start, range.end - 1, info.size_bytes)),
        e_tag: Some(etags::outgoing(&info.etag)),
        last_modified: Some(timestamp(info.created_unix_ms)),
        content_type: metadata::header(said, ContentHeader::Type)
            .or_else(|| Some("binary/octet-stream".to_owned())),
        content_encoding: metadata::header(said, ContentHeader::Encoding),
        content_language: metadata::header(said, ContentHeader::Language),
        content_disposition: metadata::header(said, ContentHeader::Disposition),
        cache_control: metadata::header(said, ContentHeader::CacheControl),
        website_redirect_location: metadata::header(said, ContentHeader::Redirect),
        expires: metadata::expires(said),
        metadata: user,
        missing_meta,
        tag_count: (tags > 0).then_some(tags as i32),
        checksum_crc32: texts.crc32,
        checksum_crc32c: texts.crc32c,
        checksum_crc64nvme: texts.crc64nvme,
        checksum_sha1: texts.sha1,
        checksum_sha256: texts.sha256,
        checksum_type: texts.kind,
        ..GetObjectOutput::default()
    }
}

fn without_body(output: GetObjectOutput) -> HeadObjectOutput {
    HeadObjectOutput {
        accept_ranges: output.accept_ranges,
        content_length: output.content_length,
        content_range: output.content_range,
        e_tag: output.e_tag,
        last_modified: output.last_modified,
        content_type: output.content_type,
        content_encoding: output.content_encoding,
        content_language: output.content_language,
        content_disposition: output.content_disposition,
        cache_control: output.cache_control,
        website_redirect_location: output.website_redirect_location,
        expires: output.expires,
        metadata: output.metadata,
        missing_meta: output.missing_meta,
        parts_count: output.parts_count,
        checksum_crc32: output.checksum_crc32,
        checksum_crc32c: output.checksum_crc32c,
        checksum_crc64nvme: output.checksum_crc64nvme,
        checksum_sha1: output.checksum_sha1,
        checksum_sha256: output.checksum_sha256,
        checksum_type: output.checksum_type,
        ..HeadObjectOutput::default()
    }
}
