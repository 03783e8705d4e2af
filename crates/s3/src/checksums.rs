//! Checksums that senders give, in headers or behind the body, and what the body comes to.
//!
//! ```text
//! headers ─> Expected ─> Hashes, fed with the body ─> verify(trailers) ─> MD5, checksums to store
//! ```
//!
//! Only what was announced is computed, and the MD5, which is the ETag.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crc_fast::CrcAlgorithm;
use format::objects::record::metadata::{Checksum, ChecksumAlgorithm};
use hyper::HeaderMap;
use md5::{Digest, Md5};
use s3s::dto::ChecksumType;
use s3s::{S3Result, s3_error};

/// What a sender says of its body.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    md5: Option<[u8; 16]>,
    given: Vec<Checksum>,
    in_trailer: Vec<ChecksumAlgorithm>,
    /// Computed though the sender does not give it.
    planned: Option<ChecksumAlgorithm>,
}

impl Expected {
    /// # Errors
    /// `InvalidDigest`, `InvalidRequest`: a header cannot be read, or there is none of an algorithm
    /// that was announced.
    pub(crate) fn from_headers(headers: &HeaderMap) -> S3Result<Self> {
        let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let mut expected = Self::default();
        if let Some(md5) = text("content-md5") {
            let bytes = STANDARD.decode(md5).ok().and_then(|bytes| bytes.try_into().ok());
            expected.md5 = Some(bytes.ok_or_else(|| s3_error!(InvalidDigest))?);
        }
        for algorithm in ChecksumAlgorithm::ALL {
            if let Some(value) = text(header_name(algorithm)) {
                expected.given.push(parse(algorithm, value)?);
            }
        }
        let trailers = headers.get_all("x-amz-trailer").into_iter();
        for name in trailers.filter_map(|value| value.to_str().ok()).flat_map(|all| all.split(','))
        {
            let name = name.trim().to_ascii_lowercase();
            let found = ChecksumAlgorithm::ALL.into_iter().find(|of| header_name(*of) == name);
            expected.in_trailer.extend(found);
        }
        let is_announced = text("x-amz-sdk-checksum-algorithm").is_some();
        if is_announced && expected.given.is_empty() && expected.in_trailer.is_empty() {
            return Err(s3_error!(
                InvalidRequest,
                "x-amz-sdk-checksum-algorithm names a checksum that is in no header and no trailer"
            ));
        }
        Ok(expected)
    }

    /// Has the checksum computed that an upload was begun with.
    ///
    /// # Errors
    /// `InvalidRequest` when the sender gives others.
    pub(crate) fn plan(&mut self, planned: Option<&Checksum>) -> S3Result<()> {
        let Some(algorithm) = planned.map(Checksum::algorithm) else { return Ok(()) };
        let mut given = self.algorithms();
        if let Some(other) = given.next().filter(|first| *first != algorithm)
            && given.all(|given| given != algorithm)
        {
            let (begun, given) = (header_name(algorithm), header_name(other));
            return Err(s3_error!(
                InvalidRequest,
                "the upload was begun for {begun}, and the part gives {given}"
            ));
        }
        drop(given);
        self.planned = Some(algorithm);
        Ok(())
    }

    fn algorithms(&self) -> impl Iterator<Item = ChecksumAlgorithm> {
        let given = self.given.iter().map(Checksum::algorithm);
        given.chain(self.in_trailer.iter().copied()).chain(self.planned)
    }

    /// Computes what the body is compared with.
    pub(crate) fn hashes(self) -> Hashes {
        let mut all: Vec<ChecksumAlgorithm> = self.algorithms().collect();
        all.sort_unstable();
        all.dedup();
        let computed = all.into_iter().map(|algorithm| (algorithm, Hash::new(algorithm))).collect();
        Hashes { expected: self, md5: Md5::new(), computed }
    }
}

/// MD5 and checksums of a body as it comes.
pub(crate) struct Hashes {
    expected: Expected,
    md5: Md5,
    computed: Vec<(ChecksumAlgorithm, Hash)>,
}

