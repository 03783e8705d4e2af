//! A server that does nothing, as fast as that can be done: what a client and the socket alone
//! allow and cost on this machine. No server can be much faster.
//!
//! A thread serves a connection: one receive takes whatever has come, one send answers all of it.
//! Zeros are read, and what is written is forgotten. It was nbdkit's plugin `null` before, which
//! receives and sends each request by itself, and which Tamis could be faster than.

use std::fs;
use std::io::{self, IoSlice, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};

use nbd::handshake::{Export, Exports, Handshake, NotServed, Step};
use nbd::wire::{
    CHUNK_DONE, Command, Errno, REQUEST_BYTES, Request, data_chunk_prefix, simple_reply,
};

use crate::failure::Failure;
use crate::fio::Target;
use crate::program::{socket_path, uri};

/// Received at once: all that a Unix socket holds by default.
const RECEIVED_BYTES: usize = 256 << 10;
/// Zeros that reads are answered with, again and again.
static ZEROS: [u8; 256 << 10] = [0; 256 << 10];
/// Slices sent at once; the kernel takes 1,024.
const SLICES_MAX: usize = 1024;

/// Servers of this kind that this process has started: each has a socket of its own.
static STARTED: AtomicU64 = AtomicU64::new(0);

/// It, and its socket.
pub(crate) struct Nothing {
    socket: PathBuf,
    stopped: Arc<AtomicBool>,
    listening: JoinHandle<()>,
}

impl Nothing {
    /// Serves so many bytes of nothing.
    pub(crate) fn start(size_bytes: u64) -> Result<Self, Failure> {
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let socket = socket_path(&format!("nothing{number}"));
        let listener = UnixListener::bind(&socket).map_err(Failure::file(&socket))?;
        let stopped = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stopped);
        let listen = move || accept(&listener, Volume { size_bytes }, &told);
        let listening = thread("nothing", listen).map_err(Failure::file(&socket))?;
        Ok(Self { socket, stopped, listening })
    }

    /// Where clients find it; its volume has no name.
    pub(crate) fn target(&self) -> Target {
        Target::Nbd { uri: uri(&self.socket, "") }
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Ends it; its connections end when their clients do.
    pub(crate) fn stop(self) -> Result<(), Failure> {
        self.stopped.store(true, Ordering::Relaxed);
        let woken = UnixStream::connect(&self.socket);
        woken.and_then(|_| fs::remove_file(&self.socket)).map_err(Failure::file(&self.socket))?;
        let ended = self.listening.join();
        ended.map_err(|_| Failure::NoSystem("the server that does nothing panicked".to_owned()))
    }
}

fn thread(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).spawn(run)
}

fn accept(listener: &UnixListener, volume: Volume, stopped: &AtomicBool) {
    for stream in listener.incoming().map_while(Result::ok) {
        if stopped.load(Ordering::Relaxed) {
            return;
        }
        // A client that gets no thread, or goes, reports that itself.
        let _ = thread("nothing", move || drop(Connection::new(stream, volume).serve()));
    }
}

/// What is served.
#[derive(Copy, Clone)]
struct Volume {
    size_bytes: u64,
}

impl Export for Volume {
    fn name(&self) -> String {
        String::new()
    }

    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn read_only(&self) -> bool {
        false
    }

    fn preferred_bytes(&self) -> u32 {
        4096
    }
}

impl Exports for Volume {
    type Export = Self;

    fn list(&self) -> Result<Vec<String>, NotServed> {
        Ok(vec![self.name()])
    }

    fn open(&self, _name: &str) -> Result<Self, NotServed> {
        Ok(*self)
    }
}

/// One client.
struct Connection {
    stream: UnixStream,
    volume: Volume,
    received: Vec<u8>,
    /// Of `received`, not looked at yet.
    filled_bytes: usize,
}

impl Connection {
    fn new(stream: UnixStream, volume: Volume) -> Self {
        Self { stream, volume, received: vec![0; RECEIVED_BYTES], filled_bytes: 0 }
    }

