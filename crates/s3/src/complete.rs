//! CompleteMultipartUpload: parts become an object without moving bytes.
//!
//! The checksum of the object is made of those that its parts have: where all have one of the same
//! algorithm, it is the checksum of their checksums, or for `FULL_OBJECT` (and CRC-64 always) that
//! of the whole. One that the request gives must be it. An upload that was begun for a checksum has
//! that and no other.

use format::objects::record::ETag;
use format::objects::record::metadata::{Checksum, ChecksumAlgorithm};
use md5::{Digest, Md5};
use objects::bucket::{CompleteOptions, PartInfo};
use s3s::dto::{
    ChecksumType, CompleteMultipartUploadInput, CompleteMultipartUploadOutput, CompletedPart,
};
use s3s::{S3Result, s3_error};

use crate::checksums::{self, Texts};
use crate::conditions::Conditions;
use crate::door::{DURABLE, Door, now_ms, place};
use crate::{etags, planned, uploads};

/// All parts but the last have at least as many bytes.
const PART_BYTES_MIN: u64 = 5 << 20;
/// Parts of an upload.
const PARTS_MAX: usize = 10_000;

/// Ends an upload.
pub(crate) async fn complete(
    door: &Door,
    mut input: CompleteMultipartUploadInput,
) -> S3Result<CompleteMultipartUploadOutput> {
    let upload = uploads::parse(&input.upload_id)?;
    let named = input.multipart_upload.take().and_then(|named| named.parts).unwrap_or_default();
    let parts = named.iter().map(named_part).collect::<S3Result<Vec<(u16, ETag)>>>()?;
    let condition = Conditions::of_write(input.if_match.take(), input.if_none_match.take());
    door.blocking(move |door| {
        let refuse = |error| door.refuse(error, &place(&input.bucket, &input.key));
        let open = door.open_for_changes(&input.bucket)?;
        let key = input.key.as_bytes();
        let stored = open.list_parts(key, upload, 0, PARTS_MAX).map_err(refuse)?;
        let chosen = chosen(&parts, &stored)?;
        check_sizes(&chosen, input.mpu_object_size)?;
        check_part_checksums(&named, &chosen)?;
        let begun = open.head_upload(key, upload).map_err(refuse)?;
        let planned = begun.checksums.first();
        planned::check_kind(planned, input.checksum_type.as_ref())?;
        let made = checksum_of(&input, planned, &chosen)?;
        let mut md5 = Md5::new();
        chosen.iter().for_each(|part| md5.update(part.etag.md5));
        let options = CompleteOptions {
            condition: condition.condition(),
            md5: md5.finalize().into(),
            checksums: made.into_iter().collect(),
            durability: DURABLE,
            now_ms: now_ms(),
        };
        let put = open.complete(key, upload, &parts, options).map_err(refuse)?;
        let texts = Texts::new(made.as_slice(), put.etag.parts);
        Ok(CompleteMultipartUploadOutput {
            location: Some(format!("/{}/{}", input.bucket, input.key)),
            e_tag: Some(etags::outgoing(&put.etag)),
            bucket: Some(input.bucket),
            key: Some(input.key),
            checksum_crc32: texts.crc32,
            checksum_crc32c: texts.crc32c,
            checksum_crc64nvme: texts.crc64nvme,
            checksum_sha1: texts.sha1,
            checksum_sha256: texts.sha256,
            checksum_type: texts.kind,
            ..CompleteMultipartUploadOutput::default()
        })
    })
    .await
}

fn named_part(part: &CompletedPart) -> S3Result<(u16, ETag)> {
    let number = part.part_number.ok_or_else(|| s3_error!(MalformedXML))?;
    let etag = part.e_tag.as_ref().and_then(|etag| etags::parse(etag.value()));
    Ok((uploads::number(number)?, etag.ok_or_else(|| s3_error!(InvalidPart))?))
}

/// The stored parts that a completion names.
fn chosen<'a>(named: &[(u16, ETag)], stored: &'a [PartInfo]) -> S3Result<Vec<&'a PartInfo>> {
    if named.is_empty() {
        return Err(s3_error!(MalformedXML, "a completion names at least one part"));
    }
    if !named.is_sorted_by(|one, next| one.0 < next.0) {
        return Err(s3_error!(InvalidPartOrder));
    }
    let find = |(number, etag): &(u16, ETag)| {
        let at = stored.binary_search_by_key(number, |part| part.number).ok();
        let part = at.map(|at| &stored[at]).filter(|part| part.etag == *etag);
        part.ok_or_else(|| s3_error!(InvalidPart, "there is no part {number} of this ETag"))
    };
    named.iter().map(find).collect()
}

