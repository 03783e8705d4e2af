use proptest::prelude::{Strategy, any, proptest};

use super::option::{InfoRequest, MetaContextRequest, OptionHeader};
use super::{
    CHUNK_DONE, Command, REQUEST_BYTES, Request, data_chunk_prefix, hole_chunk, simple_reply,
};

fn any_request() -> impl Strategy<Value = Request> {
    let fields = (any::<u16>(), any::<u16>(), any::<u64>(), any::<u64>(), any::<u32>());
    fields.prop_map(|(flags, number, cookie, offset_bytes, length_bytes)| Request {
        flags,
        command: Command::from_number(number),
        cookie,
        offset_bytes,
        length_bytes,
    })
}

#[test]
fn messages_are_these_bytes() {
    let mut bytes = Vec::new();
    let request = Request {
        flags: 1,
        command: Command::Write,
        cookie: 0x0102_0304_0506_0708,
        offset_bytes: 0x1000,
        length_bytes: 0x200,
    };
    request.encode(&mut bytes);
    let expected = b"\x25\x60\x95\x13\0\x01\0\x01\x01\x02\x03\x04\x05\x06\x07\x08\
        \0\0\0\0\0\0\x10\0\0\0\x02\0";
    assert_eq!(bytes, expected);
    assert_eq!(simple_reply(22, 7), *b"\x67\x44\x66\x98\0\0\0\x16\0\0\0\0\0\0\0\x07");
    assert_eq!(
        data_chunk_prefix(CHUNK_DONE, 7, 0x1000, 0x200),
        *b"\x66\x8e\x33\xef\0\x01\0\x01\0\0\0\0\0\0\0\x07\0\0\x02\x08\0\0\0\0\0\0\x10\0"
    );
    assert_eq!(
        hole_chunk(0, 7, 0x1000, 0x200),
        *b"\x66\x8e\x33\xef\0\0\0\x02\0\0\0\0\0\0\0\x07\0\0\0\x0c\0\0\0\0\0\0\x10\0\0\0\x02\0"
    );
}

proptest! {
    #[test]
    fn requests_read_back(request in any_request()) {
        let mut bytes = Vec::new();
        request.encode(&mut bytes);
        let bytes: [u8; REQUEST_BYTES] = bytes.try_into().unwrap();
        assert_eq!(Request::decode(&bytes), Some(request));
    }

    #[test]
    fn only_the_magic_makes_a_request(bytes in any::<[u8; REQUEST_BYTES]>()) {
        let magic = bytes.starts_with(b"\x25\x60\x95\x13");
        assert_eq!(Request::decode(&bytes).is_some(), magic);
    }

    #[test]
    fn option_headers_read_back(option in any::<u32>(), length_bytes in any::<u32>()) {
        let header = OptionHeader { option, length_bytes };
        let mut bytes = Vec::new();
        header.encode(&mut bytes);
        assert_eq!(OptionHeader::decode(&bytes.try_into().unwrap()), Some(header));
    }

    #[test]
    fn info_requests_read_back(
        name in "\\PC{0,40}",
        facts in proptest::collection::vec(any::<u16>(), 0..5),
    ) {
        let mut data = u32::try_from(name.len()).unwrap().to_be_bytes().to_vec();
        data.extend_from_slice(name.as_bytes());
        data.extend_from_slice(&u16::try_from(facts.len()).unwrap().to_be_bytes());
        facts.iter().for_each(|fact| data.extend_from_slice(&fact.to_be_bytes()));
        let expected = InfoRequest { export: &name, facts };
        assert_eq!(InfoRequest::decode(&data), Some(expected));
        data.push(0);
        assert_eq!(InfoRequest::decode(&data), None);
    }

    #[test]
    fn any_option_data_is_read_or_refused(data in proptest::collection::vec(0_u8..4, 0..64)) {
        // Small bytes make lengths that lead somewhere.
        if let Some(request) = InfoRequest::decode(&data) {
            assert_eq!(data.len(), 6 + request.export.len() + 2 * request.facts.len());
        }
        if let Some(request) = MetaContextRequest::decode(&data) {
            let queries: usize = request.queries.iter().map(|query| 4 + query.len()).sum();
            assert_eq!(data.len(), 8 + request.export.len() + queries);
        }
    }
}
