//! Messages of NBD clients: what is taken for one is the same when it is encoded again, and says no
//! more about its length than what has arrived.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nbd::wire::Request;
use nbd::wire::option::{InfoRequest, MetaContextRequest, OptionHeader};

fuzz_target!(|input: &[u8]| {
    if let Some(request) = input.first_chunk().and_then(Request::decode) {
        let mut again = Vec::new();
        request.encode(&mut again);
        assert!(input.starts_with(&again));
        assert!(request.payload_bytes() <= request.length_bytes as usize);
    }
    if let Some(header) = input.first_chunk().and_then(OptionHeader::decode) {
        let mut again = Vec::new();
        header.encode(&mut again);
        assert!(input.starts_with(&again));
    }
    if let Some(request) = InfoRequest::decode(input) {
        assert_eq!(input.len(), 6 + request.export.len() + 2 * request.facts.len());
    }
    if let Some(request) = MetaContextRequest::decode(input) {
        let queries: usize = request.queries.iter().map(|query| 4 + query.len()).sum();
        assert_eq!(input.len(), 8 + request.export.len() + queries);
    }
});
