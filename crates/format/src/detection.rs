//! How a store tells that a chunk is already stored: chosen when it is made, for as long as it is.
//!
//! Every chunk has a fingerprint of 32 bytes, whatever makes it: what is shorter is followed by
//! zeros. So all structures are the same for all kinds. A *strong* kind names a chunk: nobody can
//! make two chunks that share a fingerprint. With any other kind a fingerprint is a hint, and the
//! store compares bytes before it believes one; it may do so with a strong kind as well.

use std::fmt;

use crate::bucket::LOAD_MEAN;
use crate::domain::DomainSecret;
use crate::error::{FormatError, Structure};
use crate::{FORMAT_VERSION_COMMON, FORMAT_VERSION_DETECTION};

/// What makes a chunk's fingerprint.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum FingerprintKind {
    /// BLAKE3, 256 bits.
    #[default]
    Blake3 = 0,
    /// SHA-256.
    Sha256 = 1,
    /// SHA3-256.
    Sha3_256 = 2,
    /// SHA-512/256.
    Sha512_256 = 3,
    /// BLAKE2b with a digest of 256 bits.
    Blake2b = 4,
    /// SHA-1, 160 bits: collisions are public.
    Sha1 = 5,
    /// MD5, 128 bits: collisions are public.
    Md5 = 6,
    /// XXH3, 128 bits: no cryptographic hash.
    Xxh3 = 7,
    /// BLAKE2b, 80 bits, of the BCH codes that flash controllers keep of each sector: EaD's.
    EccBch = 8,
    /// The same of CRC-64/NVME, which NVMe devices keep of each block.
    EccCrc64 = 9,
}

impl FingerprintKind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; 10] = [
        Self::Blake3,
        Self::Sha256,
        Self::Sha3_256,
        Self::Sha512_256,
        Self::Blake2b,
        Self::Sha1,
        Self::Md5,
        Self::Xxh3,
        Self::EccBch,
        Self::EccCrc64,
    ];

    /// The kind that the format calls `number`.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// As users write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blake3 => "blake3",
            Self::Sha256 => "sha256",
            Self::Sha3_256 => "sha3-256",
            Self::Sha512_256 => "sha512-256",
            Self::Blake2b => "blake2b",
            Self::Sha1 => "sha1",
            Self::Md5 => "md5",
            Self::Xxh3 => "xxh3",
            Self::EccBch => "ecc-bch",
            Self::EccCrc64 => "ecc-crc64",
        }
    }

    /// The kind that users call `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Bytes of a fingerprint that say something; those behind them are zeros.
    #[must_use]
    pub const fn length_bytes(self) -> usize {
        match self {
            Self::Blake3 | Self::Sha256 | Self::Sha3_256 | Self::Sha512_256 | Self::Blake2b => 32,
            Self::Sha1 => 20,
            Self::Md5 | Self::Xxh3 => 16,
            Self::EccBch | Self::EccCrc64 => 10,
        }
    }

    /// Whether nobody can make two chunks that share a fingerprint of this kind, so that it may be
    /// believed without a look at the bytes.
    #[must_use]
    pub const fn is_strong(self) -> bool {
        match self {
            Self::Blake3 | Self::Sha256 | Self::Sha3_256 | Self::Sha512_256 | Self::Blake2b => true,
            Self::Sha1 | Self::Md5 | Self::Xxh3 | Self::EccBch | Self::EccCrc64 => false,
        }
    }
}

impl fmt::Display for FingerprintKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How large the filter in front of each bucket is, in blocks of 256 bits.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct FilterBlocks(u8);

impl FilterBlocks {
    /// Bits of a block.
    pub const BLOCK_BITS: u32 = 256;
    const MAX: u8 = 8;

