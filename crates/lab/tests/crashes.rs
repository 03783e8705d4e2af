//! A few seeds of the simulator in every test run: fixed ones, and fresh ones that are printed.

use lab::{Plan, Simulation};

fn run(seed: u64, steps: u64) {
    let plan = Plan { steps, crashes: 4, ..Plan::of_seed(seed) };
    let summary = Simulation::new(&plan).and_then(Simulation::run);
    match summary {
        Ok(summary) => assert_eq!(summary.crashes, 4),
        Err(failure) => panic!("seed {seed} with {steps} steps: {failure}"),
    }
}

#[test]
fn fixed_seeds_survive_every_crash() {
    for seed in 1..=12 {
        run(seed, 150);
    }
}

#[test]
fn long_runs_between_crashes_survive_too() {
    for seed in 100..=102 {
        run(seed, 1500);
    }
}
