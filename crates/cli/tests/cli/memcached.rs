//! `tamis serve --memcached`: a bucket as a memcached, what else sees it, and who may come in.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use crate::harness::{Folder, Served, tamis};

struct Client(BufReader<UnixStream>);

impl Client {
    fn of(folder: &Folder) -> Self {
        Self(BufReader::new(UnixStream::connect(folder.join("memcached.sock")).unwrap()))
    }

    fn say(&mut self, said: &str, expected: &str) {
        self.0.get_mut().write_all(said.as_bytes()).unwrap();
        let mut answer = vec![0; expected.len()];
        self.0.read_exact(&mut answer).unwrap();
        assert_eq!(String::from_utf8_lossy(&answer), expected);
    }

    fn come_in(&mut self, name: &str, secret: &str, expected: &str) {
        let token = format!("{name} {secret}");
        self.say(&format!("set x 0 0 {}\r\n{token}\r\n", token.len()), expected);
    }

    fn figure(&mut self, name: &str) -> String {
        self.0.get_mut().write_all(b"stats\r\n").unwrap();
        let mut found = None;
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).unwrap();
            if line == "END\r\n" {
                return found.unwrap_or_else(|| panic!("no {name}"));
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            if words[1] == name {
                found = Some(words[2].to_owned());
            }
        }
    }
}

fn serve(folder: &Folder, store: &str, words: &str) -> Served {
    let socket = folder.path("memcached.sock");
    Served::start(store, &format!("--memcached unix:{socket} {words}"))
}

#[test]
fn a_bucket_is_a_memcached_and_a_bucket() {
    let folder = Folder::new();
    let store = folder.store("256M");
    tamis(&format!("bucket create {store} cache")).ok();
    let words = "--memcached-bucket cache --memcached-max-item 2M --memcached-connections 7";
    let served = serve(&folder, &store, words);
    let socket = format!("unix:{}", folder.path("memcached.sock"));
    assert_eq!(served.ready["memcached"][0], socket.as_str());
    let mut client = Client::of(&folder);
    client.say("set item 0 0 5\r\nhello\r\n", "STORED\r\n");
    let file = folder.path("item");
    tamis(&format!("get {store}/cache/item {file}")).ok();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "hello");
    std::fs::write(&file, "from a file").unwrap();
    tamis(&format!("put {file} {store}/cache/item")).ok();
    client.say("get item\r\n", "VALUE item 0 11\r\nfrom a file\r\nEND\r\n");
    for (name, expected) in [
        ("curr_connections", "1"),
        ("max_connections", "7"),
        ("cmd_set", "1"),
        ("get_hits", "1"),
        ("curr_items", "1"),
    ] {
        assert_eq!(client.figure(name), expected, "{name}");
    }
    let told = tamis(&format!("stats {store}")).ok();
    let line = told.out.lines().find(|line| line.starts_with("cache ")).unwrap();
    assert_eq!(line.split_whitespace().take(3).collect::<Vec<_>>(), ["cache", "1", "1"]);
    let caches = &tamis(&format!("stats {store} --json")).ok().json()["caches"];
    for (name, expected) in
        [("bucket", json!("cache")), ("hits", json!(1)), ("stores", json!(1)), ("items", json!(1))]
    {
        assert_eq!(caches[0][name], expected, "{name}");
    }
    let long = "x".repeat(1_500_000);
    client.say(&format!("set long 0 0 {}\r\n{long}\r\n", long.len()), "STORED\r\n");
    client.say("get long\r\n", &format!("VALUE long 0 1500000\r\n{long}\r\nEND\r\n"));
    // While it is served it is in use, with clients and without.
    drop(client);
    tamis(&format!("bucket delete {store} cache --with-objects --yes")).fails(4, "in use");
    assert_eq!(served.interrupt(), Some(0));
    assert!(!folder.join("memcached.sock").exists());
    tamis(&format!("get {store}/cache/long {file} --overwrite")).ok();
    tamis(&format!("bucket delete {store} cache --with-objects --yes")).ok();
}

#[test]
fn what_was_stored_is_there_after_a_restart() {
    let folder = Folder::new();
    let store = folder.store("256M");
    tamis(&format!("bucket create {store} cache")).ok();
    let served = serve(&folder, &store, "--memcached-bucket cache --sync");
    let mut client = Client::of(&folder);
    for number in 0..20 {
        client.say(&format!("set k{number} {number} 0 2\r\nhi\r\n"), "STORED\r\n");
    }
    client.say("mg k1 v\r\nmd k1\r\nincr k2 1\r\n", "VA 2\r\nhi\r\nHD\r\n");
    client.say("", "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n");
    served.kill();
    let served = serve(&folder, &store, "--memcached-bucket cache");
    let mut client = Client::of(&folder);
    client.say("get k0 k1 k19\r\n", "VALUE k0 0 2\r\nhi\r\nVALUE k19 19 2\r\nhi\r\nEND\r\n");
    assert_eq!(served.interrupt(), Some(0));
}

#[test]
fn a_cache_with_a_bound_loses_what_nobody_reads() {
    let folder = Folder::new();
    let store = folder.store("256M");
    tamis(&format!("bucket create {store} cache")).ok();
    tamis(&format!("serve {store} --memcached tcp:127.0.0.1:0 --memcached-max-bytes 1M"))
        .fails(2, "--memcached-bucket");
    let words = "--memcached-bucket cache --memcached-max-bytes 64K";
    let served = serve(&folder, &store, words);
    let mut client = Client::of(&folder);
    let value = "v".repeat(1000);
    for number in 0..200 {
        client.say(&format!("set k{number} 0 0 1000\r\n{value}\r\n"), "STORED\r\n");
        client.say("get k0\r\n", &format!("VALUE k0 0 1000\r\n{value}\r\nEND\r\n"));
    }
    // 61 items of 1,000 bytes and 64 beside fit.
    for (name, expected) in [
        ("curr_items", "61"),
        ("evictions", "139"),
        ("limit_maxbytes", "65536"),
        ("bytes", "64904"),
    ] {
        assert_eq!(client.figure(name), expected, "{name}");
    }
    drop(client);
    assert_eq!(served.interrupt(), Some(0));
}

