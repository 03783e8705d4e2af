//! Units that models must not mix up: rates, bytes moved for a byte, cores, cycles, money.

use std::ops::{Add, Div, Mul, Sub};

/// Bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// 10^9 bytes a second.
#[derive(Copy, Clone, Debug, PartialEq, PartialOrd)]
pub struct GbPerSecond(pub f64);

/// Bytes moved for each byte of a client.
#[derive(Copy, Clone, Debug, PartialEq, PartialOrd)]
pub struct BytesPerByte(pub f64);

/// Cores that 1 GB/s of a client keeps busy.
#[derive(Copy, Clone, Debug, PartialEq, PartialOrd)]
pub struct CoresPerGbPerSecond(pub f64);

/// Cores.
#[derive(Copy, Clone, Debug, PartialEq, PartialOrd)]
pub struct Cores(pub f64);

/// US dollars.
#[derive(Copy, Clone, Debug, PartialEq, PartialOrd)]
pub struct Dollars(pub f64);

/// Cycles of a clock.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cycles(pub u64);

/// Bytes of a chunk that is deduplicated as one, in every paper but CIDR.
pub const CHUNK_BYTES: u64 = 4096;

impl Bytes {
    /// 10^9 bytes.
    #[must_use]
    pub fn gigabytes(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// 2^20 bytes.
    #[must_use]
    pub fn mebibytes(self) -> f64 {
        self.0 as f64 / (1_u64 << 20) as f64
    }

    /// 2^40 bytes.
    #[must_use]
    pub fn tebibytes(self) -> f64 {
        self.0 as f64 / (1_u64 << 40) as f64
    }
}

impl GbPerSecond {
    /// Chunks of 4 KiB a second, in millions.
    #[must_use]
    pub fn million_chunks(self) -> f64 {
        self.0 * 1e3 / CHUNK_BYTES as f64
    }

    /// From millions of chunks a second.
    #[must_use]
    pub fn of_million_chunks(chunks: f64) -> Self {
        Self(chunks * CHUNK_BYTES as f64 / 1e3)
    }
}

impl Cycles {
    /// Microseconds at a clock of this many MHz.
    #[must_use]
    pub fn microseconds(self, clock_mhz: f64) -> f64 {
        self.0 as f64 / clock_mhz
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Add for BytesPerByte {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Add for CoresPerGbPerSecond {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Add for Dollars {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Dollars {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<BytesPerByte> for GbPerSecond {
    type Output = Self;
    fn mul(self, traffic: BytesPerByte) -> Self {
        Self(self.0 * traffic.0)
    }
}

impl Mul<CoresPerGbPerSecond> for GbPerSecond {
    type Output = Cores;
    fn mul(self, cost: CoresPerGbPerSecond) -> Cores {
        Cores(self.0 * cost.0)
    }
}

impl Div<BytesPerByte> for GbPerSecond {
    type Output = Self;
    fn div(self, traffic: BytesPerByte) -> Self {
        Self(self.0 / traffic.0)
    }
}

impl Div<CoresPerGbPerSecond> for Cores {
    type Output = GbPerSecond;
    fn div(self, cost: CoresPerGbPerSecond) -> GbPerSecond {
        GbPerSecond(self.0 / cost.0)
    }
}
