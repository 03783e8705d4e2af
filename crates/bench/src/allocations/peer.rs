//! A client of the server in this process: requests in flight by the dozen, and buffers that it
//! keeps, so that whatever is allocated while it works is the server's.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use nbd::wire::option::{OPT_GO, OptionHeader, REP_ACK};
use nbd::wire::{Command, Fields, Request, SIMPLE_REPLY_BYTES};

use crate::source::{CHUNK_BYTES, Chance};

/// What a server says first, and what we say to it.
const GREETING_BYTES: usize = 18;
const CLIENT_FLAGS: u32 = 3;
/// The front of an answer to an option: two words, what it is, and how long.
const OPTION_REPLY_BYTES: usize = 20;

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
        let mut stream = UnixStream::connect(socket)?;
        stream.read_exact(&mut [0; GREETING_BYTES])?;
        let name = export.as_bytes();
        // A length, the name, and how many facts are asked for.
        let mut out = CLIENT_FLAGS.to_be_bytes().to_vec();
        OptionHeader { option: OPT_GO, length_bytes: name.len() as u32 + 6 }.encode(&mut out);
        out.extend((name.len() as u32).to_be_bytes());
        out.extend(name);
        out.extend([0, 0]);
        stream.write_all(&out)?;
        while option_reply(&mut stream)? != REP_ACK {}
        let (chunk, answer) = (vec![0; CHUNK_BYTES], vec![0; SIMPLE_REPLY_BYTES + CHUNK_BYTES]);
        Ok(Self { stream, out, chunk, answer })
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
        self.out.clear();
        let (command, cookie, offset_bytes, length_bytes) = (Command::Disconnect, 0, 0, 0);
        Request { flags: 0, command, cookie, offset_bytes, length_bytes }.encode(&mut self.out);
        self.stream.write_all(&self.out)
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

/// What the server makes of an option; an error is one as well.
fn option_reply(stream: &mut UnixStream) -> io::Result<u32> {
    let mut head = [0; OPTION_REPLY_BYTES];
    stream.read_exact(&mut head)?;
    let mut fields = Fields::new(&head);
    let (kind, length) = (fields.u64().and(fields.u32()).and(fields.u32()), fields.u32());
    let kind = kind.filter(|kind| *kind < 1 << 31);
    let kind = kind.ok_or_else(|| io::Error::other("the server refused the volume"))?;
    let mut rest = vec![0; length.unwrap_or_default() as usize];
    stream.read_exact(&mut rest)?;
    Ok(kind)
}

/// Half noise that follows from `content`, half zeros.
fn fill(content: u64, chunk: &mut [u8]) {
    let mut chance = Chance::new(content.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let (noise, zeros) = chunk.split_at_mut(CHUNK_BYTES / 2);
    noise.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&chance.roll().to_le_bytes()));
    zeros.fill(0);
}
