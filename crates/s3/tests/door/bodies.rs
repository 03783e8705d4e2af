//! Bodies that are not what their senders say. None of them is an object, and the server goes on.

use std::io::Write;
use std::net::Shutdown;

use crate::client::{Answer, Payload, Request, read_answer};
use crate::rig::{Rig, noise};

const LENGTHS: [usize; 2] = [1000, 1 << 20];

fn put<'a>(rig: &'a Rig, payload: Payload, length: usize) -> Request<'a> {
    rig.client.request("PUT", "/photos/key").payload(payload).body(&noise(length, 3))
}

/// Sends what the request has, and nothing more.
fn sent(request: Request<'_>) -> Answer {
    let mut stream = request.begin(|length| length);
    stream.shutdown(Shutdown::Write).unwrap();
    read_answer(&mut stream, "PUT")
}

fn nothing_was_put(rig: &Rig) {
    assert_eq!(rig.client.get("/photos/key").refused(), (404, "NoSuchKey".into()));
    assert_eq!(rig.client.get("/photos?list-type=2").element("KeyCount").as_deref(), Some("0"));
}

#[test]
fn a_body_that_is_too_short_or_too_long_is_no_object() {
    let rig = Rig::with_bucket();
    for length in LENGTHS {
        for payload in [Payload::Signed, Payload::Unsigned] {
            let short = sent(put(&rig, payload, length).announced(length as u64 + 7));
            assert_eq!(short.refused(), (400, "IncompleteBody".into()), "{}", short.text());
        }
        // What is behind the announced length is no part of the body.
        let long = sent(put(&rig, Payload::Signed, length).announced(length as u64 - 7));
        assert_eq!(long.refused(), (400, "XAmzContentSHA256Mismatch".into()), "{}", long.text());
        for payload in [Payload::Chunks, Payload::NoTrailer("x-other")] {
            for announced in [length as u64 - 7, length as u64 + 7] {
                let other = sent(put(&rig, payload, length).announced(announced));
                assert_eq!(other.refused(), (400, "IncompleteBody".into()), "{}", other.text());
            }
        }
        nothing_was_put(&rig);
    }
    let huge = put(&rig, Payload::Unsigned, 10).announced((5 << 40) + 1);
    assert_eq!(huge.send().refused(), (400, "EntityTooLarge".into()));
    let huge = put(&rig, Payload::Chunks, 10).announced((5 << 40) + 1);
    assert_eq!(huge.send().refused(), (400, "EntityTooLarge".into()));
    let huge = put(&rig, Payload::Unsigned, 10).announced(u64::MAX);
    assert!((400..500).contains(&huge.send().status));
    nothing_was_put(&rig);
}

#[test]
fn a_body_that_is_cut_anywhere_is_no_object() {
    let rig = Rig::with_bucket();
    for length in LENGTHS {
        for payload in [Payload::Signed, Payload::Chunks, Payload::NoTrailer("x-other")] {
            for cut in [1, 3, 70, length / 2] {
                let mut stream = put(&rig, payload, length).begin(|all| all - cut);
                stream.shutdown(Shutdown::Write).unwrap();
                let answer = read_answer(&mut stream, "PUT");
                assert!((400..500).contains(&answer.status), "{cut}: {}", answer.text());
                nothing_was_put(&rig);
            }
        }
    }
}

#[test]
fn wrong_hashes_and_headers_are_told_apart() {
    let rig = Rig::with_bucket();
    let headers = [
        ("content-md5", "AAAAAAAAAAAAAAAAAAAAAA==", "BadDigest"),
        ("content-md5", "AAAA", "InvalidDigest"),
        ("content-md5", "?", "InvalidDigest"),
        ("x-amz-checksum-sha256", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "BadDigest"),
        ("x-amz-checksum-crc32c", "AAAAAA==", "BadDigest"),
        ("x-amz-checksum-sha256", "AAAAAA==", "InvalidRequest"),
        ("x-amz-checksum-crc32", "", "InvalidRequest"),
        ("x-amz-sdk-checksum-algorithm", "CRC32", "InvalidRequest"),
    ];
    for length in LENGTHS {
        for (name, value, code) in headers {
            let answer = put(&rig, Payload::Signed, length).header(name, value).send();
            assert_eq!(answer.refused(), (400, code.to_owned()), "{name}: {value}");
        }
        let claimed = "0000000000000000000000000000000000000000000000000000000000000000";
        let answer = put(&rig, Payload::Claimed(claimed), length).send();
        assert_eq!(answer.refused(), (400, "XAmzContentSHA256Mismatch".into()));
        let answer = put(&rig, Payload::Claimed("0000"), length).send();
        assert!((400..500).contains(&answer.status), "{}", answer.text());
        let missing = put(&rig, Payload::NoTrailer("x-amz-checksum-crc32"), length).send();
        assert_eq!(missing.refused(), (400, "InvalidRequest".into()), "{}", missing.text());
        nothing_was_put(&rig);
    }
}

#[test]
fn chunks_with_other_signatures_are_refused() {
    let rig = Rig::with_bucket();
    for length in LENGTHS {
        let (mut bytes, address) = put(&rig, Payload::Chunks, length).bytes();
        let at = bytes.windows(16).position(|found| found == b"chunk-signature=").unwrap() + 20;
        bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let _ = stream.write_all(&bytes);
        let answer = read_answer(&mut stream, "PUT");
        assert_eq!(answer.refused(), (403, "SignatureDoesNotMatch".into()), "{}", answer.text());
        let (mut bytes, address) = put(&rig, Payload::Chunks, length).bytes();
        let at = bytes.windows(4).position(|found| found == b"\r\n\r\n").unwrap() + 4;
        bytes[at] = b'z';
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let _ = stream.write_all(&bytes);
        let answer = read_answer(&mut stream, "PUT");
        assert_eq!(answer.refused(), (400, "InvalidRequest".into()), "{}", answer.text());
        nothing_was_put(&rig);
    }
}

#[test]
fn forms_are_refused_however_they_are_written() {
    let rig = Rig::with_bucket();
    for kind in ["multipart/form-data; boundary=a", "Multipart/Form-Data;boundary=a"] {
        let form = rig.client.request("POST", "/photos").header("content-type", kind).body(b"--a");
        assert_eq!(form.send().refused(), (501, "NotImplemented".into()), "{kind}");
    }
}