fn check_sizes(chosen: &[&PartInfo], announced: Option<i64>) -> S3Result<()> {
    let is_short = |part: &&PartInfo| part.size_bytes < PART_BYTES_MIN;
    if let Some(part) =
        chosen.split_last().and_then(|(_, all)| all.iter().find(|part| is_short(part)))
    {
        let (number, bytes) = (part.number, part.size_bytes);
        return Err(s3_error!(EntityTooSmall, "part {number} has {bytes} bytes, less than 5 MiB"));
    }
    let size_bytes: u64 = chosen.iter().map(|part| part.size_bytes).sum();
    match announced.is_none_or(|bytes| u64::try_from(bytes) == Ok(size_bytes)) {
        true => Ok(()),
        false => Err(s3_error!(InvalidRequest, "the parts have {size_bytes} bytes together")),
    }
}

/// Checksums that the completion gives for its parts are those that were stored with them.
fn check_part_checksums(named: &[CompletedPart], chosen: &[&PartInfo]) -> S3Result<()> {
    for (named, part) in named.iter().zip(chosen) {
        for (algorithm, text) in [
            (ChecksumAlgorithm::Crc32, &named.checksum_crc32),
            (ChecksumAlgorithm::Crc32c, &named.checksum_crc32c),
            (ChecksumAlgorithm::Crc64Nvme, &named.checksum_crc64nvme),
            (ChecksumAlgorithm::Sha1, &named.checksum_sha1),
            (ChecksumAlgorithm::Sha256, &named.checksum_sha256),
        ] {
            let Some(text) = text else { continue };
            let given = checksums::parse(algorithm, text)?;
            if !part.checksums.contains(&given) {
                let number = part.number;
                return Err(s3_error!(InvalidPart, "part {number} does not have this checksum"));
            }
        }
    }
    Ok(())
}

/// The checksum of the object, if its parts have some.
fn checksum_of(
    input: &CompleteMultipartUploadInput,
    planned: Option<&Checksum>,
    chosen: &[&PartInfo],
) -> S3Result<Option<Checksum>> {
    let given = [
        (ChecksumAlgorithm::Crc32, &input.checksum_crc32),
        (ChecksumAlgorithm::Crc32c, &input.checksum_crc32c),
        (ChecksumAlgorithm::Crc64Nvme, &input.checksum_crc64nvme),
        (ChecksumAlgorithm::Sha1, &input.checksum_sha1),
        (ChecksumAlgorithm::Sha256, &input.checksum_sha256),
    ];
    let given = given.into_iter().find_map(|(of, text)| text.as_ref().map(|text| (of, text)));
    let asks_whole = match planned {
        Some(planned) => !planned.is_composite(),
        None => {
            let kind = input.checksum_type.as_ref();
            kind.is_some_and(|kind| kind.as_str() == ChecksumType::FULL_OBJECT)
        }
    };
    let asked = given.map(|(algorithm, _)| algorithm).or(planned.map(Checksum::algorithm));
    if let Some(planned) = planned.filter(|planned| asked != Some(planned.algorithm())) {
        let begun = planned.algorithm();
        return Err(s3_error!(InvalidRequest, "the upload was begun for a checksum {begun:?}"));
    }
    let of_all = |algorithm: ChecksumAlgorithm| -> Option<Vec<(Checksum, u64)>> {
        let of_part = |part: &&PartInfo| {
            let found = part.checksums.iter().find(|found| found.algorithm() == algorithm);
            found.map(|found| (*found, part.size_bytes))
        };
        chosen.iter().map(of_part).collect()
    };
    let found = match asked {
        Some(algorithm) => of_all(algorithm).map(|parts| (algorithm, parts)),
        None => ChecksumAlgorithm::ALL
            .into_iter()
            .find_map(|algorithm| of_all(algorithm).map(|parts| (algorithm, parts))),
    };
    let Some((algorithm, parts)) = found else {
        return match asked {
            Some(_) => Err(s3_error!(InvalidRequest, "not all parts have this checksum")),
            None => Ok(None),
        };
    };
    let is_whole = asks_whole || algorithm == ChecksumAlgorithm::Crc64Nvme;
    let made = match is_whole {
        true => checksums::combined(algorithm, &parts),
        false => checksums::composite(algorithm, &parts),
    };
    let made = made.ok_or_else(|| s3_error!(InvalidRequest, "no FULL_OBJECT of this algorithm"))?;
    if let Some((_, text)) = given {
        let text = text.split_once('-').map_or(text.as_str(), |(digest, _)| digest);
        if checksums::parse(algorithm, text)?.digest() != made.digest() {
            return Err(s3_error!(BadDigest, "the object does not have this checksum"));
        }
    }
    Ok(Some(made))
}
