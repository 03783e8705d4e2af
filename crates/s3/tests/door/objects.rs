//! Objects: put, read, copied, deleted.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::thread;

use crate::client::Payload;
use crate::rig::{Rig, noise};

#[test]
fn what_is_put_is_read_whole_in_ranges_and_deleted() {
    let rig = Rig::with_bucket();
    let client = &rig.client;
    for (length, payload) in [
        (0, Payload::Signed),
        (5, Payload::Unsigned),
        (100_000, Payload::Signed),
        (100_000, Payload::Chunks),
        (3 << 20, Payload::Signed),
        (3 << 20, Payload::Chunks),
    ] {
        let bytes = noise(length, length as u64);
        let put = client.request("PUT", "/photos/a b/ü.jpg").payload(payload).body(&bytes);
        let put = put.header("content-type", "image/jpeg").header("x-amz-meta-who", "me").send();
        assert_eq!(put.status, 200, "{}", put.text());
        let got = client.get("/photos/a b/ü.jpg");
        assert!(got.status == 200 && got.body == bytes);
        assert_eq!(got.header("etag"), put.header("etag"));
        assert_eq!(got.header("content-type"), Some("image/jpeg"));
        assert_eq!(got.header("x-amz-meta-who"), Some("me"));
        assert_eq!(got.header("content-encoding"), None);
        let head = client.request("HEAD", "/photos/a b/ü.jpg").send();
        assert_eq!(head.header("content-length").unwrap(), length.to_string());
        assert!(head.body.is_empty());
    }
    let range =
        |range: &str| client.request("GET", "/photos/a b/ü.jpg").header("range", range).send();
    let bytes = noise(3 << 20, 3 << 20);
    let part = range("bytes=1000000-2000000");
    assert_eq!((part.status, part.body == bytes[1_000_000..=2_000_000]), (206, true));
    assert_eq!(part.header("content-range"), Some("bytes 1000000-2000000/3145728"));
    assert!(range("bytes=-7").body == bytes[bytes.len() - 7..]);
    assert_eq!(range("bytes=3145728-").refused(), (416, "InvalidRange".into()));
    assert_eq!(rig.client.put("/photos/empty", b"").status, 200);
    let empty = rig.client.request("GET", "/photos/empty").header("range", "bytes=-7").send();
    assert_eq!(empty.refused(), (416, "InvalidRange".into()));
    assert_eq!(client.delete("/photos/a b/ü.jpg").status, 204);
    assert_eq!(client.delete("/photos/a b/ü.jpg").status, 204);
    assert_eq!(client.get("/photos/a b/ü.jpg").refused(), (404, "NoSuchKey".into()));
    assert_eq!(client.get("/nothing/key").refused(), (404, "NoSuchBucket".into()));
    let long = format!("/photos/{}", "k".repeat(1025));
    assert_eq!(client.put(&long, b"").refused(), (400, "KeyTooLongError".into()));
}

