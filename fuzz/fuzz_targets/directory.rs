//! Ends of containers: what is decoded is encoded to the same again.
#![no_main]

use format::FormatError;
use format::directory::{
    DirectoryEntry, FOOTER_BYTES, Footer, decode_entries, decode_footer, encode_tail,
};
use libfuzzer_sys::fuzz_target;
use tamis_fuzz::heal;

fn decode(tail: &[u8]) -> Result<(Footer, Vec<DirectoryEntry>), FormatError> {
    let footer = decode_footer(tail)?;
    let directory = &tail[..tail.len() - FOOTER_BYTES];
    Ok((footer, decode_entries(directory, &footer)?))
}

fuzz_target!(|input: &[u8]| {
    let _ = decode(input);
    let mut tail = input.to_vec();
    heal(&mut tail, |bytes| decode(bytes).map(drop));
    let Ok((footer, entries)) = decode(&tail) else { return };
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&footer.uuid_prefix);
    let again = encode_tail(&entries, footer.container, footer.sequence, uuid);
    assert_eq!(again.len(), tail.len());
    assert_eq!(decode(&again), Ok((footer, entries)));
});
