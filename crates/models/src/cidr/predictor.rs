//! Which chunks are unique, guessed before they are hashed, so that one transfer to the FPGA does
//! for hashing all and compressing the unique ones.
//!
//! The predictor is that of the live path ([`accelerator::Predictor`], decision 077), given digests
//! of made workloads in place of samples of chunks. A duplicate taken for unique was compressed in
//! vain; a unique chunk taken for a duplicate has to go to the FPGA once more.

use std::collections::HashSet;

use accelerator::{Predicted, Predictor};
use traces::{Direction, Workload};

/// Guesses over a workload with a table of this number of samples.
#[must_use]
pub fn predict(workload: &Workload, samples: u64) -> Predicted {
    let mut predictor = Predictor::new(samples as usize);
    let mut stored = HashSet::new();
    let mut predicted = Predicted::default();
    for number in 0..workload.requests() {
        let access = workload.access(number);
        if access.direction == Direction::Read {
            continue;
        }
        let [_, low] = access.digest.halves();
        predicted.count(predictor.guess(low), stored.insert(access.digest));
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
                100.0 * predicted.right_ratio()
            });
            assert!(right.is_sorted(), "{kind:?}: {right:?}");
            assert!(right[3] > 98.0, "{kind:?}: {right:?}");
        }
    }
}
