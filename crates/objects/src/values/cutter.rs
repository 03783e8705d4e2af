//! Where one segment of a value ends and the next begins.
//!
//! A segment begins on a chunk of its own, so what is inserted before it moves it and changes none
//! of its chunks. *Fixed* segments end at multiples of a length: what is inserted changes all
//! behind it. *Content-defined* ones end where the bytes say so: behind the next end all is as it
//! was. They cost a padded chunk each, and a shorter one compresses less.
//!
//! [`Cutter`] is the seam for cutters that know a format: it sees the bytes in order and says how
//! long the next segment is.

use fastcdc::v2020::{self, Normalization};

/// Says where segments end.
pub trait Cutter: Send {
    /// Length of the segment that begins with the first of `bytes`, at least 1 and at most all of
    /// them; none when more bytes are needed to tell. With `is_end` nothing follows `bytes`, and
    /// there is an answer. Each call begins where the last answer ended; `bytes` are not empty.
    fn cut(&mut self, bytes: &[u8], is_end: bool) -> Option<usize>;

    /// Longest segment: with as many bytes there is an answer.
    fn segment_bytes_max(&self) -> usize;
}

/// How a bucket cuts values into segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SegmentPolicy {
    /// What measurements/048 found best for the kind of value: fixed for databases of pages, whose
    /// versions differ in whole pages in their places, content-defined for all others.
    #[default]
    Auto,
    /// Segments of [`FIXED_BYTES`].
    Fixed,
    /// Segments whose ends the content defines, of the mean length of [`CDC`].
    Cdc,
}

impl SegmentPolicy {
    /// A cutter for one value.
    #[must_use]
    pub fn cutter(self) -> Box<dyn Cutter> {
        match self {
            Self::Fixed => Box::new(FixedCutter::new(FIXED_BYTES)),
            Self::Cdc => Box::new(CdcCutter::new(CDC)),
            Self::Auto => Box::new(AutoCutter::Undecided),
        }
    }
}

/// Length of fixed segments.
pub const FIXED_BYTES: usize = 64 << 10;

/// How files begin whose pages change in their places.
const PAGED_STARTS: [&[u8]; 1] = [b"SQLite format 3\0"];

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

/// Ends segments at multiples of a length.
#[derive(Debug)]
pub struct FixedCutter {
    segment_bytes: usize,
}

impl FixedCutter {
    /// Segments of `segment_bytes`.
    ///
    /// # Panics
    /// When they have no bytes.
    #[must_use]
    pub fn new(segment_bytes: usize) -> Self {
        assert!(segment_bytes > 0, "a segment has a byte");
        Self { segment_bytes }
    }
}

impl Cutter for FixedCutter {
    fn cut(&mut self, bytes: &[u8], is_end: bool) -> Option<usize> {
        let is_whole = bytes.len() >= self.segment_bytes;
        (is_whole || is_end).then(|| bytes.len().min(self.segment_bytes))
    }

    fn segment_bytes_max(&self) -> usize {
        self.segment_bytes
    }
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

/// Cuts as the first bytes of the value ask for.
enum AutoCutter {
    Undecided,
    Fixed(FixedCutter),
    Cdc(CdcCutter),
}

impl AutoCutter {
    fn of(start: &[u8]) -> Self {
        match PAGED_STARTS.iter().any(|paged| start.starts_with(paged)) {
            true => Self::Fixed(FixedCutter::new(FIXED_BYTES)),
            false => Self::Cdc(CdcCutter::new(CDC)),
        }
    }
}

impl Cutter for AutoCutter {
    fn cut(&mut self, bytes: &[u8], is_end: bool) -> Option<usize> {
        if bytes.len() < self.segment_bytes_max() && !is_end {
            return None;
        }
        if matches!(self, Self::Undecided) {
            *self = Self::of(bytes);
        }
        match self {
            Self::Fixed(cutter) => cutter.cut(bytes, is_end),
            Self::Cdc(cutter) => cutter.cut(bytes, is_end),
            Self::Undecided => None, // It has just been decided.
        }
    }

    fn segment_bytes_max(&self) -> usize {
        match self {
            Self::Undecided => FIXED_BYTES.max(CDC.max_bytes),
            Self::Fixed(cutter) => cutter.segment_bytes_max(),
            Self::Cdc(cutter) => cutter.segment_bytes_max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::{CdcCutter, CdcLengths, Cutter, FixedCutter, SegmentPolicy};

    const SHORT: CdcLengths = CdcLengths { min_bytes: 64, mean_bytes: 256, max_bytes: 1024 };

    /// The lengths of the segments of a value that comes in pieces of `piece` bytes.
    fn lengths(cutter: &mut dyn Cutter, value: &[u8], piece: usize) -> Vec<usize> {
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

    fn noise(length: usize, seed: u64) -> Vec<u8> {
        let mut state = seed | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        (0..length).map(|_| next()).collect()
    }

    proptest! {
        #[test]
        fn segments_come_to_the_value_however_it_comes(
            value in vec(any::<u8>(), 0..6000), piece in 1..3000_usize,
        ) {
            for cutter in [
                &mut FixedCutter::new(512) as &mut dyn Cutter,
                &mut CdcCutter::new(SHORT),
            ] {
                let whole = lengths(cutter, &value, usize::MAX - value.len());
                prop_assert_eq!(whole.iter().sum::<usize>(), value.len());
                let longest = cutter.segment_bytes_max();
                prop_assert!(whole.iter().all(|length| (1..=longest).contains(length)));
                prop_assert_eq!(lengths(cutter, &value, piece), whole);
            }
        }
    }

    #[test]
    fn a_database_of_pages_is_cut_at_fixed_places() {
        let mut value = noise(1 << 18, 7);
        let auto = |value: &[u8]| lengths(SegmentPolicy::Auto.cutter().as_mut(), value, 5000);
        assert_eq!(auto(&value), lengths(SegmentPolicy::Cdc.cutter().as_mut(), &value, 5000));
        value[..16].copy_from_slice(b"SQLite format 3\0");
        assert_eq!(auto(&value), [64 << 10; 4]);
        assert_eq!(auto(&value[..9]), [9]);
    }

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
            segments.collect::<std::collections::BTreeSet<_>>()
        };
        let (before, after) = (cut(&value), cut(&longer));
        assert!(before.len() > 30, "{} segments", before.len());
        assert!(after.difference(&before).count() <= 3);
    }
}
