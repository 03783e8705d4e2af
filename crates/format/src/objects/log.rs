//! Groups of the log of a bucket, and the changes in them.
//!
//! A group is a header and its changes, filled up with zeros to a multiple of [`GROUP_ALIGN`]. It
//! is whole, or it is not there: one checksum covers all of it. Its position counts bytes since the
//! bucket was made, so that a group of an earlier round of the ring is never taken for this one.

use crate::checksum::{crc32c, crc32c_append};
use crate::error::{FormatError, Structure};
use crate::field::{array_at, put_bytes, put_u32, put_u64, u16_at, u32_at, u64_at};
use crate::units::UUID_BYTES;

/// Groups begin at multiples of this.
pub const GROUP_ALIGN: usize = 8;

/// Length of the header of a group.
pub const GROUP_HEADER_BYTES: usize = 64;

/// The longest group, its header included.
pub const GROUP_BYTES_MAX: usize = 16 << 20;

/// A key is no longer than this.
pub const KEY_BYTES_MAX: usize = 1100;

/// A value is no longer than this.
pub const VALUE_BYTES_MAX: usize = 64 << 10;

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"TAMIS-BL");

pub(crate) const MAGIC_AT: usize = 0;
pub(crate) const CRC_AT: usize = 8;
pub(crate) const LENGTH_AT: usize = 12;
pub(crate) const UUID_AT: usize = 16;
pub(crate) const SEQUENCE_AT: usize = 32;
pub(crate) const POSITION_AT: usize = 40;
pub(crate) const REST_AT: usize = 48;

pub(crate) const KIND_AT: usize = 0;
pub(crate) const TABLE_AT: usize = 1;
pub(crate) const KEY_BYTES_AT: usize = 2;
pub(crate) const VALUE_BYTES_AT: usize = 4;
pub(crate) const CHANGE_HEADER_BYTES: usize = 8;

const SET: u8 = 1;
const REMOVE: u8 = 2;

const _: () = assert!(KEY_BYTES_MAX <= u16::MAX as usize && REST_AT <= GROUP_HEADER_BYTES);

/// Which group it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupHeader {
    /// Of the bucket.
    pub uuid: [u8; UUID_BYTES],
    /// Counted from 0.
    pub sequence: u64,
    /// Where it begins, in bytes since the bucket was made.
    pub position: u64,
}

/// One change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoggedChange<'a> {
    /// Number of the table.
    pub table: u8,
    /// Up to [`KEY_BYTES_MAX`] bytes.
    pub key: &'a [u8],
    /// Up to [`VALUE_BYTES_MAX`] bytes; none: the key is removed.
    pub value: Option<&'a [u8]>,
}

/// Where a group begins, and which it is; the index says so of the first that it does not hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// In bytes since the bucket was made.
    pub position: u64,
    /// Counted from 0.
    pub sequence: u64,
}

/// Above the bytes and groups of every log: at a gibibyte a second a log has it after 136 years.
const PLACE_MAX: u64 = 1 << 62;

/// Length of an encoded [`Place`].
pub const PLACE_BYTES: usize = 16;

impl Place {
    /// As the index holds it.
    #[must_use]
    pub fn encode(&self) -> [u8; PLACE_BYTES] {
        let mut bytes = [0; PLACE_BYTES];
        put_u64(&mut bytes, 0, self.position);
        put_u64(&mut bytes, 8, self.sequence);
        bytes
    }

    /// # Errors
    /// [`FormatError`] when these bytes are none, or beyond what any log comes to.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let structure = Structure::BucketGroup;
        FormatError::at_least(structure, PLACE_BYTES, bytes)?;
        let place = Self { position: u64_at(bytes, 0), sequence: u64_at(bytes, 8) };
        match place.position.max(place.sequence) {
            0..=PLACE_MAX => Ok(place),
            beyond => Err(FormatError::field(structure, "place", beyond)),
        }
    }
}

/// Length of a change in a group.
#[must_use]
pub fn change_bytes(key_bytes: usize, value_bytes: usize) -> usize {
    CHANGE_HEADER_BYTES + key_bytes + value_bytes
}

/// Appends a change to the body of a group.
///
/// # Panics
/// When key or value are too long.
pub fn encode_change(change: LoggedChange<'_>, body: &mut Vec<u8>) {
    let LoggedChange { table, key, value } = change;
    let value_bytes = value.map_or(0, <[u8]>::len);
    assert!(key.len() <= KEY_BYTES_MAX && value_bytes <= VALUE_BYTES_MAX, "checked before");
    body.extend_from_slice(&[if value.is_some() { SET } else { REMOVE }, table]);
    body.extend_from_slice(&(key.len() as u16).to_le_bytes());
    body.extend_from_slice(&(value_bytes as u32).to_le_bytes());
    body.extend_from_slice(key);
    body.extend_from_slice(value.unwrap_or_default());
}

