//! The journal as a check sees it: where it ends, and whether it should have gone on.
//!
//! A journal ends at the first record that does not continue it, and after a crash that is how it
//! must be. But a record says which record was durable when it was written. If one is found behind
//! the end that says so of what is missing, then what is missing was synced, was never cut (a cut
//! falls behind the last known sync), and has been damaged since. A damaged root that can still be
//! seen to go on behind the end says the same: what is before it was durable when it was written.
//!
//! Where the file was cut short before or within the next record, nobody knows whether there was
//! one.

use disk::AlignedBuf;
use format::record::{RECORD_BYTES_MAX, RecordHeader, Settled, decode_header, verify_body};
use format::root::JournalPosition;
use format::superblock::Geometry;
use format::units::{Zone, uuid_prefix};
use format::{BLOCK_BYTES, FormatError};
use journal::{Replay, ReplayRecord, ReplayStep};

use crate::repair::damage_reads::DamageReads;

/// How far behind the end an opening looks for what should not be there: more than the damage of
/// some blocks can hide. A check looks through the whole ring.
pub(crate) const LOOK_AHEAD_BYTES: u64 = 8 << 20;

/// Blocks that are looked through at a time.
const PIECE_BYTES: u64 = 4 << 20;

/// Of a ring, what is read at once when its records are gone through.
const AHEAD_PART: u64 = 64;

/// What stands behind the end of a journal.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Behind {
    /// The highest sequence known to have been durable; 0 if none is.
    pub(crate) durable_sequence: u64,
    /// The highest sequence of any whole record; 0 if there is none.
    pub(crate) last_sequence: u64,
    /// Whether there is a whole record of another store.
    pub(crate) is_others: bool,
    /// Blocks that are not zeros and with which no whole record begins.
    pub(crate) strange_blocks: u64,
}

/// Looks through `length_bytes` of the ring from `offset_bytes` on. `read` gives zeros for what it
/// cannot read.
pub(crate) fn look_behind(
    geometry: &Geometry,
    offset_bytes: u64,
    length_bytes: u64,
    read: impl FnMut(u64, usize) -> AlignedBuf,
) -> Behind {
    let mut behind = Behind::default();
    each_block(geometry, offset_bytes, length_bytes, read, |bytes| match whole_record(bytes) {
        Ok((header, _)) if header.uuid_prefix == uuid_prefix(geometry.uuid) => {
            let durable_sequence = header.settled.durable_sequence;
            behind.durable_sequence = behind.durable_sequence.max(durable_sequence);
            behind.last_sequence = behind.last_sequence.max(header.sequence);
        }
        Ok(_) => behind.is_others = true,
        Err(_) => behind.strange_blocks += 1,
    });
    behind
}

/// Hands out what begins with each block of `length_bytes` of the ring from `offset_bytes` on that
/// is not zeros, as far as a record may reach.
fn each_block(
    geometry: &Geometry,
    offset_bytes: u64,
    length_bytes: u64,
    mut read: impl FnMut(u64, usize) -> AlignedBuf,
    mut look: impl FnMut(&[u8]),
) {
    let ring_bytes = geometry.journal_bytes;
    let mut at = offset_bytes % ring_bytes;
    let mut left_bytes = length_bytes.min(ring_bytes);
    while left_bytes > 0 {
        let piece_bytes = PIECE_BYTES.min(left_bytes).min(ring_bytes - at);
        let more_bytes = (piece_bytes + RECORD_BYTES_MAX as u64).min(ring_bytes - at);
        let bytes = read(at, more_bytes as usize);
        let starts = (0..piece_bytes as usize).step_by(BLOCK_BYTES);
        let begun = starts.map_while(|start| bytes.get(start..));
        begun.filter(|rest| !rest.starts_with(&[0; BLOCK_BYTES])).for_each(&mut look);
        left_bytes -= piece_bytes;
        at = (at + piece_bytes) % ring_bytes;
    }
}

/// Hands out header and body of each whole record of this store in the ring, wherever it stands.
pub(crate) fn each_whole_record(
    reads: &mut DamageReads,
    geometry: &Geometry,
    mut look: impl FnMut(&RecordHeader, &[u8]),
) {
    let read = |at, length| reads.read(Zone::Journal, at, length);
    each_block(geometry, 0, geometry.journal_bytes, read, |bytes| match whole_record(bytes) {
        Ok((header, body)) if header.uuid_prefix == uuid_prefix(geometry.uuid) => {
            look(&header, body);
        }
        Ok(_) | Err(_) => (), // Another store's, or none.
    });
}

/// The whole record that begins here, of whatever store: its header and its body.
pub(crate) fn whole_record(bytes: &[u8]) -> Result<(RecordHeader, &[u8]), FormatError> {
    let header = decode_header(bytes)?;
    let body = verify_body(&header, bytes)?;
    Ok((header, body))
}

/// The last of the records that are missing between the end of a journal and where a damaged root
/// goes on; none if it goes on elsewhere, or its position has rotted as well.
pub(crate) fn last_missing(end: JournalPosition, told: JournalPosition) -> Option<u64> {
    let records = told.sequence.checked_sub(end.sequence).filter(|&records| records > 0)?;
    let between_bytes = told.offset_bytes.checked_sub(end.offset_bytes)?;
    records_fill(records, between_bytes).then(|| told.sequence - 1)
}

