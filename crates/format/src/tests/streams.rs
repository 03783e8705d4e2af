//! Streams come out as they went in, and whatever is changed, left out or added is noticed.

use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use proptest::sample::Index;

use crate::FormatError;
use crate::catalog::Origin;
use crate::checksum::crc32c_append;
use crate::stream::{
    SECTION_HEADER_BYTES, STREAM_HEADER_BYTES, STREAM_START_BYTES, STREAM_VERSION, Section,
    StreamCourse, StreamHeader, StreamStart, StreamVersion, sample_of, sample_ranges,
};

/// A stream of version 1, made by a script that followed `docs/format.md`: both ends of every other
/// test are of one build, and would agree on what no other program writes or reads.
const VERSION_1: &[u8] = include_bytes!("stream-version-1.bin");

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
        assert_eq!(StreamHeader::decode(&bytes), Ok(header));
    }
}

/// A stream is known though any 512 bytes of its start are damaged, and by the first of its bytes
/// though the rest is cut off; a disk is not taken for one.
#[test]
fn a_stream_is_known_whatever_is_damaged_of_its_start() {
    let (whole, _) = stream(&vec![(3, 4, true), (1, 2, false)]);
    let first_bytes = STREAM_START_BYTES + 4 * 512;
    for damaged in (0..first_bytes).step_by(64).map(|at| at..(at + 512).min(first_bytes)) {
        let mut bytes = whole.clone();
        bytes[damaged.clone()].fill(0xa5);
        assert_eq!(StreamStart::of(&bytes), StreamStart::Stream, "{damaged:?}");
    }
    for bit in 0..64 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(StreamStart::of(&bytes), StreamStart::Stream, "bit {bit}");
    }
    for length in 1..STREAM_START_BYTES {
        assert_eq!(StreamStart::of(&whole[..length]), StreamStart::Stream, "{length} bytes");
    }
    let mut headless = whole.clone();
    headless[..512].fill(0);
    let start = &headless[..STREAM_START_BYTES];
    assert_eq!(StreamStart::of(start), StreamStart::Needs(4 * 512));
    headless[STREAM_START_BYTES] ^= 1;
    for other in [headless.as_slice(), &[], &[0; STREAM_START_BYTES], &whole[1..], b"TAMIL"] {
        assert_eq!(StreamStart::of(other), StreamStart::Other);
    }
}

/// What the two versions in it hold.
fn golden_volumes() -> [Vec<u8>; 2] {
    let base = [vec![1; 4096], vec![0; 4096]].concat();
    let mut target = base.clone();
    target[512..1024].copy_from_slice(&golden_data());
    target[1024..4096].fill(0);
    [base, target]
}

fn golden_data() -> Vec<u8> {
    (0..=255).cycle().take(512).collect()
}

fn sample(volume: &[u8]) -> u32 {
    let at = |(at, length): (u64, u64)| &volume[at as usize..][..length as usize];
    sample_of(&sample_ranges(volume.len() as u64).map(at).collect::<Vec<_>>().concat())
}

/// A stream that was kept is read by every later program, and none of them writes others under the
/// same version.
#[test]
fn streams_of_version_1_are_read_and_written_as_they_always_were() {
    assert_eq!(STREAM_VERSION, 1, "keep this stream, and make one of the new version beside it");
    let [base, target] = golden_volumes().map(|volume| sample(&volume));
    let version = |name: &str, store, number, sample| {
        let origin = Some(Origin { uuid: [store; 16], number });
        let taken_unix_s = 1_700_000_000 + u64::from(number);
        StreamVersion { name: name.to_owned(), origin, taken_unix_s, size_bytes: 8192, sample }
    };
    let header = StreamHeader {
        uuid: [0x51; 16],
        chunk_bytes: 4096,
        data_bytes: 512,
        target: version("tuesday", 0x52, 9, target),
        base: Some(version("monday", 0x53, 3, base)),
    };
    assert_eq!(StreamHeader::decode(VERSION_1), Ok(header.clone()));
    let sections = [
        Section::Data { offset_bytes: 512, length_bytes: 512 },
        Section::Hole { offset_bytes: 1024, length_bytes: 3072 },
        Section::End,
    ];
    assert_eq!(read(VERSION_1), Ok(sections.to_vec()));

    let mut made = header.encode().to_vec();
    let mut course = StreamCourse::begin(&header, &made);
    for (section, payload) in sections.into_iter().zip([golden_data(), vec![], vec![]]) {
        made.extend_from_slice(&course.encode(section, &payload));
        made.extend_from_slice(&payload);
    }
    assert!(made == VERSION_1);
}

/// The sample is compared between stores of different programs: it is made of the same bytes for
/// ever.
#[test]
fn samples_are_made_from_where_they_always_were() {
    let mut folded = 0;
    for size_bytes in [512, 4608, 1 << 30, (1 << 50) - 512] {
        for (at, length) in sample_ranges(size_bytes) {
            folded = crc32c_append(folded, &[at.to_le_bytes(), length.to_le_bytes()].concat());
        }
    }
    assert_eq!(folded, 0xaaea_ba02);
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
