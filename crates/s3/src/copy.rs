//! CopyObject, and parts that are copied.
//!
//! Inside a bucket no bytes move, nor between buckets of one domain where an object is long: the
//! volume maps the chunks of the other. Else bytes are read and written again, and deduplicate. The
//! source is the object as it was when the copy began.

use std::ops::Range;

use ::buckets::{BucketsError, OpenBucket};
use accounts::Account;
use format::objects::record::metadata::{Checksum, Tags};
use objects::bucket::{
    Condition, CopiedMetadata, CopyOptions, CopyPartOptions, FinishOptions, Metadata, ObjectInfo,
    PartWriter, Put, PutOptions, Reader, UploadId,
};
use s3s::dto::{
    CopyObjectInput, CopyObjectOutput, CopyObjectResult, CopySource, ETagCondition,
    MetadataDirective, TaggingDirective, Timestamp,
};
use s3s::{S3Error, S3Request, S3Result, s3_error};

use crate::auth::denied;
use crate::checksums::{Expected, Hashes, Texts};
use crate::conditions::Conditions;
use crate::door::{DURABLE, Door, now_ms, place, timestamp};
use crate::etags;
use crate::metadata::Said;

/// Bytes that are read and written at a time.
const PIECE_BYTES: u64 = 1 << 20;
/// The object that is copied.
pub(crate) struct Source {
    bucket: String,
    key: String,
}

impl Source {
    /// # Errors
    /// `AccessDenied` when the account may not read it; `NotImplemented`.
    pub(crate) fn new(account: &Account, source: &CopySource) -> S3Result<Self> {
        let CopySource::Bucket { bucket, key, version_id } = source else {
            return Err(s3_error!(NotImplemented, "the source of a copy is BUCKET/KEY"));
        };
        if version_id.as_deref().is_some_and(|version| version != "null") {
            return Err(s3_error!(NotImplemented, "objects have no versions"));
        }
        match account.may_read(bucket) {
            true => Ok(Self { bucket: bucket.to_string(), key: key.to_string() }),
            false => Err(denied(bucket)),
        }
    }

    fn place(&self) -> String {
        place(&self.bucket, &self.key)
    }

    /// The object, which must meet the condition.
    fn open(&self, door: &Door, condition: &Condition) -> S3Result<(OpenBucket, Reader)> {
        let open = door.open(&self.bucket)?;
        let reader = open.get(self.key.as_bytes(), condition, now_ms());
        let reader = reader.map_err(|error| door.refuse(error, &self.place()))?;
        Ok((open, reader.ok_or_else(|| s3_error!(NoSuchKey))?))
    }
}

/// What the source of a copy must be like.
pub(crate) fn source_condition(
    if_match: Option<ETagCondition>,
    if_none_match: Option<ETagCondition>,
    if_modified_since: Option<Timestamp>,
    if_unmodified_since: Option<Timestamp>,
) -> Condition {
    Conditions { if_match, if_none_match, if_modified_since, if_unmodified_since }.condition()
}

/// What a copy takes over.
struct Taken {
    /// None: what the source says.
    said: Option<Metadata>,
    /// None: those of the source.
    tags: Option<Tags>,
}

impl Taken {
    fn metadata(&self, source: &ObjectInfo) -> Metadata {
        let said = self.said.as_ref().unwrap_or(&source.metadata).clone();
        Metadata { tags: self.tags.as_ref().unwrap_or(&source.metadata.tags).clone(), ..said }
    }
}

