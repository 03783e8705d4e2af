//! Which bytes of a chunk have been written.
//!
//! Nearly all requests are of whole sectors, so those take one bit each. A sector that was written
//! in part has an *edge*, with a bit for each of its bytes.
//!
//! Invariant: a sector is whole, or has one edge, or nothing of it is written. An edge has a byte
//! that is written and one that is not.

use std::ops::Range;

use crate::door::volume::SECTOR_BYTES;

const SECTOR: usize = SECTOR_BYTES as usize;
const WORD_BITS: usize = u128::BITS as usize;

/// Bytes of a chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// Bit i: all of sector i.
    sectors: u128,
    /// Sectors that are written in part, in no order.
    edges: Vec<Edge>,
}

/// Bytes of a sector.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Edge {
    sector: usize,
    /// Bit i: byte i.
    bytes: [u128; SECTOR / WORD_BITS],
}

impl Written {
    /// All of a chunk.
    pub(crate) fn all(chunk_bytes: usize) -> Self {
        Self { sectors: bits(0..chunk_bytes / SECTOR), edges: Vec::new() }
    }

    /// Whether that is all of a chunk.
    pub(crate) fn is_all(&self, chunk_bytes: usize) -> bool {
        self.sectors == bits(0..chunk_bytes / SECTOR)
    }

    /// A range is written.
    pub(crate) fn add(&mut self, range: Range<usize>) {
        let whole = range.start.div_ceil(SECTOR)..range.end / SECTOR;
        if whole.end < whole.start {
            return self.add_in_sector(range);
        }
        self.add_in_sector(range.start..whole.start * SECTOR);
        self.add_in_sector(whole.end * SECTOR..range.end);
        self.edges.retain(|edge| !whole.contains(&edge.sector));
        self.sectors |= bits(whole);
    }

    /// A range inside one sector is written, or nothing.
    fn add_in_sector(&mut self, range: Range<usize>) {
        let sector = range.start / SECTOR;
        if range.is_empty() || self.has_sector(sector) {
            return;
        }
        let inside = range.start % SECTOR..range.end - sector * SECTOR;
        let known = self.edges.iter().position(|edge| edge.sector == sector);
        let at = known.unwrap_or_else(|| {
            self.edges.push(Edge { sector, bytes: Default::default() });
            self.edges.len() - 1
        });
        self.edges[at].add(inside);
        if self.edges[at].is_whole() {
            self.edges.swap_remove(at);
            self.sectors |= bits(sector..sector + 1);
        }
    }

    fn has_sector(&self, sector: usize) -> bool {
        self.sectors >> sector & 1 == 1
    }

    /// Puts what `base` has (zeros when None) where nothing of `chunk` is written.
    pub(crate) fn complete(&self, chunk: &mut [u8], base: Option<&[u8]>) {
        for (sector, target) in chunk.chunks_exact_mut(SECTOR).enumerate() {
            if self.has_sector(sector) {
                continue;
            }
            let start = sector * SECTOR;
            let base = base.and_then(|base| base.get(start..start + SECTOR));
            match (self.edges.iter().find(|edge| edge.sector == sector), base) {
                (Some(edge), base) => edge.complete(target, base),
                (None, Some(bytes)) => target.copy_from_slice(bytes),
                (None, None) => target.fill(0),
            }
        }
    }
}

impl Edge {
    fn add(&mut self, range: Range<usize>) {
        for (word, start) in self.bytes.iter_mut().zip((0..).step_by(WORD_BITS)) {
            let within = |at: usize| at.clamp(start, start + WORD_BITS) - start;
            *word |= bits(within(range.start)..within(range.end));
        }
    }

    fn is_whole(&self) -> bool {
        self.bytes == [u128::MAX; SECTOR / WORD_BITS]
    }

    fn complete(&self, target: &mut [u8], base: Option<&[u8]>) {
        for (at, byte) in target.iter_mut().enumerate() {
            if self.bytes[at / WORD_BITS] >> (at % WORD_BITS) & 1 == 0 {
                *byte = base.map_or(0, |base| base[at]);
            }
        }
    }
}

/// The bits of a range of 128.
fn bits(range: Range<usize>) -> u128 {
    match range.len() {
        0 => 0,
        WORD_BITS => u128::MAX,
        count => ((1 << count) - 1) << range.start,
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{Just, Strategy, prop_assert, prop_assert_eq, prop_oneof};
    use proptest::proptest;

    use super::{SECTOR, Written};

    const CHUNK: usize = 4096;

    /// Ends of ranges: anywhere, and where sectors begin.
    fn end() -> impl Strategy<Value = usize> {
        let near = (0..=CHUNK / SECTOR, 0..3_usize)
            .prop_map(|(sector, beside)| (sector * SECTOR + beside).saturating_sub(1).min(CHUNK));
        prop_oneof![0..=CHUNK, near, Just(0), Just(CHUNK)]
    }

    proptest! {
        #[test]
        fn bytes_that_are_written_stay_and_others_come_from_below(
            ranges in vec((end(), end()), 0..12),
            has_base: bool,
        ) {
            let mut written = Written::default();
            let below = if has_base { 7 } else { 0 };
            let (mut chunk, mut model) = (vec![0xee; CHUNK], vec![below; CHUNK]);
            let mut count = [false; CHUNK];
            for (fill, (one, other)) in (10..).zip(ranges) {
                let range = one.min(other)..one.max(other);
                chunk[range.clone()].fill(fill);
                model[range.clone()].fill(fill);
                count[range.clone()].fill(true);
                written.add(range);
            }
            prop_assert_eq!(written.is_all(CHUNK), count.iter().all(|written| *written));
            let mut sectors: Vec<_> = written.edges.iter().map(|edge| edge.sector).collect();
            sectors.sort_unstable();
            sectors.dedup();
            prop_assert_eq!(sectors.len(), written.edges.len(), "one edge to a sector");
            prop_assert!(!sectors.iter().any(|sector| written.has_sector(*sector)));
            written.complete(&mut chunk, has_base.then_some(&[7; CHUNK]));
            prop_assert!(chunk == model);
        }
    }

    #[test]
    fn the_largest_chunk_has_a_bit_for_each_sector() {
        let mut written = Written::default();
        written.add(1..64 << 10);
        assert!(!written.is_all(64 << 10));
        written.add(0..1);
        assert!(written.is_all(64 << 10));
        assert_eq!(written, Written::all(64 << 10));
    }
}
