//! Where a replica is reached: `unix:PATH`, or `tcp:HOST:PORT` of this machine.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;

/// An address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A unix socket.
    Unix(PathBuf),
    /// A port of this machine.
    Tcp(SocketAddr),
}

/// A text that is no address of a replica.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AddressError {
    /// It has another form.
    #[error("{0:?} is no address of a replica: write unix:PATH or tcp:127.0.0.1:PORT")]
    Form(String),
    /// Others could read and change what goes there.
    #[error(
        "{0} is not of this machine, and what goes to a replica is not encrypted yet: use a unix \
         socket, or a port of 127.0.0.1 with a tunnel behind it"
    )]
    Elsewhere(SocketAddr),
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let form = || AddressError::Form(text.to_owned());
        match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(path.into())),
            Some(("tcp", address)) => {
                let address: SocketAddr = address.parse().map_err(|_| form())?;
                match address.ip().is_loopback() {
                    true => Ok(Self::Tcp(address)),
                    false => Err(AddressError::Elsewhere(address)),
                }
            }
            _ => Err(form()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Address, AddressError};

    #[test]
    fn addresses_of_this_machine_and_no_others() {
        for text in ["unix:/run/b.sock", "tcp:127.0.0.1:7000", "tcp:[::1]:7000"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for text in ["", "unix:", "tcp:7000", "tcp:localhost:1", "/run/b.sock"] {
            assert!(matches!(text.parse::<Address>(), Err(AddressError::Form(_))), "{text}");
        }
        let elsewhere = "tcp:10.0.0.1:7000".parse::<Address>();
        assert!(matches!(elsewhere, Err(AddressError::Elsewhere(_))));
    }
}
