//! What the tables are asked for: writes and reads of chunks that are known by number, in the order
//! in which their contents first came. So a write is new exactly when its number is the next one.

use std::collections::HashMap;
use std::io::{self, BufRead};

use traces::{BLOCK_SECTORS, Digest, Direction, Grain, Request, TraceReader, Workload};

use crate::dice::{Dice, mixed};

/// Chunks of a page of the LBA-PBN map.
const MAP_CHUNKS: u64 = format::map_page::SLOTS as u64;
/// Chunks that a far duplicate repeats.
const RUN_CHUNKS: u64 = 8;

/// One access.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) chunk: u32,
    pub(super) map_page: u32,
    pub(super) direction: Direction,
    /// Of the stream that is looked at, and not of one beside it.
    pub(super) counted: bool,
}

/// Accesses in their order.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    pub(super) name: String,
    pub(super) accesses: Vec<Access>,
    pub(super) chunks: u64,
    pub(super) map_pages: u64,
}

/// What runs beside a stream, on the same cache.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Neighbour {
    /// Writes nothing but new chunks.
    Unique,
    /// Repeats runs from anywhere of a store of its own.
    Far,
    /// Reads single chunks from anywhere of a store of its own.
    Reads,
}

impl Neighbour {
    /// As tables name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unique => "unique",
            Self::Far => "far duplicates",
            Self::Reads => "random reads",
        }
    }
}

impl Stream {
    /// The requests of a made workload.
    #[must_use]
    pub fn of_workload(workload: &Workload) -> Self {
        let mut numbering = Numbering::default();
        let accesses = (0..workload.requests()).filter_map(|number| {
            let access = workload.access(number);
            numbering.number(access.digest, access.block, access.direction)
        });
        let accesses = accesses.collect();
        numbering.stream(workload.kind().name(), accesses)
    }

    /// The requests of a trace in the format of FIU's, `requests_max` at most. Reads of what was
    /// never written are left out; eight sectors make a chunk.
    ///
    /// # Errors
    /// What reading it fails with.
    pub fn of_trace(input: impl BufRead, name: &str, requests_max: u64) -> io::Result<Self> {
        let mut reader = TraceReader::new(input);
        let mut request = Request::default();
        let mut numbering = Numbering::default();
        let mut accesses = Vec::new();
        while (accesses.len() as u64) < requests_max && reader.read(&mut request)? {
            let first = request.first_sector / BLOCK_SECTORS;
            let digests_per_block = match request.grain {
                Grain::Block => 1,
                Grain::Sector => BLOCK_SECTORS as usize,
            };
            for (number, digests) in request.digests.chunks(digests_per_block).enumerate() {
                let (digest, block) = (joined(digests), first + number as u64);
                accesses.extend(numbering.number(digest, block, request.direction));
            }
        }
        Ok(numbering.stream(name, accesses))
    }

    /// Writes.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.accesses.iter().filter(|access| access.direction == Direction::Write).count() as u64
    }

    /// The stream with another beside it, request by request in turn, or the same without its
    /// requests. What the neighbour has stored before it begins is there in both.
    pub(super) fn beside(&self, neighbour: Neighbour, asks: bool, seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let mut merged = Merged { mine: vec![None; self.chunks as usize], ..Merged::default() };
        let stored = if neighbour == Neighbour::Unique { 0 } else { self.chunks };
        for _ in 0..stored {
            merged.add_new_beside(self.map_pages);
        }
        let mut from = 0;
        for (number, access) in (0..).zip(&self.accesses) {
            merged.add(*access);
            match neighbour {
                _ if !asks => {}
                Neighbour::Unique => merged.add_new_beside(self.map_pages),
                Neighbour::Far => {
                    if number % RUN_CHUNKS == 0 {
                        from = dice.below(stored.saturating_sub(RUN_CHUNKS).max(1));
                    }
                    let chunk = (from + number % RUN_CHUNKS).min(stored - 1);
                    merged.add_beside(chunk as u32, self.map_pages);
                }
                Neighbour::Reads => {
                    merged.read_beside(dice.below(stored.max(1)) as u32, self.map_pages);
                }
            }
        }
        let map_pages = self.map_pages + merged.writes_beside / MAP_CHUNKS + 1;
        let chunks = u64::from(merged.chunks);
        Self { name: self.name.clone(), accesses: merged.accesses, chunks, map_pages }
    }
}

/// Two streams becoming one, with chunks numbered anew.
#[derive(Default)]
struct Merged {
    accesses: Vec<Access>,
    mine: Vec<Option<u32>>,
    chunks: u32,
    writes_beside: u64,
}

impl Merged {
    fn add(&mut self, access: Access) {
        let number = &mut self.mine[access.chunk as usize];
        let chunk = *number.get_or_insert_with(|| {
            self.chunks += 1;
            self.chunks - 1
        });
        self.accesses.push(Access { chunk, ..access });
    }

