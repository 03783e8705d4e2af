//! CRC-64/NVME: the protection information of 64 bits that NVMe devices keep beside each block.
//!
//! NVM Command Set Specification, section 5.2.1.3.4: polynomial 0xAD93D23594C93659, bits of a byte
//! from the lowest on, the register all ones at first and inverted at last. As in [`super::bch`],
//! eight bytes are taken at a time, through one table for each, and several sectors in turn. The
//! crates that use carry-less multiplication are archived (`crc64fast-nvme`), or bring an older
//! `digest` along (`crc-fast`).
//!
//! Linear as well: two sectors that differ by a multiple of the polynomial share their CRC.

use super::sectors::SECTOR_BYTES;

/// Of one sector.
pub(super) const CODE_BYTES: usize = 8;

/// The polynomial, x^0 the highest bit, x^64 left out.
const POLYNOMIAL: u64 = 0xad93_d235_94c9_3659_u64.reverse_bits();
const WORD_BYTES: usize = 8;

/// `TABLES[n][byte]`: what the register has of a byte after `n` others.
static TABLES: [[u64; 256]; WORD_BYTES] = tables();

/// The CRCs of some sectors, high byte first as devices store them.
pub(super) fn codes<const SECTORS: usize>(
    sectors: &[[u8; SECTOR_BYTES]; SECTORS],
) -> [[u8; CODE_BYTES]; SECTORS] {
    checksums(&sectors.each_ref()).map(u64::to_be_bytes)
}

/// The CRCs of some inputs of the same length, a multiple of eight bytes.
fn checksums<const INPUTS: usize, const BYTES: usize>(
    inputs: &[&[u8; BYTES]; INPUTS],
) -> [u64; INPUTS] {
    let mut registers = [!0; INPUTS];
    for at in 0..BYTES / WORD_BYTES {
        for (register, input) in registers.iter_mut().zip(inputs) {
            let (words, _) = input.as_chunks::<WORD_BYTES>();
            *register = step(*register, u64::from_le_bytes(words[at]));
        }
    }
    registers.map(|register| !register)
}

/// The register after eight more bytes, the first of them the lowest of `word`.
fn step(register: u64, word: u64) -> u64 {
    let bytes = (register ^ word).to_be_bytes();
    bytes.iter().zip(&TABLES).fold(0, |sum, (&byte, table)| sum ^ table[byte as usize])
}

const fn tables() -> [[u64; 256]; WORD_BYTES] {
    let mut tables = [[0; 256]; WORD_BYTES];
    let mut byte = 0;
    while byte < 256 {
        let mut register = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            register = register >> 1 ^ if register & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        tables[0][byte] = register;
        byte += 1;
    }
    let mut after = 1;
    while after < WORD_BYTES {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[after - 1][byte];
            tables[after][byte] = before >> 8 ^ tables[0][(before & 255) as usize];
            byte += 1;
        }
        after += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::{POLYNOMIAL, checksums, codes};
    use crate::fingerprint::sectors::SECTOR_BYTES;
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    /// One bit after the other.
    fn checksum_of_bits(bytes: &[u8]) -> u64 {
        let mut register = !0;
        for byte in bytes {
            register ^= u64::from(*byte);
            for _ in 0..8 {
                register = register >> 1 ^ if register & 1 == 1 { POLYNOMIAL } else { 0 };
            }
        }
        !register
    }

    /// From the NVM Command Set Specification, figure 122, and Linux's `crypto/testmgr.h`; the
    /// check value from the catalogue of CRCs.
    #[test]
    fn published_vectors_hold() {
        assert_eq!(checksum_of_bits(b"123456789"), 0xae8b_1486_0a79_9888);
        let counting: Vec<u8> = (0..4096).map(|at| at as u8).collect();
        let counting: &[u8; 4096] = counting.as_slice().try_into().unwrap();
        let found = checksums(&[&[0; 4096], &[255; 4096], counting]);
        let expected = [0x6482_d367_eb22_b64e, 0xc0dd_ba73_02ec_a3ac, 0x3e72_9f5f_6750_449c];
        assert_eq!(found, expected);
    }

    proptest! {
        #[test]
        fn sectors_side_by_side_have_the_checksums_of_bits(
            bytes in vec(any::<u8>(), 8 * SECTOR_BYTES),
        ) {
            let (sectors, _) = bytes.as_chunks::<SECTOR_BYTES>();
            let eight: [_; 8] = sectors.try_into().unwrap();
            let expected = eight.map(|sector| checksum_of_bits(&sector).to_be_bytes());
            prop_assert_eq!(codes(&eight), expected);
            prop_assert_eq!(eight.map(|sector| codes(&[sector])[0]), expected);
        }
    }
}
