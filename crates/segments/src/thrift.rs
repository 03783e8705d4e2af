//! Thrift's compact protocol, as far as headers and footers are read or skipped.
//!
//! Nothing is allocated by a length or a count that was read, and the work is bounded by the bytes
//! there are: an element has a byte at least.
//!
//! Source: the specification of the compact protocol in Apache Thrift (doc/specs).

/// Deepest nesting that is followed.
const DEPTH_MAX: u32 = 16;

/// Why a structure was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// The bytes end before it does.
    Short,
    /// It is none.
    Wrong,
}

/// Types of fields.
pub mod kind {
    #![expect(missing_docs, reason = "the names are the specification's")]

    pub const TRUE: u8 = 1;
    pub const FALSE: u8 = 2;
    pub const BYTE: u8 = 3;
    pub const I16: u8 = 4;
    pub const I32: u8 = 5;
    pub const I64: u8 = 6;
    pub const DOUBLE: u8 = 7;
    pub const BINARY: u8 = 8;
    pub const LIST: u8 = 9;
    pub const SET: u8 = 10;
    pub const MAP: u8 = 11;
    pub const STRUCT: u8 = 12;
}

/// A field of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its number in the structure.
    pub id: i16,
    /// Its type, one of [`kind`].
    pub kind: u8,
}

