//! What well-behaved clients see: the bytes that they wrote, on every kind of connection.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::{Read, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use engine::{NewVolume, VolumeKind};
use nbd::wire::option::{OPT_ABORT, OPT_GO, OPT_LIST, REP_ACK, REP_ERR_UNKNOWN, REP_SERVER};
use nbd::wire::{
    COMMAND_DF, COMMAND_FUA, COMMAND_NO_HOLE, COMMAND_REQ_ONE, Command, Fields, Request,
};
use nbd::{Listen, NbdError, Server, ServerOptions};
use proptest::prelude::{ProptestConfig, Strategy, prop_oneof, proptest};
use support::{Answer, Peer, Store, request};

const SECTORS: u64 = 512;
const SIZE_BYTES: u64 = SECTORS * 512;

#[derive(Clone, Debug)]
enum Step {
    Write { fill: u8, durable: bool },
    Read { whole: bool },
    Trim,
    Zero,
    Flush,
    Status { one: bool },
}

fn steps() -> impl Strategy<Value = Vec<(Step, u64, u64)>> {
    let step = prop_oneof![
        4 => (1_u8..4, proptest::bool::ANY)
            .prop_map(|(fill, durable)| Step::Write { fill, durable }),
        4 => proptest::bool::ANY.prop_map(|whole| Step::Read { whole }),
        1 => proptest::strategy::Just(Step::Trim),
        1 => proptest::strategy::Just(Step::Zero),
        1 => proptest::strategy::Just(Step::Flush),
        2 => proptest::bool::ANY.prop_map(|one| Step::Status { one }),
    ];
    // Ranges that are whole chunks now and then.
    let range = prop_oneof![
        (0..SECTORS - 128, 1_u64..128),
        (0..SECTORS / 8 - 16, 1_u64..16).prop_map(|(chunk, chunks)| (8 * chunk, 8 * chunks)),
    ];
    let sized = (step, range).prop_map(|(step, (sector, sectors))| (step, sector, sectors));
    proptest::collection::vec(sized, 1..60)
}

/// The bytes of a structured read.
fn read_structured<S: Read + Write>(
    peer: &mut Peer<S>,
    flags: u16,
    offset_bytes: u64,
    length_bytes: u32,
) -> Vec<u8> {
    let mut answer = peer.ask(&request(Command::Read, flags, offset_bytes, length_bytes), b"");
    let mut bytes = vec![0xcc; length_bytes as usize];
    for chunks in 1.. {
        let Answer::Chunk { done, kind, payload, .. } = answer else { panic!("a simple reply") };
        let mut fields = Fields::new(&payload);
        let start = usize::try_from(fields.u64().unwrap() - offset_bytes).unwrap();
        match kind {
            1 => bytes[start..start + payload.len() - 8].copy_from_slice(&payload[8..]),
            2 => bytes[start..start + fields.u32().unwrap() as usize].fill(0),
            _ => panic!("a chunk of kind {kind}"),
        }
        if done {
            assert!(chunks == 1 || flags & COMMAND_DF == 0);
            return bytes;
        }
        answer = peer.answer();
    }
    bytes
}

/// Extents as (length, state).
fn status<S: Read + Write>(
    peer: &mut Peer<S>,
    flags: u16,
    offset_bytes: u64,
    length_bytes: u32,
) -> Vec<(usize, u32)> {
    let answer = peer.ask(&request(Command::BlockStatus, flags, offset_bytes, length_bytes), b"");
    let Answer::Chunk { done: true, kind: 5, payload, .. } = answer else { panic!("{answer:?}") };
    let mut fields = Fields::new(&payload);
    assert_eq!(fields.u32(), Some(1));
    let mut extents = Vec::new();
    while let Some(length) = fields.u32() {
        extents.push((length as usize, fields.u32().unwrap()));
    }
    extents
}

