//! Replay of any ring: the real writer's records, then flipped, zeroed, copied, mended and forged
//! blocks.
//!
//! What lies before the first harmed record is replayed as it was written; a record that is harmed,
//! and none was made to look right, is the end. Replay reads inside the ring, comes to an end
//! within one lap and after a bounded number of bytes, and a writer can go on where it ended.
#![no_main]

use disk::{AlignedBuf, Io, IoKind, MemoryDisk};
use format::BLOCK_BYTES;
use format::record::Settled;
use format::root::JournalPosition;
use format::units::Zone;
use journal::{Replay, ReplayRecord, ReplayStep, Writer};
use libfuzzer_sys::fuzz_target;
use tamis_fuzz::canary;
use tamis_fuzz::input::Input;
use tamis_fuzz::ring::{UUID, WrittenRing, complete, put};

/// A life that comes after all others.
const LAST_INCARNATION: u64 = 1000;

/// How a caller may drive a replay.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Driving {
    Plain,
    Buffered,
    Narrow,
}

fn read(disk: &mut MemoryDisk, (offset_bytes, length_bytes): (u64, usize)) -> AlignedBuf {
    let kind = IoKind::Read { buf: AlignedBuf::new_zeroed(length_bytes) };
    let end = complete(disk, Io { zone: Zone::Journal, offset_bytes, kind, tag: 0 });
    end.buf.expect("a read gives its buffer back")
}

/// The records, and where they end.
fn replay(
    disk: &mut MemoryDisk,
    length_bytes: u64,
    start: JournalPosition,
    driving: Driving,
) -> (Vec<ReplayRecord>, JournalPosition) {
    let mut replay = Replay::new(length_bytes, UUID, start);
    let (mut records, mut read_bytes) = (Vec::new(), 0);
    // Each step takes a record or asks for one that is longer, and none is taken twice.
    let steps_max = 2 * (length_bytes / BLOCK_BYTES as u64) + 4;
    for _ in 0..steps_max {
        let buffered = if driving == Driving::Buffered { replay.buffered() } else { None };
        let step = buffered.unwrap_or_else(|| {
            if driving == Driving::Narrow {
                while replay.narrow() {}
            }
            let (offset_bytes, needs_bytes) = replay.needs();
            assert!(needs_bytes > 0 && offset_bytes + needs_bytes as u64 <= length_bytes);
            read_bytes += needs_bytes as u64;
            replay.feed(&read(disk, (offset_bytes, needs_bytes)))
        });
        match step {
            ReplayStep::Record(record) => records.push(record),
            ReplayStep::More => {}
            ReplayStep::End(end) => {
                let position = replay.position();
                let replayed_bytes = position.offset_bytes - start.offset_bytes;
                assert!(replayed_bytes <= length_bytes, "more than a lap: {end:?}");
                assert!(driving != Driving::Buffered || read_bytes <= 4 * length_bytes);
                assert!(matches!(replay.feed(&[]), ReplayStep::End(again) if again == end));
                return (records, position);
            }
        }
    }
    panic!("no end in sight after {steps_max} steps");
}

fuzz_target!(init: canary::release(), |input: &[u8]| {
    let mut input = Input::new(input);
    let mut ring = WrittenRing::write(&mut input);
    let before = ring.bytes();
    ring.damage(&mut input);
    let unharmed = ring.unharmed(&before);

    let (start, length_bytes) = (ring.start, ring.length_bytes);
    let (records, end) = replay(&mut ring.disk, length_bytes, start, Driving::Buffered);
    for driving in [Driving::Plain, Driving::Narrow] {
        let again = replay(&mut ring.disk, length_bytes, start, driving);
        assert!(again == (records.clone(), end), "it depends on how much is read at once");
    }
    assert!(records.len() >= unharmed, "{} of {unharmed} records", records.len());
    assert!(ring.forged || records.len() == unharmed, "a harmed record is replayed");
    for (replayed, written) in records.iter().zip(ring.written.iter().take(unharmed)) {
        assert!(*replayed == written.record);
    }

    let tail = start.offset_bytes;
    let mut writer = Writer::resume(length_bytes, UUID, end, tail, LAST_INCARNATION);
    let settled = Settled { durable_sequence: end.sequence - 1, placed_sequence: 0 };
    let Ok(appended) = writer.append(b"and on", settled) else { return };
    appended.writes.into_iter().for_each(|write| put(&mut ring.disk, write));
    let (mut again, _) = replay(&mut ring.disk, length_bytes, start, Driving::Buffered);
    let newest = again.pop();
    assert!(newest.is_some_and(|record| record.body == b"and on"));
    assert!(again == records);
});