impl Hashes {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.md5.update(bytes);
        self.computed.iter_mut().for_each(|(_, hash)| hash.update(bytes));
    }

    /// The MD5, and checksums to be stored.
    ///
    /// # Errors
    /// `BadDigest` when the body is not what its sender says.
    pub(crate) fn verify(
        self,
        trailers: Option<&HeaderMap>,
    ) -> S3Result<([u8; 16], Vec<Checksum>)> {
        let mut given = self.expected.given;
        for algorithm in self.expected.in_trailer {
            let name = header_name(algorithm);
            let value = trailers.and_then(|trailers| trailers.get(name));
            let value = value.and_then(|value| value.to_str().ok());
            let missing = || s3_error!(InvalidRequest, "the trailer has no {name}");
            given.push(parse(algorithm, value.ok_or_else(missing)?)?);
        }
        let md5: [u8; 16] = self.md5.finalize().into();
        if self.expected.md5.is_some_and(|expected| expected != md5) {
            return Err(s3_error!(BadDigest, "the body does not have the MD5 of Content-MD5"));
        }
        let mut checksums: Vec<Checksum> = Vec::new();
        for (algorithm, hash) in self.computed {
            let digest = hash.finish();
            if given.iter().any(|one| one.algorithm() == algorithm && one.digest() != digest) {
                let name = header_name(algorithm);
                return Err(s3_error!(BadDigest, "the body does not have the checksum of {name}"));
            }
            checksums.extend(Checksum::new(algorithm, &digest, false));
        }
        Ok((md5, checksums))
    }
}

enum Hash {
    Crc(crc_fast::Digest, usize),
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
}

impl Hash {
    fn new(algorithm: ChecksumAlgorithm) -> Self {
        match algorithm {
            ChecksumAlgorithm::Sha1 => Self::Sha1(sha1::Sha1::new()),
            ChecksumAlgorithm::Sha256 => Self::Sha256(sha2::Sha256::new()),
            ChecksumAlgorithm::Crc32 => Self::crc(algorithm, CrcAlgorithm::Crc32IsoHdlc),
            ChecksumAlgorithm::Crc32c => Self::crc(algorithm, CrcAlgorithm::Crc32Iscsi),
            ChecksumAlgorithm::Crc64Nvme => Self::crc(algorithm, CrcAlgorithm::Crc64Nvme),
        }
    }

    fn crc(algorithm: ChecksumAlgorithm, of: CrcAlgorithm) -> Self {
        Self::Crc(crc_fast::Digest::new(of), algorithm.digest_bytes())
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Crc(digest, _) => digest.update(bytes),
            Self::Sha1(digest) => digest.update(bytes),
            Self::Sha256(digest) => digest.update(bytes),
        }
    }

    fn finish(self) -> Vec<u8> {
        match self {
            Self::Crc(digest, length) => crc_bytes(digest.finalize(), length),
            Self::Sha1(digest) => digest.finalize().to_vec(),
            Self::Sha256(digest) => digest.finalize().to_vec(),
        }
    }
}

fn crc_bytes(crc: u64, length: usize) -> Vec<u8> {
    crc.to_be_bytes()[8 - length..].to_vec()
}

/// The checksum of a whole object from those of its parts and their lengths.
pub(crate) fn combined(
    algorithm: ChecksumAlgorithm,
    parts: &[(Checksum, u64)],
) -> Option<Checksum> {
    let of = match algorithm {
        ChecksumAlgorithm::Crc32 => CrcAlgorithm::Crc32IsoHdlc,
        ChecksumAlgorithm::Crc32c => CrcAlgorithm::Crc32Iscsi,
        ChecksumAlgorithm::Crc64Nvme => CrcAlgorithm::Crc64Nvme,
        ChecksumAlgorithm::Sha1 | ChecksumAlgorithm::Sha256 => return None,
    };
    let number = |checksum: &Checksum| {
        checksum.digest().iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
    };
    let (first, others) = parts.split_first()?;
    let crc = others.iter().fold(number(&first.0), |crc, (part, bytes)| {
        crc_fast::checksum_combine(of, crc, number(part), *bytes)
    });
    Checksum::new(algorithm, &crc_bytes(crc, algorithm.digest_bytes()), false)
}

/// The checksum of the checksums of parts.
pub(crate) fn composite(
    algorithm: ChecksumAlgorithm,
    parts: &[(Checksum, u64)],
) -> Option<Checksum> {
    let mut hash = Hash::new(algorithm);
    parts.iter().for_each(|(part, _)| hash.update(part.digest()));
    Checksum::new(algorithm, &hash.finish(), true)
}

/// # Errors
/// `InvalidRequest`.
pub(crate) fn parse(algorithm: ChecksumAlgorithm, text: &str) -> S3Result<Checksum> {
    let digest = STANDARD.decode(text).ok();
    let checksum = digest.and_then(|digest| Checksum::new(algorithm, &digest, false));
    checksum.ok_or_else(|| {
        s3_error!(InvalidRequest, "Value for {} header is invalid.", header_name(algorithm))
    })
}

