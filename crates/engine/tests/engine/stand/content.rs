//! Bytes that follow from a number.

/// Numbers that follow from a seed (splitmix64).
pub(crate) struct Dice(pub u64);

impl Dice {
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.roll() % end
    }
}

/// Bytes that nothing compresses and that no other number has.
pub(crate) fn fresh(number: u64, length_bytes: u64) -> Vec<u8> {
    let mut dice = Dice(number.wrapping_mul(0x5851_f42d_4c95_7f2d));
    let words = (0..length_bytes.div_ceil(8)).flat_map(|_| dice.roll().to_le_bytes());
    words.take(length_bytes as usize).collect()
}

/// A chunk that compresses to almost nothing and that no other number has.
pub(crate) fn packed(number: u64) -> Vec<u8> {
    let mut bytes = vec![7; super::CHUNK as usize];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// Two chunks of this number that differ in six bytes and share their MD5.
pub(crate) fn md5_twins(number: u64) -> [Vec<u8>; 2] {
    twins(include_str!("../../../../lab/collisions/md5.txt"), number)
}

/// Two chunks of this number that differ in 62 bytes and share their SHA-1.
pub(crate) fn sha1_twins(number: u64) -> [Vec<u8>; 2] {
    twins(include_str!("../../../../lab/collisions/sha1.txt"), number)
}

/// Eight chunks of this number that differ in a few bytes and share their CRC-64/NVMe: a multiple
/// of the polynomial, added to a sector, leaves its code as it was.
pub(crate) fn crc64_twins(number: u64) -> [Vec<u8>; 8] {
    let polynomial = u128::from(0xad93_d235_94c9_3659_u64.reverse_bits()) << 1 | 1;
    code_twins(polynomial.to_le_bytes(), number)
}

/// The same of EaD's BCH code.
pub(crate) fn bch_twins(number: u64) -> [Vec<u8>; 8] {
    let generator = 0x115_f914_e07b_0c13_8741_c5c4_fb23_u128 << 23;
    code_twins(generator.to_be_bytes(), number)
}

fn code_twins(code_word: [u8; 16], number: u64) -> [Vec<u8>; 8] {
    let mut chunk = fresh(number, super::CHUNK);
    std::array::from_fn(|twin| {
        // In most sectors of the first six, and never across the end of one.
        chunk[400 * twin..].iter_mut().zip(code_word).for_each(|(byte, added)| *byte ^= added);
        chunk.clone()
    })
}

/// Each of two starts that collide, and behind both what the number says.
fn twins(starts: &str, number: u64) -> [Vec<u8>; 2] {
    let digits = |start: &str| -> Vec<u8> {
        let digits: Vec<u8> = start.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(byte).collect()
    };
    let mut starts = starts.split("\n\n").filter(|part| !part.starts_with('#')).map(digits);
    let mut twin = || {
        let mut chunk = starts.next().unwrap();
        chunk.extend(fresh(number, super::CHUNK - chunk.len() as u64));
        chunk
    };
    [twin(), twin()]
}
