//! Journal records: whole blocks that carry changes, each bound to the one before.
//!
//! ```text
//! | header 64 B | body: changes, one after another | zeros up to a whole block |
//! ```
//!
//! The journal is a ring, so behind its newest record lie records of earlier laps, whole and with
//! good checksums. A record continues the journal only if all of this holds: it is of this store,
//! its sequence is the next, it names the checksum of the record before it, and the store was not
//! opened less often when it was written than when that one was. Hence a record that was cut off
//! by a crash can never be taken up again by what is written later in its place.
//!
//! A record never wraps: a [`RecordKind::Filler`] takes the rest of the ring when the next record
//! does not fit there.

mod change;
mod changes;
mod kinds;

use crate::checksum::crc32c;
use crate::error::{FormatError, Structure};
use crate::field::{array_at, put_bytes, put_u32, put_u64, u32_at, u64_at};
use crate::units::{BLOCK_BYTES, UUID_PREFIX_BYTES};

pub use change::Change;
pub use changes::Changes;

/// Longest record.
pub const RECORD_BYTES_MAX: usize = 1 << 20;

/// Header of a record.
pub const RECORD_HEADER_BYTES: usize = 64;

/// Longest body of a record.
pub const BODY_BYTES_MAX: usize = RECORD_BYTES_MAX - RECORD_HEADER_BYTES;

const MAGIC: u32 = u32::from_le_bytes(*b"TmJR");

pub(crate) const CRC_AT: usize = 0;
pub(crate) const CRC_END: usize = 4;
pub(crate) const MAGIC_AT: usize = 4;
pub(crate) const LENGTH_AT: usize = 8;
pub(crate) const BODY_BYTES_AT: usize = 12;
pub(crate) const INCARNATION_AT: usize = 16;
pub(crate) const SEQUENCE_AT: usize = 24;
pub(crate) const DURABLE_SEQUENCE_AT: usize = 32;
pub(crate) const UUID_PREFIX_AT: usize = 40;
pub(crate) const PREVIOUS_CRC_AT: usize = 48;
pub(crate) const KIND_AT: usize = 52;
pub(crate) const ZERO_AT: usize = 53;
pub(crate) const PLACED_SEQUENCE_AT: usize = 56;

const _: () = assert!(UUID_PREFIX_AT + UUID_PREFIX_BYTES == PREVIOUS_CRC_AT);
const _: () = assert!(ZERO_AT < PLACED_SEQUENCE_AT && RECORD_HEADER_BYTES < BLOCK_BYTES);
const _: () = assert!(PLACED_SEQUENCE_AT + 8 == RECORD_HEADER_BYTES);
const _: () = assert!(RECORD_BYTES_MAX.is_multiple_of(BLOCK_BYTES));

/// What a record is for.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum RecordKind {
    /// Its changes are made together, or none of them.
    Group = 0,
    /// It takes the space up to the end of the ring and has no body.
    Filler = 1,
}

/// What is durable of the records before one.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Settled {
    /// Records up to this one are durable, and so are the frames they name: in their containers, or
    /// carried in the record that names them.
    pub durable_sequence: u64,
    /// The frames that records up to this one name are durable in their containers.
    pub placed_sequence: u64,
}

impl Settled {
    /// Takes over what another record knows more.
    pub fn learn(&mut self, other: Self) {
        self.durable_sequence = self.durable_sequence.max(other.durable_sequence);
        self.placed_sequence = self.placed_sequence.max(other.placed_sequence);
    }
}

/// What a record says of itself.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct RecordHeader {
    /// Of the whole record in the zone: a multiple of [`BLOCK_BYTES`].
    pub length_bytes: u32,
    /// Of the changes in it.
    pub body_bytes: u32,
    /// What it is for.
    pub kind: RecordKind,
    /// Of the opening of the store that wrote it.
    pub incarnation: u64,
    /// Its number, counted from the store's first record.
    pub sequence: u64,
    /// Checksum of the record before it.
    pub previous_crc: u32,
    /// What was durable when it was written.
    pub settled: Settled,
    /// Of the store.
    pub uuid_prefix: [u8; UUID_PREFIX_BYTES],
}

/// Length of a record with a body of `body_bytes`.
#[must_use]
pub const fn record_bytes(body_bytes: usize) -> usize {
    (RECORD_HEADER_BYTES + body_bytes).next_multiple_of(BLOCK_BYTES)
}

