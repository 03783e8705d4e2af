//! NumPy's `.npy`: magic, version, length of a header, header, array.
//!
//! Source: NumPy Enhancement Proposal 1.

use super::next::Next;
use super::numbers::{u16_at, u32_at};

const MAGIC: &[u8] = b"\x93NUMPY";

/// A file under way.
pub(crate) struct Npy {
    is_header: bool,
}

impl Npy {
    pub(super) fn of(start: &[u8]) -> Option<Self> {
        start.starts_with(MAGIC).then_some(Self { is_header: true })
    }

    pub(super) fn next(&mut self, ahead: &[u8]) -> Next {
        if !self.is_header {
            return Next::Unknown;
        }
        let header_bytes = match ahead.get(6) {
            Some(1) => u16_at(ahead, 8).map(|length| 10 + u64::from(length)),
            Some(_) => u32_at(ahead, 8).map(|length| 12 + u64::from(length)),
            None => None,
        };
        let Some(header_bytes) = header_bytes else { return Next::More };
        self.is_header = false;
        Next::Whole(header_bytes)
    }
}
