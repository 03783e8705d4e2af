//! The memory disk does to its owner what its story says, and only that.

use format::units::{BLOCK_BYTES, Zone};

use super::{Fault, MemoryDisk};
use crate::buffer::AlignedBuf;
use crate::error::{IoError, Verb};
use crate::io::{Completion, Disk, Io, IoKind};

const BLOCK: u64 = BLOCK_BYTES as u64;
const TABLES: Zone = Zone::Tables;

fn disk(seed: u64) -> MemoryDisk {
    MemoryDisk::new(&[(Zone::Journal, 64 * BLOCK), (TABLES, 1 << 50)], seed)
}

fn write(block: u64, byte: u8) -> Io {
    let mut buf = AlignedBuf::new_zeroed(BLOCK_BYTES);
    buf.fill(byte);
    let kind = IoKind::Write { buf: buf.into(), durable: false };
    Io { zone: TABLES, offset_bytes: block * BLOCK, kind, tag: block }
}

impl Io {
    fn made_durable(mut self) -> Self {
        if let IoKind::Write { durable, .. } = &mut self.kind {
            *durable = true;
        }
        self
    }
}

fn read(block: u64) -> Io {
    let kind = IoKind::Read { buf: AlignedBuf::new_zeroed(BLOCK_BYTES) };
    Io { zone: TABLES, offset_bytes: block * BLOCK, kind, tag: block }
}

fn sync() -> Io {
    Io { zone: TABLES, offset_bytes: 0, kind: IoKind::Sync, tag: 999 }
}

fn drain(disk: &mut MemoryDisk) -> Vec<Completion> {
    let mut done = Vec::new();
    while disk.in_flight() > 0 {
        disk.wait(&mut done);
    }
    done
}

fn run(disk: &mut MemoryDisk, ios: impl IntoIterator<Item = Io>) -> Vec<Completion> {
    for io in ios {
        disk.submit(io);
    }
    drain(disk)
}

fn holds(disk: &MemoryDisk, block: u64, byte: u8) -> bool {
    disk.peek(TABLES, block * BLOCK, BLOCK_BYTES).iter().all(|&held| held == byte)
}

