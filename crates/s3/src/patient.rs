//! Connections whose clients must keep reading.
//!
//! An answer waits in a socket's buffer for a client that reads nothing, and its connection would
//! wait for ever. So a write that makes no way for a while fails, and the connection ends.
//!
//! A connection that is closed while bytes of its client are unread is reset, and the reset takes
//! the answer along. So what still comes behind the last answer is thrown away for a while: a
//! client that is refused in the middle of its body hears why.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// How long, and how much, is thrown away behind the last answer.
const LINGER_TIME: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 16 << 20;

/// A connection whose writes fail when they make no way for some time.
pub(crate) struct Patient {
    stream: TcpStream,
    unread_time: Duration,
    /// Runs while a write waits.
    end: Option<Pin<Box<Sleep>>>,
    linger: Option<Linger>,
}

/// All answers are sent, and what comes is thrown away.
struct Linger {
    end: Pin<Box<Sleep>>,
    left_bytes: usize,
}

impl Patient {
    /// `unread_time` is how long a client may read nothing of what it asked for.
    pub(crate) fn new(stream: TcpStream, unread_time: Duration) -> Self {
        Self { stream, unread_time, end: None, linger: None }
    }

    /// What a write came to, or that it has waited too long.
    fn timed<T>(
        &mut self,
        context: &mut Context<'_>,
        done: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.end = None;
            return done;
        }
        let unread_time = self.unread_time;
        let end = self.end.get_or_insert_with(|| Box::pin(sleep(unread_time)));
        end.as_mut().poll(context).map(|()| Err(ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.timed(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.timed(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, linger, .. } = &mut *self;
        let linger = match linger {
            Some(linger) => linger,
            None => {
                ready!(Pin::new(&mut *stream).poll_shutdown(context))?;
                let end = Box::pin(sleep(LINGER_TIME));
                linger.insert(Linger { end, left_bytes: LINGER_BYTES })
            }
        };
        let mut thrown_away = [0; 16 << 10];
        while linger.left_bytes > 0 && linger.end.as_mut().poll(context).is_pending() {
            let mut buffer = ReadBuf::new(&mut thrown_away);
            let read = ready!(Pin::new(&mut *stream).poll_read(context, &mut buffer));
            let length = buffer.filled().len();
            if read.is_err() || length == 0 {
                break; // The client has closed as well.
            }
            linger.left_bytes = linger.left_bytes.saturating_sub(length);
        }
        Poll::Ready(Ok(()))
    }
}