/// Length of a group with a body of this length.
#[must_use]
pub fn group_bytes(body_bytes: usize) -> usize {
    (GROUP_HEADER_BYTES + body_bytes).next_multiple_of(GROUP_ALIGN)
}

/// Appends a group with this body.
///
/// # Panics
/// When it is longer than [`GROUP_BYTES_MAX`].
pub fn encode_group(header: &GroupHeader, body: &[u8], out: &mut Vec<u8>) {
    assert!(group_bytes(body.len()) <= GROUP_BYTES_MAX, "batches are bounded");
    let start = out.len();
    out.resize(start + GROUP_HEADER_BYTES, 0);
    let head = &mut out[start..];
    put_u64(head, MAGIC_AT, MAGIC);
    put_u32(head, LENGTH_AT, body.len() as u32);
    put_bytes(head, UUID_AT, &header.uuid);
    put_u64(head, SEQUENCE_AT, header.sequence);
    put_u64(head, POSITION_AT, header.position);
    let crc = crc32c_append(crc32c(&head[LENGTH_AT..]), body);
    put_u32(head, CRC_AT, crc);
    out.extend_from_slice(body);
    out.resize(start + group_bytes(body.len()), 0);
}

/// What the header of a group says, and how long the body behind it is. The checksum covers both:
/// [`decode_body`] looks at it.
///
/// # Errors
/// [`FormatError`] when no group begins here.
pub fn decode_header(bytes: &[u8]) -> Result<(GroupHeader, usize), FormatError> {
    let structure = Structure::BucketGroup;
    FormatError::at_least(structure, GROUP_HEADER_BYTES, bytes)?;
    let found = u64_at(bytes, MAGIC_AT);
    if found != MAGIC {
        return Err(FormatError::Magic { structure, expected: MAGIC, found });
    }
    let body_bytes = u32_at(bytes, LENGTH_AT) as usize;
    if body_bytes > GROUP_BYTES_MAX - GROUP_HEADER_BYTES {
        return Err(FormatError::field(structure, "length", body_bytes as u64));
    }
    let header = GroupHeader {
        uuid: array_at(bytes, UUID_AT),
        sequence: u64_at(bytes, SEQUENCE_AT),
        position: u64_at(bytes, POSITION_AT),
    };
    Ok((header, body_bytes))
}

/// The body of the group that begins these bytes, if its checksum agrees.
///
/// # Errors
/// [`FormatError`] when it is not whole.
pub fn decode_body(bytes: &[u8]) -> Result<&[u8], FormatError> {
    let structure = Structure::BucketGroup;
    let (_, body_bytes) = decode_header(bytes)?;
    let end = GROUP_HEADER_BYTES + body_bytes;
    FormatError::at_least(structure, end, bytes)?;
    FormatError::checksum(structure, u32_at(bytes, CRC_AT), crc32c(&bytes[LENGTH_AT..end]))?;
    Ok(&bytes[GROUP_HEADER_BYTES..end])
}

/// The changes in the body of a group, in their order; it ends behind the first error.
pub struct LoggedChanges<'a>(&'a [u8]);

impl<'a> LoggedChanges<'a> {
    /// Those of a body.
    #[must_use]
    pub fn new(body: &'a [u8]) -> Self {
        Self(body)
    }

    fn take(&mut self) -> Result<LoggedChange<'a>, FormatError> {
        let structure = Structure::BucketChange;
        let body = std::mem::take(&mut self.0);
        FormatError::at_least(structure, CHANGE_HEADER_BYTES, body)?;
        let key_bytes = usize::from(u16_at(body, KEY_BYTES_AT));
        let value_bytes = u32_at(body, VALUE_BYTES_AT) as usize;
        if key_bytes > KEY_BYTES_MAX {
            return Err(FormatError::field(structure, "key length", key_bytes as u64));
        }
        if value_bytes > VALUE_BYTES_MAX {
            return Err(FormatError::field(structure, "value length", value_bytes as u64));
        }
        let end = change_bytes(key_bytes, value_bytes);
        FormatError::at_least(structure, end, body)?;
        let (key, value) = body[CHANGE_HEADER_BYTES..end].split_at(key_bytes);
        let value = match body[KIND_AT] {
            SET => Some(value),
            REMOVE if value.is_empty() => None,
            REMOVE => {
                return Err(FormatError::field(structure, "value length", value_bytes as u64));
            }
            kind => return Err(FormatError::field(structure, "kind", u64::from(kind))),
        };
        self.0 = &body[end..];
        Ok(LoggedChange { table: body[TABLE_AT], key, value })
    }
}

impl<'a> Iterator for LoggedChanges<'a> {
    type Item = Result<LoggedChange<'a>, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() { None } else { Some(self.take()) }
    }
}
