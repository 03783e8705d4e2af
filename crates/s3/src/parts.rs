//! Which bytes of an object a body has: one range of them, or several, each behind a head.
//!
//! ```text
//! one:   bytes
//! told:  offset u64 LE, length u64 LE, bytes   and so on for each range
//! ```

use std::ops::Range;
use std::vec;

/// Where a range begins, and how long it is.
const HEAD_BYTES: usize = 16;

/// What is still to be sent.
pub(crate) struct Parts {
    head: [u8; HEAD_BYTES],
    /// Bytes of the head that were sent.
    head_at: usize,
    bytes: Range<u64>,
    later: vec::IntoIter<Range<u64>>,
    left_bytes: u64,
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    /// These bytes.
    Head(&'a [u8]),
    /// This range of the object.
    Bytes(Range<u64>),
}

impl Step<'_> {
    pub(crate) fn length(&self) -> usize {
        match self {
            Self::Head(bytes) => bytes.len(),
            Self::Bytes(range) => (range.end - range.start) as usize,
        }
    }
}

impl Parts {
    /// A range without a head.
    pub(crate) fn one(bytes: Range<u64>) -> Self {
        let left_bytes = bytes.end - bytes.start;
        let later = Vec::new().into_iter();
        Self { head: [0; HEAD_BYTES], head_at: HEAD_BYTES, bytes, later, left_bytes }
    }

    /// Ranges, each with its head.
    pub(crate) fn told(ranges: Vec<Range<u64>>) -> Self {
        let lengths = ranges.iter().map(|range| HEAD_BYTES as u64 + range.end - range.start);
        let left_bytes = lengths.sum();
        Self { later: ranges.into_iter(), left_bytes, ..Self::one(0..0) }
    }

    /// Bytes of the body that are still to be sent.
    pub(crate) fn left_bytes(&self) -> u64 {
        self.left_bytes
    }

    /// The next bytes, at most `room` of them, which is less than what is left.
    pub(crate) fn step(&mut self, room: usize) -> Step<'_> {
        if self.head_at == HEAD_BYTES && self.bytes.is_empty() {
            self.bytes = self.later.next().unwrap_or_default();
            let length = self.bytes.end - self.bytes.start;
            let (front, behind) = self.head.split_at_mut(HEAD_BYTES / 2);
            front.copy_from_slice(&self.bytes.start.to_le_bytes());
            behind.copy_from_slice(&length.to_le_bytes());
            self.head_at = 0;
        }
        let start = self.head_at;
        if start < HEAD_BYTES {
            self.head_at = (start + room).min(HEAD_BYTES);
            self.left_bytes -= (self.head_at - start) as u64;
            return Step::Head(&self.head[start..self.head_at]);
        }
        let from = self.bytes.start;
        self.bytes.start = self.bytes.end.min(from + room as u64);
        self.left_bytes -= self.bytes.start - from;
        Step::Bytes(from..self.bytes.start)
    }
}

#[cfg(test)]
mod tests {
    use super::{Parts, Step};

    /// The body over an object whose bytes are their offsets, in pieces.
    fn body(mut parts: Parts, piece: usize) -> Vec<u8> {
        let mut body = Vec::new();
        while parts.left_bytes() > 0 {
            let before = parts.left_bytes();
            let step = parts.step(piece);
            assert!((1..=piece).contains(&step.length()));
            let length = step.length() as u64;
            match step {
                Step::Head(bytes) => body.extend_from_slice(bytes),
                Step::Bytes(range) => body.extend(range.map(|at| at as u8)),
            }
            assert_eq!(parts.left_bytes(), before - length);
        }
        body
    }

    #[test]
    fn a_body_is_the_same_in_any_pieces() {
        let head = |start: u64, length: u64| [start.to_le_bytes(), length.to_le_bytes()].concat();
        let told = [head(250, 3), vec![250, 251, 252], head(7, 2), vec![7, 8]].concat();
        for piece in [1, 5, 16, 17, 100] {
            assert_eq!(body(Parts::one(3..6), piece), [3, 4, 5]);
            assert_eq!(body(Parts::told(vec![250..253, 7..9]), piece), told, "{piece}");
            assert_eq!(body(Parts::told(Vec::new()), piece), [0; 0]);
        }
    }
}
