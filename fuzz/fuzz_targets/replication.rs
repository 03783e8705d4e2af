//! Messages of a replication: whatever comes, it is a message, which is written the same again, or
//! an error.
#![no_main]

use format::checksum::crc32c;
use format::replication::{FRAME_HEAD_BYTES, Message};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    let mut head = [0; FRAME_HEAD_BYTES];
    head[..4].copy_from_slice(&(body.len() as u32).to_le_bytes());
    head[4..].copy_from_slice(&crc32c(body).to_le_bytes());
    assert_eq!(Message::body_bytes(head).is_ok(), !body.is_empty());
    if let Ok(message) = Message::decode(head, body) {
        let mut frame = Vec::new();
        message.encode(&mut frame);
        assert_eq!(&frame[..FRAME_HEAD_BYTES], &head);
        assert_eq!(&frame[FRAME_HEAD_BYTES..], body);
    }
});
