//! Frames on a socket.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use replication::{FRAME_HEAD_BYTES, Message};

use crate::address::Address;

/// How long a peer that takes nothing is waited for.
const WRITE_TIME_MAX: Duration = Duration::from_secs(10);

/// A connection of either kind.
#[derive(Debug)]
pub(crate) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    pub(crate) fn connect(address: &Address) -> io::Result<Self> {
        let socket = match address {
            Address::Unix(path) => Self::Unix(UnixStream::connect(path)?),
            Address::Tcp(address) => Self::Tcp(TcpStream::connect(address)?),
        };
        socket.set_up()?;
        Ok(socket)
    }

    pub(crate) fn set_up(&self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_write_timeout(Some(WRITE_TIME_MAX)),
            Self::Tcp(stream) => {
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(WRITE_TIME_MAX))
            }
        }
    }

    /// What comes is waited for no longer than this.
    pub(crate) fn wait_at_most(&self, time: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_read_timeout(time),
            Self::Tcp(stream) => stream.set_read_timeout(time),
        }
    }

    pub(crate) fn another(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Unix(stream) => Self::Unix(stream.try_clone()?),
            Self::Tcp(stream) => Self::Tcp(stream.try_clone()?),
        })
    }

    /// Ends it for its reader and its writer.
    pub(crate) fn end(&self) {
        // It may have ended already.
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Read for Socket {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(out),
            Self::Tcp(stream) => stream.read(out),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads the next message.
///
/// # Errors
/// [`io::Error`]; of a frame that is none, with kind `InvalidData`.
pub(crate) fn receive(source: &mut impl Read) -> io::Result<Message> {
    let broken = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let mut head = [0; FRAME_HEAD_BYTES];
    source.read_exact(&mut head)?;
    let body_bytes = Message::body_bytes(head).map_err(broken)?;
    // Memory grows with what comes, and not with what is announced.
    let mut body = Vec::new();
    source.take(body_bytes as u64).read_to_end(&mut body)?;
    if body.len() < body_bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Message::decode(head, &body).map_err(broken)
}

/// Writes messages, one behind the other.
pub(crate) fn send(sink: &mut impl Write, messages: &[Message]) -> io::Result<()> {
    let mut bytes = Vec::new();
    messages.iter().for_each(|message| message.encode(&mut bytes));
    sink.write_all(&bytes)
}
