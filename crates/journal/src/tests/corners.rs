//! The corners of the ring, one by one.

use disk::AlignedBuf;
use format::BLOCK_BYTES;
use format::record::{
    BODY_BYTES_MAX, Change, RECORD_BYTES_MAX, RecordHeader, RecordKind, Settled, encode_record,
};
use format::root::{JournalPosition, Stream};
use format::units::{ContainerId, VolumeId, uuid_prefix};

use super::medium::{Driving, Medium, replay_all};
use crate::error::AppendError;
use crate::replay::{End, Replay, ReplayStep};
use crate::writer::{JournalWrite, Writer};

const UUID: [u8; 16] = *b"a journal's uuid";
const BLOCK: u64 = BLOCK_BYTES as u64;
const START: JournalPosition = JournalPosition { sequence: 1, offset_bytes: 0, previous_crc: 0 };

/// A body that makes a record of so many blocks.
fn body(blocks: usize) -> Vec<u8> {
    vec![blocks as u8; blocks * BLOCK_BYTES - 64]
}

fn append(writer: &mut Writer, medium: &mut Medium, body: &[u8]) -> u64 {
    let appended = writer.append(body, Settled::default()).unwrap();
    appended.writes.iter().for_each(|write| medium.write(write));
    appended.sequence
}

#[test]
fn an_empty_journal_has_no_records() {
    let mut replay = Replay::new(8 * BLOCK, UUID, START);
    let (records, end) = replay_all(&mut replay, &Medium::new(8 * BLOCK), Driving::Plain);
    assert_eq!((records.len(), end), (0, End::Empty));
    assert_eq!(replay.position(), START);
    assert_eq!(replay.buffered(), Some(ReplayStep::End(End::Empty)), "an end stays the end");
}

#[test]
fn a_ring_can_be_filled_to_the_last_block() {
    let mut medium = Medium::new(8 * BLOCK);
    let mut writer = Writer::resume(8 * BLOCK, UUID, START, 0, 1);
    append(&mut writer, &mut medium, &body(5));
    append(&mut writer, &mut medium, &body(3));
    assert_eq!((writer.used_bytes(), writer.free_bytes()), (8 * BLOCK, 0));
    let full = AppendError::Full { needed_bytes: BLOCK, free_bytes: 0 };
    assert_eq!(writer.append(&[], Settled::default()).unwrap_err(), full);
    let mut replay = Replay::new(8 * BLOCK, UUID, START);
    let (records, end) = replay_all(&mut replay, &medium, Driving::Buffered);
    assert_eq!((records.len(), end), (2, End::Stale), "the second lap is the first's records");
    assert_eq!(replay.position(), writer.next());
}

#[test]
fn a_filler_takes_the_rest_of_the_lap() {
    let mut medium = Medium::new(8 * BLOCK);
    let mut writer = Writer::resume(8 * BLOCK, UUID, START, 0, 1);
    append(&mut writer, &mut medium, &body(5));
    assert!(!writer.fits(body(4).len()), "3 blocks of filler and 4 of record do not fit 3");
    writer.release_to(5 * BLOCK);
    let appended = writer.append(&body(4), Settled::default()).unwrap();
    let places: Vec<_> =
        appended.writes.iter().map(|write| (write.offset_bytes, write.buf.len())).collect();
    assert_eq!(places, [(5 * BLOCK, 3 * BLOCK_BYTES), (0, 4 * BLOCK_BYTES)]);
    assert_eq!(appended.sequence, 3, "the filler is record 2");
    assert_eq!(writer.next().offset_bytes, 12 * BLOCK);
    assert_eq!(writer.free_bytes(), BLOCK);
}

#[test]
fn the_longest_record_comes_back() {
    let length_bytes = 3 * RECORD_BYTES_MAX as u64;
    let mut medium = Medium::new(length_bytes);
    let mut writer = Writer::resume(length_bytes, UUID, START, 0, 1);
    assert!(!writer.fits(BODY_BYTES_MAX + 1));
    let too_long = AppendError::TooLong { body_bytes: BODY_BYTES_MAX + 1 };
    assert_eq!(
        writer.append(&vec![0; BODY_BYTES_MAX + 1], Settled::default()).unwrap_err(),
        too_long
    );
    append(&mut writer, &mut medium, b"first");
    append(&mut writer, &mut medium, &vec![3; BODY_BYTES_MAX]);
    for driving in [Driving::Plain, Driving::Buffered, Driving::Narrow] {
        let mut replay = Replay::new(length_bytes, UUID, START);
        let (records, _) = replay_all(&mut replay, &medium, driving);
        assert_eq!(records[1].body, vec![3; BODY_BYTES_MAX]);
    }
}

#[test]
fn the_tail_moves_forward_and_not_beyond_the_next_record() {
    let mut writer = Writer::resume(8 * BLOCK, UUID, START, 0, 1);
    writer.append(&body(4), Settled::default()).unwrap();
    writer.release_to(2 * BLOCK);
    writer.release_to(BLOCK);
    assert_eq!(writer.used_bytes(), 2 * BLOCK);
    writer.release_to(100 * BLOCK);
    assert_eq!(writer.used_bytes(), 0);
}

