//! `sha3_256` against the crate `sha3` and FIPS 202's own examples, `bch_encoder` against the zeros
//! that make a codeword, and both against the fingerprints that the store makes of pages.
//!
//! 500 random inputs each; `COSIM_INPUTS=10000` for more.

#![cfg(verilator)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use blake2::Blake2b;
use blake2::digest::consts::U10;
use cosim::{BchEncoder, SECTOR_BYTES, Sha3};
use engine::FingerprintKind;
use reduce::Fingerprinter;
use sha3::{Digest, Sha3_256};

/// A page of the store.
const PAGE_BYTES: usize = 4096;
/// What the report's core takes for a page (D1).
const REPORT_CYCLES: u64 = 3360;

/// xorshift64*: which inputs, from a seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| (self.roll() >> 56) as u8).collect()
    }
}

fn inputs() -> u64 {
    std::env::var("COSIM_INPUTS").ok().and_then(|count| count.parse().ok()).unwrap_or(500)
}

fn expected(message: &[u8]) -> [u8; 32] {
    Sha3_256::digest(message).into()
}

#[test]
fn sha3_knows_the_answers_of_fips_202() {
    let mut core = Sha3::new();
    let hex = |bytes: [u8; 32]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let empty = hex(core.digest(b"", || false).value);
    assert_eq!(empty, "a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a");
    let long = hex(core.digest(&[0xa3; 200], || false).value);
    assert_eq!(long, "79f38adec5c20307a98ef76e8324afbfd46cfd81b22e3973c65fa1bd9de31787");
}

#[test]
fn sha3_of_every_length_around_its_blocks_and_words() {
    let mut core = Sha3::new();
    let mut dice = Dice(1);
    for length in (0..300).chain(PAGE_BYTES - 140..=PAGE_BYTES) {
        let message = dice.bytes(length);
        assert_eq!(core.digest(&message, || false).value, expected(&message), "{length} bytes");
    }
    for byte in [0, 0xff, 0x80, 1] {
        let message = [byte; PAGE_BYTES];
        assert_eq!(core.digest(&message, || false).value, expected(&message));
    }
}

#[test]
fn sha3_of_random_messages_with_pauses_of_both_sides() {
    let mut core = Sha3::new();
    let mut dice = Dice(2);
    for _ in 0..inputs() {
        let length = (dice.roll() % (PAGE_BYTES as u64 + 1)) as usize;
        let message = dice.bytes(length);
        let mut coin = Dice(dice.roll());
        let found = core.digest(&message, || coin.roll() >> 62 == 0);
        assert_eq!(found.value, expected(&message), "{length} bytes");
    }
}

#[test]
fn a_page_takes_no_more_cycles_than_the_reports_core() {
    let found = Sha3::new().digest(&[0x5a; PAGE_BYTES], || false);
    // 512 words, 31 permutations of 24 rounds, the padding, and the cycle of the answer.
    assert_eq!(found.cycles, 512 + 31 * 24 + 1 + 1);
    assert!(found.cycles <= REPORT_CYCLES);
}

/// Bits of a codeword, its parity, and the errors that the code corrects.
const CODEWORD_BITS: usize = 4224;
const PARITY_BITS: usize = 104;
const ERRORS: usize = 8;

/// GF(2^13): powers of alpha, a root of x^13 + x^4 + x^3 + x + 1.
fn powers() -> Vec<u16> {
    let mut powers = vec![1_u16];
    while powers.len() < 8191 {
        let next = powers.last().unwrap() << 1;
        powers.push(if next >> 13 == 1 { next ^ 0x201b } else { next });
    }
    powers
}

/// The codeword as the code's definition has it: zero at alpha^1 .. alpha^16.
fn is_codeword(bits: &[bool], powers: &[u16]) -> bool {
    (1..=2 * ERRORS).all(|root| {
        let set = bits.iter().rev().enumerate().filter(|(_, bit)| **bit);
        set.fold(0, |sum, (at, _)| sum ^ powers[root * at % powers.len()]) == 0
    })
}

fn bits_of(bytes: &[u8]) -> impl Iterator<Item = bool> + '_ {
    bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1))
}

#[test]
fn bch_makes_codewords_of_random_sectors_with_spare_bits() {
    let powers = powers();
    let mut encoder = BchEncoder::new();
    let mut dice = Dice(3);
    for at in 0..inputs() {
        let mut sector: [u8; SECTOR_BYTES] = dice.bytes(SECTOR_BYTES).try_into().unwrap();
        // The edges: nothing, everything, one bit alone at each end and somewhere.
        match at {
            0 => sector = [0; SECTOR_BYTES],
            1 => sector = [0xff; SECTOR_BYTES],
            2..60 => {
                sector = [0; SECTOR_BYTES];
                sector[(at as usize - 2) * 9 % SECTOR_BYTES] = 1 << (at % 8);
            }
            _ => {}
        }
        let spare: [u8; 3] = if at == 0 { [0; 3] } else { dice.bytes(3).try_into().unwrap() };
        let mut coin = Dice(dice.roll());
        let found = encoder.parity(spare, &sector, || coin.roll() >> 62 == 0);
        let bits: Vec<bool> =
            bits_of(&spare).chain(bits_of(&sector)).chain(bits_of(&found.value)).collect();
        assert_eq!(bits.len(), CODEWORD_BITS);
        assert!(is_codeword(&bits, &powers), "sector {at}");
        assert_eq!(found.value.len() * 8, PARITY_BITS);
    }
}

#[test]
fn a_sector_takes_a_cycle_a_word() {
    let found = BchEncoder::new().parity([0; 3], &[0xa5; SECTOR_BYTES], || false);
    assert_eq!(found.cycles, 65 + 1);
}

/// An index for EaD has ten bytes of BLAKE2b of the parities of a page's sectors.
#[test]
fn pages_have_the_fingerprints_of_the_store() {
    let (mut core, mut encoder, mut dice) = (Sha3::new(), BchEncoder::new(), Dice(4));
    let store_has =
        |kind, page: &[u8]| Fingerprinter::new(kind).one(page).expect("the page has data").0;
    for _ in 0..inputs().div_ceil(20) {
        let page = dice.bytes(PAGE_BYTES);
        let digest = core.digest(&page, || false).value;
        assert_eq!(digest, store_has(FingerprintKind::Sha3_256, &page));
        let mut key = Blake2b::<U10>::new();
        for sector in page.as_chunks().0 {
            key.update(encoder.parity([0; 3], sector, || false).value);
        }
        let expected = store_has(FingerprintKind::EccBch, &page);
        assert_eq!(key.finalize().as_slice(), &expected[..10]);
    }
}
