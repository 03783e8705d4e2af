//! A buffer in front of the store, as FIDR's Figure 3 has it: writes gather until it is full, then
//! go out in the order of their addresses, neighbours as one. What large chunks cost depends on how
//! many of their blocks are together by then.

use std::collections::BTreeMap;

use traces::{BLOCK_BYTES, SECTOR_BYTES};

const BLOCK: usize = BLOCK_BYTES as usize;
const SECTOR: usize = SECTOR_BYTES as usize;
/// All sectors of a block.
const WHOLE: u8 = u8::MAX;

/// Blocks that were written, by number.
#[derive(Default)]
pub(super) struct RequestBuffer {
    blocks: BTreeMap<u64, Block>,
    blocks_max: usize,
}

struct Block {
    bytes: Box<[u8; BLOCK]>,
    /// Bit i: sector i was written.
    sectors: u8,
}

/// A write that leaves the buffer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Gathered {
    pub(super) offset_bytes: u64,
    pub(super) bytes: Vec<u8>,
}

impl RequestBuffer {
    /// For so many bytes of blocks, at least one.
    pub(super) fn new(size_bytes: u64) -> Self {
        let blocks_max = usize::try_from(size_bytes / BLOCK_BYTES).unwrap_or(usize::MAX).max(1);
        Self { blocks: BTreeMap::new(), blocks_max }
    }

    pub(super) fn is_full(&self) -> bool {
        self.blocks.len() >= self.blocks_max
    }

    /// Takes a write; both its ends are whole sectors.
    pub(super) fn write(&mut self, offset_bytes: u64, bytes: &[u8]) {
        for (number, sector) in bytes.chunks_exact(SECTOR).enumerate() {
            let at_bytes = offset_bytes + (number * SECTOR) as u64;
            let empty = || Block { bytes: Box::new([0; BLOCK]), sectors: 0 };
            let block = self.blocks.entry(at_bytes / BLOCK_BYTES).or_insert_with(empty);
            let start = (at_bytes % BLOCK_BYTES) as usize;
            block.bytes[start..start + SECTOR].copy_from_slice(sector);
            block.sectors |= 1 << (start / SECTOR);
        }
    }

    /// Whether anything of a range is in it.
    pub(super) fn holds(&self, offset_bytes: u64, length_bytes: u64) -> bool {
        let first = offset_bytes / BLOCK_BYTES;
        let end = (offset_bytes + length_bytes).div_ceil(BLOCK_BYTES);
        self.blocks.range(first..end).next().is_some()
    }

    /// All writes in it, none longer than `length_bytes_max`, which is whole blocks.
    pub(super) fn drain(&mut self, length_bytes_max: usize) -> Vec<Gathered> {
        let mut writes: Vec<Gathered> = Vec::new();
        for (number, block) in std::mem::take(&mut self.blocks) {
            for (first, end) in runs(block.sectors) {
                let offset_bytes = number * BLOCK_BYTES + (first * SECTOR) as u64;
                let bytes = &block.bytes[first * SECTOR..end * SECTOR];
                match writes.last_mut() {
                    Some(last)
                        if last.offset_bytes + last.bytes.len() as u64 == offset_bytes
                            && last.bytes.len() + bytes.len() <= length_bytes_max =>
                    {
                        last.bytes.extend_from_slice(bytes);
                    }
                    _ => writes.push(Gathered { offset_bytes, bytes: bytes.to_vec() }),
                }
            }
        }
        writes
    }
}

/// Runs of sectors that were written, as first and end.
fn runs(sectors: u8) -> Vec<(usize, usize)> {
    if sectors == WHOLE {
        return vec![(0, BLOCK / SECTOR)];
    }
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for sector in (0..BLOCK / SECTOR).filter(|sector| sectors >> sector & 1 == 1) {
        match runs.last_mut() {
            Some(last) if last.1 == sector => last.1 += 1,
            _ => runs.push((sector, sector + 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::any;
    use proptest::{prop_assert_eq, proptest};

    use super::RequestBuffer;

    const VOLUME_SECTORS: usize = 256;

    proptest! {
        /// Whatever is written through it: what leaves it makes the same disk, in the order of
        /// addresses, each sector once, and neighbours together.
        #[test]
        fn what_leaves_it_is_what_was_written(
            writes in vec((0..VOLUME_SECTORS, 1..40_usize, any::<u8>()), 1..30),
        ) {
            let mut disk = vec![0; VOLUME_SECTORS * 512];
            let mut touched = [false; VOLUME_SECTORS];
            let mut buffer = RequestBuffer::new(1 << 20);
            for (first, sectors, value) in writes {
                let end = (first + sectors).min(VOLUME_SECTORS);
                disk[first * 512..end * 512].fill(value);
                touched[first..end].fill(true);
                buffer.write(first as u64 * 512, &vec![value; (end - first) * 512]);
                assert!(buffer.holds(first as u64 * 512, 1));
            }
            let mut found = vec![0; disk.len()];
            let mut before = 0;
            for write in buffer.drain(16384) {
                let start = write.offset_bytes as usize;
                assert!(start >= before && write.bytes.len() <= 16384);
                before = start + write.bytes.len();
                found[start..before].copy_from_slice(&write.bytes);
                assert!(touched[start / 512..before / 512].iter().all(|&touched| touched));
            }
            prop_assert_eq!(found, disk);
            assert!(!buffer.holds(0, 1 << 20));
        }
    }

    #[test]
    fn neighbours_leave_as_one_and_it_is_full_when_it_says_so() {
        let mut buffer = RequestBuffer::new(16384);
        for block in [3_u64, 1, 2] {
            buffer.write(block * 4096, &[block as u8; 4096]);
            assert!(!buffer.is_full());
        }
        buffer.write(1 << 20, &[7; 512]);
        assert!(buffer.is_full());
        let writes = buffer.drain(1 << 20);
        let shapes: Vec<_> =
            writes.iter().map(|write| (write.offset_bytes, write.bytes.len())).collect();
        assert_eq!(shapes, [(4096, 12288), (1 << 20, 512)]);
    }
}
