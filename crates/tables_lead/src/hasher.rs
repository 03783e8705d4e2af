//! A hasher for page ids and tree ids: they come from this program, so speed is all it owes.

use std::hash::{BuildHasherDefault, Hasher};

/// Builds [`MixHasher`]s.
pub(crate) type PageHasher = BuildHasherDefault<MixHasher>;

/// Multiplies and folds word by word.
#[derive(Default)]
pub(crate) struct MixHasher(u64);

impl MixHasher {
    fn mix(&mut self, word: u64) {
        let wide = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
        self.0 = (wide as u64) ^ ((wide >> 64) as u64);
    }
}

impl Hasher for MixHasher {
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.mix(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.0 = self.0.rotate_left(8) ^ u64::from(value);
    }

    fn write_u32(&mut self, value: u32) {
        self.0 = self.0.rotate_left(24) ^ u64::from(value);
    }

    fn write_u64(&mut self, value: u64) {
        self.mix(value);
    }

    fn finish(&self) -> u64 {
        let mixed = self.0.wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed ^ mixed >> 32
    }
}
