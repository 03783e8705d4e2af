//! A client that sends bytes and reads lines.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use memcached_door::{Address, MemcachedOptions, MemcachedServer};

use crate::model_host::ModelHost;

/// After this a server that does not answer is taken for hung.
const PATIENCE: Duration = Duration::from_secs(60);

/// A door at a free port.
pub(crate) fn serve(host: &ModelHost, options: MemcachedOptions) -> MemcachedServer {
    let listen = vec![Address::Tcp(([127, 0, 0, 1], 0).into())];
    MemcachedServer::start(host.clone(), MemcachedOptions { listen, ..options }).unwrap()
}

pub(crate) struct Client(pub(crate) TcpStream);

impl Client {
    pub(crate) fn of(server: &MemcachedServer) -> Self {
        let Address::Tcp(address) = &server.addresses()[0] else { panic!("it is a TCP address") };
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self(stream)
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).unwrap();
    }

    /// Reads as much as is expected, which must be that.
    pub(crate) fn expect(&mut self, expected: impl AsRef<[u8]>) {
        let expected = expected.as_ref();
        let mut answer = vec![0; expected.len()];
        self.0.read_exact(&mut answer).unwrap();
        let text = String::from_utf8_lossy;
        assert!(answer == expected, "{:.300} is not {:.300}", text(&answer), text(expected));
    }

    pub(crate) fn say(&mut self, bytes: impl AsRef<[u8]>, expected: impl AsRef<[u8]>) {
        self.send(bytes);
        self.expect(expected);
    }

    /// Reads until the server closes the connection.
    pub(crate) fn read_to_end(&mut self) -> String {
        let mut answer = Vec::new();
        if let Err(error) = self.0.read_to_end(&mut answer) {
            // A connection that is closed while the server has unread bytes is reset.
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        }
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// One figure of `stats`.
    pub(crate) fn figure(&mut self, name: &str) -> String {
        self.send("stats\r\n");
        let mut answer = Vec::new();
        let mut byte = [0];
        while !answer.ends_with(b"END\r\n") {
            self.0.read_exact(&mut byte).unwrap();
            answer.push(byte[0]);
        }
        let text = String::from_utf8(answer).unwrap();
        let mut lines = text.lines();
        let found = lines
            .find_map(|line| line.strip_prefix("STAT ")?.strip_prefix(name)?.strip_prefix(' '));
        found.unwrap_or_else(|| panic!("{text} has no {name}")).to_owned()
    }
}
