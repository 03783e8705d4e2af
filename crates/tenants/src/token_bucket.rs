//! A token bucket whose tokens are the tenant's time.
//!
//! ```text
//! paid_ns ──────────── now       credit: at most the burst is kept, the rest is lost
//! now ──────────── paid_ns       debt: what was done is paid when now gets there
//! ```
//!
//! A request is charged and then waits until it is paid; or it is carried out, and what comes
//! behind it waits. Both are the same sum: whatever is charged moves `paid_ns` by its cost, so
//! those who charge side by side wait one behind another.

use std::num::NonZeroU64;
use std::time::Duration;

use crate::rates::Rates;

/// Costs beyond this are charged as this: some 36 years.
const COST_NS_MAX: u64 = 1 << 60;

/// The tokens of one tenant. It has no clock: each call says how much time has passed since a
/// moment of the caller's choice.
///
/// ```
/// use std::time::Duration;
/// use tenants::{Rates, TokenBucket};
/// let requests_per_s = std::num::NonZeroU64::new(10);
/// let rates = Rates { requests_per_s, bytes_per_s: None, burst_ms: 200 };
/// let mut tokens = TokenBucket::new(rates, Duration::ZERO);
/// // Two are there at once; the third is paid a tenth of a second later.
/// assert_eq!(tokens.charge(2, 0, Duration::ZERO), Duration::ZERO);
/// assert_eq!(tokens.charge(1, 0, Duration::ZERO), Duration::from_millis(100));
/// ```
#[derive(Clone, Debug)]
pub struct TokenBucket {
    rates: Rates,
    /// When all that was charged is paid; before now where there is credit.
    paid_ns: i128,
}

impl TokenBucket {
    /// A full bucket.
    #[must_use]
    pub fn new(rates: Rates, now: Duration) -> Self {
        Self { rates, paid_ns: ns(now) - ns(rates.burst()) }
    }

    /// The rates.
    #[must_use]
    pub fn rates(&self) -> &Rates {
        &self.rates
    }

    /// Charges so much work; returns how long it takes until it is paid. Zero: the tokens were
    /// there.
    pub fn charge(&mut self, requests: u64, bytes: u64, now: Duration) -> Duration {
        let cost_ns = self.rates.cost_ns(requests, bytes).min(COST_NS_MAX);
        self.paid_ns = self.kept_ns(now) + i128::from(cost_ns);
        self.debt(now)
    }

    /// Takes back a charge whose work is not done.
    pub fn refund(&mut self, requests: u64, bytes: u64) {
        // More than a burst is not kept: the next charge sees to that.
        self.paid_ns -= i128::from(self.rates.cost_ns(requests, bytes).min(COST_NS_MAX));
    }

    /// How long it takes until all that was charged is paid.
    #[must_use]
    pub fn debt(&self, now: Duration) -> Duration {
        let debt_ns = (self.paid_ns - ns(now)).max(0);
        Duration::from_nanos(u64::try_from(debt_ns).unwrap_or(u64::MAX))
    }

    /// Changes the rates. The tokens that are there are worth no more work than before, and no debt
    /// grows, so that nobody gains a burst by a change and nobody waits longer for what was done.
    pub fn set_rates(&mut self, rates: Rates, now: Duration) {
        if rates == self.rates {
            return;
        }
        let level_ns = ns(now) - self.kept_ns(now);
        let ratios = [
            ratio(self.rates.requests_per_s, rates.requests_per_s),
            ratio(self.rates.bytes_per_s, rates.bytes_per_s),
        ];
        let ratios = ratios.into_iter().flatten();
        let scaled = |level_ns: i128, factor: f64| (level_ns as f64 * factor.min(1.0)) as i128;
        let level_ns = match level_ns > 0 {
            true => {
                let factor = ratios.fold(1.0, f64::min);
                scaled(level_ns, factor).min(ns(rates.burst()))
            }
            false => scaled(level_ns, ratios.fold(0.0, f64::max)),
        };
        self.rates = rates;
        self.paid_ns = ns(now) - level_ns;
    }

    /// `paid_ns` with no more credit than is kept.
    fn kept_ns(&self, now: Duration) -> i128 {
        self.paid_ns.max(ns(now) - ns(self.rates.burst()))
    }
}

/// What the work of a second at the old rate takes at the new one; none where neither limits.
fn ratio(old: Option<NonZeroU64>, new: Option<NonZeroU64>) -> Option<f64> {
    match (old, new) {
        (Some(old), Some(new)) => Some(old.get() as f64 / new.get() as f64),
        // A new limit begins without tokens; the debt of one that is gone is gone.
        (None, Some(_)) | (Some(_), None) => Some(0.0),
        (None, None) => None,
    }
}

