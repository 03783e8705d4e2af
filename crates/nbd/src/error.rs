//! What can go wrong before the first client is served. After that nothing is reported to the
//! caller: what goes wrong on a connection is told to its client or ends it.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a text is no address to listen at.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Neither of the two schemes.
    #[error("{text:?} is no address to listen at: write unix:PATH or tcp:HOST:PORT")]
    UnknownScheme {
        /// What was given.
        text: String,
    },
    /// `unix:` alone.
    #[error("the path of the socket is missing: write unix:PATH")]
    NoPath,
    /// `tcp:` without a host.
    #[error("the host is missing: write tcp:HOST:PORT")]
    NoHost,
    /// What follows the host is no port.
    #[error("{port:?} is not a port: use 0 to 65535")]
    BadPort {
        /// What was given.
        port: String,
    },
}

/// Why a server could not be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NbdError {
    /// A live server answers at the socket.
    #[error("another process serves {}", path.display())]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// Its path is one that no client could name.
    #[error(
        "{} is longer than the {limit_bytes} bytes that the path of a socket may have: choose \
         another",
        path.display()
    )]
    PathTooLong {
        /// The socket.
        path: PathBuf,
        /// What clients can name.
        limit_bytes: usize,
    },
    /// There is something else where the socket is to be.
    #[error("{} is there and is no socket: remove it or choose another path", path.display())]
    NotASocket {
        /// What is there.
        path: PathBuf,
    },
    /// The address cannot be listened at.
    #[error("{address} cannot be listened at: {source}")]
    Bind {
        /// The address.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// The process has no threads left.
    #[error("no thread can be started for {address}: {source}")]
    Thread {
        /// The address that it was to accept at.
        address: String,
        /// Why.
        source: io::Error,
    },
}
