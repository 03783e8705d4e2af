//! Bytes that follow from a number.

/// Numbers that follow from a seed (splitmix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.roll() % end
    }
}

/// Bytes that nothing compresses and that no other number has.
pub fn fresh(number: u64, length_bytes: u64) -> Vec<u8> {
    let mut dice = Dice(number.wrapping_mul(0x5851_f42d_4c95_7f2d));
    let words = (0..length_bytes.div_ceil(8)).flat_map(|_| dice.roll().to_le_bytes());
    words.take(length_bytes as usize).collect()
}

/// A chunk that compresses to almost nothing and that no other number has.
pub fn packed(number: u64) -> Vec<u8> {
    let mut bytes = vec![7; super::CHUNK as usize];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}
