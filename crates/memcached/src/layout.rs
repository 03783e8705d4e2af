//! How a value is divided into elements, and which part of it a client reads or writes.
//!
//! An item says its layout, so that an element is a range of bytes that the server finds, and one
//! round trip. Elements of one size stand one behind another. Values of any length have a
//! *directory* behind them:
//!
//! ```text
//! value 0 | value 1 | ...                     in any order; gaps are allowed
//! | u32 offset, u32 bytes, u32 layout         an entry of the directory for each value
//! | "TAMISARR" | u32 version = 1 | u32 count  little-endian
//! ```
//!
//! Offsets count from the beginning of the array, so that an array stands inside another as it
//! stands alone. The directory is last: a longer one moves no value, so that equal values are cut
//! into equal segments, and an append writes over the directory alone.

use std::num::NonZeroU32;

use crate::answer::Fault;
use crate::limits::VALUE_BYTES_MAX;
use crate::numbers::{parse_u32, parse_u64};

/// How many arrays may stand inside one another.
pub const PATH_DEPTH_MAX: usize = 4;

/// What ends an array of values.
const MAGIC: [u8; 8] = *b"TAMISARR";
const VERSION: u32 = 1;
const TRAILER_BYTES: u64 = 16;
const ENTRY_BYTES: u64 = 12;
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

    /// Finds the part in a value of `value_bytes`, of which `read` reads from an offset on.
    ///
    /// # Errors
    /// If the value has no such part, or cannot be read.
    pub(crate) fn find(
        &self,
        layout: Layout,
        value_bytes: u64,
        mut read: impl FnMut(u64, &mut [u8]) -> Result<(), Fault>,
    ) -> Result<Found, Missing> {
        let mut found = Found { offset: 0, bytes: value_bytes, layout };
        match *self {
            Part::Bytes { offset, bytes } => {
                let left = value_bytes.checked_sub(offset).ok_or(Missing::Range)?;
                Ok(Found { offset, bytes: left.min(bytes), layout })
            }
            Part::Elements { path, count } => {
                let (last, outer) = path.indexes().split_last().ok_or(Missing::Range)?;
                for &index in outer {
                    found = found.elements(index, 1, &mut read)?;
                }
                found.elements(*last, count, &mut read)
            }
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

/// Where a part of a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// From the beginning of the value.
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    /// How the part itself is divided; of several elements, how they are.
    pub(crate) layout: Layout,
}

/// Why there is no such part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// It is behind the end.
    Range,
    /// What would have to be an array is none.
    Array,
    /// The value cannot be read.
    Fault(Fault),
}

impl Found {
    /// How many elements the part has; `None` if it is no array.
    pub(crate) fn count(
        &self,
        mut read: impl FnMut(u64, &mut [u8]) -> Result<(), Fault>,
    ) -> Result<Option<u64>, Missing> {
        match self.layout {
            Layout::Whole => Ok(None),
            Layout::Elements(element) => Ok(Some(self.bytes / u64::from(element.get()))),
            Layout::Values => self.directory(&mut read).map(|(_, count)| Some(count)),
        }
    }

    fn elements(
        &self,
        first: u32,
        count: u32,
        read: &mut impl FnMut(u64, &mut [u8]) -> Result<(), Fault>,
    ) -> Result<Found, Missing> {
        let first = u64::from(first);
        match self.layout {
            Layout::Elements(element) => {
                let element = u64::from(element.get());
                let there = (self.bytes / element).saturating_sub(first);
                if there == 0 {
                    return Err(Missing::Range);
                }
                let layout = if count == 1 { Layout::Whole } else { self.layout };
                let bytes = u64::from(count).min(there) * element;
                Ok(Found { offset: self.offset + first * element, bytes, layout })
            }
            Layout::Values if count == 1 => self.value(first, read),
            Layout::Values | Layout::Whole => Err(Missing::Array),
        }
    }

    /// Where the directory begins in the array, and how many entries it has.
    fn directory(
        &self,
        read: &mut impl FnMut(u64, &mut [u8]) -> Result<(), Fault>,
    ) -> Result<(u64, u64), Missing> {
        let end = self.bytes.checked_sub(TRAILER_BYTES).ok_or(Missing::Array)?;
        let mut trailer = [0; TRAILER_BYTES as usize];
        read(self.offset + end, &mut trailer).map_err(Missing::Fault)?;
        let (magic, numbers) = trailer.split_at(MAGIC.len());
        if magic != MAGIC || number(numbers, 0) != VERSION {
            return Err(Missing::Array);
        }
        let count = u64::from(number(numbers, 1));
        let start = end.checked_sub(count * ENTRY_BYTES).ok_or(Missing::Array)?;
        Ok((start, count))
    }

    fn value(
        &self,
        index: u64,
        read: &mut impl FnMut(u64, &mut [u8]) -> Result<(), Fault>,
    ) -> Result<Found, Missing> {
        let (start, count) = self.directory(read)?;
        if index >= count {
            return Err(Missing::Range);
        }
        let mut entry = [0; ENTRY_BYTES as usize];
        let at = self.offset + start + index * ENTRY_BYTES;
        read(at, &mut entry).map_err(Missing::Fault)?;
        let (offset, bytes) = (u64::from(number(&entry, 0)), u64::from(number(&entry, 1)));
        let layout = Layout::from_stored(number(&entry, 2)).ok_or(Missing::Array)?;
        if offset + bytes > start {
            return Err(Missing::Array);
        }
        Ok(Found { offset: self.offset + offset, bytes, layout })
    }
}

/// The number at a place of a list of numbers; 0 behind its end.
fn number(bytes: &[u8], place: usize) -> u32 {
    bytes.as_chunks().0.get(place).map_or(0, |number| u32::from_le_bytes(*number))
}

#[cfg(test)]
mod tests;
