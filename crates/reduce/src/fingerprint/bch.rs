//! BCH(4224, 4120, 8): the code that a flash controller keeps beside each sector of 512 bytes.
//!
//! As EaD has it ("ECC-assisted Deduplication", section 2.2): 4120 bits of data, which are a sector
//! and 24 bits out of band, get 104 bits that correct 8 errors. It is the narrow-sense binary BCH
//! code over GF(2^13) of length 8191, shortened. The 24 bits are zeros here and come first, where
//! they change nothing.
//!
//! A sector is a polynomial, its first bit the highest coefficient; its code is the remainder of
//! that times x^104 by the generator, the product of the minimal polynomials of the odd powers of
//! alpha up to 15. Here eight bytes are taken at a time, through one table for each of them, of
//! several sectors in turn.
//!
//! The code is linear: a sector plus a multiple of the generator has the same code. So it tells
//! that sectors differ, and never that they are the same.

use super::sectors::SECTOR_BYTES;

/// Of one sector.
pub(super) const CODE_BYTES: usize = 13;

/// Elements of the field are polynomials of alpha below this degree.
const FIELD_DEGREE: usize = 13;
/// What alpha is a root of: x^13 + x^4 + x^3 + x + 1.
const PRIMITIVE: u32 = 0x201b;
/// Bits that the code corrects.
const ERRORS: u32 = 8;
/// Bits below the remainder, whose highest bit is that of the word.
const UNUSED_BITS: u32 = 128 - 8 * CODE_BYTES as u32;
const WORD_BYTES: usize = 8;

/// The generator polynomial: bit `n` is the coefficient of x^n.
const GENERATOR: u128 = generator();

/// `TABLES[n][byte]`: the remainder of a byte that `n` others and the code follow.
static TABLES: [[u128; 256]; WORD_BYTES] = tables();

/// The codes of some sectors.
pub(super) fn codes<const SECTORS: usize>(
    sectors: &[[u8; SECTOR_BYTES]; SECTORS],
) -> [[u8; CODE_BYTES]; SECTORS] {
    let mut remainders = [0; SECTORS];
    for at in 0..SECTOR_BYTES / WORD_BYTES {
        for (remainder, sector) in remainders.iter_mut().zip(sectors) {
            let (words, _) = sector.as_chunks::<WORD_BYTES>();
            *remainder = step(*remainder, u64::from_be_bytes(words[at]));
        }
    }
    remainders.map(|remainder| {
        let mut code = [0; CODE_BYTES];
        code.copy_from_slice(&remainder.to_be_bytes()[..CODE_BYTES]);
        code
    })
}

/// The remainder after eight more bytes, the first of them the highest of `word`.
fn step(remainder: u128, word: u64) -> u128 {
    let bytes = ((remainder >> 64) as u64 ^ word).to_le_bytes();
    let folded =
        bytes.iter().zip(&TABLES).fold(0, |sum, (&byte, table)| sum ^ table[byte as usize]);
    remainder << 64 ^ folded
}

const fn tables() -> [[u128; 256]; WORD_BYTES] {
    let generator = GENERATOR << UNUSED_BITS;
    let mut tables = [[0; 256]; WORD_BYTES];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = (byte as u128) << 120;
        let mut bit = 0;
        while bit < 8 {
            let carry = remainder >> 127 == 1;
            remainder = remainder << 1 ^ if carry { generator } else { 0 };
            bit += 1;
        }
        tables[0][byte] = remainder;
        byte += 1;
    }
    let mut after = 1;
    while after < WORD_BYTES {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[after - 1][byte];
            tables[after][byte] = before << 8 ^ tables[0][(before >> 120) as usize];
            byte += 1;
        }
        after += 1;
    }
    tables
}

const fn generator() -> u128 {
    let mut product = 1;
    let mut power = 1;
    while power < 2 * ERRORS {
        let factor = minimal_polynomial(power);
        let mut sum = 0;
        let mut degree = 0;
        while degree <= FIELD_DEGREE {
            if factor >> degree & 1 == 1 {
                sum ^= product << degree;
            }
            degree += 1;
        }
        product = sum;
        power += 2;
    }
    product
}

