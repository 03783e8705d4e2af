//! Classes of errors, and that an operation which failed can be submitted again.

use super::operations::{BLOCK, expect_bytes, filled, read, run_one, sync, write};
use super::subject::Fresh;
use crate::error::ErrorClass;
use crate::io::Disk;
use format::units::Zone;

/// The zone whose medium is made to refuse.
const ZONE: Zone = Zone::Data(0);

pub(super) fn errors_have_classes_and_heal(fresh: &mut Fresh<'_>) {
    use ErrorClass::{Fenced, NoSpace, Permanent, Transient};
    for class in [Transient, NoSpace, Fenced, Permanent] {
        let (mut disk, _doorbell) = fresh.disk();
        assert_eq!(run_one(&mut *disk, write(ZONE, 8, filled(1, 2), 1)).result, Ok(()));
        if !fresh.subject.refuse_with(class) {
            continue;
        }
        if fresh.subject.shows(class) {
            expect_class(&mut *disk, class);
        }
        fresh.subject.heal();
        expect_bytes(&mut *disk, ZONE, 8, 1, 2);
    }
}

fn expect_class(disk: &mut dyn Disk, class: ErrorClass) {
    let reads_fail = class != ErrorClass::NoSpace;
    let read_ended = run_one(disk, read(ZONE, 8, 1, 3)).result.map_err(|error| error.class());
    assert_eq!(read_ended, if reads_fail { Err(class) } else { Ok(()) }, "a read");
    if reads_fail {
        let synced = run_one(disk, sync(ZONE, 4)).result.map_err(|error| error.class());
        assert_eq!(synced, Err(class), "a sync");
    }
    for tag in [5, 6] {
        let done = run_one(disk, write(ZONE, 20 + tag, filled(1, 3), tag));
        assert_eq!(done.result.map_err(|error| error.class()), Err(class), "a write");
        let failed = done.failed.map(|io| (io.tag, io.zone, io.offset_bytes));
        assert_eq!(failed, Some((tag, ZONE, (20 + tag) * BLOCK)), "the operation comes back");
    }
}
