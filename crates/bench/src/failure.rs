//! Why a measurement could not be made.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use thiserror::Error;

/// Why there are no figures.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// A file or folder.
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// A program that is not there or may not be run.
    #[error("`{command}` cannot be run: {source}")]
    Start { command: String, source: io::Error },
    /// A program that failed.
    #[error("`{command}` failed with {status}:\n{said}")]
    Command { command: String, status: ExitStatus, said: String },
    /// A program whose JSON does not say what was asked.
    #[error("the answer of `{command}` lacks {missing}")]
    Answer { command: String, missing: &'static str },
    /// A server that ended or stayed silent.
    #[error("{server} does not answer; it said:\n{said}")]
    Silent { server: &'static str, said: String },
    /// A signal has asked for the end.
    #[error("interrupted; what was made has been removed")]
    Interrupted,
    /// Signals cannot be watched for.
    #[error("signals cannot be watched for: {0}")]
    Signals(io::Error),
    /// The engine's thread ended by itself.
    #[error("the engine's thread panicked")]
    EngineVanished,
    /// The store did not keep what the source holds: its speed means nothing.
    #[error("the store holds {found} unique chunks, but {expected} were written")]
    Unfaithful { expected: u64, found: u64 },
    /// Filling a store did not come near enough to what it was to come to.
    #[error("a store that was to be {wanted_percent:.0}% full is {used_percent:.0}% full")]
    OffLevel { wanted_percent: f64, used_percent: f64 },
    /// A system gave back what it was not given: its speed means nothing.
    #[error("other bytes came back than were written: {said}")]
    Differs { said: String },
    /// A folder without data.
    #[error("{}: there is not one MiB of data in it", .0.display())]
    EmptySet(PathBuf),
    /// A table of data that nobody named.
    #[error("--only data needs folders with data: --data DIR")]
    NoData,
    /// Nobody of those that --only names.
    #[error("no system or table called so, or none that can take part here: {0}")]
    NoSystem(String),
    /// A build that does not say who allocates.
    #[error(
        "this build does not record who allocates; one that does is run by: cargo run \
         --profile counting -p bench --features allocations -- allocations"
    )]
    NotRecording,
    /// An engine on a disk in memory.
    #[error(transparent)]
    Engine(Box<dyn std::error::Error + Send + Sync>),
    /// Our client of NBD.
    #[error(transparent)]
    Client(Box<dyn std::error::Error + Send + Sync>),
    /// A server in this process cannot listen.
    #[error(transparent)]
    Door(#[from] nbd::NbdError),
    /// A plot cannot be drawn.
    #[error(transparent)]
    Plot(#[from] charts::PlotError),
    /// The store cannot be made.
    #[error(transparent)]
    Create(#[from] store::CreateError),
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] store::OpenError),
    /// The store cannot be closed.
    #[error(transparent)]
    Close(#[from] store::CloseError),
    /// The store refuses.
    #[error(transparent)]
    Request(#[from] engine::RequestError),
}

impl Failure {
    /// For `map_err`: the file or folder at `path`.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Failure {
        let path = path.to_owned();
        move |source| Failure::File { path, source }
    }
}
