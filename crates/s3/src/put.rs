//! PutObject: the body is hashed and written as it comes, verified, and then takes its place.

use ::buckets::BucketsError;
use objects::bucket::{FinishOptions, PutOptions};
use s3s::dto::{PutObjectInput, PutObjectOutput};
use s3s::{S3Request, S3Response, S3Result, s3_error};

use crate::checksums::{Expected, Texts};
use crate::conditions::Conditions;
use crate::door::{DURABLE, Door, now_ms, place};
use crate::etags;
use crate::metadata::Said;
use crate::received::Sent;

/// Bytes of an object.
const OBJECT_BYTES_MAX: i64 = 5 << 40;

/// # Errors
/// `EntityTooLarge`, before anything of the body is read.
pub(crate) fn check_length(announced: Option<i64>) -> S3Result<()> {
    match announced.is_some_and(|bytes| bytes > OBJECT_BYTES_MAX) {
        true => Err(s3_error!(EntityTooLarge, "an object has at most 5 TiB")),
        false => Ok(()),
    }
}

/// Puts an object.
pub(crate) async fn put(
    door: &Door,
    request: S3Request<PutObjectInput>,
) -> S3Result<S3Response<PutObjectOutput>> {
    let expected = Expected::from_headers(&request.headers)?;
    let input = request.input;
    check_length(input.content_length)?;
    let sent =
        Sent { body: input.body, length: input.content_length, trailing: request.trailing_headers };
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
    let options = PutOptions {
        metadata: said.metadata()?,
        condition: Conditions::of_write(input.if_match, input.if_none_match).condition(),
        durability: DURABLE,
        ..PutOptions::new(now_ms())
    };
    let (bucket, key) = (input.bucket, input.key);
    door.receiving(sent, move |door, received| {
        let refuse = |error: BucketsError| door.refuse(error, &place(&bucket, &key));
        let open = door.open_for_changes(&bucket)?;
        let writer = open.put(key.as_bytes(), options);
        let mut writer = writer.map_err(|error| refuse(error.into()))?;
        let write = |bytes: &[u8]| writer.write(bytes).map_err(|error| refuse(error.into()));
        let (md5, checksums) = received.verified(expected, write)?;
        let texts = Texts::new(&checksums, None);
        let put = writer.finish(FinishOptions { md5, checksums });
        let put = put.map_err(|error| refuse(error.into()))?;
        Ok(S3Response::new(PutObjectOutput {
            e_tag: Some(etags::outgoing(&put.etag)),
            checksum_crc32: texts.crc32,
            checksum_crc32c: texts.crc32c,
            checksum_crc64nvme: texts.crc64nvme,
            checksum_sha1: texts.sha1,
            checksum_sha256: texts.sha256,
            checksum_type: texts.kind,
            ..PutObjectOutput::default()
        }))
    })
    .await
}