/// Writes a record into `record`, all of which it fills; returns its checksum.
///
/// # Panics
/// When the lengths in the header are not those of the slices, or are none of a record.
pub fn encode_record(header: &RecordHeader, body: &[u8], record: &mut [u8]) -> u32 {
    assert!(header.length_bytes as usize == record.len(), "the header tells the record's length");
    assert!(header.body_bytes as usize == body.len(), "the header tells the body's length");
    assert!(check_lengths(header.length_bytes, header.body_bytes).is_ok(), "a record's length");
    let (start, rest) = record.split_at_mut(RECORD_HEADER_BYTES);
    let (changes, padding) = rest.split_at_mut(body.len());
    start.fill(0);
    put_u32(start, MAGIC_AT, MAGIC);
    put_u32(start, LENGTH_AT, header.length_bytes);
    put_u32(start, BODY_BYTES_AT, header.body_bytes);
    put_u64(start, INCARNATION_AT, header.incarnation);
    put_u64(start, SEQUENCE_AT, header.sequence);
    put_u64(start, DURABLE_SEQUENCE_AT, header.settled.durable_sequence);
    put_u64(start, PLACED_SEQUENCE_AT, header.settled.placed_sequence);
    put_bytes(start, UUID_PREFIX_AT, &header.uuid_prefix);
    put_u32(start, PREVIOUS_CRC_AT, header.previous_crc);
    start[KIND_AT] = header.kind as u8;
    changes.copy_from_slice(body);
    padding.fill(0);
    let crc = crc32c(&record[CRC_END..]);
    put_u32(record, CRC_AT, crc);
    crc
}

/// What the first bytes of a record say. They are not to be believed before [`verify_body`]: the
/// checksum is over the whole record. But its lengths are possible ones.
///
/// # Errors
/// [`FormatError`] when no record starts here.
pub fn decode_header(bytes: &[u8]) -> Result<RecordHeader, FormatError> {
    let structure = Structure::Record;
    FormatError::at_least(structure, RECORD_HEADER_BYTES, bytes)?;
    let found = u32_at(bytes, MAGIC_AT);
    if found != MAGIC {
        let (expected, found) = (u64::from(MAGIC), u64::from(found));
        return Err(FormatError::Magic { structure, expected, found });
    }
    let kind = match bytes[KIND_AT] {
        0 => RecordKind::Group,
        1 => RecordKind::Filler,
        other => return Err(FormatError::field(structure, "kind", u64::from(other))),
    };
    let (length_bytes, body_bytes) = (u32_at(bytes, LENGTH_AT), u32_at(bytes, BODY_BYTES_AT));
    check_lengths(length_bytes, body_bytes)?;
    Ok(RecordHeader {
        length_bytes,
        body_bytes,
        kind,
        incarnation: u64_at(bytes, INCARNATION_AT),
        sequence: u64_at(bytes, SEQUENCE_AT),
        previous_crc: u32_at(bytes, PREVIOUS_CRC_AT),
        settled: Settled {
            durable_sequence: u64_at(bytes, DURABLE_SEQUENCE_AT),
            placed_sequence: u64_at(bytes, PLACED_SEQUENCE_AT),
        },
        uuid_prefix: array_at(bytes, UUID_PREFIX_AT),
    })
}

fn check_lengths(length_bytes: u32, body_bytes: u32) -> Result<(), FormatError> {
    let length = length_bytes as usize;
    if length == 0 || length > RECORD_BYTES_MAX || !length.is_multiple_of(BLOCK_BYTES) {
        let length = u64::from(length_bytes);
        return Err(FormatError::field(Structure::Record, "length", length));
    }
    if body_bytes as usize > length - RECORD_HEADER_BYTES {
        let body_bytes = u64::from(body_bytes);
        return Err(FormatError::field(Structure::Record, "body length", body_bytes));
    }
    Ok(())
}

/// The checksum that a record carries: what the next one must name.
///
/// # Errors
/// [`FormatError::Length`] when there is no whole header.
pub fn record_crc(record: &[u8]) -> Result<u32, FormatError> {
    FormatError::at_least(Structure::Record, RECORD_HEADER_BYTES, record)?;
    Ok(u32_at(record, CRC_AT))
}

/// The body of the whole record whose header is `header`, as decoded from these bytes.
///
/// # Errors
/// [`FormatError`] when the record is cut short or its checksum is wrong.
pub fn verify_body<'a>(header: &RecordHeader, record: &'a [u8]) -> Result<&'a [u8], FormatError> {
    let structure = Structure::Record;
    check_lengths(header.length_bytes, header.body_bytes)?;
    FormatError::at_least(structure, header.length_bytes as usize, record)?;
    let record = &record[..header.length_bytes as usize];
    let crc = crc32c(&record[CRC_END..]);
    FormatError::checksum(structure, u32_at(record, CRC_AT), crc)?;
    Ok(&record[RECORD_HEADER_BYTES..][..header.body_bytes as usize])
}