    /// The number of blocks whose bits for each chunk are nearest to `bits`; none when that is
    /// less than one or more than eight.
    #[must_use]
    pub fn nearest_to(bits: u32) -> Option<Self> {
        let bits = bits.checked_mul(LOAD_MEAN)?.checked_add(Self::BLOCK_BITS / 2)?;
        let blocks = bits / Self::BLOCK_BITS;
        u8::try_from(blocks).ok().filter(|blocks| (1..=Self::MAX).contains(blocks)).map(Self)
    }

    /// Blocks of a bucket, 1 to 8.
    #[must_use]
    pub const fn count(self) -> usize {
        self.0 as usize
    }

    /// Bits for each chunk in a bucket of average load.
    #[must_use]
    pub fn bits_per_chunk(self) -> f64 {
        f64::from(u32::from(self.0) * Self::BLOCK_BITS) / f64::from(LOAD_MEAN)
    }
}

impl Default for FilterBlocks {
    /// Ten bits a chunk: one in a hundred of what is not stored costs a page.
    fn default() -> Self {
        Self(3)
    }
}

/// How a store finds duplicates.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Detection {
    /// What makes fingerprints.
    pub kind: FingerprintKind,
    /// Whether bytes are compared before a chunk counts as stored. Always so unless the kind is
    /// strong.
    pub verify: bool,
    /// How sure the filters are of what is not stored.
    pub filter: FilterBlocks,
    /// What keys of domains are made from, once the store has one.
    pub secret: Option<DomainSecret>,
    /// Whether a volume without deduplication has ever been here: then chunks may be aside of the
    /// Hash-PBN table, as their entries in the PBN-PBA table say.
    pub asides: bool,
}

impl Detection {
    const VERIFY_FLAG: u8 = 1;
    const DOMAINS_FLAG: u8 = 2;
    const ASIDES_FLAG: u8 = 4;

    /// Whether no chunk can be taken for another one.
    #[must_use]
    pub const fn is_safe(self) -> bool {
        self.verify || self.kind.is_strong()
    }

    /// Whether chunks may be stored that the Hash-PBN table does not know.
    #[must_use]
    pub const fn has_asides(self) -> bool {
        self.verify || self.asides
    }

    /// The version of a store that finds duplicates so. What version 2 did is version 2 for good:
    /// programs that know no other go on reading it.
    #[must_use]
    pub fn format_version(self) -> u32 {
        if self == Self::default() { FORMAT_VERSION_COMMON } else { FORMAT_VERSION_DETECTION }
    }

    /// Number of the kind, flags, and blocks of a filter; 0 for as many as version 2 had.
    pub(crate) fn to_bytes(self) -> [u8; 3] {
        let filter = if self.filter == FilterBlocks::default() { 0 } else { self.filter.0 };
        let verify = if self.verify { Self::VERIFY_FLAG } else { 0 };
        let domains = if self.secret.is_some() { Self::DOMAINS_FLAG } else { 0 };
        let asides = if self.asides { Self::ASIDES_FLAG } else { 0 };
        [self.kind as u8, verify | domains | asides, filter]
    }

    pub(crate) fn from_bytes(
        [kind, flags, filter]: [u8; 3],
        secret: [u8; 32],
    ) -> Result<Self, FormatError> {
        let impossible =
            |field, found| FormatError::field(Structure::Superblock, field, u64::from(found));
        let kind = FingerprintKind::from_number(kind)
            .ok_or_else(|| impossible("kind of fingerprint", kind))?;
        if flags & !(Self::VERIFY_FLAG | Self::DOMAINS_FLAG | Self::ASIDES_FLAG) != 0 {
            return Err(impossible("detection flags", flags));
        }
        let filter = match filter {
            0 => FilterBlocks::default(),
            blocks if blocks <= FilterBlocks::MAX => FilterBlocks(blocks),
            _ => return Err(impossible("blocks of a filter", filter)),
        };
        let secret = (flags & Self::DOMAINS_FLAG != 0).then_some(DomainSecret(secret));
        let (verify, asides) = (flags & Self::VERIFY_FLAG != 0, flags & Self::ASIDES_FLAG != 0);
        Ok(Self { kind, verify, filter, secret, asides })
    }
}