#[test]
fn a_seed_tells_the_order_of_completion() {
    let order = |seed| -> Vec<u64> {
        let done = run(&mut disk(seed), (0..20).map(|block| write(block, 1)));
        done.iter().map(|completion| completion.tag).collect()
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
    assert!(!order(1).is_sorted());
}

#[test]
fn polling_makes_progress_but_leaves_operations_in_flight() {
    let mut disk = disk(3);
    (0..20).for_each(|block| disk.submit(write(block, 1)));
    let (mut done, mut polls) = (Vec::new(), 0);
    while disk.in_flight() > 0 {
        disk.poll(&mut done);
        polls += 1;
    }
    assert_eq!(done.len(), 20);
    assert!(polls > 1);
}

#[test]
fn a_sync_covers_only_what_had_landed_when_it_was_submitted() {
    for seed in 0..50 {
        let mut disk = disk(seed);
        run(&mut disk, [write(1, 1)]);
        // The second write lands before the sync does, and is not covered all the same.
        disk.submit(sync());
        disk.submit(write(2, 2));
        drain(&mut disk);
        let mut lost = 0;
        for crash_seed in 0..20 {
            let after = disk.crash(crash_seed);
            assert!(holds(&after, 1, 1));
            lost += u32::from(!holds(&after, 2, 2));
        }
        assert!(lost > 0);
    }
}

#[test]
fn a_durable_write_is_kept_and_nothing_else_because_of_it() {
    let mut lost = 0;
    for seed in 0..50 {
        let mut disk = disk(seed);
        // Both write block 2, and the durable one comes later.
        run(&mut disk, [write(1, 1), write(2, 1)]);
        run(&mut disk, [write(2, 2).made_durable()]);
        for crash_seed in 0..20 {
            let after = disk.crash(crash_seed);
            assert!(holds(&after, 2, 2));
            lost += u32::from(!holds(&after, 1, 1));
        }
    }
    assert!(lost > 0);
}

#[test]
fn a_durable_write_fails_where_a_sync_does() {
    let mut disk = disk(1);
    disk.inject(Fault::Sync { zone: TABLES });
    let plain = run(&mut disk, [write(1, 1)]);
    assert_eq!(plain[0].result, Ok(()));
    let failed = run(&mut disk, [write(2, 2).made_durable()]);
    assert!(matches!(failed[0].result, Err(IoError::Failed { verb: Verb::Sync, .. })));
    disk.heal();
    run(&mut disk, [write(3, 3).made_durable(), sync()]);
    let after = disk.crash(7);
    assert!(holds(&after, 3, 3), "what was durable stays so beside what failed");
}

#[test]
fn a_crash_loses_keeps_and_tears_each_write_on_its_own() {
    let mut disk = disk(1);
    run(&mut disk, [write(1, 1), write(2, 2)]);
    disk.submit(write(3, 3));
    let mut seen = std::collections::HashSet::new();
    let mut torn_by_sector = false;
    for seed in 0..400 {
        let after = disk.crash(seed);
        let fate = |block: u64| match after.peek(TABLES, block * BLOCK, BLOCK_BYTES) {
            bytes if bytes.iter().all(|&byte| byte == 0) => "lost",
            bytes if bytes.iter().all(|&byte| u64::from(byte) == block) => "kept",
            bytes => {
                torn_by_sector |= true;
                let whole = bytes.chunks(512).all(|sector| sector.iter().all(|&b| b == sector[0]));
                assert!(whole, "a sector was torn");
                "torn"
            }
        };
        let mut fate = fate;
        seen.insert([fate(1), fate(2), fate(3)]);
    }
    assert!(torn_by_sector);
    assert_eq!(seen.len(), 27, "every combination of fates is possible");
}

#[test]
fn the_same_seed_crashes_the_same_way() {
    let mut disk = disk(9);
    run(&mut disk, (0..40).map(|block| write(block, 7)));
    (40..60).for_each(|block| disk.submit(write(block, 7)));
    let image = |seed| disk.crash(seed).peek(TABLES, 0, 60 * BLOCK_BYTES);
    assert_eq!(image(4), image(4));
    assert_ne!(image(4), image(5));
}

#[test]
fn an_overwrite_that_was_synced_is_never_undone() {
    let mut disk = disk(2);
    run(&mut disk, [write(1, 1)]);
    run(&mut disk, [write(1, 2)]);
    run(&mut disk, [sync()]);
    assert!((0..50).all(|seed| holds(&disk.crash(seed), 1, 2)));
}

#[test]
fn after_the_last_allowed_write_nothing_happens_any_more() {
    let mut disk = disk(5);
    disk.crash_after_writes(2);
    assert_eq!(run(&mut disk, [write(1, 1), write(2, 2)]).len(), 2);
    assert_eq!(run(&mut disk, [sync()]).len(), 1);
    assert!(!disk.crashed());
    disk.submit(write(3, 3));
    assert!(disk.crashed());
    disk.submit(read(1));
    let mut done = Vec::new();
    disk.wait(&mut done);
    disk.poll(&mut done);
    assert!(done.is_empty() && disk.in_flight() == 0);
    // The fatal write was in flight: it may be there, and need not be.
    let fates: Vec<_> = (0..50).map(|seed| holds(&disk.crash(seed), 3, 3)).collect();
    assert!(fates.contains(&true) && fates.contains(&false));
    let mut after = disk.crash(0);
    assert!(!after.crashed() && holds(&after, 1, 1) && holds(&after, 2, 2));
    assert_eq!(run(&mut after, [write(9, 9)]).len(), 1);
}

#[test]
fn a_restart_lands_everything_and_syncs_nothing() {
    let mut disk = disk(6);
    run(&mut disk, [write(1, 1)]);
    disk.submit(write(2, 2));
    let after = disk.restart(1);
    assert!(disk.crashed());
    assert!(holds(&after, 1, 1) && holds(&after, 2, 2));
    assert!((0..30).any(|seed| !holds(&after.crash(seed), 1, 1)));
}

#[test]
fn a_bad_block_fails_reads_until_healed() {
    let mut disk = disk(7);
    run(&mut disk, [write(1, 1)]);
    disk.inject(Fault::Read { zone: TABLES, offset_bytes: BLOCK + 77 });
    let done = run(&mut disk, [read(1)]);
    assert!(matches!(done[0].result, Err(IoError::Failed { verb: Verb::Read, .. })));
    assert!(done[0].failed.is_some());
    assert!(run(&mut disk, [read(2), write(1, 3)]).iter().all(|done| done.result.is_ok()));
    disk.heal();
    assert!(run(&mut disk, [read(1)])[0].result.is_ok());
}

#[test]
fn a_bad_block_may_be_good_once_it_is_written() {
    let mut disk = disk(7);
    disk.inject(Fault::ReadUntilWritten { zone: TABLES, offset_bytes: BLOCK + 77 });
    assert!(run(&mut disk, [read(1)])[0].result.is_err());
    assert!(run(&mut disk, [write(2, 3)])[0].result.is_ok());
    assert!(run(&mut disk, [read(1)])[0].result.is_err());
    assert!(run(&mut disk, [write(1, 3)])[0].result.is_ok());
    assert!(run(&mut disk, [read(1)])[0].result.is_ok() && holds(&disk, 1, 3));
}

#[test]
fn writes_under_a_failed_sync_never_become_durable() {
    let mut disk = disk(8);
    run(&mut disk, [write(1, 1)]);
    disk.inject(Fault::Sync { zone: TABLES });
    assert!(run(&mut disk, [sync()])[0].result.is_err());
    disk.heal();
    assert!(run(&mut disk, [sync()])[0].result.is_ok());
    assert!(holds(&disk, 1, 1));
    assert!((0..20).all(|seed| holds(&disk.crash(seed), 1, 0)));
}

#[test]
fn a_failed_write_leaves_a_mixture_of_sectors() {
    let mut disk = disk(8);
    disk.inject(Fault::Write { zone: TABLES, offset_bytes: BLOCK });
    let done = run(&mut disk, [write(1, 1)]);
    assert!(matches!(done[0].result, Err(IoError::Failed { verb: Verb::Write, .. })));
    let bytes = disk.peek(TABLES, BLOCK, BLOCK_BYTES);
    assert!(bytes.contains(&0) && bytes.contains(&1));
}

#[test]
fn corruption_at_rest_stays() {
    let mut disk = disk(9);
    run(&mut disk, [write(1, 1)]);
    run(&mut disk, [sync()]);
    disk.corrupt(TABLES, BLOCK + 5, |byte| *byte ^= 0x80);
    assert_eq!(disk.peek(TABLES, BLOCK + 4, 3), [1, 0x81, 1]);
    assert_eq!(disk.crash(0).peek(TABLES, BLOCK + 4, 3), [1, 0x81, 1]);
}

/// A byte that was read as rotten does not come back because an earlier write of it is synced.
#[test]
fn corruption_outlives_a_sync_of_what_was_there_before() {
    let mut disk = disk(9);
    run(&mut disk, [write(1, 1)]);
    disk.corrupt(TABLES, BLOCK + 5, |byte| *byte ^= 0x80);
    run(&mut disk, [sync()]);
    assert_eq!(disk.peek(TABLES, BLOCK + 4, 3), [1, 0x81, 1]);
    assert_eq!(disk.crash(0).peek(TABLES, BLOCK + 4, 3), [1, 0x81, 1]);
}

#[test]
fn a_huge_zone_costs_only_what_is_written() {
    let mut disk = disk(1);
    let far = (1 << 50) / BLOCK - 1;
    run(&mut disk, [write(far, 1), write(0, 0)]);
    assert!(holds(&disk, far, 1));
    let pieces = disk.device().medium(TABLES).unwrap().current.pieces();
    assert_eq!(pieces, 1);
}

#[test]
fn counters_count_what_was_asked() {
    let mut disk = disk(1);
    run(&mut disk, [write(1, 1), write(2, 1), read(1), sync()]);
    let counters = disk.counters();
    assert_eq!((counters.reads, counters.writes, counters.syncs), (1, 2, 1));
    assert_eq!(counters.bytes_written, 2 * BLOCK);
}

#[test]
fn a_doorbell_rings_while_something_is_in_flight() {
    let bell = crate::Doorbell::new().unwrap();
    let mut disk = disk(4);
    disk.set_doorbell(&bell);
    disk.submit(write(1, 1));
    let mut done = Vec::new();
    while done.is_empty() {
        assert!(bell.wait(Some(0)), "an operation in flight that nobody would ever poll");
        disk.poll(&mut done);
    }
}
