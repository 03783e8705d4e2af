//! Several writes of one volume, in their order, as one future.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use engine::{Accepted, ChunkBuf, RequestError, Reservation, WriteOptions};

use crate::futures::sent::Sent;
use crate::volume::Volume;

/// A vector of writes that ends when all are acknowledged, or durable. [`Volume::write_vectored`]
/// and [`Volume::write_reserved`] make it.
#[must_use = "a future does nothing until it is polled"]
pub struct WriteVectored<'a, B> {
    volume: Volume,
    writes: Vec<(u64, B)>,
    options: WriteOptions,
    /// Room that the writes take; without it they take what is free.
    reservation: Option<&'a Reservation>,
    stage: Stage,
}

enum Stage {
    New,
    Waiting(Sent),
    Ended,
}

impl<'a, B: AsRef<[u8]> + Unpin> WriteVectored<'a, B> {
    pub(crate) fn new(
        volume: Volume,
        writes: Vec<(u64, B)>,
        options: WriteOptions,
        reservation: Option<&'a Reservation>,
    ) -> Self {
        Self { volume, writes, options, reservation, stage: Stage::New }
    }

    /// Sends all of it if there is memory for all.
    fn send(&self, cx: &Context<'_>) -> Poll<Stage> {
        let Volume { client, open } = &self.volume;
        let lengths = self.writes.iter().map(|(at_bytes, bytes)| (*at_bytes, bytes.as_ref().len()));
        let memory = client.try_buffers_or_wake(lengths, cx.waker());
        let Some(bufs) = memory else { return Poll::Pending };
        let filled = self.writes.iter().zip(bufs).map(|((at_bytes, bytes), mut buf)| {
            buf.bytes_mut().copy_from_slice(bytes.as_ref());
            (*at_bytes, buf)
        });
        let filled: Vec<(u64, ChunkBuf)> = filled.collect();
        let (sent, accepted) = Sent::by(|done| match self.reservation {
            Some(reservation) => client.write_reserved(reservation, filled, self.options, done),
            None => client.write_vectored(open, filled, self.options, done),
        });
        Poll::Ready(match accepted {
            Accepted::Now => Stage::Ended,
            Accepted::Later => Stage::Waiting(sent),
        })
    }
}

impl<B: AsRef<[u8]> + Unpin> Future for WriteVectored<'_, B> {
    type Output = Result<(), RequestError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        assert!(!matches!(this.stage, Stage::Ended), "a vector that has ended is polled again");
        if matches!(this.stage, Stage::New) {
            this.stage = ready!(this.send(cx));
        }
        let outcome = match &mut this.stage {
            Stage::Waiting(sent) => ready!(sent.poll(cx)).map(|_| ()),
            _ => Ok(()),
        };
        this.stage = Stage::Ended;
        Poll::Ready(outcome)
    }
}
