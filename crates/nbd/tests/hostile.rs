//! Clients that break the rules: each gets the error that the protocol prescribes, or is cut off,
//! and nobody else notices.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use nbd::wire::option::{OPT_EXPORT_NAME, OPT_GO, OPT_INFO, OPT_LIST, REP_ACK, REP_ERR_POLICY};
use nbd::wire::{
    COMMAND_DF, COMMAND_FAST_ZERO, COMMAND_FUA, COMMAND_NO_HOLE, COMMAND_REQ_ONE, Command, Request,
};
use nbd::{Notice, Notices, ServerOptions};
use support::{Answer, Peer, Store, request, string};

const MIB: u64 = 1 << 20;
const SIZE_BYTES: u64 = 64 * MIB;
const PERM: u32 = 1;
const INVALID: u32 = 22;
const NO_SPACE: u32 = 28;
const OVERFLOW: u32 = 75;
const SHUTDOWN: u32 = 108;

/// A request and the error that it gets.
type Case = (Request, u32);

fn illegal() -> Vec<Case> {
    let at = |command, offset_bytes, length_bytes| request(command, 0, offset_bytes, length_bytes);
    let flagged = |command, flags| request(command, flags, 0, 4096);
    let mut cases = vec![
        (at(Command::Unknown(8), 0, 0), INVALID),
        (at(Command::Unknown(u16::MAX), 0, u32::MAX), INVALID),
        (flagged(Command::Read, COMMAND_NO_HOLE), INVALID),
        (flagged(Command::Read, 1 << 15), INVALID),
        (flagged(Command::Write, COMMAND_NO_HOLE), INVALID),
        (flagged(Command::Write, COMMAND_DF), INVALID),
        (flagged(Command::Trim, COMMAND_FAST_ZERO), INVALID),
        (flagged(Command::WriteZeroes, COMMAND_REQ_ONE), INVALID),
        (flagged(Command::Cache, 1 << 5), INVALID),
        (at(Command::Flush, 0, 4096), INVALID),
        (at(Command::Flush, 4096, 0), INVALID),
        (at(Command::Read, 0, (32 << 20) + 512), INVALID),
        (at(Command::Write, 0, (32 << 20) + 512), INVALID),
        (at(Command::Read, 0, u32::MAX), INVALID),
    ];
    let ends = [(Command::Read, INVALID), (Command::Trim, INVALID), (Command::Cache, INVALID)];
    let fills = [(Command::Write, NO_SPACE), (Command::WriteZeroes, NO_SPACE)];
    for (command, beyond) in ends.into_iter().chain(fills) {
        cases.push((at(command, SIZE_BYTES, 512), beyond));
        cases.push((at(command, SIZE_BYTES - 512, 1024), beyond));
        cases.push((at(command, SIZE_BYTES - 1, 2), beyond));
        cases.push((at(command, u64::MAX - 511, 512), beyond));
    }
    cases
}

fn check(peer: &mut Peer<impl Read + Write>, cases: &[Case]) {
    for (request, errno) in cases {
        let payload = vec![0xaa; request.payload_bytes()];
        let answer = peer.ask(request, &payload);
        assert_eq!(answer.errno(), *errno, "{request:?} was answered with {answer:?}");
    }
}

/// On a machine that is busy a server that stops may have cut us off before it hears us.
fn is_refused_or_cut_off(peer: &mut Peer<UnixStream>, request: &Request) -> bool {
    let mut bytes = Vec::new();
    request.encode(&mut bytes);
    bytes.resize(bytes.len() + request.payload_bytes(), 0xaa);
    let mut answer = [0; 16];
    let asked = peer.stream.write_all(&bytes);
    match asked.and_then(|()| peer.stream.read_exact(&mut answer)) {
        Ok(()) => answer[4..8] == SHUTDOWN.to_be_bytes(),
        Err(_) => true,
    }
}