/// Reads on from a place; a clone reads the same again.
#[derive(Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// At the first byte.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes that were read.
    #[must_use]
    pub fn read_bytes(&self) -> usize {
        self.at
    }

    fn byte(&mut self) -> Result<u8, Unread> {
        let byte = *self.bytes.get(self.at).ok_or(Unread::Short)?;
        self.at += 1;
        Ok(byte)
    }

    fn pass(&mut self, length: u64) -> Result<(), Unread> {
        let left = (self.bytes.len() - self.at) as u64;
        if length > left {
            return Err(Unread::Short);
        }
        self.at += length as usize;
        Ok(())
    }

    fn varint(&mut self) -> Result<u64, Unread> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Unread::Wrong)
    }

    /// A number of [`kind::I16`], [`kind::I32`] or [`kind::I64`].
    ///
    /// # Errors
    /// The bytes end, or it has more than 64 bits.
    pub fn integer(&mut self) -> Result<i64, Unread> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A [`kind::BINARY`], which strings are as well.
    ///
    /// # Errors
    /// The bytes end.
    pub fn binary(&mut self) -> Result<&'a [u8], Unread> {
        let length = self.varint()?;
        let start = self.at;
        self.pass(length)?;
        Ok(&self.bytes[start..self.at])
    }

    /// The head of a [`kind::LIST`]: how many elements follow, and their type.
    ///
    /// # Errors
    /// The bytes end.
    pub fn list(&mut self) -> Result<(u64, u8), Unread> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            count => count.into(),
        };
        Ok((count, head & 0x0f))
    }

    /// Has `read` read or skip the value of each field of a structure.
    ///
    /// # Errors
    /// Those of `read`; the bytes end before the structure does.
    pub fn fields<E: From<Unread>>(
        &mut self,
        mut read: impl FnMut(&mut Self, Field) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut last = 0;
        while let Some(field) = self.field(last)? {
            read(self, field)?;
            last = field.id;
        }
        Ok(())
    }

    /// The next field behind one of the number `last`; none at the end of the structure.
    ///
    /// # Errors
    /// The bytes end, or it has no known type.
    pub fn field(&mut self, last: i16) -> Result<Option<Field>, Unread> {
        let head = self.byte()?;
        let (step, kind) = (head >> 4, head & 0x0f);
        if head == 0 {
            return Ok(None);
        }
        if !(kind::TRUE..=kind::STRUCT).contains(&kind) {
            return Err(Unread::Wrong);
        }
        let id = match step {
            0 => i16::try_from(self.integer()?).map_err(|_| Unread::Wrong)?,
            step => last.checked_add(step.into()).ok_or(Unread::Wrong)?,
        };
        Ok(Some(Field { id, kind }))
    }

    /// Passes over the value of a field.
    ///
    /// # Errors
    /// The bytes end, or it is nested too deeply.
    pub fn skip(&mut self, kind: u8) -> Result<(), Unread> {
        self.skip_in(kind, false, DEPTH_MAX)
    }

    fn skip_in(&mut self, kind: u8, is_element: bool, depth: u32) -> Result<(), Unread> {
        let Some(depth) = depth.checked_sub(1) else { return Err(Unread::Wrong) };
        match kind {
            // Its field's head has the value; in a list it is a byte.
            kind::TRUE | kind::FALSE => self.pass(u64::from(is_element)),
            kind::BYTE => self.pass(1),
            kind::I16 | kind::I32 | kind::I64 => self.varint().map(drop),
            kind::DOUBLE => self.pass(8),
            kind::BINARY => {
                let length = self.varint()?;
                self.pass(length)
            }
            kind::LIST | kind::SET => self.skip_list(depth),
            kind::MAP => self.skip_map(depth),
            kind::STRUCT => self.fields(|reader, field| reader.skip_in(field.kind, false, depth)),
            _ => Err(Unread::Wrong),
        }
    }

    fn skip_list(&mut self, depth: u32) -> Result<(), Unread> {
        let (count, kind) = self.list()?;
        self.skip_elements(count, &[kind], depth)
    }

    fn skip_map(&mut self, depth: u32) -> Result<(), Unread> {
        let count = self.varint()?;
        if count == 0 {
            return Ok(());
        }
        let kinds = self.byte()?;
        self.skip_elements(count, &[kinds >> 4, kinds & 0x0f], depth)
    }

    /// An element has a byte at least, so the count is bounded by the bytes there are.
    fn skip_elements(&mut self, count: u64, kinds: &[u8], depth: u32) -> Result<(), Unread> {
        for _ in 0..count {
            let before = self.at;
            kinds.iter().try_for_each(|kind| self.skip_in(*kind, true, depth))?;
            if self.at == before {
                return Err(Unread::Wrong);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert, proptest};

    use super::{Field, Reader, Unread, kind};

    #[test]
    fn fields_are_read_and_skipped() {
        // i32 -3 as field 1; a list of two strings as 2; a struct with a bool and a map as 5.
        let bytes = [
            0x15, 5, 0x19, 0x28, 1, b'a', 2, b'b', b'c', 0x3c, 0x11, 0x1b, 1, 0x85, 1, b'x', 4, 0,
            0,
        ];
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.field(0), Ok(Some(Field { id: 1, kind: kind::I32 })));
        assert_eq!(reader.integer(), Ok(-3));
        assert_eq!(reader.field(1), Ok(Some(Field { id: 2, kind: kind::LIST })));
        assert_eq!(reader.skip(kind::LIST), Ok(()));
        assert_eq!(reader.field(2), Ok(Some(Field { id: 5, kind: kind::STRUCT })));
        assert_eq!(reader.skip(kind::STRUCT), Ok(()));
        assert_eq!(reader.field(5), Ok(None));
        assert_eq!(reader.read_bytes(), bytes.len());
        for end in 0..bytes.len() {
            assert_eq!(skip_all(&bytes[..end]), Err(Unread::Short), "{end}");
        }
    }

    fn skip_all(bytes: &[u8]) -> Result<usize, Unread> {
        let mut reader = Reader::new(bytes);
        reader.skip(kind::STRUCT)?;
        Ok(reader.read_bytes())
    }

    #[test]
    fn depth_and_counts_are_bounded() {
        assert_eq!(skip_all(&[0x1c; 100]), Err(Unread::Wrong));
        // A list of 2^60 elements of no known type.
        let list = [0x19, 0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f];
        assert_eq!(skip_all(&list), Err(Unread::Wrong));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_an_end(bytes in vec(any::<u8>(), 0..200)) {
            if let Ok(length) = skip_all(&bytes) {
                prop_assert!(length <= bytes.len());
            }
        }
    }
}
