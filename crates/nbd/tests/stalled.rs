//! Clients that stop in the middle, of reading or of sending: nobody else waits for them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::{ErrorKind, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nbd::wire::{COMMAND_FUA, Command, Request};
use nbd::{Listen, Server, ServerOptions};
use support::{Answer, Peer, Store, request};

const MIB: u64 = 1 << 20;
const SIZE_BYTES: u64 = 64 * MIB;
/// All memory that a store of 64 MiB has for reads goes into the reply of one.
const LONG_READ_BYTES: u32 = 32 << 20;
/// More than the write buffer of such a store.
const LONG_WRITE_BYTES: u32 = 32 << 20;
/// What has come of it before the rest does not.
const BEGINNING: usize = (1 << 20) + 300;
/// Longer than what a connection may read without memory for reads.
const READ_BYTES: u32 = 1 << 20;

/// A server that gives no stalled client up, however long a busy machine takes.
fn patient() -> ServerOptions {
    ServerOptions { stalled_time_max: Duration::MAX, ..ServerOptions::default() }
}

fn ask(peer: &mut Peer<UnixStream>, request: &Request) {
    let mut bytes = Vec::new();
    request.encode(&mut bytes);
    peer.send(&bytes);
}

fn ask_for(peer: &mut Peer<UnixStream>, length_bytes: u32) {
    ask(peer, &request(Command::Read, 0, 0, length_bytes));
}