#[test]
fn illegal_requests_get_the_prescribed_error_and_change_nothing() {
    let (_store, server) = Store::serving(&[("disk", SIZE_BYTES)]);
    let mut peer = Peer::simple(&server, "disk");
    check(&mut peer, &illegal());
    check(
        &mut peer,
        &[
            (request(Command::Read, COMMAND_DF, 0, 4096), INVALID),
            (request(Command::BlockStatus, 0, 0, 4096), INVALID),
        ],
    );
    assert!(peer.read(0, 1 << 20).iter().all(|byte| *byte == 0));
}

#[test]
fn errors_are_structured_where_replies_are() {
    let (_store, server) = Store::serving(&[("disk", SIZE_BYTES)]);
    let mut peer = Peer::structured(&server, "disk");
    check(&mut peer, &illegal());
    check(
        &mut peer,
        &[
            (request(Command::Read, COMMAND_DF, 0, (32 << 20) + 512), OVERFLOW),
            (request(Command::BlockStatus, 0, 0, 0), INVALID),
            (request(Command::BlockStatus, 0, SIZE_BYTES, 512), INVALID),
            (request(Command::BlockStatus, COMMAND_DF, 0, 512), INVALID),
        ],
    );
}

#[test]
fn a_read_only_export_refuses_what_would_change_it() {
    let (_store, server) = Store::serving(&[("ro", SIZE_BYTES)]);
    let mut peer = Peer::simple(&server, "ro");
    for command in [Command::Write, Command::Trim, Command::WriteZeroes] {
        check(&mut peer, &[(request(command, 0, 0, 4096), PERM)]);
        check(&mut peer, &[(request(command, COMMAND_FUA, SIZE_BYTES, 1), PERM)]);
    }
    check(&mut peer, &[(request(Command::Flush, 0, 0, 0), 0)]);
    assert_eq!(peer.read(0, 4096), [0; 4096]);
}

#[test]
fn requests_for_nothing_do_nothing() {
    let (_store, server) = Store::serving(&[("disk", SIZE_BYTES)]);
    let commands =
        [Command::Read, Command::Write, Command::Trim, Command::Cache, Command::WriteZeroes];
    for mut peer in [Peer::simple(&server, "disk"), Peer::structured(&server, "disk")] {
        for command in commands {
            check(&mut peer, &[(request(command, COMMAND_FUA, 4096, 0), 0)]);
        }
    }
}

/// libnbd takes an answer to a write that it is still sending for a broken server.
#[test]
fn a_refused_write_is_answered_behind_its_payload() {
    let (_store, server) = Store::serving(&[("disk", SIZE_BYTES)]);
    let mut peer = Peer::simple(&server, "disk");
    let mut header = Vec::new();
    request(Command::Write, 0, SIZE_BYTES - 1, 1 << 20).encode(&mut header);
    peer.send(&header);
    peer.stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert!(peer.stream.read(&mut [0]).is_err());
    peer.stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    peer.send(&[0; 1 << 20]);
    assert_eq!(peer.answer().errno(), NO_SPACE);
}

#[test]
fn after_nonsense_the_connection_is_closed() {
    let (_store, server) = Store::serving(&[("disk", SIZE_BYTES)]);
    let mut peer = Peer::simple(&server, "disk");
    peer.send(&[0x5a; 28]);
    assert!(peer.is_closed());

    let mut peer = Peer::simple(&server, "disk");
    let mut endless = Vec::new();
    request(Command::Write, 0, 0, u32::MAX).encode(&mut endless);
    peer.send(&endless);
    assert!(peer.is_closed());

    let mut peer = Peer::unix(&server);
    peer.greet();
    peer.send(b"GET / HTTP/1.1\r\nHost: nbd\r\n\r\n");
    assert!(peer.is_closed());
}

