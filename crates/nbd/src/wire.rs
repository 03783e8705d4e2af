//! Every message of the protocol as bytes: what transmission is made of. No I/O, no state.
//!
//! All integers are big endian. A client sends requests of [`REQUEST_BYTES`], a write's payload
//! behind its request. We answer with a *simple* reply (16 bytes, then a read's bytes) or, where
//! the client negotiated it and it is needed, with *structured* chunks (20 bytes, then a payload),
//! the last of which carries [`CHUNK_DONE`]. The messages of negotiation are in [`option`].
//!
//! Decoders take whatever a client may send and never panic; there is a fuzz target for each.

mod fields;
pub mod option;

pub use fields::Fields;

/// First word of a request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// First word of a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// First word of a structured reply chunk.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Length of a request, without the payload of a write.
pub const REQUEST_BYTES: usize = 28;
/// Length of a simple reply, without the bytes of a read.
pub const SIMPLE_REPLY_BYTES: usize = 16;
/// Length of the header of a structured reply chunk.
pub const CHUNK_HEADER_BYTES: usize = 20;
/// What stands before the bytes of an [`CHUNK_OFFSET_DATA`] chunk, its header included.
pub const DATA_CHUNK_PREFIX_BYTES: usize = CHUNK_HEADER_BYTES + 8;
/// Length of an [`CHUNK_OFFSET_HOLE`] chunk.
pub const HOLE_CHUNK_BYTES: usize = CHUNK_HEADER_BYTES + 12;

/// Longest payload of one request or reply, and the maximum block size that we announce.
pub const PAYLOAD_BYTES_MAX: u32 = 32 << 20;
/// Longest string that the protocol allows.
pub const STRING_BYTES_MAX: usize = 4096;

/// Flag of a request: answer when it is durable.
pub const COMMAND_FUA: u16 = 1 << 0;
/// Flag of a write-zeroes: leave no hole.
pub const COMMAND_NO_HOLE: u16 = 1 << 1;
/// Flag of a read: do not fragment the reply.
pub const COMMAND_DF: u16 = 1 << 2;
/// Flag of a block status: one extent is enough.
pub const COMMAND_REQ_ONE: u16 = 1 << 3;
/// Flag of a write-zeroes: fail rather than be slow.
pub const COMMAND_FAST_ZERO: u16 = 1 << 4;

/// Flag of a chunk: the last one of its reply.
pub const CHUNK_DONE: u16 = 1 << 0;
/// A chunk without payload.
pub const CHUNK_NONE: u16 = 0;
/// A chunk with bytes of the export.
pub const CHUNK_OFFSET_DATA: u16 = 1;
/// A chunk that stands for zeros.
pub const CHUNK_OFFSET_HOLE: u16 = 2;
/// A chunk with extents of one metadata context.
pub const CHUNK_BLOCK_STATUS: u16 = 5;
/// A chunk with an error and a sentence about it.
pub const CHUNK_ERROR: u16 = 1 << 15 | 1;

/// Extent flag of `base:allocation`: nothing is stored there.
pub const STATE_HOLE: u32 = 1 << 0;
/// Extent flag of `base:allocation`: it reads as zeros.
pub const STATE_ZERO: u32 = 1 << 1;
/// Extent flag of `tamis:changed:NAME`: it differs from the snapshot.
pub const STATE_CHANGED: u32 = 1 << 0;

/// The protocol's error numbers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Errno {
    /// EPERM: the export is read-only.
    NotPermitted = 1,
    /// EIO: bytes could not be read or written.
    Io = 5,
    /// EINVAL: the request is invalid.
    Invalid = 22,
    /// ENOSPC: the store is full, or the write ends beyond the export.
    NoSpace = 28,
    /// EOVERFLOW: too long to be sent unfragmented.
    Overflow = 75,
    /// ESHUTDOWN: the server is going away; disconnect.
    Shutdown = 108,
}

impl From<door::Errno> for Errno {
    fn from(errno: door::Errno) -> Self {
        match errno {
            door::Errno::NotPermitted => Self::NotPermitted,
            door::Errno::Io => Self::Io,
            door::Errno::Invalid => Self::Invalid,
            door::Errno::NoSpace => Self::NoSpace,
            door::Errno::Shutdown => Self::Shutdown,
        }
    }
}

/// What a request asks for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Bytes of the export.
    Read,
    /// Change bytes; the only command with a payload.
    Write,
    /// Finish what is in flight and close.
    Disconnect,
    /// Make durable everything that was answered.
    Flush,
    /// The range is not needed any more.
    Trim,
    /// The range will soon be read.
    Cache,
    /// Zero the range.
    WriteZeroes,
    /// Where data and holes are.
    BlockStatus,
    /// None that this server knows.
    Unknown(u16),
}

impl Command {
    fn from_number(number: u16) -> Self {
        match number {
            0 => Self::Read,
            1 => Self::Write,
            2 => Self::Disconnect,
            3 => Self::Flush,
            4 => Self::Trim,
            5 => Self::Cache,
            6 => Self::WriteZeroes,
            7 => Self::BlockStatus,
            other => Self::Unknown(other),
        }
    }

