//! How writes end, wherever the volume is.

use engine::RequestError;
use nbd::client::ClientError;

use crate::error::CliError;

/// Why a write failed.
#[derive(Clone, Debug)]
pub(crate) enum WriteFailure {
    /// The engine refused it.
    Request(RequestError),
    /// Its server, or the way there.
    Served(ClientError),
}

impl From<WriteFailure> for CliError {
    fn from(failure: WriteFailure) -> Self {
        match failure {
            WriteFailure::Request(error) => error.into(),
            WriteFailure::Served(error) => error.into(),
        }
    }
}

/// Who is told how a write ended.
pub(crate) trait WriteSink: Send + Sync + 'static {
    /// One has.
    fn end(&self, outcome: Result<(), WriteFailure>);
}