#[test]
fn a_flipped_bit_ends_the_journal_before_it() {
    for bit in (0..2 * BLOCK_BYTES * 8).step_by(677) {
        let mut medium = Medium::new(8 * BLOCK);
        let mut writer = Writer::resume(8 * BLOCK, UUID, START, 0, 1);
        for number in 1..=4 {
            assert_eq!(append(&mut writer, &mut medium, &body(1)), number);
        }
        medium.flip(2 * BLOCK_BYTES * 8 + bit);
        let mut replay = Replay::new(8 * BLOCK, UUID, START);
        let (records, _) = replay_all(&mut replay, &medium, Driving::Plain);
        let whole = if bit < BLOCK_BYTES * 8 { 2 } else { 3 };
        assert_eq!(records.len(), whole);
        assert_eq!(replay.position().offset_bytes, whole as u64 * BLOCK);
    }
}

#[test]
fn another_store_has_another_journal() {
    let mut medium = Medium::new(8 * BLOCK);
    let mut writer = Writer::resume(8 * BLOCK, [9; 16], START, 0, 1);
    append(&mut writer, &mut medium, b"theirs");
    let mut replay = Replay::new(8 * BLOCK, UUID, START);
    let (records, end) = replay_all(&mut replay, &medium, Driving::Plain);
    assert_eq!((records.len(), end), (0, End::Stale));
}

/// A crash loses record 2 and keeps record 3. Opened again, the store writes another record 2,
/// which happens to be as long: the old record 3 has the right sequence, and must not be taken up.
#[test]
fn a_record_of_an_earlier_life_is_not_taken_up() {
    let mut medium = Medium::new(8 * BLOCK);
    let mut writer = Writer::resume(8 * BLOCK, UUID, START, 0, 1);
    append(&mut writer, &mut medium, b"1");
    let resume = writer.next();
    append(&mut writer, &mut medium, b"2 of the first life");
    append(&mut writer, &mut medium, b"3 of the first life");
    let mut writer = Writer::resume(8 * BLOCK, UUID, resume, 0, 2);
    append(&mut writer, &mut medium, b"2 of the second life");
    let mut replay = Replay::new(8 * BLOCK, UUID, START);
    let (records, end) = replay_all(&mut replay, &medium, Driving::Plain);
    let bodies: Vec<_> = records.iter().map(|record| record.body.as_slice()).collect();
    assert_eq!(bodies, [b"1".as_slice(), b"2 of the second life"]);
    assert_eq!(end, End::Stale);
}

/// Each of the bonds between two records holds by itself.
#[test]
fn a_record_that_does_not_continue_the_journal_ends_it() {
    let mut writer = Writer::resume(8 * BLOCK, UUID, START, 0, 5);
    let first = writer.append(b"first", Settled::default()).unwrap().writes.remove(0);
    let second = RecordHeader {
        length_bytes: 2 * BLOCK_BYTES as u32,
        body_bytes: 7,
        kind: RecordKind::Group,
        incarnation: 5,
        sequence: 2,
        previous_crc: writer.next().previous_crc,
        settled: Settled::default(),
        uuid_prefix: uuid_prefix(UUID),
    };
    let filler = RecordHeader { kind: RecordKind::Filler, ..second };
    let to_the_end = 7 * BLOCK_BYTES as u32;
    for (header, expected) in [
        (second, (2, End::Empty)),
        (RecordHeader { incarnation: 6, ..second }, (2, End::Empty)),
        (RecordHeader { incarnation: 4, ..second }, (1, End::Stale)),
        (RecordHeader { sequence: 1, ..second }, (1, End::Stale)),
        (RecordHeader { sequence: 3, ..second }, (1, End::Stale)),
        (RecordHeader { previous_crc: second.previous_crc ^ 1, ..second }, (1, End::Stale)),
        (RecordHeader { uuid_prefix: [0; 8], ..second }, (1, End::Stale)),
        (RecordHeader { length_bytes: to_the_end, ..second }, (2, End::Stale)),
        (RecordHeader { length_bytes: to_the_end + 4096, ..second }, (1, End::Torn)),
        (RecordHeader { length_bytes: to_the_end, ..filler }, (1, End::Stale)),
        (filler, (1, End::Torn)),
    ] {
        let mut medium = Medium::new(9 * BLOCK);
        let mut record = AlignedBuf::new_zeroed(header.length_bytes as usize);
        encode_record(&header, b"by hand", &mut record);
        medium.write(&first);
        medium.write(&JournalWrite { offset_bytes: BLOCK, buf: record.into() });
        let mut replay = Replay::new(8 * BLOCK, UUID, START);
        let (records, end) = replay_all(&mut replay, &medium, Driving::Buffered);
        assert_eq!((records.len(), end), expected, "{header:?}");
    }
}

