//! Why the door does not open.

use std::io;
use std::net::SocketAddr;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum S3Error {
    /// The operating system gives no threads or no event queue.
    #[error("S3 cannot start: {0}")]
    Runtime(io::Error),
    /// Nobody can listen at this address.
    #[error("S3 cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the operating system says.
        source: io::Error,
    },
}
