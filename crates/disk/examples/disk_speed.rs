//! How fast a disk is through this room: `disk_speed DIRECTORY [GIB] [ENGINES]`.
//!
//! Makes a store of that size (2 GiB if not said) in a directory of its own below DIRECTORY, drives
//! it with each of ENGINES in turn (`uring,psync` if not said), prints one line per kind of
//! traffic, and removes it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a tool for us: it stops at any error")]

use std::path::Path;
use std::time::Instant;

use disk::{
    Access, AlignedBuf, Disk, Doorbell, Io, IoEngine, IoKind, SharedBuf, create_store_files,
    open_store_files,
};
use format::units::Zone;

const DATA: Zone = Zone::Data(0);

/// One kind of traffic.
struct Traffic {
    name: &'static str,
    write: bool,
    random: bool,
    length_bytes: usize,
    depth: usize,
    operations: u64,
    /// Every so many operations a sync, 0 for none.
    sync_every: u64,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let parent = arguments.next().expect("usage: disk_speed DIRECTORY [GIB]");
    let gib: u64 = arguments.next().map_or(2, |gib| gib.parse().expect("GIB is a number"));
    let engines = arguments.next().unwrap_or("uring,psync".to_owned());
    let dir = Path::new(&parent).join(format!("disk-speed-{}", std::process::id()));
    let size_bytes = gib << 30;
    let sizes = [(Zone::Journal, 64 << 20), (Zone::Tables, 1 << 20), (DATA, size_bytes)];
    create_store_files(&dir, &sizes, &[], [1; 16]).expect("the store is made");
    for name in engines.split(',') {
        let engine = if name == "psync" { IoEngine::Psync } else { IoEngine::Uring };
        let doorbell = Doorbell::new().unwrap();
        let store =
            open_store_files(&dir, Access::ReadWrite, engine, &doorbell).expect("the store opens");
        println!("{} (direct: {})", store.identity.engine, store.identity.direct);
        let mut disk = store.disk;
        for traffic in traffics(size_bytes) {
            measure(&mut *disk, &doorbell, &traffic);
        }
    }
    std::fs::remove_dir_all(&dir).expect("the store is removed");
}

fn traffics(size_bytes: u64) -> Vec<Traffic> {
    let sequential = |name, write| Traffic {
        name,
        write,
        random: false,
        length_bytes: 1 << 20,
        depth: 8,
        operations: size_bytes >> 20,
        sync_every: 0,
    };
    let random = |name, write, depth, operations| Traffic {
        name,
        write,
        random: true,
        length_bytes: 4096,
        depth,
        operations,
        sync_every: 0,
    };
    vec![
        sequential("first sequential writes, 1 MiB, depth 8", true),
        sequential("sequential writes again, 1 MiB, depth 8", true),
        sequential("sequential reads, 1 MiB, depth 8", false),
        random("random writes, 4 KiB, depth 32", true, 32, 200_000),
        random("random reads, 4 KiB, depth 32", false, 32, 300_000),
        random("random reads, 4 KiB, depth 1", false, 1, 10_000),
        Traffic { sync_every: 1, ..random("4 KiB and a sync, depth 1", true, 1, 1000) },
    ]
}

fn measure(disk: &mut dyn Disk, doorbell: &Doorbell, traffic: &Traffic) {
    let slots = disk.size_bytes(DATA) / traffic.length_bytes as u64;
    let mut payload = AlignedBuf::new_zeroed(traffic.length_bytes);
    payload.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at * 31 + at / 4096) as u8);
    let payload = SharedBuf::from(payload);
    let (mut issued, mut ended, mut done) = (0, 0, Vec::new());
    let start = Instant::now();
    while ended < traffic.operations {
        while disk.in_flight() < traffic.depth && issued < traffic.operations {
            // A multiplicative sequence visits the slots in an order that no device predicts.
            let number = if traffic.random { issued.wrapping_mul(0x9e37_79b9) } else { issued };
            let offset_bytes = (number % slots) * traffic.length_bytes as u64;
            let kind = if traffic.write {
                IoKind::Write { buf: payload.clone(), durable: false }
            } else {
                IoKind::Read { buf: AlignedBuf::new_stale(traffic.length_bytes) }
            };
            disk.submit(Io { zone: DATA, offset_bytes, kind, tag: issued });
            issued += 1;
        }
        // As the engine does it: poll, and sleep on the doorbell when there is nothing.
        disk.poll(&mut done);
        if done.is_empty() {
            let _ = doorbell.wait(None);
        }
        for completion in done.drain(..) {
            completion.result.expect("the operation succeeds");
            ended += 1;
            if traffic.sync_every != 0 && ended.is_multiple_of(traffic.sync_every) {
                sync(disk);
            }
        }
    }
    sync(disk);
    let seconds = start.elapsed().as_secs_f64();
    let per_second = traffic.operations as f64 / seconds;
    let bytes_per_second = per_second * traffic.length_bytes as f64;
    println!("  {:42} {per_second:9.0}/s {:8.0} MB/s", traffic.name, bytes_per_second / 1e6);
}

fn sync(disk: &mut dyn Disk) {
    disk.submit(Io { zone: DATA, offset_bytes: 0, kind: IoKind::Sync, tag: u64::MAX });
    let mut done = Vec::new();
    while done.is_empty() {
        disk.wait(&mut done);
    }
    for completion in done {
        completion.result.expect("the sync succeeds");
    }
}
