//! Our own client against our own server, over connections that the server is handed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::BufReader;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};

use engine::SnapshotRequest;
use nbd::Server;
use nbd::client::{Answer, Client, ClientError, Wish};
use nbd::wire::option::READ_ONLY;
use nbd::wire::{STATE_CHANGED, STATE_HOLE, STATE_ZERO};
use support::Store;

const SIZE_BYTES: u64 = 1 << 20;
const HOLE: u32 = STATE_HOLE | STATE_ZERO;

/// A client that the server is handed, and the thread that serves it.
fn connect(server: &Server, wish: Wish<'_>) -> (Result<Client, ClientError>, JoinHandle<()>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let adopter = server.adopter();
    let serving = thread::spawn(move || adopter.serve(theirs, "a test, pid 7".to_owned()));
    (Client::over(BufReader::new(ours), wish), serving)
}

fn wish<'a>(export: &'a str, contexts: &'a [&'a str]) -> Wish<'a> {
    Wish { export, structured: true, contexts }
}

fn write(client: &Client, offset_bytes: u64, bytes: &[u8]) -> Result<Answer, ClientError> {
    let (told, answer) = channel();
    client.begin_write(offset_bytes, bytes, true, Box::new(move |it| told.send(it).unwrap()));
    answer.recv().unwrap()
}

fn snapshot(store: &Store, name: &str) {
    let volumes = vec!["v".to_owned()];
    store.client.ask(SnapshotRequest { volumes, name: name.to_owned(), taken_unix_s: 1 }).unwrap();
}

/// (length, flags) from the start to the end.
fn map(client: &Client, id: u32) -> Vec<(u64, u32)> {
    let (mut at, mut found): (u64, Vec<(u64, u32)>) = (0, Vec::new());
    while at < SIZE_BYTES {
        for extent in client.extents(id, at, SIZE_BYTES - at).unwrap() {
            at += extent.length_bytes;
            match found.last_mut() {
                Some((length, flags)) if *flags == extent.flags => *length += extent.length_bytes,
                _ => found.push((extent.length_bytes, extent.flags)),
            }
        }
    }
    found
}

#[test]
fn bytes_come_back_as_they_were_written_by_many_threads_at_once() {
    let (_store, server) = Store::serving(&[("v", SIZE_BYTES), ("ro", SIZE_BYTES)]);
    let (client, serving) = connect(&server, wish("v", &["base:allocation", "base:other"]));
    let client = client.unwrap();
    assert_eq!(client.export().size_bytes, SIZE_BYTES);
    assert_eq!(client.export().contexts.len(), 1);
    thread::scope(|scope| {
        for number in 0..8_u8 {
            let client = &client;
            scope.spawn(move || {
                let offset_bytes = u64::from(number) << 16;
                for round in 1..20_u8 {
                    let bytes = vec![number * 20 + round; 20_480];
                    assert_eq!(write(client, offset_bytes, &bytes).unwrap(), Answer::Done);
                    assert!(client.read(offset_bytes, vec![0; 20_480]).unwrap() == bytes);
                    let beside = client.read(offset_bytes + 20_480, vec![9; 4096]).unwrap();
                    assert!(beside.iter().all(|byte| *byte == 0), "a hole");
                }
            });
        }
    });
    client.flush().unwrap();
    let id = client.export().contexts[0].id;
    let (told, answer) = channel();
    client.begin_trim(0, 65_536, Box::new(move |it| told.send(it).unwrap()));
    assert_eq!(answer.recv().unwrap().unwrap(), Answer::Done);
    let mut expected = vec![(65_536, HOLE)];
    (1..8).for_each(|_| expected.extend([(20_480, 0), (45_056, HOLE)]));
    expected.last_mut().unwrap().0 += 512 << 10;
    assert_eq!(map(&client, id), expected);
    drop(client);
    serving.join().unwrap();

    let (client, _) = connect(&server, wish("ro", &[]));
    let client = client.unwrap();
    assert!(client.export().flags & READ_ONLY != 0);
    let refused = write(&client, 0, &[1; 512]).unwrap_err();
    assert!(matches!(refused, ClientError::Refused { errno: 1, .. }), "{refused:?}");
    assert!(refused.to_string().contains("read-only"), "{refused}");
    assert!(client.read(0, vec![1; 512]).is_ok(), "a refusal ends nothing");
    let (none, _) = connect(&server, wish("w", &[]));
    assert!(matches!(none, Err(ClientError::NoExport { .. })), "{none:?}");
}

