//! What chunks of 32 KiB cost where clients write 4 KiB (FIDR, section 3.1 and Figure 3).
//!
//! A buffer of 4 MiB takes writes; when it is full, every large chunk that was touched is put
//! together. Blocks of it that the client did not write are read. Then the chunk is looked up, and
//! written whole if it is unique. What lay on the volume before the trace is taken as unlike
//! anything in it.

use std::collections::{BTreeMap, HashMap, HashSet};

use traces::Direction;

use crate::flash::Trace;

/// Blocks of a large chunk.
const CHUNK_BLOCKS: usize = 8;
/// Blocks of the buffer: 4 MiB.
const BUFFER_BLOCKS: usize = 1024;

/// Blocks of 4 KiB.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockIo {
    /// Written by clients.
    pub asked: u64,
    /// Of chunks that were put together, to be hashed.
    pub put_together: u64,
    /// Read from SSDs.
    pub read: u64,
    /// Written to them.
    pub written: u64,
}

impl BlockIo {
    /// Read and written.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.read + self.written
    }
}

/// What a trace's writes cost where chunks have 4 KiB: its unique blocks.
#[must_use]
pub fn small_chunk_io(trace: &Trace) -> BlockIo {
    let mut stored = HashSet::new();
    let mut io = BlockIo::default();
    for (_, content) in writes(trace) {
        io.asked += 1;
        io.put_together += 1;
        io.written += u64::from(stored.insert(content));
    }
    io
}

/// What they cost where chunks have 32 KiB.
#[must_use]
pub fn large_chunk_io(trace: &Trace) -> BlockIo {
    let mut volume = Volume::default();
    for (lba, content) in writes(trace) {
        volume.write(lba, content);
    }
    volume.empty_buffer();
    volume.io
}

fn writes(trace: &Trace) -> impl Iterator<Item = (u64, u32)> {
    let requests = trace.requests.iter().filter(|request| request.direction == Direction::Write);
    requests.map(|request| (request.lba, request.content))
}

type Chunk = [u64; CHUNK_BLOCKS];

#[derive(Default)]
struct Volume {
    chunks: HashMap<u64, Chunk>,
    stored: HashSet<Chunk>,
    buffer: BTreeMap<u64, u32>,
    io: BlockIo,
}

impl Volume {
    fn write(&mut self, lba: u64, content: u32) {
        self.io.asked += 1;
        self.buffer.insert(lba, content);
        if self.buffer.len() == BUFFER_BLOCKS {
            self.empty_buffer();
        }
    }

    fn empty_buffer(&mut self) {
        let mut touched: BTreeMap<u64, Vec<(usize, u32)>> = BTreeMap::new();
        for (lba, content) in std::mem::take(&mut self.buffer) {
            let (number, block) = (lba / CHUNK_BLOCKS as u64, lba % CHUNK_BLOCKS as u64);
            touched.entry(number).or_default().push((block as usize, content));
        }
        for (number, blocks) in touched {
            self.put_together(number, &blocks);
        }
    }

    fn put_together(&mut self, number: u64, blocks: &[(usize, u32)]) {
        let before =
            (0..CHUNK_BLOCKS as u64).map(|block| old(number * CHUNK_BLOCKS as u64 + block));
        let chunk = self.chunks.entry(number).or_insert_with(|| {
            let mut chunk = Chunk::default();
            chunk.iter_mut().zip(before).for_each(|(block, content)| *block = content);
            chunk
        });
        for &(block, content) in blocks {
            chunk[block] = u64::from(content);
        }
        self.io.put_together += CHUNK_BLOCKS as u64;
        self.io.read += (CHUNK_BLOCKS - blocks.len()) as u64;
        if self.stored.insert(*chunk) {
            self.io.written += CHUNK_BLOCKS as u64;
        }
    }
}

/// What lay in a block before the trace.
fn old(lba: u64) -> u64 {
    lba | 1 << 63
}

#[cfg(test)]
mod tests {
    use traces::Direction;

    use super::{BlockIo, large_chunk_io, small_chunk_io};
    use crate::flash::{Request, Trace};

    fn trace(writes: &[(u64, u32)]) -> Trace {
        let request =
            |&(lba, content)| Request { time_ns: 0, direction: Direction::Write, lba, content };
        Trace { requests: writes.iter().map(request).collect(), ..Trace::default() }
    }

    #[test]
    fn one_block_of_a_large_chunk_reads_seven_and_writes_eight() {
        let io = large_chunk_io(&trace(&[(3, 1)]));
        assert_eq!(io, BlockIo { asked: 1, put_together: 8, read: 7, written: 8 });
    }

    #[test]
    fn a_whole_chunk_reads_nothing_and_its_copy_writes_nothing() {
        let both: Vec<(u64, u32)> = (0..16).map(|lba| (lba, lba as u32 % 8)).collect();
        let io = large_chunk_io(&trace(&both));
        assert_eq!(io, BlockIo { asked: 16, put_together: 16, read: 0, written: 8 });
        assert_eq!(small_chunk_io(&trace(&both)).written, 8);
    }

    #[test]
    fn a_copy_at_another_place_within_its_chunk_is_not_found() {
        let shifted: Vec<(u64, u32)> = (0..8)
            .map(|lba| (lba, lba as u32))
            .chain((9..17).map(|lba| (lba, lba as u32 - 9)))
            .collect();
        assert_eq!(small_chunk_io(&trace(&shifted)).written, 8);
        assert_eq!(large_chunk_io(&trace(&shifted)).written, 24);
    }
}
