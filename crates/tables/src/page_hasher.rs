//! A cheap hash for the maps by page, tree or block.

use std::hash::Hasher;

/// Hashes the few integers of a page's name by one multiplication each and a fold at the end.
#[derive(Default)]
pub(crate) struct PageHasher(u64);

impl PageHasher {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

    fn add(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(23) ^ value).wrapping_mul(Self::ODD);
    }
}

impl Hasher for PageHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.add(u64::from(byte)));
    }

    fn write_u8(&mut self, value: u8) {
        self.add(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.add(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.add(value);
    }

    fn finish(&self) -> u64 {
        // The map uses the top bits as well as the bottom ones; a product is weak in the latter.
        self.0 ^ self.0 >> 32
    }
}
