//! Rings that were written as a store writes them, copied, and rotten.

use disk::AlignedBuf;
use format::record::Settled;
use format::root::JournalPosition;
use journal::Writer;
use proptest::prelude::proptest;

use super::{BLOCK_BYTES, Front, Geometry};
use crate::Detection;
use crate::small_store::small_geometry;

const RING_BYTES: u64 = 4 << 20;
/// Of the longest record that is written here.
const BLOCKS_MAX: usize = 5;
/// So many records are more than a record of the lap before hides.
const FEW: usize = 2 * BLOCKS_MAX;

struct Ring {
    geometry: Geometry,
    bytes: Vec<u8>,
    writer: Writer,
    /// Where each record ends, and what the ring was then.
    past: Vec<(JournalPosition, Vec<u8>)>,
}

impl Ring {
    fn new() -> Self {
        let geometry =
            Geometry { journal_bytes: RING_BYTES, ..small_geometry(Detection::default()) };
        let first = JournalPosition { sequence: 1, ..JournalPosition::default() };
        let writer = Writer::resume(RING_BYTES, geometry.uuid, first, 0, 1);
        Self { geometry, bytes: vec![0; RING_BYTES as usize], writer, past: Vec::new() }
    }

    fn append(&mut self, blocks: usize) {
        self.writer.release_to(self.writer.next().offset_bytes);
        let body = vec![7; blocks * BLOCK_BYTES - 100];
        for write in self.writer.append(&body, Settled::default()).unwrap().writes {
            let at = write.offset_bytes as usize;
            self.bytes[at..at + write.buf.len()].copy_from_slice(&write.buf);
        }
    }

    fn remember(&mut self) {
        self.past.push((self.writer.next(), self.bytes.clone()));
    }

    fn front(&self, bytes: &[u8], root: JournalPosition) -> Front {
        Front::of(&self.geometry, root, |at_bytes, length_bytes| {
            AlignedBuf::padded(&bytes[at_bytes as usize..][..length_bytes])
        })
    }

    /// Each byte of the last `blocks` blocks before `root` is another one.
    fn rot(&self, root: JournalPosition, blocks: usize) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        for back in 1..=(blocks * BLOCK_BYTES) as u64 {
            let at = (root.offset_bytes + RING_BYTES - back) % RING_BYTES;
            bytes[at as usize] ^= 0x55;
        }
        bytes
    }
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(24))]
    #[test]
    fn an_older_ring_is_told_from_one_that_has_rotted(
        before in 1..3000_usize,
        blocks in proptest::collection::vec(1..=BLOCKS_MAX, 1..60),
        rotten in 1..300_usize,
    ) {
        let mut ring = Ring::new();
        (0..before).for_each(|number| ring.append(blocks[number % blocks.len()]));
        ring.remember();
        for count in &blocks {
            ring.append(*count);
            ring.remember();
        }
        let (root, now) = ring.past.pop().unwrap();
        assert_eq!(ring.front(&now, root), Front::Last);
        for (behind, (older, then)) in (1..).zip(ring.past.iter().rev()) {
            assert_eq!(ring.front(then, *older), Front::Last);
            // A newer ring than the root: nothing was lost.
            assert_ne!(ring.front(&now, *older), Front::Rot);
            let front = ring.front(then, root);
            assert!(front == Front::Other || front == Front::Rot && behind < FEW, "{behind}");
        }
        let rot = ring.rot(root, rotten);
        assert_eq!(ring.front(&rot, root), Front::Rot, "{rotten} blocks");
        let unknown = JournalPosition { previous_crc: 0, ..root };
        assert_eq!(ring.front(&now, unknown), Front::Unknown);
        assert_eq!(ring.front(&vec![0; now.len()], root), Front::Other);
    }
}
