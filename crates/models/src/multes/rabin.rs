//! Chunks that a Rabin fingerprint cuts: the residue of the last 48 bytes, as a polynomial over
//! GF(2), by an irreducible one; a chunk ends where its low bits are all set.
//!
//! The product cuts by FastCDC. This is the older way, which Multes++ compares itself with.

/// Bytes that decide a cut.
const WINDOW_BYTES: usize = 48;
/// x^53 + x^6 + x^2 + x + 1, irreducible.
const DEGREE: u32 = 53;
const POLYNOMIAL: u64 = (1 << DEGREE) | 0b100_0111;

/// Cuts by content.
pub(super) struct Rabin {
    mask: u64,
    /// What the bits above the degree add, by the byte that they are.
    above: [u64; 256],
    /// What a byte that leaves the window had added.
    leaves: [u64; 256],
}

impl Rabin {
    /// Chunks of this number of bytes on average, a power of two.
    pub(super) fn new(mean_bytes: usize) -> Self {
        let above = std::array::from_fn(|byte| residue((byte as u128) << DEGREE));
        let mut rabin = Self { mask: mean_bytes as u64 - 1, above, leaves: [0; 256] };
        rabin.leaves = std::array::from_fn(|byte| {
            (0..WINDOW_BYTES).fold(byte as u64, |residue, _| rabin.push(residue, 0))
        });
        rabin
    }

    fn push(&self, residue: u64, byte: u8) -> u64 {
        let wide = residue << 8 | u64::from(byte);
        let above = (residue >> (DEGREE - 8)) as usize & 0xff;
        (wide & ((1 << DEGREE) - 1)) ^ self.above[above]
    }

    /// The chunks of a file, in its order.
    pub(super) fn chunks<'a>(&self, file: &'a [u8]) -> Vec<&'a [u8]> {
        let (mut chunks, mut start, mut residue) = (Vec::new(), 0, 0);
        for (at, &byte) in file.iter().enumerate() {
            residue = self.push(residue, byte);
            if let Some(left) = at.checked_sub(WINDOW_BYTES) {
                residue ^= self.leaves[usize::from(file[left])];
            }
            if at + 1 - start >= WINDOW_BYTES && residue & self.mask == self.mask {
                chunks.push(&file[start..=at]);
                start = at + 1;
            }
        }
        if start < file.len() {
            chunks.push(&file[start..]);
        }
        chunks
    }
}

/// The residue of a polynomial of a degree below 64.
fn residue(mut polynomial: u128) -> u64 {
    for bit in (DEGREE..64).rev() {
        if polynomial >> bit & 1 == 1 {
            polynomial ^= u128::from(POLYNOMIAL) << (bit - DEGREE);
        }
    }
    polynomial as u64
}

#[cfg(test)]
mod tests {
    use super::{Rabin, WINDOW_BYTES};
    use crate::dice::Dice;

    /// The last window alone decides: what came before has left the residue.
    #[test]
    fn a_cut_depends_on_the_window_alone() {
        let rabin = Rabin::new(512);
        let window: Vec<u8> = (0..WINDOW_BYTES as u8).map(|byte| byte.wrapping_mul(37)).collect();
        let of = |before: &[u8]| {
            let bytes = [before, &window].concat();
            bytes.iter().enumerate().fold(0, |residue, (at, &byte)| {
                let left = at.checked_sub(WINDOW_BYTES).map_or(0, |left| bytes[left]);
                rabin.push(residue, byte) ^ rabin.leaves[usize::from(left)]
            })
        };
        assert_eq!(of(b"one"), of(b"another, longer than the window is by more than a few bytes"));
        assert_ne!(of(b""), 0);
    }

    #[test]
    fn chunks_have_about_the_length_that_was_asked_for() {
        let mut dice = Dice::new(7);
        let file: Vec<u8> = (0..1 << 20).map(|_| dice.below(256) as u8).collect();
        for mean_bytes in [512, 1024] {
            let mean = file.len() / Rabin::new(mean_bytes).chunks(&file).len();
            assert!((mean_bytes..=mean_bytes * 5 / 4).contains(&mean), "{mean}");
        }
    }
}
