//! Room parquet_footer: which bytes of a Parquet file a reader of some columns and rows needs.
//!
//! ```text
//! end of the file ─ footer_range ─> its footer ─ needed_ranges ─> ranges of the file
//!                                                 ├─ schema.rs      leaves that are asked for
//!                                                 ├─ groups.rs      where their chunks lie
//!                                                 └─ filter.rs      whether a row can match, by
//!                                                     statistics.rs  the bounds of each chunk
//! ```
//!
//! Pure: bytes in, ranges out. A footer is whatever somebody put into an object, so nothing is
//! allocated by a count that it has; what is kept of it is bounded by constants of this room.
//!
//! Invariants: a row group is left out only if no row of it can match; what is not understood of
//! its statistics leaves it in. Ranges lie before the footer, in order, and do not overlap. Why no
//! library reads the footer: decision 071.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod error;
mod filter;
mod groups;
#[cfg(test)]
mod model;
mod schema;
mod statistics;

use std::ops::Range;

pub use error::FooterError;
pub use filter::{Filter, FilterError};
use groups::Groups;
use segments::thrift::{Reader, kind};

/// Longest footer that is read: some 50,000 chunks of columns.
pub const FOOTER_BYTES_MAX: u64 = 16 << 20;
/// What stands at the end of a file: the length of its footer, and the magic.
pub const TAIL_BYTES: u64 = 8;
const MAGIC: &[u8] = b"PAR1";

/// What is asked of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// Columns by their dotted paths; of a group all leaves. Empty: all columns.
    pub columns: Vec<String>,
    /// Which rows.
    pub filter: Filter,
}

/// Where the footer of a file of `file_bytes` lies, without its tail. `tail` is the file's end.
///
/// # Errors
/// [`FooterError::NotParquet`], [`FooterError::TooLarge`].
pub fn footer_range(
    file_bytes: u64,
    tail: [u8; TAIL_BYTES as usize],
) -> Result<Range<u64>, FooterError> {
    let [a, b, c, d, magic @ ..] = tail;
    let footer_bytes = u64::from(u32::from_le_bytes([a, b, c, d]));
    let end = file_bytes.checked_sub(TAIL_BYTES).ok_or(FooterError::NotParquet)?;
    let start = end.checked_sub(footer_bytes).ok_or(FooterError::NotParquet)?;
    if magic != MAGIC || start < MAGIC.len() as u64 {
        return Err(FooterError::NotParquet);
    }
    if footer_bytes > FOOTER_BYTES_MAX {
        return Err(FooterError::TooLarge);
    }
    Ok(start..end)
}