fn carry_out<S: Read + Write>(
    peer: &mut Peer<S>,
    model: &mut [u8],
    step: &Step,
    sector: u64,
    sectors: u64,
) {
    let (offset_bytes, length) = (sector * 512, usize::try_from(sectors * 512).unwrap());
    let length_bytes = u32::try_from(length).unwrap();
    let start = usize::try_from(offset_bytes).unwrap();
    let range = &mut model[start..start + length];
    let mut change = |command, flags, payload: &[u8]| {
        let answer = peer.ask(&request(command, flags, offset_bytes, length_bytes), payload);
        assert_eq!(answer, Answer::Simple { errno: 0, cookie: 77 });
    };
    match *step {
        Step::Write { fill, durable } => {
            range.fill(fill);
            change(Command::Write, if durable { COMMAND_FUA } else { 0 }, range);
        }
        Step::Trim => {
            range.fill(0);
            change(Command::Trim, 0, b"");
        }
        Step::Zero => {
            range.fill(0);
            change(Command::WriteZeroes, COMMAND_NO_HOLE, b"");
        }
        Step::Flush => {
            let flushed = peer.ask(&request(Command::Flush, 0, 0, 0), b"");
            assert_eq!(flushed.errno(), 0);
        }
        Step::Read { whole } => {
            let flags = if whole { COMMAND_DF } else { 0 };
            assert_eq!(read_structured(peer, flags, offset_bytes, length_bytes), range);
        }
        Step::Status { one } => {
            let flags = if one { COMMAND_REQ_ONE } else { 0 };
            let extents = status(peer, flags, offset_bytes, length_bytes);
            let mut at = 0;
            for (length, state) in &extents {
                // A hole is zeros; zeros need not be a hole.
                assert!(matches!(state, 0 | 3));
                assert!(*state == 0 || range[at..at + length].iter().all(|byte| *byte == 0));
                at += length;
            }
            assert!(!extents.is_empty() && at <= range.len() && (!one || extents.len() == 1));
        }
    }
}

#[test]
fn a_volume_is_what_was_written_to_it() {
    let (store, server) = Store::serving(&[]);
    let number = AtomicU32::new(0);
    proptest!(ProptestConfig::with_cases(24), |(steps in steps())| {
        let name = format!("disk{}", number.fetch_add(1, Ordering::Relaxed));
        store.client.create_volume(&name, SIZE_BYTES, false).unwrap();
        let mut peer = Peer::structured(&server, &name);
        let mut model = vec![0; usize::try_from(SIZE_BYTES).unwrap()];
        for (step, sector, sectors) in &steps {
            carry_out(&mut peer, &mut model, step, *sector, *sectors);
        }
        let mut plain = Peer::simple(&server, &name);
        assert_eq!(plain.read(0, u32::try_from(SIZE_BYTES).unwrap()), model);
    });
}

#[test]
fn what_was_answered_as_durable_outlives_a_loss_of_power() {
    let (store, server) = Store::serving(&[("disk", SIZE_BYTES)]);
    let mut peer = Peer::simple(&server, "disk");
    let mut model = vec![0; usize::try_from(SIZE_BYTES).unwrap()];
    // Whole chunks, and some sectors; by FUA, and by a flush behind them.
    let kinds = [(Command::Write, 7), (Command::Trim, 0), (Command::WriteZeroes, 0)];
    for (offset_bytes, length) in [(4096, 8192), (512, 1024)] {
        for flags in [COMMAND_FUA, 0] {
            for (command, fill) in kinds {
                let asked = request(command, flags, offset_bytes, length);
                let payload = vec![fill; asked.payload_bytes()];
                assert_eq!(peer.ask(&asked, &payload).errno(), 0);
                if flags == 0 {
                    let flush = request(Command::Flush, 0, 0, 0);
                    assert_eq!(peer.ask(&flush, b"").errno(), 0);
                }
                model[offset_bytes as usize..][..length as usize].fill(fill);
                assert!(store.left_of("disk") == model, "{command:?}, {flags}, {offset_bytes}");
                model.fill(9);
                let all = request(Command::Write, COMMAND_FUA, 0, SIZE_BYTES as u32);
                assert_eq!(peer.ask(&all, &model).errno(), 0);
            }
        }
    }
}