fn ns(time: Duration) -> i128 {
    i128::try_from(time.as_nanos()).unwrap_or(i128::MAX >> 1)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;
    use std::time::Duration;

    use proptest::prelude::{Strategy, any, prop};
    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::TokenBucket;
    use crate::rates::Rates;

    const SECOND: Duration = Duration::from_secs(1);

    fn rates(requests: u64, bytes: u64, burst_ms: u32) -> Rates {
        let (requests_per_s, bytes_per_s) = (NonZeroU64::new(requests), NonZeroU64::new(bytes));
        Rates { requests_per_s, bytes_per_s, burst_ms }
    }

    fn some_rates() -> impl Strategy<Value = Rates> {
        (0u64..2000, 0u64..5_000_000, 0u32..3000)
            .prop_map(|(requests, bytes, burst_ms)| rates(requests, bytes, burst_ms))
    }

    /// Pauses in microseconds, with the work that comes behind each.
    fn some_work() -> impl Strategy<Value = Vec<(u64, u64, u64)>> {
        prop::collection::vec((0u64..400_000, 0u64..5, 0u64..400_000), 1..60)
    }

    proptest! {
        /// What is granted between two grants is at most the burst, or the first request where
        /// that alone is more, and the time between them.
        #[test]
        fn no_interval_has_more_than_burst_and_rate(rates in some_rates(), work in some_work()) {
            let mut tokens = TokenBucket::new(rates, Duration::ZERO);
            let mut now = Duration::ZERO;
            let mut grants: Vec<(u128, u128)> = Vec::new();
            for (pause_us, requests, bytes) in work {
                now += Duration::from_micros(pause_us);
                let granted = now + tokens.charge(requests, bytes, now);
                grants.push((granted.as_nanos(), rates.cost_ns(requests, bytes).into()));
            }
            let burst = rates.burst().as_nanos();
            for first in 0..grants.len() {
                let mut sum = 0;
                for last in first..grants.len() {
                    sum += grants[last].1;
                    let between = grants[last].0 - grants[first].0;
                    prop_assert!(sum <= burst.max(grants[first].1) + between);
                }
            }
        }

        /// Against a bucket that is filled nanosecond for nanosecond: who waits has fewer tokens
        /// than it needs, and waits for exactly those that it lacks.
        #[test]
        fn nobody_waits_while_tokens_are_there(rates in some_rates(), work in some_work()) {
            let mut tokens = TokenBucket::new(rates, SECOND);
            let (mut now, mut level) = (SECOND, rates.burst().as_nanos() as i128);
            for (pause_us, requests, bytes) in work {
                let pause = Duration::from_micros(pause_us);
                now += pause;
                level = (level + pause.as_nanos() as i128).min(rates.burst().as_nanos() as i128);
                level -= i128::from(rates.cost_ns(requests, bytes));
                let waits = tokens.charge(requests, bytes, now).as_nanos() as i128;
                prop_assert_eq!(waits, (-level).max(0));
            }
        }

        /// After a change nobody can do more at once than before it, in requests or in bytes.
        #[test]
        fn a_change_gives_no_burst(
            old in some_rates(), new in some_rates(), work in some_work(), back in any::<bool>(),
        ) {
            let mut tokens = TokenBucket::new(old, Duration::ZERO);
            let mut now = Duration::ZERO;
            for (pause_us, requests, bytes) in work {
                now += Duration::from_micros(pause_us);
                tokens.charge(requests, bytes, now);
            }
            let at_once = |tokens: &TokenBucket, requests: u64, bytes: u64| {
                tokens.clone().charge(requests, bytes, now) == Duration::ZERO
            };
            let mut changed = tokens.clone();
            changed.set_rates(new, now);
            if back {
                changed.set_rates(rates(1_000_000, 1 << 40, 60_000), now);
            }
            prop_assert!(changed.debt(now) <= tokens.debt(now));
            for amount in [1, 2, 10, 100, 10_000, 1 << 20] {
                if changed.rates().requests_per_s.is_some() && old.requests_per_s.is_some() {
                    prop_assert!(at_once(&tokens, amount, 0) || !at_once(&changed, amount, 0));
                }
                if changed.rates().bytes_per_s.is_some() && old.bytes_per_s.is_some() {
                    prop_assert!(at_once(&tokens, 0, amount) || !at_once(&changed, 0, amount));
                }
            }
        }
    }

    #[test]
    fn both_limits_hold_and_a_refund_is_one() {
        let mut tokens = TokenBucket::new(rates(100, 1000, 0), Duration::ZERO);
        assert_eq!(tokens.charge(1, 0, Duration::ZERO), Duration::from_millis(10));
        assert_eq!(tokens.charge(0, 90, Duration::ZERO), Duration::from_millis(100));
        tokens.refund(0, 90);
        assert_eq!(tokens.debt(Duration::ZERO), Duration::from_millis(10));
        assert_eq!(tokens.charge(u64::MAX, u64::MAX, SECOND).as_nanos(), 1 << 60);
        tokens.refund(u64::MAX, u64::MAX);
        assert_eq!(tokens.debt(SECOND), Duration::ZERO);
    }

    #[test]
    fn a_raised_rate_shortens_the_debt() {
        let mut tokens = TokenBucket::new(rates(1, 0, 0), Duration::ZERO);
        tokens.charge(100, 0, Duration::ZERO);
        tokens.set_rates(rates(10, 0, 0), Duration::ZERO);
        assert_eq!(tokens.debt(Duration::ZERO), 10 * SECOND);
        tokens.set_rates(rates(1, 0, 0), Duration::ZERO);
        assert_eq!(tokens.debt(Duration::ZERO), 10 * SECOND);
        tokens.set_rates(Rates::UNLIMITED, Duration::ZERO);
        assert_eq!(tokens.debt(Duration::ZERO), Duration::ZERO);
        tokens.set_rates(rates(1, 0, 5000), SECOND);
        assert_eq!(tokens.charge(1, 0, SECOND), SECOND);
    }
}