/// Copies an object.
pub(crate) async fn copy(
    door: &Door,
    request: S3Request<CopyObjectInput>,
) -> S3Result<CopyObjectOutput> {
    let account = door.account(request.credentials.as_ref())?;
    // s3s has no such fields: they are conditions on what the copy replaces.
    let of_copy = |name: &str| {
        let value = request.headers.get(name)?;
        Some(ETagCondition::parse_http_header(value.as_bytes()))
    };
    let read = |name| of_copy(name).transpose().map_err(|_| s3_error!(InvalidArgument, "{name}"));
    let condition = Conditions::of_write(read("if-match")?, read("if-none-match")?).condition();
    let input = request.input;
    let source = Source::new(&account, &input.copy_source)?;
    let source_condition = source_condition(
        input.copy_source_if_match.clone(),
        input.copy_source_if_none_match.clone(),
        input.copy_source_if_modified_since.clone(),
        input.copy_source_if_unmodified_since.clone(),
    );
    let (bucket, key) = (input.bucket.clone(), input.key.clone());
    let taken = taken(input, source.bucket == bucket && source.key == key)?;
    door.blocking(move |door| {
        let open = door.open_for_changes(&bucket)?;
        let (from, mut reader) = source.open(door, &source_condition)?;
        let info = reader.info().clone();
        let metadata = taken.metadata(&info);
        let refuse = |error: BucketsError| door.refuse(error, &place(&bucket, &key));
        let now_ms = now_ms();
        let put = if source.bucket == bucket {
            drop(reader);
            let expires_unix_ms = info.expires_unix_ms;
            let options = CopyOptions {
                // What was looked at is what is copied.
                source_condition: Condition::Version(info.version),
                condition,
                metadata: CopiedMetadata::Replace { metadata, expires_unix_ms },
                durability: DURABLE,
                ..CopyOptions::new(now_ms)
            };
            let copied = open.copy(source.key.as_bytes(), key.as_bytes(), options);
            copied.map_err(|error| refuse(error.into()))?
        } else {
            let options = PutOptions {
                metadata,
                expires_unix_ms: info.expires_unix_ms,
                condition,
                durability: DURABLE,
                ..PutOptions::new(now_ms)
            };
            let mapped = open.map_object(&from, &mut reader, key.as_bytes(), options.clone());
            match mapped.map_err(refuse)? {
                Some(put) => put,
                None => written(door, &open, &source, &mut reader, (&key, options))?,
            }
        };
        Ok(output(&info, &put, now_ms))
    })
    .await
}

/// Copies an object from another bucket by writing its bytes, to a key with these options.
fn written(
    door: &Door,
    open: &OpenBucket,
    source: &Source,
    reader: &mut Reader,
    (key, options): (&str, PutOptions),
) -> S3Result<Put> {
    let refuse = |error: BucketsError| door.refuse(error, &place(open.name(), key));
    let info = reader.info().clone();
    let writer = open.put(key.as_bytes(), options);
    let mut writer = writer.map_err(|error| refuse(error.into()))?;
    let hashes = Expected::default().hashes();
    let (md5, _) = pump(door, source, reader, 0..info.size_bytes, hashes, |bytes| {
        writer.write(bytes).map_err(|error| refuse(error.into()))
    })?;
    let checksums = info.checksums.iter().filter(|one| !one.is_composite()).copied();
    let finish = FinishOptions { md5, checksums: checksums.collect() };
    writer.finish(finish).map_err(|error| refuse(error.into()))
}

fn taken(input: CopyObjectInput, is_itself: bool) -> S3Result<Taken> {
    let replaces = input
        .metadata_directive
        .as_ref()
        .is_some_and(|directive| directive.as_str() == MetadataDirective::REPLACE);
    let replaces_tags = input
        .tagging_directive
        .as_ref()
        .is_some_and(|directive| directive.as_str() == TaggingDirective::REPLACE);
    if is_itself && !replaces && !replaces_tags {
        return Err(s3_error!(
            InvalidRequest,
            "an object is copied to itself only with other metadata or tags"
        ));
    }
    let said = Said {
        content_type: input.content_type,
        content_encoding: input.content_encoding,
        content_language: input.content_language,
        content_disposition: input.content_disposition,
        cache_control: input.cache_control,
        expires: input.expires,
        redirect: input.website_redirect_location,
        user: input.metadata,
        tagging: input.tagging,
    };
    let said = said.metadata()?;
    let tags = replaces_tags.then(|| said.tags.clone());
    Ok(Taken { said: replaces.then_some(said), tags })
}

