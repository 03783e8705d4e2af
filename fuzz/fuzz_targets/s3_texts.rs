//! What senders of S3 requests write into headers, queries and documents of settings.
#![no_main]

use buckets::lifecycle::Lifecycle;
use libfuzzer_sys::fuzz_target;
use s3::fuzzed;
use tamis_fuzz::input::Input;

const HEADERS: [&str; 12] = [
    "content-md5",
    "x-amz-checksum-crc32",
    "x-amz-checksum-crc32c",
    "x-amz-checksum-crc64nvme",
    "x-amz-checksum-sha1",
    "x-amz-checksum-sha256",
    "x-amz-trailer",
    "x-amz-sdk-checksum-algorithm",
    "x-amz-copy-source",
    "x-amz-storage-class",
    "x-amz-acl",
    "authorization",
];

fn pairs<'a>(input: &mut Input<'a>) -> Vec<(&'static str, &'a [u8])> {
    let count = usize::from(input.byte() % 4);
    let pair = |_| {
        let name = HEADERS[usize::from(input.byte()) % HEADERS.len()];
        let length = usize::from(input.byte());
        (name, input.bytes(length))
    };
    (0..count).map(pair).collect()
}

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, rest)) = bytes.split_first() else { return };
    match kind % 4 {
        0 => fuzzed::text(&String::from_utf8_lossy(rest)),
        1 => {
            let mut input = Input::new(rest);
            let (headers, trailers) = (pairs(&mut input), pairs(&mut input));
            let length = usize::from(input.byte());
            let query = String::from_utf8_lossy(input.bytes(length));
            fuzzed::request(&headers, &query, input.bytes(usize::MAX), &trailers);
        }
        2 => {
            let at = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
            fuzzed::cors(&rest[..at], &String::from_utf8_lossy(&rest[at..]));
        }
        _ => {
            let Ok(read) = serde_json::from_slice::<Lifecycle>(rest) else { return };
            let written = serde_json::to_vec(&read).expect("what was read can be written");
            assert_eq!(serde_json::from_slice::<Lifecycle>(&written).ok(), Some(read));
        }
    }
});
