//! What tests of cutters share.

use crate::Cutter;

/// The lengths of the segments of a value that comes in pieces of `piece` bytes.
pub(crate) fn lengths(cutter: &mut dyn Cutter, value: &[u8], piece: usize) -> Vec<usize> {
    let (mut start, mut end, mut found) = (0, 0, Vec::new());
    while start < value.len() {
        let is_end = end == value.len();
        if start < end
            && let Some(length) = cutter.cut(&value[start..end], is_end)
        {
            found.push(length);
            start += length;
        } else {
            assert!(!is_end, "at the end there is an answer");
            assert!(end - start < cutter.segment_bytes_max(), "with so many there is");
            end = (end + piece).min(value.len());
        }
    }
    found
}

pub(crate) fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..length).map(|_| next()).collect()
}