/// When the client has gone nothing is open any more: whoever deletes the volume next may.
#[test]
fn a_good_bye_is_over_when_the_server_has_given_the_export_up() {
    let (store, server) = Store::serving(&[("v", SIZE_BYTES)]);
    for _ in 0..50 {
        let (client, _) = connect(&server, wish("v", &[]));
        let client = client.unwrap();
        write(&client, 0, &[1; 4096]).unwrap();
        let opens = store.client.opens("v").unwrap();
        assert_eq!(opens[0].opener.who, "a test, pid 7");
        drop(client);
        assert_eq!(store.client.opens("v").unwrap(), []);
    }
}

#[test]
fn whoever_waits_is_told_when_the_server_ends() {
    let (_store, server) = Store::serving(&[("v", SIZE_BYTES)]);
    let (client, serving) = connect(&server, wish("v", &[]));
    let client = client.unwrap();
    write(&client, 0, &[1; 4096]).unwrap();
    let adopter = server.adopter();
    server.stop();
    serving.join().unwrap();
    assert!(matches!(client.read(0, vec![0; 4096]), Err(ClientError::Closed)));
    assert!(matches!(client.flush(), Err(ClientError::Closed)));
    // Whoever comes after the end is not served.
    let (ours, theirs) = UnixStream::pair().unwrap();
    adopter.serve(theirs, "late".to_owned());
    assert!(Client::over(BufReader::new(ours), wish("v", &[])).is_err());
}

#[test]
fn what_changed_since_a_snapshot_is_told_chunk_by_chunk() {
    let (store, server) = Store::serving(&[("v", SIZE_BYTES)]);
    let (writer, _) = connect(&server, wish("v", &[]));
    let writer = writer.unwrap();
    write(&writer, 0, &[1; 64 << 10]).unwrap();
    snapshot(&store, "a");
    write(&writer, 8192, &[2; 4096]).unwrap();
    snapshot(&store, "b");
    // Not flushed: what was acknowledged counts.
    let (told, answer) = channel();
    writer.begin_write(512 << 10, &[3; 4096], false, Box::new(move |it| told.send(it).unwrap()));
    answer.recv().unwrap().unwrap();
    let (told, answer) = channel();
    writer.begin_trim(0, 4096, Box::new(move |it| told.send(it).unwrap()));
    answer.recv().unwrap().unwrap();

    let names = ["tamis:changed:a", "base:allocation", "tamis:changed:none", "tamis:changed:b"];
    let (client, _) = connect(&server, wish("v", &names));
    let client = client.unwrap();
    let contexts = &client.export().contexts;
    let chosen: Vec<_> = contexts.iter().map(|context| context.name.as_str()).collect();
    assert_eq!(chosen, ["tamis:changed:a", "base:allocation", "tamis:changed:b"]);
    // A client that asks for one context is told of one; ours takes no other.
    drop(client);
    let only = |export: &str, name: &str| {
        let names = [name];
        let (client, _) = connect(&server, wish(export, &names));
        let client = client.unwrap();
        map(&client, client.export().contexts[0].id)
    };
    let found = only("v", "tamis:changed:a");
    let between = (512 << 10) - 12_288;
    let expected = [(4096, 1), (4096, 0), (4096, 1), (between, 0), (4096, STATE_CHANGED)];
    assert_eq!(found[..5], expected);
    let changed = |found: &[(u64, u32)]| {
        found.iter().filter(|(_, flags)| *flags == 1).map(|(length, _)| length).sum::<u64>()
    };
    assert_eq!(changed(&found), 3 * 4096);
    assert_eq!(changed(&only("v", "tamis:changed:b")), 2 * 4096);
    assert_eq!(only("v@b", "tamis:changed:a"), [(8192, 0), (4096, 1), (SIZE_BYTES - 12_288, 0)]);
    assert_eq!(changed(&only("v@a", "tamis:changed:a")), 0);
}