#[test]
fn requests_sent_before_negotiation_has_ended_are_served() {
    let (_store, server) = Store::serving(&[("disk", SIZE_BYTES)]);
    let mut peer = Peer::unix(&server);
    let mut all = b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\x04disk".to_vec();
    request(Command::Write, 0, 512, 512).encode(&mut all);
    all.extend_from_slice(&[0xbb; 512]);
    request(Command::Read, 0, 512, 512).encode(&mut all);
    request(Command::Disconnect, 0, 0, 0).encode(&mut all);
    peer.send(&all);
    assert_eq!(peer.receive(18 + 10).len(), 28);
    assert_eq!(peer.answer().errno(), 0);
    assert_eq!(peer.answer().errno(), 0);
    assert_eq!(peer.receive(512), [0xbb; 512]);
    assert!(peer.is_closed());
}

#[test]
fn a_client_that_vanishes_inside_a_write_leaves_nothing_behind() {
    let (_store, server) = Store::serving(&[("disk", SIZE_BYTES)]);
    // Together they claim many times what the write buffer holds.
    for _ in 0..40 {
        let mut peer = Peer::simple(&server, "disk");
        let mut half = Vec::new();
        request(Command::Write, 0, 0, 8 << 20).encode(&mut half);
        half.resize(64 << 10, 0xdd);
        peer.send(&half);
        peer.stream.shutdown(Shutdown::Both).unwrap();
    }
    let mut peer = Peer::simple(&server, "disk");
    assert!(peer.read(0, 8 << 20).iter().all(|byte| *byte == 0));
    let write = request(Command::Write, 0, 0, 8 << 20);
    check(&mut peer, &[(write, 0)]);
    assert!(peer.read(0, 8 << 20).iter().all(|byte| *byte == 0xaa));
}

#[test]
fn a_client_that_does_not_read_is_not_read_from_and_harms_nobody() {
    let (_store, server) = Store::serving(&[("disk", SIZE_BYTES)]);
    let mut greedy = Peer::simple(&server, "disk");
    let mut reads = Vec::new();
    for _ in 0..1000 {
        request(Command::Read, 0, 0, 1 << 20).encode(&mut reads);
    }
    greedy.stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    // Four megabytes of requests: more than any buffer on the way holds.
    let sent = (0..150).take_while(|_| greedy.stream.write_all(&reads).is_ok()).count();
    assert!(sent < 150);

    let mut modest = Peer::simple(&server, "disk");
    assert_eq!(modest.read(0, 4096), [0; 4096]);

    // The greedy one can be served as soon as it reads.
    assert_eq!(greedy.answer().errno(), 0);
    assert!(greedy.receive(1 << 20).iter().all(|byte| *byte == 0));

    // New requests are refused while what is in flight is given its time; then it is cut off.
    let stopping = thread::spawn(move || server.stop());
    thread::sleep(Duration::from_millis(100));
    assert!(is_refused_or_cut_off(&mut modest, &request(Command::Read, 0, 0, 512)));
    assert!(is_refused_or_cut_off(&mut modest, &request(Command::Write, 0, 0, 512)));
    // It ends although the greedy one never reads.
    stopping.join().unwrap();
    assert!(modest.is_closed());
}

#[test]
fn a_silent_client_loses_its_place() {
    let options =
        ServerOptions { handshake_time_max: Duration::from_millis(300), ..Default::default() };
    let (_store, server) = Store::serving_with(&[("disk", SIZE_BYTES)], options);
    let mut serving = Peer::simple(&server, "disk");
    let begun = Instant::now();
    let mut silent = Peer::unix(&server);
    let mut slow = Peer::unix(&server);
    silent.greet();
    slow.greet();
    // One byte at a time does not help.
    while slow.stream.write_all(b"I").is_ok() && begun.elapsed() < Duration::from_secs(5) {
        thread::sleep(Duration::from_millis(50));
    }
    assert!(silent.is_closed());
    assert!((300..2000).contains(&begun.elapsed().as_millis()));
    // The deadline is that of negotiation alone.
    assert_eq!(serving.read(0, 512), [0; 512]);
}

/// What a server tells its operator.
fn heard_notices() -> (Notices, Receiver<Notice>) {
    let (said, heard) = channel();
    let said = Mutex::new(said);
    let hear = move |notice: &Notice, _| drop(said.lock().unwrap().send(notice.clone()));
    (Notices::to(hear), heard)
}