/// The polynomial of least degree with this power of alpha as a root: the product of (x + root) for
/// that power and its conjugates, which are its squares.
const fn minimal_polynomial(power: u32) -> u128 {
    let mut root = 1;
    let mut count = 0;
    while count < power {
        root = product(root, 2);
        count += 1;
    }
    let mut coefficients = [0; FIELD_DEGREE + 1];
    coefficients[0] = 1;
    let mut degree = 0;
    while degree < FIELD_DEGREE {
        let mut at = degree + 1;
        while at > 0 {
            coefficients[at] = coefficients[at - 1] ^ product(coefficients[at], root);
            at -= 1;
        }
        coefficients[0] = product(coefficients[0], root);
        root = product(root, root);
        degree += 1;
    }
    let mut polynomial = 0;
    let mut at = 0;
    while at <= FIELD_DEGREE {
        assert!(coefficients[at] <= 1, "a minimal polynomial has its coefficients in GF(2)");
        polynomial |= (coefficients[at] as u128) << at;
        at += 1;
    }
    polynomial
}

/// In GF(2^13).
const fn product(left: u32, right: u32) -> u32 {
    let (mut left, mut right, mut sum) = (left, right, 0);
    while right != 0 {
        if right & 1 == 1 {
            sum ^= left;
        }
        left <<= 1;
        if left >> FIELD_DEGREE == 1 {
            left ^= PRIMITIVE;
        }
        right >>= 1;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::{CODE_BYTES, ERRORS, GENERATOR, codes, product};
    use crate::fingerprint::sectors::SECTOR_BYTES;
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    /// As a shift register does it, one bit after the other.
    fn remainder_of_bits(bytes: impl IntoIterator<Item = u8>) -> u128 {
        let mut register: u128 = 0;
        for byte in bytes {
            for bit in (0..8).rev() {
                register = register << 1 | u128::from(byte >> bit & 1);
                if register >> 104 == 1 {
                    register ^= GENERATOR;
                }
            }
        }
        register
    }

    fn sector(bytes: &[u8]) -> [u8; SECTOR_BYTES] {
        bytes.try_into().unwrap()
    }

    fn code(sector: &[u8; SECTOR_BYTES]) -> [u8; CODE_BYTES] {
        codes(&[*sector])[0]
    }

    /// The same generator comes out of Python's `galois.BCH(8191, d=17)`.
    #[test]
    fn the_generator_is_that_of_the_code() {
        assert_eq!(GENERATOR, 0x115_f914_e07b_0c13_8741_c5c4_fb23);
        assert_eq!(GENERATOR.ilog2(), 104, "4224 - 4120 bits");
        let alpha = |power| (0..power).fold(1, |element, _| product(element, 2));
        assert_eq!(alpha(8191), 1);
        assert!((1..8191).all(|power| (power == 1) == (alpha(power) == 2)), "alpha is primitive");
        for power in 1..=2 * ERRORS {
            let root = alpha(power);
            let value = (0..=104)
                .rev()
                .fold(0, |sum, degree| product(sum, root) ^ (GENERATOR >> degree & 1) as u32);
            assert_eq!(value, 0, "alpha^{power} is no root");
        }
    }

    proptest! {
        #[test]
        fn a_sector_and_its_code_are_divisible_by_the_generator(
            bytes in vec(any::<u8>(), SECTOR_BYTES),
        ) {
            let code = code(&sector(&bytes));
            prop_assert_eq!(remainder_of_bits(bytes.iter().copied().chain(code)), 0);
            // 24 bits out of band in front, zeros, are 4224 bits in all and change nothing.
            let word = [0; 3].into_iter().chain(bytes).chain(code);
            prop_assert_eq!(word.clone().count() * 8, 4224);
            prop_assert_eq!(remainder_of_bits(word), 0);
        }

        #[test]
        fn sectors_side_by_side_have_the_codes_of_one(bytes in vec(any::<u8>(), 8 * SECTOR_BYTES)) {
            let (sectors, _) = bytes.as_chunks::<SECTOR_BYTES>();
            let eight: [_; 8] = sectors.try_into().unwrap();
            prop_assert_eq!(codes(&eight), eight.map(|sector| code(&sector)));
        }

        /// What corrects eight errors has code words that differ in seventeen bits at least, so
        /// sectors that differ in fewer cannot share their code.
        #[test]
        fn few_other_bits_make_another_code(
            bytes in vec(any::<u8>(), SECTOR_BYTES),
            flips in proptest::collection::btree_set(0..SECTOR_BYTES * 8, 1..=16),
        ) {
            let before = sector(&bytes);
            let mut after = before;
            for flip in flips {
                after[flip / 8] ^= 1 << (flip % 8);
            }
            proptest::prop_assert_ne!(code(&before), code(&after));
        }
    }
}
