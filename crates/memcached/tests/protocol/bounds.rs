//! Long lines, long values, and what is no text at all.

use crate::talk::{Client, check, talk};
use memcached::{Limits, VALUE_BYTES_MAX};

const MIB: usize = 1 << 20;

fn set(key: &str, value: &[u8]) -> Vec<u8> {
    let head = format!("set {key} 0 0 {}\r\n", value.len());
    [head.as_bytes(), value, b"\r\n"].concat()
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 % 251) as u8).collect()
}

#[test]
fn a_value_too_large_is_swallowed_and_its_old_one_is_gone() {
    let mut client = Client::new();
    client.say("set a 0 0 1\r\n1\r\nset b 0 0 1\r\n1\r\n");
    let large = vec![b'x'; MIB + 1];
    let refused = "SERVER_ERROR object too large for cache\r\n";
    assert_eq!(client.say(set("a", &large)), refused);
    assert_eq!(client.say("get a\r\n"), "END\r\n");
    let append = [&format!("append b 0 0 {}\r\n", MIB + 1).into_bytes()[..], &large, b"\r\n"];
    assert_eq!(client.say(append.concat()), refused);
    let quiet =
        [&format!("set b 0 0 {} noreply\r\n", MIB + 1).into_bytes()[..], &large, b"\r\nmn\r\n"];
    assert_eq!(client.say(quiet.concat()), "MN\r\n");
    assert_eq!(client.say("get b\r\n"), "END\r\n");
    let meta = [&format!("ms b {} q\r\n", MIB + 1).into_bytes()[..], &large, b"\r\nmn\r\n"];
    assert_eq!(client.say(meta.concat()), format!("{refused}MN\r\n"));
}

#[test]
fn the_largest_value_is_stored_and_read() {
    for bytes in [64 << 10, (64 << 10) + 1, MIB] {
        let value = pattern(bytes);
        let mut client = Client::new();
        assert_eq!(client.say(set("a", &value)), "STORED\r\n");
        let answer = client.exchange(b"get a a\r\nmg a s v\r\n", usize::MAX);
        let head = format!("VALUE a 0 {bytes}\r\n").into_bytes();
        let one = [&head, &value, &b"\r\n"[..]].concat();
        let meta = format!("VA {bytes} s{bytes}\r\n").into_bytes();
        let expected = [&one, &one, &b"END\r\n"[..], &meta, &value, b"\r\n"].concat();
        assert!(answer == expected, "{bytes}");
    }
}

#[test]
fn values_beyond_a_mebibyte_are_by_option() {
    let limits = Limits { value_bytes_max: VALUE_BYTES_MAX, ..Limits::default() };
    let mut client = Client::with(limits);
    let value = pattern(3 * MIB);
    assert_eq!(client.exchange(&set("a", &value), 4096), b"STORED\r\n");
    let answer = client.exchange(b"get a\r\n", usize::MAX);
    assert!(answer == [b"VALUE a 0 3145728\r\n", &value[..], b"\r\nEND\r\n"].concat());
    let append = [b"append a 0 0 2\r\nhi\r\n".to_vec(), b"mg a s\r\n".to_vec()].concat();
    assert_eq!(client.say(append), "STORED\r\nHD s3145730\r\n");
}

#[test]
fn what_would_become_too_large_by_appending_is_not_stored() {
    let mut client = Client::new();
    assert_eq!(client.say(set("a", &vec![b'x'; MIB])), "STORED\r\n");
    assert_eq!(client.say("append a 0 0 1\r\ny\r\nmg a s\r\n"), "NOT_STORED\r\nHD s1048576\r\n");
}

#[test]
fn a_value_in_parts_is_answered_as_a_whole_one() {
    let limits = Limits { whole_value_bytes_max: 3, ..Limits::default() };
    let said = "set a 1 0 5\r\nhello\r\nget a\r\nadd a 0 0 4\r\nnope\r\nms b 5 T90 k Oq c s\r\n\
                hello\r\nms YWJj 4 b k q\r\nfour\r\nms c 4 I C9 c s\r\nfour\r\n\
                ms b 4 ME k\r\nfour\r\n\
                set a 0 0 4 noreply\r\nabcd\r\nget a\r\nset a 0 0 4\r\nabcdef\r\nget a\r\n\
                ms a 4 q\r\nabcdef\r\nset d 0 0 4 noreply\r\nabcdef\r\nget d abc\r\n\
                append a 0 0 4\r\n\
                efgh\r\nget a\r\n";
    let mut whole = Client::new();
    let expected = whole.say(said);
    assert!(expected.contains("HD kb Oq c2 s5"), "{expected}");
    for piece_bytes in [1, 2, 3, 5, 7, usize::MAX] {
        let mut client = Client::with(limits);
        let answers = client.exchange(said.as_bytes(), piece_bytes);
        assert_eq!(String::from_utf8_lossy(&answers), expected, "{piece_bytes}");
    }
}

