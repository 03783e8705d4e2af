//! A few seeds of the simulator in every test run: fixed ones, and fresh ones that are printed.

use lab::{Plan, Simulation, Summary};

fn run(seed: u64) -> Summary {
    let plan = Plan { steps: 30, ..Plan::of_seed(seed) };
    match Simulation::new(&plan).and_then(Simulation::run) {
        Ok(summary) => summary,
        Err(failure) => panic!("seed {seed}: {failure}"),
    }
}

#[test]
fn a_seed_is_a_run_to_the_byte() {
    for seed in 1..=4 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}
