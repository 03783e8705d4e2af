//! Where the control socket is, and whether anybody is behind it.
//!
//! A unix socket outlives a process that was killed: the file stays and connections to it are
//! refused. Such a socket is stale. A client takes it for no socket; a server, which has the
//! store's lock by then, replaces it.
//!
//! The kernel takes no socket path of more than 107 bytes, and a store may lie deeper. Therefore
//! the store's directory is opened first and the socket named through it, `/proc/self/fd/N/...`,
//! which is short wherever the store is. Where /proc is not mounted the path itself has to do.
//!
//! A directory may be anybody's, and so may a socket in it. A client therefore asks the kernel who
//! listens (SO_PEERCRED), and speaks to nobody but its own user and root.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, fchmod, unlinkat};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen};
use rustix::process::{Uid, geteuid};

use crate::error::ServeError;

/// Name of the control socket in the directory of a store.
pub const SOCKET_NAME: &str = "control.sock";
/// Who may connect may do everything with the store.
const MODE: u32 = 0o600;

/// The socket of the store in `directory`, by a name that is short while the file is held.
fn short_name(directory: &Path) -> io::Result<(File, PathBuf)> {
    let held = File::open(directory)?;
    let through = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
    let place = if through.exists() { through.as_path() } else { directory };
    let name = place.join(SOCKET_NAME);
    Ok((held, name))
}

/// Listens at `name`, for the owner alone from the first moment on.
fn listen_at(name: &Path) -> io::Result<UnixListener> {
    let stream = SocketType::STREAM;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, stream, SocketFlags::CLOEXEC, None)?;
    // What it is called by then has its mode. Where a socket has none, its name gets one below.
    let _ = fchmod(&socket, Mode::from_raw_mode(MODE));
    bind(&socket, &SocketAddrUnix::new(name)?)?;
    fs::set_permissions(name, Permissions::from_mode(MODE))?;
    // As many as the system lets wait.
    listen(&socket, i32::MAX)?;
    Ok(UnixListener::from(socket))
}

/// Connects to the server of the store in `directory`; `None` when nobody serves it.
pub(crate) fn connect(directory: &Path) -> io::Result<Option<UnixStream>> {
    let attempt = short_name(directory).and_then(|(_held, name)| UnixStream::connect(name));
    match attempt {
        Ok(stream) => Ok(Some(stream)),
        Err(error) if is_absence(error.kind()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The user who listens at the other end, where it is one that this process does not believe.
pub(crate) fn strange_peer(stream: &UnixStream) -> io::Result<Option<u32>> {
    let peer = socket_peercred(stream)?.uid;
    Ok((!is_believed(peer, geteuid())).then(|| peer.as_raw()))
}

/// Root can read and change every process, so a client believes it too.
fn is_believed(peer: Uid, own: Uid) -> bool {
    peer == own || peer == Uid::ROOT
}

fn is_absence(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::NotADirectory)
}

/// A control socket that listens. It is held through its directory: when that is moved, and another
/// store put in its place, this one is shut and removed and not the other's.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    listener: UnixListener,
    held: File,
}

impl ControlSocket {
    /// Listens at the socket of the store in `directory`, replacing a stale one.
    pub(crate) fn listen(directory: &Path) -> Result<Self, ServeError> {
        let path = directory.join(SOCKET_NAME);
        match connect(directory) {
            Ok(Some(_)) => return Err(ServeError::InUse { path }),
            Ok(None) => {}
            Err(source) => return Err(ServeError::Bind { path, source }),
        }
        Self::bind(directory).map_err(|source| ServeError::Bind { path, source })
    }

    fn bind(directory: &Path) -> io::Result<Self> {
        let (held, name) = short_name(directory)?;
        match remove(&held) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        Ok(Self { listener: listen_at(&name)?, held })
    }

    /// The next connection.
    pub(crate) fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().map(|(stream, _)| stream)
    }

    /// Refuses connections from now on, wakes the thread in [`ControlSocket::accept`], and removes
    /// the socket.
    pub(crate) fn close(&self) {
        // Shutting a listening socket down wakes its accept with an error, on Linux.
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        // A socket that stays behind is stale, which is handled; so a failure here harms nobody.
        let _ = remove(&self.held);
    }
}

/// Removes the socket from the store's directory, wherever that is by now.
fn remove(held: &File) -> io::Result<()> {
    Ok(unlinkat(held, SOCKET_NAME, AtFlags::empty())?)
}

#[cfg(test)]
mod tests {
    use rustix::process::{Uid, geteuid};

    use super::{UnixStream, is_believed, strange_peer};

    #[test]
    fn only_the_same_user_and_root_are_believed() {
        let (user, other) = (Uid::from_raw(1000), Uid::from_raw(1001));
        assert!(is_believed(user, user) && is_believed(Uid::ROOT, user));
        assert!(!is_believed(other, user) && !is_believed(user, Uid::ROOT));
        let (one, _other) = UnixStream::pair().unwrap();
        assert_eq!(strange_peer(&one).unwrap(), None, "{:?}", geteuid());
    }
}
