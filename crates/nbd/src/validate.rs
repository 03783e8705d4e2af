//! A request against its export: the error that the protocol prescribes, or what to ask of
//! [`door`].
//!
//! Checked before a single byte of payload is taken, so that what is refused costs nothing but the
//! draining of its payload. What every block protocol checks is [`door`]'s; flags, longest payloads
//! and contexts are the protocol's, and their place is between the two parts of that.

use crate::request::{Request, operation, typed};
use crate::wire::{
    self, COMMAND_DF, COMMAND_FAST_ZERO, COMMAND_FUA, COMMAND_NO_HOLE, COMMAND_REQ_ONE, Command,
    Errno, PAYLOAD_BYTES_MAX,
};

/// What a request is held against.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) size_bytes: u64,
    pub(crate) read_only: bool,
    pub(crate) structured: bool,
    /// Whether a metadata context was chosen.
    pub(crate) contexts: bool,
}

/// Why a request is refused.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) errno: Errno,
    pub(crate) sentence: &'static str,
}

impl From<door::Refusal> for Refusal {
    fn from(refusal: door::Refusal) -> Self {
        Self { errno: refusal.errno.into(), sentence: refusal.sentence }
    }
}

const fn refusal<V>(errno: Errno, sentence: &'static str) -> Result<V, Refusal> {
    Err(Refusal { errno, sentence })
}

/// What is asked of the export, if it may be.
pub(crate) fn check(request: &wire::Request, terms: &Terms) -> Result<Request, Refusal> {
    let Some(operation) = operation(request) else {
        return refusal(Errno::Invalid, "the command is unknown");
    };
    door::check_permitted(operation, terms.read_only)?;
    check_flags(request, terms)?;
    check_length(request, terms)?;
    let request = typed(request, operation);
    door::check_range(&request, terms.size_bytes)?;
    Ok(request)
}

fn check_flags(request: &wire::Request, terms: &Terms) -> Result<(), Refusal> {
    // FUA may stand on every command and means something on those that change bytes.
    let known = COMMAND_FUA
        | match request.command {
            Command::Read if terms.structured => COMMAND_DF,
            Command::WriteZeroes => COMMAND_NO_HOLE | COMMAND_FAST_ZERO,
            Command::BlockStatus => COMMAND_REQ_ONE,
            _ => 0,
        };
    if request.flags & !known != 0 {
        return refusal(Errno::Invalid, "a flag is unknown or does not go with the command");
    }
    if request.command == Command::BlockStatus && !terms.contexts {
        return refusal(Errno::Invalid, "no metadata context was chosen");
    }
    Ok(())
}

