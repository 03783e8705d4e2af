//! Chunks of a volume that share a fate, gathered into ranges.

use crate::check::problem::Problem;

/// Ranges of LBAs, as they come in ascending order.
#[derive(Debug, Default)]
pub(crate) struct LbaRuns(Vec<(u64, u64)>);

impl LbaRuns {
    /// Adds one chunk, behind all that were added before.
    pub(crate) fn add(&mut self, lba: u64) {
        self.add_run(lba, 1);
    }

    /// Adds `count` chunks, behind all that were added before.
    pub(crate) fn add_run(&mut self, lba: u64, count: u64) {
        match self.0.last_mut() {
            Some((first, length)) if *first + *length == lba => *length += count,
            _ if count == 0 => {}
            _ => self.0.push((lba, count)),
        }
    }

    /// That these chunks are lost.
    pub(crate) fn lost(&self, volume: &str, chunk_bytes: u32) -> impl Iterator<Item = Problem> {
        self.0.iter().map(move |&(lba, count)| {
            let (volume, bytes) = (volume.to_owned(), count * u64::from(chunk_bytes));
            Problem::LostChunks { volume, lba, count, bytes }
        })
    }

    /// That these chunks cannot be read before a repair.
    pub(crate) fn hidden(&self, volume: &str, chunk_bytes: u32) -> impl Iterator<Item = Problem> {
        self.0.iter().map(move |&(lba, count)| {
            let (volume, bytes) = (volume.to_owned(), count * u64::from(chunk_bytes));
            Problem::HiddenChunks { volume, lba, count, bytes }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::LbaRuns;
    use crate::check::problem::Problem;

    #[test]
    fn neighbours_become_one_range() {
        let mut runs = LbaRuns::default();
        [3, 4, 5, 9].into_iter().for_each(|lba| runs.add(lba));
        runs.add_run(10, 2);
        let found: Vec<_> = runs.lost("v", 4096).collect();
        let range = |lba, count| {
            let (volume, bytes) = ("v".to_owned(), count * 4096);
            Problem::LostChunks { volume, lba, count, bytes }
        };
        assert_eq!(found, [range(3, 3), range(9, 3)]);
    }
}
