//! Sockets that listen.
//!
//! A unix socket outlives a process that was killed. One that refuses connections is stale, and is
//! replaced; one that answers, and a file that is no socket, stay. A socket that was made here is
//! removed at the end, unless another has taken its place.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, fchmod};
use rustix::net::sockopt::set_socket_keepalive;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
};

use crate::address::Address;
use crate::error::DoorError;
use crate::socket::Socket;

/// Who may connect to a unix socket, as far as the umask leaves it.
const MODE: Mode = Mode::from_raw_mode(0o660);

/// A socket that listens, and never blocks.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix { listener: UnixListener, path: PathBuf, identity: Option<(u64, u64)> },
}

impl Listener {
    /// Listens at `address`; returns it with the port that was chosen for 0.
    pub(crate) fn bind(address: &Address) -> Result<(Self, Address), DoorError> {
        let failed = |source| DoorError::Listen { address: address.clone(), source };
        match address {
            Address::Tcp(socket_address) => {
                let listener = TcpListener::bind(socket_address).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                let bound = Address::Tcp(listener.local_addr().map_err(failed)?);
                Ok((Self::Tcp(listener), bound))
            }
            Address::Unix(path) => {
                remove_stale(path, failed)?;
                let listener = listen_at(path).map_err(failed)?;
                let (path, identity) = (path.clone(), identity(path));
                Ok((Self::Unix { listener, path, identity }, address.clone()))
            }
        }
    }

    /// The next connection, whose socket does not block.
    pub(crate) fn accept(&self) -> io::Result<Socket> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        match self {
            Self::Tcp(listener) => {
                let stream = TcpStream::from(accept_with(listener, flags)?);
                // Answers are sent whole. Where an option cannot be set, it costs time only.
                let _ = stream.set_nodelay(true);
                let _ = set_socket_keepalive(&stream, true);
                Ok(Socket::Tcp(stream))
            }
            Self::Unix { listener, .. } => {
                Ok(Socket::Unix(UnixStream::from(accept_with(listener, flags)?)))
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Unix { listener, .. } => listener.as_fd(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix { path, identity: ours, .. } = self
            && ours.is_some()
            && identity(path) == *ours
        {
            // What stays behind is stale, and the next server replaces it.
            let _ = fs::remove_file(path);
        }
    }
}

/// Listens at `path`, for those whom [`MODE`] names from the first moment on.
fn listen_at(path: &Path) -> io::Result<UnixListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // The name takes the socket's mode. Where a socket has none, the umask alone decides.
    let _ = fchmod(&socket, MODE);
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    listen(&socket, i32::MAX)?;
    Ok(UnixListener::from(socket))
}

/// Device and inode of what is at `path`.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

fn remove_stale(path: &Path, failed: impl Fn(io::Error) -> DoorError) -> Result<(), DoorError> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found.map_err(&failed)?,
    };
    if !found.file_type().is_socket() {
        return Err(DoorError::NotASocket { path: path.to_owned() });
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(DoorError::InUse { path: path.to_owned() }),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;
    use std::{env, fs, process};

    use super::Listener;
    use crate::address::Address;
    use crate::error::DoorError;

    fn path(name: &str) -> PathBuf {
        env::temp_dir().join(format!("tamis-memcached-{}-{name}", process::id()))
    }

    #[test]
    fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let path = path("stale");
        drop(UnixListener::bind(&path).unwrap());
        let address = Address::Unix(path.clone());
        let (live, _) = Listener::bind(&address).unwrap();
        assert!(matches!(Listener::bind(&address), Err(DoorError::InUse { .. })));
        drop(live);
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_is_no_socket_stays() {
        let path = path("file");
        fs::write(&path, "precious").unwrap();
        let bound = Listener::bind(&Address::Unix(path.clone()));
        assert!(matches!(bound, Err(DoorError::NotASocket { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"precious");
        fs::remove_file(&path).unwrap();
    }
}
