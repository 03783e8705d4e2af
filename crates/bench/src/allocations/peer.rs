//! A client of the server in this process: requests in flight by the dozen, and buffers that it
//! keeps, so that whatever is allocated while it works is the server's.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use nbd::wire::{Command, Fields, Request, SIMPLE_REPLY_BYTES};

use crate::connecting::{connect, disconnect};
use crate::source::{CHUNK_BYTES, fill};

/// One 4-KiB operation on the chunk of this number.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Ask {
    /// Writes the content of number `content`.
    Write { chunk: u64, content: u64 },
    /// Reads it.
    Read { chunk: u64 },
    /// Flushes all.
    Flush,
}

/// A connection in transmission.
pub(crate) struct Peer {
    stream: UnixStream,
    out: Vec<u8>,
    chunk: Vec<u8>,
    answer: Vec<u8>,
}

impl Peer {
    /// Chooses `export` of the server at `socket`.
    pub(crate) fn connect(socket: &Path, export: &str) -> io::Result<Self> {
        let (stream, _) = connect(socket, export)?;
        let (chunk, answer) = (vec![0; CHUNK_BYTES], vec![0; SIMPLE_REPLY_BYTES + CHUNK_BYTES]);
        Ok(Self { stream, out: Vec::new(), chunk, answer })
    }

    /// Asks for all of `asked` at once, and waits for all answers.
    pub(crate) fn exchange(&mut self, asked: &[Ask]) -> io::Result<()> {
        self.out.clear();
        for (cookie, ask) in (0..).zip(asked) {
            let (command, chunk, length_bytes) = match *ask {
                Ask::Write { chunk, .. } => (Command::Write, chunk, CHUNK_BYTES as u32),
                Ask::Read { chunk } => (Command::Read, chunk, CHUNK_BYTES as u32),
                Ask::Flush => (Command::Flush, 0, 0),
            };
            let offset_bytes = chunk * CHUNK_BYTES as u64;
            Request { flags: 0, command, cookie, offset_bytes, length_bytes }.encode(&mut self.out);
            if let Ask::Write { content, .. } = *ask {
                fill(content, &mut self.chunk);
                self.out.extend_from_slice(&self.chunk);
            }
        }
        self.stream.write_all(&self.out)?;
        // All of one call are of one kind, so that answers may come in any order.
        asked.iter().try_for_each(|ask| self.take_answer(matches!(ask, Ask::Read { .. })))
    }

    /// Says that no request follows.
    pub(crate) fn disconnect(mut self) -> io::Result<()> {
        disconnect(&mut self.stream)
    }

    fn take_answer(&mut self, has_bytes: bool) -> io::Result<()> {
        let length = if has_bytes { self.answer.len() } else { SIMPLE_REPLY_BYTES };
        let (head, bytes) = self.answer[..length].split_at_mut(SIMPLE_REPLY_BYTES);
        self.stream.read_exact(head)?;
        let mut fields = Fields::new(head);
        match (fields.u32(), fields.u32()) {
            (_, Some(0)) => self.stream.read_exact(bytes),
            (_, errno) => {
                let sentence = format!("the server answered with error {}", errno.unwrap_or(0));
                Err(io::Error::other(sentence))
            }
        }
    }
}