fn hears_nothing(peer: &mut Peer<UnixStream>) -> bool {
    peer.stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let read = peer.stream.read(&mut [0]);
    peer.stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// A client whose long reply is ready, and which takes the beginning of it.
fn one_that_does_not_read(server: &Server) -> Peer<UnixStream> {
    let mut peer = Peer::simple(server, "disk");
    ask_for(&mut peer, LONG_READ_BYTES);
    assert_eq!(peer.answer().errno(), 0);
    peer
}

#[test]
fn a_reply_takes_memory_until_it_has_been_sent() {
    let (_store, server) = Store::serving_with(&[("disk", SIZE_BYTES)], patient());
    let mut greedy = one_that_does_not_read(&server);
    let mut other = Peer::simple(&server, "disk");
    ask_for(&mut other, READ_BYTES);
    assert!(hears_nothing(&mut other), "the long reply is not counted any more");
    greedy.receive(LONG_READ_BYTES as usize);
    assert_eq!(other.answer().errno(), 0);
    other.receive(READ_BYTES as usize);
}

#[test]
fn short_reads_do_not_wait_for_who_does_not_read() {
    let (_store, server) = Store::serving_with(&[("disk", SIZE_BYTES)], patient());
    let mut greedy = one_that_does_not_read(&server);
    let mut other = Peer::simple(&server, "disk");
    for length_bytes in [4 << 10, 128 << 10] {
        assert!(other.read(MIB, length_bytes).iter().all(|byte| *byte == 0));
    }
    greedy.receive(LONG_READ_BYTES as usize);
}

#[test]
fn who_does_not_read_keeps_its_place_until_others_wait_for_the_memory() {
    let stalled_time_max = Duration::from_millis(10);
    let options = ServerOptions { stalled_time_max, ..Default::default() };
    let (_store, server) = Store::serving_with(&[("disk", SIZE_BYTES)], options);
    let mut patient = one_that_does_not_read(&server);
    // It is looked at every second.
    thread::sleep(Duration::from_millis(2500));
    patient.receive(LONG_READ_BYTES as usize);

    let mut greedy = one_that_does_not_read(&server);
    ask_for(&mut patient, READ_BYTES);
    assert_eq!(patient.answer().errno(), 0);
    patient.receive(READ_BYTES as usize);
    let mut rest = Vec::new();
    // Cut off: what the socket held, and no more.
    let _ = greedy.stream.read_to_end(&mut rest);
    assert!(rest.len() < LONG_READ_BYTES as usize);
}

/// Somebody else's writes are answered soon.
fn assert_others_write(server: &Server) {
    let mut other = Peer::simple(server, "other");
    let begun = Instant::now();
    for at in 0..8 {
        let write = request(Command::Write, 0, at * MIB, 4096);
        assert_eq!(other.ask(&write, &[9; 4096]).errno(), 0);
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

/// Pairs of requests: a write that fills a twelfth of the write buffer, and a read of some of it.
const WRITES_READ_BACK: u64 = 24;
/// Reads whose replies a socket does not hold.
const READS_IN_FRONT: u64 = 2;
/// A read of these that is not taken leaves the connection its share of the memory for reads.
const READ_IN_FRONT_BYTES: u32 = 128 << 10;

/// What reads back what it has just written, and takes none of its replies. Cookies of reads are
/// odd.
fn requests_of_one_that_reads_back() -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..READS_IN_FRONT {
        let read = request(Command::Read, 0, 63 * MIB, READ_IN_FRONT_BYTES);
        Request { cookie: u64::MAX, ..read }.encode(&mut bytes);
    }
    for at in 0..WRITES_READ_BACK {
        let write = request(Command::Write, 0, at * MIB, MIB as u32);
        Request { cookie: 2 * at, ..write }.encode(&mut bytes);
        bytes.resize(bytes.len() + MIB as usize, at as u8 + 1);
        let read = request(Command::Read, 0, at * MIB, 4096);
        Request { cookie: 2 * at + 1, ..read }.encode(&mut bytes);
    }
    bytes
}

#[test]
fn replies_that_are_not_taken_do_not_hold_the_write_buffer() {
    let (_store, server) =
        Store::serving_with(&[("disk", SIZE_BYTES), ("other", SIZE_BYTES)], patient());
    let mut greedy = Peer::simple(&server, "disk");
    let mut sender = Peer { stream: greedy.stream.try_clone().unwrap() };
    let sends = thread::spawn(move || sender.send(&requests_of_one_that_reads_back()));
    // Until it could hold all of it.
    thread::sleep(Duration::from_millis(500));
    assert_others_write(&server);
    sends.join().unwrap();
    for _ in 0..READS_IN_FRONT + 2 * WRITES_READ_BACK {
        let Answer::Simple { errno: 0, cookie } = greedy.answer() else { panic!("it failed") };
        let (length_bytes, byte) = match cookie {
            u64::MAX => (READ_IN_FRONT_BYTES, 0),
            cookie if cookie % 2 == 1 => (4096, cookie as u8 / 2 + 1),
            _ => (0, 0),
        };
        assert!(greedy.receive(length_bytes as usize).iter().all(|read| *read == byte), "{cookie}");
    }
}

/// The header of a long write and the beginning of its payload.
fn one_that_does_not_send(server: &Server, offset_bytes: u64) -> (Peer<UnixStream>, Vec<u8>) {
    let mut peer = Peer::simple(server, "disk");
    let write = request(Command::Write, COMMAND_FUA, offset_bytes, LONG_WRITE_BYTES);
    ask(&mut peer, &write);
    let fill = |at: usize| u8::try_from(at / 512 % 251).unwrap();
    let payload: Vec<u8> = (0..write.payload_bytes()).map(fill).collect();
    peer.send(&payload[..BEGINNING]);
    (peer, payload)
}

#[test]
fn nobody_waits_for_one_that_does_not_send() {
    let (_store, server) = Store::serving(&[("disk", SIZE_BYTES), ("other", SIZE_BYTES)]);
    // In the middle of a sector, of a chunk, and of a piece.
    let offset_bytes = MIB - 512;
    let (mut stalled, payload) = one_that_does_not_send(&server, offset_bytes);
    // A second or two until the server gives back what the stalled one has not filled.
    assert_others_write(&server);
    let mut at = BEGINNING;
    // Live, but slow.
    for length in [1, 511, 60 << 10, 2 << 20] {
        thread::sleep(Duration::from_millis(50));
        stalled.send(&payload[at..at + length]);
        at += length;
    }
    thread::sleep(Duration::from_millis(2500));
    stalled.send(&payload[at..]);
    assert_eq!(stalled.answer().errno(), 0);
    for (part, expected) in payload.chunks(1 << 20).enumerate() {
        let at = offset_bytes + part as u64 * MIB;
        assert!(stalled.read(at, expected.len() as u32) == expected, "MiB {part}");
    }
}

/// Clients that stall at once.
const STALLED: u64 = 100;
/// What a socket holds of a payload that its server does not take.
const FITS_A_SOCKET: usize = 70 << 10;
/// Ten times what the grace is, and a third of what it would be if each had its own.
const HONEST_TIME_MAX: Duration = Duration::from_secs(30);

#[test]
fn a_hundred_that_do_not_send_share_one_grace() {
    let volumes = [("disk", SIZE_BYTES), ("other", SIZE_BYTES)];
    let options = ServerOptions { connections_max: 2 * STALLED as usize, ..patient() };
    let (_store, server) = Store::serving_with(&volumes, options);
    let stalled: Vec<_> = (0..STALLED)
        .map(|_| {
            let mut peer = Peer::simple(&server, "disk");
            ask(&mut peer, &request(Command::Write, 0, 0, LONG_WRITE_BYTES));
            peer.send(&vec![7; FITS_A_SOCKET]);
            peer
        })
        .collect();
    let begun = Instant::now();
    let mut honest = Peer::simple(&server, "other");
    for at in 0..8 {
        let write = request(Command::Write, 0, at * MIB, 4096);
        assert_eq!(honest.ask(&write, &[9; 4096]).errno(), 0);
    }
    assert!(begun.elapsed() < HONEST_TIME_MAX, "{:?}", begun.elapsed());
    // Nobody was cut: what stalled goes on.
    let mut first = stalled.into_iter().next().unwrap();
    first.send(&vec![7; LONG_WRITE_BYTES as usize - FITS_A_SOCKET]);
    assert_eq!(first.answer().errno(), 0);
}

/// Clients that stall in replies, of which the memory for reads holds one at a time.
const STALLED_REPLIES: usize = 40;

#[test]
fn those_that_do_not_read_share_one_grace() {
    let options = ServerOptions {
        connections_max: 2 * STALLED_REPLIES,
        stalled_time_max: Duration::from_secs(2),
        ..ServerOptions::default()
    };
    let (_store, server) = Store::serving_with(&[("disk", SIZE_BYTES)], options);
    let stalled: Vec<_> = (0..STALLED_REPLIES)
        .map(|_| {
            let mut peer = Peer::simple(&server, "disk");
            ask_for(&mut peer, LONG_READ_BYTES);
            peer
        })
        .collect();
    let begun = Instant::now();
    let mut honest = Peer::simple(&server, "disk");
    honest.stream.set_read_timeout(None).unwrap();
    ask_for(&mut honest, LONG_READ_BYTES);
    assert_eq!(honest.answer().errno(), 0);
    honest.receive(LONG_READ_BYTES as usize);
    // With two seconds each it were eighty.
    assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
    drop(stalled);
}

#[test]
fn a_write_that_fails_in_the_middle_is_answered_behind_its_payload() {
    let (store, server) = Store::serving(&[("disk", SIZE_BYTES), ("other", SIZE_BYTES)]);
    let (mut stalled, payload) = one_that_does_not_send(&server, 0);
    thread::sleep(Duration::from_millis(2500));
    store.client.resize_volume("disk", 4 * MIB).unwrap();
    stalled.send(&payload[BEGINNING..payload.len() - 512]);
    assert!(hears_nothing(&mut stalled));
    stalled.send(&payload[payload.len() - 512..]);
    assert_eq!(stalled.answer().errno(), 28);
    assert_eq!(stalled.read(0, 64 << 10), payload[..64 << 10]);
}

/// Tells others to end, however this one does.
struct Tells<'a>(&'a AtomicBool);

impl Drop for Tells<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Writes a chunk again and again, two at a time, until told.
fn write_on(mut peer: Peer<UnixStream>, at: u64, told: &AtomicBool) {
    let mut bytes = Vec::new();
    request(Command::Write, 0, at * MIB, 4096).encode(&mut bytes);
    bytes.resize(bytes.len() + 4096, 5);
    peer.send(&bytes);
    while !told.load(Ordering::Acquire) {
        peer.send(&bytes);
        assert_eq!(peer.answer().errno(), 0);
    }
    assert_eq!(peer.answer().errno(), 0);
}

#[test]
fn a_long_write_does_not_wait_for_as_long_as_others_write() {
    let (_store, server) = Store::serving(&[("disk", SIZE_BYTES), ("other", SIZE_BYTES)]);
    let mut peer = Peer::simple(&server, "disk");
    let told = AtomicBool::new(false);
    thread::scope(|scope| {
        for at in 0..2 {
            let (other, told) = (Peer::simple(&server, "other"), &told);
            scope.spawn(move || write_on(other, at, told));
        }
        thread::sleep(Duration::from_millis(100));
        let _tells = Tells(&told);
        for byte in 1..4 {
            let write = request(Command::Write, 0, 0, LONG_WRITE_BYTES);
            assert_eq!(peer.ask(&write, &vec![byte; LONG_WRITE_BYTES as usize]).errno(), 0);
        }
    });
    assert!(peer.read(0, 64 << 10).iter().all(|byte| *byte == 3));
}

/// How a client ends a connection on which it was not answered.
#[derive(Copy, Clone, Debug, PartialEq)]
enum Ending {
    /// As one does that gives it up, to send the same over another.
    Closed,
    /// It sends no more and waits for its answers.
    HalfClosed,
    /// The same, as the protocol has it.
    GoodBye,
}

/// Sends a write while there is no write buffer, and ends; tells whether it was carried out once
/// there is, `pause` later.
fn is_carried_out(tcp: bool, ending: Ending, pause: Duration) -> bool {
    let (store, near) = Store::serving(&[("disk", SIZE_BYTES)]);
    let listen = vec![Listen::parse("tcp:127.0.0.1:0").unwrap()];
    let far = Server::start(store.client.clone(), ServerOptions { listen, ..Default::default() });
    let far = far.unwrap();
    let held = store.client.buffer(0, LONG_WRITE_BYTES as usize);
    let mut bytes = Vec::new();
    request(Command::Write, 0, 0, 4096).encode(&mut bytes);
    bytes.resize(bytes.len() + 4096, 7);
    if ending == Ending::GoodBye {
        request(Command::Disconnect, 0, 0, 0).encode(&mut bytes);
    }
    let half_closed: Box<dyn Read> = if tcp {
        let mut peer = Peer::tcp(&far.addresses()[0]);
        peer.greet();
        peer.go("disk");
        peer.send(&bytes);
        peer.stream.shutdown(Shutdown::Write).unwrap();
        Box::new(peer.stream)
    } else {
        let mut peer = Peer::simple(&near, "disk");
        peer.send(&bytes);
        peer.stream.shutdown(Shutdown::Write).unwrap();
        Box::new(peer.stream)
    };
    let mut waiting = (ending != Ending::Closed).then_some(half_closed);
    thread::sleep(pause);
    drop(held);
    let mut answer = Vec::new();
    if let Some(stream) = &mut waiting {
        stream.read_to_end(&mut answer).unwrap();
    }
    while near.connections() + far.connections() > 0 {
        thread::sleep(Duration::from_millis(5));
    }
    let is_there = Peer::simple(&near, "disk").read(0, 4096) == [7; 4096];
    assert!(waiting.is_none() || is_there != answer.is_empty(), "{tcp}, {ending:?}");
    is_there
}

/// On a busy machine its reader may come to it only when there is a buffer again: then it never
/// waited, and is asked once more with a longer pause.
fn is_dropped(tcp: bool, ending: Ending) -> bool {
    let mut pauses_ms = (0..8).map(|doubled| 100 << doubled);
    pauses_ms.any(|pause_ms| !is_carried_out(tcp, ending, Duration::from_millis(pause_ms)))
}

#[test]
fn what_waited_for_the_write_buffer_is_not_carried_out_for_who_has_given_up() {
    assert!(is_dropped(false, Ending::Closed), "over a unix socket");
    assert!(is_dropped(true, Ending::Closed), "over TCP");
}

#[test]
fn who_only_sends_no_more_is_answered() {
    let pause = Duration::from_millis(300);
    for ending in [Ending::HalfClosed, Ending::GoodBye] {
        assert!(is_carried_out(false, ending, pause), "{ending:?}");
    }
    assert!(is_carried_out(true, Ending::GoodBye, pause), "over TCP");
    // It looks like one that was closed.
    assert!(is_dropped(true, Ending::HalfClosed), "over TCP");
}
