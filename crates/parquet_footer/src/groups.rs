//! Row groups: where the chunks of columns lie, and what is said of their values.
//!
//! Source: the format's `parquet.thrift`, `RowGroup`, `ColumnChunk`, `ColumnMetaData` and
//! `Statistics`.

use std::ops::Range;

use segments::thrift::{Reader, kind};

use crate::error::FooterError;
use crate::filter::Filter;
use crate::schema::Leaf;
use crate::statistics::Bounds;

/// Most row groups.
const GROUPS_MAX: u64 = 1 << 16;
/// Most ranges that are not neighbours of one another: 1 MiB of them.
const RANGES_MAX: usize = 1 << 16;

/// Row groups under way.
pub(crate) struct Groups<'a> {
    leaves: &'a [Leaf],
    filter: &'a Filter,
    /// Where chunks end at the latest.
    end: u64,
    ranges: Vec<Range<u64>>,
}

/// A chunk of a column.
#[derive(Default)]
struct Chunk<'a> {
    data_page_at: Option<i64>,
    dictionary_page_at: Option<i64>,
    length_bytes: Option<i64>,
    low: Option<&'a [u8]>,
    high: Option<&'a [u8]>,
    is_elsewhere: bool,
}

impl<'a> Groups<'a> {
    pub(crate) fn new(leaves: &'a [Leaf], filter: &'a Filter, end: u64) -> Self {
        Self { leaves, filter, end, ranges: Vec::new() }
    }

    /// Reads all, from the value of their field on.
    pub(crate) fn read(&mut self, reader: &mut Reader<'_>) -> Result<(), FooterError> {
        let (count, kind) = reader.list()?;
        if count > GROUPS_MAX {
            return Err(FooterError::TooLarge);
        }
        if kind != kind::STRUCT && count > 0 {
            return Err(FooterError::Damaged);
        }
        for _ in 0..count {
            reader.fields(|reader, field| match (field.id, field.kind) {
                (1, kind::LIST) => self.chunks(reader),
                (_, kind) => Ok(reader.skip(kind)?),
            })?;
        }
        Ok(())
    }

    /// What is needed of them, in order.
    pub(crate) fn into_ranges(mut self) -> Result<Vec<Range<u64>>, FooterError> {
        self.join()?;
        Ok(self.ranges)
    }

    /// The chunks of a row group, one for each leaf.
    fn chunks(&mut self, reader: &mut Reader<'_>) -> Result<(), FooterError> {
        let (count, kind) = reader.list()?;
        if count != self.leaves.len() as u64 || (kind != kind::STRUCT && count > 0) {
            return Err(FooterError::Damaged);
        }
        let mut bounds = vec![None; self.filter.columns().len()];
        let before = self.ranges.len();
        for leaf in self.leaves {
            let chunk = Chunk::read(reader)?;
            if leaf.is_sent {
                self.ranges.push(chunk.range(self.end)?);
            }
            if let (Some(column), Some(low), Some(high)) = (leaf.judged, chunk.low, chunk.high) {
                bounds[column] = Some(Bounds { meaning: leaf.meaning, low, high });
            }
        }
        if !self.filter.may_match(&bounds) {
            self.ranges.truncate(before);
        }
        // As many ranges as this came since they were joined last, so that is done seldom.
        if self.ranges.len() > 2 * RANGES_MAX {
            self.join()?;
        }
        Ok(())
    }

    fn join(&mut self) -> Result<(), FooterError> {
        self.ranges = joined(std::mem::take(&mut self.ranges));
        if self.ranges.len() > RANGES_MAX {
            return Err(FooterError::TooLarge);
        }
        Ok(())
    }
}

impl<'a> Chunk<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, FooterError> {
        let mut chunk = Self::default();
        reader.fields(|reader, field| {
            match (field.id, field.kind) {
                (1, kind::BINARY) => {
                    chunk.is_elsewhere = true;
                    reader.skip(kind::BINARY)?;
                }
                (3, kind::STRUCT) => chunk.read_metadata(reader)?,
                (_, kind) => reader.skip(kind)?,
            }
            Ok::<_, FooterError>(())
        })?;
        Ok(chunk)
    }

    fn read_metadata(&mut self, reader: &mut Reader<'a>) -> Result<(), FooterError> {
        reader.fields(|reader, field| {
            match (field.id, field.kind) {
                (7, kind::I64) => self.length_bytes = Some(reader.integer()?),
                (9, kind::I64) => self.data_page_at = Some(reader.integer()?),
                (11, kind::I64) => self.dictionary_page_at = Some(reader.integer()?),
                (12, kind::STRUCT) => self.read_statistics(reader)?,
                (_, kind) => reader.skip(kind)?,
            }
            Ok(())
        })
    }

    /// The older fields 1 and 2 are passed over: their order is not that of every type.
    fn read_statistics(&mut self, reader: &mut Reader<'a>) -> Result<(), FooterError> {
        reader.fields(|reader, field| {
            match (field.id, field.kind) {
                (5, kind::BINARY) => self.high = Some(reader.binary()?),
                (6, kind::BINARY) => self.low = Some(reader.binary()?),
                (_, kind) => reader.skip(kind)?,
            }
            Ok(())
        })
    }

    /// Where it lies, before `end`.
    fn range(&self, end: u64) -> Result<Range<u64>, FooterError> {
        // What a chunk does not have may be said to be at 0, where the magic is.
        let starts = [self.data_page_at, self.dictionary_page_at];
        let start = starts.into_iter().flatten().filter(|at| *at > 0).min();
        let start = start.and_then(|start| u64::try_from(start).ok());
        let length = self.length_bytes.and_then(|length| u64::try_from(length).ok());
        let (start, length) = match (start, length) {
            (None, Some(0)) => return Ok(0..0),
            (Some(start), Some(length)) => (start, length),
            _ => return Err(FooterError::Damaged),
        };
        let behind = start.checked_add(length).filter(|behind| *behind <= end);
        match behind {
            Some(behind) if !self.is_elsewhere => Ok(start..behind),
            _ => Err(FooterError::Damaged),
        }
    }
}

/// Ranges in order; neighbours, and what overlaps, as one.
fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}
