//! Counting: a value that is a number in decimal, as text.

use crate::answer::Answer;
use crate::hit::Hit;
use crate::item::Item;
use crate::numbers::digits_of;
use crate::operation::Arithmetic;

/// A value of more bytes than this is no number, whatever it is.
pub const NUMBER_BYTES_MAX: usize = 64;

/// A number as it is stored: digits, and spaces up to the length that the value had. A counter
/// that loses a digit keeps its length, as memcached's does.
///
/// ```
/// assert_eq!(memcached::Number::new(9, 2).as_bytes(), b"9 ");
/// assert_eq!(memcached::Number::new(10, 0).as_bytes(), b"10");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    text: [u8; NUMBER_BYTES_MAX],
    length: usize,
}

impl Number {
    /// A number, in at least `width_bytes` bytes.
    ///
    /// # Panics
    /// If the width is above [`NUMBER_BYTES_MAX`].
    pub fn new(number: u64, width_bytes: usize) -> Self {
        assert!(width_bytes <= NUMBER_BYTES_MAX, "a stored number is short");
        let mut room = [0; 20];
        let digits = digits_of(number, &mut room);
        let mut text = [b' '; NUMBER_BYTES_MAX];
        let (front, _) = text.split_at_mut(digits.len());
        front.copy_from_slice(digits);
        Number { text, length: digits.len().max(width_bytes) }
    }

    /// The value to be stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text[..self.length]
    }
}

/// What counting does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArithmeticDecision {
    /// Nothing; this is answered.
    Refuse(Answer),
    /// The item gets a number; the answer is [`Answer::Number`] with these.
    Write {
        /// The item before and after.
        hit: Hit,
        /// The number that it has now.
        number: u64,
        /// The same as a value.
        value: Number,
    },
}

impl Arithmetic<'_> {
    /// What counting does, where `found` is the live item with its value. Of a value that is longer
    /// than [`NUMBER_BYTES_MAX`] the first bytes and one more are enough.
    pub fn decide(
        &self,
        found: Option<(&Item, &[u8])>,
        now_s: u64,
        next_cas: impl FnOnce() -> u64,
    ) -> ArithmeticDecision {
        let Some((before, old)) = found else { return self.decide_missing(now_s, next_cas) };
        if old.is_empty() || old.len() > NUMBER_BYTES_MAX {
            return ArithmeticDecision::Refuse(Answer::NotANumber);
        }
        if self.compare.is_some_and(|cas| cas != 0 && cas != before.cas) {
            return ArithmeticDecision::Refuse(Answer::Exists);
        }
        let Some(number) = parse_stored(old) else {
            return ArithmeticDecision::Refuse(Answer::NotANumber);
        };
        let number = if self.is_down {
            number.saturating_sub(self.delta)
        } else {
            number.wrapping_add(self.delta)
        };
        let item = Item {
            cas: self.new_cas.unwrap_or_else(next_cas),
            expires: self.touch.unwrap_or(before.expires),
            accessed_s: now_s,
            ..*before
        };
        let hit = Hit { before: *before, item, won: false, is_new: false };
        ArithmeticDecision::Write { hit, number, value: Number::new(number, old.len()) }
    }

    fn decide_missing(&self, now_s: u64, next_cas: impl FnOnce() -> u64) -> ArithmeticDecision {
        let Some(expires) = self.vivify else {
            return ArithmeticDecision::Refuse(Answer::NotFound);
        };
        let cas = self.new_cas.unwrap_or_else(next_cas);
        let before = Item { cas, accessed_s: now_s, ..Item::default() };
        let hit = Hit { before, item: Item { expires, ..before }, won: false, is_new: true };
        let number = self.initial;
        ArithmeticDecision::Write { hit, number, value: Number::new(number, 0) }
    }
}

/// A number with white space around it; what stands behind the first white space does not count.
fn parse_stored(value: &[u8]) -> Option<u64> {
    let value = value.trim_ascii_start();
    let end = value.iter().position(u8::is_ascii_whitespace).unwrap_or(value.len());
    crate::numbers::parse_u64(&value[..end])
}
