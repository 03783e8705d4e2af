//! The end of a connection.

use std::io;

use thiserror::Error;

/// A connection has come to its end: its client is gone, too slow, or talks nonsense. Which of them
/// makes no difference, for there is nobody to tell.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
#[error("the connection has ended")]
pub struct Hangup;

impl From<io::Error> for Hangup {
    fn from(_: io::Error) -> Self {
        Self
    }
}
