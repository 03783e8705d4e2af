//! What is to be durable is made so. A file system keeps what was written for as long as the
//! machine runs, synced or not, so these zones lie on `/dev/zero`: it takes writes anywhere, and
//! refuses every sync.

use std::fs::{self, File, OpenOptions};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use format::units::{BLOCK_BYTES, Zone};

use crate::buffer::AlignedBuf;
use crate::doorbell::Doorbell;
use crate::error::{IoError, Verb};
use crate::io::{Disk, Io, IoKind};
use crate::psync::PsyncDisk;
use crate::uring::UringDisk;
use crate::zone_files::{ZoneFile, ZoneFiles};

const ZONES: [Zone; 5] =
    [Zone::Superblock, Zone::Journal, Zone::Tables, Zone::Data(0), Zone::Data(1)];

fn open(path: impl AsRef<Path>) -> File {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

/// A file of its own, whatever other tests do at the same time.
fn sound_file() -> File {
    static FILES: AtomicU32 = AtomicU32::new(0);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("tamis-syncs-{}-{number}", std::process::id()));
    let file = open(&path);
    fs::remove_file(&path).unwrap();
    file
}

/// Zones of which this one refuses to be synced.
fn zones(refusing: Zone, durable_writes: bool) -> ZoneFiles {
    let file = |zone| if zone == refusing { open("/dev/zero") } else { sound_file() };
    let zone = |zone| ZoneFile { file: Arc::new(file(zone)), size_bytes: 1 << 20, durable_writes };
    ZoneFiles::new(ZONES.map(zone).into()).unwrap()
}

fn disks(refusing: Zone, durable_writes: bool) -> [(&'static str, Box<dyn Disk>); 2] {
    let doorbell = Doorbell::new().unwrap();
    let uring = UringDisk::new(zones(refusing, durable_writes), &doorbell).ok().unwrap();
    let psync = PsyncDisk::new(zones(refusing, durable_writes), &doorbell).unwrap();
    [("io_uring", Box::new(uring)), ("psync", Box::new(psync))]
}

/// How one operation ends.
fn run(disk: &mut dyn Disk, zone: Zone, kind: IoKind) -> Result<(), IoError> {
    disk.submit(Io { zone, offset_bytes: 0, kind, tag: 7 });
    let mut done = Vec::new();
    while disk.in_flight() > 0 {
        disk.wait(&mut done);
    }
    assert_eq!(done.len(), 1);
    done.pop().unwrap().result
}

fn write(durable: bool) -> IoKind {
    IoKind::Write { buf: AlignedBuf::new_zeroed(BLOCK_BYTES).into(), durable }
}

fn is_sync_of(zone: Zone, result: &Result<(), IoError>) -> bool {
    matches!(result, Err(IoError::Failed { verb: Verb::Sync, zone: of, .. }) if *of == zone)
}

#[test]
fn a_sync_and_a_durable_write_sync_their_own_zone() {
    for refusing in ZONES {
        for (name, mut disk) in disks(refusing, false) {
            for zone in ZONES {
                let mut told = |kind| run(&mut *disk, zone, kind);
                assert_eq!(told(write(false)), Ok(()), "{name}: {zone:?}");
                for kind in [IoKind::Sync, write(true)] {
                    let asked = format!("{name}: {kind:?} of {zone:?}, {refusing:?} refuses");
                    let result = told(kind);
                    match zone == refusing {
                        true => assert!(is_sync_of(zone, &result), "{asked}: {result:?}"),
                        false => assert_eq!(result, Ok(()), "{asked}"),
                    }
                }
            }
        }
    }
}

/// io_uring asks the device instead, by a flag (`uring.rs`); plain calls know no such flag.
#[test]
fn a_durable_write_is_not_synced_as_well_where_the_device_obeys() {
    let [(_, mut uring), (_, mut psync)] = disks(Zone::Journal, true);
    assert_eq!(run(&mut *uring, Zone::Journal, write(true)), Ok(()));
    for disk in [&mut uring, &mut psync] {
        let result = run(&mut **disk, Zone::Journal, IoKind::Sync);
        assert!(is_sync_of(Zone::Journal, &result), "{result:?}");
    }
    let result = run(&mut *psync, Zone::Journal, write(true));
    assert!(is_sync_of(Zone::Journal, &result), "{result:?}");
}
