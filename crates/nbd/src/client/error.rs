//! Why a client does not get what it asks for.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use thiserror::Error;

/// Why something was not read or written.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server went away.
    #[error("the server closed the connection")]
    Closed,
    /// The connection failed.
    #[error("the connection to the server failed: {0}")]
    Connection(Arc<io::Error>),
    /// The server does not keep to the protocol.
    #[error("the server does not speak NBD as it should: {what}")]
    Nonsense {
        /// What was wrong.
        what: &'static str,
    },
    /// The server serves no such export.
    #[error("{sentence}")]
    NoExport {
        /// What the server says of it.
        sentence: String,
    },
    /// The server did not do what it was asked for.
    #[error("{}", told(*.errno, .sentence.as_deref()))]
    Refused {
        /// As the protocol numbers errors ([`crate::wire::Errno`]).
        errno: u32,
        /// What the server says of it.
        sentence: Option<String>,
    },
}

fn told(errno: u32, sentence: Option<&str>) -> String {
    let unsaid =
        || format!("the server refused a request: {}", io::Error::from_raw_os_error(errno as i32));
    sentence.map_or_else(unsaid, str::to_owned)
}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => {
                Self::Closed
            }
            _ => Self::Connection(Arc::new(error)),
        }
    }
}

/// The server said what no server says.
pub(super) fn nonsense(what: &'static str) -> ClientError {
    ClientError::Nonsense { what }
}
