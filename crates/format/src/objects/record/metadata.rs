//! What users say of an object, within limits that are S3's.
//!
//! Each type is built by a function that refuses what is beyond a limit with the numbers of both,
//! so a door can pass the refusal on, and a record never meets a text that it cannot hold.

use crate::error::{FormatError, Structure};

/// Most bytes of content headers, their names counted as one byte and lengths as two.
pub const CONTENT_HEADERS_BYTES_MAX: usize = 8 << 10;
/// Most bytes of names and values of user metadata together.
pub const USER_METADATA_BYTES_MAX: usize = 2 << 10;
/// Most tags of an object.
pub const TAGS_MAX: usize = 10;
/// Most characters of a tag's key.
pub const TAG_KEY_CHARS_MAX: usize = 128;
/// Most characters of a tag's value.
pub const TAG_VALUE_CHARS_MAX: usize = 256;

/// Pairs of user metadata: each has at least a byte of name, and four of lengths beside.
pub(super) const USER_BYTES_MAX: usize = USER_METADATA_BYTES_MAX * 5;
pub(super) const TAGS_BYTES_MAX: usize =
    TAGS_MAX * (4 + 4 * (TAG_KEY_CHARS_MAX + TAG_VALUE_CHARS_MAX));

/// Checksums of one object: one of each algorithm.
pub(super) const CHECKSUMS_MAX: usize = 5;

/// Why users' metadata is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// There is too much of it.
    #[error("{what} may have at most {limit} {unit}, and has {found}")]
    TooMuch {
        /// Of what.
        what: &'static str,
        /// In what.
        unit: &'static str,
        /// As much is allowed.
        limit: usize,
        /// As much there is.
        found: usize,
    },
    /// A name or key is empty or stands there twice.
    #[error("{what} {number} has a name that is empty or was used before")]
    Name {
        /// Of what.
        what: &'static str,
        /// Which, counted from 1.
        number: usize,
    },
}

fn limit(
    what: &'static str,
    unit: &'static str,
    limit: usize,
    found: usize,
) -> Result<(), MetadataError> {
    match found <= limit {
        true => Ok(()),
        false => Err(MetadataError::TooMuch { what, unit, limit, found }),
    }
}

/// Each name once, none of them empty.
fn check_names(what: &'static str, pairs: &[(String, String)]) -> Result<(), MetadataError> {
    let mut names: Vec<(&str, usize)> = Vec::with_capacity(pairs.len());
    for (number, (name, _)) in (1..).zip(pairs) {
        if name.is_empty() {
            return Err(MetadataError::Name { what, number });
        }
        names.push((name, number));
    }
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(MetadataError::Name { what, number: pair[1].1 }),
        None => Ok(()),
    }
}

fn put_pair(bytes: &mut Vec<u8>, name: &str, value: &str) {
    for text in [name, value] {
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
    }
}

fn take_text(bytes: &mut &[u8]) -> Option<String> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (text, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
    *bytes = rest;
    String::from_utf8(text.to_vec()).ok()
}

fn take_pairs(mut bytes: &[u8]) -> Option<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    while !bytes.is_empty() {
        pairs.push((take_text(&mut bytes)?, take_text(&mut bytes)?));
    }
    Some(pairs)
}

fn impossible(field: &'static str, bytes: &[u8]) -> FormatError {
    FormatError::field(Structure::ObjectRecord, field, bytes.len() as u64)
}

/// A header that says how the bytes of an object are to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ContentHeader {
    /// `Content-Type`.
    Type = 1,
    /// `Content-Encoding`.
    Encoding = 2,
    /// `Content-Language`.
    Language = 3,
    /// `Content-Disposition`.
    Disposition = 4,
    /// `Cache-Control`.
    CacheControl = 5,
    /// `Expires`, as it was sent.
    Expires = 6,
    /// `x-amz-website-redirect-location`.
    Redirect = 7,
}

impl ContentHeader {
    /// All, by their numbers.
    pub const ALL: [Self; 7] = [
        Self::Type,
        Self::Encoding,
        Self::Language,
        Self::Disposition,
        Self::CacheControl,
        Self::Expires,
        Self::Redirect,
    ];

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|header| *header as u8 == number)
    }
}

/// Headers that say how the bytes of an object are to be taken, each at most once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentHeaders(Vec<(ContentHeader, String)>);

impl ContentHeaders {
    /// These headers, which are sorted.
    ///
    /// # Errors
    /// [`MetadataError`] when there are more than [`CONTENT_HEADERS_BYTES_MAX`], or one twice.
    pub fn new(mut headers: Vec<(ContentHeader, String)>) -> Result<Self, MetadataError> {
        headers.sort_by_key(|(header, _)| *header);
        let what = "content header";
        if let Some(at) = headers.windows(2).position(|pair| pair[0].0 == pair[1].0) {
            return Err(MetadataError::Name { what, number: at + 2 });
        }
        let found = headers.iter().map(|(_, text)| 3 + text.len()).sum();
        limit("content headers", "bytes", CONTENT_HEADERS_BYTES_MAX, found)?;
        Ok(Self(headers))
    }

