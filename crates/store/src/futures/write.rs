//! A write as a future.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use engine::{Accepted, Durability, RequestError, WriteOptions};

use crate::futures::sent::Sent;
use crate::pieces::piece_bytes;
use crate::volume::Volume;

/// A write that ends when it is acknowledged, or durable. [`Volume::write`] makes it.
#[must_use = "a future does nothing until it is polled"]
pub struct Write<B> {
    volume: Volume,
    offset_bytes: u64,
    bytes: B,
    options: WriteOptions,
    /// Bytes that are sent.
    sent_bytes: usize,
    stage: Stage,
}

enum Stage {
    /// Nothing is sent; the range may still be wrong.
    New,
    /// The next piece needs memory.
    Copying,
    /// A piece waits for its answer.
    Waiting(Sent),
    Ended,
}

impl<B: AsRef<[u8]> + Unpin> Write<B> {
    pub(crate) fn new(volume: Volume, offset_bytes: u64, bytes: B, options: WriteOptions) -> Self {
        Self { volume, offset_bytes, bytes, options, sent_bytes: 0, stage: Stage::New }
    }

    /// Sends the next piece if there is memory for it.
    fn send_piece(&mut self, cx: &Context<'_>) -> Poll<Stage> {
        let rest = &self.bytes.as_ref()[self.sent_bytes..];
        let offset_bytes = self.offset_bytes + self.sent_bytes as u64;
        let piece = &rest[..piece_bytes(offset_bytes, rest.len())];
        let Volume { client, open } = &self.volume;
        let memory = client.try_buffer_or_wake(offset_bytes, piece.len(), cx.waker());
        let Some(mut buf) = memory else { return Poll::Pending };
        buf.bytes_mut().copy_from_slice(piece);
        // All that was written before is durable as well when the last piece is.
        let is_last = piece.len() == rest.len();
        let durability = if is_last { self.options.durability } else { Durability::Acknowledged };
        let options = WriteOptions { durability, ..self.options };
        self.sent_bytes += piece.len();
        let send = |done| client.write_with(open, offset_bytes, buf, options, done);
        Poll::Ready(match Sent::by(send) {
            (_, Accepted::Now) => self.after_piece(),
            (sent, Accepted::Later) => Stage::Waiting(sent),
        })
    }

    fn after_piece(&self) -> Stage {
        if self.sent_bytes < self.bytes.as_ref().len() { Stage::Copying } else { Stage::Ended }
    }
}

impl<B: AsRef<[u8]> + Unpin> Future for Write<B> {
    type Output = Result<(), RequestError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        assert!(!matches!(this.stage, Stage::Ended), "a write that has ended is polled again");
        loop {
            let outcome = match &mut this.stage {
                Stage::New => {
                    let length_bytes = this.bytes.as_ref().len() as u64;
                    this.volume
                        .check_range(this.offset_bytes, length_bytes)
                        .map(|()| Stage::Copying)
                }
                Stage::Copying => Ok(ready!(this.send_piece(cx))),
                Stage::Waiting(sent) => ready!(sent.poll(cx)).map(|_| this.after_piece()),
                Stage::Ended => return Poll::Ready(Ok(())),
            };
            match outcome {
                Ok(stage) => this.stage = stage,
                Err(error) => {
                    this.stage = Stage::Ended;
                    return Poll::Ready(Err(error));
                }
            }
        }
    }
}
