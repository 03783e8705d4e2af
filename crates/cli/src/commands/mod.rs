//! One file for each command: what it does, said in the order in which it is done; and what several
//! of them do: `in_flight` (driving an engine), `scratch` (stores to be measured),
//! `confirm`.

mod account;
mod bench;
mod bucket;
mod check;
mod collect;
mod complete;
mod completions;
mod confirm;
mod data_files;
mod diff;
mod estimate;
mod explain;
mod export;
mod grow;
mod import;
mod in_flight;
mod init;
mod objects;
mod plan;
mod replay;
mod scratch;
mod scrub;
mod serve;
mod set;
mod snapshot;
mod stats;
mod volume;

use crate::args::Command;
use crate::error::CliError;

/// Carries `command` out.
pub(crate) fn run(command: Command) -> Result<(), CliError> {
    match command {
        Command::Init(args) => init::run(&args),
        Command::Serve(args) => serve::run(args),
        Command::Volume(command) => volume::run(&command),
        Command::Snapshot(command) => snapshot::run(&command),
        Command::Clone(args) => snapshot::clone(&args),
        Command::Bucket(command) => bucket::run(&command),
        Command::Put(args) => objects::put::run(&args),
        Command::Get(args) => objects::get::run(&args),
        Command::Ls(args) => objects::ls::run(&args),
        Command::Rm(args) => objects::rm::run(&args),
        Command::Cp(args) => objects::cp::run(&args),
        Command::Account(command) => account::run(&command),
        Command::Diff(args) => diff::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Bench(command) => bench::run(&command),
        Command::Estimate(args) => estimate::run(args),
        Command::Plan(args) => plan::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Stats(args) => stats::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Scrub(args) => scrub::run(&args),
        Command::Collect(args) => collect::run(&args),
        Command::Grow(args) => grow::run(&args),
        Command::Data(command) => data_files::run(&command),
        Command::Set(args) => set::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Complete(args) => complete::run(&args),
    }
}