/// The incarnation alone tells them apart, should the checksums of two records be one.
#[test]
fn an_incarnation_that_goes_back_ends_the_journal() {
    let mut medium = Medium::new(8 * BLOCK);
    let mut writer = Writer::resume(8 * BLOCK, UUID, START, 0, 2);
    append(&mut writer, &mut medium, b"second life");
    let mut writer = Writer::resume(8 * BLOCK, UUID, writer.next(), 0, 1);
    append(&mut writer, &mut medium, b"first life");
    let mut replay = Replay::new(8 * BLOCK, UUID, START);
    let (records, end) = replay_all(&mut replay, &medium, Driving::Plain);
    assert_eq!((records.len(), end), (1, End::Stale));
}

#[test]
fn a_medium_that_ends_early_ends_the_journal() {
    let mut medium = Medium::new(8 * BLOCK);
    let mut writer = Writer::resume(8 * BLOCK, UUID, START, 0, 1);
    append(&mut writer, &mut medium, &body(3));
    let mut replay = Replay::new(8 * BLOCK, UUID, START);
    let two_blocks = medium.read((0, 2 * BLOCK_BYTES)).to_vec();
    assert_eq!(replay.feed(&two_blocks), ReplayStep::End(End::Torn));
    assert_eq!(Replay::new(8 * BLOCK, UUID, START).feed(&[]), ReplayStep::End(End::Torn));
}

#[test]
fn a_long_record_is_asked_for_as_a_whole() {
    let length_bytes = 2 * RECORD_BYTES_MAX as u64;
    let mut medium = Medium::new(length_bytes);
    let mut writer = Writer::resume(length_bytes, UUID, START, 0, 1);
    append(&mut writer, &mut medium, &body(50));
    let mut replay = Replay::new(length_bytes, UUID, START);
    assert!(replay.narrow());
    assert_eq!(replay.needs(), (0, BLOCK_BYTES));
    assert!(!replay.narrow(), "less than a block is nothing");
    assert_eq!(replay.feed(medium.read((0, BLOCK_BYTES))), ReplayStep::More);
    assert_eq!(replay.needs(), (0, 50 * BLOCK_BYTES));
    assert!(matches!(replay.feed(medium.read(replay.needs())), ReplayStep::Record(_)));
}

/// More each time, up to what is wanted, and the same records in fewer reads.
#[test]
fn a_journal_that_is_read_ahead_is_the_same_journal() {
    let length_bytes = 8 * RECORD_BYTES_MAX as u64;
    let mut medium = Medium::new(length_bytes);
    let mut writer = Writer::resume(length_bytes, UUID, START, 0, 1);
    for number in 0..200 {
        append(&mut writer, &mut medium, &body(1 + number % 7));
    }
    let replayed = |ahead_bytes: Option<usize>| {
        let mut replay = Replay::new(length_bytes, UUID, START);
        ahead_bytes.into_iter().for_each(|bytes| replay.read_ahead(bytes));
        let (mut records, mut asked) = (Vec::new(), Vec::new());
        loop {
            let step = replay.buffered().unwrap_or_else(|| {
                asked.push(replay.needs().1);
                replay.feed(medium.read(replay.needs()))
            });
            match step {
                ReplayStep::Record(record) => records.push(record),
                ReplayStep::More => {}
                ReplayStep::End(end) => return (records, end, replay.position(), asked),
            }
        }
    };
    let (records, end, position, plain) = replayed(None);
    assert_eq!((records.len(), end), (200, End::Empty));
    for ahead_bytes in [0, 1 << 20, 64 << 20] {
        let (same, same_end, same_position, asked) = replayed(Some(ahead_bytes));
        assert!(same == records && (same_end, same_position) == (end, position));
        if ahead_bytes == 0 {
            assert_eq!(asked, plain, "nothing more was asked for");
            continue;
        }
        assert!(asked.len() * 2 < plain.len(), "{} reads, {} before", asked.len(), plain.len());
        assert_eq!(asked[..3], [128 << 10, 256 << 10, 512 << 10]);
        assert!(asked.iter().all(|&bytes| bytes <= ahead_bytes));
    }
}

#[test]
fn changes_go_through_the_journal() {
    let changes = [
        Change::OpenContainer { id: ContainerId(4), sequence: 9, stream: Stream::Collection },
        Change::DeleteVolume { id: VolumeId(2) },
    ];
    let mut body = Vec::new();
    changes.iter().for_each(|change| change.encode(&mut body));
    let mut medium = Medium::new(8 * BLOCK);
    let mut writer = Writer::resume(8 * BLOCK, UUID, START, 0, 1);
    append(&mut writer, &mut medium, &body);
    let mut replay = Replay::new(8 * BLOCK, UUID, START);
    let (records, _) = replay_all(&mut replay, &medium, Driving::Plain);
    assert_eq!(records[0].changes().unwrap(), changes);
}

#[test]
fn errors_are_sentences() {
    let full = AppendError::Full { needed_bytes: 8192, free_bytes: 4096 };
    let message = "a journal record of 8192 bytes does not fit the 4096 that are free";
    assert_eq!(full.to_string(), message);
    let long = AppendError::TooLong { body_bytes: 2_000_000 };
    let message = "a journal record carries at most 1048512 bytes of changes, not 2000000";
    assert_eq!(long.to_string(), message);
}
