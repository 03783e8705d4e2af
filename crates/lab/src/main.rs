//! `cargo run -p lab -- simulate --seed N --steps M`: runs of the real engine on a simulated disk.
//!
//! Each seed is one run: requests, a power failure at some device write, recovery, a check of every
//! invariant, and the question whether what is left is a prefix of what was written. The first
//! failure is printed with its seed, which repeats it.

use clap::{Parser, Subcommand};
use lab::{Plan, Simulation};

/// Proves, or breaks, what the engine promises.
#[derive(Parser)]
#[command(name = "lab", after_help = "Example: lab simulate --seed 1 --seeds 50 --steps 300")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write, crash, recover, compare: again and again.
    Simulate {
        /// First seed; the same seed gives the same run.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// How many seeds, one run each.
        #[arg(long, default_value_t = 1)]
        seeds: u64,
        /// Requests between two crashes.
        #[arg(long, default_value_t = 200)]
        steps: u64,
        /// Crashes of a run.
        #[arg(long, default_value_t = 5)]
        crashes: u64,
    },
}

fn main() -> std::process::ExitCode {
    let Command::Simulate { seed, seeds, steps, crashes } = Arguments::parse().command;
    for seed in seed..seed + seeds {
        let plan = Plan { steps, crashes, ..Plan::of_seed(seed) };
        match Simulation::new(&plan).and_then(Simulation::run) {
            Ok(summary) => println!(
                "seed {seed}: {} requests, {} crashes, {} records replayed, {} cuts",
                summary.requests, summary.crashes, summary.records_replayed, summary.cuts
            ),
            Err(failure) => {
                println!("seed {seed} with {steps} steps and {crashes} crashes: {failure}");
                return std::process::ExitCode::FAILURE;
            }
        }
    }
    std::process::ExitCode::SUCCESS
}
