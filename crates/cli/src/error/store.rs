//! What making, opening and closing a store comes to, as commands say it.

use std::io::ErrorKind;

use ::store::{CloseError, CreateError, OpenError};
use disk::FileError;

use crate::error::{CliError, PlaceError};

impl From<CreateError> for CliError {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::Plan(error) => Self::Plan(error),
            CreateError::Files(error) => Self::CreateFiles(error),
            CreateError::Open(error) => error.into(),
            CreateError::Write(error) => Self::Create(error),
            CreateError::Machine(error) => Self::Machine(error),
        }
    }
}

impl From<OpenError> for CliError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::NoStore { path } => Self::NoStore { store: path },
            OpenError::InUse { path } => Self::InUse { store: path },
            OpenError::Files(disk::OpenError::File(FileError { path, source, .. }))
                if source.kind() == ErrorKind::NotADirectory =>
            {
                PlaceError::no_directory(path.parent().unwrap_or(&path)).into()
            }
            OpenError::Files(error) => Self::OpenFiles(error),
            OpenError::Contents(error) => Self::Open(error),
            OpenError::Machine(error) => Self::Machine(error),
        }
    }
}

impl From<CloseError> for CliError {
    fn from(error: CloseError) -> Self {
        match error {
            CloseError::Request(error) => Self::Request(error),
            CloseError::Panicked => Self::EngineVanished,
        }
    }
}
