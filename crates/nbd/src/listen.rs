//! Where a server listens: `unix:PATH` or `tcp:HOST:PORT`, the NBD URI of an export there, and
//! the listening socket itself.
//!
//! A unix socket outlives a process that was killed: the file stays and connections to it are
//! refused. Such a socket is stale and is replaced; one that answers, or a file that is no socket,
//! is left alone. A socket that was made here is removed at the end, unless another has taken its
//! place.

use std::fmt::{self, Display, Formatter, Write};
use std::fs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, TcpListener, ToSocketAddrs};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen};

use crate::error::{ListenError, NbdError};
use crate::socket::Socket;

/// Who may connect to a unix socket, as far as the umask leaves it: who may reads and writes
/// every volume.
const MODE: Mode = Mode::from_raw_mode(0o660);

/// The port that NBD has at IANA.
const PORT_DEFAULT: u16 = 10809;

/// What Linux takes of a socket's path. A server could listen at a longer one by another name, as
/// our control socket does, but its clients are others' and connect by the path.
const PATH_BYTES_MAX: usize = 107;

/// An address to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A unix socket.
    Unix(PathBuf),
    /// HOST:PORT, an IPv6 address in brackets; port 0 takes any that is free.
    Tcp(String),
}

impl Listen {
    /// The address in `unix:PATH` or `tcp:HOST:PORT`; without `:PORT` it is NBD's own, 10809.
    ///
    /// # Errors
    /// [`ListenError`] says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, ListenError> {
        match text.split_once(':') {
            Some(("unix", "")) => Err(ListenError::NoPath),
            Some(("unix", path)) => Ok(Self::Unix(PathBuf::from(path))),
            Some(("tcp", rest)) => parse_tcp(rest).map(Self::Tcp),
            _ => Err(ListenError::UnknownScheme { text: text.to_owned() }),
        }
    }

    /// That somebody could listen at it: what is known of that without trying.
    ///
    /// # Errors
    /// [`NbdError::PathTooLong`].
    pub fn check(&self) -> Result<(), NbdError> {
        match self {
            Self::Unix(path) if path.as_os_str().len() > PATH_BYTES_MAX => {
                let (path, limit_bytes) = (path.clone(), PATH_BYTES_MAX);
                Err(NbdError::PathTooLong { path, limit_bytes })
            }
            _ => Ok(()),
        }
    }

    /// Whether only this machine can reach it. A name that cannot be resolved counts as reachable.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let loopback = |address: IpAddr| address.to_canonical().is_loopback();
        match self {
            Self::Unix(_) => true,
            Self::Tcp(address) => address
                .to_socket_addrs()
                .is_ok_and(|mut addresses| addresses.all(|address| loopback(address.ip()))),
        }
    }

    /// The NBD URI of `export` here.
    #[must_use]
    pub fn uri(&self, export: &str) -> String {
        let export = percent_encoded(export.as_bytes());
        match self {
            Self::Unix(path) => {
                let path = percent_encoded(path.as_os_str().as_encoded_bytes());
                format!("nbd+unix:///{export}?socket={path}")
            }
            Self::Tcp(address) => format!("nbd://{address}/{export}"),
        }
    }
}

