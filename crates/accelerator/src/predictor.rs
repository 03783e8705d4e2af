//! Which chunks are new, guessed before they are hashed, so that one submission does for hashing
//! all and compressing the new ones.
//!
//! CIDR's algorithm is not in the texts. Ours: 32 bits of a sample of the chunk are looked up in a
//! direct-mapped table of samples of what was written lately. There: taken for a duplicate. Not
//! there: taken for new. So a guess costs a few lines of the chunk and one of the table, and no
//! chunk is ever lost: the fingerprint decides afterwards.

use xxhash_rust::xxh3::xxh3_64;

/// Pieces of a chunk that its sample is made of, and their length.
const PIECES: usize = 16;
const PIECE_BYTES: usize = 16;

/// What a chunk is taken for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing like it was written lately: it is hashed and compressed.
    New,
    /// It is hashed, and compressed only if the look-up finds it to be new.
    Duplicate,
}

/// Samples of what was written lately.
pub struct Predictor {
    /// By the low half of the sample, its high half; 0: none.
    samples: Vec<u32>,
}

impl Predictor {
    /// Nothing was written yet; `samples` is the length of the table, at least 1.
    #[must_use]
    pub fn new(samples: usize) -> Self {
        Self { samples: vec![0; samples.max(1)] }
    }

    /// What the chunk of this sample is taken for; the sample counts as written from now on.
    pub fn guess(&mut self, sample: u64) -> Verdict {
        let place = sample % self.samples.len() as u64;
        let high = ((sample >> 32) as u32).max(1);
        match std::mem::replace(&mut self.samples[place as usize], high) == high {
            true => Verdict::Duplicate,
            false => Verdict::New,
        }
    }
}

/// The sample of a chunk: a hash of pieces that lie equally far from each other.
#[must_use]
pub fn sample_of(chunk: &[u8]) -> u64 {
    let mut pieces = [0; PIECES * PIECE_BYTES];
    let stride = (chunk.len() / PIECES).max(1);
    for (piece, from) in pieces.chunks_exact_mut(PIECE_BYTES).zip(chunk.chunks(stride)) {
        let bytes = from.len().min(PIECE_BYTES);
        piece[..bytes].copy_from_slice(&from[..bytes]);
    }
    xxh3_64(&pieces)
}

/// How guesses came out, in chunks.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Predicted {
    /// New, and taken for it.
    pub new: u64,
    /// Duplicate, and taken for it.
    pub duplicate: u64,
    /// Duplicate taken for new: compressed in vain.
    pub in_vain: u64,
    /// New taken for duplicate: sent twice.
    pub sent_twice: u64,
}

impl Predicted {
    /// One guess more, and what the look-up said.
    pub fn count(&mut self, guessed: Verdict, is_new: bool) {
        let count = match (guessed, is_new) {
            (Verdict::New, true) => &mut self.new,
            (Verdict::Duplicate, false) => &mut self.duplicate,
            (Verdict::New, false) => &mut self.in_vain,
            (Verdict::Duplicate, true) => &mut self.sent_twice,
        };
        *count += 1;
    }

    /// Part of the guesses that were right, 0 to 1; 0 before the first.
    #[must_use]
    pub fn right_ratio(&self) -> f64 {
        let right = self.new + self.duplicate;
        right as f64 / (right + self.in_vain + self.sent_twice).max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::{Predicted, Predictor, Verdict, sample_of};

    #[test]
    fn what_was_written_lately_is_taken_for_a_duplicate() {
        let mut predictor = Predictor::new(16);
        let [one, other] = [3_u64 << 32 | 5, 4 << 32 | 5];
        assert_eq!(predictor.guess(one), Verdict::New);
        assert_eq!(predictor.guess(one), Verdict::Duplicate);
        assert_eq!(predictor.guess(other), Verdict::New);
        assert_eq!(predictor.guess(one), Verdict::New, "another one took its place");
        assert_eq!(predictor.guess(6), Verdict::New, "an empty place is nobody's");
    }

    #[test]
    fn a_sample_sees_its_pieces_and_no_other_byte() {
        for chunk_bytes in [512, 4096, 65536] {
            let mut chunk = vec![1; chunk_bytes];
            let sample = sample_of(&chunk);
            let stride = chunk_bytes / 16;
            for at in [0, 15, 7 * stride, chunk_bytes - stride + 15] {
                chunk[at] ^= 1;
                assert_ne!(sample_of(&chunk), sample, "{at} of {chunk_bytes}");
                chunk[at] ^= 1;
            }
            chunk[stride - 1] ^= 1;
            assert_eq!(sample_of(&chunk), sample);
        }
    }

    #[test]
    fn every_guess_is_right_or_wrong_in_one_way() {
        let mut predicted = Predicted::default();
        for (guessed, is_new) in [
            (Verdict::New, true),
            (Verdict::New, true),
            (Verdict::New, false),
            (Verdict::Duplicate, false),
            (Verdict::Duplicate, true),
        ] {
            predicted.count(guessed, is_new);
        }
        let expected = Predicted { new: 2, duplicate: 1, in_vain: 1, sent_twice: 1 };
        assert_eq!(predicted, expected);
        assert!((predicted.right_ratio() - 0.6).abs() < 1e-9);
        assert!(Predicted::default().right_ratio().abs() < 1e-9);
    }
}
