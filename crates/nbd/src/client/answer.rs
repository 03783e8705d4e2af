//! What requests come to.

use super::error::ClientError;

/// A run of an export.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ClientExtent {
    /// How long it is; the last of an answer may end behind what was asked for.
    pub length_bytes: u64,
    /// What the metadata context says of it.
    pub flags: u32,
}

/// What a request came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was done.
    Done,
    /// The bytes that were read.
    Bytes(Vec<u8>),
    /// Extents, in order from where the request begins.
    Extents(Vec<ClientExtent>),
}

/// Who is told of an answer, once; it may be on another thread and must not wait.
pub type Done = Box<dyn FnOnce(Result<Answer, ClientError>) + Send>;
