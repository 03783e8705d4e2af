//! What can go wrong in a task. Nobody handles these by kind: a task that fails stops and says why,
//! so each variant is there for the sentence it prints.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use thiserror::Error;

/// Why a task stopped.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The command line was not understood.
    #[error("{text}")]
    Usage { text: &'static str },
    /// A program could not be started at all.
    #[error("cannot start `{command}`: {source}")]
    Start { command: String, source: io::Error },
    /// A program ran and said no.
    #[error("`{command}` ended with {status}{}", said(.output_tail))]
    Command { command: String, status: ExitStatus, output_tail: String },
    /// Packages could not be downloaded.
    #[error(
        "{failure}\nrun `apt-get update` first (with `sudo`, if need be): apt takes packages only \
         from lists that it has, and old lists name packages that are gone"
    )]
    NotDownloaded { failure: Box<Failure> },
    /// A file could not be used.
    #[error("{}: {source}", .path.display())]
    File { path: PathBuf, source: io::Error },
    /// A program's answer is not the JSON it should be.
    #[error("`{command}` answered something that is not JSON: {source}")]
    Json { command: String, source: serde_json::Error },
    /// A JSON answer lacks what the task reads from it.
    #[error("the answer of `{command}` has no number `{field}`")]
    MissingField { command: String, field: String },
    /// A promise was not kept: what the scenario or the check exists to find.
    #[error("expected {expected}, found {found}")]
    Unmet { expected: String, found: String },
    /// Everything there is to say was already printed.
    #[error("")]
    Told,
}

impl Failure {
    /// An unkept promise.
    pub(crate) fn unmet(expected: impl Into<String>, found: impl Into<String>) -> Failure {
        Failure::Unmet { expected: expected.into(), found: found.into() }
    }

    /// For `map_err` on anything that touches `path`.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Failure {
        let path = path.to_path_buf();
        move |source| Failure::File { path, source }
    }
}

fn said(output_tail: &str) -> String {
    if output_tail.is_empty() { String::new() } else { format!("; it said:\n{output_tail}") }
}
