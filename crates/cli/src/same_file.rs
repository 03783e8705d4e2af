//! Which file it is, whatever it is called.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Whether this file is the one that was found under a name.
pub(crate) fn is_what_was_found(file: &File, found: io::Result<Metadata>) -> bool {
    let identity = |one: Metadata| (one.dev(), one.ino());
    let held = file.metadata().map(identity);
    held.is_ok_and(|held| found.is_ok_and(|found| identity(found) == held))
}

/// Whether two paths lead to one file or directory.
pub(crate) fn same_place(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    place(one) == place(other)
}