#[test]
fn pipelined_requests_are_all_answered() {
    let (_store, server) = Store::serving(&[("disk", 16 << 20)]);
    let mut peer = Peer::simple(&server, "disk");
    let mut sender = peer.stream.try_clone().unwrap();
    const REQUESTS: u64 = 2000;
    let sending = thread::spawn(move || {
        let mut bytes = Vec::new();
        for cookie in 0..REQUESTS {
            let command = if cookie % 3 == 0 { Command::Write } else { Command::Trim };
            let mut request = request(command, 0, cookie * 4096, 4096);
            request.cookie = cookie;
            request.encode(&mut bytes);
            bytes.resize(bytes.len() + request.payload_bytes(), 0x11);
        }
        sender.write_all(&bytes).unwrap();
    });
    let mut answered = vec![false; usize::try_from(REQUESTS).unwrap()];
    for _ in 0..REQUESTS {
        let Answer::Simple { errno: 0, cookie } = peer.answer() else { panic!("an error") };
        assert!(!std::mem::replace(&mut answered[usize::try_from(cookie).unwrap()], true));
    }
    sending.join().unwrap();
    assert_eq!(peer.read(3 * 4096, 4096), [0x11; 4096]);
    assert_eq!(peer.read(4 * 4096, 4096), [0; 4096]);
}

/// Writes of sectors meet in chunks, in groups of the write buffer and in reads of what is stored,
/// while others of the same chunks are under way.
#[test]
fn overlapping_writes_in_flight_count_in_the_order_in_which_they_came() {
    const WRITES: u64 = 3000;
    const SECTORS: u64 = 40_960;
    let (_store, server) = Store::serving(&[("disk", 512 * SECTORS)]);
    let mut model = vec![0; usize::try_from(512 * SECTORS).unwrap()];
    // Twice: over nothing, and over what is stored.
    for round in 0..2 {
        let mut peer = Peer::simple(&server, "disk");
        let mut sender = peer.stream.try_clone().unwrap();
        let mut bytes = Vec::new();
        let mut dice = round;
        let mut roll = |below: u64| {
            dice = u64::wrapping_add(dice, 1).wrapping_mul(6_364_136_223_846_793_005);
            (dice >> 33) % below
        };
        for _ in 0..WRITES {
            let sectors = 1 + roll(32);
            let offset_bytes = 512 * roll(SECTORS - sectors);
            let length_bytes = u32::try_from(512 * sectors).unwrap();
            request(Command::Write, 0, offset_bytes, length_bytes).encode(&mut bytes);
            // Of no two writes the same, so that they fill containers and are read from the disk.
            let payload: Vec<u8> =
                (0..64 * sectors).flat_map(|_| roll(1 << 31).to_le_bytes()).collect();
            let start = usize::try_from(offset_bytes).unwrap();
            model[start..start + payload.len()].copy_from_slice(&payload);
            bytes.extend_from_slice(&payload);
        }
        let sending = thread::spawn(move || sender.write_all(&bytes).unwrap());
        (0..WRITES).for_each(|_| assert_eq!(peer.answer().errno(), 0));
        sending.join().unwrap();
        assert_eq!(peer.ask(&request(Command::Flush, 0, 0, 0), b"").errno(), 0);
        for (block, expected) in model.chunks(4096).enumerate() {
            let read = peer.read(block as u64 * 4096, 4096);
            assert!(read == expected, "block {block} is not what was written in round {round}");
        }
    }
}

#[test]
fn a_long_trim_ends_where_it_is_to_end() {
    let (_store, server) = Store::serving(&[("disk", 16 << 20)]);
    let mut peer = Peer::simple(&server, "disk");
    let write = request(Command::Write, 0, 6 << 20, 4 << 20);
    assert_eq!(peer.ask(&write, &[1; 4 << 20]).errno(), 0);
    // Ends inside a leaf of the map, with mapped chunks behind it.
    assert_eq!(peer.ask(&request(Command::Trim, 0, 0, 8 << 20), b"").errno(), 0);
    assert_eq!(peer.ask(&request(Command::Flush, 0, 0, 0), b"").errno(), 0);
    assert!(peer.read(0, 8 << 20).iter().all(|byte| *byte == 0));
    assert!(peer.read(8 << 20, 2 << 20).iter().all(|byte| *byte == 1));
}

