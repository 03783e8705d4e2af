//! Cuts a value of a known format whole and in pieces.

use segments::{Cutter, SegmentPolicy};

/// Cuts `start` and `rest` as one value. Its segments are the same however it comes, and come to
/// all of it.
pub fn cut(start: &[u8], rest: &[u8]) {
    let value = [start, rest].concat();
    let piece = rest.first().map_or(1, |byte| 1 + usize::from(*byte) * 97);
    let whole = lengths(&value, value.len());
    assert_eq!(whole.iter().sum::<usize>(), value.len());
    assert_eq!(lengths(&value, piece), whole);
}

fn lengths(value: &[u8], piece: usize) -> Vec<usize> {
    let mut cutter: Box<dyn Cutter> = SegmentPolicy::Auto.cutter();
    let (mut start, mut end, mut found) = (0, 0, Vec::new());
    while start < value.len() {
        let is_end = end == value.len();
        if start < end
            && let Some(length) = cutter.cut(&value[start..end], is_end)
        {
            assert!((1..=cutter.segment_bytes_max()).contains(&length), "{length} bytes");
            found.push(length);
            start += length;
        } else {
            assert!(!is_end, "at the end there is an answer");
            assert!(end - start < cutter.segment_bytes_max(), "with so many bytes there is");
            end = (end + piece).min(value.len());
        }
    }
    found
}
