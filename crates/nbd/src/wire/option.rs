//! The messages of negotiation: greeting, options, replies to options.

use super::{Fields, STRING_BYTES_MAX};

/// First word of the greeting, "NBDMAGIC".
pub const GREETING_MAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
/// Second word of the greeting and first word of an option, "IHAVEOPT".
pub const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
/// First word of a reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;

/// Length of an option without its data.
pub const OPTION_HEADER_BYTES: usize = 16;
/// Most data of an option that is looked at: a name and a few dozen queries of the longest kind.
pub const OPTION_BYTES_MAX: usize = 4 * STRING_BYTES_MAX;
/// Zeros behind the answer to [`OPT_EXPORT_NAME`] for a client that did not decline them.
pub const EXPORT_NAME_PADDING_BYTES: usize = 124;

/// Handshake flag of either side: fixed newstyle negotiation.
pub const FIXED_NEWSTYLE: u16 = 1 << 0;
/// Handshake flag of either side: no padding behind the answer to [`OPT_EXPORT_NAME`].
pub const NO_ZEROES: u16 = 1 << 1;

/// Enter transmission without a reply.
pub const OPT_EXPORT_NAME: u32 = 1;
/// End the handshake.
pub const OPT_ABORT: u32 = 2;
/// Name all exports.
pub const OPT_LIST: u32 = 3;
/// Upgrade to TLS.
pub const OPT_STARTTLS: u32 = 5;
/// Describe an export.
pub const OPT_INFO: u32 = 6;
/// Describe an export and enter transmission.
pub const OPT_GO: u32 = 7;
/// Use structured replies.
pub const OPT_STRUCTURED_REPLY: u32 = 8;
/// Name metadata contexts.
pub const OPT_LIST_META_CONTEXT: u32 = 9;
/// Choose metadata contexts.
pub const OPT_SET_META_CONTEXT: u32 = 10;

/// The option succeeded; the last of its replies.
pub const REP_ACK: u32 = 1;
/// One export of a list.
pub const REP_SERVER: u32 = 2;
/// One fact about an export.
pub const REP_INFO: u32 = 3;
/// One metadata context.
pub const REP_META_CONTEXT: u32 = 4;
/// The option is not supported.
pub const REP_ERR_UNSUP: u32 = 1 << 31 | 1;
/// The option is refused by policy.
pub const REP_ERR_POLICY: u32 = 1 << 31 | 2;
/// The option is malformed.
pub const REP_ERR_INVALID: u32 = 1 << 31 | 3;
/// There is no such export.
pub const REP_ERR_UNKNOWN: u32 = 1 << 31 | 6;
/// The server is going away.
pub const REP_ERR_SHUTDOWN: u32 = 1 << 31 | 7;
/// The option is too long.
pub const REP_ERR_TOO_BIG: u32 = 1 << 31 | 9;

/// Fact: size and transmission flags.
pub const INFO_EXPORT: u16 = 0;
/// Fact: the export's own name.
pub const INFO_NAME: u16 = 1;
/// Fact: a sentence for people.
pub const INFO_DESCRIPTION: u16 = 2;
/// Fact: sizes that requests may and should have.
pub const INFO_BLOCK_SIZE: u16 = 3;

/// Transmission flag: there are flags.
pub const HAS_FLAGS: u16 = 1 << 0;
/// Transmission flag: nothing can be written.
pub const READ_ONLY: u16 = 1 << 1;
/// Transmission flag: FLUSH is understood.
pub const SEND_FLUSH: u16 = 1 << 2;
/// Transmission flag: FUA is understood.
pub const SEND_FUA: u16 = 1 << 3;
/// Transmission flag: TRIM is understood.
pub const SEND_TRIM: u16 = 1 << 5;
/// Transmission flag: WRITE_ZEROES is understood.
pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
/// Transmission flag: DF is understood. Only with structured replies.
pub const SEND_DF: u16 = 1 << 7;
/// Transmission flag: a flush covers all connections.
pub const CAN_MULTI_CONN: u16 = 1 << 8;
/// Transmission flag: CACHE is understood.
pub const SEND_CACHE: u16 = 1 << 10;
/// Transmission flag: FAST_ZERO is understood.
pub const SEND_FAST_ZERO: u16 = 1 << 11;

/// Appends the greeting.
pub fn greeting(out: &mut Vec<u8>) {
    out.extend_from_slice(&GREETING_MAGIC.to_be_bytes());
    out.extend_from_slice(&OPTION_MAGIC.to_be_bytes());
    out.extend_from_slice(&(FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes());
}

/// The front of an option; its data follows.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct OptionHeader {
    /// An `OPT_` number, known or not.
    pub option: u32,
    /// Bytes of data that follow.
    pub length_bytes: u32,
}

impl OptionHeader {
    /// The header in `bytes`; `None` when they are none.
    #[must_use]
    pub fn decode(bytes: &[u8; OPTION_HEADER_BYTES]) -> Option<Self> {
        let mut fields = Fields::new(bytes);
        if fields.u64()? != OPTION_MAGIC {
            return None;
        }
        Some(Self { option: fields.u32()?, length_bytes: fields.u32()? })
    }

    /// Appends the header, as a client sends it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&OPTION_MAGIC.to_be_bytes());
        out.extend_from_slice(&self.option.to_be_bytes());
        out.extend_from_slice(&self.length_bytes.to_be_bytes());
    }
}

/// Data of [`OPT_INFO`] and [`OPT_GO`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InfoRequest<'a> {
    /// Name of the export; empty for the default one.
    pub export: &'a str,
    /// `INFO_` numbers of the facts asked for, known or not.
    pub facts: Vec<u16>,
}

impl<'a> InfoRequest<'a> {
    /// The request in `data`; `None` when it is malformed.
    #[must_use]
    pub fn decode(data: &'a [u8]) -> Option<Self> {
        let mut fields = Fields::new(data);
        let export = fields.string(STRING_BYTES_MAX)?;
        let count = fields.u16()?;
        let facts = (0..count).map(|_| fields.u16()).collect::<Option<Vec<u16>>>()?;
        fields.is_empty().then_some(Self { export, facts })
    }
}

/// Data of [`OPT_LIST_META_CONTEXT`] and [`OPT_SET_META_CONTEXT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaContextRequest<'a> {
    /// Name of the export; empty for the default one.
    pub export: &'a str,
    /// What to select by.
    pub queries: Vec<&'a str>,
}

impl<'a> MetaContextRequest<'a> {
    /// The request in `data`; `None` when it is malformed.
    #[must_use]
    pub fn decode(data: &'a [u8]) -> Option<Self> {
        let mut fields = Fields::new(data);
        let export = fields.string(STRING_BYTES_MAX)?;
        let count = fields.u32()?;
        // Nothing is reserved for `count`: it is the client's word. Each query takes four bytes at
        // least, so that a false one ends the loop soon.
        let mut queries = Vec::new();
        for _ in 0..count {
            queries.push(fields.string(STRING_BYTES_MAX)?);
        }
        fields.is_empty().then_some(Self { export, queries })
    }
}

/// Appends a reply to `option`, its data given in parts.
pub fn reply(out: &mut Vec<u8>, option: u32, kind: u32, data: &[&[u8]]) {
    let length_bytes: usize = data.iter().map(|part| part.len()).sum();
    out.extend_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    // A reply is at most a few strings long.
    out.extend_from_slice(&u32::try_from(length_bytes).unwrap_or(u32::MAX).to_be_bytes());
    for part in data {
        out.extend_from_slice(part);
    }
}
