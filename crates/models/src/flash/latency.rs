//! What each step takes. Table 5 of EaD has all but two: SHA-256 is twice SHA-1, as the paper
//! measured it on its real platform (section 4.2), and the time of an erase is nowhere.

use serde::Serialize;

/// Times in nanoseconds.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// A page read from its cells.
    pub read_ns: u64,
    /// A page written.
    pub program_ns: u64,
    /// A block erased.
    pub erase_ns: u64,
    /// SHA-1 of 4 KiB.
    pub sha1_ns: u64,
    /// SHA-256 of 4 KiB.
    pub sha256_ns: u64,
    /// BLAKE2 of 4 KiB.
    pub blake2_ns: u64,
    /// BLAKE2 of the 104 bytes of a code.
    pub blake2_code_ns: u64,
    /// A page compared with another.
    pub compare_ns: u64,
    /// The code of a page made, or a page checked with it.
    pub code_ns: u64,
}

impl Latency {
    /// As the paper has them; an erase takes 1 ms, which is our assumption.
    pub const EAD: Self = Self {
        read_ns: 3_000,
        program_ns: 100_000,
        erase_ns: 1_000_000,
        sha1_ns: 14_300,
        sha256_ns: 2 * 14_300,
        blake2_ns: 9_800,
        blake2_code_ns: 1_000,
        compare_ns: 1_000,
        code_ns: 1_000,
    };
}