    /// Its number on the wire.
    #[must_use]
    pub fn number(self) -> u16 {
        match self {
            Self::Read => 0,
            Self::Write => 1,
            Self::Disconnect => 2,
            Self::Flush => 3,
            Self::Trim => 4,
            Self::Cache => 5,
            Self::WriteZeroes => 6,
            Self::BlockStatus => 7,
            Self::Unknown(number) => number,
        }
    }
}

/// A request, as sent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `COMMAND_` flags, known and unknown.
    pub flags: u16,
    /// What is asked for.
    pub command: Command,
    /// The client's name for the request; goes back with every reply to it.
    pub cookie: u64,
    /// Where in the export.
    pub offset_bytes: u64,
    /// How much of it, and the length of a write's payload.
    pub length_bytes: u32,
}

impl Request {
    /// The request in `bytes`; `None` when they are none, after which nobody knows where the next
    /// one begins.
    #[must_use]
    pub fn decode(bytes: &[u8; REQUEST_BYTES]) -> Option<Self> {
        let mut fields = Fields::new(bytes);
        if fields.u32()? != REQUEST_MAGIC {
            return None;
        }
        Some(Self {
            flags: fields.u16()?,
            command: Command::from_number(fields.u16()?),
            cookie: fields.u64()?,
            offset_bytes: fields.u64()?,
            length_bytes: fields.u32()?,
        })
    }

    /// Appends the request, as a client sends it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&REQUEST_MAGIC.to_be_bytes());
        out.extend_from_slice(&self.flags.to_be_bytes());
        out.extend_from_slice(&self.command.number().to_be_bytes());
        out.extend_from_slice(&self.cookie.to_be_bytes());
        out.extend_from_slice(&self.offset_bytes.to_be_bytes());
        out.extend_from_slice(&self.length_bytes.to_be_bytes());
    }

    /// Whether all flags of `mask` are set.
    #[must_use]
    pub fn has(&self, mask: u16) -> bool {
        self.flags & mask == mask
    }

    /// Bytes that follow the request.
    #[must_use]
    pub fn payload_bytes(&self) -> usize {
        if self.command == Command::Write { self.length_bytes as usize } else { 0 }
    }
}

/// A simple reply; `errno` 0 is success.
#[must_use]
pub fn simple_reply(errno: u32, cookie: u64) -> [u8; SIMPLE_REPLY_BYTES] {
    let mut reply = [0; SIMPLE_REPLY_BYTES];
    reply[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    reply[4..8].copy_from_slice(&errno.to_be_bytes());
    reply[8..].copy_from_slice(&cookie.to_be_bytes());
    reply
}

/// The header of a chunk whose payload has `payload_bytes`.
#[must_use]
pub fn chunk_header(
    flags: u16,
    kind: u16,
    cookie: u64,
    payload_bytes: u32,
) -> [u8; CHUNK_HEADER_BYTES] {
    let mut header = [0; CHUNK_HEADER_BYTES];
    header[..4].copy_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
    header[4..6].copy_from_slice(&flags.to_be_bytes());
    header[6..8].copy_from_slice(&kind.to_be_bytes());
    header[8..16].copy_from_slice(&cookie.to_be_bytes());
    header[16..].copy_from_slice(&payload_bytes.to_be_bytes());
    header
}

/// What stands before `length_bytes` of data that lie at `offset_bytes` of the export.
#[must_use]
pub fn data_chunk_prefix(
    flags: u16,
    cookie: u64,
    offset_bytes: u64,
    length_bytes: u32,
) -> [u8; DATA_CHUNK_PREFIX_BYTES] {
    let mut prefix = [0; DATA_CHUNK_PREFIX_BYTES];
    let header = chunk_header(flags, CHUNK_OFFSET_DATA, cookie, length_bytes.saturating_add(8));
    prefix[..CHUNK_HEADER_BYTES].copy_from_slice(&header);
    prefix[CHUNK_HEADER_BYTES..].copy_from_slice(&offset_bytes.to_be_bytes());
    prefix
}

/// A chunk that stands for `length_bytes` of zeros at `offset_bytes` of the export.
#[must_use]
pub fn hole_chunk(
    flags: u16,
    cookie: u64,
    offset_bytes: u64,
    length_bytes: u32,
) -> [u8; HOLE_CHUNK_BYTES] {
    let mut chunk = [0; HOLE_CHUNK_BYTES];
    let header = chunk_header(flags, CHUNK_OFFSET_HOLE, cookie, 12);
    chunk[..CHUNK_HEADER_BYTES].copy_from_slice(&header);
    chunk[CHUNK_HEADER_BYTES..28].copy_from_slice(&offset_bytes.to_be_bytes());
    chunk[28..].copy_from_slice(&length_bytes.to_be_bytes());
    chunk
}

#[cfg(test)]
mod tests;
