//! `tamis`: the command line. It parses, dispatches, and turns what came of it into an exit code;
//! argv, environment and exit are nowhere else in the project.
//!
//! ```text
//! args.rs (what may be typed) -> commands/* (what is done) -> store.rs -> engine, or admin
//!                                      -> output.rs, table.rs, progress.rs (what is shown)
//! error.rs: every failure, its sentence and its exit code
//! ```

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod args;
mod commands;
mod control;
mod data;
mod difference;
mod error;
mod held_directory;
mod image;
mod interrupt;
mod object_path;
mod opener;
mod output;
mod pace;
mod progress;
mod recall;
mod removal;
mod same_file;
mod scrub_record;
mod shell;
mod size;
mod staging;
mod stdin;
mod store;
mod stream;
mod stream_source;
mod table;
mod target;
#[cfg(test)]
mod testing;
mod volume_walk;
mod volume_writer;
mod weighing;

use std::process::ExitCode;

use error::{Exit, facts};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    interrupt::outlive_file_limits();
    let as_json = args::wants_json(std::env::args_os().skip(1));
    let cli = match args::Cli::parse_line() {
        Ok(cli) => cli,
        Err(error) if as_json && error.use_stderr() => {
            output::say_json_error(facts::usage_to_json(&args::sentence(&error)));
            return ExitCode::from(Exit::Usage as u8);
        }
        Err(error) => return output::say_usage(&error),
    };
    match commands::run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::say_failure(&error);
            error.exit_code()
        }
    }
}
