//! What a server answers, taken apart. Nothing that a server says is believed.
//!
//! A reply names its request by the cookie. A *simple* reply (16 bytes) ends a request without
//! data. A *structured* one comes in chunks, the last of which says so: data and holes of a read,
//! in ascending order and without gaps; extents of one metadata context; an error with its
//! sentence. How much is kept follows from our request and never from the server, so no server can
//! make us keep more than we asked for. A reply to no request of ours, or anything that is no
//! reply, ends the connection, since nobody knows where the next reply begins.

use std::io::Read;

use super::answer::{Answer, ClientExtent, Done};
use super::error::{ClientError, nonsense};
use crate::wire::{
    CHUNK_BLOCK_STATUS, CHUNK_DONE, CHUNK_NONE, CHUNK_OFFSET_DATA, CHUNK_OFFSET_HOLE, Fields,
    SIMPLE_REPLY_MAGIC, STRING_BYTES_MAX, STRUCTURED_REPLY_MAGIC,
};

/// Bit of the kind of a chunk that tells of an error.
const ERROR: u16 = 1 << 15;
/// Errno, length of the sentence, the sentence, and a place, which some errors have.
const ERROR_BYTES_MAX: usize = 6 + STRING_BYTES_MAX + 8;
/// Extents in one reply that a client takes.
const EXTENTS_MAX: usize = 1 << 16;

/// A request that has not been answered in full.
pub(super) struct Pending {
    pub(super) wanted: Wanted,
    /// The error that a chunk told of, before the reply ends.
    failure: Option<ClientError>,
    done: Done,
}

/// What a reply brings beside its end.
pub(super) enum Wanted {
    /// Nothing.
    Nothing,
    /// Bytes from `offset_bytes` on, of which the first `filled` have come.
    Bytes { offset_bytes: u64, bytes: Vec<u8>, filled: usize },
    /// Extents of this context.
    Extents { context: u32, extents: Vec<ClientExtent> },
}

impl Pending {
    pub(super) fn new(wanted: Wanted, done: Done) -> Self {
        Self { wanted, failure: None, done }
    }

    /// Tells the caller that no answer will come.
    pub(super) fn fail(self, error: ClientError) {
        (self.done)(Err(error));
    }

    fn end(self) -> Result<(), ClientError> {
        let missing = match (&self.failure, &self.wanted) {
            (Some(_), _) => None,
            (None, Wanted::Bytes { bytes, filled, .. }) if *filled < bytes.len() => {
                Some(nonsense("it left out bytes of a read"))
            }
            (None, Wanted::Extents { extents, .. }) if extents.is_empty() => {
                Some(nonsense("it told of no extent"))
            }
            (None, _) => None,
        };
        let outcome = match (self.failure, &missing) {
            (Some(error), _) => Err(error),
            (None, Some(error)) => Err(error.clone()),
            (None, None) => Ok(match self.wanted {
                Wanted::Nothing => Answer::Done,
                Wanted::Bytes { bytes, .. } => Answer::Bytes(bytes),
                Wanted::Extents { extents, .. } => Answer::Extents(extents),
            }),
        };
        (self.done)(outcome);
        missing.map_or(Ok(()), Err)
    }
}

/// Requests in flight, as those who take replies see them.
pub(super) trait InFlight {
    /// Takes out the request of this cookie.
    fn take(&self, cookie: u64) -> Option<Pending>;
    /// Puts it back, for its reply goes on.
    fn put_back(&self, cookie: u64, pending: Pending);
}

/// Takes one simple reply or one chunk, and tells the caller if its request is answered by it.
///
/// # Errors
/// [`ClientError`] when the connection cannot go on; the request that was being answered has been
/// told.
pub(super) fn take_reply(
    from: &mut impl Read,
    in_flight: &impl InFlight,
) -> Result<(), ClientError> {
    let mut magic = [0; 4];
    from.read_exact(&mut magic)?;
    match u32::from_be_bytes(magic) {
        SIMPLE_REPLY_MAGIC => take_simple(from, in_flight),
        STRUCTURED_REPLY_MAGIC => take_chunk(from, in_flight),
        _ => Err(nonsense("what it sent is no reply")),
    }
}

fn take_simple(from: &mut impl Read, in_flight: &impl InFlight) -> Result<(), ClientError> {
    let mut head = [0; 12];
    from.read_exact(&mut head)?;
    let mut fields = Fields::new(&head);
    let errno = fields.u32().unwrap_or_default();
    let mut pending = find(in_flight, fields.u64())?;
    match (errno, &pending.wanted) {
        (0, Wanted::Nothing) => {}
        (0, _) => {
            let error = nonsense("it answered with a simple reply where data were asked for");
            pending.fail(error.clone());
            return Err(error);
        }
        (errno, _) => pending.failure = Some(ClientError::Refused { errno, sentence: None }),
    }
    pending.end()
}

