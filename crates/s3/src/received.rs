//! Bodies of requests, handed from the connection to the thread that writes them.
//!
//! ```text
//! connection (async) ─ Piece::Bytes ... ─ Piece::End ─> thread (blocks)
//!        └ dropped: its client has gone; the thread sees no End, and drops its writer
//! ```
//!
//! Invariant: a thread that saw `End` saw every byte that the client announced and signed. At most
//! [`PIECES`] pieces wait. A short body is read whole first, so that a slow sender holds no thread;
//! `paced.rs` closes the connections of senders that stop.

use std::collections::VecDeque;

use bytes::Bytes;
use format::objects::record::metadata::Checksum;
use futures::StreamExt;
use hyper::HeaderMap;
use s3s::dto::StreamingBlob;
use s3s::{S3Error, S3Result, TrailingHeaders, s3_error};
use tokio::sync::mpsc::{self, Receiver};

use crate::checksums::Expected;
use crate::door::Door;
use crate::errors::of_body;

/// Pieces that wait for the thread.
const PIECES: usize = 8;
/// A body that is announced as no longer than this is read before a thread takes it.
const SHORT_BYTES: i64 = 128 << 10;

/// A body on its way.
pub(crate) struct Sent {
    pub(crate) body: Option<StreamingBlob>,
    /// As its sender announced it, without the framing of chunks.
    pub(crate) length: Option<i64>,
    pub(crate) trailing: Option<TrailingHeaders>,
}

enum Piece {
    Bytes(Bytes),
    End(Option<HeaderMap>),
    Failed(S3Error),
}

/// The thread's end of a body.
pub(crate) struct Received {
    ready: VecDeque<Piece>,
    coming: Option<Receiver<Piece>>,
    trailers: Option<HeaderMap>,
}

impl Received {
    /// The next bytes; none behind the last.
    ///
    /// # Errors
    /// The body cannot be had in full, or its client has gone.
    fn next(&mut self) -> S3Result<Option<Bytes>> {
        let piece = match self.ready.pop_front() {
            Some(piece) => Some(piece),
            None => self.coming.as_mut().and_then(Receiver::blocking_recv),
        };
        match piece {
            Some(Piece::Bytes(bytes)) => Ok(Some(bytes)),
            Some(Piece::End(trailers)) => {
                self.trailers = trailers;
                Ok(None)
            }
            Some(Piece::Failed(error)) => Err(error),
            None => Err(s3_error!(IncompleteBody, "the client has gone")),
        }
    }

    /// Hands the body to `write` as it comes; returns its MD5 and the checksums to be stored, when
    /// it is what its sender said.
    ///
    /// # Errors
    /// Those of [`Received::next`], of `write` and of
    /// [`Hashes::verify`](crate::checksums::Hashes::verify).
    pub(crate) fn verified(
        mut self,
        expected: Expected,
        mut write: impl FnMut(&[u8]) -> S3Result<()>,
    ) -> S3Result<([u8; 16], Vec<Checksum>)> {
        let mut hashes = expected.hashes();
        while let Some(bytes) = self.next()? {
            hashes.update(&bytes);
            write(&bytes)?;
        }
        hashes.verify(self.trailers.as_ref())
    }
}

impl Door {
    /// Runs on a thread that may block, which takes the body as it comes.
    pub(crate) async fn receiving<T: Send + 'static>(
        &self,
        sent: Sent,
        run: impl FnOnce(&Self, Received) -> S3Result<T> + Send + 'static,
    ) -> S3Result<T> {
        let is_short = sent.length.is_some_and(|length| length <= SHORT_BYTES);
        let mut source = Source { sent, length_bytes: 0 };
        if is_short {
            let mut ready = VecDeque::new();
            loop {
                match source.next().await {
                    Piece::Failed(error) => return Err(error),
                    Piece::Bytes(bytes) => ready.push_back(Piece::Bytes(bytes)),
                    end @ Piece::End(_) => {
                        ready.push_back(end);
                        break;
                    }
                }
            }
            let received = Received { ready, coming: None, trailers: None };
            return self.blocking(move |door| run(door, received)).await;
        }
        let (sender, coming) = mpsc::channel(PIECES);
        let received = Received { ready: VecDeque::new(), coming: Some(coming), trailers: None };
        let writing = self.blocking(move |door| run(door, received));
        let sending = async move {
            loop {
                let piece = source.next().await;
                let is_last = !matches!(piece, Piece::Bytes(_));
                // A thread that takes nothing more has its answer already.
                if sender.send(piece).await.is_err() || is_last {
                    break;
                }
            }
        };
        let (done, ()) = futures::future::join(writing, sending).await;
        done
    }
}

struct Source {
    sent: Sent,
    length_bytes: u64,
}

impl Source {
    async fn next(&mut self) -> Piece {
        let Some(body) = &mut self.sent.body else { return self.end() };
        match body.next().await {
            Some(Err(error)) => Piece::Failed(of_body(&*error)),
            None => self.end(),
            Some(Ok(bytes)) => {
                self.length_bytes += bytes.len() as u64;
                match self.announced().is_some_and(|length| self.length_bytes > length) {
                    true => Piece::Failed(s3_error!(IncompleteBody)),
                    false => Piece::Bytes(bytes),
                }
            }
        }
    }

    fn announced(&self) -> Option<u64> {
        self.sent.length.and_then(|length| u64::try_from(length).ok())
    }

    fn end(&mut self) -> Piece {
        if self.announced().is_some_and(|length| self.length_bytes != length) {
            return Piece::Failed(s3_error!(IncompleteBody));
        }
        Piece::End(self.sent.trailing.as_ref().and_then(TrailingHeaders::take))
    }
}
