//! What a check has to say: where, and what to do about it.

use std::fmt;
use std::path::{Path, PathBuf};

/// One broken law.
#[derive(Clone, Debug, Eq, PartialEq, Ord, PartialOrd)]
pub(crate) struct Finding {
    /// Relative to the workspace's root.
    pub(crate) path: PathBuf,
    /// Counted from 1; 0 when it is about the whole file.
    pub(crate) line: usize,
    /// One sentence: what is wrong and what to do instead.
    pub(crate) message: String,
}

impl Finding {
    /// About one line of `path`.
    pub(crate) fn at(path: &Path, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: path.to_path_buf(), line, message: message.into() }
    }

    /// About the whole of `path`.
    pub(crate) fn of(path: impl AsRef<Path>, message: impl Into<String>) -> Finding {
        Finding::at(path.as_ref(), 0, message)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path.display(), self.message),
            line => write!(f, "{}:{line}: {}", self.path.display(), self.message),
        }
    }
}
