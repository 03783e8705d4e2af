//! Clients that no honest program is like: each gets its due, and others do not notice.

use std::io::Write;
use std::time::Duration;

use memcached_door::MemcachedOptions;

use crate::client::{Client, serve};
use crate::model_host::ModelHost;

#[test]
fn byte_by_byte_is_as_good_as_at_once() {
    let server = serve(&ModelHost::default(), MemcachedOptions::default());
    let mut client = Client::of(&server);
    for byte in b"set a 0 0 3\r\nabc\r\nget a\r\n" {
        client.send([*byte]);
    }
    client.expect("STORED\r\nVALUE a 0 3\r\nabc\r\nEND\r\n");
}

#[test]
fn a_client_that_never_reads_is_not_read_from_and_holds_little() {
    let server = serve(&ModelHost::default(), MemcachedOptions::default());
    let (mut deaf, mut other) = (Client::of(&server), Client::of(&server));
    let value = vec![b'x'; 60_000];
    deaf.send(format!("set a 0 0 {}\r\n", value.len()));
    deaf.send(&value);
    deaf.say("\r\n", "STORED\r\n");
    deaf.0.set_nonblocking(true).unwrap();
    let asked = b"get a\r\n".repeat(1000);
    // The system's buffers fill, and then the client's writes block.
    let mut rounds = 0_u64;
    while deaf.0.write(&asked).is_ok() {
        rounds += 1;
        assert!(rounds < 100_000, "a client that reads nothing is not read for ever");
        other.say("mn\r\n", "MN\r\n");
    }
    other.say("get b\r\n", "END\r\n");
}

#[test]
fn those_who_do_nothing_with_their_seats_lose_them_when_seats_are_scarce() {
    let options = MemcachedOptions {
        connections_max: 8,
        stalled_time: Duration::from_secs(1),
        ..MemcachedOptions::default()
    };
    let server = serve(&ModelHost::default(), options);
    let mut idle = Client::of(&server);
    idle.say("mn\r\n", "MN\r\n");
    let mut halves: Vec<_> = (0..7).map(|_| Client::of(&server)).collect();
    for client in &mut halves {
        client.send("set a 0 0 100\r\nhalf");
    }
    // Some of them are closed, and others have their seats.
    loop {
        let mut new = Client::of(&server);
        // One that is refused may be closed by now.
        let _ = new.0.write_all(b"quit\r\n");
        if new.read_to_end().is_empty() {
            break;
        }
    }
    // One that is idle has all rights to be.
    idle.say("mn\r\n", "MN\r\n");
}

#[test]
fn a_value_that_is_cut_off_is_not_stored() {
    let server = serve(&ModelHost::default(), MemcachedOptions::default());
    for bytes in [100, 200_000] {
        let mut client = Client::of(&server);
        client.send(format!("set a 0 0 {bytes}\r\nabc"));
        drop(client);
        Client::of(&server).say("get a\r\n", "END\r\n");
    }
}

#[test]
fn lines_without_end_and_other_protocols_are_closed() {
    let server = serve(&ModelHost::default(), MemcachedOptions::default());
    let mut endless = Client::of(&server);
    endless.send(vec![b'x'; 100_000]);
    assert!(endless.read_to_end().contains("ERROR"));
    let mut keys = Client::of(&server);
    keys.send(["get ".to_owned(), "key ".repeat(20_000)].concat());
    assert!(keys.read_to_end().contains("ERROR"));
    let mut binary = Client::of(&server);
    binary.send([[0x80, 0x0a].as_slice(), &[0; 22]].concat());
    let answer = binary.read_to_end();
    assert!(answer.len() >= 24, "the refusal is in the client's own protocol");
    let mut tls = Client::of(&server);
    tls.send([&[0x16, 3, 1, 2, 0][..], &[7; 512], b"\r\n"].concat());
    tls.expect("ERROR\r\n");
}

#[test]
fn quiet_commands_are_all_carried_out() {
    let server = serve(&ModelHost::default(), MemcachedOptions::default());
    let mut client = Client::of(&server);
    client.say("set n 0 0 1\r\n0\r\n", "STORED\r\n");
    client.send(["incr n 1 noreply\r\n".repeat(10_000), "mn\r\n".to_owned()].concat());
    client.say("get n\r\n", "MN\r\nVALUE n 0 5\r\n10000\r\nEND\r\n");
    client.send(["mg missing q\r\n".repeat(10_000), "mn\r\n".to_owned()].concat());
    client.expect("MN\r\n");
}
