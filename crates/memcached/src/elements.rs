//! Finds a part of a value: the bytes of a range, or of elements.
//!
//! Elements of one size stand one behind another. Values of any length have a *directory* behind
//! them:
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

use crate::answer::Fault;
use crate::layout::{Layout, Part};

/// What ends an array of values.
const MAGIC: [u8; 8] = *b"TAMISARR";
const VERSION: u32 = 1;
const TRAILER_BYTES: u64 = 16;
const ENTRY_BYTES: u64 = 12;

impl Part {
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
