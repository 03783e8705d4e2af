//! The blocks that are functions of bytes: `sha3_256` and `bch_encoder`, driven as a page stream
//! drives them, with the cycles that they took.

use crate::model::{Bch, BchInputs, Bench, Sha3Block, Sha3Inputs};

/// Bytes of a bus word.
const WORD_BYTES: usize = 8;
/// Bytes of a sector, which gets a code of its own.
pub const SECTOR_BYTES: usize = 512;
/// Bytes of a sector's parity.
pub const PARITY_BYTES: usize = 13;
/// Spare bytes of a codeword, which come before the sector.
const SPARE_BYTES: usize = 3;

/// What a block computed, and in how many cycles from the first word to the answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timed<T> {
    /// The answer.
    pub value: T,
    /// Cycles of the block's clock.
    pub cycles: u64,
}

/// A SHA3-256 core.
#[derive(Debug)]
pub struct Sha3 {
    bench: Bench<Sha3Block>,
}

impl Sha3 {
    /// A core after reset.
    pub fn new() -> Self {
        let mut bench = Bench::new();
        bench.tick(&Sha3Inputs { rst: true, ..Sha3Inputs::default() });
        Self { bench }
    }

    /// The digest of a message. In each cycle `pauses` says whether the sender, or later the
    /// receiver, lets it pass unused.
    pub fn digest(&mut self, message: &[u8], mut pauses: impl FnMut() -> bool) -> Timed<[u8; 32]> {
        let begun = self.bench.cycles();
        let mut rest = message;
        let mut is_sent = false;
        loop {
            let (word, bytes) = first_word(rest);
            let is_last = rest.len() <= WORD_BYTES;
            let pauses = pauses();
            let outputs = self.bench.tick(&Sha3Inputs {
                in_word: word,
                rst: false,
                in_valid: !is_sent && !pauses,
                in_bytes: bytes,
                in_last: is_last,
                out_ready: !pauses,
            });
            if outputs.out_valid != 0 && !pauses {
                let value = bytes_of(&outputs.out_digest);
                return Timed { value, cycles: self.bench.cycles() - begun };
            }
            if outputs.in_ready != 0 && !is_sent && !pauses {
                is_sent = is_last;
                rest = rest.get(WORD_BYTES..).unwrap_or_default();
            }
        }
    }
}

impl Default for Sha3 {
    fn default() -> Self {
        Self::new()
    }
}

/// An encoder of sectors.
#[derive(Debug)]
pub struct BchEncoder {
    bench: Bench<Bch>,
}

impl BchEncoder {
    /// An encoder after reset.
    pub fn new() -> Self {
        let mut bench = Bench::new();
        bench.tick(&BchInputs { rst: true, ..BchInputs::default() });
        Self { bench }
    }

    /// The parity of a sector with its spare bytes, its first bit the highest of byte 0. Pauses
    /// are those of [`Sha3::digest`].
    pub fn parity(
        &mut self,
        spare: [u8; SPARE_BYTES],
        sector: &[u8; SECTOR_BYTES],
        mut pauses: impl FnMut() -> bool,
    ) -> Timed<[u8; PARITY_BYTES]> {
        let begun = self.bench.cycles();
        let mut first = [0; WORD_BYTES];
        first[WORD_BYTES - SPARE_BYTES..].copy_from_slice(&spare);
        let message = [first.as_slice(), sector.as_slice()].concat();
        let mut rest = message.as_slice();
        loop {
            let pauses = pauses();
            let in_valid = !rest.is_empty() && !pauses;
            let in_word = first_word(rest).0;
            let outputs =
                self.bench.tick(&BchInputs { in_word, rst: false, in_valid, out_ready: !pauses });
            if outputs.out_valid != 0 && !pauses {
                let lowest_first: [u8; 16] = bytes_of(&outputs.out_parity);
                let mut value = [0; PARITY_BYTES];
                value.copy_from_slice(&lowest_first[..PARITY_BYTES]);
                value.reverse();
                return Timed { value, cycles: self.bench.cycles() - begun };
            }
            if outputs.in_ready != 0 && in_valid {
                rest = rest.get(WORD_BYTES..).unwrap_or_default();
            }
        }
    }
}

impl Default for BchEncoder {
    fn default() -> Self {
        Self::new()
    }
}

/// The next word of a message, byte 0 lowest, and how many of its bytes count.
fn first_word(rest: &[u8]) -> (u64, u8) {
    let taken = rest.len().min(WORD_BYTES);
    let mut word = [0; WORD_BYTES];
    word[..taken].copy_from_slice(&rest[..taken]);
    (u64::from_le_bytes(word), taken as u8)
}

/// The bytes of a wide port, bits 7:0 first.
fn bytes_of<const WORDS: usize, const BYTES: usize>(words: &[u32; WORDS]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}
