//! Multi-part uploads: beginning, parts, lists and abortion. `complete.rs` has the end.

use ::buckets::BucketsError;
use objects::bucket::{
    CopyPartOptions, FinishOptions, PartOptions, UploadId, UploadInfo, UploadOptions,
    UploadsListing,
};
use s3s::dto::{
    AbortMultipartUploadInput, CommonPrefix, CopyPartResult, CreateMultipartUploadInput,
    CreateMultipartUploadOutput, ListMultipartUploadsInput, ListMultipartUploadsOutput,
    ListPartsInput, ListPartsOutput, MultipartUpload, Part, UploadPartCopyInput,
    UploadPartCopyOutput, UploadPartInput, UploadPartOutput,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};

use crate::checksums::{Expected, Texts};
use crate::copy::{self, Source};
use crate::door::{DURABLE, Door, now_ms, place, timestamp};
use crate::etags;
use crate::listing::{is_url, limit_of, name_out};
use crate::metadata::Said;
use crate::planned;
use crate::put::check_length;
use crate::received::Sent;

/// Begins an upload.
pub(crate) async fn begin(
    door: &Door,
    input: CreateMultipartUploadInput,
) -> S3Result<CreateMultipartUploadOutput> {
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
    let metadata = said.metadata()?;
    let checksum =
        planned::planned(input.checksum_algorithm.as_ref(), input.checksum_type.as_ref())?;
    let (checksum_algorithm, checksum_type) = planned::shown(checksum.as_ref());
    let options =
        UploadOptions { metadata, checksum, durability: DURABLE, ..UploadOptions::new(now_ms()) };
    let (bucket, key) = (input.bucket, input.key);
    door.blocking(move |door| {
        let open = door.open_for_changes(&bucket)?;
        let begun = open.begin_upload(key.as_bytes(), options);
        let upload = begun.map_err(|error| door.refuse(error, &place(&bucket, &key)))?;
        Ok(CreateMultipartUploadOutput {
            bucket: Some(bucket),
            key: Some(key),
            upload_id: Some(name_of(upload)),
            checksum_algorithm,
            checksum_type,
            ..CreateMultipartUploadOutput::default()
        })
    })
    .await
}

/// Puts a part.
pub(crate) async fn put_part(
    door: &Door,
    request: S3Request<UploadPartInput>,
) -> S3Result<S3Response<UploadPartOutput>> {
    let mut expected = Expected::from_headers(&request.headers)?;
    let input = request.input;
    check_length(input.content_length)?;
    let sent =
        Sent { body: input.body, length: input.content_length, trailing: request.trailing_headers };
    let (upload, number) = (parse(&input.upload_id)?, number(input.part_number)?);
    let (bucket, key) = (input.bucket, input.key);
    door.receiving(sent, move |door, received| {
        let refuse = |error: BucketsError| door.refuse(error, &place(&bucket, &key));
        let open = door.open_for_changes(&bucket)?;
        let begun = open.head_upload(key.as_bytes(), upload);
        expected.plan(begun.map_err(|error| refuse(error.into()))?.checksums.first())?;
        let writer = open.put_part(key.as_bytes(), upload, number, part_options());
        let mut writer = writer.map_err(|error| refuse(error.into()))?;
        let write = |bytes: &[u8]| writer.write(bytes).map_err(|error| refuse(error.into()));
        let (md5, checksums) = received.verified(expected, write)?;
        let texts = Texts::new(&checksums, None);
        let put = writer.finish(FinishOptions { md5, checksums });
        let put = put.map_err(|error| refuse(error.into()))?;
        Ok(S3Response::new(UploadPartOutput {
            e_tag: Some(etags::outgoing(&put.etag)),
            checksum_crc32: texts.crc32,
            checksum_crc32c: texts.crc32c,
            checksum_crc64nvme: texts.crc64nvme,
            checksum_sha1: texts.sha1,
            checksum_sha256: texts.sha256,
            ..UploadPartOutput::default()
        }))
    })
    .await
}

