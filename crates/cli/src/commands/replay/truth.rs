//! What the volume must hold, and how many different chunks that is: what a store is judged by.
//!
//! Of a workload any content can be asked for, in no memory. Of a trace it is remembered what was
//! written: a key of 64 bits for each unit of content, 4096 bytes or, in traces with a digest for
//! each sector, 512. That takes about 20 to 40 bytes a unit; beyond [`UNITS_MAX`] units it stops,
//! and the replay says that it was not judged. Keys are made of the bytes and not of the digests,
//! so that what was written and what is read are judged alike.

use std::ops::Range;

use hashbrown::{HashMap, HashSet};
use traces::{BLOCK_BYTES, Content, Grain, Workload};

/// Units that are remembered: up to 640 MiB.
const UNITS_MAX: usize = 16 << 20;
/// Stands for content that nobody knows, since it was written in part.
const UNKNOWN: u64 = 1;

/// What the volume must hold.
pub(super) enum Truth {
    /// What the workload says of those of its requests that were made.
    Made { workload: Workload, content: Content, writes: u64 },
    /// What was written.
    Kept(Kept),
    /// Nobody knows any more.
    GivenUp,
}

/// Contents by place.
pub(super) struct Kept {
    grain: Grain,
    units: HashMap<u64, u64>,
    /// Keys of all blocks that were ever written whole, zeros left out, and how many blocks.
    distinct: HashSet<u64>,
    blocks: u64,
}

impl Truth {
    /// For requests with digests of this grain into a volume that holds nothing; of a workload
    /// without memory, as long as chunks are what its digests name.
    pub(super) fn new(
        workload: Option<&Workload>,
        content: Content,
        chunk_bytes: u32,
        grain: Grain,
    ) -> Self {
        match workload {
            Some(workload) if u64::from(chunk_bytes) == BLOCK_BYTES => {
                Self::Made { workload: workload.clone(), content, writes: 0 }
            }
            _ => Self::Kept(Kept {
                grain,
                units: HashMap::new(),
                distinct: HashSet::new(),
                blocks: 0,
            }),
        }
    }

    /// `bytes` are written at `offset_bytes`.
    pub(super) fn write(&mut self, offset_bytes: u64, bytes: &[u8]) {
        match self {
            Self::Made { writes, .. } => *writes += 1,
            Self::Kept(kept) => {
                kept.write(offset_bytes, bytes);
                if kept.units.len().max(kept.distinct.len()) > UNITS_MAX {
                    *self = Self::GivenUp;
                }
            }
            Self::GivenUp => {}
        }
    }

    /// Keys of the units in a range, as they are now; None for those that are not known.
    pub(super) fn keys(&self, offset_bytes: u64, length_bytes: u64) -> Vec<Option<u64>> {
        let units = whole_units(offset_bytes, length_bytes, self.unit_bytes());
        match self {
            Self::Made { workload, content, writes } => {
                let key = |block| match workload.write_to(block).filter(|write| write < writes) {
                    None => Some(zeros_key(BLOCK_BYTES)),
                    Some(write) => {
                        let mut bytes = [0; BLOCK_BYTES as usize];
                        content.fill(Grain::Block, &[workload.digest_of(write)], &mut bytes);
                        Some(content_key(&bytes))
                    }
                };
                units.map(key).collect()
            }
            Self::Kept(kept) => {
                let zeros = zeros_key(self.unit_bytes());
                let key = |unit| kept.units.get(&unit).copied().unwrap_or(zeros);
                units.map(key).map(|key| Some(key).filter(|&key| key != UNKNOWN)).collect()
            }
            Self::GivenUp => units.map(|_| None).collect(),
        }
    }

    /// What `bytes`, read at `offset_bytes`, come to beside the keys that they should have.
    pub(super) fn compare(
        &self,
        offset_bytes: u64,
        bytes: &[u8],
        keys: &[Option<u64>],
    ) -> Compared {
        let unit_bytes = self.unit_bytes();
        let units = whole_units(offset_bytes, bytes.len() as u64, unit_bytes);
        let mut compared = Compared::default();
        for (unit, key) in units.zip(keys) {
            let start = (unit * unit_bytes - offset_bytes) as usize;
            let found = content_key(&bytes[start..start + unit_bytes as usize]);
            match key {
                Some(key) if *key == found => compared.right_bytes += unit_bytes,
                Some(_) => {
                    compared.wrong_bytes += unit_bytes;
                    compared.first_wrong_bytes.get_or_insert(unit * unit_bytes);
                }
                None => {}
            }
        }
        compared
    }

    /// Different chunks that are mapped, those of zeros left out; None when that is not known.
    pub(super) fn mapped_unique_chunks(&self, chunk_bytes: u32) -> Option<u64> {
        match self {
            Self::Made { workload, writes, .. } => {
                (workload.writes() == *writes).then(|| workload.unique_chunks())
            }
            Self::Kept(kept) => kept.mapped_unique_chunks(chunk_bytes),
            Self::GivenUp => None,
        }
    }

