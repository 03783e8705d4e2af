//! What DedupCore and its surroundings say to each other, in words instead of ports.

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;
/// Bytes of a beat of the page bus, of which a page has 64.
pub const BEAT_BYTES: usize = 64;

/// SHA3-256 of a page, byte 0 first.
pub type Digest = [u8; 32];
/// A line of memory: 512 bits, the lowest word first.
pub type Line = [u32; 16];

/// What the host asks for (Table 4.1 of the report).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Op {
    /// Nothing.
    Nop,
    /// Pages are stored, or get one reference more.
    Write,
    /// A page loses a reference.
    Erase,
    /// Where a page is.
    Read,
}

impl Op {
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Nop => 0,
            Self::Write => 1,
            Self::Erase => 2,
            Self::Read => 3,
        }
    }
}

/// What the core found and did; `rtl/dedup_core/dedup.sv` says when.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Verdict {
    /// The page was not there and is stored.
    New,
    /// The page stays, with another count.
    Shared,
    /// The last reference is gone, and the page.
    Erased,
    /// A read found the page.
    Found,
    /// There is no such page.
    Absent,
    /// The page is new, and no index is free.
    Full,
}

impl Verdict {
    pub(crate) fn of(code: u8) -> Self {
        let all = [Self::New, Self::Shared, Self::Erased, Self::Found, Self::Absent, Self::Full];
        let known = all.get(usize::from(code)).copied();
        known.unwrap_or_else(|| panic!("the core has no verdict {code}"))
    }
}

/// One result, in the order of the instructions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Answer {
    /// Of the instruction.
    pub tag: u16,
    /// The host's address, of a write's page the instruction's plus the page's place.
    pub lba: u32,
    /// Of the page.
    pub digest: Digest,
    /// What happened.
    pub verdict: Verdict,
    /// Where the page is; 0 where there is none.
    pub index: u32,
    /// References after the operation.
    pub count: u32,
    /// The cycle in which the host took it.
    pub cycle: u64,
}

/// How the core is set and what surrounds it.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Look-ups at once, 1 to 8.
    pub fsms: u8,
    /// Bloom filters are used.
    pub bloom: bool,
    /// A look-up goes to any idle FSM; else to one after the other.
    pub ready: bool,
    /// A count that has come so far stays.
    pub count_max: u32,
    /// Of the last 25 bits of a digest.
    pub bucket_mask: u32,
    /// Pages there is room for.
    pub capacity: u32,
    /// Cycles from a read of memory to its answer, and from a write to its landing.
    pub read_cycles: u64,
    /// See `read_cycles`.
    pub write_cycles: u64,
    /// Tenths of a cycle in which the host can bring a page; 640 is the bus.
    pub page_tenths: u64,
    /// All sides pause by chance, and memory and device take up to four times as long.
    pub jitter: bool,
    /// Decides everything that is chance.
    pub seed: u64,
    /// The known fault, of `rtl/dedup_core/mutants.svh`; 0 for none.
    pub mutant: u8,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            fsms: 6,
            bloom: true,
            ready: true,
            count_max: u32::MAX,
            bucket_mask: (1 << 15) - 1,
            capacity: 1 << 18,
            read_cycles: 55,
            write_cycles: 55,
            page_tenths: 640,
            jitter: false,
            seed: 1,
            mutant: 0,
        }
    }
}

/// The words of a digest as the core has it: the last bytes lowest.
pub(crate) fn digest_words(digest: &Digest) -> [u32; 8] {
    let mut words = [0; 8];
    for (word, bytes) in words.iter_mut().rev().zip(digest.chunks_exact(4)) {
        *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    words
}

/// The inverse of [`digest_words`].
pub(crate) fn digest_of(words: &[u32]) -> Digest {
    let mut digest = [0; 32];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(words.iter().take(8).rev()) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}
