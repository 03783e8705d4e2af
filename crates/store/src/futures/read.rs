//! A read as a future.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use engine::{ReadPieces, Reply, RequestError};

use crate::futures::sent::Sent;
use crate::pieces::piece_bytes;
use crate::volume::Volume;

/// A read that ends with its bytes. [`Volume::read`] makes it.
#[must_use = "a future does nothing until it is polled"]
pub struct Read {
    volume: Volume,
    offset_bytes: u64,
    length_bytes: usize,
    /// None before the first poll, and when they have been given away.
    out: Option<Vec<u8>>,
    filled_bytes: usize,
    stage: Stage,
}

enum Stage {
    New,
    /// The next piece is to be asked for.
    Asking,
    /// A piece waits for its answer.
    Waiting(Sent),
    Ended,
}

impl Read {
    pub(crate) fn new(volume: Volume, offset_bytes: u64, length_bytes: usize) -> Self {
        let (out, stage) = (None, Stage::New);
        Self { volume, offset_bytes, length_bytes, out, filled_bytes: 0, stage }
    }

    /// Asks for the next piece, if any is left and there is memory for it.
    fn ask(&mut self, cx: &Context<'_>) -> Poll<Result<Stage, RequestError>> {
        let rest_bytes = self.length_bytes - self.filled_bytes;
        if rest_bytes == 0 {
            return Poll::Ready(Ok(Stage::Ended));
        }
        let offset_bytes = self.offset_bytes + self.filled_bytes as u64;
        let length_bytes = piece_bytes(offset_bytes, rest_bytes) as u32;
        let Volume { client, open } = &self.volume;
        if let Some(pieces) = client.read_held(open, offset_bytes, length_bytes) {
            return Poll::Ready(self.fill(&pieces));
        }
        let memory = client.try_read_memory_or_wake(length_bytes, cx.waker());
        let Some(memory) = memory else { return Poll::Pending };
        let send = |done| client.read_in(memory, open, offset_bytes, length_bytes, done);
        let (sent, ()) = Sent::by(send);
        Poll::Ready(Ok(Stage::Waiting(sent)))
    }

    /// Takes the bytes of a piece.
    fn fill(&mut self, pieces: &ReadPieces) -> Result<Stage, RequestError> {
        let end = self.filled_bytes + pieces.length_bytes();
        let out = self.out.get_or_insert_with(|| vec![0; self.length_bytes]);
        pieces.assemble(&mut out[self.filled_bytes..end])?;
        self.filled_bytes = end;
        Ok(Stage::Asking)
    }

    fn advance(&mut self, cx: &Context<'_>) -> Poll<Result<Stage, RequestError>> {
        match &mut self.stage {
            Stage::New => {
                let length_bytes = self.length_bytes as u64;
                let checked = self.volume.check_range(self.offset_bytes, length_bytes);
                Poll::Ready(checked.map(|()| Stage::Asking))
            }
            Stage::Asking => self.ask(cx),
            Stage::Waiting(sent) => match ready!(sent.poll(cx)) {
                Ok(Reply::Read(pieces)) => Poll::Ready(self.fill(&pieces)),
                Ok(other) => unreachable!("a read is answered with its bytes, not {other:?}"),
                Err(error) => Poll::Ready(Err(error)),
            },
            Stage::Ended => Poll::Ready(Ok(Stage::Ended)),
        }
    }
}

impl Future for Read {
    type Output = Result<Vec<u8>, RequestError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        assert!(!matches!(this.stage, Stage::Ended), "a read that has ended is polled again");
        loop {
            match ready!(this.advance(cx)) {
                Ok(Stage::Ended) => {
                    this.stage = Stage::Ended;
                    return Poll::Ready(Ok(this.out.take().unwrap_or_default()));
                }
                Ok(stage) => this.stage = stage,
                Err(error) => {
                    this.stage = Stage::Ended;
                    return Poll::Ready(Err(error));
                }
            }
        }
    }
}