    /// Part of the blocks that repeat an earlier one, whatever became of that one; None when it is
    /// not known.
    pub(super) fn duplicate_share(&self) -> Option<f64> {
        let (blocks, distinct) = match self {
            Self::Made { workload, writes, .. } if workload.writes() == *writes => {
                (*writes, workload.unique_chunks())
            }
            Self::Kept(kept) => (kept.blocks, kept.distinct.len() as u64),
            _ => return None,
        };
        (blocks > 0).then(|| (blocks - distinct) as f64 / blocks as f64)
    }

    /// Ranges that together hold all that was written, each at most `length_bytes_max` long.
    pub(super) fn written_ranges(&self, length_bytes_max: u64) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let mut add = |start: u64, end: u64| match ranges.last_mut() {
            Some(last) if last.end == start && end - last.start <= length_bytes_max => {
                last.end = end;
            }
            _ => ranges.push(start..end),
        };
        match self {
            Self::Made { workload, .. } => {
                let blocks = 0..workload.volume_blocks();
                let written = blocks.filter(|&block| workload.write_to(block).is_some());
                written.for_each(|block| add(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES));
            }
            Self::Kept(kept) => {
                let unit_bytes = kept.grain.bytes();
                let mut units: Vec<u64> = kept.units.keys().copied().collect();
                units.sort_unstable();
                units.iter().for_each(|unit| add(unit * unit_bytes, (unit + 1) * unit_bytes));
            }
            Self::GivenUp => {}
        }
        ranges
    }

    fn unit_bytes(&self) -> u64 {
        match self {
            Self::Kept(kept) => kept.grain.bytes(),
            Self::Made { .. } | Self::GivenUp => BLOCK_BYTES,
        }
    }
}

impl Kept {
    fn write(&mut self, offset_bytes: u64, bytes: &[u8]) {
        let unit_bytes = self.grain.bytes();
        let end_bytes = offset_bytes + bytes.len() as u64;
        for unit in offset_bytes / unit_bytes..end_bytes.div_ceil(unit_bytes) {
            let start_bytes = unit * unit_bytes;
            let is_whole = start_bytes >= offset_bytes && start_bytes + unit_bytes <= end_bytes;
            let key = match is_whole {
                true => content_key(
                    &bytes[(start_bytes - offset_bytes) as usize..][..unit_bytes as usize],
                ),
                false => UNKNOWN,
            };
            self.units.insert(unit, key);
        }
        let zeros = zeros_key(BLOCK_BYTES);
        for block in whole_units(offset_bytes, bytes.len() as u64, BLOCK_BYTES) {
            let start = (block * BLOCK_BYTES - offset_bytes) as usize;
            let key = content_key(&bytes[start..start + BLOCK_BYTES as usize]);
            if key != zeros {
                self.distinct.insert(key);
                self.blocks += 1;
            }
        }
    }

    fn mapped_unique_chunks(&self, chunk_bytes: u32) -> Option<u64> {
        let unit_bytes = self.grain.bytes();
        let chunk_units = u64::from(chunk_bytes) / unit_bytes;
        let zeros = zeros_key(unit_bytes);
        let mut units: Vec<(u64, u64)> =
            self.units.iter().map(|(&unit, &key)| (unit, key)).collect();
        units.sort_unstable();
        let mut distinct = HashSet::new();
        for chunk in units.chunk_by(|one, other| one.0 / chunk_units == other.0 / chunk_units) {
            let mut whole = 0_u64;
            for &(unit, key) in chunk.iter().filter(|(_, key)| *key != zeros) {
                if key == UNKNOWN {
                    return None;
                }
                // What is known of a chunk: which contents lie where in it.
                let placed = key ^ (unit % chunk_units + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                whole = fold(whole ^ placed, 0xd6e8_feb8_6659_fd93);
            }
            if whole != 0 {
                distinct.insert(whole);
            }
        }
        Some(distinct.len() as u64)
    }
}

/// What became of a comparison; what is unknown is in neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Compared {
    pub(super) right_bytes: u64,
    pub(super) wrong_bytes: u64,
    /// Where the first wrong ones are in the volume.
    pub(super) first_wrong_bytes: Option<u64>,
}

impl Compared {
    pub(super) fn add(&mut self, other: Self) {
        self.right_bytes += other.right_bytes;
        self.wrong_bytes += other.wrong_bytes;
        self.first_wrong_bytes = self.first_wrong_bytes.or(other.first_wrong_bytes);
    }
}

/// The units that lie in a range whole.
fn whole_units(offset_bytes: u64, length_bytes: u64, unit_bytes: u64) -> Range<u64> {
    offset_bytes.div_ceil(unit_bytes)..(offset_bytes + length_bytes) / unit_bytes
}

fn zeros_key(unit_bytes: u64) -> u64 {
    content_key(&[0; BLOCK_BYTES as usize][..unit_bytes as usize])
}

/// A key of these bytes, whose length is a multiple of 16: equal for equal ones.
fn content_key(bytes: &[u8]) -> u64 {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.first_chunk().copied().unwrap_or_default());
    let mut key = 0x2545_f491_4f6c_dd1d_u64;
    for pair in bytes.chunks_exact(16) {
        let (first, second) = pair.split_at(8);
        key = key.rotate_left(29) ^ fold(word(first) ^ key, word(second) ^ 0x9e37_79b9_7f4a_7c15);
    }
    key.max(UNKNOWN + 1)
}

/// Both halves of a product: every bit of both factors counts.
fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests;
