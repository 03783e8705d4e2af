//! What can go wrong with a store as a whole, by what the caller can do about it.

use std::path::PathBuf;

use disk::CreateFilesError;
use engine::{PlanError, RequestError};
use thiserror::Error;

/// The machine refuses what a store needs beside its disk.
#[derive(Debug, Error)]
#[error("could not {action}: {source}")]
pub struct MachineError {
    /// What was tried, as in "could not read".
    pub action: &'static str,
    /// The kernel's word.
    pub source: std::io::Error,
}

/// Why a store could not be made.
#[derive(Debug, Error)]
pub enum CreateError {
    /// The sizes do not fit each other.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The files could not be made. None of them is left behind.
    #[error(transparent)]
    Files(#[from] CreateFilesError),
    /// The new files could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The new files could not be written.
    #[error(transparent)]
    Write(#[from] engine::CreateError),
    /// The machine gives no identity.
    #[error(transparent)]
    Machine(#[from] MachineError),
}

/// Why a store could not be opened. Nothing of it is open or locked afterwards.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The directory holds no store.
    #[error("there is no store at {}", path.display())]
    NoStore {
        /// The directory.
        path: PathBuf,
    },
    /// Another handle, here or in another process, has it open.
    #[error("the store at {} is in use: one at a time opens it", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// A file of it could not be opened.
    #[error(transparent)]
    Files(disk::OpenError),
    /// What its files hold cannot be used.
    #[error(transparent)]
    Contents(#[from] engine::OpenError),
    /// The machine has no eventfd, thread or random bytes left.
    #[error(transparent)]
    Machine(#[from] MachineError),
}

/// Why a store was not closed cleanly. The next opening recovers it.
#[derive(Debug, Error)]
pub enum CloseError {
    /// The engine could not write everything out.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The engine panicked, which is a bug of Tamis.
    #[error("the engine ended by a panic: the next opening recovers what was flushed")]
    Panicked,
}
