//! Whether zone journal holds this store's journal, and as much of it as the newest root counts on.
//! See [`crate::open::belonging`].
//!
//! That a store was opened behind its newest root stands in the journal only. With another ring in
//! its place no record is met behind that root, which is how a store looks that was closed: it
//! would open without all that was flushed since, and write over what the right ring names.
//!
//! 1. A record that follows the root names the one before it: the ring is the right one. So it is
//!    if the record that the root says was the last one stands in front of it, or a later one
//!    anywhere.
//! 2. If there is neither, but some record of ours, the ring is an *older* copy, or was abandoned
//!    for another by a repair; or the last records have rotted. Then something stands where they
//!    were, and no whole record begins there; in an older copy there are records of the lap before,
//!    or nothing at all.
//! 3. A store whose newest root is not its first has written records, one whose zones were marked
//!    has its mark until its first record, and the ring was zeros before. If there is no record of
//!    ours, of whatever lap, and no mark, the ring is another's where something else says whose it
//!    is, where it is blank, and where more stands that is no record of ours than rot leaves of
//!    records. A block that the device does not give might be one of ours.
//!
//! A repair of a ring that was not lost leaves roots that name no last record; of those any record
//! of ours is enough, until the next checkpoint.

use disk::{AlignedBuf, IoError};
use format::BLOCK_BYTES;
use format::record::{RECORD_BYTES_MAX, RecordHeader, record_crc};
use format::root::JournalPosition;
use format::superblock::Geometry;
use format::units::{Zone, uuid_prefix};

use crate::holds::Holds;
use crate::marks::{Marked, marked};
use crate::open::belonging::PLACES_MIN;
use crate::open::loading::Loading;
use crate::repair::damage_reads::{DamageReads, read_blocks};
use crate::repair::journal_image::{Behind, look_behind, records_fill, whole_record};
use crate::repair::survey::Survey;

/// In front of a root's position a record ends: with it, and one more, if that has rotted.
const LOOK_BACK_BYTES: u64 = 2 * RECORD_BYTES_MAX as u64;

impl Loading {
    /// What stands in zone journal, if that is another's. No record follows the newest root, whose
    /// position is `root`; `behind` is what stands behind it.
    pub(crate) fn holds_instead_of_journal(
        &mut self,
        geometry: &Geometry,
        root: JournalPosition,
        behind: Behind,
    ) -> Option<Holds> {
        let devices = &mut self.devices;
        let (mark, should_hold) =
            (marked(devices, geometry, Zone::Journal), should_hold(geometry, root));
        let mut is_read = true;
        let mut read = |at_bytes, length_bytes| {
            let (bytes, failed) = read_blocks(devices, Zone::Journal, at_bytes, length_bytes);
            is_read &= failed.is_empty();
            bytes
        };
        let front = Front::of(geometry, root, &mut read);
        let is_known = match (front, &mark) {
            (Front::Last, _) | (Front::Unknown, Marked::Ours | Marked::Unread) => true,
            (Front::Unknown, Marked::No) => behind.is_ours() || !should_hold,
            (Front::Unknown, Marked::Other(_)) => behind.is_ours(),
            (Front::Rot | Front::Other, _) => false,
        };
        if is_known {
            return None;
        }
        let ring = look_behind(geometry, 0, geometry.journal_bytes, &mut read);
        judge(ring, front, mark, root, should_hold).filter(|_| is_read)
    }
}

impl Survey {
    /// What stands in zone journal, if that is another's.
    pub(crate) fn holds_instead_of_journal(&self, reads: &mut DamageReads) -> Option<Holds> {
        let is_journal = |error: &IoError| {
            matches!(error, IoError::Failed { zone, .. } | IoError::Lost { zone, .. }
                if *zone == Zone::Journal)
        };
        let (geometry, (newest, _)) = (&self.geometry, self.by_age());
        let root = newest.root.journal;
        if newest.journal.end != root || reads.failed.iter().any(is_journal) {
            return None;
        }
        let front = Front::of(geometry, root, |at_bytes, length_bytes| {
            reads.read(Zone::Journal, at_bytes, length_bytes)
        });
        let mark = marked(&mut reads.devices, geometry, Zone::Journal);
        let mut roots = [Some(&self.base), self.other.as_ref()].into_iter().flatten();
        let should_hold = roots.any(|image| should_hold(geometry, image.root.journal));
        judge(newest.journal.behind, front, mark, root, should_hold)
    }
}

