//! Errors of what is asked in the control language: alike here and over the socket.

use admin::{ControlError, Refusal, RefusalKind};

use super::{CliError, Exit};

impl CliError {
    /// The error as a client of the control socket gets it; it has the same code there.
    pub(crate) fn into_refusal(self) -> ControlError {
        let kind = match self.exit() {
            Exit::Usage => RefusalKind::BadRequest,
            Exit::NoSpace => RefusalKind::NoSpace,
            Exit::NotFound => RefusalKind::NotFound,
            Exit::Exists => RefusalKind::Exists,
            Exit::Damage => RefusalKind::Damaged,
            Exit::InUse => RefusalKind::InUse,
            _ => RefusalKind::Failed,
        };
        match self {
            Self::Request(error) => error.into(),
            other => Refusal { kind, sentence: other.to_string() }.into(),
        }
    }
}

impl From<ControlError> for CliError {
    fn from(error: ControlError) -> Self {
        match error {
            ControlError::Request(error) => error.into(),
            ControlError::Refused(refusal) => refusal.into(),
            ControlError::Call(error) => error.into(),
        }
    }
}
