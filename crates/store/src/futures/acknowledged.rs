//! Requests without bytes as futures: flush, trim, write zeroes, copy.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use engine::RequestError;

use crate::futures::sent::Sent;
use crate::volume::Volume;

/// A request that ends when it is done. [`Volume::flush`], [`Volume::trim`],
/// [`Volume::write_zeroes`] and [`Volume::copy_from`] make it.
#[must_use = "a future does nothing until it is polled"]
pub struct Acknowledged {
    volume: Volume,
    stage: Stage,
}

enum Stage {
    New(Verb),
    Waiting(Sent),
    Ended,
}

/// What is asked for.
pub(crate) enum Verb {
    Flush,
    Trim(Area),
    WriteZeroes(Area),
    /// What `from` maps from this offset on is to be mapped in the area as well.
    Copy {
        from: Volume,
        from_bytes: u64,
        to: Area,
    },
}

/// A part of a volume that changes.
#[derive(Copy, Clone)]
pub(crate) struct Area {
    pub(crate) offset_bytes: u64,
    pub(crate) length_bytes: u64,
    pub(crate) durable: bool,
}

impl Acknowledged {
    pub(crate) fn new(volume: Volume, verb: Verb) -> Self {
        Self { volume, stage: Stage::New(verb) }
    }

    fn send(&self, verb: &Verb) -> Sent {
        let Volume { client, open } = &self.volume;
        let (sent, ()) = Sent::by(|done| match *verb {
            Verb::Flush => client.flush(done),
            Verb::Trim(Area { offset_bytes, length_bytes, durable }) => {
                client.trim(open, offset_bytes, length_bytes, durable, done);
            }
            Verb::WriteZeroes(Area { offset_bytes, length_bytes, durable }) => {
                client.write_zeroes(open, offset_bytes, length_bytes, durable, done);
            }
            Verb::Copy { ref from, from_bytes, to } => {
                let Area { offset_bytes, length_bytes, durable } = to;
                let from = &from.open;
                client.copy_range(
                    from,
                    from_bytes,
                    open,
                    offset_bytes,
                    length_bytes,
                    durable,
                    done,
                );
            }
        });
        sent
    }
}

impl Future for Acknowledged {
    type Output = Result<(), RequestError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Stage::New(verb) = &this.stage {
            this.stage = Stage::Waiting(this.send(verb));
        }
        let Stage::Waiting(sent) = &mut this.stage else {
            panic!("a request that has ended is polled again");
        };
        let outcome = ready!(sent.poll(cx));
        this.stage = Stage::Ended;
        Poll::Ready(outcome.map(|_| ()))
    }
}
