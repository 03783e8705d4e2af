//! Bodies of requests that must keep coming.
//!
//! ```text
//! connection ─> Paced ─> s3s (signatures, documents) ─> received.rs
//!                 └ nothing for a while, or too little for long: SlowBody
//! ```
//!
//! Only time that the connection is waited for counts: a body that the store takes slowly is not
//! its client's fault. What came, and how it failed, is kept beside the body, for s3s calls every
//! failure of a document's body an internal error.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use s3s::{S3Error, StdError, s3_error};
use tokio::time::{Instant, Sleep, sleep};

use crate::passage::Toll;

/// Bytes a second that a body has, after what its client may be idle.
const BYTES_PER_S_MIN: u64 = 1 << 10;

/// How a body failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyFailure {
    /// Its client sends nothing, or a byte now and then.
    #[error("the client sends too slowly")]
    Slow,
    /// The connection ended, or what came is no body of HTTP.
    #[error("the body ends before its length")]
    Cut,
}

impl BodyFailure {
    /// What the client hears.
    pub(crate) fn refusal(self) -> S3Error {
        match self {
            Self::Slow => s3_error!(RequestTimeout, "{self}"),
            Self::Cut => s3_error!(IncompleteBody, "{self}"),
        }
    }
}

/// What came of a body.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    failure: OnceLock<BodyFailure>,
    length_bytes: AtomicU64,
}

impl Seen {
    pub(crate) fn failure(&self) -> Option<BodyFailure> {
        self.failure.get().copied()
    }

    /// Bytes up to now.
    pub(crate) fn length_bytes(&self) -> u64 {
        self.length_bytes.load(Ordering::Relaxed)
    }
}

/// A body that fails when it does not keep coming.
pub(crate) struct Paced<B> {
    body: B,
    idle_time: Duration,
    seen: Arc<Seen>,
    /// How long the connection has been waited for, pauses that ended.
    waited: Duration,
    pause: Option<Pause>,
    /// What its tenant pays for it. While that is waited for nothing is read, and no time counts.
    toll: Toll,
}

struct Pause {
    began: Instant,
    end: Pin<Box<Sleep>>,
}

impl<B> Paced<B> {
    /// `idle_time` is how long nothing may come.
    pub(crate) fn new(body: B, idle_time: Duration, toll: Toll) -> (Self, Arc<Seen>) {
        let seen = Arc::<Seen>::default();
        let kept = Arc::clone(&seen);
        (Self { body, idle_time, seen, waited: Duration::ZERO, pause: None, toll }, kept)
    }

    fn fail(&self, failure: BodyFailure) -> StdError {
        let failure = *self.seen.failure.get_or_init(|| failure);
        Box::new(failure)
    }

    /// How long the next pause may be.
    fn pause_max(&self) -> Duration {
        let earned = Duration::from_secs(self.seen.length_bytes() / BYTES_PER_S_MIN);
        (self.idle_time + earned).saturating_sub(self.waited).min(self.idle_time)
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Paced<B> {
    type Data = Bytes;
    type Error = StdError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StdError>>> {
        // Nothing is read behind the last byte, so nothing is waited for.
        if !self.body.is_end_stream() {
            ready!(self.toll.poll_paid(context));
        }
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) else {
            let pause_max = self.pause_max();
            let pause = self.pause.get_or_insert_with(|| Pause {
                began: Instant::now(),
                end: Box::pin(sleep(pause_max)),
            });
            let ended = pause.end.as_mut().poll(context);
            return ended.map(|()| Some(Err(self.fail(BodyFailure::Slow))));
        };
        if let Some(pause) = self.pause.take() {
            self.waited += pause.began.elapsed();
        }
        if let Some(bytes) = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()) {
            let length_bytes = bytes.len() as u64;
            self.seen.length_bytes.fetch_add(length_bytes, Ordering::Relaxed);
            self.toll.charge(length_bytes);
        }
        Poll::Ready(frame.map(|frame| frame.map_err(|_| self.fail(BodyFailure::Cut))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use super::Paced;
    use crate::passage::{Passage, Toll, Way};

    #[test]
    fn a_trickle_is_waited_for_no_longer_than_its_bytes_are_worth() {
        let idle_time = Duration::from_secs(60);
        let toll = Toll::new(Passage::begin(), Way::In);
        let (mut body, seen) = Paced::new((), idle_time, toll);
        assert_eq!(body.pause_max(), idle_time);
        let came = |bytes| seen.length_bytes.store(bytes, Ordering::Relaxed);
        came(3);
        body.waited = Duration::from_secs(59);
        assert!(body.pause_max() < Duration::from_secs(2));
        came(100 << 20);
        body.waited = Duration::from_secs(3600);
        assert_eq!(body.pause_max(), idle_time);
    }
}
