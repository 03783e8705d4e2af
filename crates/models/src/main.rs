//! `cargo run --release -p models -- cache-study | flash | parquet-pair | through-engine |
//! reproduce`: studies by models, and what the real engine counts of the same.
//!
//! - `cache-study` counts the pages that the tables read and write, by cache, policy and filter.
//! - `flash` counts what ways to find a duplicate cost a simulated flash device.
//! - `parquet-pair` counts what variants of a table's file take beside it.
//! - `through-engine` drives the real engine with FIDR's workloads and with real data.
//! - `reproduce` writes what the papers say beside what models give: docs/reproduction.md.
//!
//! Each study prints tables or JSON, and writes one line a run as CSV and plots as SVG on demand.

mod cache_command;
mod flash_command;
mod parquet_pair_command;
mod reproduce_command;
mod through_engine_command;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Counts what designs would do.
#[derive(Parser)]
#[command(name = "models", after_help = "Example: models cache-study --quick")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// What the tables cost by cache size, policy, filter, locality and neighbours: a model.
    CacheStudy(cache_command::Arguments),
    /// Ways to find a duplicate, on a simulated flash device: EaD's tables.
    Flash(flash_command::Arguments),
    /// What variants of a Parquet file take, by pages and by content: Multes++'s Figure 7.
    ParquetPair(parquet_pair_command::Arguments),
    /// FIDR's workloads and real data through the real engine: figures for docs/reproduction.md.
    ThroughEngine(through_engine_command::Arguments),
    /// The papers' values beside ours: docs/reproduction.md and its plots.
    Reproduce(reproduce_command::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::CacheStudy(arguments) => arguments.run(),
        Command::Flash(arguments) => arguments.run(),
        Command::ParquetPair(arguments) => arguments.run(),
        Command::ThroughEngine(arguments) => arguments.run(),
        Command::Reproduce(arguments) => arguments.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::FAILURE
        }
    }
}
