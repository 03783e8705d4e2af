//! What can go wrong at either end of the control socket.

use std::io;
use std::path::PathBuf;

use engine::RequestError;
use thiserror::Error;

use crate::objects::frames::FrameError;
use crate::protocol::{PROTOCOL_VERSION, Refusal};

/// Why a control socket could not be set up.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A live server answers at the socket.
    #[error("another process serves the control socket {}", path.display())]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// The socket could not be made.
    #[error("the control socket {} cannot be made: {source}", path.display())]
    Bind {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Why no connection to a server came about, though a socket is there.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The socket could not be opened.
    #[error("the control socket {} cannot be opened: {source}", path.display())]
    Socket {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Who listens is neither this user nor root.
    #[error(
        "the control socket {} is served by user {uid}, who is neither you nor root and could \
         answer anything: if that is the server of the store, run the command as that user \
         (`sudo -u '#{uid}' tamis ...`)",
        path.display()
    )]
    Stranger {
        /// The socket.
        path: PathBuf,
        /// Number of the user.
        uid: u32,
    },
    /// The server greets with another protocol.
    #[error(
        "the store is served by tamis {server_version}, which speaks control protocol \
         {server_protocol} and not {PROTOCOL_VERSION}: use the same release for both"
    )]
    OtherProtocol {
        /// Release of the server.
        server_version: String,
        /// Its protocol.
        server_protocol: u32,
    },
    /// The server has no connection free.
    #[error("the server of the store has no connection free: try again")]
    Busy,
    /// The greeting did not come or could not be read.
    #[error("the server of the store does not greet: {source}")]
    NoGreeting {
        /// Why.
        source: CallError,
    },
}

/// Why a line did not come through.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CallError {
    /// The connection failed or took too long.
    #[error("the connection to the server of the store failed: {0}")]
    Connection(#[from] io::Error),
    /// The server closed the connection.
    #[error("the server of the store closed the connection")]
    Closed,
    /// A message is longer than messages may be.
    #[error("a message on the control socket is longer than {limit_bytes} bytes")]
    TooLong {
        /// The bound.
        limit_bytes: usize,
    },
    /// A frame of an object has a length that no frame has.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A message is not what the protocol says.
    #[error("a message on the control socket cannot be read: {0}")]
    Malformed(#[from] serde_json::Error),
}

/// Why what was asked for was not done, or nobody knows whether it was.
#[derive(Debug, Error)]
pub enum ControlError {
    /// The engine did not do it.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The process that serves the store did not ask the engine.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The connection to that process failed.
    #[error(transparent)]
    Call(#[from] CallError),
}
