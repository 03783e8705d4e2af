//! Stores that are filled until they refuse, relieved, and filled again: a share of `lab fill`.

use lab::{Look, Simulation, Summary, fullness};

fn run(seed: u64, look: Look) -> Summary {
    let run = Simulation::of_script(fullness::script_of_seed(seed), look);
    run.and_then(Simulation::run).unwrap_or_else(|failure| panic!("seed {seed}: {failure}"))
}

/// Seeds 3, 10 and 14 failed once, each in its way.
#[test]
fn a_full_store_does_what_it_must_and_takes_writes_again_when_there_is_room() {
    let mut filled = 0;
    for seed in [1, 3, 10, 14] {
        filled += run(seed, Look::Nowhere).filled;
    }
    assert!(filled > 20, "{filled} times full");
}

#[test]
fn a_full_store_survives_a_crash() {
    let points = run(5, Look::Sometimes(300)).points.total();
    assert!(points > 10, "{points} crash points");
}
