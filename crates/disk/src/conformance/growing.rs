//! Growth: prepared beforehand, taken while operations are in flight.

use super::operations::{BLOCK, drain, expect_bytes, filled, run_one, write};
use super::subject::{Fresh, ZONES};
use crate::growth::{ForeignGrowth, ZoneGrowth};
use crate::io::Disk;
use format::units::Zone;

const LONGER: (Zone, u64) = (Zone::Data(1), 48 << 20);
const ADDED: (Zone, u64) = (Zone::Data(2), 16 << 20);

pub(super) fn a_disk_grows_while_it_works(fresh: &mut Fresh<'_>) {
    let (mut disk, _doorbell) = fresh.disk();
    for block in 0..200 {
        disk.submit(write(Zone::Tables, block, filled(1, 5), block));
    }
    let Some(growth) = fresh.subject.prepare_growth(&[LONGER, ADDED]) else { return };
    assert_eq!(disk.size_bytes(ADDED.0), 0, "what is only prepared is not there yet");
    assert_eq!(disk.grow(growth), Ok(()));
    for (zone, size_bytes) in [LONGER, ADDED] {
        assert_eq!(disk.size_bytes(zone), size_bytes, "{zone:?} after the growth");
        let last = size_bytes / BLOCK - 1;
        expect_bytes_amid(&mut *disk, zone, last);
    }
    for (zone, size_bytes) in ZONES.into_iter().filter(|(zone, _)| *zone != LONGER.0) {
        assert_eq!(disk.size_bytes(zone), size_bytes, "{zone:?} has not grown");
    }
    expect_bytes(&mut *disk, Zone::Tables, 0, 200, 5);
    // A store that cannot use the added zone leaves it, and the rest goes on.
    disk.release_data_zones(2);
    expect_bytes(&mut *disk, LONGER.0, LONGER.1 / BLOCK - 1, 1, 6);
    assert_eq!(disk.grow(ZoneGrowth::default()), Ok(()), "a growth that prepared nothing");
}

/// Writes the block and reads it, whatever else is in flight.
fn expect_bytes_amid(disk: &mut dyn Disk, zone: Zone, block: u64) {
    assert!(drain(disk).iter().all(|done| done.result.is_ok()), "operations during the growth");
    assert_eq!(run_one(disk, write(zone, block, filled(1, 6), 1)).result, Ok(()));
    expect_bytes(disk, zone, block, 1, 6);
}

pub(super) fn a_growth_of_another_kind_is_refused(fresh: &mut Fresh<'_>) {
    #[derive(Clone)]
    struct OfAnother;
    let (mut disk, _doorbell) = fresh.disk();
    assert_eq!(disk.grow(ZoneGrowth::of(OfAnother)), Err(ForeignGrowth));
    for (zone, size_bytes) in ZONES {
        assert_eq!(disk.size_bytes(zone), size_bytes, "{zone:?} after a refused growth");
    }
}
