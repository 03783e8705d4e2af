//! Requests of any bytes: what clients send that do not know of sectors.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::Write;
use std::thread;

use nbd::Server;
use nbd::wire::option::{INFO_BLOCK_SIZE, OPT_EXPORT_NAME, OPT_INFO, REP_ACK, REP_INFO};
use nbd::wire::{Command, PAYLOAD_BYTES_MAX};
use support::{Peer, Store, request, string};

const SECTOR: u64 = 512;
const SECTORS: u64 = 96;
/// Writers of slices of the same sectors; one more writes whole sectors.
const SLICERS: u64 = 5;
const SLICE: u64 = SECTOR / SLICERS;
const WRITES: u64 = 400;

struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(1).wrapping_mul(6_364_136_223_846_793_005);
        (self.0 >> 33) % below
    }
}

/// What a writer writes next: bytes that nobody else does. Of every third sector all belongs to the
/// one that writes sectors, of the others each has a slice, and the last one the rest too.
fn next_range(writer: u64, dice: &mut Dice) -> (u64, u64) {
    let sector = 3 * dice.roll(SECTORS / 3);
    if writer == SLICERS {
        return (sector * SECTOR, SECTOR);
    }
    let slice = (sector + 1 + dice.roll(2)) * SECTOR + writer * SLICE;
    let length = if writer == SLICERS - 1 { SECTOR - writer * SLICE } else { SLICE };
    let skip = dice.roll(length);
    (slice + skip, 1 + dice.roll(length - skip))
}

/// One writer's requests, all in flight together; returns what it wrote and where.
fn write_many(server: &Server, writer: u64, round: u64) -> Vec<Option<u8>> {
    let mut peer = Peer::simple(server, "disk");
    let mut sender = peer.stream.try_clone().unwrap();
    let mut written = vec![None; usize::try_from(SECTORS * SECTOR).unwrap()];
    let (mut bytes, mut dice) = (Vec::new(), Dice(round << 32 | writer));
    for number in 0..WRITES {
        let (offset_bytes, length) = next_range(writer, &mut dice);
        let length_bytes = u32::try_from(length).unwrap();
        let zeroes = number % 7 == 0;
        let fill = if zeroes { 0 } else { u8::try_from(1 + dice.roll(255)).unwrap() };
        let command = if zeroes { Command::WriteZeroes } else { Command::Write };
        request(command, 0, offset_bytes, length_bytes).encode(&mut bytes);
        if !zeroes {
            bytes.resize(bytes.len() + length_bytes as usize, fill);
        }
        let start = usize::try_from(offset_bytes).unwrap();
        written[start..start + length_bytes as usize].fill(Some(fill));
    }
    let sending = thread::spawn(move || sender.write_all(&bytes).unwrap());
    (0..WRITES).for_each(|_| assert_eq!(peer.answer().errno(), 0));
    sending.join().unwrap();
    assert_eq!(peer.ask(&request(Command::Flush, 0, 0, 0), b"").errno(), 0);
    written
}

/// Over nothing, and over what is stored.
#[test]
fn writers_of_the_same_sectors_keep_each_their_bytes() {
    let (store, server) = Store::serving(&[("disk", SECTORS * SECTOR)]);
    let mut model = vec![0; usize::try_from(SECTORS * SECTOR).unwrap()];
    for round in 0..3 {
        let written: Vec<_> = thread::scope(|scope| {
            let write = |writer| {
                let server = &server;
                scope.spawn(move || write_many(server, writer, round))
            };
            let writers: Vec<_> = (0..=SLICERS).map(write).collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        for (at, byte) in model.iter_mut().enumerate() {
            let mut of = written.iter().filter_map(|written| written[at]);
            *byte = of.next().unwrap_or(*byte);
            assert_eq!(of.next(), None, "byte {at} has one writer");
        }
        let mut peer = Peer::simple(&server, "disk");
        assert!(peer.read(0, u32::try_from(model.len()).unwrap()) == model, "round {round}");
        assert!(store.left_of("disk") == model, "what is flushed stays, in round {round}");
        for at in 0..512 {
            let piece = peer.read(at, 1000);
            assert!(piece == model[usize::try_from(at).unwrap()..][..1000], "at {at}");
        }
    }
}

#[test]
fn a_client_that_names_its_export_only_writes_any_byte() {
    let (_store, server) = Store::serving(&[("disk", 8192)]);
    let mut peer = Peer::unix(&server);
    peer.greet();
    peer.option(OPT_EXPORT_NAME, b"disk");
    peer.receive(10);
    assert_eq!(peer.ask(&request(Command::Write, 0, 0, 2), b"hi").errno(), 0);
    assert_eq!(peer.ask(&request(Command::Write, 0, 8190, 2), b"ho").errno(), 0);
    assert_eq!(peer.ask(&request(Command::Trim, 0, 1, 8190), b"").errno(), 0);
    assert_eq!(peer.read(0, 3), b"h\0\0");
    assert_eq!(peer.read(8189, 3), b"\0\0o");
}

/// `libnbd`, and with it `nbdfuse`, asks, and sends nothing smaller than what it was told.
#[test]
fn a_client_that_asks_is_told_that_every_byte_may_be_written() {
    let (_store, server) = Store::serving(&[("disk", 8192)]);
    let mut peer = Peer::unix(&server);
    peer.greet();
    let asked = [&string("disk"), [0, 1].as_slice(), &INFO_BLOCK_SIZE.to_be_bytes()].concat();
    peer.option(OPT_INFO, &asked);
    let mut sizes = None;
    loop {
        let (kind, payload) = peer.option_reply();
        match kind {
            REP_INFO if payload[..2] == INFO_BLOCK_SIZE.to_be_bytes() => {
                sizes = Some(payload[2..].to_vec());
            }
            REP_INFO => {}
            last => break assert_eq!(last, REP_ACK),
        }
    }
    let expected = [1, 4096, PAYLOAD_BYTES_MAX].map(u32::to_be_bytes);
    assert_eq!(sizes.unwrap(), expected.as_flattened());
}
