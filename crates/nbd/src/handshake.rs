//! Negotiation, as bytes in and bytes out: which export, under which terms.
//!
//! ```text
//! greeting ─> client flags ─> option ─┬─> option ...
//!                                     ├─> EXPORT_NAME, GO: transmission
//!                                     └─> ABORT, or nonsense: closed
//! ```
//!
//! [`Handshake::advance`] takes one message at a time from what has arrived and appends the answer.
//! It holds no bytes of its own. An option that is too long is skipped without being kept, so that
//! memory is bounded by [`OPTION_BYTES_MAX`] whatever a client claims; how long all of it may
//! take is the caller's to bound, who has a clock.
//!
//! What the client chose by the way (structured replies, metadata contexts) counts from the moment
//! it is acknowledged. A metadata context counts only for the export that it was chosen for
//! (`contexts.rs`).

mod agreed;
mod answer;
mod choice;
mod contexts;

pub use self::agreed::{Agreed, Changed};
use self::answer::Answer;
pub use self::choice::{Export, Exports, NotServed};
pub use self::contexts::ALLOCATION_CONTEXT;
use self::contexts::{Chosen, listed};
use crate::wire::option::{
    CAN_MULTI_CONN, EXPORT_NAME_PADDING_BYTES, FIXED_NEWSTYLE, HAS_FLAGS, INFO_BLOCK_SIZE,
    INFO_DESCRIPTION, INFO_EXPORT, INFO_NAME, InfoRequest, MetaContextRequest, NO_ZEROES,
    OPT_ABORT, OPT_EXPORT_NAME, OPT_GO, OPT_INFO, OPT_LIST, OPT_LIST_META_CONTEXT,
    OPT_SET_META_CONTEXT, OPT_STRUCTURED_REPLY, OPTION_BYTES_MAX, OPTION_HEADER_BYTES,
    OptionHeader, READ_ONLY, REP_ERR_INVALID, REP_ERR_TOO_BIG, REP_ERR_UNSUP, REP_SERVER,
    SEND_CACHE, SEND_DF, SEND_FAST_ZERO, SEND_FLUSH, SEND_FUA, SEND_TRIM, SEND_WRITE_ZEROES,
    greeting,
};
use crate::wire::{PAYLOAD_BYTES_MAX, STRING_BYTES_MAX};

/// Smallest unit of a request: the engine merges bytes into what is there, in the order of all
/// writes. `libnbd` asks for it, and sends nothing smaller (decision 055).
pub const BLOCK_BYTES_MIN: u32 = 1;
/// An option longer than this is not skipped: its sender is no NBD client.
const SKIPPED_BYTES_MAX: u32 = 1 << 20;

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<E> {
    /// More negotiation: with the bytes that are left, when some were consumed, else with more.
    Negotiate,
    /// Transmission, beginning with the first byte not consumed.
    Transmit(Agreed<E>),
    /// Nothing: send what there is to send and close.
    Close,
}

#[derive(Copy, Clone, Debug)]
enum Awaiting {
    ClientFlags,
    Option,
    /// The rest of an option that is too long to be looked at.
    Skipped {
        option: u32,
        left_bytes: u32,
    },
}

/// One negotiation, from the server's end.
#[derive(Debug)]
pub struct Handshake {
    awaiting: Awaiting,
    fixed: bool,
    no_zeroes: bool,
    structured: bool,
    chosen: Option<Chosen>,
}

impl Handshake {
    /// Begins by appending the greeting.
    #[must_use]
    pub fn begin(out: &mut Vec<u8>) -> Self {
        greeting(out);
        Self {
            awaiting: Awaiting::ClientFlags,
            fixed: false,
            no_zeroes: false,
            structured: false,
            chosen: None,
        }
    }

    /// Takes at most one message from `input` and appends what is to be sent. Returns how many
    /// bytes it took, none when the message is not all there, and what comes next. With `closing`
    /// every option is answered with a shutdown.
    pub fn advance<X: Exports>(
        &mut self,
        input: &[u8],
        exports: &X,
        closing: bool,
        out: &mut Vec<u8>,
    ) -> (usize, Step<X::Export>) {
        match self.awaiting {
            Awaiting::ClientFlags => match input.first_chunk() {
                Some(flags) => (flags.len(), self.client_flags(u32::from_be_bytes(*flags))),
                None => (0, Step::Negotiate),
            },
            Awaiting::Option => self.option(input, exports, closing, out),
            Awaiting::Skipped { option, left_bytes } => {
                let taken = input.len().min(left_bytes as usize);
                let left_bytes = left_bytes - u32::try_from(taken).unwrap_or(left_bytes);
                self.skip(option, left_bytes, out);
                (taken, Step::Negotiate)
            }
        }
    }

