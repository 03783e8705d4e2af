//! The unique chunks of one chunk size, in fixed memory.
//!
//! Fingerprints are spread evenly, so a chunk is *in the sample* when its fingerprint has at least
//! `level` leading zero bits: level 0 takes every chunk, each further level half of them. While
//! everything fits the level is 0 and the figures are exact. When the table is full the level
//! rises and what is no longer in the sample is dropped, so that the table never grows. What is in
//! the sample depends on the chunks alone and not on their order, nor on how often each is met:
//! times 2^level it is an unbiased estimate of what there is (Flajolet, "On adaptive sampling",
//! 1990). Frames are made only of chunks in the sample.
//!
//! The table is open addressing with linear probing over vectors that are taken once, so its memory
//! is what was allowed to the byte, and dropping needs none besides.

use format::frame::FRAME_HEADER_BYTES;
use format::units::Fingerprint;

/// Bytes of a fingerprint that are kept: as good as all of them for fewer than 2^48 chunks.
const KEY_BYTES: usize = 16;
/// The table is full when so many of four slots are taken.
const QUARTERS_FULL: usize = 3;

type Key = [u8; KEY_BYTES];
/// A slot without a key. No fingerprint is all zeros, or we have found the one that is.
const EMPTY: Key = [0; KEY_BYTES];

/// A set of chunks, or a sample of it, with the lengths of their frames.
#[derive(Debug)]
pub(crate) struct Sample {
    level: u32,
    entries: usize,
    entries_max: usize,
    keys: Vec<Key>,
    /// Of each slot and codec the bytes of the frame behind its header, less 1.
    payloads: Vec<u16>,
    codecs: usize,
}

/// Sums over the chunks in the sample.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(crate) struct Sums {
    pub(crate) bytes: u64,
    /// Sum of the squares.
    pub(crate) squares: f64,
}

impl Sample {
    /// An empty set in `memory_bytes`, of chunks with the frames of `codecs` codecs.
    pub(crate) fn new(memory_bytes: u64, codecs: usize) -> Self {
        let slot_bytes = KEY_BYTES + 2 * codecs;
        let slots = usize::try_from(memory_bytes).unwrap_or(usize::MAX) / slot_bytes;
        let slots = slots.max(8);
        Self {
            level: 0,
            entries: 0,
            entries_max: slots / 4 * QUARTERS_FULL,
            keys: vec![EMPTY; slots],
            payloads: vec![0; slots * codecs],
            codecs,
        }
    }

    /// How often the sample was halved; 0 while it is everything.
    pub(crate) fn level(&self) -> u32 {
        self.level
    }

    /// Chunks in the sample.
    pub(crate) fn entries(&self) -> u64 {
        self.entries as u64
    }

    /// Takes the chunk in. True when it is in the sample and was not before: then its frames are
    /// to be made, and [`Sample::measure`] is told their lengths.
    pub(crate) fn take_in(&mut self, fingerprint: &Fingerprint) -> bool {
        let key = key_of(fingerprint);
        if level_of(&key) < self.level {
            return false;
        }
        let slot = self.slot_of(&key);
        if self.keys[slot] == key {
            return false;
        }
        self.keys[slot] = key;
        self.entries += 1;
        while self.entries > self.entries_max {
            self.halve();
        }
        level_of(&key) >= self.level
    }

    /// The lengths of the chunk's frames, header included, one for each codec. Forgotten when the
    /// chunk has left the sample in the meantime.
    pub(crate) fn measure(&mut self, fingerprint: &Fingerprint, frame_bytes: &[usize]) {
        let key = key_of(fingerprint);
        let slot = self.slot_of(&key);
        if self.keys[slot] != key {
            return;
        }
        let payloads = self.payloads.iter_mut().skip(slot * self.codecs);
        for (payload, bytes) in payloads.zip(frame_bytes) {
            *payload = bytes.saturating_sub(FRAME_HEADER_BYTES + 1) as u16;
        }
    }

    /// The frames of each codec, summed over the sample.
    pub(crate) fn sums(&self) -> Vec<Sums> {
        let mut sums = vec![Sums::default(); self.codecs];
        let slots = self.keys.iter().zip(self.payloads.chunks_exact(self.codecs.max(1)));
        for (_, payloads) in slots.filter(|(key, _)| **key != EMPTY) {
            for (sums, payload) in sums.iter_mut().zip(payloads) {
                let frame_bytes = u64::from(*payload) + 1 + FRAME_HEADER_BYTES as u64;
                sums.bytes += frame_bytes;
                sums.squares += (frame_bytes * frame_bytes) as f64;
            }
        }
        sums
    }

    /// The slot that holds `key`, or the one where it goes.
    fn slot_of(&self, key: &Key) -> usize {
        let mut slot = home_of(key, self.keys.len());
        while self.keys[slot] != EMPTY && self.keys[slot] != *key {
            slot = next(slot, self.keys.len());
        }
        slot
    }

