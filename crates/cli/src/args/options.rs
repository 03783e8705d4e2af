//! Options that several commands have.

use clap::{Arg, Args};

use super::values::{parse_memory, parse_threads};

/// How results are printed.
#[derive(Copy, Clone, Debug, Args)]
pub(crate) struct Format {
    /// Print the result as JSON, for programs; an error is the last line of standard error, as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What loses something is asked about first.
#[derive(Debug, Args)]
pub(crate) struct Confirm {
    /// Do not ask; without a terminal nothing is lost unless this is given
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// What becomes of clients that have the volume open.
#[derive(Copy, Clone, Debug, Args)]
pub(crate) struct Force {
    /// Disconnect the clients that have it open first; without it the command is refused and names
    /// them
    #[arg(long)]
    pub(crate) force: bool,
}

/// What an engine may use.
#[derive(Debug, Args)]
pub(crate) struct EngineArgs {
    /// Memory for caches, write buffer and reads together, at least 64M and no more than the
    /// machine or its control group has; auto is 1G, or half of that where it is less; beside it
    /// come up to 64M for the program, 2M for each connection, about 1.25 bytes for each stored
    /// chunk (320M a TiB of 4K chunks; `tamis init --filter-bits` sets it) and 20M a TiB
    #[arg(long, value_name = "SIZE", value_parser = parse_memory, default_value = "auto")]
    pub(crate) memory: u64,
    /// Threads that fingerprint and compress; each takes 1M: of --memory, or beside it where there
    /// are more than one for each 8M of it [default: one for each processor, but no more than that]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    pub(crate) threads: Option<u16>,
}

/// Where `--memory` is what the help of `tamis serve` explains.
pub(super) fn memory_as_serve(memory: Arg) -> Arg {
    memory.help("Memory for the store's caches and buffers, as `tamis serve --memory`")
}
