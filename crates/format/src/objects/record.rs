//! Records of objects: what a bucket's index holds for a key.
//!
//! ```text
//! | header 56 B | checksums | content headers | user metadata | tags | value |
//! ```
//!
//! A record has a checksum of its own, so that a repair which finds it in a damaged index knows
//! whether to believe it. Its first byte is its version: one that this program does not know is an
//! error, never a guess. What users can make too long has types that hold the limits
//! ([`metadata`]), so every record that can be built can be encoded.

pub mod metadata;
mod parts;

use std::fmt;

use crate::checksum::{crc32c, crc32c_append};
use crate::error::{FormatError, Structure};
use crate::field::{array_at, put_bytes, put_u32, put_u64, u32_at, u64_at};
use crate::objects::OBJECT_BYTES_MAX;
use crate::objects::segments::{ENTRY_BYTES, LIST_ENTRIES_MAX, ListEntry, total_bytes};

use metadata::{
    CHECKSUMS_MAX, CONTENT_HEADERS_BYTES_MAX, Checksum, ContentHeaders, TAGS_BYTES_MAX, Tags,
    USER_BYTES_MAX, UserMetadata,
};
use parts::{Reader, put_checksums, put_text};

/// Header of a record.
pub const OBJECT_HEADER_BYTES: usize = 56;
/// Longest record.
pub const OBJECT_RECORD_BYTES_MAX: usize = 64 << 10;
/// Longest value that lies in its record.
pub const INLINE_BYTES_MAX: usize = 512;
/// Most parts that an object was put together from.
pub const PARTS_MAX: u16 = 10_000;

/// The version of records that this program writes, and the newest that it reads.
pub const OBJECT_RECORD_VERSION: u8 = 1;

pub(crate) const VERSION_AT: usize = 0;
pub(crate) const VALUE_KIND_AT: usize = 1;
pub(crate) const FLAGS_AT: usize = 2;
pub(crate) const CHECKSUMS_AT: usize = 3;
pub(crate) const CRC_AT: usize = 4;
pub(crate) const PUT_AT: usize = 8;
pub(crate) const SIZE_AT: usize = 16;
pub(crate) const CREATED_AT: usize = 24;
pub(crate) const EXPIRES_AT: usize = 32;
pub(crate) const MD5_AT: usize = 40;
/// Behind the header, each preceded by its length in two bytes: the four groups, then the value.
pub(crate) const END_AT: usize = OBJECT_HEADER_BYTES;

const FLAG_EXPIRES: u8 = 1;
const FLAG_PARTS: u8 = 2;
const VALUE_INLINE: u8 = 0;
const VALUE_LIST: u8 = 1;

const _: () = assert!(MD5_AT + 16 == END_AT && CRC_AT + 4 == PUT_AT);
const _: () = assert!(
    END_AT
        + 2
        + CHECKSUMS_MAX * 34
        + 4 * 2
        + CONTENT_HEADERS_BYTES_MAX
        + USER_BYTES_MAX
        + TAGS_BYTES_MAX
        + LIST_ENTRIES_MAX * ENTRY_BYTES
        <= OBJECT_RECORD_BYTES_MAX
);

/// What S3 calls a version of the content: the MD5 of the bytes, or of the MD5s of the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ETag {
    /// The digest.
    pub md5: [u8; 16],
    /// How many parts the object was put together from, 1 to [`PARTS_MAX`]; none: it was put whole.
    pub parts: Option<u16>,
}

/// 32 hexadecimal digits, and behind a hyphen the number of parts, as headers of S3 have it.
impl fmt::Display for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.md5.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        self.parts.map_or(Ok(()), |parts| write!(f, "-{parts}"))
    }
}

/// Where the bytes of an object are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Here; at most [`INLINE_BYTES_MAX`].
    Inline(Vec<u8>),
    /// In the value space; 1 to [`LIST_ENTRIES_MAX`] entries.
    List(Vec<ListEntry>),
}

impl Value {
    /// The value of no bytes.
    pub const EMPTY: Self = Self::Inline(Vec::new());

    /// Its length; none when it is more than an object has.
    #[must_use]
    pub fn length_bytes(&self) -> Option<u64> {
        match self {
            Self::Inline(bytes) => Some(bytes.len() as u64),
            Self::List(entries) => total_bytes(entries),
        }
    }

