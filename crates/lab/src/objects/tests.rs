//! Short runs of buckets: they pass, and each is the same twice.

use super::{ObjectPlan, ObjectSummary};

#[test]
fn buckets_survive_crashes_and_a_seed_is_one_run() {
    let mut sum = ObjectSummary::default();
    for seed in 1..=3 {
        let plan = ObjectPlan { steps: 30, lives: 2, one_in: 12, ..ObjectPlan::of_seed(seed) };
        let run = || plan.run().unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        let first = run();
        assert!(first.points.total() > 0, "{first:?}");
        assert_eq!(first, run(), "seed {seed}");
        sum.add(&first);
    }
    assert!(sum.points.total() > 30, "{sum:?}");
}

/// In seed 1 the disk fails in life 1, and no operation meets that before the close.
#[test]
fn a_disk_that_fails_may_keep_a_store_from_closing() {
    let summary = ObjectPlan { one_in: 0, ..ObjectPlan::of_seed(1) }.run();
    let summary = summary.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(summary.stopped > 0, "{summary:?}");
}
