//! The first seeds; `lab replicas` runs more of them.

use super::ReplicaPlan;

#[test]
fn seeds_of_two_copies_lose_nothing() {
    for seed in 1..=12 {
        if let Err(broken) = ReplicaPlan::of_seed(seed).run() {
            panic!("seed {seed}: {broken}");
        }
    }
}

#[test]
fn one_seed_is_one_run() {
    let run = || ReplicaPlan::of_seed(3).run().unwrap();
    assert_eq!(run(), run());
}
