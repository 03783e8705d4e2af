//! What is needed of a Parquet file whose footer, and what is asked of it, are anybody's.
#![no_main]

use libfuzzer_sys::fuzz_target;
use parquet_footer::{Asked, Filter, footer_range, needed_ranges};

// Columns and filter, each up to a zero byte; then the file, of which the end is its footer.
fuzz_target!(|input: &[u8]| {
    let mut parts = input.splitn(3, |byte| *byte == 0);
    let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let (columns, filter) = (text(), text());
    let columns = columns.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let asked = Asked { columns, filter: Filter::parse(&filter).unwrap_or_default() };
    let file = parts.next().unwrap_or_default();
    let range = file.last_chunk().and_then(|tail| footer_range(file.len() as u64, *tail).ok());
    // Without a tail all of it is the footer, at the end of a long file.
    let (footer, start) = match range {
        Some(range) => (&file[range.start as usize..range.end as usize], range.start),
        None => (file, 1 << 40),
    };
    let Ok(found) = needed_ranges(footer, start, &asked) else { return };
    assert!(found.iter().all(|range| range.start < range.end));
    assert!(found.windows(2).all(|pair| pair[0].end < pair[1].start));
    assert!(found.last().is_none_or(|last| last.end <= start));
});
