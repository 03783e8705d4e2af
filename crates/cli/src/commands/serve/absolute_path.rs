//! Paths that the banner and other processes can use, whatever their working directory.

use std::path::{Path, PathBuf};

/// The same path for processes with another working directory.
pub(super) fn absolute_path(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
