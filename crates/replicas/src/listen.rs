//! The sockets at which primaries are waited for.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use thiserror::Error;

use crate::address::Address;
use crate::replicas::Replicas;
use crate::wire::Socket;

/// Who may connect to a unix socket: its owner.
const MODE: u32 = 0o600;
/// Pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Nobody listens at the address.
#[derive(Debug, Error)]
#[error("cannot wait for primaries at {address}: {source}")]
pub struct ListenError {
    /// The address.
    pub address: Address,
    /// Why.
    pub source: io::Error,
}

enum Listener {
    /// With the identity of its name, which is removed at the end.
    Unix(UnixListener, PathBuf, Option<(u64, u64)>),
    Tcp(TcpListener),
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Another server may have taken the name.
        if let Self::Unix(_, path, ours) = self
            && ours.is_some()
            && identity(path) == *ours
        {
            // What stays behind is stale, and the next server replaces it.
            let _ = fs::remove_file(path);
        }
    }
}

/// A socket that listens until this is dropped.
pub struct Listening {
    address: Address,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listening {
    /// Serves primaries that connect to `address`.
    ///
    /// # Errors
    /// [`ListenError`].
    pub fn start(replicas: &Replicas, address: &Address) -> Result<Self, ListenError> {
        let failed = |source| ListenError { address: address.clone(), source };
        let (listener, address) = bind(address).map_err(failed)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, replicas) = (Arc::clone(&is_over), replicas.clone());
        let accepts = thread::Builder::new().name("replicas".to_owned());
        let thread = accepts.spawn(move || accept_all(&listener, &replicas, &over));
        let thread =
            Some(thread.map_err(|source| ListenError { address: address.clone(), source })?);
        Ok(Self { address, is_over, thread })
    }

    /// Where, with the port that was chosen.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // The thread is woken by a connection, and removes its socket.
        drop(Socket::connect(&self.address));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn bind(address: &Address) -> io::Result<(Listener, Address)> {
    match address {
        Address::Unix(path) => {
            remove_stale(path)?;
            let listener = UnixListener::bind(path)?;
            fs::set_permissions(path, fs::Permissions::from_mode(MODE))?;
            Ok((Listener::Unix(listener, path.clone(), identity(path)), address.clone()))
        }
        Address::Tcp(asked) => {
            let listener = TcpListener::bind(asked)?;
            let bound = Address::Tcp(listener.local_addr()?);
            Ok((Listener::Tcp(listener), bound))
        }
    }
}

/// Device and inode of what is at `path`.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// Removes a socket at which no server answers: one that was killed has left it. What is no socket
/// stays, though it refuses connections as well.
fn remove_stale(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.file_type().is_socket() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is a file that is no socket"));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
        Err(error) => Err(error),
    }
}

fn accept_all(listener: &Listener, replicas: &Replicas, is_over: &AtomicBool) {
    loop {
        let socket = match listener {
            Listener::Unix(listener, ..) => {
                listener.accept().map(|(stream, _)| Socket::Unix(stream))
            }
            Listener::Tcp(listener) => listener.accept().map(|(stream, _)| Socket::Tcp(stream)),
        };
        if is_over.load(Ordering::SeqCst) {
            break;
        }
        let Ok(socket) = socket else {
            // There are too many open files; some may be closed soon.
            thread::sleep(ACCEPT_PAUSE);
            continue;
        };
        let replicas = replicas.clone();
        let serves = thread::Builder::new().name("replica".to_owned());
        // Without a thread the primary finds the connection closed, and tries again.
        let _ = serves.spawn(move || {
            if socket.set_up().is_ok() {
                replicas.serve(&socket);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::{env, fs, io, process};

    use super::bind;
    use crate::address::Address;

    #[test]
    fn a_stale_socket_is_replaced_and_nothing_else() {
        let path = env::temp_dir().join(format!("tamis-replicas-{}", process::id()));
        let address = Address::Unix(path.clone());
        fs::write(&path, "kept").unwrap();
        let refused = bind(&address).map(drop).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"kept");
        fs::remove_file(&path).unwrap();

        drop(UnixListener::bind(&path).unwrap());
        let (first, _) = bind(&address).unwrap();
        assert_eq!(bind(&address).map(drop).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(first);
        assert!(!path.exists());
    }

    #[test]
    fn the_name_that_another_server_has_taken_stays() {
        let path = env::temp_dir().join(format!("tamis-replicas-taken-{}", process::id()));
        let (first, _) = bind(&Address::Unix(path.clone())).unwrap();
        fs::remove_file(&path).unwrap();
        let _second = UnixListener::bind(&path).unwrap();
        drop(first);
        assert!(path.exists());
        fs::remove_file(&path).unwrap();
    }
}
