//! Journal records and changes: what is decoded is encoded to the very same bytes.
#![no_main]

use format::FormatError;
use format::record::{
    Changes, RECORD_BYTES_MAX, RecordHeader, decode_header, encode_record, record_crc, verify_body,
};
use libfuzzer_sys::fuzz_target;
use tamis_fuzz::{block, heal};

fn decode(record: &[u8]) -> Result<(RecordHeader, &[u8]), FormatError> {
    let header = decode_header(record)?;
    Ok((header, verify_body(&header, record)?))
}

fn changes(body: &[u8]) {
    let mut again = Vec::new();
    let decoded: Vec<_> = Changes::new(body).collect();
    for change in decoded.iter().flatten() {
        change.encode(&mut again);
    }
    assert!(body.starts_with(&again));
    assert!(again.len() == body.len() || decoded.last().is_some_and(Result::is_err));
}

fuzz_target!(|input: &[u8]| {
    changes(input);
    let _ = decode(input);
    let mut record = block(input);
    heal(&mut record, |bytes| decode(bytes).map(drop));
    let Ok((header, body)) = decode(&record) else { return };
    assert!(header.length_bytes as usize <= RECORD_BYTES_MAX);
    changes(body);
    let mut again = vec![0xff; header.length_bytes as usize];
    let crc = encode_record(&header, body, &mut again);
    assert_eq!(decode(&again), Ok((header, body)));
    assert_eq!(record_crc(&again), Ok(crc));
});
