//! The line that answers a verb.

use engine::RequestError;
use serde::{Deserialize, Serialize};

use crate::error::ControlError;
use crate::json::{FromJson, ToJson};
use crate::protocol::{Refusal, RefusalKind};

/// A line that answers a verb whose answer is an `A`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", bound(serialize = "A: ToJson", deserialize = "A: FromJson"))]
pub(crate) enum Outcome<A> {
    /// It is done.
    Answer(#[serde(with = "crate::json")] A),
    /// The engine did not do it.
    Error(#[serde(with = "crate::json")] RequestError),
    /// The server did not ask the engine.
    Refused(Refusal),
}

impl<A> Outcome<A> {
    pub(crate) fn of(result: Result<A, ControlError>) -> Self {
        match result {
            Ok(answer) => Self::Answer(answer),
            Err(ControlError::Request(error)) => Self::Error(error),
            Err(ControlError::Refused(refusal)) => Self::Refused(refusal),
            Err(error @ ControlError::Call(_)) => {
                let (kind, sentence) = (RefusalKind::Failed, error.to_string());
                Self::Refused(Refusal { kind, sentence })
            }
        }
    }

    pub(crate) fn into_result(self) -> Result<A, ControlError> {
        match self {
            Self::Answer(answer) => Ok(answer),
            Self::Error(error) => Err(error.into()),
            Self::Refused(refusal) => Err(refusal.into()),
        }
    }
}
