//! When an item ends. The client gives seconds from now, or a time; the store keeps a time.

/// Clients' numbers above this are times since 1970, others are seconds from now: 30 days.
const RELATIVE_S_MAX: i64 = 60 * 60 * 24 * 30;

/// The second, since 1970, at which an item is no longer there; or never.
///
/// ```
/// use memcached::Expiry;
/// let now_s = 1_700_000_000;
/// assert_eq!(Expiry::from_client(0, now_s), Expiry::NEVER);
/// assert_eq!(Expiry::from_client(90, now_s).at_s(), Some(now_s + 90));
/// assert!(Expiry::from_client(-1, now_s).is_over(now_s));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Expiry(u64);

impl Expiry {
    /// The item stays until it is deleted or evicted.
    pub const NEVER: Expiry = Expiry(0);
    /// The item has ended already.
    pub const PAST: Expiry = Expiry(1);

    /// What a client's number means: 0 is never; a negative one has passed; up to 30 days count
    /// from `now_s`; above that it is a time.
    pub fn from_client(exptime: i64, now_s: u64) -> Self {
        match u64::try_from(exptime) {
            Ok(0) => Expiry::NEVER,
            Ok(seconds) if exptime <= RELATIVE_S_MAX => Expiry(now_s.saturating_add(seconds)),
            Ok(time_s) => Expiry(time_s),
            Err(_) => Expiry::PAST,
        }
    }

    /// As it was stored, where 0 is never.
    pub const fn from_stored(at_s: u64) -> Self {
        Expiry(at_s)
    }

    /// As it is to be stored, where 0 is never.
    pub const fn to_stored(self) -> u64 {
        self.0
    }

    /// The second at which the item ends, unless it never does.
    pub fn at_s(self) -> Option<u64> {
        (self != Expiry::NEVER).then_some(self.0)
    }

    /// Whether the item has ended.
    pub fn is_over(self, now_s: u64) -> bool {
        self.at_s().is_some_and(|at_s| at_s <= now_s)
    }

    /// How many seconds are left, unless it never ends.
    pub fn left_s(self, now_s: u64) -> Option<u64> {
        self.at_s().map(|at_s| at_s.saturating_sub(now_s))
    }
}

#[cfg(test)]
mod tests {
    use super::Expiry;

    #[test]
    fn thirty_days_are_relative_and_a_second_more_is_a_time() {
        let now_s = 1_700_000_000;
        let month = 60 * 60 * 24 * 30;
        assert_eq!(Expiry::from_client(month, now_s).at_s(), Some(now_s + month as u64));
        assert_eq!(Expiry::from_client(month + 1, now_s).at_s(), Some(month as u64 + 1));
        assert!(Expiry::from_client(month + 1, now_s).is_over(now_s));
        assert!(Expiry::from_client(i64::MIN, 0).is_over(1));
        assert!(!Expiry::from_client(i64::MAX, now_s).is_over(now_s));
        assert_eq!(Expiry::from_client(5, u64::MAX).at_s(), Some(u64::MAX));
    }

    #[test]
    fn an_item_ends_at_its_second() {
        let expiry = Expiry::from_client(10, 100);
        assert!(!expiry.is_over(109));
        assert!(expiry.is_over(110));
        assert_eq!((expiry.left_s(103), expiry.left_s(200)), (Some(7), Some(0)));
        assert_eq!(Expiry::NEVER.left_s(1), None);
        assert!(!Expiry::NEVER.is_over(u64::MAX));
    }
}
