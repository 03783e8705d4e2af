//! Appending: where the next record goes, and the bytes that are to be written there.
//!
//! A record that does not fit between its place and the end of the ring is preceded by a filler,
//! a record without changes that takes what is left of the lap. Both are handed out together, as
//! two writes, so that the caller sees one step.
//!
//! The writer trusts its caller in one thing: writes are issued before it says in a later record
//! ([`Settled`]) that they are durable.

use disk::{AlignedBuf, SharedBuf};
use format::record::{
    BODY_BYTES_MAX, RecordHeader, RecordKind, Settled, encode_record, record_bytes,
};
use format::root::JournalPosition;
use format::units::{UUID_BYTES, UUID_PREFIX_BYTES, uuid_prefix};

use crate::error::AppendError;
use crate::ring::Ring;

/// One write to zone journal, of whole blocks.
#[derive(Clone, Debug)]
pub struct JournalWrite {
    /// In the zone.
    pub offset_bytes: u64,
    /// What to write there.
    pub buf: SharedBuf,
}

/// A record that was given its place.
#[derive(Clone, Debug)]
pub struct Appended {
    /// The record's, and before it the filler's if there is one. They may be done in any order.
    pub writes: Vec<JournalWrite>,
    /// Number of the record.
    pub sequence: u64,
}

/// The writing end of the journal.
#[derive(Debug)]
pub struct Writer {
    ring: Ring,
    uuid_prefix: [u8; UUID_PREFIX_BYTES],
    incarnation: u64,
    next: JournalPosition,
    tail_offset_bytes: u64,
}

impl Writer {
    /// Goes on at `next`, keeping what lies from `tail_offset_bytes` on. The incarnation is higher
    /// than that of any record before, unless those were all written by it.
    ///
    /// # Panics
    /// When the journal is not whole blocks, as for [`Ring::new`].
    #[must_use]
    pub fn resume(
        journal_bytes: u64,
        uuid: [u8; UUID_BYTES],
        next: JournalPosition,
        tail_offset_bytes: u64,
        incarnation: u64,
    ) -> Self {
        let ring = Ring::new(journal_bytes);
        Self { ring, uuid_prefix: uuid_prefix(uuid), incarnation, next, tail_offset_bytes }
    }

    /// Where the next record goes.
    #[must_use]
    pub fn next(&self) -> JournalPosition {
        self.next
    }

    /// From the tail to the next record.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.next.offset_bytes - self.tail_offset_bytes
    }

    /// From the next record to the tail of the lap before.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.ring.length_bytes().saturating_sub(self.used_bytes())
    }

    /// Whether a record with so many bytes of changes can be appended now.
    #[must_use]
    pub fn fits(&self, body_bytes: usize) -> bool {
        self.check_room(body_bytes).is_ok()
    }

    /// What lies before `offset_bytes` may be overwritten from now on; the tail never moves back,
    /// and not beyond the next record.
    pub fn release_to(&mut self, offset_bytes: u64) {
        let released = offset_bytes.min(self.next.offset_bytes);
        self.tail_offset_bytes = self.tail_offset_bytes.max(released);
    }

    /// Appends a record with these changes; `settled` tells recovery what is durable before it.
    ///
    /// # Errors
    /// [`AppendError`], and nothing has changed.
    pub fn append(&mut self, body: &[u8], settled: Settled) -> Result<Appended, AppendError> {
        let filler_bytes = self.check_room(body.len())?;
        let mut writes = Vec::with_capacity(2);
        if filler_bytes != 0 {
            writes.push(self.write(RecordKind::Filler, filler_bytes, &[], settled));
        }
        let sequence = self.next.sequence;
        let length_bytes = record_bytes(body.len());
        writes.push(self.write(RecordKind::Group, length_bytes, body, settled));
        Ok(Appended { writes, sequence })
    }

    /// Length of the filler that a record takes in front of it, if there is room for both.
    fn check_room(&self, body_bytes: usize) -> Result<usize, AppendError> {
        if body_bytes > BODY_BYTES_MAX {
            return Err(AppendError::TooLong { body_bytes });
        }
        let length_bytes = record_bytes(body_bytes) as u64;
        let left_bytes = self.ring.bytes_to_end(self.next.offset_bytes);
        let filler_bytes = if left_bytes < length_bytes { left_bytes } else { 0 };
        let needed_bytes = filler_bytes + length_bytes;
        let free_bytes = self.free_bytes();
        if needed_bytes > free_bytes {
            return Err(AppendError::Full { needed_bytes, free_bytes });
        }
        Ok(filler_bytes as usize)
    }

    fn write(
        &mut self,
        kind: RecordKind,
        length_bytes: usize,
        body: &[u8],
        settled: Settled,
    ) -> JournalWrite {
        let header = RecordHeader {
            length_bytes: length_bytes as u32,
            body_bytes: body.len() as u32,
            kind,
            incarnation: self.incarnation,
            sequence: self.next.sequence,
            previous_crc: self.next.previous_crc,
            settled,
            uuid_prefix: self.uuid_prefix,
        };
        let mut buf = AlignedBuf::new_stale(length_bytes);
        let crc = encode_record(&header, body, &mut buf);
        let offset_bytes = self.ring.place(self.next.offset_bytes);
        self.next = JournalPosition {
            sequence: self.next.sequence + 1,
            offset_bytes: self.next.offset_bytes + length_bytes as u64,
            previous_crc: crc,
        };
        JournalWrite { offset_bytes, buf: SharedBuf::from(buf) }
    }
}
