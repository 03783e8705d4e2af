//! A ring full of records that nobody wrote like this: replay comes to an end.

use disk::AlignedBuf;
use format::BLOCK_BYTES;
use format::record::{RecordHeader, RecordKind, Settled, encode_record};
use format::root::JournalPosition;
use format::units::uuid_prefix;
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, proptest};

use super::medium::{Driving, Medium, next_step};
use crate::replay::{Replay, ReplayStep};
use crate::writer::JournalWrite;

const UUID: [u8; 16] = [3; 16];
const BLOCKS: usize = 48;

/// A record at a block, of so many blocks, with numbers that often fit its neighbours'.
#[derive(Clone, Debug)]
struct Forged {
    block: usize,
    blocks: usize,
    sequence: u64,
    incarnation: u64,
    filler: bool,
    /// Whether it names the checksum of the record forged before it.
    bound: bool,
}

fn forged() -> impl Strategy<Value = Forged> {
    let shape = (0..BLOCKS, 1..=40usize, any::<bool>(), any::<bool>());
    (shape, 1..6u64, 0..3u64).prop_map(|((block, blocks, filler, bound), sequence, incarnation)| {
        Forged { block, blocks, sequence, incarnation, filler, bound }
    })
}

/// Records one behind the other, as far as their lengths allow, or anywhere.
fn forge(medium: &mut Medium, records: &[Forged], in_line: bool) {
    let (mut block, mut previous_crc) = (0, 0);
    for (forged, number) in records.iter().zip(1..) {
        let header = RecordHeader {
            length_bytes: (forged.blocks * BLOCK_BYTES) as u32,
            body_bytes: 3,
            kind: if forged.filler { RecordKind::Filler } else { RecordKind::Group },
            incarnation: forged.incarnation,
            sequence: if in_line { number } else { forged.sequence },
            previous_crc: if in_line || forged.bound { previous_crc } else { 0 },
            settled: Settled::default(),
            uuid_prefix: uuid_prefix(UUID),
        };
        let mut record = AlignedBuf::new_zeroed(forged.blocks * BLOCK_BYTES);
        previous_crc = encode_record(&header, b"lie", &mut record);
        let at = if in_line { block } else { forged.block };
        let room = (BLOCKS - at).min(forged.blocks) * BLOCK_BYTES;
        record.truncate(room);
        medium.write(&JournalWrite { offset_bytes: (at * BLOCK_BYTES) as u64, buf: record.into() });
        block = (block + forged.blocks) % BLOCKS;
    }
}

proptest! {
    #[test]
    fn replay_ends_on_any_ring(
        records in vec(forged(), 0..30),
        in_line: bool,
        sequence in 0..6u64,
        flips in vec(0..BLOCKS * BLOCK_BYTES * 8, 0..4),
    ) {
        let length_bytes = (BLOCKS * BLOCK_BYTES) as u64;
        let mut medium = Medium::new(length_bytes);
        forge(&mut medium, &records, in_line);
        flips.into_iter().for_each(|bit| medium.flip(bit));
        let start = JournalPosition { sequence, offset_bytes: length_bytes * 3, previous_crc: 0 };
        for driving in [Driving::Plain, Driving::Buffered, Driving::Narrow] {
            let mut replay = Replay::new(length_bytes, UUID, start);
            let ends = (0..200).any(|_| {
                matches!(next_step(&mut replay, &medium, driving), ReplayStep::End(_))
            });
            prop_assert!(ends, "no end in sight");
            let position = replay.position();
            prop_assert!(position.offset_bytes.is_multiple_of(BLOCK_BYTES as u64));
            prop_assert!(position.offset_bytes >= start.offset_bytes);
        }
    }
}
