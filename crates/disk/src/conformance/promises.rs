//! Single promises: completions, zones, buffers, refusals, the doorbell, threads.

use std::collections::HashSet;
use std::thread;

use super::operations::{
    BLOCK, ZONE_BLOCKS, drain, expect_bytes, filled, read, run_one, sync, write,
};
use super::subject::Fresh;
use crate::buffer::{AlignedBuf, SharedBuf};
use crate::error::{ErrorClass, IoError};
use crate::io::{Io, IoKind};
use format::units::{BLOCK_BYTES, Zone};

/// More than any queue of a device holds.
const MANY: u64 = 4000;

pub(super) fn every_operation_completes_once(fresh: &mut Fresh<'_>) {
    let (mut disk, _doorbell) = fresh.disk();
    for block in 0..MANY {
        disk.submit(write(Zone::Tables, block, filled(1, block as u8), block));
    }
    assert_eq!(disk.in_flight(), MANY as usize, "what was submitted is in flight");
    let done = drain(&mut *disk);
    let tags: HashSet<_> = done.iter().map(|done| done.tag).collect();
    assert_eq!((done.len(), tags.len()), (MANY as usize, MANY as usize));
    assert!(done.iter().all(|done| done.result.is_ok() && done.zone == Zone::Tables));
    for block in 0..MANY {
        disk.submit(read(Zone::Tables, block, 1, block));
    }
    for done in drain(&mut *disk) {
        let Some(buf) = done.buf else { panic!("read {} gave no buffer back", done.tag) };
        assert!(buf.iter().all(|&byte| byte == done.tag as u8), "block {}", done.tag);
    }
}

pub(super) fn zones_are_apart(fresh: &mut Fresh<'_>) {
    let (mut disk, _doorbell) = fresh.disk();
    let zones = [Zone::Superblock, Zone::Journal, Zone::Tables, Zone::Data(0), Zone::Data(1)];
    for (tag, &zone) in zones.iter().enumerate() {
        disk.submit(write(zone, 3, filled(1, tag as u8 + 1), tag as u64));
    }
    assert!(drain(&mut *disk).iter().all(|done| done.result.is_ok()));
    for (tag, &zone) in zones.iter().enumerate() {
        expect_bytes(&mut *disk, zone, 3, 1, tag as u8 + 1);
        expect_bytes(&mut *disk, zone, 2, 1, 0);
    }
}

pub(super) fn parts_of_one_buffer_are_written_at_once(fresh: &mut Fresh<'_>) {
    let (mut disk, _doorbell) = fresh.disk();
    let mut buf = AlignedBuf::new_zeroed(2 * BLOCK_BYTES);
    buf[..BLOCK_BYTES].fill(1);
    buf[BLOCK_BYTES..].fill(2);
    let whole = SharedBuf::from(buf);
    disk.submit(write(Zone::Data(0), 3, whole.slice(0..BLOCK_BYTES), 1));
    disk.submit(write(Zone::Data(1), 3, whole.slice(BLOCK_BYTES..2 * BLOCK_BYTES), 2));
    drop(whole);
    assert!(drain(&mut *disk).iter().all(|done| done.result.is_ok()));
    expect_bytes(&mut *disk, Zone::Data(0), 3, 1, 1);
    expect_bytes(&mut *disk, Zone::Data(1), 3, 1, 2);
}

pub(super) fn a_large_operation_is_whole(fresh: &mut Fresh<'_>) {
    let (mut disk, _doorbell) = fresh.disk();
    let blocks = (20 << 20) / BLOCK_BYTES;
    let mut buf = AlignedBuf::new_zeroed(blocks * BLOCK_BYTES);
    for (number, block) in buf.chunks_mut(BLOCK_BYTES).enumerate() {
        block.fill(number as u8);
    }
    let buf = SharedBuf::from(buf);
    assert_eq!(run_one(&mut *disk, write(Zone::Data(1), 7, buf.clone(), 1)).result, Ok(()));
    assert_eq!(run_one(&mut *disk, sync(Zone::Data(1), 2)).result, Ok(()));
    let done = run_one(&mut *disk, read(Zone::Data(1), 7, blocks, 3));
    assert!(done.buf.is_some_and(|read| *read == *buf), "20 MiB come back as they were written");
}

