//! Why the door does not open.

use std::io;
use std::path::PathBuf;

use crate::address::Address;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// The operating system gives no thread or no event queue.
    #[error("the door of memcached cannot start: {0}")]
    Start(io::Error),
    /// Nobody can listen at this address.
    #[error("memcached cannot be served at {address}: {source}")]
    Listen {
        /// The address.
        address: Address,
        /// What the operating system says.
        source: io::Error,
    },
    /// Another server answers at this socket.
    #[error("{path} is in use by another server")]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// There is a file that is no socket; it stays as it is.
    #[error("{path} is there and is no socket: remove it or choose another path")]
    NotASocket {
        /// The file.
        path: PathBuf,
    },
}