#[test]
fn an_account_comes_in_to_the_bucket_that_it_may_write() {
    let folder = Folder::new();
    let store = folder.store("256M");
    for bucket in ["one", "two"] {
        tamis(&format!("bucket create {store} {bucket}")).ok();
    }
    let keys = |made: &Value| {
        let text = |field: &str| made[field].as_str().unwrap().to_owned();
        (text("access_key"), text("secret"))
    };
    let create = |words: &str| tamis(&format!("account create {store} {words} --json")).ok().json();
    let (one, one_secret) = keys(&create("ann --write one"));
    let (all, all_secret) = keys(&create("bob --write *"));
    let served = serve(&folder, &store, "");
    let failed = "CLIENT_ERROR authentication failure\r\n";
    let mut client = Client::of(&folder);
    client.say("get a\r\n", "CLIENT_ERROR unauthenticated\r\n");
    client.come_in(&one, &all_secret, failed);
    client.come_in(&format!("{one}@two"), &one_secret, failed);
    client.come_in(&all, &all_secret, failed);
    client.come_in(&format!("{all}@three"), &all_secret, failed);
    client.come_in(&one, &one_secret, "STORED\r\n");
    client.say("set a 0 0 1\r\n1\r\n", "STORED\r\n");
    let mut other = Client::of(&folder);
    other.come_in(&format!("{all}@two"), &all_secret, "STORED\r\n");
    other.say("get a\r\n", "END\r\n");
    assert_eq!(other.figure("curr_connections"), "1", "of others nothing is told");
    let mut same = Client::of(&folder);
    same.come_in(&format!("{all}@one"), &all_secret, "STORED\r\n");
    same.say("get a\r\n", "VALUE a 0 1\r\n1\r\nEND\r\n");
    // A right that is taken away closes connections that used it.
    tamis(&format!("account set {store} bob --write two")).ok();
    let mut rest = Vec::new();
    same.0.read_to_end(&mut rest).unwrap();
    other.say("get a\r\n", "END\r\n");
    assert_eq!(served.interrupt(), Some(0));
}

#[test]
fn a_tenant_over_its_rate_is_slowed_and_another_is_not() {
    let folder = Folder::new();
    let store = folder.store("256M");
    let tenant = |name: &str, rates: &str| {
        let words = format!("account create {store} {name} --tenant --write {name}-* {rates}");
        let made = tamis(&format!("{words} --json")).ok().json();
        tamis(&format!("bucket create {store} {name}-b --domain {name}")).ok();
        let text = |field: &str| made[field].as_str().unwrap().to_owned();
        (format!("{}@{name}-b", text("access_key")), text("secret"))
    };
    let (slow, fast) = (tenant("slow", "--requests 200/s --burst 0"), tenant("fast", ""));
    let served = serve(&folder, &store, "");
    let client = |(name, secret): &(String, String)| {
        let mut client = Client::of(&folder);
        client.come_in(name, secret, "STORED\r\n");
        client
    };
    let (mut slow, mut fast) = (client(&slow), client(&fast));
    for _ in 0..20 {
        // Twenty at once are a tenth of a second of its rate, in which it is not read.
        slow.say(&"get a\r\n".repeat(20), &"END\r\n".repeat(20));
        (0..20).for_each(|_| fast.say("get a\r\n", "END\r\n"));
    }
    let stats = |name: &str| {
        let stats = tamis(&format!("account stats {store} {name} --json")).ok().json();
        let one = stats["tenants"][0].clone();
        let reads = one["operations"][0].clone();
        assert_eq!((&reads["operation"], &reads["operations"]), (&json!("read"), &json!(400)));
        (one["throttled_requests"].as_u64().unwrap(), one["throttled_ns"].as_u64().unwrap())
    };
    let (requests, ns) = stats("slow");
    assert!(requests > 0 && ns > 0, "{requests} requests, {ns} ns");
    assert_eq!(stats("fast"), (0, 0));
    assert_eq!(served.interrupt(), Some(0));
}

#[test]
fn what_cannot_be_served_is_told() {
    let folder = Folder::new();
    let store = folder.store("256M");
    let at = format!("serve {store} --memcached unix:{}", folder.path("memcached.sock"));
    tamis(&format!("{at} --memcached-bucket none")).fails(3, "there is no bucket none");
    tamis(&format!("{at} --memcached-max-item 2G")).fails(2, "at most 1G");
    tamis(&format!("serve {store} --memcached-bucket cache")).fails(2, "--memcached");
    tamis(&format!("serve {store} --memcached localhost")).fails(2, "unix:PATH");
    std::fs::write(folder.join("memcached.sock"), "precious").unwrap();
    tamis(&at).fails(1, "no socket");
    tamis(&format!("bucket create {store} cache")).ok();
    tamis(&format!("bucket snapshot {store} cache@then")).ok();
    std::fs::remove_file(folder.join("memcached.sock")).unwrap();
    tamis(&format!("{at} --memcached-bucket cache@then")).fails(1, "read-only");
}
