//! The implementation under test, and the disks that it makes.

use format::units::Zone;

use super::operations::{BLOCK, ZONE_BLOCKS};
use crate::doorbell::Doorbell;
use crate::error::ErrorClass;
use crate::growth::ZoneGrowth;
use crate::io::Disk;
use crate::layout::SUPERBLOCK_BYTES;

/// The zones that a subject is made with.
pub(super) const ZONES: [(Zone, u64); 5] = [
    (Zone::Superblock, SUPERBLOCK_BYTES),
    (Zone::Journal, ZONE_BLOCKS * BLOCK),
    (Zone::Tables, 4096 * BLOCK),
    (Zone::Data(0), ZONE_BLOCKS * BLOCK),
    (Zone::Data(1), 32 << 20),
];

/// An implementation of [`Disk`], as the suite sees it.
pub trait Subject {
    /// A disk with zones of these sizes in bytes, all zeros, whose completions ring `doorbell`. The
    /// disk made before is dropped by then.
    fn make(&mut self, zones: &[(Zone, u64)], doorbell: &Doorbell) -> Box<dyn Disk>;

    /// Prepares a growth of the disk made last: zones that get these lengths, or are new. None when
    /// the implementation cannot grow.
    fn prepare_growth(&mut self, zones: &[(Zone, u64)]) -> Option<ZoneGrowth> {
        let _ = zones;
        None
    }

    /// Opens what the disk made last has left behind: after a loss of power if the implementation
    /// can play one, else after a drop. None when nothing is left.
    fn reopen(&mut self, doorbell: &Doorbell) -> Option<Box<dyn Disk>> {
        let _ = doorbell;
        None
    }

    /// From now on the medium refuses what an error of this class can come of, until
    /// [`Subject::heal`]. False when the implementation cannot be made to.
    fn refuse_with(&mut self, class: ErrorClass) -> bool {
        let _ = class;
        false
    }

    /// The medium works again.
    fn heal(&mut self) {}

    /// Whether errors of this class reach the disk's owner; a disk that tries again what fails for
    /// a passing reason gives another class.
    fn shows(&self, class: ErrorClass) -> bool {
        let _ = class;
        true
    }
}

/// Makes disks for one check.
pub(super) struct Fresh<'a> {
    pub(super) subject: &'a mut dyn Subject,
}

impl Fresh<'_> {
    pub(super) fn disk(&mut self) -> (Box<dyn Disk>, Doorbell) {
        let Ok(doorbell) = Doorbell::new() else { panic!("the system has no eventfd left") };
        (self.subject.make(&ZONES, &doorbell), doorbell)
    }

    pub(super) fn reopened(&mut self) -> Option<Box<dyn Disk>> {
        let Ok(doorbell) = Doorbell::new() else { panic!("the system has no eventfd left") };
        self.subject.reopen(&doorbell)
    }
}
