//! What a server answers, taken apart: no I/O, and nothing that a server says is believed.
//!
//! Simple replies only, since our handshake asks for no others: 16 bytes, and behind those of a
//! read its bytes. [`Replies::take`] takes as much as has come, in pieces of any size. A reply to
//! no request of ours, an error, or anything that is no reply ends the connection: where the next
//! reply begins is not known then. A reply's length follows from our request, never from the
//! server, so that no server can make us keep more than we asked for.

use nbd::wire::{Fields, SIMPLE_REPLY_BYTES, SIMPLE_REPLY_MAGIC};
use thiserror::Error;

use super::load::Ask;

/// Why a connection cannot go on.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum ReplyError {
    #[error("the server sent what is no simple reply: it begins with {magic:#010x}")]
    Magic { magic: u32 },
    #[error("the server answered a request that is not in flight, {cookie:#x}")]
    Cookie { cookie: u64 },
    #[error("the server answered {ask:?} with error {errno}")]
    Refused { errno: u32, ask: Ask },
}

/// Requests in flight, each in a slot that its cookie names.
pub(super) struct InFlight {
    slots: Vec<Slot>,
    free: Vec<usize>,
}

struct Slot {
    /// Slot number below, and above how often the slot was used: late answers are found out.
    cookie: u64,
    ask: Option<Ask>,
    /// Of a read, when they are wanted.
    bytes: Vec<u8>,
}

const SLOT_BITS: u32 = 32;

impl InFlight {
    /// Room for `depth` requests.
    pub(super) fn new(depth: usize) -> Self {
        let slot = |number| Slot { cookie: number as u64, ask: None, bytes: Vec::new() };
        Self { slots: (0..depth).map(slot).collect(), free: (0..depth).rev().collect() }
    }

    pub(super) fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// Whether one of them is about this place.
    pub(super) fn touches(&self, place_bytes: u64) -> bool {
        self.slots.iter().any(|slot| match slot.ask {
            Some(Ask::Write { offset_bytes, .. } | Ask::Read { offset_bytes }) => {
                offset_bytes == place_bytes
            }
            Some(Ask::Flush) | None => false,
        })
    }

    /// One more; its cookie. None where there is no room.
    pub(super) fn begin(&mut self, ask: Ask) -> Option<u64> {
        let slot = &mut self.slots[self.free.pop()?];
        slot.cookie = slot.cookie.wrapping_add(1 << SLOT_BITS);
        slot.ask = Some(ask);
        slot.bytes.clear();
        Some(slot.cookie)
    }

    fn find(&self, cookie: u64) -> Option<(usize, Ask)> {
        let number = (cookie & ((1 << SLOT_BITS) - 1)) as usize;
        let slot = self.slots.get(number).filter(|slot| slot.cookie == cookie)?;
        slot.ask.map(|ask| (number, ask))
    }

    fn end(&mut self, number: usize) -> Option<Ended<'_>> {
        let slot = self.slots.get_mut(number)?;
        let ask = slot.ask.take()?;
        self.free.push(number);
        Some(Ended { ask, bytes: &slot.bytes })
    }
}

/// A request that was answered.
pub(super) struct Ended<'a> {
    pub(super) ask: Ask,
    /// What was read, when it is kept.
    pub(super) bytes: &'a [u8],
}

/// A stream of replies.
pub(super) struct Replies {
    /// Of every read.
    read_bytes: usize,
    /// Are the bytes of reads kept until their end, or only counted.
    keeps: bool,
    /// The read whose bytes are coming, and how many still are.
    reading: Option<(usize, usize)>,
}

impl Replies {
    pub(super) fn new(read_bytes: usize, keeps: bool) -> Self {
        Self { read_bytes, keeps, reading: None }
    }

    /// Takes what it can of `input`, and tells `end` of each request that is answered by it; how
    /// many bytes it took. What it leaves is less than the head of a reply.
    pub(super) fn take(
        &mut self,
        input: &[u8],
        in_flight: &mut InFlight,
        mut end: impl FnMut(Ended<'_>),
    ) -> Result<usize, ReplyError> {
        let mut taken = 0;
        loop {
            if let Some((number, left_bytes)) = self.reading {
                let part = &input[taken..];
                let part = &part[..part.len().min(left_bytes)];
                taken += part.len();
                if self.keeps
                    && let Some(slot) = in_flight.slots.get_mut(number)
                {
                    slot.bytes.extend_from_slice(part);
                }
                self.reading = Some((number, left_bytes - part.len()));
                if part.len() < left_bytes {
                    return Ok(taken);
                }
                self.reading = None;
                in_flight.end(number).into_iter().for_each(&mut end);
                continue;
            }
            let Some(head) = input[taken..].first_chunk::<SIMPLE_REPLY_BYTES>() else {
                return Ok(taken);
            };
            taken += head.len();
            let (number, ask) = answered(head, in_flight)?;
            match ask {
                Ask::Read { .. } => self.reading = Some((number, self.read_bytes)),
                Ask::Write { .. } | Ask::Flush => {
                    in_flight.end(number).into_iter().for_each(&mut end);
                }
            }
        }
    }
}

/// The slot and the request that a reply says was done.
fn answered(
    head: &[u8; SIMPLE_REPLY_BYTES],
    in_flight: &InFlight,
) -> Result<(usize, Ask), ReplyError> {
    let mut fields = Fields::new(head);
    let (magic, errno, cookie) = (fields.u32(), fields.u32(), fields.u64());
    let (magic, errno) = (magic.unwrap_or_default(), errno.unwrap_or_default());
    let cookie = cookie.unwrap_or_default();
    if magic != SIMPLE_REPLY_MAGIC {
        return Err(ReplyError::Magic { magic });
    }
    let (number, ask) = in_flight.find(cookie).ok_or(ReplyError::Cookie { cookie })?;
    match errno {
        0 => Ok((number, ask)),
        errno => Err(ReplyError::Refused { errno, ask }),
    }
}

#[cfg(test)]
mod tests {
    use nbd::wire::simple_reply;
    use proptest::prelude::{any, prop, proptest};

