//! Streams come out as they went in, and whatever is changed, left out or added is noticed.

use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use proptest::sample::Index;

use crate::FormatError;
use crate::catalog::Origin;
use crate::stream::{
    SECTION_HEADER_BYTES, STREAM_HEADER_BYTES, Section, StreamCourse, StreamHeader, StreamVersion,
    is_stream, sample_ranges,
};

fn version(name: &str, number: u32) -> StreamVersion {
    let origin = (number > 3).then_some(Origin { uuid: [8; 16], number });
    let (taken_unix_s, size_bytes, sample) = (1_700_000_000 + u64::from(number), 1 << 30, 77);
    StreamVersion { name: name.to_owned(), origin, taken_unix_s, size_bytes, sample }
}

fn header(data_bytes: u64, base: bool) -> StreamHeader {
    let base = base.then(|| version("monday", 3));
    let target = version("tuesday", 9);
    StreamHeader { uuid: [7; 16], chunk_bytes: 4096, data_bytes, target, base }
}

/// Gaps, lengths in sectors and whether they hold data: ranges of a stream.
type Parts = Vec<(u64, u64, bool)>;

fn stream(parts: &Parts) -> (Vec<u8>, Vec<Section>) {
    let data_bytes = parts.iter().filter(|part| part.2).map(|part| part.1 * 512).sum();
    let header = header(data_bytes, true);
    let mut bytes = header.encode().to_vec();
    let mut course = StreamCourse::begin(&header, &bytes);
    let (mut at, mut sections) = (0, Vec::new());
    for &(gap, sectors, data) in parts {
        let (offset_bytes, length_bytes) = (at + gap * 512, sectors * 512);
        at = offset_bytes + length_bytes;
        let section = match data {
            true => Section::Data { offset_bytes, length_bytes },
            false => Section::Hole { offset_bytes, length_bytes },
        };
        let payload = vec![sectors as u8; section.payload_bytes() as usize];
        bytes.extend_from_slice(&course.encode(section, &payload));
        bytes.extend_from_slice(&payload);
        sections.push(section);
    }
    bytes.extend_from_slice(&course.encode(Section::End, &[]));
    sections.push(Section::End);
    assert_eq!(course.stream_bytes(), bytes.len() as u64);
    (bytes, sections)
}

/// The sections of a whole stream.
fn read(bytes: &[u8]) -> Result<Vec<Section>, FormatError> {
    let header = StreamHeader::decode(bytes)?;
    let (start, mut rest) = bytes.split_at(STREAM_HEADER_BYTES);
    let mut course = StreamCourse::begin(&header, start);
    let mut sections = Vec::new();
    loop {
        let section = course.decode(rest)?;
        let payload = rest[SECTION_HEADER_BYTES..].get(..section.payload_bytes() as usize);
        course.verify(section, rest, payload.unwrap_or(&[]))?;
        rest = &rest[SECTION_HEADER_BYTES + section.payload_bytes() as usize..];
        sections.push(section);
        if section == Section::End {
            assert!(rest.is_empty());
            return Ok(sections);
        }
    }
}

#[test]
fn headers_come_out_as_they_went_in() {
    for base in [false, true] {
        let header = header(12, base);
        let bytes = header.encode();
        assert!(is_stream(&bytes) && !is_stream(&bytes[1..]) && !is_stream(&bytes[..7]));
        assert_eq!(StreamHeader::decode(&bytes), Ok(header));
    }
}

#[test]
fn a_newer_stream_asks_for_a_newer_program() {
    let mut bytes = header(0, false).encode();
    bytes[12] = 2;
    let refused = StreamHeader::decode(&bytes).unwrap_err();
    assert!(matches!(refused, FormatError::NewerVersion { found: 2, .. }), "{refused}");
}

#[test]
fn samples_lie_inside_and_reach_both_ends() {
    for size_bytes in [512, 4096, 4608, 1 << 20, (1 << 50) - 512] {
        let ranges: Vec<(u64, u64)> = sample_ranges(size_bytes).collect();
        assert!(ranges.iter().all(|(at, length)| at + length <= size_bytes && at % 512 == 0));
        assert_eq!(ranges[0].0, 0);
        let (at, length) = ranges[ranges.len() - 1];
        assert_eq!(at + length, size_bytes, "{size_bytes}");
    }
}

proptest! {
    #[test]
    fn sections_come_out_as_they_went_in(
        parts in vec((0_u64..9, 1_u64..5, any::<bool>()), 0..8),
    ) {
        let (bytes, sections) = stream(&parts);
        prop_assert_eq!(read(&bytes), Ok(sections));
    }

    #[test]
    fn a_flipped_bit_is_noticed(
        parts in vec((0_u64..9, 1_u64..5, any::<bool>()), 0..8),
        bit: Index,
    ) {
        let (mut bytes, _) = stream(&parts);
        let bit = bit.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(read(&bytes).is_err());
    }

    #[test]
    fn a_cut_is_noticed(
        parts in vec((0_u64..9, 1_u64..5, any::<bool>()), 0..8),
        end: Index,
    ) {
        let (bytes, _) = stream(&parts);
        prop_assert!(read(&bytes[..end.index(bytes.len())]).is_err());
    }

    /// Sections are whole, and one of them is not where it was written.
    #[test]
    fn a_section_that_is_left_out_or_moved_is_noticed(
        parts in vec((0_u64..9, 1_u64..2, any::<bool>()), 2..8),
        one: Index,
        other: Index,
    ) {
        let (bytes, sections) = stream(&parts);
        let mut pieces = Vec::new();
        let mut at = STREAM_HEADER_BYTES;
        for section in &sections {
            let end = at + SECTION_HEADER_BYTES + section.payload_bytes() as usize;
            pieces.push(&bytes[at..end]);
            at = end;
        }
        let (one, other) = (one.index(pieces.len()), other.index(pieces.len()));
        let mut moved = pieces.clone();
        moved.swap(one, other);
        let whole = |pieces: &[&[u8]]| [&bytes[..STREAM_HEADER_BYTES], &pieces.concat()].concat();
        prop_assert_eq!(read(&whole(&moved)).is_ok(), one == other);
        pieces.remove(one);
        prop_assert!(read(&whole(&pieces)).is_err());
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in vec(any::<u8>(), 0..200)) {
        let (stream, _) = stream(&vec![(0, 1, true)]);
        let mut mixed = stream[..STREAM_HEADER_BYTES].to_vec();
        mixed.extend_from_slice(&bytes);
        prop_assert!(read(&mixed).is_err() && read(&bytes).is_err());
    }
}
