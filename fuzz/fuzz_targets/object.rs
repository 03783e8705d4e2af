//! Records of objects, lists of segments, extents: what is decoded is encoded to the same again.
#![no_main]

use format::objects::extents::{
    ToFree, decode_free, decode_shared, decode_to_free, encode_range, encode_shared, encode_tree,
};
use format::objects::record::ObjectRecord;
use format::objects::segments::{
    ENTRY_BYTES, ListEntry, SEGMENT_BLOCK_BYTES, Subtree, decode_block, encode_block,
};
use libfuzzer_sys::fuzz_target;
use tamis_fuzz::{block, heal};

fuzz_target!(|input: &[u8]| {
    let _ = ObjectRecord::decode(input).is_ok();
    let mut record = input.to_vec();
    heal(&mut record, |bytes| ObjectRecord::decode(bytes).map(drop));
    if let Ok(decoded) = ObjectRecord::decode(&record) {
        assert_eq!(decoded.encode(), record);
    }
    list(input);
    let (key, value) = input.split_at(input.len().min(8));
    if let Ok(range) = decode_free(key, value) {
        assert_eq!(encode_range(&range), value);
    }
    if let Ok((range, kind)) = decode_to_free(key, value) {
        let encoded = match kind {
            ToFree::Range => encode_range(&range),
            ToFree::Tree { subtree, position } => encode_tree(&subtree, position),
        };
        assert_eq!(encoded, value);
    }
    if let Ok((range, count)) = decode_shared(key, value) {
        assert_eq!(encode_shared(&range, count), value);
    }
});

/// The entry that the input begins with, and the block that it leads to.
fn list(input: &[u8]) {
    let (entry, rest) = input.split_at(input.len().min(ENTRY_BYTES));
    let Ok(entry) = ListEntry::decode(entry) else { return };
    let mut again = [0; ENTRY_BYTES];
    entry.encode(&mut again);
    assert_eq!(again, input[..ENTRY_BYTES]);
    let ListEntry::Subtree(subtree) = entry else { return };
    let mut bytes = block(rest);
    heal(&mut bytes, |bytes| decode_block(&subtree, bytes).map(drop));
    // The entry's own checksum is made to fit as well.
    let crc = bytes.first_chunk().map_or(0, |crc| u32::from_le_bytes(*crc));
    let subtree = Subtree { crc, ..subtree };
    if let Ok(entries) = decode_block(&subtree, &bytes) {
        assert!(entries.iter().all(|entry| entry.level() < subtree.level));
        let (encoded, found) = encode_block(&entries, subtree.block_chunk);
        assert_eq!(found.length_bytes, subtree.length_bytes);
        assert_eq!(encoded.len(), SEGMENT_BLOCK_BYTES);
    }
}
