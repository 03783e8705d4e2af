//! Our client against the server that does nothing, and against a server of Tamis in this process.

use std::path::Path;
use std::time::Duration;

use engine::Options;
use nbd::{Listen, Server, ServerOptions};

use super::client::{self, ClientError, Door};
use super::load::{Durability, Load, Volume};
use super::rate::{Limit, Rate};
use super::{Doors, Row, in_process};
use crate::failure::Failure;
use crate::nothing::Nothing;
use crate::program::short_path;
use crate::samples::Samples;
use crate::store::{Store, alone};

const VOLUME_BYTES: u64 = 32 << 20;
/// So many bytes, however long that takes.
const LIMIT: Limit = Limit {
    volume_bytes: VOLUME_BYTES,
    time: Duration::MAX,
    bytes_max: VOLUME_BYTES / 4,
    verifies: true,
};

/// The rows, and what else a client may ask for.
fn loads() -> Vec<Load> {
    let mixed = Load { name: "mixed", read_percent: 70, ..Load::ALL[4] };
    let fua = Load { name: "FUA", depth: 8, durability: Durability::Fua, ..Load::ALL[4] };
    let large = Load { name: "large", read_percent: 50, depth: 16, ..Load::SEQUENTIAL_WRITE };
    let mut loads = Load::ALL.to_vec();
    loads.extend([mixed, fua, large]);
    loads
}

/// Why our client failed.
fn cause(run: Result<Rate, Failure>) -> ClientError {
    match run {
        Err(Failure::Client(error)) => *error.downcast().unwrap(),
        other => panic!("{other:?}"),
    }
}

/// As much as was asked for, and no more beyond than what is asked for at once and in flight.
fn check(load: Load, rate: Rate) {
    let blocks = LIMIT.bytes_max / u64::from(load.block_bytes);
    let most = blocks + load.connections * (2 * load.depth as u64 + 1);
    assert!((blocks..=most).contains(&rate.operations), "{}: {rate:?}", load.name);
}

#[test]
fn every_load_is_answered_by_the_server_that_does_nothing() {
    let nothing = Nothing::start(VOLUME_BYTES).unwrap();
    let door = Door { socket: nothing.socket(), export: "" };
    for (run, load) in (1..).zip(loads()) {
        let volume = Volume::new(VOLUME_BYTES);
        let limit = Limit { verifies: false, ..LIMIT };
        check(load, client::run(door, &volume, load, run, limit).unwrap());
    }
    nothing.stop().unwrap();
}

#[test]
fn a_server_that_forgets_what_was_written_is_found_out() {
    let nothing = Nothing::start(VOLUME_BYTES).unwrap();
    let door = Door { socket: nothing.socket(), export: "" };
    let volume = Volume::new(VOLUME_BYTES);
    client::run(door, &volume, Load::SEQUENTIAL_WRITE, 1, LIMIT).unwrap();
    let read = client::run(door, &volume, Load::ALL[1], 2, LIMIT);
    assert!(matches!(cause(read), ClientError::Differs { offset_bytes: 0 }));
    let smaller = Limit { volume_bytes: VOLUME_BYTES / 2, ..LIMIT };
    let other = client::run(door, &volume, Load::ALL[1], 3, smaller);
    assert!(matches!(cause(other), ClientError::OtherVolume { .. }));
    nothing.stop().unwrap();
}

#[test]
fn what_the_store_gives_through_both_doors_is_what_was_written() {
    let _alone = alone();
    let path = short_path("doors-test");
    Store::make(&path, 1 << 30).unwrap();
    let options = Options { memory_bytes: 64 << 20, ..Options::default() };
    let store = Store::open(&path, &options).unwrap();
    through_both(&store, &path.with_extension("sock"));
    store.close().unwrap();
    std::fs::remove_dir_all(&path).unwrap();
}

fn through_both(store: &Store, socket: &Path) {
    store.client().create_volume("both", VOLUME_BYTES, false).unwrap();
    let listen = vec![Listen::Unix(socket.to_owned())];
    let options = ServerOptions { listen, ..ServerOptions::default() };
    let server = Server::start(store.client().clone(), options).unwrap();
    let (door, volume) = (Door { socket, export: "both" }, Volume::new(VOLUME_BYTES));
    for (number, load) in (1..).zip(loads()) {
        check(load, client::run(door, &volume, load, 2 * number, LIMIT).unwrap());
        let run = 2 * number + 1;
        let rate = in_process::run(store.client(), "both", &volume, load, run, LIMIT).unwrap();
        check(load, rate);
    }
    server.stop();
}

#[test]
fn the_page_shows_ratios_round_by_round() {
    let rate = |operations| Rate { operations, seconds: 1.0 };
    let mut row = Row::new(Load::ALL[4]);
    row.add([rate(60_000), rate(200_000), rate(120_000)]);
    let doors = Doors {
        volume_bytes: VOLUME_BYTES,
        seconds: 1,
        memory_bytes: 64 << 20,
        verified: false,
        rows: vec![row],
        load_average: Samples::default(),
    };
    let line = "| random write, depth 32 | 60.00 (60.00 to 60.00) | 200 (200 to 200) | 120 (120 \
                to 120) | 0.30 (0.30 to 0.30) | 0.50 (0.50 to 0.50) | **0.50 (0.50 to 0.50)** | \
                - |";
    assert!(doors.to_string().contains(line), "{doors}");
    assert!(!doors.wanted()[0].reached, "0.5 is less than 0.6");
}
