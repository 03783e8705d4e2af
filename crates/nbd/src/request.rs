//! The protocol's requests as [`door`] has them.

use door::Operation;

use crate::wire::{self, COMMAND_DF, COMMAND_FUA, COMMAND_REQ_ONE, Command};

/// Extents in one reply.
const EXTENTS_MAX: u32 = 1024;

/// A request of a client.
pub(crate) type Request = door::Request<Tag>;

/// What a reply needs of its request beside what was asked for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    /// What the client knows it by.
    pub(crate) cookie: u64,
    /// At most one run of a read may be sent.
    pub(crate) unfragmented: bool,
}

/// What `request` asks for; None if that is unknown, or nothing of a volume.
pub(crate) fn operation(request: &wire::Request) -> Option<Operation> {
    match request.command {
        Command::Read => Some(Operation::Read),
        Command::Write => Some(Operation::Write),
        Command::Flush => Some(Operation::Flush),
        Command::Trim => Some(Operation::Trim),
        Command::WriteZeroes => Some(Operation::WriteZeroes),
        Command::Cache => Some(Operation::Prefetch),
        Command::BlockStatus => {
            let extents_max = if request.has(COMMAND_REQ_ONE) { 1 } else { EXTENTS_MAX };
            Some(Operation::Extents { extents_max })
        }
        Command::Disconnect | Command::Unknown(_) => None,
    }
}

/// The same request, typed.
pub(crate) fn typed(request: &wire::Request, operation: Operation) -> Request {
    Request {
        operation,
        offset_bytes: request.offset_bytes,
        length_bytes: request.length_bytes,
        durable: request.has(COMMAND_FUA),
        tag: Tag { cookie: request.cookie, unfragmented: request.has(COMMAND_DF) },
    }
}