/// Copies a part from an object.
pub(crate) async fn copy_part(
    door: &Door,
    request: S3Request<UploadPartCopyInput>,
) -> S3Result<UploadPartCopyOutput> {
    let account = door.account(request.credentials.as_ref())?;
    let input = request.input;
    let source = Source::new(&account, &input.copy_source)?;
    let condition = copy::source_condition(
        input.copy_source_if_match,
        input.copy_source_if_none_match,
        input.copy_source_if_modified_since,
        input.copy_source_if_unmodified_since,
    );
    let range = input.copy_source_range.as_deref().map(copy::parse_range).transpose()?;
    let (upload, number) = (parse(&input.upload_id)?, number(input.part_number)?);
    let (bucket, key) = (input.bucket, input.key);
    door.blocking(move |door| {
        let open = door.open_for_changes(&bucket)?;
        let options =
            CopyPartOptions { source_condition: condition, range, md5: None, part: part_options() };
        let part = (key.as_str(), upload, number);
        let (put, checksums) = copy::part(door, &open, &source, part, options)?;
        let texts = Texts::new(&checksums, None);
        let result = CopyPartResult {
            e_tag: Some(etags::outgoing(&put.etag)),
            last_modified: Some(timestamp(now_ms())),
            checksum_crc32: texts.crc32,
            checksum_crc32c: texts.crc32c,
            checksum_crc64nvme: texts.crc64nvme,
            checksum_sha1: texts.sha1,
            checksum_sha256: texts.sha256,
        };
        let copy_part_result = Some(result);
        Ok(UploadPartCopyOutput { copy_part_result, ..UploadPartCopyOutput::default() })
    })
    .await
}

/// Aborts an upload.
pub(crate) async fn abort(door: &Door, input: AbortMultipartUploadInput) -> S3Result<()> {
    let upload = parse(&input.upload_id)?;
    let (bucket, key) = (input.bucket, input.key);
    door.blocking(move |door| {
        let open = door.open_for_changes(&bucket)?;
        let aborted = open.abort(key.as_bytes(), upload, DURABLE);
        aborted.map_err(|error| door.refuse(error, &place(&bucket, &key)))
    })
    .await
}

/// The parts of an upload.
pub(crate) async fn list_parts(door: &Door, input: ListPartsInput) -> S3Result<ListPartsOutput> {
    let upload = parse(&input.upload_id)?;
    let limit = limit_of(input.max_parts)?;
    let after = input.part_number_marker.unwrap_or(0);
    let after =
        u16::try_from(after).map_err(|_| s3_error!(InvalidArgument, "part-number-marker"))?;
    let (bucket, key, upload_id) = (input.bucket, input.key, input.upload_id);
    door.blocking(move |door| {
        let refuse = |error| door.refuse(error, &place(&bucket, &key));
        let open = door.open(&bucket)?;
        let begun = open.head_upload(key.as_bytes(), upload).map_err(refuse)?;
        let (checksum_algorithm, checksum_type) = planned::shown(begun.checksums.first());
        let listed = open.list_parts(key.as_bytes(), upload, after, limit + 1);
        let mut listed = listed.map_err(refuse)?;
        let is_cut = listed.len() > limit;
        listed.truncate(limit);
        let next = listed.last().map(|part| i32::from(part.number));
        let parts = listed.into_iter().map(|part| {
            let texts = Texts::new(&part.checksums, None);
            Part {
                part_number: Some(i32::from(part.number)),
                e_tag: Some(etags::outgoing(&part.etag)),
                size: Some(part.size_bytes as i64),
                last_modified: Some(timestamp(part.created_unix_ms)),
                checksum_crc32: texts.crc32,
                checksum_crc32c: texts.crc32c,
                checksum_crc64nvme: texts.crc64nvme,
                checksum_sha1: texts.sha1,
                checksum_sha256: texts.sha256,
            }
        });
        Ok(ListPartsOutput {
            parts: Some(parts.collect()),
            bucket: Some(bucket),
            key: Some(key),
            upload_id: Some(upload_id),
            is_truncated: Some(is_cut),
            max_parts: Some(limit as i32),
            part_number_marker: Some(i32::from(after)),
            next_part_number_marker: next,
            checksum_algorithm,
            checksum_type,
            ..ListPartsOutput::default()
        })
    })
    .await
}

