//! Short runs of buckets: they pass, and each is the same twice.

use super::ObjectPlan;

#[test]
fn buckets_survive_crashes_and_a_seed_is_one_run() {
    for seed in 1..=3 {
        let plan = ObjectPlan { steps: 30, lives: 2, one_in: 12, ..ObjectPlan::of_seed(seed) };
        let run = || plan.run().unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        let first = run();
        assert!(first.points.total() > 10, "{first:?}");
        assert_eq!(first, run(), "seed {seed}");
    }
}
