//! Who opens volumes in this process, as operators are told of it.

use std::process;

use engine::Opener;

use crate::scrub_record::unix_seconds;

/// This command, from now on.
pub(crate) fn opener(command: &str) -> Opener {
    Opener::new(format!("tamis {command}, pid {}", process::id()), unix_seconds())
}
