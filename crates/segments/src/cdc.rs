//! Segments whose ends the content defines.

use fastcdc::v2020::{self, Normalization};

use crate::Cutter;

/// Lengths of content-defined segments unless a bucket says otherwise.
pub const CDC: CdcLengths =
    CdcLengths { min_bytes: 4 << 10, mean_bytes: 8 << 10, max_bytes: 32 << 10 };

/// Lengths of content-defined segments: even numbers in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CdcLengths {
    /// No segment but a value's last is shorter.
    pub min_bytes: usize,
    /// About the mean of arbitrary bytes.
    pub mean_bytes: usize,
    /// No segment is longer.
    pub max_bytes: usize,
}

/// Ends segments where the content says so: FastCDC of 2020, normalised by one level.
#[derive(Debug)]
pub struct CdcCutter {
    lengths: CdcLengths,
    mask_before_mean: u64,
    mask_behind_mean: u64,
}

impl CdcCutter {
    /// Segments of these lengths.
    ///
    /// # Panics
    /// When they are odd, or not in ascending order.
    #[must_use]
    pub fn new(lengths: CdcLengths) -> Self {
        let CdcLengths { min_bytes, mean_bytes, max_bytes } = lengths;
        assert!(
            [min_bytes, mean_bytes, max_bytes].iter().all(|length| length.is_multiple_of(2)),
            "{lengths:?} are even"
        );
        assert!(0 < min_bytes && min_bytes <= mean_bytes && mean_bytes <= max_bytes);
        let (before, behind) = v2020::select_masks(mean_bytes, Normalization::Level1);
        Self { lengths, mask_before_mean: before, mask_behind_mean: behind }
    }
}

impl Cutter for CdcCutter {
    fn cut(&mut self, bytes: &[u8], is_end: bool) -> Option<usize> {
        let CdcLengths { min_bytes, mean_bytes, max_bytes } = self.lengths;
        if bytes.len() < max_bytes && !is_end {
            return None;
        }
        let (before, behind) = (self.mask_before_mean, self.mask_behind_mean);
        let (_, length) = v2020::cut(
            bytes,
            min_bytes,
            mean_bytes,
            max_bytes,
            before,
            behind,
            before << 1,
            behind << 1,
        );
        Some(length.clamp(1, bytes.len()))
    }

    fn segment_bytes_max(&self) -> usize {
        self.lengths.max_bytes
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::SegmentPolicy;
    use crate::testing::{lengths, noise};

    #[test]
    fn what_is_inserted_changes_few_segments() {
        let value = noise(1 << 20, 7);
        let longer = [&value[..1000], b"inserted", &value[1000..]].concat();
        let cut = |value: &[u8]| {
            let mut cutter = SegmentPolicy::Cdc.cutter();
            let mut at = 0;
            let lengths = lengths(cutter.as_mut(), value, value.len());
            let segments = lengths.into_iter().map(|length| {
                at += length;
                value[at - length..at].to_vec()
            });
            segments.collect::<BTreeSet<_>>()
        };
        let (before, after) = (cut(&value), cut(&longer));
        assert!(before.len() > 30, "{} segments", before.len());
        assert!(after.difference(&before).count() <= 3);
    }
}
