//! A connected socket that does not block.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// The socket of a client.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// What has come, as far as it fits; 0 is the end.
    pub(crate) fn receive(&self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => (&mut &*stream).read(room),
            Self::Unix(stream) => (&mut &*stream).read(room),
        }
    }

    /// Sends what the system takes of `bytes`.
    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => (&mut &*stream).write(bytes),
            Self::Unix(stream) => (&mut &*stream).write(bytes),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}