fn find(in_flight: &impl InFlight, cookie: Option<u64>) -> Result<Pending, ClientError> {
    let pending = cookie.and_then(|cookie| in_flight.take(cookie));
    pending.ok_or_else(|| nonsense("it answered a request that is not in flight"))
}

fn take_chunk(from: &mut impl Read, in_flight: &impl InFlight) -> Result<(), ClientError> {
    let mut head = [0; 16];
    from.read_exact(&mut head)?;
    let mut fields = Fields::new(&head);
    let (flags, kind) = (fields.u16().unwrap_or_default(), fields.u16().unwrap_or_default());
    let cookie = fields.u64();
    let length = fields.u32().unwrap_or_default() as usize;
    let mut pending = find(in_flight, cookie)?;
    if let Err(error) = take_payload(from, kind, length, &mut pending) {
        pending.fail(error.clone());
        return Err(error);
    }
    if flags & CHUNK_DONE != 0 {
        return pending.end();
    }
    in_flight.put_back(cookie.unwrap_or_default(), pending);
    Ok(())
}

fn take_payload(
    from: &mut impl Read,
    kind: u16,
    length: usize,
    pending: &mut Pending,
) -> Result<(), ClientError> {
    match (kind, &mut pending.wanted) {
        (CHUNK_NONE, _) if length == 0 => Ok(()),
        (CHUNK_OFFSET_DATA, Wanted::Bytes { offset_bytes, bytes, filled }) => {
            let Some(length) = length.checked_sub(8) else {
                return Err(nonsense("a chunk of data is too short"));
            };
            let at = take_u64(from)?;
            let part = next_part(*offset_bytes, bytes, *filled, (at, length))?;
            from.read_exact(part)?;
            *filled += length;
            Ok(())
        }
        (CHUNK_OFFSET_HOLE, Wanted::Bytes { offset_bytes, bytes, filled }) if length == 12 => {
            let at = take_u64(from)?;
            let mut hole = [0; 4];
            from.read_exact(&mut hole)?;
            let length = u32::from_be_bytes(hole) as usize;
            next_part(*offset_bytes, bytes, *filled, (at, length))?.fill(0);
            *filled += length;
            Ok(())
        }
        (CHUNK_BLOCK_STATUS, Wanted::Extents { context, extents }) => {
            take_extents(from, length, *context, extents)
        }
        (kind, _) if kind & ERROR != 0 => {
            pending.failure = Some(take_error(from, length)?);
            Ok(())
        }
        _ => Err(nonsense("a chunk of its reply does not go with the request")),
    }
}

fn take_u64(from: &mut impl Read) -> Result<u64, ClientError> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_be_bytes(bytes))
}

/// Where the next `length` bytes of a read go, which lie at `at`.
fn next_part(
    offset_bytes: u64,
    bytes: &mut [u8],
    filled: usize,
    (at, length): (u64, usize),
) -> Result<&mut [u8], ClientError> {
    let expected = offset_bytes.checked_add(filled as u64);
    let end = filled.checked_add(length).filter(|_| expected == Some(at) && length > 0);
    let part = end.and_then(|end| bytes.get_mut(filled..end));
    part.ok_or_else(|| nonsense("a chunk of a read is not what follows"))
}

fn take_extents(
    from: &mut impl Read,
    length: usize,
    context: u32,
    extents: &mut Vec<ClientExtent>,
) -> Result<(), ClientError> {
    let count = length.checked_sub(4).filter(|rest| rest % 8 == 0).map(|rest| rest / 8);
    let Some(count) = count.filter(|count| (1..=EXTENTS_MAX).contains(count)) else {
        return Err(nonsense("a chunk of extents has no length that they have"));
    };
    if !extents.is_empty() {
        return Err(nonsense("it told the extents of one context twice"));
    }
    let mut payload = vec![0; length];
    from.read_exact(&mut payload)?;
    let mut fields = Fields::new(&payload);
    if fields.u32() != Some(context) {
        return Err(nonsense("it told the extents of a context that was not asked for"));
    }
    for _ in 0..count {
        match (fields.u32(), fields.u32()) {
            (Some(length), Some(flags)) if length > 0 => {
                extents.push(ClientExtent { length_bytes: u64::from(length), flags });
            }
            _ => return Err(nonsense("an extent of it has no length")),
        }
    }
    Ok(())
}

fn take_error(from: &mut impl Read, length: usize) -> Result<ClientError, ClientError> {
    if !(6..=ERROR_BYTES_MAX).contains(&length) {
        return Err(nonsense("an error of it has no length that errors have"));
    }
    let mut payload = vec![0; length];
    from.read_exact(&mut payload)?;
    let mut fields = Fields::new(&payload);
    let errno = fields.u32().unwrap_or_default();
    let sentence_bytes = fields.u16().map_or(0, usize::from);
    let sentence = fields.bytes(sentence_bytes).map(String::from_utf8_lossy);
    let sentence = sentence.filter(|text| !text.is_empty()).map(|text| text.into_owned());
    Ok(ClientError::Refused { errno, sentence })
}

#[cfg(test)]
mod tests;
