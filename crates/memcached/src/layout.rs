//! How a value is divided into elements, and which part of it a client reads or writes.
//!
//! An item says its layout, so that an element is a range of bytes that the server finds, and one
//! round trip. Elements of one size stand one behind another. Values of any length have a
//! *directory* behind them (`elements.rs`).

use std::num::NonZeroU32;

use crate::limits::VALUE_BYTES_MAX;
use crate::numbers::{parse_u32, parse_u64};

/// How many arrays may stand inside one another.
pub const PATH_DEPTH_MAX: usize = 4;

const VALUES: u32 = u32::MAX;

/// How a value is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// It is not.
    #[default]
    Whole,
    /// Into elements of this many bytes.
    Elements(NonZeroU32),
    /// Into values of any length, by a directory behind them.
    Values,
}

impl Layout {
    /// The layout as a number: 0, the size of an element in bytes, or the largest.
    pub fn to_stored(self) -> u32 {
        match self {
            Layout::Whole => 0,
            Layout::Elements(bytes) => bytes.get(),
            Layout::Values => VALUES,
        }
    }

    /// The layout that a number stands for; `None` if it stands for none.
    pub fn from_stored(stored: u32) -> Option<Self> {
        match NonZeroU32::new(stored) {
            None => Some(Layout::Whole),
            Some(bytes) if u64::from(stored) <= VALUE_BYTES_MAX => Some(Layout::Elements(bytes)),
            Some(_) => (stored == VALUES).then_some(Layout::Values),
        }
    }

    /// A client's word: the size of an element in bytes, or `*`.
    pub(crate) fn parse(token: &[u8]) -> Option<Self> {
        if token == b"*" {
            return Some(Layout::Values);
        }
        parse_u32(token).filter(|&stored| stored != VALUES).and_then(Layout::from_stored)
    }
}

/// The part of a value that a client reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Bytes: `r OFFSET` or `r OFFSET:LENGTH`. What is behind the end is left out.
    Bytes {
        /// The first, in bytes.
        offset: u64,
        /// How many, in bytes; the largest number is up to the end.
        bytes: u64,
    },
    /// Elements: `e INDEX`, `e FIRST:COUNT`, and `e INDEX.INDEX` in an array of an array.
    Elements {
        /// Where the first is.
        path: Path,
        /// How many. More than one have one size.
        count: u32,
    },
}

/// Where a client writes into a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// From this byte on, which is at most the end of the value.
    Byte(u64),
    /// From this element on. The value has elements of one size.
    Element(u32),
}

/// The index of an element, and before it those of the arrays that it stands in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Path {
    indexes: [u32; PATH_DEPTH_MAX],
    depth: u8,
}

impl Path {
    /// The indexes, from the outermost array's on; at least one.
    pub fn indexes(&self) -> &[u32] {
        &self.indexes[..usize::from(self.depth)]
    }

    /// Indexes that points separate.
    fn parse(token: &[u8]) -> Option<Self> {
        let mut path = Path::default();
        for index in token.split(|&byte| byte == b'.') {
            *path.indexes.get_mut(usize::from(path.depth))? = parse_u32(index)?;
            path.depth += 1;
        }
        Some(path)
    }
}

impl Part {
    /// A client's word for bytes.
    pub(crate) fn parse_bytes(token: &[u8]) -> Option<Self> {
        let (offset, bytes) = split(token);
        let bytes = bytes.map_or(Some(u64::MAX), parse_u64)?;
        Some(Part::Bytes { offset: parse_u64(offset)?, bytes })
    }

    /// A client's word for elements.
    pub(crate) fn parse_elements(token: &[u8]) -> Option<Self> {
        let (path, count) = split(token);
        let count = count.map_or(Some(1), parse_u32).filter(|&count| count > 0)?;
        Some(Part::Elements { path: Path::parse(path)?, count })
    }

    /// The place that a part with neither length nor path stands for.
    pub(crate) fn to_place(self) -> Option<Place> {
        match self {
            Part::Bytes { offset, bytes: u64::MAX } => Some(Place::Byte(offset)),
            Part::Elements { path, count: 1 } if path.depth == 1 => {
                Some(Place::Element(path.indexes[0]))
            }
            Part::Bytes { .. } | Part::Elements { .. } => None,
        }
    }
}

/// A token before and behind its colon.
fn split(token: &[u8]) -> (&[u8], Option<&[u8]>) {
    match token.iter().position(|&byte| byte == b':') {
        Some(colon) => (&token[..colon], Some(&token[colon + 1..])),
        None => (token, None),
    }
}
