//! Frames: a frame that is decoded is the one that its header and payload encode to.
#![no_main]

use format::frame::{FRAME_BYTES_MAX, FRAME_HEADER_BYTES, decode, write_header};
use libfuzzer_sys::fuzz_target;
use tamis_fuzz::heal;

fuzz_target!(|input: &[u8]| {
    let _ = decode(input);
    let mut frame = input.to_vec();
    heal(&mut frame, |bytes| decode(bytes).map(drop));
    let Ok((header, payload)) = decode(&frame) else { return };
    assert!(frame.len() <= FRAME_BYTES_MAX);
    assert!(header.stored_bytes <= header.plain_bytes);
    let mut again = vec![0; FRAME_HEADER_BYTES];
    again.extend_from_slice(payload);
    write_header(&mut again, &header);
    assert_eq!(again, frame);
});