/// A client that waits for "100 Continue" and gets the answer finds the connection closed: boto3
/// would take the next answer on it for one like this.
#[test]
fn an_answer_in_the_place_of_a_continue_ends_the_connection() {
    let rig = Rig::with_bucket();
    let answered = |target: &str, body: &[u8], enough| {
        let request = rig.client.request("PUT", target).body(body);
        String::from_utf8(request.send_after_continue(enough)).unwrap()
    };
    let empty = answered("/photos/empty", b"", usize::MAX);
    assert!(empty.starts_with("HTTP/1.1 200 ") && empty.contains("connection: close"), "{empty}");
    let refused = answered("/nothing/key", b"bytes", usize::MAX);
    // The body may have been asked for before the bucket was.
    let refused = refused.trim_start_matches("HTTP/1.1 100 Continue\r\n\r\n");
    assert!(refused.starts_with("HTTP/1.1 404 "), "{refused}");
    assert!(refused.contains("connection: close"), "{refused}");
    let put = answered("/photos/key", b"bytes", 80);
    assert!(put.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 "), "{put}");
    assert!(!put.contains("connection: close"), "{put}");
}

#[test]
fn a_body_that_is_not_what_its_sender_says_is_no_object() {
    let rig = Rig::with_bucket();
    let put = || rig.client.request("PUT", "/photos/key").body(b"123456789");
    let wrong = [
        ("content-md5", "AAAAAAAAAAAAAAAAAAAAAA=="),
        ("x-amz-checksum-crc32", "AAAAAA=="),
        ("x-amz-checksum-crc64nvme", "AAAAAAAAAAA="),
        ("x-amz-checksum-sha1", "AAAAAAAAAAAAAAAAAAAAAAAAAAA="),
    ];
    for (name, value) in wrong {
        assert_eq!(put().header(name, value).send().refused(), (400, "BadDigest".into()), "{name}");
    }
    let malformed = put().header("x-amz-checksum-crc32c", "AAAA").send();
    assert_eq!(malformed.refused(), (400, "InvalidRequest".into()));
    let trailer = Payload::Trailer("x-amz-checksum-crc32", "AAAAAA==");
    assert_eq!(put().payload(trailer).send().refused(), (400, "BadDigest".into()));
    assert_eq!(rig.client.get("/photos/key").refused(), (404, "NoSuchKey".into()));
    let trailer = Payload::Trailer("x-amz-checksum-crc32", "y/Q5Jg==");
    let good = put().payload(trailer).send();
    assert_eq!(good.header("x-amz-checksum-crc32"), Some("y/Q5Jg=="), "{}", good.text());
    let asked = rig.client.request("GET", "/photos/key").header("x-amz-checksum-mode", "ENABLED");
    assert_eq!(asked.send().header("x-amz-checksum-crc32"), Some("y/Q5Jg=="));
    assert_eq!(rig.client.get("/photos/key").header("x-amz-checksum-crc32"), None);
}

#[test]
fn a_body_of_other_bytes_than_were_signed_is_no_object() {
    let rig = Rig::with_bucket();
    for payload in [Payload::Signed, Payload::Chunks] {
        for length in [1000, 1 << 20] {
            let request = rig.client.request("PUT", "/photos/key").payload(payload);
            let (mut bytes, address) = request.body(&noise(length, 1)).bytes();
            let at = bytes.len() - 500;
            bytes[at] ^= 1;
            let mut stream = TcpStream::connect(address).unwrap();
            let _ = stream.write_all(&bytes);
            let mut answer = String::new();
            let _ = std::io::Read::read_to_string(&mut stream, &mut answer);
            assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
            assert_eq!(rig.client.get("/photos/key").status, 404);
        }
    }
}

#[test]
fn conditions_are_held() {
    let rig = Rig::with_bucket();
    let client = &rig.client;
    let put = |name: &str, value: &str| {
        client.request("PUT", "/photos/key").header(name, value).body(b"one").send()
    };
    let etag = put("if-none-match", "*").header("etag").unwrap().to_owned();
    assert_eq!(put("if-none-match", "*").refused(), (412, "PreconditionFailed".into()));
    let other = "\"00000000000000000000000000000000\"";
    assert_eq!(put("if-match", other).refused(), (412, "PreconditionFailed".into()));
    assert_eq!(put("if-match", &etag).status, 200);
    let get =
        |name: &str, value: &str| client.request("GET", "/photos/key").header(name, value).send();
    assert_eq!(get("if-none-match", &etag).status, 304);
    assert_eq!(get("if-none-match", other).status, 200);
    assert_eq!(get("if-match", other).status, 412);
    assert_eq!(get("if-modified-since", "Fri, 01 Jan 2100 00:00:00 GMT").status, 304);
    assert_eq!(get("if-unmodified-since", "Sat, 01 Jan 2000 00:00:00 GMT").status, 412);
    let delete = client.request("DELETE", "/photos/key").header("if-match", other).send();
    assert_eq!(delete.refused(), (412, "PreconditionFailed".into()));
}

#[test]
fn copies_keep_or_replace_what_the_source_says() {
    let rig = Rig::with_bucket();
    let client = &rig.client;
    assert_eq!(client.put("/other", b"").status, 200);
    let bytes = noise(2 << 20, 5);
    let put = client.request("PUT", "/photos/from").header("x-amz-tagging", "a=1&b=2");
    assert_eq!(put.header("x-amz-meta-who", "me").body(&bytes).send().status, 200);
    for to in ["/photos/to", "/other/to"] {
        let copy = client.request("PUT", to).header("x-amz-copy-source", "photos/from").send();
        assert_eq!(copy.status, 200, "{}", copy.text());
        let got = client.get(to);
        assert!(got.body == bytes);
        assert_eq!(got.header("x-amz-meta-who"), Some("me"));
        assert_eq!(client.get(&format!("{to}?tagging")).elements("Key"), ["a", "b"]);
    }
    let replaced = client.request("PUT", "/photos/from").header("x-amz-copy-source", "photos/from");
    assert_eq!(replaced.send().refused(), (400, "InvalidRequest".into()));
    let replaced = client
        .request("PUT", "/photos/from")
        .header("x-amz-copy-source", "photos/from")
        .header("x-amz-metadata-directive", "REPLACE")
        .header("x-amz-meta-who", "you")
        .send();
    assert_eq!(replaced.status, 200);
    assert_eq!(client.get("/photos/from").header("x-amz-meta-who"), Some("you"));
    let none = client.request("PUT", "/photos/to").header("x-amz-copy-source", "photos/none");
    assert_eq!(none.send().refused(), (404, "NoSuchKey".into()));
}

#[test]
fn many_are_deleted_at_once() {
    let rig = Rig::with_bucket();
    for key in ["a", "b", "c"] {
        assert_eq!(rig.client.put(&format!("/photos/{key}"), b"1").status, 200);
    }
    let body = "<Delete><Object><Key>a</Key></Object><Object><Key>b</Key></Object>\
                <Object><Key>none</Key></Object></Delete>";
    let deleted = rig.client.post("/photos?delete", body);
    assert_eq!(deleted.elements("Key"), ["a", "b", "none"]);
    assert_eq!(rig.client.get("/photos?list-type=2").elements("Key"), ["c"]);
}

#[test]
fn a_client_that_goes_leaves_nothing() {
    let rig = Rig::with_bucket();
    let request = rig.client.request("PUT", "/photos/key").body(&noise(4 << 20, 9));
    let (bytes, address) = request.bytes();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&bytes[..3 << 20]).unwrap();
    stream.shutdown(Shutdown::Both).unwrap();
    drop(stream);
    // A bucket that somebody writes into is not deleted, so this waits for the writer.
    let deleted = rig.client.delete("/photos");
    assert_eq!(deleted.status, 204, "{}", deleted.text());
}

#[test]
fn puts_of_many_threads_are_durable_and_share_flushes() {
    let rig = Rig::with_bucket();
    thread::scope(|scope| {
        for number in 0..10 {
            let client = rig.client.clone();
            scope.spawn(move || {
                for at in 0..20 {
                    let put = client.put(&format!("/photos/{number}/{at}"), &noise(4096, at));
                    assert_eq!(put.status, 200);
                }
            });
        }
    });
    let listing = rig.client.get("/photos?list-type=2");
    assert_eq!(listing.element("KeyCount").as_deref(), Some("200"));
    assert!(rig.client.get("/photos/7/19").body == noise(4096, 19));
}
