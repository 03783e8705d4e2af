//! A ring in memory that forgets, on a crash, what it likes of what was not synced.

use format::BLOCK_BYTES;

use crate::replay::{End, Replay, ReplayRecord, ReplayStep};
use crate::writer::JournalWrite;

const SECTOR_BYTES: usize = 512;
/// More than any test's journal takes.
const STEPS_MAX: usize = 10_000;

/// Zone journal.
pub(super) struct Medium {
    /// What a crash leaves.
    durable: Vec<u8>,
    /// What is read while all goes well.
    current: Vec<u8>,
    unsynced: Vec<JournalWrite>,
}

/// Bits from a seed (xorshift64).
pub(super) struct Bits(pub(super) u64);

impl Bits {
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

impl Medium {
    pub(super) fn new(length_bytes: u64) -> Self {
        let zeros = vec![0; length_bytes as usize];
        Self { durable: zeros.clone(), current: zeros, unsynced: Vec::new() }
    }

    pub(super) fn write(&mut self, write: &JournalWrite) {
        let start = write.offset_bytes as usize;
        assert!(start.is_multiple_of(BLOCK_BYTES) && write.buf.len().is_multiple_of(BLOCK_BYTES));
        self.current[start..start + write.buf.len()].copy_from_slice(&write.buf);
        self.unsynced.push(write.clone());
    }

    pub(super) fn sync(&mut self) {
        self.durable.copy_from_slice(&self.current);
        self.unsynced.clear();
    }

    /// Of every sector written since the last sync, the old or the new content stays. One crash in
    /// four keeps nearly all of them, and one loses nearly all.
    pub(super) fn crash(&mut self, bits: &mut Bits) {
        let kept_of_64 = [1, 32, 32, 63][bits.below(4)];
        for write in std::mem::take(&mut self.unsynced) {
            let start = write.offset_bytes as usize;
            for (sector, bytes) in write.buf.chunks_exact(SECTOR_BYTES).enumerate() {
                if bits.below(64) < kept_of_64 {
                    let at = start + sector * SECTOR_BYTES;
                    self.durable[at..at + SECTOR_BYTES].copy_from_slice(bytes);
                }
            }
        }
        self.current.copy_from_slice(&self.durable);
    }

    pub(super) fn read(&self, (offset_bytes, length_bytes): (u64, usize)) -> &[u8] {
        &self.current[offset_bytes as usize..][..length_bytes]
    }

    pub(super) fn holds(&self, write: &JournalWrite) -> bool {
        self.read((write.offset_bytes, write.buf.len())) == &*write.buf
    }

    pub(super) fn flip(&mut self, bit: usize) {
        self.current[bit / 8] ^= 1 << (bit % 8);
    }
}

/// How a caller may drive a replay.
#[derive(Copy, Clone, Debug)]
pub(super) enum Driving {
    /// One read a step.
    Plain,
    /// No read while there is something buffered.
    Buffered,
    /// As if every long read failed.
    Narrow,
}

/// Every record, and how the journal ends.
pub(super) fn replay_all(
    replay: &mut Replay,
    medium: &Medium,
    driving: Driving,
) -> (Vec<ReplayRecord>, End) {
    let mut records = Vec::new();
    for _ in 0..STEPS_MAX {
        match next_step(replay, medium, driving) {
            ReplayStep::Record(record) => records.push(record),
            ReplayStep::More => {}
            ReplayStep::End(end) => return (records, end),
        }
    }
    panic!("{STEPS_MAX} steps and no end");
}

/// One step, with a read if it takes one.
pub(super) fn next_step(replay: &mut Replay, medium: &Medium, driving: Driving) -> ReplayStep {
    match driving {
        Driving::Plain => {}
        Driving::Buffered => {
            if let Some(step) = replay.buffered() {
                return step;
            }
        }
        Driving::Narrow => {
            replay.narrow();
        }
    }
    let needs = replay.needs();
    assert!(needs.0.is_multiple_of(BLOCK_BYTES as u64) && needs.1.is_multiple_of(BLOCK_BYTES));
    assert!(needs.1 != 0);
    replay.feed(medium.read(needs))
}
