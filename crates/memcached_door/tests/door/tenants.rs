//! Who comes in, who has to go, and who waits.

use std::time::Duration;

use memcached_door::{MemcachedOptions, MemcachedServer};

use crate::client::{Client, serve};
use crate::model_host::ModelHost;

fn host(names: &[&str]) -> ModelHost {
    let passwords = names.iter().map(|name| ((*name).to_owned(), "secret".to_owned())).collect();
    ModelHost { passwords, ..ModelHost::default() }
}

fn token(name: &str, password: &str) -> String {
    let token = format!("{name} {password}");
    format!("set x 0 0 {}\r\n{token}\r\n", token.len())
}

#[test]
fn a_client_says_who_it_is_first() {
    let server = serve(&host(&["ann"]), MemcachedOptions::default());
    let mut client = Client::of(&server);
    client.say("get a\r\n", "CLIENT_ERROR unauthenticated\r\n");
    client.say(token("ann", "wrong"), "CLIENT_ERROR authentication failure\r\n");
    client.say(token("bob", "secret"), "CLIENT_ERROR authentication failure\r\n");
    let said = [token("ann", "secret"), "set a 0 0 1\r\n1\r\nget a\r\n".to_owned()].concat();
    client.say(said, "STORED\r\nSTORED\r\nVALUE a 0 1\r\n1\r\nEND\r\n");
    let mut slow = Client::of(&server);
    for byte in token("ann", "secret").bytes() {
        slow.send([byte]);
    }
    slow.expect("STORED\r\n");
    assert_eq!(slow.figure("auth_errors"), "2");
}

#[test]
fn an_account_that_may_not_come_in_any_more_is_closed() {
    let host = host(&["ann", "bob"]);
    let server = serve(&host, MemcachedOptions::default());
    let (mut ann, mut bob) = (Client::of(&server), Client::of(&server));
    ann.say(token("ann", "secret"), "STORED\r\n");
    bob.say(token("bob", "secret"), "STORED\r\n");
    host.gone.lock().unwrap().push("ann".to_owned());
    assert_eq!(ann.read_to_end(), "");
    bob.say("mn\r\n", "MN\r\n");
}

#[test]
fn a_tenant_over_its_rate_is_not_read_and_others_are() {
    let mut host = host(&["slow", "fast"]);
    host.pauses.insert("slow".to_owned(), Duration::from_secs(3600));
    let server = serve(&host, MemcachedOptions::default());
    let (mut slow, mut fast) = (Client::of(&server), Client::of(&server));
    slow.say(token("slow", "secret"), "STORED\r\n");
    fast.say(token("fast", "secret"), "STORED\r\n");
    // What it has asked is answered; what it asks now waits for an hour.
    slow.say("get a\r\n", "END\r\n");
    slow.send("set a 0 0 1\r\n1\r\n");
    for _ in 0..100 {
        fast.say("get a\r\n", "END\r\n");
    }
    server.stop();
    assert_eq!(slow.read_to_end(), "");
}

#[test]
fn a_pause_ends() {
    let mut host = host(&["slow"]);
    host.pauses.insert("slow".to_owned(), Duration::from_millis(10));
    let server = serve(&host, MemcachedOptions::default());
    let mut slow = Client::of(&server);
    slow.say(token("slow", "secret"), "STORED\r\n");
    for _ in 0..10 {
        slow.say("get a\r\nmn\r\n", "END\r\nMN\r\n");
    }
}

#[test]
fn a_tenant_whose_requests_wait_keeps_no_other_waiting() {
    let host = host(&["ann", "robert"]);
    let server = serve(&host, MemcachedOptions::default());
    let clients = |name: &str, count: usize| -> Vec<Client> {
        let mut clients: Vec<_> = (0..count).map(|_| Client::of(&server)).collect();
        clients.iter_mut().for_each(|client| client.say(token(name, "secret"), "STORED\r\n"));
        clients
    };
    let mut many = clients("ann", 60);
    many.iter_mut().for_each(|client| client.send("mg slow\r\n"));
    let mut other = clients("robert", 1);
    // It is in the pool as well, for a long value.
    let said = format!("set b 0 0 100000\r\n{}\r\n", "x".repeat(100_000));
    other[0].say(said, "STORED\r\n");
    host.gate.open();
    many.iter_mut().for_each(|client| client.expect("EN\r\n"));
}

/// A client of an account on each event thread: connections are dealt out in turn.
fn on_each_thread(server: &MemcachedServer, name: &str) -> Vec<Client> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut clients: Vec<_> = (0..threads).map(|_| Client::of(server)).collect();
    clients.iter_mut().for_each(|client| client.say(token(name, "secret"), "STORED\r\n"));
    // This is answered by the thread, to which they have come back from the pool.
    clients.iter_mut().for_each(|client| client.say("mn\r\n", "MN\r\n"));
    clients
}

#[test]
fn many_changes_at_once_are_not_made_where_another_tenant_has_its_turn() {
    let host = host(&["ann", "robert"]);
    let server = serve(&host, MemcachedOptions::default());
    let mut many = on_each_thread(&server, "ann");
    let mut few = on_each_thread(&server, "robert");
    many.iter_mut().for_each(|client| client.send("set stuck 0 0 1\r\n1\r\n".repeat(2)));
    few.iter_mut().for_each(|client| client.say("mn\r\n", "MN\r\n"));
    few.iter_mut().for_each(|client| client.say("get a\r\n", "END\r\n"));
    host.gate.open();
    many.iter_mut().for_each(|client| client.expect("STORED\r\n".repeat(2)));
}

#[test]
fn a_tenant_whose_request_waits_has_its_turn_all_the_same() {
    let host = host(&["ann", "robert"]);
    let server = serve(&host, MemcachedOptions::default());
    let mut many = on_each_thread(&server, "ann");
    let mut others = on_each_thread(&server, "ann");
    let mut waiting = on_each_thread(&server, "robert");
    waiting.iter_mut().for_each(|client| client.send("mg slow\r\n"));
    others.iter_mut().for_each(|client| client.say("mn\r\n", "MN\r\n"));
    many.iter_mut().for_each(|client| client.send("set stuck 0 0 1\r\n1\r\n".repeat(2)));
    others.iter_mut().for_each(|client| client.say("mn\r\n", "MN\r\n"));
    host.gate.open();
    many.iter_mut().for_each(|client| client.expect("STORED\r\n".repeat(2)));
    waiting.iter_mut().for_each(|client| client.expect("EN\r\n"));
}
