//! `lab replicas`: a bucket on two stores in the simulator, seed after seed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use lab::{Broken, ReplicaPlan, ReplicaSummary};

#[derive(Args)]
pub(crate) struct Arguments {
    /// First seed; the same seed gives the same run.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seeds, one run each.
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Steps of a run.
    #[arg(long, default_value_t = 120)]
    steps: u64,
}

/// Runs all seeds up to the first that fails, and prints what they came to.
pub(crate) fn replicas(arguments: &Arguments) -> ExitCode {
    let begun = Instant::now();
    let Arguments { seed, seeds, steps } = *arguments;
    let mut total = ReplicaSummary::default();
    for seed in seed..seed.saturating_add(seeds) {
        let plan = ReplicaPlan { steps, ..ReplicaPlan::of_seed(seed) };
        let run = catch_unwind(AssertUnwindSafe(|| plan.run())).unwrap_or_else(|_| {
            Err(Broken::Objects { what: "the run panicked, see above".to_owned() })
        });
        match run {
            Ok(summary) => total.add(&summary),
            Err(broken) => {
                println!("seed {seed} fails: {broken}");
                println!("again: cargo run -p lab -- replicas --seed {seed} --steps {steps}");
                return ExitCode::FAILURE;
            }
        }
    }
    println!("{seeds} seeds from {seed} on: {total}; {:.0} s", begun.elapsed().as_secs_f64());
    ExitCode::SUCCESS
}
