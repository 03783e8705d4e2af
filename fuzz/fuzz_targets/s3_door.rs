//! S3 by a real connection: whatever a client with a key asks, it is answered, and never with an
//! internal error; the next request is answered as ever.
#![no_main]

use std::sync::atomic::{AtomicU64, Ordering};

use libfuzzer_sys::fuzz_target;
use tamis_fuzz::input::Input;
use tamis_fuzz::s3::{BUCKET, s3_served};

/// Requests until the bucket is made anew.
const REQUESTS: u64 = 500;
const TEXT_BYTES_MAX: usize = 64;

/// Method, whether the path has a key, and the query.
const OPERATIONS: [(&str, bool, &str); 26] = [
    ("GET", true, ""),
    ("HEAD", true, ""),
    ("PUT", true, ""),
    ("DELETE", true, ""),
    ("GET", true, "tagging"),
    ("PUT", true, "tagging"),
    ("GET", true, "attributes"),
    ("GET", true, "acl"),
    ("POST", true, "uploads"),
    ("PUT", true, "partNumber=1&uploadId=0000000000000001"),
    ("GET", true, "uploadId=0000000000000001"),
    ("POST", true, "uploadId=0000000000000001"),
    ("DELETE", true, "uploadId=0000000000000001"),
    ("GET", false, ""),
    ("GET", false, "list-type=2"),
    ("GET", false, "uploads"),
    ("POST", false, "delete"),
    ("PUT", false, "tagging"),
    ("GET", false, "tagging"),
    ("PUT", false, "cors"),
    ("GET", false, "cors"),
    ("PUT", false, "lifecycle"),
    ("GET", false, "lifecycle"),
    ("GET", false, "location"),
    ("OPTIONS", true, ""),
    ("PUT", false, ""),
];
const QUERIES: [&str; 12] = [
    "prefix",
    "delimiter",
    "marker",
    "max-keys",
    "start-after",
    "continuation-token",
    "encoding-type",
    "key-marker",
    "upload-id-marker",
    "partNumber",
    "response-content-type",
    "versionId",
];
const HEADERS: [&str; 20] = [
    "range",
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
    "content-type",
    "content-md5",
    "x-amz-meta-a",
    "x-amz-tagging",
    "x-amz-copy-source",
    "x-amz-copy-source-range",
    "x-amz-metadata-directive",
    "x-amz-checksum-crc32",
    "x-amz-checksum-algorithm",
    "x-amz-checksum-type",
    "x-amz-object-attributes",
    "expires",
    "cache-control",
    "origin",
    "access-control-request-method",
];

fn text(input: &mut Input<'_>) -> String {
    let length = usize::from(input.byte()) % TEXT_BYTES_MAX;
    String::from_utf8_lossy(input.bytes(length)).into_owned()
}

fuzz_target!(|bytes: &[u8]| {
    static ASKED: AtomicU64 = AtomicU64::new(0);
    let served = s3_served();
    let mut input = Input::new(bytes);
    let (method, has_key, query) = OPERATIONS[usize::from(input.byte()) % OPERATIONS.len()];
    let path = match has_key {
        true => format!("/{BUCKET}/{}", text(&mut input)),
        false => format!("/{BUCKET}"),
    };
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let mut query: Vec<_> =
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    for _ in 0..input.byte() % 4 {
        let name = QUERIES[usize::from(input.byte()) % QUERIES.len()];
        query.push((name.to_owned(), text(&mut input)));
    }
    let mut headers = Vec::new();
    for _ in 0..input.byte() % 4 {
        let name = HEADERS[usize::from(input.byte()) % HEADERS.len()];
        let length = usize::from(input.byte()) % TEXT_BYTES_MAX;
        let value = input.bytes(length).iter().map(|byte| match byte {
            0x20..0x7f | 0x80.. => *byte,
            _ => b' ',
        });
        headers.push((name.to_owned(), value.collect()));
    }
    let body = input.bytes(4096);
    let answer = served.ask(method, &path, &query, &headers, body);
    let status = answer.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok());
    let status: u16 = status.and_then(|digits| digits.parse().ok()).expect("it is an answer");
    let shown = String::from_utf8_lossy(&answer);
    assert!(status < 500 || status == 501, "{method} {path} {query:?} {headers:?}: {shown}");
    if ASKED.fetch_add(1, Ordering::Relaxed) % REQUESTS == REQUESTS - 1 {
        served.empty();
    }
});