    /// What it names in the value space.
    #[must_use]
    pub fn entries(&self) -> &[ListEntry] {
        match self {
            Self::Inline(_) => &[],
            Self::List(entries) => entries,
        }
    }
}

/// What a bucket knows of an object.
///
/// ```
/// use format::objects::record::{ETag, ObjectRecord, Value};
///
/// let etag = ETag { md5: [7; 16], parts: None };
/// let record = ObjectRecord::new(1, 1_700_000_000_000, etag, Value::Inline(b"hello".to_vec()));
/// assert_eq!(ObjectRecord::decode(&record.encode()), Ok(record));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRecord {
    /// Grows with every put of the bucket.
    pub version: u64,
    /// When it was put, in milliseconds since 1970.
    pub created_unix_ms: u64,
    /// When it ends, in milliseconds since 1970.
    pub expires_unix_ms: Option<u64>,
    /// What S3 calls its content.
    pub etag: ETag,
    /// Content-Type and its like.
    pub content_headers: ContentHeaders,
    /// `x-amz-meta-` and its like.
    pub user_metadata: UserMetadata,
    /// Its tags.
    pub tags: Tags,
    /// What its sender said that its bytes come to: at most one of each algorithm, in their order.
    pub checksums: Vec<Checksum>,
    /// Its bytes.
    pub value: Value,
}

impl ObjectRecord {
    /// A record with nothing that need not be there.
    #[must_use]
    pub fn new(version: u64, created_unix_ms: u64, etag: ETag, value: Value) -> Self {
        Self {
            version,
            created_unix_ms,
            expires_unix_ms: None,
            etag,
            content_headers: ContentHeaders::default(),
            user_metadata: UserMetadata::default(),
            tags: Tags::default(),
            checksums: Vec::new(),
            value,
        }
    }

    /// Bytes of the object.
    ///
    /// # Panics
    /// When the value has more than an object may have.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        match self.value.length_bytes() {
            Some(length_bytes) => length_bytes,
            None => panic!("an object has at most {OBJECT_BYTES_MAX} bytes"),
        }
    }

    /// The record's bytes, at most [`OBJECT_RECORD_BYTES_MAX`].
    ///
    /// # Panics
    /// When the value, the number of parts or the checksums are none that [`ObjectRecord::decode`]
    /// takes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; OBJECT_HEADER_BYTES];
        bytes[VERSION_AT] = OBJECT_RECORD_VERSION;
        let expires = self.expires_unix_ms.map_or(0, |_| FLAG_EXPIRES);
        bytes[FLAGS_AT] = expires | self.etag.parts.map_or(0, |_| FLAG_PARTS);
        bytes[CHECKSUMS_AT] = self.checksums.len() as u8;
        put_u64(&mut bytes, PUT_AT, self.version);
        put_u64(&mut bytes, SIZE_AT, self.size_bytes());
        put_u64(&mut bytes, CREATED_AT, self.created_unix_ms);
        put_u64(&mut bytes, EXPIRES_AT, self.expires_unix_ms.unwrap_or(0));
        put_bytes(&mut bytes, MD5_AT, &self.etag.md5);
        if let Some(parts) = self.etag.parts {
            assert!((1..=PARTS_MAX).contains(&parts), "{parts} parts");
            bytes.extend(parts.to_le_bytes());
        }
        put_checksums(&mut bytes, &self.checksums);
        put_text(&mut bytes, &self.content_headers.to_bytes());
        put_text(&mut bytes, &self.user_metadata.to_bytes());
        put_text(&mut bytes, &self.tags.to_bytes());
        self.put_value(&mut bytes);
        let crc = checksum_of(&bytes);
        put_u32(&mut bytes, CRC_AT, crc);
        bytes
    }

    fn put_value(&self, bytes: &mut Vec<u8>) {
        match &self.value {
            Value::Inline(value) => {
                assert!(value.len() <= INLINE_BYTES_MAX, "a short value lies in its record");
                bytes[VALUE_KIND_AT] = VALUE_INLINE;
                bytes.extend(value);
            }
            Value::List(entries) => {
                let possible = 1..=LIST_ENTRIES_MAX;
                assert!(possible.contains(&entries.len()), "a list has 1 to 64 entries");
                bytes[VALUE_KIND_AT] = VALUE_LIST;
                for entry in entries {
                    let at = bytes.len();
                    bytes.resize(at + ENTRY_BYTES, 0);
                    entry.encode(&mut bytes[at..]);
                }
            }
        }
    }

    /// The record in `bytes`.
    ///
    /// # Errors
    /// [`FormatError`] when they are none, or a newer program's.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let structure = Structure::ObjectRecord;
        let impossible = |field, found| FormatError::field(structure, field, found);
        check_whole(bytes)?;
        let flags = bytes[FLAGS_AT];
        if flags & !(FLAG_EXPIRES | FLAG_PARTS) != 0 {
            return Err(impossible("flags", flags.into()));
        }
        let expires = u64_at(bytes, EXPIRES_AT);
        if flags & FLAG_EXPIRES == 0 && expires != 0 {
            return Err(impossible("expiry", expires));
        }
        let mut rest = Reader::new(&bytes[END_AT..]);
        let parts = if flags & FLAG_PARTS == 0 { None } else { Some(rest.u16()?) };
        if let Some(parts) = parts.filter(|parts| !(1..=PARTS_MAX).contains(parts)) {
            return Err(impossible("number of parts", parts.into()));
        }
        let record = Self {
            version: u64_at(bytes, PUT_AT),
            created_unix_ms: u64_at(bytes, CREATED_AT),
            expires_unix_ms: (flags & FLAG_EXPIRES != 0).then_some(expires),
            etag: ETag { md5: array_at(bytes, MD5_AT), parts },
            checksums: rest.checksums(bytes[CHECKSUMS_AT])?,
            content_headers: ContentHeaders::from_bytes(rest.text()?)?,
            user_metadata: UserMetadata::from_bytes(rest.text()?)?,
            tags: Tags::from_bytes(rest.text()?)?,
            value: decode_value(bytes[VALUE_KIND_AT], rest.rest())?,
        };
        let size_bytes = u64_at(bytes, SIZE_AT);
        match record.value.length_bytes() == Some(size_bytes) {
            true => Ok(record),
            false => Err(impossible("size", size_bytes)),
        }
    }
}

