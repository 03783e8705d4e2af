//! How fast a tenant may go.

use std::num::NonZeroU64;
use std::time::Duration;

use accounts::TenantLimits;

/// What a tenant may do in a second, and how far it may be ahead.
///
/// A request of `n` bytes takes `1 / requests_per_s + n / bytes_per_s` seconds of the tenant's
/// time; a limit that is not there takes none. So both limits hold, and who uses half of one has
/// half of the other left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Requests a second; none: any number.
    pub requests_per_s: Option<NonZeroU64>,
    /// Bytes a second, of requests and answers together; none: any number.
    pub bytes_per_s: Option<NonZeroU64>,
    /// What may be done at once after a pause: what the rates give in this time, in milliseconds.
    pub burst_ms: u32,
}

impl Rates {
    /// No limit.
    pub const UNLIMITED: Self =
        Self { requests_per_s: None, bytes_per_s: None, burst_ms: TenantLimits::BURST_MS_DEFAULT };

    /// Whether anything is limited.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.requests_per_s.is_some() || self.bytes_per_s.is_some()
    }

    /// Time of the tenant that so much work takes, in nanoseconds, rounded up.
    #[must_use]
    pub(crate) fn cost_ns(&self, requests: u64, bytes: u64) -> u64 {
        let part = |amount: u64, rate: Option<NonZeroU64>| match rate {
            None => 0,
            Some(rate) => (u128::from(amount) * 1_000_000_000).div_ceil(u128::from(rate.get())),
        };
        let cost = part(requests, self.requests_per_s) + part(bytes, self.bytes_per_s);
        u64::try_from(cost).unwrap_or(u64::MAX)
    }

    pub(crate) fn burst(&self) -> Duration {
        Duration::from_millis(self.burst_ms.into())
    }
}

impl From<&TenantLimits> for Rates {
    fn from(limits: &TenantLimits) -> Self {
        Self {
            requests_per_s: limits.requests_per_s,
            bytes_per_s: limits.bytes_per_s,
            burst_ms: limits.burst_ms.unwrap_or(TenantLimits::BURST_MS_DEFAULT),
        }
    }
}