    fn add_new_beside(&mut self, map_pages: u64) {
        self.chunks += 1;
        self.add_beside(self.chunks - 1, map_pages);
    }

    fn add_beside(&mut self, chunk: u32, map_pages: u64) {
        let map_page = (map_pages + self.writes_beside / MAP_CHUNKS) as u32;
        self.writes_beside += 1;
        let direction = Direction::Write;
        self.accesses.push(Access { chunk, map_page, direction, counted: false });
    }

    /// What the neighbour stored first has the first numbers, in its store and in all.
    fn read_beside(&mut self, chunk: u32, map_pages: u64) {
        let map_page = (map_pages + u64::from(chunk) / MAP_CHUNKS) as u32;
        let direction = Direction::Read;
        self.accesses.push(Access { chunk, map_page, direction, counted: false });
    }
}

#[derive(Default)]
struct Numbering {
    chunks: HashMap<Digest, u32>,
    map_pages: HashMap<u64, u32>,
}

impl Numbering {
    fn number(&mut self, digest: Digest, block: u64, direction: Direction) -> Option<Access> {
        let next = self.chunks.len() as u32;
        let chunk = match direction {
            Direction::Read => *self.chunks.get(&digest)?,
            Direction::Write => *self.chunks.entry(digest).or_insert(next),
        };
        let next = self.map_pages.len() as u32;
        let map_page = *self.map_pages.entry(block / MAP_CHUNKS).or_insert(next);
        Some(Access { chunk, map_page, direction, counted: true })
    }

    fn stream(self, name: &str, accesses: Vec<Access>) -> Stream {
        let (chunks, map_pages) = (self.chunks.len() as u64, self.map_pages.len() as u64);
        Stream { name: name.to_owned(), accesses, chunks, map_pages }
    }
}

/// One name for several pieces.
fn joined(digests: &[Digest]) -> Digest {
    if let [digest] = digests {
        return *digest;
    }
    let halves = digests.iter().fold([0, 1], |halves, digest| {
        let [high, low] = digest.halves();
        [mixed(halves[0], high), mixed(halves[1], low)]
    });
    Digest::from_halves(halves)
}

#[cfg(test)]
mod tests {
    use traces::{Direction, Workload, WorkloadKind};

    use super::{Neighbour, Stream};

    #[test]
    fn chunks_are_numbered_as_they_come() {
        let workload = Workload::new(WorkloadKind::ReadMixed, 4_000, 1);
        let stream = Stream::of_workload(&workload);
        assert_eq!(stream.chunks, workload.unique_chunks());
        assert_eq!(stream.writes(), workload.writes());
        for stream in [&stream, &stream.beside(Neighbour::Far, true, 1)] {
            let mut known = 0;
            for access in &stream.accesses {
                assert!(access.chunk <= known, "a number is left out");
                assert!(u64::from(access.map_page) < stream.map_pages);
                let is_new = access.chunk == known;
                assert!(!is_new || access.direction == Direction::Write);
                known += u32::from(is_new);
            }
            assert_eq!(u64::from(known), stream.chunks);
        }
    }

    #[test]
    fn a_neighbour_changes_nothing_in_the_stream_itself() {
        let stream = Stream::of_workload(&Workload::new(WorkloadKind::WriteH, 2_000, 1));
        for neighbour in [Neighbour::Unique, Neighbour::Far, Neighbour::Reads] {
            let beside = stream.beside(neighbour, true, 1);
            let mine = beside.accesses.iter().filter(|access| access.counted);
            let found: Vec<u32> = mine.clone().map(|access| access.map_page).collect();
            let alone: Vec<u32> = stream.accesses.iter().map(|access| access.map_page).collect();
            assert_eq!(found, alone);
            let of_others = beside.accesses.len() - mine.count();
            assert!(of_others >= stream.accesses.len());
        }
    }

    #[test]
    fn both_forms_of_traces_are_read() {
        let block = "1 2 nfsd 8 8 W 6 0 620f0b67a91f7f74151bc5be745b7110\n";
        let read = "1 2 nfsd 8 8 R 6 0 620f0b67a91f7f74151bc5be745b7110\n";
        let unknown = "1 2 nfsd 8 8 R 6 0 00000000000000000000000000000001\n";
        let trace = [read, block, block, unknown, read].concat();
        let stream = Stream::of_trace(trace.as_bytes(), "a", 100).unwrap();
        assert_eq!((stream.accesses.len(), stream.chunks, stream.writes()), (3, 1, 2));
        assert_eq!(Stream::of_trace(trace.as_bytes(), "a", 1).unwrap().accesses.len(), 1);
    }
}
