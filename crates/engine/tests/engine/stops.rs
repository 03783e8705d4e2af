//! A device has failed and nothing is written any more: what was acknowledged is read as it was.

use disk::Fault;
use engine::{Caches, VolumeHandle, Zone};

use crate::stand::{CHUNK, GIB, Hand, MIB, Wish, fresh};

const CONTAINER: u64 = 4 * MIB;
const LEAF_CHUNKS: u64 = 677;

/// Writes chunks, each so far behind the one before, until one is refused. How many were
/// acknowledged.
fn write_until_refused(hand: &mut Hand, volume: &VolumeHandle, step: u64) -> u64 {
    for number in 0..volume.size_bytes() / step {
        if hand.write(volume, number * step, &fresh(number, CHUNK)).is_some() {
            return number;
        }
        hand.settle();
    }
    panic!("nothing has failed");
}

fn assert_reads(hand: &mut Hand, volume: &VolumeHandle, numbers: u64, step: u64) {
    for number in 0..numbers {
        let read = hand.read(volume, number * step, CHUNK as u32);
        assert!(read == fresh(number, CHUNK), "chunk {number} of {numbers}");
    }
}

/// The write that fails is one that only sealing makes, so that no other is to come.
#[test]
fn frames_that_the_device_did_not_take_are_read_from_memory() {
    let mut hand = Hand::new(&Wish::default());
    let volume = hand.volume("v", 16 * MIB);
    for container in 1..=4 {
        let offset_bytes = container * CONTAINER - 192 * 1024;
        hand.disk.inject(Fault::Write { zone: Zone::Data(0), offset_bytes });
    }
    let numbers = write_until_refused(&mut hand, &volume, CHUNK);
    assert_reads(&mut hand, &volume, numbers, CHUNK);
    assert!(hand.beside(|client| client.close()).is_err());
}

/// More leaves of a map than the cache has room for, of which none comes to the device.
#[test]
fn pages_that_the_device_did_not_take_stay_in_the_cache() {
    let (dirty_pages_max, young_max, directory_entries, frame_bytes) = (96, 1000, 0, 0);
    let cache = Caches {
        pages: 128,
        dirty_pages_max,
        young_max,
        directory_entries,
        frame_bytes,
        lends: false,
    };
    let mut hand = Hand::new(&Wish { cache: Some(cache), ..Wish::default() });
    let volume = hand.volume("v", 4 * GIB);
    let blocks = disk::Disk::size_bytes(&hand.disk, Zone::Tables) / 4096;
    for offset_bytes in (0..blocks).map(|block| block * 4096) {
        hand.disk.inject(Fault::Write { zone: Zone::Tables, offset_bytes });
    }
    let step = LEAF_CHUNKS * CHUNK;
    let numbers = write_until_refused(&mut hand, &volume, step);
    assert!(numbers > 64, "{numbers}");
    assert_reads(&mut hand, &volume, numbers, step);
    assert!(hand.beside(|client| client.close()).is_err());
}
