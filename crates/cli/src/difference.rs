//! The way through all that differs between two versions, step by step.

use engine::{ChangedRange, DifferenceRequest, DifferenceStep};

use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::progress::{Progress, Unit};

/// What two versions are that were compared.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Compared {
    /// Of the first and of the second.
    pub(crate) sizes_bytes: [u64; 2],
    /// Unit of the ranges.
    pub(crate) chunk_bytes: u32,
}

/// Where two versions differ, all of it.
#[derive(Debug, Default)]
pub(crate) struct Difference {
    /// Of the first and of the second.
    pub(crate) sizes_bytes: [u64; 2],
    /// Unit of the ranges.
    pub(crate) chunk_bytes: u32,
    /// In ascending order, neighbours of one kind merged.
    pub(crate) ranges: Vec<ChangedRange>,
}

/// Two versions that are compared.
pub(crate) struct Comparison<'a> {
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
    pub(crate) interrupt: &'a Interrupt,
    /// Whether it is shown how far it has come.
    pub(crate) shown: bool,
}

impl Comparison<'_> {
    /// Tells `found` where they differ by what `step` finds, as long as that says to go on: in
    /// ascending order, neighbours of one kind merged. Only the last range is kept, for there may
    /// be as many as a volume has chunks.
    pub(crate) fn walk(
        &self,
        mut step: impl FnMut(DifferenceRequest) -> Result<DifferenceStep, CliError>,
        mut found: impl FnMut(ChangedRange) -> Result<bool, CliError>,
    ) -> Result<Compared, CliError> {
        let mut compared = Compared::default();
        let mut progress: Option<Progress> = None;
        let mut numbers = None;
        let mut last = Vec::new();
        let mut next = Some(0);
        while let Some(lba) = next {
            self.interrupt.check()?;
            let (from, to) = (self.from.to_owned(), self.to.to_owned());
            let step = step(DifferenceRequest { from, to, lba })?;
            if *numbers.get_or_insert(step.numbers) != step.numbers {
                let (from, to) = (self.from.to_owned(), self.to.to_owned());
                return Err(CliError::OtherVersion { from, to });
            }
            let DifferenceStep { sizes_bytes, chunk_bytes, .. } = step;
            compared = Compared { sizes_bytes, chunk_bytes };
            for range in step.ranges {
                range.add_to(&mut last);
                if last.len() > 1 && !found(last.remove(0))? {
                    return Ok(compared);
                }
            }
            let total = sizes_bytes.into_iter().max().unwrap_or(0);
            let done = step.next_lba.map_or(total, |lba| lba * u64::from(chunk_bytes));
            if self.shown {
                progress
                    .get_or_insert_with(|| Progress::new("comparing", Unit::Bytes, Some(total)))
                    .set_done(done.min(total));
            }
            next = step.next_lba;
        }
        if let Some(range) = last.pop() {
            found(range)?;
        }
        Ok(compared)
    }
}

impl Difference {
    /// Everything that `step` finds between `from` and `to`.
    pub(crate) fn between(
        from: &str,
        to: &str,
        interrupt: &Interrupt,
        step: impl FnMut(DifferenceRequest) -> Result<DifferenceStep, CliError>,
    ) -> Result<Self, CliError> {
        let mut ranges = Vec::new();
        let comparison = Comparison { from, to, interrupt, shown: true };
        let Compared { sizes_bytes, chunk_bytes } = comparison.walk(step, |range| {
            ranges.push(range);
            Ok(true)
        })?;
        Ok(Self { sizes_bytes, chunk_bytes, ranges })
    }

    /// Bytes of the ranges that hold data in the second, or of those that hold nothing there.
    pub(crate) fn bytes(&self, unmapped: bool) -> u64 {
        let of_kind = self.ranges.iter().filter(|range| range.unmapped == unmapped);
        of_kind.map(|range| range.length_bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use engine::{ChangedRange, DifferenceStep};

    use super::{CliError, Comparison, Interrupt};

    /// A volume that is deleted between two steps, and made again under its name, is another.
    #[test]
    fn halves_of_two_comparisons_are_not_one() {
        let interrupt = Interrupt::default();
        let comparison = Comparison { from: "a", to: "b", interrupt: &interrupt, shown: false };
        for later in [[1, 3], [3, 2]] {
            let step = |lba: u64| DifferenceStep {
                numbers: if lba < 50 { [1, 2] } else { later },
                sizes_bytes: [409_600; 2],
                chunk_bytes: 4096,
                ranges: Vec::new(),
                next_lba: Some(lba + 10).filter(|lba| *lba < 100),
            };
            let walked = comparison.walk(|request| Ok(step(request.lba)), |_| Ok(true));
            assert!(matches!(walked, Err(CliError::OtherVersion { .. })), "{walked:?}");
        }
    }

    /// Ten steps that find three ranges each, the last one a neighbour of the next step's first.
    #[test]
    fn ranges_are_told_as_they_are_found_and_neighbours_as_one() {
        let interrupt = Interrupt::default();
        let comparison = Comparison { from: "a", to: "b", interrupt: &interrupt, shown: false };
        let told = Cell::new(0);
        let at = |lba: u64| ChangedRange {
            offset_bytes: lba * 4096,
            length_bytes: 4096,
            unmapped: false,
        };
        let step = |lba: u64| {
            let so_far = lba / 10 * 2;
            assert!(told.get() >= so_far, "{} told before {lba}", told.get());
            DifferenceStep {
                numbers: [1, 2],
                sizes_bytes: [409_600; 2],
                chunk_bytes: 4096,
                ranges: [lba, lba + 5, lba + 9].map(at).to_vec(),
                next_lba: Some(lba + 10).filter(|lba| *lba < 100),
            }
        };
        let mut lengths = Vec::new();
        let compared = comparison.walk(
            |request| Ok(step(request.lba)),
            |range| {
                told.set(told.get() + 1);
                lengths.push(range.length_bytes / 4096);
                Ok(true)
            },
        );
        assert_eq!(compared.unwrap().sizes_bytes, [409_600; 2]);
        let expected = [&[1][..], &[1, 2].repeat(9), &[1, 1]].concat();
        assert_eq!(lengths, expected);
        // Who has heard enough is told no more.
        told.set(100);
        let mut heard = 0;
        let enough = |_| {
            heard += 1;
            Ok(false)
        };
        comparison.walk(|request| Ok(step(request.lba)), enough).unwrap();
        assert_eq!(heard, 1);
    }
}