    fn client_flags<E>(&mut self, flags: u32) -> Step<E> {
        let (fixed, no_zeroes) = (u32::from(FIXED_NEWSTYLE), u32::from(NO_ZEROES));
        if flags & !(fixed | no_zeroes) != 0 {
            return Step::Close;
        }
        self.fixed = flags & fixed != 0;
        self.no_zeroes = flags & no_zeroes != 0;
        self.awaiting = Awaiting::Option;
        Step::Negotiate
    }

    fn option<X: Exports>(
        &mut self,
        input: &[u8],
        exports: &X,
        closing: bool,
        out: &mut Vec<u8>,
    ) -> (usize, Step<X::Export>) {
        let Some((front, behind)) = input.split_first_chunk() else {
            return (0, Step::Negotiate);
        };
        let Some(header) = OptionHeader::decode(front) else { return (0, Step::Close) };
        // A client that does not know of replies to options may only name its export.
        let nameless = header.option != OPT_EXPORT_NAME;
        if !self.fixed && nameless {
            return (0, Step::Close);
        }
        let length = header.length_bytes as usize;
        if length > OPTION_BYTES_MAX {
            if header.length_bytes > SKIPPED_BYTES_MAX || !nameless {
                return (0, Step::Close);
            }
            self.skip(header.option, header.length_bytes, out);
            return (OPTION_HEADER_BYTES, Step::Negotiate);
        }
        let Some(data) = behind.get(..length) else { return (0, Step::Negotiate) };
        let mut answer = Answer { option: header.option, out };
        let step = if closing && nameless && header.option != OPT_ABORT {
            answer.not_served(NotServed::Closing);
            Step::Negotiate
        } else {
            self.answer(data, exports, &mut answer)
        };
        (OPTION_HEADER_BYTES + length, step)
    }

    fn skip(&mut self, option: u32, left_bytes: u32, out: &mut Vec<u8>) {
        self.awaiting = if left_bytes == 0 {
            Answer { option, out }.fail(REP_ERR_TOO_BIG, "the option is too long");
            Awaiting::Option
        } else {
            Awaiting::Skipped { option, left_bytes }
        };
    }

    fn answer<X: Exports>(
        &mut self,
        data: &[u8],
        exports: &X,
        answer: &mut Answer<'_>,
    ) -> Step<X::Export> {
        match answer.option {
            OPT_EXPORT_NAME => return self.export_name(data, exports, answer.out),
            OPT_GO => {
                if let Some(export) = self.info(data, exports, answer) {
                    return Step::Transmit(export);
                }
            }
            OPT_INFO => {
                self.info(data, exports, answer);
            }
            OPT_ABORT => {
                answer.acknowledge();
                return Step::Close;
            }
            OPT_LIST => list(data, exports, answer),
            OPT_STRUCTURED_REPLY => self.structured_reply(data, answer),
            OPT_LIST_META_CONTEXT | OPT_SET_META_CONTEXT => {
                self.meta_context(data, exports, answer);
            }
            _ => answer.fail(REP_ERR_UNSUP, "this server does not support the option"),
        }
        Step::Negotiate
    }

    fn agreed<X: Exports>(&self, export: X::Export, name: &str, exports: &X) -> Agreed<X::Export> {
        self.chosen.clone().unwrap_or_default().agree(export, name, self.structured, exports)
    }

    fn transmission_flags(&self, export: &impl Export) -> u16 {
        let common = HAS_FLAGS | SEND_FLUSH | SEND_FUA | CAN_MULTI_CONN | SEND_CACHE;
        let changing = if export.read_only() {
            READ_ONLY
        } else {
            SEND_TRIM | SEND_WRITE_ZEROES | SEND_FAST_ZERO
        };
        common | changing | if self.structured { SEND_DF } else { 0 }
    }