/// Whether something of this store is in its ring: a record before this root, or the mark.
fn should_hold(geometry: &Geometry, root: JournalPosition) -> bool {
    root.sequence > 1 || geometry.marked
}

/// What stands in a ring, if that is another's; `ring` is what stands in all of it.
fn judge(
    ring: Behind,
    front: Front,
    mark: Marked,
    root: JournalPosition,
    should_hold: bool,
) -> Option<Holds> {
    let is_rot = (1..PLACES_MIN as u64).contains(&ring.strange_blocks);
    let is_older = front == Front::Other && ring.last_sequence < root.sequence;
    match mark {
        _ if ring.is_ours() => is_older.then_some(Holds::Older),
        Marked::Other(holds) => Some(holds),
        // No record has been written over it.
        Marked::Ours => is_older.then_some(Holds::Older),
        Marked::No if !should_hold => None,
        Marked::No if ring.is_others => Some(Holds::OtherStore),
        Marked::No if !is_rot => Some(Holds::Nothing),
        Marked::No | Marked::Unread => None,
    }
}

/// What a ring has in front of a root.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Front {
    /// The record that the root was written behind.
    Last,
    /// What rot may have left of that.
    Rot,
    /// Neither.
    Other,
    /// The root does not say which record that was: it is the first one, or a repair wrote it.
    Unknown,
}

impl Front {
    /// `read` gives zeros for what it cannot read.
    fn of(
        geometry: &Geometry,
        root: JournalPosition,
        mut read: impl FnMut(u64, usize) -> AlignedBuf,
    ) -> Self {
        if root.previous_crc == 0 {
            return Self::Unknown;
        }
        let ring_bytes = geometry.journal_bytes;
        let length_bytes = LOOK_BACK_BYTES.min(ring_bytes);
        let end_bytes = root.offset_bytes % ring_bytes;
        let before_bytes = length_bytes.saturating_sub(end_bytes);
        let parts = [
            (ring_bytes - before_bytes, before_bytes),
            (end_bytes.saturating_sub(length_bytes), length_bytes - before_bytes),
        ];
        let parts = parts.into_iter().filter(|(_, part_bytes)| *part_bytes > 0);
        let bytes: Vec<u8> = parts
            .flat_map(|(from_bytes, part_bytes)| read(from_bytes, part_bytes as usize).to_vec())
            .collect();
        Self::in_front(geometry, root, &bytes)
    }

    /// These bytes end where the root goes on.
    fn in_front(geometry: &Geometry, root: JournalPosition, bytes: &[u8]) -> Self {
        let (mut last_begin, mut near_end) = (None, 0);
        for start in (0..bytes.len()).step_by(BLOCK_BYTES) {
            let record = bytes.get(start..).unwrap_or_default();
            let Ok((header, _)) = whole_record(record) else { continue };
            if header.uuid_prefix != uuid_prefix(geometry.uuid) {
                continue;
            }
            last_begin = Some(start);
            let end = start + header.length_bytes as usize;
            match records_between(&header, root, bytes.len() - end) {
                Some(0) if record_crc(record) == Ok(root.previous_crc) => return Self::Last,
                Some(1..) => near_end = end,
                _ => {}
            }
        }
        let missing = bytes.get(near_end..).unwrap_or_default();
        let is_blank = missing.iter().all(|&byte| byte == 0);
        let is_overwritten = last_begin.is_some_and(|start| start >= near_end);
        if is_overwritten || is_blank { Self::Other } else { Self::Rot }
    }
}

/// How many records are missing between this one and a root that goes on `between_bytes` behind it;
/// none if so many do not come to so many bytes.
fn records_between(
    header: &RecordHeader,
    root: JournalPosition,
    between_bytes: usize,
) -> Option<u64> {
    let records = root.sequence.checked_sub(header.sequence)?.checked_sub(1)?;
    records_fill(records, between_bytes as u64).then_some(records)
}

#[cfg(test)]
mod tests;
