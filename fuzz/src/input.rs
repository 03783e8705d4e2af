//! A fuzzer's bytes, taken one after the other as whatever a target asks for.
//!
//! Every input means something, and what lies behind a place in it does not change what lies
//! before: so the fuzzer can put in, take out and repeat, and most of a good input stays good.

/// What is left of an input; zeros when nothing is.
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// All of it.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether all was taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    /// The next two bytes.
    pub fn word(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// The next two bytes, as a number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        usize::from(self.word()) % end
    }

    /// Up to so many bytes.
    pub fn bytes(&mut self, length_bytes: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length_bytes.min(self.0.len()));
        self.0 = rest;
        taken
    }
}