    /// Raises the level by one and drops what is no longer in the sample.
    ///
    /// Slots are visited in the order of probing, from behind an empty one. What stays is taken
    /// out and put in again: its home and all between are in order already, so it moves forward or
    /// not at all, and nothing is met twice.
    fn halve(&mut self) {
        self.level += 1;
        let slots = self.keys.len();
        let Some(start) = self.keys.iter().position(|key| *key == EMPTY) else { return };
        for visited in (start + 1..slots).chain(0..start) {
            let key = std::mem::replace(&mut self.keys[visited], EMPTY);
            if key == EMPTY {
                continue;
            }
            if level_of(&key) < self.level {
                self.entries -= 1;
                continue;
            }
            let slot = self.slot_of(&key);
            self.keys[slot] = key;
            let from = visited * self.codecs;
            self.payloads.copy_within(from..from + self.codecs, slot * self.codecs);
        }
    }
}

fn key_of(fingerprint: &Fingerprint) -> Key {
    let (halves, _) = fingerprint.0.as_chunks::<KEY_BYTES>();
    halves.first().copied().unwrap_or(EMPTY)
}

/// The last level at which this chunk is in the sample.
fn level_of(key: &Key) -> u32 {
    u128::from_be_bytes(*key).leading_zeros()
}

/// Where the search for a key begins. The low half: the high one says the level, so that of a
/// sample only its low bits differ.
fn home_of(key: &Key, slots: usize) -> usize {
    let low = u128::from_be_bytes(*key) as u64;
    ((u128::from(low) * slots as u128) >> 64) as usize
}

fn next(slot: usize, slots: usize) -> usize {
    if slot + 1 == slots { 0 } else { slot + 1 }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use format::units::Fingerprint;
    use proptest::collection::vec;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::{KEY_BYTES, Sample, Sums, key_of, level_of};
    use crate::figures::{Figure, spread};

    /// Numbers that look random and are the same for the same seed.
    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (*state ^ *state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// The fingerprint of chunk `number` and the length of its frame.
    fn chunk(number: u64) -> (Fingerprint, usize) {
        let mut state = number;
        let mut bytes = [0; 32];
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&random(&mut state).to_le_bytes());
        }
        (Fingerprint(bytes), 17 + (random(&mut state) % 4096) as usize)
    }

    /// A sample and a plain map that were shown the same chunks.
    fn shown(slots: u64, numbers: impl Iterator<Item = u64>) -> (Sample, HashMap<u64, usize>) {
        let mut sample = Sample::new(slots * (KEY_BYTES as u64 + 2), 1);
        let mut model = HashMap::new();
        for number in numbers {
            let (fingerprint, frame_bytes) = chunk(number);
            if sample.take_in(&fingerprint) {
                sample.measure(&fingerprint, &[frame_bytes]);
            }
            model.insert(number, frame_bytes);
        }
        (sample, model)
    }

    proptest! {
        #[test]
        fn the_sample_is_every_chunk_of_its_level(
            numbers in vec(0_u64..5000, 0..3000),
            slots in 8_u64..6000,
        ) {
            let (sample, model) = shown(slots, numbers.into_iter());
            let kept: Vec<usize> = model
                .iter()
                .filter(|(number, _)| level_of(&key_of(&chunk(**number).0)) >= sample.level())
                .map(|(_, frame_bytes)| *frame_bytes)
                .collect();
            prop_assert_eq!(sample.entries(), kept.len() as u64);
            prop_assert!(sample.entries as u64 <= slots * 3 / 4);
            let bytes = kept.iter().map(|bytes| *bytes as u64).sum();
            let squares = kept.iter().map(|bytes| (bytes * bytes) as f64).sum();
            prop_assert_eq!(sample.sums(), [Sums { bytes, squares }]);
            if model.len() as u64 <= slots / 4 * 3 {
                prop_assert_eq!(sample.level(), 0);
            }
        }
    }

    fn is_within_5_errors(figure: &Figure, actual: f64) -> bool {
        (figure.value - actual).abs() <= 5.0 * figure.error
    }

    #[test]
    fn a_sample_says_what_all_are_within_its_errors() {
        let (mut errors, mut first) = (0.0, 0);
        for seed in 0..40_u64 {
            let count = 20_000 + seed * 500;
            // Every chunk is met, some often.
            let numbers = (first..first + count).chain((first..first + count).step_by(7));
            let (sample, model) = shown(2000, numbers);
            first += count;
            assert!(sample.level() >= 4);
            let spread = spread(&sample, 4096);
            let bytes: usize = model.values().sum();
            assert!(is_within_5_errors(&spread.chunks, count as f64), "{seed}: {spread:?}");
            let codec = &spread.codecs[0];
            assert!(is_within_5_errors(&codec.frame_bytes, bytes as f64), "{seed}: {spread:?}");
            let ratio = (count * 4096) as f64 / bytes as f64;
            assert!(is_within_5_errors(&codec.compression, ratio), "{seed}: {spread:?}");
            errors += (spread.chunks.value - count as f64) / spread.chunks.error;
        }
        // Over many seeds the errors cancel: there is no bias. The mean of 40 has a sixth of one.
        assert!((errors / 40.0).abs() < 0.8, "{errors}");
    }

    #[test]
    fn the_least_memory_still_estimates() {
        let (sample, _) = shown(0, 0..1000);
        assert!(sample.entries() <= 6 && sample.level() > 5);
    }
}
