//! Bodies of answers: read by a thread, a few pieces ahead of the connection.
//!
//! What is damaged behind the first piece cuts the connection, so that no client takes a part of an
//! object for the whole; the operator hears which bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use buckets::OpenBucket;
use bytes::Bytes;
use futures::Stream;
use objects::bucket::Reader;
use s3s::S3Result;
use s3s::dto::StreamingBlob;
use s3s::stream::{ByteStream, RemainingLength};
use tenants::{PartyId, Slot};
use tokio::sync::mpsc::{self, Receiver};

use crate::door::Door;
use crate::parts::{Parts, Step};
use crate::passage::Passage;

/// Bytes that are read at a time.
pub(crate) const PIECE_BYTES: u64 = 256 << 10;
/// Pieces that are kept for the next ones when they are sent.
pub(crate) const PIECES_KEPT: usize = 16;
/// Pieces that wait for the connection.
const PIECES: usize = 3;

/// Bytes of an object that are still to be read.
pub(crate) struct Unread {
    pub(crate) reader: Reader,
    pub(crate) parts: Parts,
    /// Where the object is, for the operator.
    pub(crate) place: String,
    /// The bucket stays open until all is read.
    pub(crate) _bucket: OpenBucket,
}

impl Unread {
    /// The next piece.
    ///
    /// # Errors
    /// What is left cannot be read.
    pub(crate) fn next(&mut self, door: &Door) -> S3Result<Bytes> {
        let mut piece = door.pieces.take();
        piece.resize(self.parts.left_bytes().min(PIECE_BYTES) as usize, 0);
        let mut rest = &mut piece[..];
        while !rest.is_empty() {
            let step = self.parts.step(rest.len());
            let (front, behind) = rest.split_at_mut(step.length());
            match step {
                Step::Head(bytes) => front.copy_from_slice(bytes),
                Step::Bytes(range) => {
                    let found = self.reader.read_at(range.start, front);
                    let found = found.map_err(|error| door.refuse(error, &self.place))?;
                    assert!(found == front.len(), "an object knows how long it is");
                }
            }
            rest = behind;
        }
        Ok(Bytes::from_owner(piece))
    }

    fn is_empty(&self) -> bool {
        self.parts.left_bytes() == 0
    }
}

impl Door {
    /// A body of `first` and what is unread behind it.
    pub(crate) fn sending(&self, first: Bytes, unread: Unread) -> StreamingBlob {
        let left = first.len() as u64 + unread.parts.left_bytes();
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let (sender, coming) = mpsc::channel(PIECES);
        let is_whole = unread.is_empty();
        let is_paced = Passage::current().is_some_and(|passage| {
            passage.tenant().is_some_and(|tenant| tenant.rates().bytes_per_s.is_some())
        });
        match (is_whole, is_paced) {
            (true, _) => (),
            (false, true) => {
                drop(tokio::spawn(self.clone().send_by_pieces(unread, sender, Passage::party())))
            }
            (false, false) => self.send_by_a_thread(unread, sender),
        }
        StreamingBlob::new(Sending { first: Some(first), coming, left })
    }
}

impl Door {
    /// Reads all that is left on one thread, when it is the turn of the tenant whose request this
    /// is.
    fn send_by_a_thread(&self, unread: Unread, sender: PieceSender) {
        let door = self.clone();
        let party = Passage::party();
        let read = move |slot: Slot| {
            let mut unread = unread;
            while !unread.is_empty() {
                let piece = unread.next(&door).map_err(unreadable);
                let is_last = piece.is_err();
                // Where the client has gone, or reads nothing, the connection has ended.
                if sender.blocking_send(piece).is_err() || is_last {
                    break;
                }
            }
            drop(slot);
        };
        if let Some(slot) = self.pool.enter(party) {
            tokio::task::spawn_blocking(move || read(slot));
            return;
        }
        let door = self.clone();
        tokio::spawn(async move {
            if let Ok(slot) = door.slot(party).await {
                tokio::task::spawn_blocking(move || read(slot));
            }
        });
    }

    /// Has a thread read a piece whenever there is room for it: who waits for its rate holds none.
    async fn send_by_pieces(self, mut unread: Unread, sender: PieceSender, party: PartyId) {
        while !unread.is_empty() {
            let Ok(room) = sender.reserve().await else { return };
            let read = move |door: &Self| {
                let piece = unread.next(door);
                Ok((piece, unread))
            };
            let Ok((piece, left)) = self.blocking_for(party, read).await else { return };
            let is_last = piece.is_err();
            room.send(piece.map_err(unreadable));
            if is_last {
                return;
            }
            unread = left;
        }
    }
}

type PieceSender = mpsc::Sender<io::Result<Bytes>>;

fn unreadable(error: s3s::S3Error) -> io::Error {
    io::Error::other(error.message().unwrap_or("unreadable").to_owned())
}

struct Sending {
    first: Option<Bytes>,
    coming: Receiver<io::Result<Bytes>>,
    left: usize,
}

impl Stream for Sending {
    type Item = Result<Bytes, s3s::StdError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let piece = match self.first.take() {
            Some(first) => Some(Ok(first)),
            None if self.left == 0 => None,
            None => match self.coming.poll_recv(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => Some(Err(io::Error::from(io::ErrorKind::TimedOut))),
                Poll::Ready(piece) => piece,
            },
        };
        if let Some(Ok(bytes)) = &piece {
            self.left = self.left.saturating_sub(bytes.len());
        }
        Poll::Ready(piece.map(|piece| piece.map_err(Into::into)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, None)
    }
}

impl ByteStream for Sending {
    fn remaining_length(&self) -> RemainingLength {
        RemainingLength::new_exact(self.left)
    }
}
