//! Cuts as the first bytes of a value ask for.

use crate::formats::Format;
use crate::framed::FramedCutter;
use crate::{CDC, CdcCutter, Cutter, FIXED_BYTES, FixedCutter};

/// How files begin whose pages change in their places.
const PAGED_STARTS: [&[u8]; 1] = [b"SQLite format 3\0"];
/// Bytes that tell which format a file has, if it has as many.
const START_BYTES: usize = 4096;

/// Decides with the first bytes.
pub(crate) struct AutoCutter {
    decided: Option<Box<dyn Cutter>>,
}

impl AutoCutter {
    pub(crate) fn new() -> Self {
        Self { decided: None }
    }

    fn of(start: &[u8]) -> Box<dyn Cutter> {
        if PAGED_STARTS.iter().any(|paged| start.starts_with(paged)) {
            return Box::new(FixedCutter::new(FIXED_BYTES));
        }
        match Format::of(&start[..start.len().min(START_BYTES)]) {
            Some(format) => Box::new(FramedCutter::new(format)),
            None => Box::new(CdcCutter::new(CDC)),
        }
    }
}

impl Cutter for AutoCutter {
    fn cut(&mut self, bytes: &[u8], is_end: bool) -> Option<usize> {
        if self.decided.is_none() && bytes.len() < START_BYTES {
            return is_end.then_some(bytes.len()); // It is a chunk, whatever is in it.
        }
        self.decided.get_or_insert_with(|| Self::of(bytes)).cut(bytes, is_end)
    }

    fn segment_bytes_max(&self) -> usize {
        match &self.decided {
            None => FIXED_BYTES.max(FramedCutter::SEGMENT_BYTES_MAX),
            Some(cutter) => cutter.segment_bytes_max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use crate::testing::{lengths, noise};
    use crate::{CdcCutter, CdcLengths, Cutter, FixedCutter, SegmentPolicy};

    const SHORT: CdcLengths = CdcLengths { min_bytes: 64, mean_bytes: 256, max_bytes: 1024 };

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
}
