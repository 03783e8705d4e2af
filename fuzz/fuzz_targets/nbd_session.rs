//! NBD after the handshake, by a real connection: whatever a client sends, and in whatever pieces,
//! what comes back are answers to what was asked, and then the end.
//!
//! The requests that were sent whole are each answered once; where what follows is none, or claims
//! a payload that nobody would throw away, the connection may end before. The next client is
//! served.
//!
//! The first byte chooses the volume, the kind of replies, and the pieces.
#![no_main]

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread;

use libfuzzer_sys::fuzz_target;
use nbd::wire::{
    CHUNK_DONE, Command, Fields, PAYLOAD_BYTES_MAX, REQUEST_BYTES, Request, SIMPLE_REPLY_MAGIC,
    STRUCTURED_REPLY_MAGIC,
};
use tamis_fuzz::input::Input;
use tamis_fuzz::served::{VOLUME_BYTES, served};

const REQUESTS_MAX: u64 = 64;
/// Sent of one payload; what is missing of it is taken from what follows.
const PAYLOAD_SENT_MAX: u32 = 64 << 10;
/// Payload that is refused is thrown away up to this length.
const DISCARDED_BYTES_MAX: usize = 2 * PAYLOAD_BYTES_MAX as usize;
const SECTOR_BYTES: u32 = 512;
const COMMANDS: [Command; 9] = [
    Command::Read,
    Command::Write,
    Command::Flush,
    Command::Trim,
    Command::Cache,
    Command::WriteZeroes,
    Command::BlockStatus,
    Command::Disconnect,
    Command::Unknown(8),
];

/// How what was sent ends.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum End {
    /// By itself, if need be in the middle of a request.
    Sent,
    /// The server goes, and what follows stays unread.
    Disconnect,
    /// The server hangs up.
    Nonsense,
}

/// Appends a request, mostly one that can be carried out; or bytes that are none.
fn ask(input: &mut Input<'_>, cookie: u64, out: &mut Vec<u8>) {
    let shape = input.byte();
    if shape >= 0xf8 {
        return out.extend_from_slice(input.bytes(usize::from(shape & 7) * 8));
    }
    let command = COMMANDS[usize::from(shape) % COMMANDS.len()];
    let flags = if shape & 0x40 == 0 { 0 } else { input.word() & 0x3f };
    let (offset_bytes, length_bytes) = match (command, input.byte()) {
        (Command::Flush, 0..0xf0) => (0, 0),
        (_, 0xf0..0xf4) => (u64::from(input.word()), u32::from(input.word())),
        (_, 0xf4..0xf8) => (u64::MAX - u64::from(input.word()), u32::MAX - u32::from(input.word())),
        (_, 0xf8..) => (0, PAYLOAD_BYTES_MAX - 1024 + u32::from(input.word())),
        (_, count) => {
            let sectors = (VOLUME_BYTES / u64::from(SECTOR_BYTES)) as usize;
            let offset_bytes = input.below(sectors) as u64 * u64::from(SECTOR_BYTES);
            (offset_bytes, u32::from(count) * SECTOR_BYTES)
        }
    };
    let request = Request { flags, command, cookie, offset_bytes, length_bytes };
    request.encode(out);
    if command == Command::Write {
        let sent_bytes = length_bytes.min(PAYLOAD_SENT_MAX) as usize;
        out.resize(out.len() + sent_bytes, input.byte());
    }
}

/// What the server finds in it.
fn asked(sent: &[u8]) -> (Vec<Request>, End) {
    let (mut requests, mut at) = (Vec::new(), 0);
    while let Some(head) = sent.get(at..).and_then(|rest| rest.first_chunk::<REQUEST_BYTES>()) {
        let Some(request) = Request::decode(head) else { return (requests, End::Nonsense) };
        let payload_bytes = request.payload_bytes();
        if payload_bytes > DISCARDED_BYTES_MAX {
            return (requests, End::Nonsense);
        }
        at += REQUEST_BYTES + payload_bytes;
        if request.command == Command::Disconnect {
            return (requests, End::Disconnect);
        }
        if at > sent.len() {
            break;
        }
        requests.push(request);
    }
    (requests, End::Sent)
}

/// Takes the front of an answer; its cookie, if it is the last one of its request.
fn answer(fields: &mut Fields<'_>, asked: &HashMap<u64, Request>) -> Option<Option<u64>> {
    match fields.u32()? {
        SIMPLE_REPLY_MAGIC => {
            let (errno, cookie) = (fields.u32()?, fields.u64()?);
            let request = asked.get(&cookie).expect("it answers what was asked");
            if request.command == Command::Read && errno == 0 {
                fields.bytes(request.length_bytes as usize)?;
            }
            Some(Some(cookie))
        }
        STRUCTURED_REPLY_MAGIC => {
            let (flags, _kind, cookie) = (fields.u16()?, fields.u16()?, fields.u64()?);
            let length_bytes = fields.u32()?;
            fields.bytes(length_bytes as usize)?;
            assert!(asked.contains_key(&cookie), "it answers what was asked");
            Some((flags & CHUNK_DONE != 0).then_some(cookie))
        }
        other => panic!("{other:#x} begins no answer"),
    }
}

fn check(received: &[u8], requests: Vec<Request>, end: End) {
    let count = requests.len();
    let mut waiting: HashMap<u64, Request> =
        requests.into_iter().map(|request| (request.cookie, request)).collect();
    if waiting.len() < count {
        // Bytes that passed for a request have a cookie twice: answers cannot be told apart.
        return;
    }
    let mut fields = Fields::new(received);
    while !fields.is_empty() {
        match answer(&mut fields, &waiting) {
            Some(Some(cookie)) => drop(waiting.remove(&cookie)),
            Some(None) => {}
            None => return assert!(end == End::Nonsense, "an answer is cut off"),
        }
    }
    assert!(waiting.is_empty() || end == End::Nonsense, "no answer to {waiting:?}");
}

/// Sends all of it, unless the server hangs up.
fn send(mut stream: &UnixStream, sent: &[u8], piece: usize) {
    if sent.chunks(piece).all(|part| stream.write_all(part).is_ok()) {
        let _ = stream.shutdown(Shutdown::Write);
    }
}

fuzz_target!(|input: &[u8]| {
    let mut input = Input::new(input);
    let shape = input.byte();
    let mut sent = Vec::new();
    for cookie in 0..REQUESTS_MAX {
        if input.is_empty() {
            break;
        }
        ask(&mut input, cookie, &mut sent);
    }
    let mut visit = served().visit(shape & 0xc0 == 0xc0, shape & 1 != 0);
    let piece = [1 << 20, 4096, 29, 1000][usize::from(shape >> 1 & 3)];
    let stream = visit.stream.try_clone().expect("there are file descriptors left");
    let mut received = Vec::new();
    let ended = thread::scope(|scope| {
        scope.spawn(|| send(&stream, &sent, piece));
        visit.stream.read_to_end(&mut received)
    });
    let (requests, end) = asked(&sent);
    if let Err(error) = ended {
        // What was not read when the server hung up resets the connection.
        assert!(end != End::Sent && error.kind() == ErrorKind::ConnectionReset, "{error}");
    }
    check(&received, requests, end);
    served().leave(visit);
});
