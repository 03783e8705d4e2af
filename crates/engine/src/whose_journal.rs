//! Whether zone journal holds this store's journal. See [`crate::belonging`].
//!
//! That a store was opened behind its newest root stands in the journal only. With another ring in
//! its place no record is met behind that root, which is how a store looks that was closed: it
//! would open without all that was flushed since, and write over what the right ring names.
//!
//! A store whose newest root is not its first has written records, one whose zones were marked has
//! its mark until its first record, and the ring was zeros before. So one whole record of ours, of
//! whatever lap, or our mark, and the ring is ours. If there is none, the ring is another's where
//! something else says whose it is, where it is blank, and where more stands that is no record of
//! ours than rot leaves of records. A block that the device does not give might be one of ours.

use crate::belonging::PLACES_MIN;
use crate::holds::Holds;
use crate::loading::Loading;
use crate::marks::{Marked, marked};
use crate::repair::damage_reads::{DamageReads, read_blocks};
use crate::repair::journal_image::{Behind, look_behind};
use crate::repair::survey::Survey;
use disk::IoError;
use format::record::RECORD_BYTES_MAX;
use format::root::JournalPosition;
use format::superblock::Geometry;
use format::units::Zone;

/// In front of a root's position a record ends: with it, and some more, if that has rotted.
const LOOK_BACK_BYTES: u64 = 2 * RECORD_BYTES_MAX as u64;

impl Loading {
    /// What stands in zone journal, if that is another's. Neither behind the newest root, whose
    /// position is `root`, nor behind the journal's end was a record of ours.
    pub(crate) fn holds_instead_of_journal(
        &mut self,
        geometry: &Geometry,
        root: JournalPosition,
    ) -> Option<Holds> {
        let mark = marked(&mut self.devices, geometry, Zone::Journal);
        let is_known = match mark {
            Marked::Ours | Marked::Unread => true,
            Marked::No => !should_hold(geometry, root),
            Marked::Other(_) => false,
        };
        if is_known {
            return None;
        }
        let mut is_read = true;
        let mut look = |from_bytes, length_bytes| {
            look_behind(geometry, from_bytes, length_bytes, |at_bytes, length_bytes| {
                let devices = &mut self.devices;
                let (bytes, failed) = read_blocks(devices, Zone::Journal, at_bytes, length_bytes);
                is_read &= failed.is_empty();
                bytes
            })
        };
        let before = look(root.offset_bytes.saturating_sub(LOOK_BACK_BYTES), LOOK_BACK_BYTES);
        if before.is_ours() {
            return None;
        }
        let ring = look(0, geometry.journal_bytes);
        judge(ring, mark, should_hold(geometry, root)).filter(|_| is_read)
    }
}

impl Survey {
    /// What stands in zone journal, if that is another's.
    pub(crate) fn holds_instead_of_journal(&self, reads: &mut DamageReads) -> Option<Holds> {
        let is_journal = |error: &IoError| {
            matches!(error, IoError::Failed { zone, .. } | IoError::Lost { zone, .. }
                if *zone == Zone::Journal)
        };
        if reads.failed.iter().any(is_journal) {
            return None;
        }
        let geometry = &self.geometry;
        let mark = marked(&mut reads.devices, geometry, Zone::Journal);
        let mut roots = [Some(&self.base), self.other.as_ref()].into_iter().flatten();
        let should_hold = roots.any(|image| should_hold(geometry, image.root.journal));
        judge(self.base.journal.behind, mark, should_hold)
    }
}

/// Whether something of this store is in its ring: a record before this root, or the mark.
fn should_hold(geometry: &Geometry, root: JournalPosition) -> bool {
    root.sequence > 1 || geometry.marked
}

/// What stands in a ring, if that is another's; `ring` is what stands in all of it.
fn judge(ring: Behind, mark: Marked, should_hold: bool) -> Option<Holds> {
    if ring.is_ours() {
        return None;
    }
    let is_rot = (1..PLACES_MIN as u64).contains(&ring.strange_blocks);
    match mark {
        Marked::Other(holds) => Some(holds),
        Marked::No if !should_hold => None,
        Marked::No if ring.is_others => Some(Holds::OtherStore),
        Marked::No if !is_rot => Some(Holds::Nothing),
        Marked::No | Marked::Ours | Marked::Unread => None,
    }
}