#[test]
fn one_connection_too_many_is_told_so_and_a_place_comes_back() {
    let (notices, heard) = heard_notices();
    let options = ServerOptions { connections_max: 2, notices, ..Default::default() };
    let (_store, server) = Store::serving_with(&[("disk", SIZE_BYTES)], options);
    let first = Peer::simple(&server, "disk");
    let mut second = Peer::simple(&server, "disk");
    let mut third = Peer::unix(&server);
    third.greet();
    let choice = [&string("disk"), [0, 0].as_slice()].concat();
    third.option(OPT_GO, &choice);
    let (kind, sentence) = third.option_reply();
    assert_eq!(kind, REP_ERR_POLICY);
    let sentence = String::from_utf8(sentence).unwrap();
    assert!(sentence.contains("all the 2 connections"), "{sentence}");
    assert_eq!(heard.recv().unwrap(), Notice::Full { connections_max: 2 });
    // This option has no reply that says no.
    let mut by_name = Peer::unix(&server);
    by_name.greet();
    by_name.option(OPT_EXPORT_NAME, b"disk");
    assert!(by_name.is_closed());
    // Who only asks what there is needs no place.
    third.option(OPT_INFO, &choice);
    assert_eq!(third.last_option_reply(), REP_ACK);
    drop(first);
    loop {
        third.option(OPT_GO, &choice);
        match third.last_option_reply() {
            REP_ACK => break,
            refused => assert_eq!(refused, REP_ERR_POLICY),
        }
    }
    assert_eq!((second.read(0, 512), third.read(0, 512)), (vec![0; 512], vec![0; 512]));
}

#[test]
fn clients_that_choose_nothing_keep_nobody_out() {
    let (notices, heard) = heard_notices();
    let handshake_time_max = Duration::from_secs(3600);
    let options = ServerOptions {
        connections_max: 1,
        half_open_max: 2,
        handshake_time_max,
        notices,
        ..Default::default()
    };
    let (_store, server) = Store::serving_with(&[("disk", SIZE_BYTES)], options);
    let mut working = Peer::simple(&server, "disk");
    let mut silent: Vec<_> = (0..3)
        .map(|_| {
            let mut peer = Peer::unix(&server);
            peer.greet();
            peer
        })
        .collect();
    assert!(silent[0].is_closed());
    assert_eq!(heard.recv().unwrap(), Notice::HalfOpenDropped { half_open_max: 2 });
    assert_eq!(working.read(0, 512), [0; 512]);
    drop(working);
    while server.connections() > 2 {
        thread::sleep(Duration::from_millis(1));
    }
    let mut honest = Peer::simple(&server, "disk");
    assert_eq!(honest.read(0, 512), [0; 512]);
    assert!(silent[1].is_closed());
    silent[2].option(OPT_LIST, b"");
    assert_eq!(silent[2].last_option_reply(), REP_ACK);
}

#[test]
fn a_volume_deleted_under_its_client_is_gone() {
    let (store, server) = Store::serving(&[("disk", SIZE_BYTES), ("other", SIZE_BYTES)]);
    let mut peer = Peer::simple(&server, "disk");
    let mut other = Peer::simple(&server, "other");
    let mut told = Peer::structured(&server, "disk");
    store.client.delete_volume("disk").unwrap();
    let Answer::Chunk { payload, .. } = told.ask(&request(Command::Read, 0, 0, 512), b"") else {
        panic!("a simple reply")
    };
    assert!(payload.ends_with(b"volume disk has been deleted"), "{payload:?}");
    check(&mut peer, &[(request(Command::Read, 0, 0, 512), SHUTDOWN)]);
    check(&mut peer, &[(request(Command::Write, 0, 0, 512), SHUTDOWN)]);
    assert_eq!(other.read(0, 512), [0; 512]);
    let mut late = Peer::unix(&server);
    late.greet();
    late.option(7, &[&string("disk"), [0, 0].as_slice()].concat());
    assert_eq!(late.last_option_reply(), 0x8000_0006);
}