fn output(source: &ObjectInfo, put: &Put, now_ms: u64) -> CopyObjectOutput {
    let is_same = put.etag == source.etag;
    let texts = match is_same {
        true => Texts::new(&source.checksums, put.etag.parts),
        false => Texts::default(),
    };
    let result = CopyObjectResult {
        e_tag: Some(etags::outgoing(&put.etag)),
        last_modified: Some(timestamp(now_ms)),
        checksum_crc32: texts.crc32,
        checksum_crc32c: texts.crc32c,
        checksum_crc64nvme: texts.crc64nvme,
        checksum_sha1: texts.sha1,
        checksum_sha256: texts.sha256,
        checksum_type: texts.kind,
    };
    CopyObjectOutput { copy_object_result: Some(result), ..CopyObjectOutput::default() }
}

/// Copies a part: its key, upload and number. Inside a bucket no bytes move, but for an upload that
/// was begun for a checksum: they are read, to compute it.
pub(crate) fn part(
    door: &Door,
    open: &OpenBucket,
    source: &Source,
    (key, upload, number): (&str, UploadId, u16),
    options: CopyPartOptions,
) -> S3Result<(Put, Vec<Checksum>)> {
    let refuse = |error: BucketsError| door.refuse(error, &place(open.name(), key));
    let begun = open.head_upload(key.as_bytes(), upload);
    let begun = begun.map_err(|error| refuse(error.into()))?;
    let planned = begun.checksums.first();
    if source.bucket == open.name() && planned.is_none() {
        let copied = open.copy_part(source.key.as_bytes(), key.as_bytes(), upload, number, options);
        return copied.map(|put| (put, Vec::new())).map_err(|error| refuse(error.into()));
    }
    let (from, mut reader) = source.open(door, &options.source_condition)?;
    let size_bytes = reader.info().size_bytes;
    let range = options.range.unwrap_or(0..size_bytes);
    if range.end > size_bytes {
        return Err(s3_error!(InvalidRange, "the source has {size_bytes} bytes"));
    }
    let begin = || -> Result<PartWriter, BucketsError> {
        Ok(open.put_part(key.as_bytes(), upload, number, options.part)?)
    };
    if planned.is_none() {
        let mapped = open.map_part(&from, &mut reader, range.clone(), begin);
        if let Some(put) = mapped.map_err(refuse)? {
            return Ok((put, Vec::new()));
        }
    }
    let mut writer = begin().map_err(refuse)?;
    let mut expected = Expected::default();
    expected.plan(planned)?;
    let hashes = expected.hashes();
    let (md5, checksums) = pump(door, source, &mut reader, range, hashes, |bytes| {
        writer.write(bytes).map_err(|error| refuse(error.into()))
    })?;
    let put = writer.finish(FinishOptions { md5, checksums: checksums.clone() });
    put.map(|put| (put, checksums)).map_err(|error| refuse(error.into()))
}

/// Hands bytes of the source on; returns their MD5, and checksums.
fn pump(
    door: &Door,
    source: &Source,
    reader: &mut Reader,
    mut range: Range<u64>,
    mut hashes: Hashes,
    mut write: impl FnMut(&[u8]) -> Result<(), S3Error>,
) -> S3Result<([u8; 16], Vec<Checksum>)> {
    let mut piece = vec![0; PIECE_BYTES.min(range.end - range.start) as usize];
    while !range.is_empty() {
        let length = PIECE_BYTES.min(range.end - range.start);
        let bytes = &mut piece[..length as usize];
        let found = reader.read_at(range.start, bytes);
        let found = found.map_err(|error| door.refuse(error, &source.place()))?;
        assert!(found as u64 == length, "an object knows how long it is");
        hashes.update(bytes);
        write(bytes)?;
        range.start += length;
    }
    hashes.verify(None)
}

/// A range of a source, which has both ends: `bytes=0-9`.
pub(crate) fn parse_range(text: &str) -> S3Result<Range<u64>> {
    let ends = text.strip_prefix("bytes=").and_then(|ends| ends.split_once('-'));
    let numbers = ends.and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    match numbers {
        Some((first, last)) if first <= last && last < u64::MAX => Ok(first..last + 1),
        _ => Err(s3_error!(InvalidArgument, "x-amz-copy-source-range is bytes=FIRST-LAST")),
    }
}
