//! Streams: whatever the bytes, a reader comes to an end, and what it believes is written to the
//! same bytes again.
#![no_main]

use format::FormatError;
use format::stream::{
    SECTION_HEADER_BYTES, STREAM_HEADER_BYTES, Section, StreamCourse, StreamHeader,
};
use libfuzzer_sys::fuzz_target;
use tamis_fuzz::heal;

/// The sections of a stream with their payloads, as far as it is sound, and why no further.
fn read(bytes: &[u8]) -> (Vec<(Section, &[u8])>, Result<(), FormatError>) {
    let mut sections = Vec::new();
    let read = read_into(bytes, &mut sections);
    (sections, read)
}

fn read_into<'a>(
    bytes: &'a [u8],
    sections: &mut Vec<(Section, &'a [u8])>,
) -> Result<(), FormatError> {
    let header = StreamHeader::decode(bytes)?;
    let (start, mut rest) = bytes.split_at(STREAM_HEADER_BYTES);
    let mut course = StreamCourse::begin(&header, start);
    loop {
        let section = course.decode(rest)?;
        let end = SECTION_HEADER_BYTES + section.payload_bytes() as usize;
        // A payload that is not all there fails its checksum.
        let payload = rest.get(SECTION_HEADER_BYTES..end).unwrap_or_default();
        course.verify(section, rest, payload)?;
        rest = rest.get(end..).unwrap_or_default();
        sections.push((section, payload));
        if section == Section::End {
            return Ok(());
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let _ = read(input);
    let mut stream = input.to_vec();
    heal(&mut stream, |bytes| read(bytes).1);
    let Ok(header) = StreamHeader::decode(&stream) else { return };
    let (sections, _) = read(&stream);
    let start = header.encode();
    assert_eq!(StreamHeader::decode(&start), Ok(header.clone()));
    let mut course = StreamCourse::begin(&header, &start);
    let mut again = start.to_vec();
    for &(section, payload) in sections.iter().filter(|(section, _)| *section != Section::End) {
        again.extend_from_slice(&course.encode(section, payload));
        again.extend_from_slice(payload);
    }
    let (reread, _) = read(&again);
    assert!(reread.iter().zip(&sections).all(|(one, other)| one == other));
});
