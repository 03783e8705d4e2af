//! Who a client is. Facts: memcached's `-Y`, and its own tests of it.

use crate::talk::{Client, NOW_S};
use memcached::model::ModelCache;
use memcached::{Authentication, Authenticator, Connection, Limits, Next};

struct Known;

impl Authenticator for Known {
    type Identity = &'static str;

    fn check(&mut self, user: &[u8], password: &[u8]) -> Option<&'static str> {
        (user == b"foo" && password == b"bar").then_some("foo")
    }
}

/// Sends bytes in pieces until the client is known, and says what was answered and who it is.
fn login(said: &[u8], piece_bytes: usize) -> (String, Option<&'static str>, Next) {
    let mut connection = Connection::<ModelCache>::new(Limits::default());
    let mut cache = ModelCache::default();
    let mut identity = None;
    let mut answers = Vec::new();
    let mut last = Next::Receive;
    for piece in said.chunks(piece_bytes) {
        connection.room()[..piece.len()].copy_from_slice(piece);
        connection.received(piece.len());
        loop {
            let next = match identity {
                Some(_) => connection.run(&mut cache, NOW_S),
                None => match connection.authenticate(&mut Known) {
                    Authentication::Accepted(account) => {
                        identity = Some(account);
                        continue;
                    }
                    Authentication::Waiting(next) => next,
                },
            };
            last = next;
            if next != Next::Send {
                break;
            }
            let chunk = connection.chunk().unwrap().to_vec();
            connection.sent(chunk.len());
            answers.extend_from_slice(&chunk);
        }
    }
    (String::from_utf8(answers).unwrap(), identity, last)
}

#[test]
fn a_client_is_known_by_its_token() {
    for (said, answered, is_known) in [
        ("get foo\r\n", "CLIENT_ERROR unauthenticated\r\n", false),
        ("set foo 0 0 2\r\nhi\r\n", "CLIENT_ERROR bad authentication token format\r\n", false),
        ("set foo 0 0 7\r\nfoo bab\r\n", "CLIENT_ERROR authentication failure\r\n", false),
        (
            "set foo 0 0 7\r\nfoo barxy\r\n",
            "CLIENT_ERROR bad command line termination\r\nCLIENT_ERROR unauthenticated\r\n",
            false,
        ),
        ("set foo 0 0 7\r\nfoo bar\r\n", "STORED\r\n", true),
        ("set foo 0 0 7\nfoo bar\r\n", "STORED\r\n", true),
        ("set any 1 x 7 noreply\r\nfoo bar\r\n", "STORED\r\n", true),
        ("set foo 0 0\r\n", "CLIENT_ERROR unauthenticated\r\n", false),
        (
            "add foo 0 0 7\r\nfoo bar\r\n",
            "CLIENT_ERROR unauthenticated\r\nCLIENT_ERROR unauthenticated\r\n",
            false,
        ),
        (
            "version\r\nset a 0 0 7\r\nfoo bar\r\nset a 0 0 1\r\n1\r\nget a\r\n",
            "CLIENT_ERROR unauthenticated\r\nSTORED\r\nSTORED\r\nVALUE a 0 1\r\n1\r\nEND\r\n",
            true,
        ),
    ] {
        for piece_bytes in [1, 2, 1000] {
            let (answers, identity, next) = login(said.as_bytes(), piece_bytes);
            assert_eq!(answers.trim_end(), answered.trim_end(), "to {said}");
            assert_eq!(identity.is_some(), is_known, "to {said}");
            assert_eq!(next, Next::Receive);
        }
    }
}

#[test]
fn a_client_that_sends_no_line_or_a_long_token_is_closed() {
    let (answers, _, next) = login(&[b'x'; 2049], 100);
    assert_eq!((answers.as_str(), next), ("", Next::Close));
    let (answers, _, next) = login(b"set a 0 0 1025\r\nfoo", 100);
    assert_eq!(answers, "CLIENT_ERROR bad authentication token format\r\n");
    assert_eq!(next, Next::Close);
    let mut binary = [0; 24];
    binary[0] = 0x80;
    let mut connection = Connection::<ModelCache>::new(Limits::default());
    connection.room()[..24].copy_from_slice(&binary);
    connection.received(24);
    assert_eq!(connection.authenticate(&mut Known), Authentication::Waiting(Next::Send));
    assert_eq!(connection.chunk().unwrap()[..2], [0x81, 0]);
}

#[test]
fn logins_are_counted() {
    let mut client = Client::new();
    for (token, _) in [("foo bab", false), ("foo bar", true)] {
        let said = format!("set a 0 0 7\r\n{token}\r\n");
        client.connection.room()[..said.len()].copy_from_slice(said.as_bytes());
        client.connection.received(said.len());
        let _ = client.connection.authenticate(&mut Known);
    }
    let figures = client.say("stats\r\n");
    assert!(figures.contains("STAT auth_cmds 2\r\nSTAT auth_errors 1\r\n"), "{figures}");
}
