//! Which chunks are unique, guessed before they are hashed, so that one transfer to the FPGA does
//! for hashing all and compressing the unique ones.
//!
//! CIDR's algorithm is not in the texts. Ours: a sample of the chunk, 32 bits, is looked up in a
//! direct-mapped table of samples of what was written lately. There: taken for a duplicate. Not
//! there: taken for unique. So a guess costs one line of memory, and no chunk is ever lost: the
//! fingerprint decides afterwards. A duplicate taken for unique was compressed in vain; a unique
//! chunk taken for a duplicate has to go to the FPGA once more.

use std::collections::HashSet;

use traces::{Direction, Workload};

/// How guesses came out, in counts of writes.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Predicted {
    /// Unique, and taken for it.
    pub unique: u64,
    /// Duplicate, and taken for it.
    pub duplicate: u64,
    /// Duplicate taken for unique: compressed in vain.
    pub in_vain: u64,
    /// Unique taken for duplicate: sent twice.
    pub sent_twice: u64,
}

impl Predicted {
    /// Guesses that were right, in percent.
    #[must_use]
    pub fn right_percent(&self) -> f64 {
        let all = self.unique + self.duplicate + self.in_vain + self.sent_twice;
        100.0 * (self.unique + self.duplicate) as f64 / all.max(1) as f64
    }
}

/// Guesses over a workload with a table of this number of samples.
#[must_use]
pub fn predict(workload: &Workload, samples: u64) -> Predicted {
    let mut table: Vec<Option<u32>> = vec![None; samples.max(1) as usize];
    let mut stored = HashSet::new();
    let mut predicted = Predicted::default();
    for number in 0..workload.requests() {
        let access = workload.access(number);
        if access.direction == Direction::Read {
            continue;
        }
        let [_, low] = access.digest.halves();
        let (place, sample) = (low % samples.max(1), (low >> 32) as u32);
        let is_guessed = table[place as usize].replace(sample) == Some(sample);
        let count = match (stored.insert(access.digest), is_guessed) {
            (true, false) => &mut predicted.unique,
            (false, true) => &mut predicted.duplicate,
            (false, false) => &mut predicted.in_vain,
            (true, true) => &mut predicted.sent_twice,
        };
        *count += 1;
    }
    predicted
}

#[cfg(test)]
mod tests {
    use traces::{Workload, WorkloadKind};

    use super::predict;

    #[test]
    fn a_larger_table_guesses_better_and_a_whole_one_nearly_always() {
        for kind in WorkloadKind::ALL {
            let workload = Workload::new(kind, 20_000, 1);
            let right = [1, 100, 1_000, 1 << 20].map(|samples| {
                let predicted = predict(&workload, samples);
                predicted.right_percent()
            });
            assert!(right.is_sorted(), "{kind:?}: {right:?}");
            assert!(right[3] > 98.0, "{kind:?}: {right:?}");
        }
    }
}