fn check_length(request: &wire::Request, terms: &Terms) -> Result<(), Refusal> {
    let length_bytes = request.length_bytes;
    match request.command {
        Command::Read | Command::Write if length_bytes > PAYLOAD_BYTES_MAX => {
            let unfragmented = terms.structured && request.has(COMMAND_DF);
            let errno = if unfragmented { Errno::Overflow } else { Errno::Invalid };
            refusal(errno, "the request is longer than the maximum block size")
        }
        Command::BlockStatus if length_bytes == 0 => {
            refusal(Errno::Invalid, "no extent is that short")
        }
        Command::Flush if (request.offset_bytes, length_bytes) != (0, 0) => {
            refusal(Errno::Invalid, "a flush has no range")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Refusal, Terms, check};
    use crate::wire::{
        COMMAND_DF, COMMAND_FAST_ZERO, COMMAND_FUA, COMMAND_NO_HOLE, COMMAND_REQ_ONE, Command,
        Errno, PAYLOAD_BYTES_MAX, Request,
    };

    const TERMS: Terms =
        Terms { size_bytes: 1 << 40, read_only: false, structured: true, contexts: true };
    const RANGED: [Command; 6] = [
        Command::Read,
        Command::Write,
        Command::Trim,
        Command::Cache,
        Command::WriteZeroes,
        Command::BlockStatus,
    ];

    fn verdict(terms: &Terms, command: Command, flags: u16, range: (u64, u32)) -> Option<Errno> {
        let (offset_bytes, length_bytes) = range;
        let request = Request { flags, command, cookie: 0, offset_bytes, length_bytes };
        check(&request, terms).err().map(|refusal: Refusal| refusal.errno)
    }

    #[test]
    fn flags_go_with_their_commands_only() {
        let own = |command| match command {
            Command::Read => COMMAND_DF,
            Command::WriteZeroes => COMMAND_NO_HOLE | COMMAND_FAST_ZERO,
            Command::BlockStatus => COMMAND_REQ_ONE,
            _ => 0,
        };
        for command in RANGED {
            for bit in 0..16 {
                let flag = 1 << bit;
                let known = flag & (own(command) | COMMAND_FUA) != 0;
                let expected = if known { None } else { Some(Errno::Invalid) };
                assert_eq!(verdict(&TERMS, command, flag, (0, 512)), expected, "{command:?}");
            }
        }
        let simple = Terms { structured: false, ..TERMS };
        assert_eq!(verdict(&simple, Command::Read, COMMAND_DF, (0, 512)), Some(Errno::Invalid));
    }

    #[test]
    fn ranges_end_inside_the_export() {
        for command in RANGED {
            let beyond = match command {
                Command::Write | Command::WriteZeroes => Errno::NoSpace,
                _ => Errno::Invalid,
            };
            let end = TERMS.size_bytes;
            assert_eq!(verdict(&TERMS, command, 0, (end - 512, 512)), None);
            for range in [(end - 1, 2), (end, 1), (u64::MAX - 511, 512), (u64::MAX, 1)] {
                assert_eq!(verdict(&TERMS, command, 0, range), Some(beyond), "{command:?}");
            }
            for range in [(1, 512), (0, 511), (end - 1, 1)] {
                assert_eq!(verdict(&TERMS, command, 0, range), None, "{command:?}");
            }
        }
    }

    #[test]
    fn only_payloads_are_bounded() {
        let long = (0, PAYLOAD_BYTES_MAX + 512);
        assert_eq!(verdict(&TERMS, Command::Read, 0, long), Some(Errno::Invalid));
        assert_eq!(verdict(&TERMS, Command::Read, COMMAND_DF, long), Some(Errno::Overflow));
        assert_eq!(verdict(&TERMS, Command::Write, 0, long), Some(Errno::Invalid));
        for command in [Command::Trim, Command::Cache, Command::WriteZeroes, Command::BlockStatus] {
            assert_eq!(verdict(&TERMS, command, 0, (0, u32::MAX - 511)), None);
        }
    }

    #[test]
    fn nothing_is_nothing_except_for_extents() {
        for command in RANGED {
            let expected = (command == Command::BlockStatus).then_some(Errno::Invalid);
            assert_eq!(verdict(&TERMS, command, 0, (4096, 0)), expected);
        }
    }

    #[test]
    fn a_read_only_export_is_only_read() {
        let terms = Terms { read_only: true, ..TERMS };
        for command in RANGED {
            let changes = [Command::Write, Command::Trim, Command::WriteZeroes].contains(&command);
            let expected = changes.then_some(Errno::NotPermitted);
            assert_eq!(verdict(&terms, command, 0, (0, 512)), expected);
        }
        assert_eq!(verdict(&terms, Command::Flush, 0, (0, 0)), None);
    }

    #[test]
    fn what_was_not_agreed_is_refused() {
        let terms = Terms { contexts: false, ..TERMS };
        assert_eq!(verdict(&terms, Command::BlockStatus, 0, (0, 512)), Some(Errno::Invalid));
        assert_eq!(verdict(&TERMS, Command::Unknown(8), 0, (0, 0)), Some(Errno::Invalid));
        assert_eq!(verdict(&TERMS, Command::Flush, 0, (0, 512)), Some(Errno::Invalid));
        assert_eq!(verdict(&TERMS, Command::Flush, COMMAND_FUA, (0, 0)), None);
    }
}
