//! The way through all that differs between two versions, step by step.

use engine::{ChangedRange, DifferenceRequest, DifferenceStep};

use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::progress::{Progress, Unit};

/// Where two versions differ.
#[derive(Debug, Default)]
pub(crate) struct Difference {
    /// Of the first and of the second.
    pub(crate) sizes_bytes: [u64; 2],
    /// Unit of the ranges.
    pub(crate) chunk_bytes: u32,
    /// In ascending order, neighbours of one kind merged.
    pub(crate) ranges: Vec<ChangedRange>,
}

impl Difference {
    /// Everything that `step` finds between `from` and `to`.
    pub(crate) fn between(
        from: &str,
        to: &str,
        interrupt: &Interrupt,
        mut step: impl FnMut(DifferenceRequest) -> Result<DifferenceStep, CliError>,
    ) -> Result<Self, CliError> {
        let mut found = Self::default();
        let mut progress: Option<Progress> = None;
        let mut numbers = None;
        let mut next = Some(0);
        while let Some(lba) = next {
            interrupt.check()?;
            let request = DifferenceRequest { from: from.to_owned(), to: to.to_owned(), lba };
            let step = step(request)?;
            if *numbers.get_or_insert(step.numbers) != step.numbers {
                return Err(CliError::OtherVersion { from: from.to_owned(), to: to.to_owned() });
            }
            (found.sizes_bytes, found.chunk_bytes) = (step.sizes_bytes, step.chunk_bytes);
            step.ranges.into_iter().for_each(|range| range.add_to(&mut found.ranges));
            let total = step.sizes_bytes.into_iter().max().unwrap_or(0);
            let done = step.next_lba.map_or(total, |lba| lba * u64::from(step.chunk_bytes));
            progress
                .get_or_insert_with(|| Progress::new("comparing", Unit::Bytes, Some(total)))
                .set_done(done.min(total));
            next = step.next_lba;
        }
        Ok(found)
    }

    /// Bytes of the ranges that hold data in the second, or of those that hold nothing there.
    pub(crate) fn bytes(&self, unmapped: bool) -> u64 {
        let of_kind = self.ranges.iter().filter(|range| range.unmapped == unmapped);
        of_kind.map(|range| range.length_bytes).sum()
    }
}