#[test]
fn a_line_without_end_closes_the_connection() {
    for line in [vec![b'x'; 2049], [b"set ".to_vec(), vec![b'k'; 2045]].concat()] {
        let mut client = Client::new();
        assert_eq!(client.say(&line), "CLIENT_ERROR line too long\r\n");
        assert!(client.is_closed);
    }
    let mut client = Client::new();
    assert_eq!(
        client.say([&vec![b'x'; 2048][..], b"\r\n"].concat()),
        "CLIENT_ERROR line too long\r\n"
    );
    let mut client = Client::new();
    assert_eq!(client.say([&vec![b'x'; 2047][..], b"\r\nmn\r\n"].concat()), "ERROR\r\nMN\r\n");
    let mut client = Client::new();
    assert_eq!(
        client.say([b"get ".to_vec(), vec![b'k'; MIB]].concat()),
        "CLIENT_ERROR line too long\r\n"
    );
    assert!(client.is_closed);
}

#[test]
fn long_lines_are_answered_alike_in_any_pieces() {
    let long = "k".repeat(3000);
    for line in [format!("get {long}\r\n"), format!("gets a b {}\r\n", " c".repeat(2000))] {
        assert!(!talk(line).is_empty());
    }
    talk(format!("set {long}\r\nmn\r\n"));
    talk(format!("{}get a\r\nmn\r\n", " ".repeat(3000)));
    talk(format!("{}get a b\r\nmn\r\n", " ".repeat(100)));
}

#[test]
fn the_binary_protocol_is_refused_in_its_own_form() {
    let mut request = vec![0x80, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4];
    request.resize(24, 0);
    for piece_bytes in [1, 24] {
        let mut client = Client::new();
        let answer = client.exchange(&request, piece_bytes);
        assert_eq!(answer[..8], [0x81, 0x0a, 0, 0, 0, 0, 0, 0x83]);
        assert_eq!(answer[12..16], [1, 2, 3, 4]);
        let body_bytes = u32::from_be_bytes(answer[8..12].try_into().unwrap()) as usize;
        assert_eq!(answer.len(), 24 + body_bytes);
        assert!(client.is_closed);
    }
    // Behind a line it is nothing but an odd word.
    assert_eq!(Client::new().say(b"mn\r\n\x80\x0a\r\n"), "MN\r\nERROR\r\nERROR\r\n");
}

#[test]
fn output_waits_until_it_is_sent() {
    let limits = Limits { output_bytes_max: 1000, ..Limits::default() };
    let mut client = Client::with(limits);
    client.say(set("a", &[b'x'; 400]));
    let said = "get a\r\n".repeat(100);
    let room = client.connection.room();
    room[..said.len()].copy_from_slice(said.as_bytes());
    client.connection.received(said.len());
    let mut answers = Vec::new();
    let mut rounds = 0;
    while client.connection.run(&mut client.cache, client.now_s) == memcached::Next::Send {
        client.drain(&mut answers);
        rounds += 1;
    }
    assert_eq!(answers.len(), 100 * "VALUE a 0 400\r\n\r\nEND\r\n".len() + 100 * 400);
    assert_eq!(rounds, 2, "a batch of 64, and the rest");
}

#[test]
fn idle_connections_give_their_buffers_back_and_go_on() {
    let mut client = Client::new();
    client.say("set a 0 0 1\r\n1\r\nge");
    client.connection.release_buffers();
    assert_eq!(client.say("t a\r\n"), "VALUE a 0 1\r\n1\r\nEND\r\n");
    client.connection.release_buffers();
    assert_eq!(client.say("get a\r\n"), "VALUE a 0 1\r\n1\r\nEND\r\n");
}

#[test]
fn figures_are_told() {
    check(&[
        (
            "stats detail on|stats cachedump 1 1|stats cachedump 1|stats x|",
            "CLIENT_ERROR stats detail not allowed|END|CLIENT_ERROR bad command line|ERROR|",
        ),
        ("stats sizes|stats reset|", "STAT sizes_status disabled|END|RESET|"),
        ("stats items|", "END|"),
    ]);
}
