//! Apache Parquet: `PAR1`, pages of column chunks, indexes, footer.
//!
//! A page is a header in Thrift's compact protocol and a body whose length the header has. Chunks
//! of columns stand side by side, so pages do from byte 4 on; what is no page ends the walk:
//! bloom filters, indexes and the footer, or what an encrypted column has instead. The walk needs
//! neither schema nor footer, which comes last in a stream.
//!
//! Source: the format's `parquet.thrift`, structures `PageHeader` and `BloomFilterHeader`.

use super::next::Next;
use crate::thrift::{Field, Reader, Unread, kind};

const MAGIC: &[u8] = b"PAR1";
/// A header of a page has the structure of its type in one of these fields.
const DATA_PAGE: (i64, i16) = (0, 5);
const INDEX_PAGE: (i64, i16) = (1, 6);
const DICTIONARY_PAGE: (i64, i16) = (2, 7);
const DATA_PAGE_V2: (i64, i16) = (3, 8);

/// A file under way.
pub(crate) struct Parquet {
    is_begun: bool,
}

/// What a structure between pages is, with the bytes behind it that belong to it.
#[derive(Debug, PartialEq, Eq)]
struct Part {
    header_bytes: u64,
    body_bytes: u64,
}

impl Parquet {
    pub(super) fn of(start: &[u8]) -> Option<Self> {
        start.starts_with(MAGIC).then_some(Self { is_begun: false })
    }

    pub(super) fn next(&mut self, ahead: &[u8]) -> Next {
        if !self.is_begun {
            self.is_begun = true;
            return Next::Loose(MAGIC.len() as u64);
        }
        match part(ahead) {
            Ok(Part { header_bytes, body_bytes }) => {
                Next::Whole(header_bytes.saturating_add(body_bytes))
            }
            Err(Unread::Short) => Next::More,
            Err(Unread::Wrong) => Next::Unknown,
        }
    }
}

/// A page, or a bloom filter.
fn part(bytes: &[u8]) -> Result<Part, Unread> {
    let mut reader = Reader::new(bytes);
    let first = positive(&mut reader, 0, 1)?;
    let body_bytes = match reader.field(1)?.ok_or(Unread::Wrong)? {
        Field { id: 2, kind: kind::I32 } => page_body_bytes(&mut reader, first)?,
        Field { id: 2, kind: kind::STRUCT } => {
            reader.skip(kind::STRUCT)?;
            let rest = [(2, 3), (3, 4)];
            for (last, id) in rest {
                match reader.field(last)? {
                    Some(Field { id: found, kind: kind::STRUCT }) if found == id => {
                        reader.skip(kind::STRUCT)?;
                    }
                    _ => return Err(Unread::Wrong),
                }
            }
            end(&mut reader, 4)?;
            first
        }
        _ => return Err(Unread::Wrong),
    };
    let header_bytes = reader.read_bytes() as u64;
    let body_bytes = u64::try_from(body_bytes).map_err(|_| Unread::Wrong)?;
    Ok(Part { header_bytes, body_bytes })
}

/// The rest of a page's header, from the value of its second field on.
fn page_body_bytes(reader: &mut Reader<'_>, page: i64) -> Result<i64, Unread> {
    let uncompressed_bytes = reader.integer()?;
    let body_bytes = positive(reader, 2, 3)?;
    let mut last = 3;
    let mut found = reader.field(last)?.ok_or(Unread::Wrong)?;
    if found == (Field { id: 4, kind: kind::I32 }) {
        reader.skip(kind::I32)?; // A checksum.
        last = 4;
        found = reader.field(last)?.ok_or(Unread::Wrong)?;
    }
    let types = [DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2];
    let is_page = types.contains(&(page, found.id)) && found.kind == kind::STRUCT;
    if uncompressed_bytes < 0 || !is_page {
        return Err(Unread::Wrong);
    }
    reader.skip(kind::STRUCT)?;
    end(reader, found.id)?;
    Ok(body_bytes)
}

/// The number in the field `id`, which follows the field `last`.
fn positive(reader: &mut Reader<'_>, last: i16, id: i16) -> Result<i64, Unread> {
    match reader.field(last)? {
        Some(field) if field == (Field { id, kind: kind::I32 }) => match reader.integer()? {
            number @ 0.. => Ok(number),
            _ => Err(Unread::Wrong),
        },
        _ => Err(Unread::Wrong),
    }
}

fn end(reader: &mut Reader<'_>, last: i16) -> Result<(), Unread> {
    match reader.field(last)? {
        None => Ok(()),
        Some(_) => Err(Unread::Wrong),
    }
}