    use super::{InFlight, Replies, ReplyError};
    use crate::doors::load::Ask;

    const READ: Ask = Ask::Read { offset_bytes: 8 };

    /// Takes `input` in pieces of `piece` bytes; what ended, with how many bytes.
    fn take(
        input: &[u8],
        piece: usize,
        in_flight: &mut InFlight,
    ) -> Result<Vec<(Ask, Vec<u8>)>, ReplyError> {
        let mut replies = Replies::new(4, true);
        let (mut ended, mut waiting) = (Vec::new(), Vec::new());
        for part in input.chunks(piece) {
            waiting.extend_from_slice(part);
            let taken = replies.take(&waiting, in_flight, |end| {
                ended.push((end.ask, end.bytes.to_vec()));
            })?;
            waiting.drain(..taken);
            assert!(waiting.len() < 16);
        }
        Ok(ended)
    }

    #[test]
    fn replies_come_in_any_order_and_in_any_pieces() {
        for piece in 1..60 {
            let mut in_flight = InFlight::new(3);
            let cookies = [READ, Ask::Flush, READ].map(|ask| in_flight.begin(ask).unwrap());
            assert!(!in_flight.has_room() && in_flight.begin(READ).is_none());
            let mut input = simple_reply(0, cookies[2]).to_vec();
            input.extend(*b"abcd");
            input.extend(simple_reply(0, cookies[1]));
            input.extend(simple_reply(0, cookies[0]));
            input.extend(*b"efgh");
            let ended = take(&input, piece, &mut in_flight).unwrap();
            let wanted = [(READ, b"abcd".to_vec()), (Ask::Flush, vec![]), (READ, b"efgh".to_vec())];
            assert_eq!(ended, wanted);
            assert!(in_flight.is_empty());
        }
    }

    #[test]
    fn what_is_no_answer_of_ours_ends_the_connection() {
        let mut in_flight = InFlight::new(2);
        let cookie = in_flight.begin(Ask::Flush).unwrap();
        let mut fails = |input: &[u8]| take(input, 16, &mut in_flight).unwrap_err();
        assert_eq!(fails(&[0; 16]), ReplyError::Magic { magic: 0 });
        for other in [cookie + 1, cookie + 2, cookie ^ 1 << 32, u64::MAX] {
            assert_eq!(fails(&simple_reply(0, other)), ReplyError::Cookie { cookie: other });
        }
        let refused = ReplyError::Refused { errno: 28, ask: Ask::Flush };
        assert_eq!(fails(&simple_reply(28, cookie)), refused);
        let answer = simple_reply(0, cookie);
        assert_eq!(take(&answer, 16, &mut in_flight).unwrap().len(), 1);
        let twice = take(&answer, 16, &mut in_flight).unwrap_err();
        assert_eq!(twice, ReplyError::Cookie { cookie }, "an answer counts once");
        in_flight.begin(Ask::Flush).unwrap();
        let late = take(&answer, 16, &mut in_flight).unwrap_err();
        assert_eq!(late, ReplyError::Cookie { cookie }, "not even for the slot's next request");
    }

    proptest! {
        /// Whatever comes: an end or an error, never more answers than requests, never a panic.
        #[test]
        fn any_bytes_are_survived(
            answers in prop::collection::vec((any::<bool>(), 0..6_u64, any::<[u8; 16]>()), 0..20),
            piece in 1..40_usize,
        ) {
            let mut in_flight = InFlight::new(4);
            let asks = [READ, Ask::Flush, READ, Ask::Flush];
            let cookies = asks.map(|ask| in_flight.begin(ask).unwrap());
            let mut input = Vec::new();
            for (is_reply, number, noise) in answers {
                match (is_reply, cookies.get(number as usize)) {
                    (true, Some(cookie)) => input.extend(simple_reply(0, *cookie)),
                    _ => input.extend(noise),
                }
            }
            if let Ok(ended) = take(&input, piece, &mut in_flight) {
                assert!(ended.len() <= asks.len());
            }
        }
    }
}
