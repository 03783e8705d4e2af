//! The newest records, in bounded memory: what a peer that was away is given.

use std::collections::VecDeque;

use format::replication::Change;

/// What a server keeps of one bucket, unless told otherwise.
pub const RING_BYTES_MAX: u64 = 64 << 20;

/// Records that follow one another, the oldest dropped when there are too many.
#[derive(Debug)]
pub struct Ring {
    bytes_max: u64,
    /// Number of the newest record, kept or not.
    last: u64,
    /// Bytes of all records ever, behind the newest.
    bytes_ever: u64,
    /// Each with the bytes of all records ever, behind it.
    kept: VecDeque<(u64, Change)>,
}

impl Ring {
    /// An empty ring, behind record `last`.
    #[must_use]
    pub fn new(last: u64, bytes_max: u64) -> Self {
        Self { bytes_max, last, bytes_ever: 0, kept: VecDeque::new() }
    }

    /// Number of the newest record.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Whether all records behind `sequence` are kept.
    #[must_use]
    pub fn covers(&self, sequence: u64) -> bool {
        sequence <= self.last && self.last - sequence <= self.kept.len() as u64
    }

    /// Takes the record behind the newest.
    pub fn push(&mut self, change: Change) {
        self.push_keeping(change, u64::MAX);
    }

    /// The same; records from number `from` on are kept however many they are.
    pub fn push_keeping(&mut self, change: Change, from: u64) {
        self.last += 1;
        self.bytes_ever += change.bytes();
        self.kept.push_back((self.bytes_ever, change));
        while self.bytes_behind(self.last - self.kept.len() as u64) > self.bytes_max
            && self.kept.len() > 1
            && self.last + 1 - (self.kept.len() as u64) < from
        {
            self.kept.pop_front();
        }
    }

    /// The record of this number, if it is kept.
    #[must_use]
    pub fn get(&self, sequence: u64) -> Option<&Change> {
        let from_end = self.last.checked_sub(sequence)?;
        let at = (self.kept.len() as u64).checked_sub(from_end + 1)?;
        self.kept.get(at as usize).map(|(_, change)| change)
    }

    /// Bytes of the kept records behind `sequence`.
    #[must_use]
    pub fn bytes_behind(&self, sequence: u64) -> u64 {
        let first = self.last + 1 - self.kept.len() as u64;
        let before = match sequence.checked_sub(first) {
            Some(at) => self.kept.get(at as usize).map_or(self.bytes_ever, |(bytes, _)| *bytes),
            None => {
                self.kept.front().map_or(self.bytes_ever, |(bytes, change)| bytes - change.bytes())
            }
        };
        self.bytes_ever - before
    }

    /// Forgets all, and goes on behind `last`.
    pub fn restart(&mut self, last: u64) {
        *self = Self::new(last, self.bytes_max);
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, Ring};

    fn write(bytes: usize) -> Change {
        Change::Write { unindexed: true, writes: vec![(0, vec![0; bytes])] }
    }

    #[test]
    fn the_oldest_records_go_and_numbers_stay() {
        let mut ring = Ring::new(10, 3 * write(100).bytes());
        assert!(ring.covers(10) && !ring.covers(9) && !ring.covers(11));
        (0..5).for_each(|_| ring.push(write(100)));
        assert_eq!(ring.last(), 15);
        assert!(ring.covers(12) && ring.covers(15) && !ring.covers(11));
        assert!(ring.get(12).is_none() && ring.get(16).is_none());
        assert_eq!(ring.get(13), Some(&write(100)));
        assert_eq!(ring.bytes_behind(15), 0);
        assert_eq!(ring.bytes_behind(14), write(100).bytes());
        assert_eq!(ring.bytes_behind(12), 3 * write(100).bytes());
        ring.push(write(100_000));
        assert!(ring.covers(15), "one record is always kept");
        (0..5).for_each(|_| ring.push_keeping(write(100), 18));
        assert!(ring.covers(17) && !ring.covers(16), "the unsent ones stay");
        ring.restart(40);
        assert!(ring.covers(40) && ring.get(40).is_none());
    }
}
