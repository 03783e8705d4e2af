//! The checksum that a multi-part upload is begun for: its algorithm, and whether it is that of the
//! whole object or of the checksums of the parts.
//!
//! The upload remembers it (`Checksum::planned`). Each part is given such a one, computed here
//! where its sender gives none, and the completion makes that of the object.

use format::objects::record::metadata::{Checksum, ChecksumAlgorithm};
use s3s::dto::{self, ChecksumType};
use s3s::{S3Result, s3_error};

/// What a request that begins an upload asks for.
///
/// # Errors
/// `InvalidRequest` for a type without an algorithm, or that the algorithm does not have.
pub(crate) fn planned(
    algorithm: Option<&dto::ChecksumAlgorithm>,
    kind: Option<&ChecksumType>,
) -> S3Result<Option<Checksum>> {
    let Some(name) = algorithm else {
        return match kind {
            None => Ok(None),
            Some(_) => Err(s3_error!(
                InvalidRequest,
                "x-amz-checksum-type goes with x-amz-checksum-algorithm"
            )),
        };
    };
    let found = ChecksumAlgorithm::ALL.into_iter().find(|of| name_of(*of) == name.as_str());
    let unknown = || s3_error!(InvalidRequest, "there is no checksum {}", name.as_str());
    let algorithm = found.ok_or_else(unknown)?;
    let can_be_whole = !matches!(algorithm, ChecksumAlgorithm::Sha1 | ChecksumAlgorithm::Sha256);
    let can_be_composite = algorithm != ChecksumAlgorithm::Crc64Nvme;
    let is_composite = match kind.map(ChecksumType::as_str) {
        None => can_be_composite,
        Some(ChecksumType::COMPOSITE) if can_be_composite => true,
        Some(ChecksumType::FULL_OBJECT) if can_be_whole => false,
        Some(other) => {
            let name = name.as_str();
            return Err(s3_error!(InvalidRequest, "{name} has no checksums of type {other}"));
        }
    };
    Ok(Some(Checksum::planned(algorithm, is_composite)))
}

/// What a completion says of the type is what the upload was begun with.
///
/// # Errors
/// `InvalidRequest`.
pub(crate) fn check_kind(planned: Option<&Checksum>, said: Option<&ChecksumType>) -> S3Result<()> {
    let begun = planned.map(kind_of);
    match (begun, said.map(ChecksumType::as_str)) {
        (Some(begun), Some(said)) if begun != said => Err(s3_error!(
            InvalidRequest,
            "the upload was begun for a checksum of type {begun}, not {said}"
        )),
        _ => Ok(()),
    }
}

fn kind_of(checksum: &Checksum) -> &'static str {
    match checksum.is_composite() {
        true => ChecksumType::COMPOSITE,
        false => ChecksumType::FULL_OBJECT,
    }
}

/// As answers have it: algorithm and type.
pub(crate) fn shown(
    planned: Option<&Checksum>,
) -> (Option<dto::ChecksumAlgorithm>, Option<ChecksumType>) {
    let algorithm =
        planned.map(|one| dto::ChecksumAlgorithm::from_static(name_of(one.algorithm())));
    (algorithm, planned.map(|one| ChecksumType::from_static(kind_of(one))))
}

const fn name_of(algorithm: ChecksumAlgorithm) -> &'static str {
    match algorithm {
        ChecksumAlgorithm::Crc32 => dto::ChecksumAlgorithm::CRC32,
        ChecksumAlgorithm::Crc32c => dto::ChecksumAlgorithm::CRC32C,
        ChecksumAlgorithm::Crc64Nvme => dto::ChecksumAlgorithm::CRC64NVME,
        ChecksumAlgorithm::Sha1 => dto::ChecksumAlgorithm::SHA1,
        ChecksumAlgorithm::Sha256 => dto::ChecksumAlgorithm::SHA256,
    }
}

#[cfg(test)]
mod tests {
    use s3s::dto::{ChecksumAlgorithm, ChecksumType};

    use super::{check_kind, planned, shown};

    #[test]
    fn each_algorithm_has_its_types() {
        let plan = |algorithm: &'static str, kind: &'static str| {
            let kind = (!kind.is_empty()).then(|| ChecksumType::from_static(kind));
            let algorithm = ChecksumAlgorithm::from_static(algorithm);
            let found = planned(Some(&algorithm), kind.as_ref()).ok()?;
            let shown = shown(found.as_ref()).1?.as_str().to_owned();
            Some(shown)
        };
        for (algorithm, kind, is) in [
            ("CRC32", "", Some("COMPOSITE")),
            ("CRC32", "FULL_OBJECT", Some("FULL_OBJECT")),
            ("CRC64NVME", "", Some("FULL_OBJECT")),
            ("CRC64NVME", "COMPOSITE", None),
            ("SHA256", "", Some("COMPOSITE")),
            ("SHA256", "FULL_OBJECT", None),
            ("MD5", "", None),
            ("CRC32", "HALF", None),
        ] {
            assert_eq!(plan(algorithm, kind).as_deref(), is, "{algorithm} {kind}");
        }
        let whole = ChecksumType::from_static(ChecksumType::FULL_OBJECT);
        assert!(planned(None, Some(&whole)).is_err());
        let crc = planned(Some(&ChecksumAlgorithm::from_static("CRC32")), None).unwrap();
        assert!(check_kind(crc.as_ref(), Some(&whole)).is_err());
        assert!(check_kind(None, Some(&whole)).is_ok() && check_kind(crc.as_ref(), None).is_ok());
    }
}
