//! What clients are served, and how the door begins and ends.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use memcached_door::{Address, MemcachedOptions, MemcachedServer};

use crate::client::{Client, serve};
use crate::model_host::ModelHost;

#[test]
fn many_clients_are_served_at_once() {
    let host = ModelHost::default();
    let server = serve(&host, MemcachedOptions::default());
    let mut clients: Vec<_> = (0..100).map(|_| Client::of(&server)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.say(format!("set k{number} 0 0 3\r\nabc\r\n"), "STORED\r\n");
    }
    for (number, client) in clients.iter_mut().enumerate() {
        let other = 99 - number;
        client.say(format!("get k{other}\r\n"), format!("VALUE k{other} 0 3\r\nabc\r\nEND\r\n"));
    }
    assert_eq!(clients[0].figure("curr_connections"), "100");
    assert_eq!(clients[0].figure("cmd_set"), "100");
    assert_eq!(clients[0].figure("get_hits"), "100");
    clients.truncate(1);
    clients[0].say("stats reset\r\n", "RESET\r\n");
    assert_eq!(clients[0].figure("get_hits"), "0");
    server.stop();
    assert_eq!(clients[0].read_to_end(), "");
}

#[test]
fn a_unix_socket_is_served_and_removed_at_the_end() {
    let path = std::env::temp_dir().join(format!("tamis-door-{}.sock", std::process::id()));
    let listen = vec![Address::Unix(path.clone())];
    let options = MemcachedOptions { listen, ..MemcachedOptions::default() };
    let server = MemcachedServer::start(ModelHost::default(), options).unwrap();
    let mut client = UnixStream::connect(&path).unwrap();
    client.write_all(b"version\r\nquit\r\n").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("VERSION "), "{answer}");
    server.stop();
    assert!(!path.exists());
}

#[test]
fn long_values_go_both_ways() {
    let host = ModelHost::default();
    let options = MemcachedOptions { value_bytes_max: 32 << 20, ..MemcachedOptions::default() };
    let server = serve(&host, options);
    let value: Vec<u8> = (0..20_000_000_u32).map(|at| (at % 251) as u8).collect();
    let mut client = Client::of(&server);
    client.send(format!("set big 7 0 {}\r\n", value.len()));
    client.send(&value);
    client.say("\r\n", "STORED\r\n");
    client.send("get big small\r\nmn\r\n");
    client.expect(format!("VALUE big 7 {}\r\n", value.len()));
    client.expect(&value);
    client.expect("\r\nEND\r\nMN\r\n");
}

#[test]
fn answers_stay_in_order_around_what_waits() {
    let host = ModelHost::default();
    let server = serve(&host, MemcachedOptions::default());
    let (mut waits, mut goes_on) = (Client::of(&server), Client::of(&server));
    waits.say("set a 0 0 1\r\n1\r\n", "STORED\r\n");
    waits.send("mg slow\r\nmg a v\r\nmn\r\n");
    // Others are served meanwhile, of the same thread as well.
    goes_on.say("get a\r\n", "VALUE a 0 1\r\n1\r\nEND\r\n");
    let mut more: Vec<_> = (0..20).map(|_| Client::of(&server)).collect();
    more.iter_mut().for_each(|client| client.say("mn\r\n", "MN\r\n"));
    host.gate.open();
    waits.expect("EN\r\nVA 1\r\n1\r\nMN\r\n");
}

#[test]
fn one_connection_too_many_is_told_so() {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let telling = Arc::clone(&told);
    let options = MemcachedOptions {
        connections_max: 2,
        observer: Box::new(move |note| telling.lock().unwrap().push(note.to_owned())),
        ..MemcachedOptions::default()
    };
    let server = serve(&ModelHost::default(), options);
    let (mut one, mut two) = (Client::of(&server), Client::of(&server));
    one.say("mn\r\n", "MN\r\n");
    two.say("mn\r\n", "MN\r\n");
    assert_eq!(Client::of(&server).read_to_end(), "ERROR Too many open connections\r\n");
    assert_eq!(one.figure("rejected_connections"), "1");
    assert!(told.lock().unwrap()[0].contains("refused"));
    two.say("quit\r\n", "");
    assert_eq!(two.read_to_end(), "");
    // Its place is free as soon as the server knows that it is closed.
    while one.figure("curr_connections") != "1" {}
    Client::of(&server).say("mn\r\n", "MN\r\n");
}

#[test]
fn what_was_received_is_answered_before_the_end() {
    let host = ModelHost::default();
    let server = serve(&host, MemcachedOptions::default());
    let mut client = Client::of(&server);
    client.say("mn\r\nset slow 0 0 1\r\n1\r\n", "MN\r\n");
    let gate = Arc::clone(&host.gate);
    std::thread::scope(|scope| {
        scope.spawn(move || server.stop());
        gate.open();
        assert!(["STORED\r\n", ""].contains(&client.read_to_end().as_str()));
    });
}
