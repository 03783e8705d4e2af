//! Clients that stop half way, or only hold a connection. The server gives them up, and goes on.

use std::net::TcpStream;
use std::time::Duration;

use s3::Timeouts;

use crate::client::{Payload, read_answer};
use crate::rig::{Rig, noise};

/// As little as a loaded machine still sends a request in.
const SHORT: Duration = Duration::from_millis(700);

fn impatient() -> Rig {
    let rig = Rig::with_timeouts(Timeouts { head: SHORT, body: SHORT, answer: SHORT });
    assert_eq!(rig.client.put("/photos", b"").status, 200);
    rig
}

#[test]
fn who_stops_in_a_body_is_given_up() {
    let rig = impatient();
    for length in [1000, 4 << 20] {
        for payload in [Payload::Signed, Payload::Unsigned, Payload::Chunks] {
            let request = rig.client.request("PUT", "/photos/key").payload(payload);
            let mut stream = request.body(&noise(length, 1)).begin(|all| all - length / 2);
            let answer = read_answer(&mut stream, "PUT");
            assert_eq!(answer.refused(), (400, "RequestTimeout".into()), "{}", answer.text());
        }
    }
    let document = rig.client.request("POST", "/photos?delete").body(&[b' '; 1000]);
    let mut stream = document.begin(|all| all - 1);
    assert_eq!(read_answer(&mut stream, "POST").refused(), (400, "RequestTimeout".into()));
    // A bucket that somebody writes into is not deleted.
    assert_eq!(rig.client.delete("/photos").status, 204);
}

#[test]
fn who_stops_in_a_head_is_cut() {
    let rig = impatient();
    let mut stream = rig.client.request("GET", "/photos/key").begin(|all| all - 1);
    let mut bytes = Vec::new();
    let _ = std::io::Read::read_to_end(&mut stream, &mut bytes);
    assert!(!bytes.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&bytes));
}

#[test]
fn who_reads_nothing_is_cut_and_holds_no_bucket() {
    let rig = impatient();
    let bytes = noise(64 << 20, 5);
    assert_eq!(rig.client.put("/photos/long", &bytes).status, 200);
    let readers: Vec<TcpStream> =
        (0..4).map(|_| rig.client.request("GET", "/photos/long").begin(|all| all)).collect();
    assert_eq!(rig.client.delete("/photos/long").status, 204);
    // A bucket that somebody reads from is not deleted; who looks again finds it free.
    while rig.client.delete("/photos").refused() == (409, "OperationAborted".to_owned()) {}
    assert_eq!(rig.client.get("/photos").refused(), (404, "NoSuchBucket".into()));
    drop(readers);
}

#[test]
fn a_thousand_idle_connections_keep_nobody_out() {
    let rig = Rig::with_bucket();
    let idle: Vec<TcpStream> =
        (0..1000).map(|_| TcpStream::connect(rig.client.address).unwrap()).collect();
    for at in 0..20 {
        assert_eq!(rig.client.put(&format!("/photos/{at}"), &noise(5000, at)).status, 200);
    }
    assert_eq!(rig.client.get("/photos?list-type=2").element("KeyCount").as_deref(), Some("20"));
    drop(idle);
}