/// The uploads of a bucket that nobody has finished.
pub(crate) async fn list(
    door: &Door,
    input: ListMultipartUploadsInput,
) -> S3Result<ListMultipartUploadsOutput> {
    let limit = limit_of(input.max_uploads)?;
    let is_url = is_url(input.encoding_type.as_ref())?;
    let marker = input.key_marker.clone().filter(|key| !key.is_empty());
    // Without the number of an upload, the listing goes on behind all those of the key.
    let upload = match input.upload_id_marker.as_deref().filter(|id| !id.is_empty()) {
        Some(id) => parse(id)?,
        None => UploadId(u64::MAX),
    };
    door.blocking(move |door| {
        let open = door.open(&input.bucket)?;
        let after = marker.as_ref().map(|key| (key.as_bytes(), upload));
        let prefix = input.prefix.clone().unwrap_or_default();
        let delimiter = input.delimiter.clone().unwrap_or_default();
        let (prefix, delimiter) = (prefix.as_bytes(), delimiter.as_bytes());
        let listed = open.list_uploads(prefix, delimiter, after, limit);
        let listed = listed.map_err(|error| door.refuse(error, &input.bucket))?;
        let (next_key_marker, next_upload_id_marker) = markers_behind(&listed, is_url);
        let uploads = listed.uploads.iter().map(|one| shown(one, is_url));
        let prefixes = listed.prefixes.iter().map(|prefix| name_out(prefix, is_url));
        let common_prefixes = prefixes.map(|prefix| CommonPrefix { prefix: Some(prefix) });
        let named = |text: Option<String>| text.map(|text| name_out(text.as_bytes(), is_url));
        Ok(ListMultipartUploadsOutput {
            uploads: Some(uploads.collect()),
            common_prefixes: Some(common_prefixes.collect()),
            is_truncated: Some(listed.is_cut),
            next_key_marker,
            next_upload_id_marker,
            bucket: Some(input.bucket),
            prefix: named(input.prefix),
            delimiter: named(input.delimiter),
            key_marker: named(input.key_marker),
            upload_id_marker: input.upload_id_marker,
            max_uploads: Some(limit as i32),
            encoding_type: input.encoding_type,
            ..ListMultipartUploadsOutput::default()
        })
    })
    .await
}

fn shown(upload: &UploadInfo, is_url: bool) -> MultipartUpload {
    let (checksum_algorithm, checksum_type) = planned::shown(upload.info.checksums.first());
    MultipartUpload {
        key: Some(name_out(&upload.key, is_url)),
        upload_id: Some(name_of(upload.upload)),
        initiated: Some(timestamp(upload.info.created_unix_ms)),
        checksum_algorithm,
        checksum_type,
        ..MultipartUpload::default()
    }
}

/// Where the next listing goes on, if there is more: behind an upload, or behind a common prefix,
/// which has no upload.
fn markers_behind(listed: &UploadsListing, is_url: bool) -> (Option<String>, Option<String>) {
    let upload = listed.uploads.last();
    let prefix = listed.prefixes.last();
    match (upload, prefix) {
        _ if !listed.is_cut => (None, None),
        (Some(upload), prefix) if prefix.is_none_or(|prefix| *prefix < upload.key) => {
            (Some(name_out(&upload.key, is_url)), Some(name_of(upload.upload)))
        }
        (_, prefix) => (prefix.map(|prefix| name_out(prefix, is_url)), None),
    }
}

fn part_options() -> PartOptions {
    PartOptions { durability: DURABLE, now_ms: now_ms() }
}

/// Uploads are named by their numbers.
pub(crate) fn name_of(upload: UploadId) -> String {
    format!("{:016x}", upload.0)
}

/// # Errors
/// `NoSuchUpload`.
pub(crate) fn parse(upload: &str) -> S3Result<UploadId> {
    let number = u64::from_str_radix(upload, 16).ok().filter(|_| upload.len() == 16);
    number.map(UploadId).ok_or_else(|| s3_error!(NoSuchUpload))
}

/// # Errors
/// `InvalidArgument`.
pub(crate) fn number(part: i32) -> S3Result<u16> {
    u16::try_from(part).map_err(|_| s3_error!(InvalidArgument, "{part} is no number of a part"))
}
