//! Operations as the checks write them.

use format::units::{BLOCK_BYTES, Zone};

use crate::buffer::{AlignedBuf, SharedBuf};
use crate::io::{Completion, Disk, Io, IoKind};

pub(super) const BLOCK: u64 = BLOCK_BYTES as u64;
/// Blocks of the small zones.
pub(super) const ZONE_BLOCKS: u64 = 64;

pub(super) fn filled(blocks: usize, byte: u8) -> SharedBuf {
    let mut buf = AlignedBuf::new_zeroed(blocks * BLOCK_BYTES);
    buf.fill(byte);
    buf.into()
}

/// Durable where the tag is even: what is written durably is written all the same.
pub(super) fn write(zone: Zone, block: u64, buf: SharedBuf, tag: u64) -> Io {
    let durable = tag.is_multiple_of(2);
    Io { zone, offset_bytes: block * BLOCK, kind: IoKind::Write { buf, durable }, tag }
}

pub(super) fn read(zone: Zone, block: u64, blocks: usize, tag: u64) -> Io {
    let kind = IoKind::Read { buf: AlignedBuf::new_zeroed(blocks * BLOCK_BYTES) };
    Io { zone, offset_bytes: block * BLOCK, kind, tag }
}

pub(super) fn sync(zone: Zone, tag: u64) -> Io {
    Io { zone, offset_bytes: 0, kind: IoKind::Sync, tag }
}

/// Waits for everything in flight.
pub(super) fn drain(disk: &mut dyn Disk) -> Vec<Completion> {
    let mut done = Vec::new();
    while disk.in_flight() > 0 {
        let before = done.len();
        disk.wait(&mut done);
        assert!(done.len() > before, "a wait with operations in flight came back with nothing");
    }
    done
}

/// Submits one operation and waits for it alone.
pub(super) fn run_one(disk: &mut dyn Disk, io: Io) -> Completion {
    let tag = io.tag;
    disk.submit(io);
    let done = drain(disk);
    assert_eq!(done.len(), 1, "one operation completes once");
    let Some(completion) = done.into_iter().next() else { unreachable!("it has one") };
    assert_eq!(completion.tag, tag, "a completion has the tag of its operation");
    completion
}

pub(super) fn expect_bytes(disk: &mut dyn Disk, zone: Zone, block: u64, blocks: usize, byte: u8) {
    let done = run_one(disk, read(zone, block, blocks, 1));
    assert_eq!(done.result, Ok(()), "a read of {blocks} blocks of {zone:?} at block {block}");
    let Some(buf) = done.buf else { panic!("a read that succeeds gives its buffer back") };
    assert_eq!(buf.len(), blocks * BLOCK_BYTES, "a read fills the whole buffer");
    let differs = buf.iter().position(|&read| read != byte);
    assert_eq!(differs, None, "{zone:?} at block {block}: first byte that is not {byte}");
}
