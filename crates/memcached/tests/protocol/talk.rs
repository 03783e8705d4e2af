//! A client of a connection, without a socket.

use memcached::model::ModelCache;
use memcached::{Connection, Limits, Next};

/// When the tests happen, in seconds since 1970.
pub(crate) const NOW_S: u64 = 1_700_000_000;

/// A connection with a cache of its own.
pub(crate) struct Client {
    pub(crate) connection: Connection<ModelCache>,
    pub(crate) cache: ModelCache,
    pub(crate) now_s: u64,
    pub(crate) is_closed: bool,
}

impl Client {
    pub(crate) fn new() -> Self {
        Client::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> Self {
        Client {
            connection: Connection::new(limits),
            cache: ModelCache::default(),
            now_s: NOW_S,
            is_closed: false,
        }
    }

    /// Sends bytes as one piece, and gives back all that is answered.
    pub(crate) fn say(&mut self, bytes: impl AsRef<[u8]>) -> String {
        String::from_utf8_lossy(&self.exchange(bytes.as_ref(), usize::MAX)).into_owned()
    }

    /// Sends bytes in pieces of `piece_bytes`.
    pub(crate) fn exchange(&mut self, bytes: &[u8], piece_bytes: usize) -> Vec<u8> {
        let mut answers = Vec::new();
        for mut piece in bytes.chunks(piece_bytes.min(bytes.len()).max(1)) {
            while !piece.is_empty() && !self.is_closed {
                let room = self.connection.room();
                let length = room.len().min(piece.len());
                room[..length].copy_from_slice(&piece[..length]);
                self.connection.received(length);
                piece = &piece[length..];
                self.run(&mut answers);
            }
        }
        answers
    }

    fn run(&mut self, answers: &mut Vec<u8>) {
        loop {
            match self.connection.run(&mut self.cache, self.now_s) {
                Next::Receive => return,
                Next::Send => self.drain(answers),
                Next::Close => {
                    self.is_closed = true;
                    return;
                }
            }
        }
    }

    pub(crate) fn drain(&mut self, answers: &mut Vec<u8>) {
        loop {
            let chunk = self.connection.chunk().unwrap();
            if chunk.is_empty() {
                return;
            }
            let length = chunk.len();
            answers.extend_from_slice(chunk);
            self.connection.sent(length);
        }
    }
}

/// Has a conversation with new clients: in one piece, byte by byte, and in threes. The answers are
/// the same.
pub(crate) fn talk(bytes: impl AsRef<[u8]>) -> String {
    let bytes = bytes.as_ref();
    let mut client = Client::new();
    let whole = client.exchange(bytes, usize::MAX);
    for piece_bytes in [1, 3] {
        let mut other = Client::new();
        let answers = other.exchange(bytes, piece_bytes);
        assert_eq!(
            String::from_utf8_lossy(&answers),
            String::from_utf8_lossy(&whole),
            "in pieces of {piece_bytes}"
        );
        assert_eq!(other.is_closed, client.is_closed);
    }
    String::from_utf8(whole).unwrap()
}

/// Holds each conversation of a table: line ends are `|`.
pub(crate) fn check(table: &[(&str, &str)]) {
    for (said, answered) in table {
        let answers = talk(said.replace('|', "\r\n"));
        assert_eq!(answers.replace("\r\n", "|"), *answered, "to {said}");
    }
}
