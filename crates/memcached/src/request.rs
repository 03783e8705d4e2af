//! What a client asks, with how it is answered.

use crate::operation::Operation;

/// An operation, and how its answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// What the client asks.
    pub operation: Operation<'a>,
    pub(crate) form: Form<'a>,
}

impl Request<'_> {
    /// Whether the key came in base64.
    pub(crate) fn is_base64(&self) -> bool {
        match self.form {
            Form::Meta { is_base64, .. }
            | Form::Inspect { is_base64 }
            | Form::TooLarge { is_base64, .. } => is_base64,
            _ => false,
        }
    }
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form<'a> {
    /// A line, or nothing at all with `noreply`.
    Text { is_quiet: bool },
    /// `VALUE`, and `END` behind the last key of a command.
    Value { has_cas: bool, is_last: bool },
    /// Two letters, and flags in the order in which the client gave its own.
    Meta { flags: &'a [u8], is_quiet: bool, is_base64: bool },
    /// The line of `me`.
    Inspect { is_base64: bool },
    /// The old item was removed, since its new value is too long.
    TooLarge { is_quiet: bool, is_base64: bool },
}
