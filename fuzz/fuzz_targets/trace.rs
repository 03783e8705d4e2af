//! Traces: whatever the bytes, reading comes to its end, every byte is counted, and a request that
//! is believed is written to a line that says the same.
#![no_main]

use std::io::BufReader;

use libfuzzer_sys::fuzz_target;
use traces::{Content, Request, TraceReader, parse_line, write_line};

fuzz_target!(|input: &[u8]| {
    // A small buffer, so that lines do not lie in it whole.
    let mut reader = TraceReader::new(BufReader::with_capacity(61, input));
    let (mut request, mut again) = (Request::default(), Request::default());
    let mut line = Vec::new();
    while reader.read(&mut request).expect("memory can be read") {
        line.clear();
        write_line(&mut line, &request).expect("memory can be written");
        assert_eq!(parse_line(&line, &mut again), Ok(()));
        // A name that is no UTF-8 is told with marks for what it was.
        assert_eq!(request, again);
        let mut bytes = vec![1; request.length_bytes() as usize];
        Content::new(50).fill(request.grain, &request.digests, &mut bytes);
        assert_eq!(bytes.len() as u64, request.digests.len() as u64 * request.grain.bytes());
    }
    assert_eq!(reader.bytes(), input.len() as u64);
});