    fn export_name<X: Exports>(
        &self,
        data: &[u8],
        exports: &X,
        out: &mut Vec<u8>,
    ) -> Step<X::Export> {
        let name = std::str::from_utf8(data).ok().filter(|name| name.len() <= STRING_BYTES_MAX);
        let Some((name, export)) = name
            .and_then(|name| Some((name, exports.open(name).ok()?)))
            .filter(|_| exports.admit().is_ok())
        else {
            // This option has no reply that says no.
            return Step::Close;
        };
        out.extend_from_slice(&export.size_bytes().to_be_bytes());
        out.extend_from_slice(&self.transmission_flags(&export).to_be_bytes());
        if !self.no_zeroes {
            out.extend_from_slice(&[0; EXPORT_NAME_PADDING_BYTES]);
        }
        Step::Transmit(self.agreed(export, name, exports))
    }

    fn info<X: Exports>(
        &self,
        data: &[u8],
        exports: &X,
        answer: &mut Answer<'_>,
    ) -> Option<Agreed<X::Export>> {
        let Some(request) = InfoRequest::decode(data) else {
            answer.malformed();
            return None;
        };
        let export = exports.open(request.export).map_err(|why| answer.not_served(why)).ok()?;
        if answer.option == OPT_GO
            && let Err(why) = exports.admit()
        {
            answer.not_served(why);
            return None;
        }
        let (size, flags) = (export.size_bytes(), self.transmission_flags(&export));
        answer.info(INFO_EXPORT, &[&size.to_be_bytes(), &flags.to_be_bytes()]);
        let (min, max) = (BLOCK_BYTES_MIN, PAYLOAD_BYTES_MAX);
        let preferred = export.preferred_bytes();
        let sizes = [min.to_be_bytes(), preferred.to_be_bytes(), max.to_be_bytes()];
        // Unasked too: a client that does not ask may still look.
        answer.info(INFO_BLOCK_SIZE, &[sizes.as_flattened()]);
        if request.facts.contains(&INFO_NAME) {
            answer.info(INFO_NAME, &[export.name().as_bytes()]);
        }
        if request.facts.contains(&INFO_DESCRIPTION) {
            answer.info(INFO_DESCRIPTION, &[describe(&export).as_bytes()]);
        }
        answer.acknowledge();
        Some(self.agreed(export, request.export, exports))
    }

    fn structured_reply(&mut self, data: &[u8], answer: &mut Answer<'_>) {
        if data.is_empty() {
            self.structured = true;
            answer.acknowledge();
        } else {
            answer.malformed();
        }
    }

    fn meta_context<X: Exports>(&mut self, data: &[u8], exports: &X, answer: &mut Answer<'_>) {
        let setting = answer.option == OPT_SET_META_CONTEXT;
        if setting {
            // Also when it fails, a choice ends the one before.
            self.chosen = None;
        }
        if !self.structured {
            return answer.fail(REP_ERR_INVALID, "ask for structured replies first");
        }
        let Some(request) = MetaContextRequest::decode(data) else { return answer.malformed() };
        let export = match exports.open(request.export) {
            Ok(export) => export,
            Err(why) => return answer.not_served(why),
        };
        if setting {
            let mut chosen = Chosen::of(request.export);
            for query in &request.queries {
                if let Some((id, name)) = chosen.choose(query, &export, exports) {
                    answer.meta_context(id, name);
                }
            }
            self.chosen = Some(chosen);
        } else {
            let names = listed(&request.queries, &export, exports);
            names.iter().for_each(|name| answer.meta_context(0, name));
        }
        answer.acknowledge();
    }
}

fn list(data: &[u8], exports: &impl Exports, answer: &mut Answer<'_>) {
    if !data.is_empty() {
        return answer.malformed();
    }
    match exports.list() {
        Ok(names) => {
            for name in names {
                let length = u32::try_from(name.len()).unwrap_or(u32::MAX).to_be_bytes();
                answer.reply(REP_SERVER, &[&length, name.as_bytes()]);
            }
            answer.acknowledge();
        }
        Err(why) => answer.not_served(why),
    }
}

fn describe(export: &impl Export) -> String {
    let chunk_bytes = export.preferred_bytes();
    format!("Tamis volume, deduplicated in chunks of {chunk_bytes} bytes")
}

#[cfg(test)]
mod tests;