#[test]
fn what_one_connection_wrote_every_other_reads() {
    let (store, server) = Store::serving(&[("disk", SIZE_BYTES)]);
    let options = ServerOptions {
        listen: vec![Listen::parse("tcp:127.0.0.1:0").unwrap()],
        ..Default::default()
    };
    let over_tcp = Server::start(store.client.clone(), options).unwrap();
    let mut near = Peer::simple(&server, "disk");
    let mut far = Peer::tcp(&over_tcp.addresses()[0]);
    far.greet();
    // The only volume is the default one.
    far.go("");
    for round in 1..20 {
        let write = request(Command::Write, 0, 4096, 1024);
        assert_eq!(far.ask(&write, &[round; 1024]).errno(), 0);
        assert_eq!(near.read(4096, 1024), [round; 1024]);
    }
    assert_eq!(near.ask(&request(Command::Flush, 0, 0, 0), b"").errno(), 0);
}

#[test]
fn the_list_follows_the_volumes() {
    let (store, server) = Store::serving(&[("a", SIZE_BYTES)]);
    let mut peer = Peer::unix(&server);
    peer.greet();
    let mut list = || {
        let mut names = Vec::new();
        peer.option(OPT_LIST, b"");
        loop {
            match peer.option_reply() {
                (REP_SERVER, data) => names.push(String::from_utf8(data[4..].to_vec()).unwrap()),
                (kind, _) => break assert_eq!(kind, REP_ACK),
            }
        }
        names
    };
    assert_eq!(list(), ["a"]);
    store.client.create_volume("b", SIZE_BYTES, false).unwrap();
    assert_eq!(list(), ["a", "b"]);
    store.client.delete_volume("a").unwrap();
    assert_eq!(list(), ["b"]);
    peer.option(OPT_ABORT, b"");
    assert_eq!(peer.last_option_reply(), REP_ACK);
    assert!(peer.is_closed());
}

/// Not in the list, not by name, and not as the only volume.
#[test]
fn a_bucket_is_no_export() {
    let (store, server) = Store::serving(&[]);
    let (name, kind) = ("bucket".to_owned(), VolumeKind::Bucket);
    let new = NewVolume { name, size_bytes: SIZE_BYTES, kind, ..NewVolume::default() };
    store.client.ask(new).unwrap();
    let mut peer = Peer::unix(&server);
    peer.greet();
    peer.option(OPT_LIST, b"");
    assert_eq!(peer.last_option_reply(), REP_ACK);
    for name in ["bucket", ""] {
        let length_bytes = (name.len() as u32).to_be_bytes();
        peer.option(OPT_GO, &[&length_bytes, name.as_bytes(), &[0; 2]].concat());
        assert_eq!(peer.last_option_reply(), REP_ERR_UNKNOWN, "{name:?}");
    }
}

#[test]
fn a_volume_that_grows_can_be_written_where_it_grew() {
    let (store, server) = Store::serving(&[("disk", SIZE_BYTES)]);
    let mut peer = Peer::simple(&server, "disk");
    let beyond = request(Command::Write, 0, SIZE_BYTES, 512);
    assert_eq!(peer.ask(&beyond, &[1; 512]).errno(), 28);
    store.client.resize_volume("disk", 2 * SIZE_BYTES).unwrap();
    assert_eq!(peer.ask(&beyond, &[1; 512]).errno(), 0);
    assert_eq!(peer.read(SIZE_BYTES, 512), [1; 512]);
}