impl Display for Listen {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

fn parse_tcp(text: &str) -> Result<String, ListenError> {
    // Colons inside brackets belong to the address.
    let host_end = text.rfind(']').map_or(0, |end| end + 1);
    let (host, port) = match text[host_end..].find(':') {
        Some(colon) => (&text[..host_end + colon], Some(&text[host_end + colon + 1..])),
        None => (text, None),
    };
    if host.trim_matches(['[', ']']).is_empty() {
        return Err(ListenError::NoHost);
    }
    let port = match port {
        None => PORT_DEFAULT,
        Some(port) => port.parse().map_err(|_| ListenError::BadPort { port: port.to_owned() })?,
    };
    Ok(format!("{host}:{port}"))
}

/// `bytes` as part of a URI: everything but what RFC 3986 leaves as it is, and `/`.
fn percent_encoded(bytes: &[u8]) -> String {
    let mut encoded = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                encoded.push(char::from(*byte));
            }
            _ => {
                // Writing to a string cannot fail.
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

/// A socket that listens.
#[derive(Debug)]
pub(crate) enum Listener {
    Unix { listener: UnixListener, path: PathBuf, identity: Option<(u64, u64)> },
    Tcp(TcpListener),
}

impl Listener {
    /// Listens at `address`; returns the address with the port that it got.
    pub(crate) fn bind(address: &Listen) -> Result<(Self, Listen), NbdError> {
        let failed = |source| NbdError::Bind { address: address.to_string(), source };
        address.check()?;
        match address {
            Listen::Unix(path) => {
                remove_stale(path, failed)?;
                let listener = listen_at(path).map_err(failed)?;
                let (path, identity) = (path.clone(), identity(path));
                Ok((Self::Unix { listener, path, identity }, address.clone()))
            }
            Listen::Tcp(host_and_port) => {
                let listener = TcpListener::bind(host_and_port).map_err(failed)?;
                let port = listener.local_addr().map_err(failed)?.port();
                let host = host_and_port.rsplit_once(':').map_or("", |(host, _)| host);
                Ok((Self::Tcp(listener), Listen::Tcp(format!("{host}:{port}"))))
            }
        }
    }

    /// The next connection.
    pub(crate) fn accept(&self) -> io::Result<Socket> {
        match self {
            Self::Unix { listener, .. } => Ok(Socket::Unix(listener.accept()?.0)),
            Self::Tcp(listener) => Socket::tcp(listener.accept()?.0),
        }
    }

    /// Refuses connections from now on and wakes the thread in [`Listener::accept`].
    pub(crate) fn close(&self) {
        // Shutting a listening socket down wakes its accept with an error, on Linux.
        let both = rustix::net::Shutdown::Both;
        let _ = match self {
            Self::Unix { listener, .. } => rustix::net::shutdown(listener, both),
            Self::Tcp(listener) => rustix::net::shutdown(listener, both),
        };
        if let Self::Unix { path, identity: ours, .. } = self
            && ours.is_some()
            && identity(path) == *ours
        {
            // What stays behind is stale, which the next server mends.
            let _ = fs::remove_file(path);
        }
    }
}

/// Listens at `path`, for those whom [`MODE`] names from the first moment on.
fn listen_at(path: &Path) -> io::Result<UnixListener> {
    let stream = SocketType::STREAM;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, stream, SocketFlags::CLOEXEC, None)?;
    // What it is called by then has its mode. Where a socket has none the umask alone decides.
    let _ = fchmod(&socket, MODE);
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    // As many as the system lets wait.
    listen(&socket, i32::MAX)?;
    Ok(UnixListener::from(socket))
}

/// Device and inode of what is at `path`.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

fn remove_stale(path: &Path, failed: impl Fn(io::Error) -> NbdError) -> Result<(), NbdError> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found.map_err(&failed)?,
    };
    if !found.file_type().is_socket() {
        return Err(NbdError::NotASocket { path: path.to_owned() });
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(NbdError::InUse { path: path.to_owned() }),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Listen, Listener, PATH_BYTES_MAX};
    use crate::error::{ListenError, NbdError};
    use std::path::PathBuf;
    use std::{env, fs, process};

    fn parse(text: &str) -> Result<Listen, ListenError> {
        Listen::parse(text)
    }

    #[test]
    fn addresses_read_back() {
        for text in ["unix:/run/x.sock", "tcp:127.0.0.1:10809", "tcp:[::1]:9", "tcp:nas.lan:0"] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        assert_eq!(parse("tcp:nas").unwrap().to_string(), "tcp:nas:10809");
        assert_eq!(parse("tcp:[::1]").unwrap().to_string(), "tcp:[::1]:10809");
    }

    #[test]
    fn what_is_no_address_says_why() {
        for text in ["10809", "http://x", "", "nbd:x"] {
            assert!(matches!(parse(text), Err(ListenError::UnknownScheme { .. })), "{text}");
        }
        assert_eq!(parse("unix:"), Err(ListenError::NoPath));
        for text in ["tcp:", "tcp::10809", "tcp:[]:1"] {
            assert_eq!(parse(text), Err(ListenError::NoHost));
        }
        for port in ["65536", "x", "", "1:2", "-1"] {
            let expected = Err(ListenError::BadPort { port: port.to_owned() });
            assert_eq!(parse(&format!("tcp:h:{port}")), expected);
        }
    }

    #[test]
    fn uris_are_those_of_the_nbd_specification() {
        let unix = parse("unix:/srv/my store/nbd.sock").unwrap();
        assert_eq!(unix.uri("disk0"), "nbd+unix:///disk0?socket=/srv/my%20store/nbd.sock");
        assert_eq!(parse("tcp:[::1]:7").unwrap().uri("a b?"), "nbd://[::1]:7/a%20b%3F");
    }

    #[test]
    fn only_loopback_and_unix_are_for_this_machine_alone() {
        for near in ["unix:/x", "tcp:127.0.0.1:1", "tcp:[::1]:1", "tcp:[::ffff:127.0.0.1]:1"] {
            assert!(parse(near).unwrap().is_loopback(), "{near}");
        }
        for far in ["tcp:0.0.0.0:1", "tcp:[::]:1", "tcp:192.168.1.4:1"] {
            assert!(!parse(far).unwrap().is_loopback(), "{far}");
        }
    }

    fn socket_path(name: &str) -> PathBuf {
        env::temp_dir().join(format!("tamis-listen-{}-{name}", process::id()))
    }

    #[test]
    fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let path = socket_path("stale");
        let address = Listen::Unix(path.clone());
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let (live, _) = Listener::bind(&address).unwrap();
        assert!(matches!(Listener::bind(&address), Err(NbdError::InUse { .. })));
        live.close();
        assert!(!path.exists());
    }

    #[test]
    fn a_path_that_no_client_can_name_is_told_from_others() {
        let bind = |length: usize| {
            let mut path = socket_path("long").into_os_string();
            path.push("-".repeat(length - path.len()));
            Listener::bind(&Listen::Unix(path.into()))
        };
        bind(PATH_BYTES_MAX).unwrap().0.close();
        let refused = bind(PATH_BYTES_MAX + 1).unwrap_err();
        assert!(matches!(refused, NbdError::PathTooLong { .. }), "{refused}");
        assert!(refused.to_string().contains("choose another"), "{refused}");
    }

    #[test]
    fn a_file_that_is_no_socket_is_left_alone() {
        let path = socket_path("file");
        fs::write(&path, "precious").unwrap();
        let bound = Listener::bind(&Listen::Unix(path.clone()));
        assert!(matches!(bound, Err(NbdError::NotASocket { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"precious");
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_socket_that_took_our_place_is_not_removed() {
        let path = socket_path("successor");
        let (ours, _) = Listener::bind(&Listen::Unix(path.clone())).unwrap();
        fs::remove_file(&path).unwrap();
        let (theirs, _) = Listener::bind(&Listen::Unix(path.clone())).unwrap();
        ours.close();
        assert!(path.exists());
        theirs.close();
    }

    #[test]
    fn port_0_becomes_the_port_that_was_free() {
        let (listener, address) = Listener::bind(&parse("tcp:127.0.0.1:0").unwrap()).unwrap();
        assert!(!address.to_string().ends_with(":0"));
        listener.close();
        assert!(listener.accept().is_err());
    }
}
