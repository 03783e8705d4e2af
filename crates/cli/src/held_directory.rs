//! The directory of a store that is being served: what it is, and not what has its name.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::error::CliError;
use crate::same_file::is_what_was_found;

/// A directory as it was when it was held. While it is, no other can be taken for it.
#[derive(Debug)]
pub(crate) struct HeldDirectory {
    path: PathBuf,
    /// `None` where nothing could be opened: no store is there either.
    file: Option<File>,
}

impl HeldDirectory {
    /// What is at `path` now. To be held before the store in it is locked: then what is found there
    /// later is never another one than that whose lock is held.
    pub(crate) fn hold(path: PathBuf) -> Self {
        let file = File::open(&path).ok();
        Self { path, file }
    }

    /// Its path, as far as [`HeldDirectory::check`] is content.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// An error when it is no longer what is at its path.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        let is_there = |held| is_what_was_found(held, fs::metadata(&self.path));
        match self.file.as_ref().is_some_and(is_there) {
            true => Ok(()),
            false => Err(CliError::StoreMoved { store: self.path.clone() }),
        }
    }
}
