//! Lists and blocks come back; whatever the bytes are, there is an answer.

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::{
    BLOCK_ENTRIES_MAX, ENTRIES_AT, ENTRY_BYTES, ListEntry, Run, SEGMENT_BLOCK_BYTES, Subtree,
    decode_block, encode_block,
};
use crate::checksum::crc32c;
use crate::error::{FormatError, Structure};
use crate::field::put_u32;

fn run() -> impl Strategy<Value = ListEntry> {
    (1..1_u64 << 32, 0..1_u64 << 37, 0..4096_u16).prop_map(
        |(length_bytes, first_chunk, skip_bytes)| {
            ListEntry::Run(Run { length_bytes, first_chunk, skip_bytes })
        },
    )
}

fn entry() -> impl Strategy<Value = ListEntry> {
    let subtree = (1..1_u64 << 32, 0..1_u64 << 38, 1..16_u8, any::<u32>()).prop_map(
        |(length_bytes, block_chunk, level, crc)| {
            ListEntry::Subtree(Subtree { length_bytes, block_chunk, level, crc })
        },
    );
    prop_oneof![run(), subtree]
}

proptest! {
    #[test]
    fn blocks_come_back(entries in vec(entry(), 1..=BLOCK_ENTRIES_MAX), chunk in 0..1_u64 << 38) {
        let (bytes, subtree) = encode_block(&entries, chunk);
        prop_assert_eq!(decode_block(&subtree, &bytes), Ok(entries));
    }

    #[test]
    fn a_changed_bit_is_noticed(
        entries in vec(entry(), 1..5), at in 0..SEGMENT_BLOCK_BYTES * 8,
    ) {
        let (mut bytes, subtree) = encode_block(&entries, 9);
        bytes[at / 8] ^= 1 << (at % 8);
        prop_assert!(decode_block(&subtree, &bytes).is_err());
    }

    #[test]
    fn another_whole_block_is_not_taken_for_it(entries in vec(entry(), 1..5)) {
        let (bytes, subtree) = encode_block(&entries, 9);
        let (_, elsewhere) = encode_block(&entries, 10);
        prop_assert!(decode_block(&elsewhere, &bytes).is_err());
        let moved = Subtree { block_chunk: 10, ..subtree };
        prop_assert!(decode_block(&moved, &bytes).is_err());
        let longer = Subtree { length_bytes: subtree.length_bytes + 1, ..subtree };
        prop_assert!(decode_block(&longer, &bytes).is_err());
    }

    #[test]
    fn arbitrary_bytes_are_an_answer(bytes: Vec<u8>, block in vec(any::<u8>(), 4096), level: u8) {
        let _ = ListEntry::decode(&bytes);
        let subtree = Subtree { length_bytes: 1, block_chunk: 1, level, crc: 0 };
        let _ = decode_block(&subtree, &bytes);
        let _ = decode_block(&subtree, &block);
    }

    /// The checksum is right, and what it covers is arbitrary.
    #[test]
    fn arbitrary_entries_are_an_answer(bytes in vec(any::<u8>(), ENTRY_BYTES)) {
        let (mut block, mut subtree) = encode_block(&[RUN], 9);
        block[ENTRIES_AT..][..ENTRY_BYTES].copy_from_slice(&bytes);
        subtree.crc = crc32c(&block[4..]);
        put_u32(&mut block, 0, subtree.crc);
        let decoded = ListEntry::decode(&bytes);
        if let Ok(entries) = decode_block(&subtree, &block) {
            prop_assert_eq!(Ok(entries[0]), decoded);
        }
    }
}

const RUN: ListEntry = ListEntry::Run(Run { length_bytes: 1, first_chunk: 1, skip_bytes: 0 });

/// A block that says level 1 and holds a subtree of level 1 would let a walk go round for ever.
#[test]
fn a_level_that_does_not_fall_is_an_error() {
    let below = Subtree { length_bytes: 1, block_chunk: 9, level: 1, crc: 0 };
    let (mut block, mut subtree) = encode_block(&[RUN], 9);
    ListEntry::Subtree(below).encode(&mut block[ENTRIES_AT..][..ENTRY_BYTES]);
    subtree.crc = crc32c(&block[4..]);
    put_u32(&mut block, 0, subtree.crc);
    let expected = FormatError::field(Structure::SegmentBlock, "level", 2);
    assert_eq!(decode_block(&subtree, &block), Err(expected));
}

/// The bytes of a block are frozen.
#[test]
fn a_block_is_written_as_ever() {
    let subtree = ListEntry::Subtree(Subtree {
        length_bytes: 0x0102_0304,
        block_chunk: 0x20_0000_0000,
        level: 3,
        crc: 0x0506_0708,
    });
    let (_, found) = encode_block(&[RUN, subtree], 0x21_0000_0000);
    assert_eq!((found.level, found.length_bytes), (4, 0x0102_0305));
    assert_eq!(found.crc, 0x453f_27b2);
}

#[test]
fn runs_that_meet_are_known() {
    let run = |length_bytes, first_chunk, skip_bytes| Run { length_bytes, first_chunk, skip_bytes };
    assert!(run(8192, 5, 0).is_continued_by(&run(1, 7, 0)));
    assert!(run(8191, 5, 1).is_continued_by(&run(1, 7, 0)));
    assert!(!run(8191, 5, 0).is_continued_by(&run(1, 7, 0)));
    assert!(!run(8192, 5, 0).is_continued_by(&run(1, 7, 1)));
    assert!(!run(8192, 5, 0).is_continued_by(&run(1, 8, 0)));
    assert_eq!(run(4096, 5, 1).chunks(), 2);
}
