//! A connected socket of either kind, for a reader and a writer thread at the same time.

use std::hint::spin_loop;
use std::io::{self, IoSliceMut, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl, socket_peercred,
};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use threads::{AdaptiveSpin, BatchPolicy};

use door::Hangup;

/// A peer that vanished silently is noticed after two minutes, 60 s + 6 x 10 s, if nothing is
/// on its way to it. If replies are, the kernel sends them again for some 15 minutes
/// (`net.ipv4.tcp_retries2`). `TCP_USER_TIMEOUT` would end that sooner, and with it the connection
/// of a client that lives and takes nothing for a while, which is to keep its place.
const KEEP_ALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEP_ALIVE_PROBES: u32 = 6;

/// How long one read waits in transmission. Only a payload that does not come needs it to end.
pub(crate) const READ_TIME: Duration = Duration::from_secs(1);

/// How long a reader pauses between two polls of its socket: about a microsecond in all.
const SPINS_PER_POLL: u32 = 16;

/// A connected socket.
#[derive(Debug)]
pub(crate) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    /// A TCP connection, set up for requests and replies.
    pub(crate) fn tcp(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        set_socket_keepalive(&stream, true)?;
        set_tcp_keepidle(&stream, KEEP_ALIVE_IDLE)?;
        set_tcp_keepintvl(&stream, KEEP_ALIVE_INTERVAL)?;
        set_tcp_keepcnt(&stream, KEEP_ALIVE_PROBES)?;
        Ok(Self::Tcp(stream))
    }

    /// Who is at the other end, as operators are told of it.
    pub(crate) fn peer(&self) -> String {
        match self {
            Self::Unix(stream) => match socket_peercred(stream) {
                Ok(peer) => format!("unix socket, pid {}", peer.pid),
                Err(_) => "unix socket".to_owned(),
            },
            Self::Tcp(stream) => match stream.peer_addr() {
                Ok(address) => address.to_string(),
                // It has gone already.
                Err(_) => "tcp".to_owned(),
            },
        }
    }

    /// How long one read waits; `None` for ever.
    pub(crate) fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_read_timeout(timeout),
            Self::Tcp(stream) => stream.set_read_timeout(timeout),
        }
    }

    /// How long one write waits; `None` for ever.
    pub(crate) fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_write_timeout(timeout),
            Self::Tcp(stream) => stream.set_write_timeout(timeout),
        }
    }

    /// Ends one or both directions and wakes the threads that wait on them. That a connection has
    /// ended already is no failure.
    pub(crate) fn shutdown(&self, how: Shutdown) {
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(how),
            Self::Tcp(stream) => stream.shutdown(how),
        };
    }

    /// Whether sending without waiting is worth a try: a Unix socket hardly ever takes a part of a
    /// few KiB.
    pub(crate) fn takes_at_once(&self) -> bool {
        matches!(self, Self::Unix(_))
    }

    /// Sends what can be sent of `bytes` without waiting; returns how many that were. It may be a
    /// part: where buffers are small (`net.core.wmem_default`), and in a sandbox with sockets of
    /// its own.
    pub(crate) fn send_at_once(&self, bytes: &[u8]) -> usize {
        match self {
            Self::Unix(stream) => {
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                send(stream, bytes, flags).unwrap_or(0).min(bytes.len())
            }
            Self::Tcp(_) => 0,
        }
    }

    /// What has arrived.
    fn receive_at_once(&self, out: &mut [u8]) -> io::Result<usize> {
        let flags = RecvFlags::DONTWAIT;
        let (received, _) = match self {
            Self::Unix(stream) => recv(stream, out, flags)?,
            Self::Tcp(stream) => recv(stream, out, flags)?,
        };
        Ok(received)
    }

    /// Sends all of `bytes` before `deadline`. Leaves a timeout behind.
    pub(crate) fn send_until(&self, mut bytes: &[u8], deadline: Instant) -> Result<(), Hangup> {
        while !bytes.is_empty() {
            self.set_write_timeout(Some(time_left(deadline)?))?;
            match (&*self).write(bytes) {
                Ok(0) => return Err(Hangup),
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Hangup),
            }
        }
        Ok(())
    }
}

/// What is left until `deadline`.
///
/// # Errors
/// [`Hangup`] when it has passed.
pub(crate) fn time_left(deadline: Instant) -> Result<Duration, Hangup> {
    deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()).ok_or(Hangup)
}

/// A socket that its reader polls for a while before it sleeps.
#[derive(Debug)]
pub(crate) struct Watched<'a> {
    socket: &'a Socket,
    spin: AdaptiveSpin,
    policy: BatchPolicy,
}

impl<'a> Watched<'a> {
    pub(crate) fn new(socket: &'a Socket, spin: AdaptiveSpin) -> Self {
        Self { socket, spin, policy: BatchPolicy::default() }
    }

    pub(crate) fn socket(&self) -> &Socket {
        self.socket
    }

    /// A request was in what has been read.
    pub(crate) fn found_request(&mut self) {
        self.policy.request_received();
    }
}

impl Read for Watched<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.policy.before_wait();
        let mut wait = self.spin.begin_wait();
        while wait.should_poll() {
            match self.socket.receive_at_once(out) {
                // A poll takes a lock that the thread that fills the socket needs as well.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    (0..SPINS_PER_POLL).for_each(|_| spin_loop());
                }
                received => return received,
            }
        }
        (&mut &*self.socket).read(out)
    }

    /// What is read in parts, a payload, is on its way already.
    fn read_vectored(&mut self, outs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.policy.before_wait();
        (&mut &*self.socket).read_vectored(outs)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl Read for &Socket {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => (&mut &*stream).read(out),
            Socket::Tcp(stream) => (&mut &*stream).read(out),
        }
    }

    fn read_vectored(&mut self, outs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => (&mut &*stream).read_vectored(outs),
            Socket::Tcp(stream) => (&mut &*stream).read_vectored(outs),
        }
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => (&mut &*stream).write(bytes),
            Socket::Tcp(stream) => (&mut &*stream).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