/// The checksum of all bytes but its own.
fn checksum_of(bytes: &[u8]) -> u32 {
    crc32c_append(crc32c(&bytes[..CRC_AT]), &bytes[PUT_AT..])
}

fn check_whole(bytes: &[u8]) -> Result<(), FormatError> {
    let structure = Structure::ObjectRecord;
    FormatError::at_least(structure, OBJECT_HEADER_BYTES, bytes)?;
    let (supported, found) = (OBJECT_RECORD_VERSION.into(), bytes[VERSION_AT].into());
    if found > supported {
        return Err(FormatError::NewerVersion { structure, supported, found });
    }
    if found == 0 {
        return Err(FormatError::field(structure, "version", 0));
    }
    if bytes.len() > OBJECT_RECORD_BYTES_MAX {
        let (expected_bytes, found_bytes) = (OBJECT_RECORD_BYTES_MAX as u64, bytes.len() as u64);
        return Err(FormatError::Length { structure, expected_bytes, found_bytes });
    }
    FormatError::checksum(structure, u32_at(bytes, CRC_AT), checksum_of(bytes))
}

fn decode_value(kind: u8, bytes: &[u8]) -> Result<Value, FormatError> {
    let impossible = |field, found| FormatError::field(Structure::ObjectRecord, field, found);
    let length = bytes.len();
    match kind {
        VALUE_INLINE if length <= INLINE_BYTES_MAX => Ok(Value::Inline(bytes.to_vec())),
        VALUE_LIST if length.is_multiple_of(ENTRY_BYTES) => match length / ENTRY_BYTES {
            1..=LIST_ENTRIES_MAX => {
                let entries = bytes.chunks_exact(ENTRY_BYTES).map(ListEntry::decode);
                Ok(Value::List(entries.collect::<Result<_, _>>()?))
            }
            entries => Err(impossible("number of entries", entries as u64)),
        },
        VALUE_INLINE | VALUE_LIST => Err(impossible("value's length", length as u64)),
        other => Err(impossible("kind of value", other.into())),
    }
}

#[cfg(test)]
mod tests;