    /// The value of a header.
    #[must_use]
    pub fn get(&self, header: ContentHeader) -> Option<&str> {
        self.0.iter().find(|(found, _)| *found == header).map(|(_, text)| text.as_str())
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (ContentHeader, &str)> {
        self.0.iter().map(|(header, text)| (*header, text.as_str()))
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (header, text) in &self.0 {
            bytes.push(*header as u8);
            bytes.extend((text.len() as u16).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        let impossible = || impossible("content headers of length", bytes);
        let mut rest = bytes;
        let mut headers = Vec::new();
        while let Some((number, behind)) = rest.split_first() {
            rest = behind;
            let header = ContentHeader::from_number(*number).ok_or_else(impossible)?;
            headers.push((header, take_text(&mut rest).ok_or_else(impossible)?));
        }
        let found = Self::new(headers).map_err(|_| impossible())?;
        // In another order they are no encoder's.
        if found.to_bytes() == bytes { Ok(found) } else { Err(impossible()) }
    }
}

/// Names and values that users give an object, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserMetadata(Vec<(String, String)>);

impl UserMetadata {
    /// These pairs of names and values.
    ///
    /// # Errors
    /// [`MetadataError`] when there are more than [`USER_METADATA_BYTES_MAX`], or a name is empty
    /// or stands there twice.
    pub fn new(pairs: Vec<(String, String)>) -> Result<Self, MetadataError> {
        let found = pairs.iter().map(|(name, value)| name.len() + value.len()).sum();
        limit("user metadata", "bytes", USER_METADATA_BYTES_MAX, found)?;
        check_names("pair of user metadata", &pairs)?;
        Ok(Self(pairs))
    }

    /// All pairs.
    #[must_use]
    pub fn pairs(&self) -> &[(String, String)] {
        &self.0
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.0.iter().for_each(|(name, value)| put_pair(&mut bytes, name, value));
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        let found = take_pairs(bytes).and_then(|pairs| Self::new(pairs).ok());
        found.ok_or_else(|| impossible("user metadata of length", bytes))
    }
}

/// Tags of an object, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags(Vec<(String, String)>);

impl Tags {
    /// These keys and values.
    ///
    /// # Errors
    /// [`MetadataError`] when there are more than [`TAGS_MAX`], or a text is too long, or a key is
    /// empty or stands there twice.
    pub fn new(pairs: Vec<(String, String)>) -> Result<Self, MetadataError> {
        limit("an object", "tags", TAGS_MAX, pairs.len())?;
        for (key, value) in &pairs {
            limit("the key of a tag", "characters", TAG_KEY_CHARS_MAX, key.chars().count())?;
            limit("the value of a tag", "characters", TAG_VALUE_CHARS_MAX, value.chars().count())?;
        }
        check_names("tag", &pairs)?;
        Ok(Self(pairs))
    }

    /// All keys and values.
    #[must_use]
    pub fn pairs(&self) -> &[(String, String)] {
        &self.0
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.0.iter().for_each(|(key, value)| put_pair(&mut bytes, key, value));
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        let found = take_pairs(bytes).and_then(|pairs| Self::new(pairs).ok());
        found.ok_or_else(|| impossible("tags of length", bytes))
    }
}

/// How a checksum is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ChecksumAlgorithm {
    /// CRC-32 of zlib.
    Crc32 = 1,
    /// CRC-32C.
    Crc32c = 2,
    /// CRC-64/NVME.
    Crc64Nvme = 3,
    /// SHA-1.
    Sha1 = 4,
    /// SHA-256.
    Sha256 = 5,
}

impl ChecksumAlgorithm {
    /// All, by their numbers.
    pub const ALL: [Self; 5] =
        [Self::Crc32, Self::Crc32c, Self::Crc64Nvme, Self::Sha1, Self::Sha256];

    /// Length of what it computes.
    #[must_use]
    pub const fn digest_bytes(self) -> usize {
        match self {
            Self::Crc32 | Self::Crc32c => 4,
            Self::Crc64Nvme => 8,
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    pub(super) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| *algorithm as u8 == number)
    }
}

/// A checksum of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum {
    algorithm: ChecksumAlgorithm,
    composite: bool,
    /// The first bytes count, as many as the algorithm says; the others are zeros.
    digest: [u8; 32],
}

impl Checksum {
    /// A checksum of the whole object or, `composite`, of the checksums of its parts; none when
    /// `digest` is not as long as the algorithm says.
    #[must_use]
    pub fn new(algorithm: ChecksumAlgorithm, digest: &[u8], composite: bool) -> Option<Self> {
        let mut whole = [0; 32];
        let place = whole.get_mut(..digest.len())?;
        place.copy_from_slice(digest);
        let is_long_enough = digest.len() == algorithm.digest_bytes();
        is_long_enough.then_some(Self { algorithm, composite, digest: whole })
    }

    /// What an upload says of the checksum that its object will have: the digest is zeros.
    #[must_use]
    pub fn planned(algorithm: ChecksumAlgorithm, composite: bool) -> Self {
        Self { algorithm, composite, digest: [0; 32] }
    }

    /// How it is computed.
    #[must_use]
    pub fn algorithm(&self) -> ChecksumAlgorithm {
        self.algorithm
    }

    /// Whether it is of the checksums of the parts.
    #[must_use]
    pub fn is_composite(&self) -> bool {
        self.composite
    }

    /// What was computed.
    #[must_use]
    pub fn digest(&self) -> &[u8] {
        &self.digest[..self.algorithm.digest_bytes()]
    }
}
