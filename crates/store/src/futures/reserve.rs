//! Room that is reserved, as a future.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use engine::{Reply, RequestError, Reservation, ReservedFor, WriteRoom};

use crate::futures::sent::Sent;
use crate::volume::Volume;

/// A reservation that ends when it is held or refused. [`Volume::reserve`] makes it; dropping it
/// gives back what it holds by then.
#[must_use = "a future does nothing until it is polled"]
pub struct Reserve {
    volume: Volume,
    room: WriteRoom,
    reserved_for: ReservedFor,
    /// None before the first poll.
    sent: Option<Sent>,
}

impl Reserve {
    pub(crate) fn new(volume: Volume, room: WriteRoom, reserved_for: ReservedFor) -> Self {
        Self { volume, room, reserved_for, sent: None }
    }
}

impl Future for Reserve {
    type Output = Result<Reservation, RequestError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let Volume { client, open } = &this.volume;
        let (room, reserved_for) = (this.room, this.reserved_for);
        let send = |done| client.reserve_with(open, room, reserved_for, done);
        let sent = this.sent.get_or_insert_with(|| Sent::by(send).0);
        Poll::Ready(match ready!(sent.poll(cx)) {
            Ok(Reply::Reservation(reservation)) => Ok(reservation),
            Ok(other) => unreachable!("a reservation is answered with one, not {other:?}"),
            Err(error) => Err(error),
        })
    }
}