const fn header_name(algorithm: ChecksumAlgorithm) -> &'static str {
    match algorithm {
        ChecksumAlgorithm::Crc32 => "x-amz-checksum-crc32",
        ChecksumAlgorithm::Crc32c => "x-amz-checksum-crc32c",
        ChecksumAlgorithm::Crc64Nvme => "x-amz-checksum-crc64nvme",
        ChecksumAlgorithm::Sha1 => "x-amz-checksum-sha1",
        ChecksumAlgorithm::Sha256 => "x-amz-checksum-sha256",
    }
}

/// Checksums as answers have them: one text each.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    pub(crate) crc32: Option<String>,
    pub(crate) crc32c: Option<String>,
    pub(crate) crc64nvme: Option<String>,
    pub(crate) sha1: Option<String>,
    pub(crate) sha256: Option<String>,
    pub(crate) kind: Option<ChecksumType>,
}

impl Texts {
    /// `parts` is the number of parts of a multi-part object.
    pub(crate) fn new(checksums: &[Checksum], parts: Option<u16>) -> Self {
        let mut texts = Self::default();
        for checksum in checksums {
            let kind = match checksum.is_composite() {
                true => ChecksumType::COMPOSITE,
                false => ChecksumType::FULL_OBJECT,
            };
            texts.kind = Some(ChecksumType::from_static(kind));
            let mut text = STANDARD.encode(checksum.digest());
            if let Some(parts) = parts.filter(|_| checksum.is_composite()) {
                text.push_str(&format!("-{parts}"));
            }
            *match checksum.algorithm() {
                ChecksumAlgorithm::Crc32 => &mut texts.crc32,
                ChecksumAlgorithm::Crc32c => &mut texts.crc32c,
                ChecksumAlgorithm::Crc64Nvme => &mut texts.crc64nvme,
                ChecksumAlgorithm::Sha1 => &mut texts.sha1,
                ChecksumAlgorithm::Sha256 => &mut texts.sha256,
            } = Some(text);
        }
        texts
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use format::objects::record::metadata::ChecksumAlgorithm;
    use hyper::HeaderMap;
    use s3s::S3ErrorCode;

    use super::{Expected, Texts, combined, header_name};

    /// Checksums of the bytes, all algorithms.
    fn of(bytes: &[u8]) -> Vec<super::Checksum> {
        let in_trailer = ChecksumAlgorithm::ALL.to_vec();
        let mut hashes = Expected { in_trailer, ..Expected::default() }.hashes();
        hashes.update(bytes);
        hashes.expected.in_trailer.clear();
        hashes.verify(None).unwrap().1
    }

    #[test]
    fn checksums_are_those_of_the_catalogue() {
        let texts = Texts::new(&of(b"123456789"), None);
        assert_eq!(texts.crc32.unwrap(), "y/Q5Jg==");
        assert_eq!(texts.crc32c.unwrap(), "4waSgw==");
        assert_eq!(texts.crc64nvme.unwrap(), "rosUhgp5mIg=");
        assert_eq!(texts.sha1.unwrap(), "98O8HYCOBHMq32eZZczDTKeuNEE=");
    }

    #[test]
    fn crcs_of_parts_make_that_of_the_whole() {
        let (one, two, whole) = (of(b"hello "), of(b"world"), of(b"hello world"));
        for (at, whole) in whole.iter().enumerate().take(3) {
            let parts = [(one[at], 6), (two[at], 5)];
            assert_eq!(combined(whole.algorithm(), &parts), Some(*whole));
        }
    }

    #[test]
    fn a_body_that_is_not_what_its_sender_says_is_refused() {
        for algorithm in ChecksumAlgorithm::ALL {
            let mut headers = HeaderMap::new();
            headers.insert("x-amz-trailer", header_name(algorithm).parse().unwrap());
            let mut hashes = Expected::from_headers(&headers).unwrap().hashes();
            hashes.update(b"hello");
            let text = super::STANDARD.encode(vec![7; algorithm.digest_bytes()]);
            let mut trailers = HeaderMap::new();
            trailers.insert(header_name(algorithm), text.parse().unwrap());
            let refused = hashes.verify(Some(&trailers)).unwrap_err();
            assert_eq!(*refused.code(), S3ErrorCode::BadDigest);
        }
    }
}