/// Whether so many records may come to so many bytes.
pub(crate) fn records_fill(records: u64, bytes: u64) -> bool {
    let at_least = records.saturating_mul(BLOCK_BYTES as u64);
    let at_most = records.saturating_mul(RECORD_BYTES_MAX as u64);
    (at_least..=at_most).contains(&bytes)
}

/// Where a journal that starts at a root goes.
#[derive(Clone, Debug, Default)]
pub(crate) struct JournalImage {
    pub(crate) end: JournalPosition,
    pub(crate) incarnation: u64,
    /// What is known to be durable: by the records up to the end, those behind it, and a newer
    /// root.
    pub(crate) settled: Settled,
    pub(crate) behind: Behind,
    /// Whether what stood at the end went with the end of the file: more records may have followed.
    pub(crate) is_cut_short: bool,
}

impl Behind {
    /// Whether there is a whole record of this store.
    pub(crate) fn is_ours(&self) -> bool {
        self.last_sequence > 0
    }

    /// What stands anywhere in the ring.
    pub(crate) fn whole_ring(reads: &mut DamageReads, geometry: &Geometry) -> Self {
        look_behind(geometry, 0, geometry.journal_bytes, |at, length| {
            reads.read(Zone::Journal, at, length)
        })
    }
}

impl JournalImage {
    /// Reads the journal on from a root; `told` is where it goes on behind a damaged one.
    pub(crate) fn read(
        reads: &mut DamageReads,
        geometry: &Geometry,
        from: JournalPosition,
        behind: Behind,
        told: Option<JournalPosition>,
    ) -> Self {
        let mut image = Self { end: from, behind, ..Self::default() };
        image.proven_up_to(behind.durable_sequence);
        each_record(reads, geometry, from, |_, record, end| {
            image.end = end;
            image.incarnation = image.incarnation.max(record.incarnation);
            image.settled.learn(record.settled);
            if told == Some(end) {
                image.proven_up_to(record.sequence);
            }
            true
        });
        if let Some(last) = told.and_then(|told| last_missing(image.end, told)) {
            image.proven_up_to(last);
        }
        image.is_cut_short = is_cut_short(reads, geometry, image.end);
        image
    }

    /// Records up to this one are known to have been durable, with their frames: what is missing of
    /// them has been damaged since.
    pub(crate) fn proven_up_to(&mut self, sequence: u64) {
        let (durable, behind) =
            (&mut self.settled.durable_sequence, &mut self.behind.durable_sequence);
        *durable = sequence.max(*durable);
        *behind = sequence.max(*behind);
    }

    /// Whether a record that was durable is missing at the end.
    pub(crate) fn is_damaged(&self) -> bool {
        self.behind.durable_sequence >= self.end.sequence
    }

    /// Records behind the end that cannot be applied; none where the end is the journal's own.
    pub(crate) fn lost_records(&self) -> u64 {
        let may_be_lost = self.is_damaged() || self.is_cut_short;
        if may_be_lost { (self.last_sequence() + 1).saturating_sub(self.end.sequence) } else { 0 }
    }

    /// The last record that there is known to have been, applied or not.
    pub(crate) fn last_sequence(&self) -> u64 {
        let before_end = self.end.sequence.saturating_sub(1);
        self.behind.last_sequence.max(self.behind.durable_sequence).max(before_end)
    }
}

/// Whether the block in which the next record would begin went with the end of the file, or the
/// record begins there and goes on behind what is left.
fn is_cut_short(reads: &mut DamageReads, geometry: &Geometry, end: JournalPosition) -> bool {
    let left_bytes = reads.journal_bytes() / BLOCK_BYTES as u64 * BLOCK_BYTES as u64;
    let place = end.offset_bytes % geometry.journal_bytes;
    if left_bytes >= geometry.journal_bytes {
        return false;
    }
    let is_gone = |length_bytes: u64| place + length_bytes > left_bytes;
    is_gone(BLOCK_BYTES as u64)
        || decode_header(&reads.read(Zone::Journal, place, BLOCK_BYTES)).is_ok_and(|next| {
            next.sequence >= end.sequence && is_gone(u64::from(next.length_bytes))
        })
}

/// Hands out the records from a position on, each with the position behind it, until `look` says
/// that it has seen enough.
pub(crate) fn each_record(
    reads: &mut DamageReads,
    geometry: &Geometry,
    from: JournalPosition,
    mut look: impl FnMut(&mut DamageReads, ReplayRecord, JournalPosition) -> bool,
) {
    let mut replay = Replay::new(geometry.journal_bytes, geometry.uuid, from);
    replay.read_ahead(PIECE_BYTES.min(geometry.journal_bytes / AHEAD_PART) as usize);
    let mut step = replay.buffered();
    loop {
        match step {
            Some(ReplayStep::Record(record)) => {
                let end = replay.position();
                if !look(reads, record, end) {
                    return;
                }
                step = replay.buffered();
            }
            Some(ReplayStep::End(_)) => return,
            Some(ReplayStep::More) | None => {
                let (offset_bytes, length_bytes) = replay.needs();
                step = Some(replay.feed(&reads.read(Zone::Journal, offset_bytes, length_bytes)));
            }
        }
    }
}
