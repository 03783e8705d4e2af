//! Whether zone journal holds this store's journal. See [`crate::belonging`].
//!
//! That a store was opened behind its newest root stands in the journal only. With another ring in
//! its place no record is met behind that root, which is how a store looks that was closed: it
//! would open without all that was flushed since, and write over what the right ring names.
//!
//! A store whose newest root is not its first has written records, and its ring was zeros before.
//! So one whole record of ours, of whatever lap, or our mark, and the ring is ours. If there is
//! none, the ring is another's where something else says whose it is, where it is blank, and where
//! more stands that is no record of ours than rot leaves of records. A block that the device does
//! not give might be a record of ours.

use disk::{IoError, ZoneName};
use format::mark::Mark;
use format::record::RECORD_BYTES_MAX;
use format::root::JournalPosition;
use format::superblock::Geometry;
use format::units::Zone;

use crate::belonging::PLACES_MIN;
use crate::devices::Devices;
use crate::holds::Holds;
use crate::loading::Loading;
use crate::marks::read_mark;
use crate::repair::damage_reads::{DamageReads, read_blocks};
use crate::repair::journal_image::{Behind, look_behind};
use crate::repair::survey::Survey;

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
        if !has_records(root) {
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
        if is_read { judge(&mut self.devices, geometry, ring) } else { None }
    }
}

impl Survey {
    /// What stands in zone journal, if that is another's.
    pub(crate) fn holds_instead_of_journal(&self, reads: &mut DamageReads) -> Option<Holds> {
        let images = [Some(&self.base), self.other.as_ref()].into_iter().flatten();
        let has_records = images.map(|image| image.root.journal).any(has_records);
        let is_journal = |error: &IoError| {
            matches!(error, IoError::Failed { zone, .. } | IoError::Lost { zone, .. }
                if *zone == Zone::Journal)
        };
        if !has_records || reads.failed.iter().any(is_journal) {
            return None;
        }
        judge(&mut reads.devices, &self.geometry, self.base.journal.behind)
    }
}

/// Whether a store has written to its ring before this root.
fn has_records(root: JournalPosition) -> bool {
    root.sequence > 1
}

/// What stands in a ring that should not be blank, if it is another's; `ring` is all of it.
fn judge(devices: &mut Devices, geometry: &Geometry, ring: Behind) -> Option<Holds> {
    if ring.is_ours() {
        return None;
    }
    match read_mark(devices, Zone::Journal).ok()? {
        Some(Mark { uuid, .. }) if uuid != geometry.uuid => Some(Holds::OtherStore),
        Some(Mark { zone: Zone::Journal, .. }) => None,
        Some(Mark { zone, .. }) => Some(Holds::OtherZone(ZoneName(zone).to_string())),
        None if ring.is_others => Some(Holds::OtherStore),
        None => {
            let is_rot = (1..PLACES_MIN as u64).contains(&ring.strange_blocks);
            (!is_rot).then_some(Holds::Nothing)
        }
    }
}
