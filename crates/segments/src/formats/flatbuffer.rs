//! FlatBuffers, as far as tables, vectors and numbers are found.
//!
//! Every offset is checked against the bytes there are, so what is found lies in them.
//! Source: the internals of FlatBuffers (google.github.io/flatbuffers).

use super::numbers::{u16_at, u32_at, u64_at};

/// A table of a buffer.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    buffer: &'a [u8],
    at: usize,
}

impl<'a> Table<'a> {
    /// The table at the root of a buffer.
    pub(super) fn root(buffer: &'a [u8]) -> Option<Self> {
        let at = u32_at(buffer, 0)? as usize;
        Some(Self { buffer, at })
    }

    /// Where a field is; none: it has its default.
    fn field(&self, number: usize) -> Option<usize> {
        let back = u32_at(self.buffer, self.at)?.cast_signed();
        let entries = i64::try_from(self.at).ok()? - i64::from(back);
        let entries = usize::try_from(entries).ok()?;
        let length = usize::from(u16_at(self.buffer, entries)?);
        let entry = 4 + 2 * number;
        if entry + 2 > length {
            return None;
        }
        match u16_at(self.buffer, entries + entry)? {
            0 => None,
            offset => self.at.checked_add(offset.into()),
        }
    }

    /// A number of a byte.
    pub(super) fn byte(&self, number: usize) -> Option<u8> {
        self.buffer.get(self.field(number)?).copied()
    }

    /// A number of eight bytes.
    pub(super) fn u64(&self, number: usize) -> Option<u64> {
        u64_at(self.buffer, self.field(number)?)
    }

    fn behind_offset(&self, number: usize) -> Option<usize> {
        let field = self.field(number)?;
        field.checked_add(u32_at(self.buffer, field)? as usize)
    }

    /// A table that a field names.
    pub(super) fn table(&self, number: usize) -> Option<Self> {
        Some(Self { buffer: self.buffer, at: self.behind_offset(number)? })
    }

    /// The bytes of a vector of structures of `structure_bytes`.
    pub(super) fn vector(&self, number: usize, structure_bytes: usize) -> Option<&'a [u8]> {
        let at = self.behind_offset(number)?;
        let length = (u32_at(self.buffer, at)? as usize).checked_mul(structure_bytes)?;
        self.buffer.get(at + 4..)?.get(..length)
    }
}