    fn serve(mut self) -> io::Result<()> {
        let Some(mut replies) = self.negotiate()? else { return Ok(()) };
        // The cookie of a write whose bytes are still to come, and how many.
        let (mut writing, mut left_bytes) = (None, 0);
        loop {
            let mut taken = 0;
            loop {
                let input = &self.received[taken..self.filled_bytes];
                let skipped = input.len().min(left_bytes);
                (taken, left_bytes) = (taken + skipped, left_bytes - skipped);
                if left_bytes > 0 {
                    break;
                }
                writing.take().iter().for_each(|cookie| replies.say(0, *cookie));
                let Some(bytes) = input[skipped..].first_chunk::<REQUEST_BYTES>() else { break };
                taken += bytes.len();
                let Some(request) = Request::decode(bytes) else { return Ok(()) };
                match request.command {
                    Command::Disconnect => return Ok(()),
                    Command::Write => {
                        (writing, left_bytes) = (Some(request.cookie), request.payload_bytes());
                    }
                    _ => replies.answer(&request),
                }
            }
            self.forget(taken);
            replies.send(&self.stream)?;
            self.receive()?;
        }
    }

    /// Until requests come; none if the client wants nothing.
    fn negotiate(&mut self) -> io::Result<Option<Replies>> {
        let mut said = Vec::new();
        let mut handshake = Handshake::begin(&mut said);
        loop {
            let input = &self.received[..self.filled_bytes];
            let (taken, next) = handshake.advance(input, &self.volume, false, &mut said);
            self.forget(taken);
            self.stream.write_all(&said)?;
            said.clear();
            match next {
                Step::Transmit(agreed) => return Ok(Some(Replies::new(agreed.structured))),
                Step::Close => return Ok(None),
                Step::Negotiate if taken == 0 => self.receive()?,
                Step::Negotiate => {}
            }
        }
    }

    fn forget(&mut self, taken_bytes: usize) {
        self.received.copy_within(taken_bytes..self.filled_bytes, 0);
        self.filled_bytes -= taken_bytes;
    }

    fn receive(&mut self) -> io::Result<()> {
        match self.stream.read(&mut self.received[self.filled_bytes..])? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            more => {
                self.filled_bytes += more;
                Ok(())
            }
        }
    }
}

/// Answers to be sent together.
struct Replies {
    structured: bool,
    /// Their heads, one after the other.
    heads: Vec<u8>,
    /// Zeros that stand behind so many bytes of the heads.
    zeros: Vec<(usize, usize)>,
}

impl Replies {
    fn new(structured: bool) -> Self {
        Self { structured, heads: Vec::new(), zeros: Vec::new() }
    }

    fn say(&mut self, errno: u32, cookie: u64) {
        self.heads.extend_from_slice(&simple_reply(errno, cookie));
    }

    fn answer(&mut self, request: &Request) {
        let &Request { command, cookie, offset_bytes, length_bytes, .. } = request;
        match command {
            Command::Read if self.structured => {
                let head = data_chunk_prefix(CHUNK_DONE, cookie, offset_bytes, length_bytes);
                self.heads.extend_from_slice(&head);
            }
            Command::BlockStatus | Command::Unknown(_) => self.say(Errno::Invalid as u32, cookie),
            _ => self.say(0, cookie),
        }
        if command == Command::Read {
            self.zeros.push((self.heads.len(), length_bytes as usize));
        }
    }

    fn send(&mut self, mut stream: &UnixStream) -> io::Result<()> {
        let (mut slices, mut sent_heads) = (Vec::new(), 0);
        for &(heads, zeros_bytes) in &self.zeros {
            slices.push(IoSlice::new(&self.heads[sent_heads..heads]));
            let (whole, rest) = (zeros_bytes / ZEROS.len(), zeros_bytes % ZEROS.len());
            slices.extend((0..whole).map(|_| IoSlice::new(&ZEROS)));
            slices.push(IoSlice::new(&ZEROS[..rest]));
            sent_heads = heads;
        }
        slices.push(IoSlice::new(&self.heads[sent_heads..]));
        let mut left = &mut slices[..];
        // Empty slices in front are dropped, so that nothing to send is nothing to do.
        IoSlice::advance_slices(&mut left, 0);
        while !left.is_empty() {
            let together = left.len().min(SLICES_MAX);
            let sent = stream.write_vectored(&left[..together])?;
            IoSlice::advance_slices(&mut left, sent);
        }
        self.heads.clear();
        self.zeros.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::Nothing;
    use crate::fio::Target;

    #[test]
    fn it_answers_reads_of_any_length_and_forgets_what_is_written() {
        let nothing = Nothing::start(8 << 20).unwrap();
        let Target::Nbd { uri } = nothing.target() else { panic!("it is served") };
        if Command::new("nbdcopy").arg("--version").output().is_ok() {
            let copied = |from: &str, to: &str| {
                let mut command = Command::new("nbdcopy");
                assert!(command.args(["--no-extents", from, to]).status().unwrap().success());
            };
            copied(&uri, "null:");
            copied(&uri, &uri);
        }
        nothing.stop().unwrap();
    }
}