/// Of a client that is slow to take its replies: what was in flight is answered as it would have
/// been, what came later is neither answered nor carried out, and then the connection ends.
#[test]
fn requests_in_flight_at_a_stop_are_answered_and_later_ones_ignored() {
    const MIB: u32 = 1 << 20;
    const READS: u64 = 8;
    const SECTOR: usize = 512;
    let (store, server) = Store::serving(&[("disk", 16 << 20)]);
    let mut peer = Peer::simple(&server, "disk");
    let mut sender = peer.stream.try_clone().unwrap();
    let mut ask = |cookie, command, offset_bytes, length_bytes| {
        let mut bytes = Vec::new();
        let asked = Request { cookie, ..request(command, 0, offset_bytes, length_bytes) };
        asked.encode(&mut bytes);
        bytes.resize(bytes.len() + asked.payload_bytes(), cookie as u8);
        sender.write_all(&bytes)
    };
    for cookie in 0..READS {
        ask(cookie, Command::Write, cookie * u64::from(MIB), MIB).unwrap();
    }
    (0..READS).for_each(|_| assert_eq!(peer.answer().errno(), 0));
    for cookie in 0..READS {
        ask(100 + cookie, Command::Read, cookie * u64::from(MIB), MIB).unwrap();
    }
    // Of a reply that has begun more is owed than a socket holds, until it is taken.
    let mut answer = Some(peer.answer());
    let stopping = thread::spawn(move || server.stop());
    let late_at = READS * u64::from(MIB);
    let mut late = 0;
    while ask(0xff, Command::Write, late_at + late * SECTOR as u64, SECTOR as u32).is_ok() {
        late += 1;
        thread::sleep(Duration::from_millis(20));
    }
    let (mut read, mut written) = (0, 0);
    while let Some(Answer::Simple { errno, cookie }) = answer {
        assert_eq!(errno, 0, "request {cookie}");
        match cookie {
            0xff => written += 1,
            _ => {
                assert_eq!(cookie, 100 + read);
                assert!(peer.receive(MIB as usize) == vec![read as u8; MIB as usize]);
                read += 1;
            }
        }
        answer = peer.next_answer();
    }
    // Those for which there was no room yet came too late as well.
    assert!(read > 0 && late >= written + 10, "{read} read, {written} of {late} written");
    stopping.join().unwrap();
    let mut bytes = vec![0; late as usize * SECTOR];
    store
        .client
        .read_at(
            &store.client.open_volume("disk", engine::Opener::new("a test", 0)).unwrap(),
            late_at,
            &mut bytes,
        )
        .unwrap();
    let (answered, ignored) = bytes.split_at(written as usize * SECTOR);
    assert!(answered.iter().all(|byte| *byte == 0xff) && ignored.iter().all(|byte| *byte == 0));
}

#[test]
fn a_server_without_work_stops_at_once() {
    let (store, server) = Store::serving(&[("disk", SIZE_BYTES)]);
    let mut idle = Peer::simple(&server, "disk");
    let mut undecided = Peer::unix(&server);
    undecided.greet();
    let address = server.addresses()[0].clone();
    let begun = Instant::now();
    server.stop();
    assert!(begun.elapsed() < Duration::from_millis(500));
    assert!(idle.is_closed() && undecided.is_closed());
    // Its socket is gone, so the next one has the address to itself.
    let options = ServerOptions { listen: vec![address.clone()], ..Default::default() };
    let next = Server::start(store.client.clone(), options.clone()).unwrap();
    let refused = Server::start(store.client.clone(), options).unwrap_err();
    assert!(matches!(refused, NbdError::InUse { .. }));
    let mut peer = Peer::simple(&next, "disk");
    assert_eq!(peer.read(0, 512), [0; 512]);
}

/// Operators are told who has a volume open: by address, or by process, until it has gone.
#[test]
fn a_served_volume_says_who_has_it_open() {
    let (store, server) = Store::serving(&[("disk", SIZE_BYTES)]);
    let listen = vec![Listen::Tcp("127.0.0.1:0".to_owned())];
    let options = ServerOptions { listen, ..ServerOptions::default() };
    let beside = Server::start(store.client.clone(), options).unwrap();
    let whos = || {
        let opens = store.client.opens("disk").unwrap();
        assert!(opens.iter().all(|open| open.opener.since_unix_s > 0));
        opens.into_iter().map(|open| open.opener.who).collect::<Vec<_>>()
    };
    let mut by_tcp = Peer::tcp(&beside.addresses()[0]);
    let address = by_tcp.stream.local_addr().unwrap().to_string();
    by_tcp.greet();
    by_tcp.go("disk");
    assert_eq!(whos(), std::slice::from_ref(&address));
    let unix = Peer::simple(&server, "disk");
    assert_eq!(whos(), [address, format!("unix socket, pid {}", std::process::id())]);
    drop((by_tcp, unix));
    while !whos().is_empty() {
        thread::sleep(Duration::from_millis(1));
    }
    beside.stop();
    server.stop();
}