/// Where the chunks lie of the columns that are asked for, in row groups that may have a row that
/// is; neighbours as one range. `footer` is all of it, and `footer_start` where it begins.
///
/// # Errors
/// [`FooterError::NoColumn`], of what is asked for or filtered by; [`FooterError::Damaged`] and
/// [`FooterError::TooLarge`].
pub fn needed_ranges(
    footer: &[u8],
    footer_start: u64,
    asked: &Asked,
) -> Result<Vec<Range<u64>>, FooterError> {
    let (mut leaves, mut groups_at) = (None, None);
    let mut orders = Vec::new();
    Reader::new(footer).fields(|reader, field| {
        match (field.id, field.kind) {
            (2, kind::LIST) => {
                leaves = Some(schema::leaves(reader, &asked.columns, asked.filter.columns())?)
            }
            (4, kind::LIST) => {
                groups_at = Some(reader.clone());
                reader.skip(kind::LIST)?;
            }
            (7, kind::LIST) => orders = schema::orders(reader)?,
            (_, kind) => reader.skip(kind)?,
        }
        Ok::<_, FooterError>(())
    })?;
    let mut leaves = leaves.ok_or(FooterError::Damaged)?;
    schema::forget_unordered(&mut leaves, &orders);
    let mut groups = Groups::new(&leaves, &asked.filter, footer_start);
    groups.read(&mut groups_at.ok_or(FooterError::Damaged)?)?;
    groups.into_ranges()
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use proptest::sample::Index;

    use super::{Asked, Filter, FooterError, footer_range, needed_ranges};
    use crate::model::{Writer, filters, name, tables};

    /// Files of pyarrow, and the starts of their chunks as it tells them (`segments/tests/data`).
    const FILES: [(&[u8], &str); 3] = [
        (
            include_bytes!("../../segments/tests/data/default.parquet"),
            include_str!("../../segments/tests/data/default.parquet.starts"),
        ),
        (
            include_bytes!("../../segments/tests/data/v2.parquet"),
            include_str!("../../segments/tests/data/v2.parquet.starts"),
        ),
        (
            include_bytes!("../../segments/tests/data/checksums.parquet"),
            include_str!("../../segments/tests/data/checksums.parquet.starts"),
        ),
    ];
    const EMPTY: &[u8] = include_bytes!("../../segments/tests/data/empty.parquet");

    fn footer(file: &[u8]) -> Range<u64> {
        footer_range(file.len() as u64, *file.last_chunk().unwrap()).unwrap()
    }

    fn ranges(file: &[u8], columns: &[&str], filter: &str) -> Result<Vec<Range<u64>>, FooterError> {
        let footer = footer(file);
        let columns = columns.iter().map(|&name| name.to_owned()).collect();
        let asked = Asked { columns, filter: Filter::parse(filter).unwrap() };
        needed_ranges(&file[footer.start as usize..footer.end as usize], footer.start, &asked)
    }

    #[test]
    fn chunks_of_real_files_are_found() {
        for (file, starts) in FILES {
            let mut found = Vec::new();
            for leaf in ["number", "word", "list.list.element", "pair.a", "pair.b"] {
                found.extend(ranges(file, &[leaf], "[]").unwrap());
            }
            let all = ranges(file, &[], "[]").unwrap();
            let bytes = |ranges: &[Range<u64>]| -> u64 {
                ranges.iter().map(|range| range.end - range.start).sum()
            };
            assert_eq!(bytes(&found), bytes(&all));
            found.sort_by_key(|range| range.start);
            let told = starts.split_whitespace().map(|start| start.parse::<u64>().unwrap());
            let told: Vec<u64> = told.collect();
            assert!(found.iter().all(|range| told.contains(&range.start)), "{found:?} {told:?}");
            let pair = ranges(file, &["pair"], "[]").unwrap();
            let leaves = ranges(file, &["pair.a", "pair.b"], "[]").unwrap();
            assert_eq!(pair, leaves);
        }
    }

    #[test]
    fn a_table_without_rows_needs_its_dictionary_at_most() {
        // A chunk of it has no data page: that is at 0.
        let found = ranges(EMPTY, &["number"], "[]").unwrap();
        assert!(found.len() == 1 && found[0] == (4..19), "{found:?}");
        let found = ranges(EMPTY, &["word"], r#"[["number", "=", 1]]"#).unwrap();
        assert!(found.len() == 1 && found[0] == (19..34), "{found:?}");
    }

    #[test]
    fn row_groups_of_a_real_file_are_left_out() {
        // 1,000 rows in groups of 300; `number` is the square of the row.
        let file = FILES[1].0;
        let groups = |filter: &str| ranges(file, &["number"], filter).unwrap().len();
        assert_eq!(groups("[]"), 4);
        assert_eq!(groups(r#"[["number", ">=", 360000]]"#), 2);
        assert_eq!(groups(r#"[["number", "<", 0]]"#), 0);
        assert_eq!(groups(r#"[[["number", "<", 1]], [["number", "in", [810000, -1]]]]"#), 2);
        assert_eq!(groups(r#"[["number", "==", "one"]]"#), 4);
        assert_eq!(groups(r#"[["number", "==", null]]"#), 4);
        assert_eq!(groups(r#"[["word", "<", "a"]]"#), 0);
        assert_eq!(groups(r#"[["pair", "<", 0]]"#), 4);
    }

    #[test]
    fn what_is_not_there_is_told() {
        let file = FILES[0].0;
        let none = |name: &str| Err(FooterError::NoColumn { name: name.to_owned() });
        assert_eq!(ranges(file, &["number", "nobody"], "[]"), none("nobody"));
        assert_eq!(ranges(file, &["number"], r#"[["none", "=", 1]]"#), none("none"));
        for text in ["", "{}", "1", r#"["a"]"#, r#"[["a", "~", 1]]"#, r#"[["a", "in", 1]]"#] {
            assert!(Filter::parse(text).is_err(), "{text}");
        }
        let many = format!(r#"[["a", "in", [{}0]]]"#, "1,".repeat(1000));
        assert!(Filter::parse(&many).is_err());
        assert_eq!(footer_range(11, *b"\0\0\0\0PAR1"), Err(FooterError::NotParquet));
        assert_eq!(footer_range(100, *b"\x59\0\0\0PAR1"), Err(FooterError::NotParquet));
        assert_eq!(footer_range(100, *b"\x58\0\0\0PAR1"), Ok(4..92));
        assert_eq!(footer_range(100, *b"\x58\0\0\0PARE"), Err(FooterError::NotParquet));
        assert_eq!(footer_range(1 << 40, *b"\0\0\0\x02PAR1"), Err(FooterError::TooLarge));
    }

    #[test]
    fn a_footer_that_counts_more_than_it_has_is_refused() {
        // 2^31 elements of a schema, and as many row groups, in a few bytes.
        for list in [[0x29, 0xfc], [0x49, 0xfc]] {
            let bytes = [&list[..], &[0xff, 0xff, 0xff, 0xff, 0x07, 0, 0]].concat();
            assert!(needed_ranges(&bytes, 1 << 40, &Asked::default()).is_err());
        }
        let deep = |count: usize| {
            let mut group = Writer::default();
            let group = group.binary(4, b"g").integer(5, 1).end();
            let mut leaf = Writer::default();
            let mut schema = vec![group; count];
            schema.push(leaf.integer(1, 1).binary(4, b"leaf").end());
            let mut footer = Writer::default();
            footer.list(2, &schema).list(4, &[]).end()
        };
        assert_eq!(needed_ranges(&deep(60), 4, &Asked::default()), Ok(Vec::new()));
        let refused = needed_ranges(&deep(100), 4, &Asked::default());
        assert_eq!(refused, Err(FooterError::TooLarge));
    }

    proptest! {
        #[test]
        fn ranges_are_those_of_the_model(
            table in tables(),
            filter in filters(),
            sent in 1..4usize,
        ) {
            let sent = 0..sent.min(table.types.len());
            let columns = sent.clone().map(name).collect();
            let text = table.filter(&filter).to_string();
            let asked = Asked { columns, filter: Filter::parse(&text).unwrap() };
            let found = needed_ranges(&table.footer(), table.footer_start(), &asked).unwrap();
            let mut wanted: Vec<Range<u64>> = Vec::new();
            for group in (0..table.groups.len()).filter(|at| table.may_match(*at, &filter)) {
                for chunk in sent.clone().map(|column| table.chunk(group, column)) {
                    match wanted.last_mut() {
                        Some(last) if last.end == chunk.start => last.end = chunk.end,
                        _ => wanted.push(chunk),
                    }
                }
            }
            prop_assert_eq!(&found, &wanted, "{}", text);
            for group in (0..table.groups.len()).filter(|at| table.matches(*at, &filter)) {
                let chunk = table.chunk(group, 0);
                let holds = found.iter().any(|of| of.start <= chunk.start && chunk.end <= of.end);
                prop_assert!(holds, "row lost by {}", text);
            }
        }

        #[test]
        fn a_damaged_footer_names_nothing_outside_the_file(
            file in 0..FILES.len(),
            changes in proptest::collection::vec((any::<Index>(), any::<u8>()), 1..8),
        ) {
            let file = FILES[file].0;
            let at = footer(file);
            let mut bytes = file[at.start as usize..at.end as usize].to_vec();
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            let filter = Filter::parse(r#"[["number", ">", 5], ["word", "!=", "a"]]"#).unwrap();
            let asked = Asked { filter, ..Asked::default() };
            let found = needed_ranges(&bytes, at.start, &asked).unwrap_or_default();
            prop_assert!(found.iter().all(|range| range.start < range.end));
            prop_assert!(found.windows(2).all(|pair| pair[0].end < pair[1].start));
            prop_assert!(found.last().is_none_or(|last| last.end <= at.start));
        }
    }
}
