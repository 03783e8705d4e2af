//! `stats`.

use crate::talk::Client;
use memcached::Figures;

fn figures(client: &mut Client, which: &str) -> Vec<(String, String)> {
    let told = client.say(format!("stats{which}\r\n"));
    let told = told.strip_suffix("END\r\n").unwrap();
    let line = |line: &str| {
        let mut words = line.splitn(3, ' ');
        assert_eq!(words.next(), Some("STAT"));
        (words.next().unwrap().to_owned(), words.next().unwrap().to_owned())
    };
    told.lines().map(line).collect()
}

fn figure(client: &mut Client, name: &str) -> u64 {
    let figures = figures(client, "");
    let found = figures.iter().find(|(other, _)| other == name);
    found.unwrap_or_else(|| panic!("{name}")).1.parse().unwrap()
}

#[test]
fn what_connections_do_is_counted() {
    let mut client = Client::new();
    assert_eq!(figure(&mut client, "cmd_get"), 0);
    for (said, counted) in [
        ("set a 0 0 1\r\n1\r\n", &["cmd_set"][..]),
        ("get a\r\n", &["cmd_get", "get_hits"]),
        ("get b\r\n", &["cmd_get", "get_misses"]),
        ("mg b v\r\n", &["cmd_get", "get_misses"]),
        ("incr a 1\r\n", &["incr_hits"]),
        ("incr b 1\r\n", &["incr_misses"]),
        ("ma a MD\r\n", &["decr_hits"]),
        ("decr b 1\r\n", &["decr_misses"]),
        ("cas a 0 0 1 999\r\n1\r\n", &["cmd_set", "cas_badval"]),
        ("cas b 0 0 1 999\r\n1\r\n", &["cmd_set", "cas_misses"]),
        ("ms a 1 E5\r\n1\r\n", &["cmd_set"]),
        ("cas a 0 0 1 5\r\n1\r\n", &["cmd_set", "cas_hits"]),
        ("touch a 0\r\n", &["cmd_touch", "touch_hits"]),
        ("touch b 0\r\n", &["cmd_touch", "touch_misses"]),
        ("gat 0 a\r\n", &["cmd_touch", "touch_hits"]),
        ("gat 0 b\r\n", &["cmd_touch", "touch_misses"]),
        ("me a\r\n", &["cmd_meta"]),
        ("delete a\r\n", &["delete_hits"]),
        ("md a\r\n", &["delete_misses"]),
        ("flush_all\r\n", &["cmd_flush"]),
    ] {
        let before = figures(&mut client, "");
        client.say(said);
        let after = figures(&mut client, "");
        let moving = ["time", "bytes", "curr_items", "total_items", "bytes_read", "bytes_written"];
        let changed: Vec<&str> = before
            .iter()
            .zip(&after)
            .filter(|(one, other)| one != other && !moving.contains(&one.0.as_str()))
            .map(|(one, _)| one.0.as_str())
            .collect();
        let mut counted = counted.to_vec();
        counted.retain(|name| !moving.contains(name));
        let mut sorted = changed.clone();
        sorted.sort_unstable();
        counted.sort_unstable();
        assert_eq!(sorted, counted, "{said}");
    }
}

#[test]
fn items_that_ended_or_were_flushed_are_counted_when_they_are_missed() {
    let mut client = Client::new();
    client.say("set a 0 5 1\r\n1\r\nset b 0 0 1\r\n1\r\n");
    client.now_s += 5;
    client.say("get a\r\nflush_all\r\nget b\r\n");
    assert_eq!(figure(&mut client, "get_expired"), 1);
    assert_eq!(figure(&mut client, "get_flushed"), 1);
    assert_eq!(figure(&mut client, "curr_items"), 0);
    assert_eq!(figure(&mut client, "total_items"), 2);
    assert_eq!(client.say("stats reset\r\n"), "RESET\r\n");
    assert_eq!(figure(&mut client, "get_misses"), 0);
}

#[test]
fn bytes_of_the_wire_are_counted() {
    let mut client = Client::new();
    client.say("mn\r\n");
    assert_eq!(figure(&mut client, "bytes_read"), 4 + "stats\r\n".len() as u64);
    let written = figure(&mut client, "bytes_written");
    assert!(written > 4, "{written}");
}

#[test]
fn each_kind_of_figures_has_its_names() {
    let mut client = Client::new();
    *client.cache.figures_mut() = Figures {
        pid: 7,
        version: "1.2.3".to_owned(),
        bytes_max: 64 << 20,
        value_bytes_max: 1 << 20,
        is_authenticated: true,
        sizes: vec![(96, 2), (192, 1)],
        ..Figures::default()
    };
    client.say("set a 0 0 1\r\n1\r\n");
    let has = |figures: &[(String, String)], name: &str, value: &str| {
        assert!(figures.contains(&(name.to_owned(), value.to_owned())), "{name}: {figures:?}");
    };
    let general = figures(&mut client, "");
    has(&general, "pid", "7");
    has(&general, "version", "1.2.3");
    has(&general, "limit_maxbytes", "67108864");
    has(&general, "bytes", "42");
    let items = figures(&mut client, " items");
    has(&items, "items:1:number", "1");
    let slabs = figures(&mut client, " slabs");
    has(&slabs, "1:cmd_set", "1");
    has(&slabs, "active_slabs", "1");
    let settings = figures(&mut client, " settings");
    has(&settings, "auth_enabled_ascii", "yes");
    has(&settings, "item_size_max", "1048576");
    has(&settings, "client_flags_size", "4");
    let sizes = figures(&mut client, " sizes");
    assert_eq!(sizes, [("96".to_owned(), "2".to_owned()), ("192".to_owned(), "1".to_owned())]);
    has(&figures(&mut client, " conns"), "curr_connections", "0");
}
