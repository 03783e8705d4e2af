//! Digests: names of contents. Those of FIU's traces are MD5; ours are made from counters.

use std::fmt;

/// What names a piece of content: two pieces are equal if their digests are.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Digest(pub [u8; 16]);

impl Digest {
    /// The MD5 of a block of zeros.
    pub const ZERO_BLOCK: Self = Self(0x620f_0b67_a91f_7f74_151b_c5be_745b_7110_u128.to_be_bytes());
    /// The MD5 of a sector of zeros.
    pub const ZERO_SECTOR: Self =
        Self(0xbf61_9eac_0cdf_3f68_d496_ea93_4413_7e8b_u128.to_be_bytes());

    /// Its two halves, as numbers.
    #[must_use]
    pub fn halves(self) -> [u64; 2] {
        let whole = u128::from_be_bytes(self.0);
        [(whole >> 64) as u64, whole as u64]
    }

    /// The digest of these halves.
    #[must_use]
    pub fn from_halves([high, low]: [u64; 2]) -> Self {
        Self((u128::from(high) << 64 | u128::from(low)).to_be_bytes())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// A bijection of 64 bits in which every bit of the input moves half of the output (the finisher of
/// splitmix64).
pub(crate) fn mix(value: u64) -> u64 {
    let mixed = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::Digest;

    #[test]
    fn a_digest_is_shown_as_traces_have_it() {
        assert_eq!(Digest::ZERO_BLOCK.to_string(), "620f0b67a91f7f74151bc5be745b7110");
        assert_eq!(Digest([0; 16]).to_string(), "0".repeat(32));
        let digest = Digest::ZERO_SECTOR;
        assert_eq!(Digest::from_halves(digest.halves()), digest);
    }
}