pub(super) fn what_cannot_be_fails_and_comes_back(fresh: &mut Fresh<'_>) {
    let (mut disk, _doorbell) = fresh.disk();
    let odd = filled(1, 1).slice(0..512);
    type Fits = fn(&IoError) -> bool;
    let beyond: Fits = |error| matches!(error, IoError::OutOfRange { .. });
    let nowhere: Fits = |error| matches!(error, IoError::NoSuchZone { .. });
    let misaligned: Fits = |error| matches!(error, IoError::Misaligned { .. });
    let cases: [(Io, Fits); 5] = [
        (read(Zone::Data(0), ZONE_BLOCKS, 1, 1), beyond),
        (write(Zone::Data(0), ZONE_BLOCKS - 1, filled(2, 1), 2), beyond),
        (read(Zone::Data(9), 0, 1, 3), nowhere),
        (sync(Zone::Data(9), 4), nowhere),
        (write(Zone::Data(0), 0, odd, 5), misaligned),
    ];
    for (io, fits) in cases {
        let (tag, zone, offset_bytes) = (io.tag, io.zone, io.offset_bytes);
        let is_read = matches!(io.kind, IoKind::Read { .. });
        let done = run_one(&mut *disk, io);
        let error = done.result.as_ref().err();
        assert!(error.is_some_and(fits), "operation {tag} ended with {error:?}");
        assert!(error.is_some_and(|error| error.class() == ErrorClass::Permanent));
        let Some(failed) = done.failed else { panic!("failed operation {tag} comes back whole") };
        assert_eq!((failed.tag, failed.zone, failed.offset_bytes), (tag, zone, offset_bytes));
        assert_eq!(matches!(failed.kind, IoKind::Read { .. }), is_read);
    }
    assert_eq!((disk.size_bytes(Zone::Data(9)), disk.in_flight()), (0, 0));
    assert_eq!(disk.size_bytes(Zone::Data(0)), ZONE_BLOCKS * BLOCK);
}

pub(super) fn nothing_in_flight_means_nothing_to_wait_for(fresh: &mut Fresh<'_>) {
    let (mut disk, _doorbell) = fresh.disk();
    let mut done = Vec::new();
    disk.wait(&mut done);
    disk.poll(&mut done);
    assert!(done.is_empty(), "a disk with nothing in flight completes nothing");
}

pub(super) fn what_is_to_be_polled_rings(fresh: &mut Fresh<'_>) {
    let (mut disk, doorbell) = fresh.disk();
    for round in 0..200 {
        disk.submit(write(Zone::Data(0), round % ZONE_BLOCKS, filled(1, 1), round));
        if round % 10 == 0 {
            disk.submit(sync(Zone::Data(0), 1000 + round));
            disk.submit(sync(Zone::Data(9), 2000 + round));
        }
        let mut done = Vec::new();
        if round % 2 == 0 {
            disk.poll(&mut done);
        }
        while disk.in_flight() > 0 {
            assert!(doorbell.wait(Some(20_000)), "a completion did not ring the doorbell");
            disk.poll(&mut done);
        }
    }
}

pub(super) fn a_disk_moves_to_another_thread(fresh: &mut Fresh<'_>) {
    let (mut disk, _doorbell) = fresh.disk();
    let mover = thread::spawn(move || {
        for block in 0..500 {
            disk.submit(write(Zone::Tables, block, filled(1, 7), block));
        }
        // What has completed by then is lost with this list.
        let mut done = Vec::new();
        disk.poll(&mut done);
        (disk, done.len())
    });
    let Ok((mut disk, completed)) = mover.join() else { panic!("the other thread panicked") };
    let done = drain(&mut *disk);
    assert_eq!(done.len() + completed, 500);
    assert!(done.iter().all(|done| done.result.is_ok()));
    expect_bytes(&mut *disk, Zone::Tables, 0, 500, 7);
}
