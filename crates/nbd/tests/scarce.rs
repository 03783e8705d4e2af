//! A server whose process gets no more memory: one test, for the limit is that of the process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;

use nbd::wire::Command;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::{Peer, Store, request};

const MIB: u64 = 1 << 20;
/// Less than one long payload takes, and more than all of its pieces in the write buffer.
const LEFT_BYTES: u64 = 28 * MIB;
const LONG_WRITE_BYTES: u32 = 32 << 20;

/// Addresses of this process.
fn mapped_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn a_long_payload_for_which_there_is_no_memory_is_written_in_pieces() {
    let (_store, server) = Store::serving(&[("disk", 64 * MIB)]);
    let mut peer = Peer::simple(&server, "disk");
    let payload: Vec<u8> = (0..LONG_WRITE_BYTES).map(|at| (at / 512 % 251) as u8).collect();
    let write = request(Command::Write, 0, 4096, LONG_WRITE_BYTES);
    let before = getrlimit(Resource::As);
    let current = Some(mapped_bytes() + LEFT_BYTES);
    setrlimit(Resource::As, Rlimit { current, maximum: before.maximum }).unwrap();
    let answer = peer.ask(&write, &payload);
    setrlimit(Resource::As, before).unwrap();
    assert_eq!(answer.errno(), 0);
    for (part, expected) in payload.chunks(1 << 20).enumerate() {
        let at = 4096 + part as u64 * MIB;
        assert!(peer.read(at, expected.len() as u32) == expected, "MiB {part}");
    }
}
