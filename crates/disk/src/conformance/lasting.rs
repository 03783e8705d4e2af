//! What is durable, and when.

use super::operations::{drain, expect_bytes, filled, run_one, sync, write};
use super::subject::Fresh;
use format::units::Zone;

/// Even: its writes are durable when they complete.
const DURABLE: u64 = 2;
/// Odd: its writes are durable after a sync.
const PLAIN: u64 = 3;

/// Writes whose sync has completed and durable writes are there again; a zone that was not synced
/// may hold anything where it was written, and keeps what it held elsewhere.
pub(super) fn what_was_made_durable_is_there_again(fresh: &mut Fresh<'_>) {
    let (mut disk, _doorbell) = fresh.disk();
    assert_eq!(run_one(&mut *disk, write(Zone::Journal, 0, filled(2, 1), DURABLE)).result, Ok(()));
    for block in 0..300 {
        disk.submit(write(Zone::Tables, block, filled(1, 9), 2 * block + PLAIN));
    }
    assert!(drain(&mut *disk).iter().all(|done| done.result.is_ok()));
    assert_eq!(run_one(&mut *disk, sync(Zone::Tables, 1)).result, Ok(()));
    assert_eq!(run_one(&mut *disk, write(Zone::Data(0), 5, filled(1, 4), PLAIN)).result, Ok(()));
    drop(disk);
    let Some(mut disk) = fresh.reopened() else { return };
    expect_bytes(&mut *disk, Zone::Journal, 0, 2, 1);
    expect_bytes(&mut *disk, Zone::Tables, 0, 300, 9);
    expect_bytes(&mut *disk, Zone::Data(0), 4, 1, 0);
}
