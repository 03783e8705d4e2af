//! Frames that a record carries, until they are in their containers.
//!
//! Recovery and checks read the data zones as if these bytes stood there already, so neither has
//! to know that a frame came with its record. An opening then *places* them (`carrying.rs`): from
//! there on the containers have them. A container that was opened anew has none from before: its
//! last life ended with a round that placed them (`flush.rs`), and a record said so before the
//! container was given out again.

use std::collections::BTreeMap;
use std::ops::Range;

use format::BLOCK_BYTES;
use format::units::Zone;

/// Bytes of data zones that may not have been written.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    /// By zone and first byte; they do not overlap.
    pieces: BTreeMap<(Zone, u64), Vec<u8>>,
}

impl Carried {
    /// Takes bytes; what follows a piece becomes a part of it.
    pub(crate) fn add(&mut self, zone: Zone, offset_bytes: u64, bytes: &[u8]) {
        let before = self.pieces.range_mut(..(zone, offset_bytes)).next_back();
        match before {
            Some((&(of, at), piece)) if of == zone && at + piece.len() as u64 == offset_bytes => {
                piece.extend_from_slice(bytes);
            }
            _ => drop(self.pieces.insert((zone, offset_bytes), bytes.to_vec())),
        }
    }

    /// Lays what is known of a stretch over what was read of it.
    pub(crate) fn lay_over(&self, zone: Zone, start_bytes: u64, read: &mut [u8]) {
        let end_bytes = start_bytes + read.len() as u64;
        let before = self.pieces.range(..(zone, start_bytes)).next_back();
        let inside = self.pieces.range((zone, start_bytes)..(zone, end_bytes));
        for (&(of, at), piece) in before.into_iter().chain(inside) {
            let piece_end_bytes = at + piece.len() as u64;
            if of != zone || piece_end_bytes <= start_bytes {
                continue;
            }
            let (from, to) = (at.max(start_bytes), piece_end_bytes.min(end_bytes));
            read[(from - start_bytes) as usize..(to - start_bytes) as usize]
                .copy_from_slice(&piece[(from - at) as usize..(to - at) as usize]);
        }
    }

    /// Whether all of these bytes are carried.
    pub(crate) fn has(&self, zone: Zone, bytes: Range<u64>) -> bool {
        let before = self.pieces.range(..=(zone, bytes.start)).next_back();
        let reaches = |(&(of, at), piece): (&(Zone, u64), &Vec<u8>)| {
            of == zone && bytes.end <= at + piece.len() as u64
        };
        bytes.is_empty() || before.is_some_and(reaches)
    }

    /// The stretches of whole blocks that hold pieces: zone, first byte, length.
    pub(crate) fn stretches(&self) -> Vec<(Zone, u64, usize)> {
        let block_bytes = BLOCK_BYTES as u64;
        let mut stretches: Vec<(Zone, u64, u64)> = Vec::new();
        for (&(zone, at), piece) in &self.pieces {
            let start = at - at % block_bytes;
            let end = (at + piece.len() as u64).next_multiple_of(block_bytes);
            match stretches.last_mut() {
                Some((of, _, last)) if *of == zone && start <= *last => *last = end.max(*last),
                _ => stretches.push((zone, start, end)),
            }
        }
        let length = |(zone, start, end): (Zone, u64, u64)| (zone, start, (end - start) as usize);
        stretches.into_iter().map(length).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::Carried;
    use format::BLOCK_BYTES;
    use format::units::Zone;

    proptest! {
        /// Against bytes that were written: whatever stretch is read, and whatever was carried.
        #[test]
        fn what_is_carried_is_read(
            gaps in vec((0..9000u64, 1..7000usize, any::<u8>()), 0..12),
            start in 0..60_000usize,
            length in 0..30_000usize,
        ) {
            let (mut carried, mut model) = (Carried::default(), vec![0xee; 200_000]);
            let mut known = vec![false; 200_000];
            let mut at = 0;
            for (gap, length_bytes, byte) in gaps {
                // Frames follow each other without a gap as often as not.
                at += if gap < 4500 { 0 } else { gap };
                let bytes = vec![byte; length_bytes];
                carried.add(Zone::Data(3), at, &bytes);
                model[at as usize..at as usize + length_bytes].copy_from_slice(&bytes);
                known[at as usize..at as usize + length_bytes].fill(true);
                at += length_bytes as u64;
            }
            let mut read = vec![0xee; length];
            carried.lay_over(Zone::Data(3), start as u64, &mut read);
            prop_assert_eq!(&read[..], &model[start..start + length]);
            let mut others = vec![0xee; length];
            carried.lay_over(Zone::Data(2), start as u64, &mut others);
            prop_assert_eq!(others, vec![0xee; length]);
            let asked = start..start + length.min(6000);
            let is_known = known[asked.clone()].iter().all(|known| *known);
            let asked = asked.start as u64..asked.end as u64;
            prop_assert_eq!(carried.has(Zone::Data(3), asked.clone()), is_known);
            prop_assert!(asked.is_empty() || !carried.has(Zone::Data(2), asked));
            let mut placed = vec![0xee; 200_000];
            for (zone, offset, length_bytes) in carried.stretches() {
                prop_assert_eq!((zone, offset as usize % BLOCK_BYTES), (Zone::Data(3), 0));
                let there = &mut placed[offset as usize..][..length_bytes];
                carried.lay_over(zone, offset, there);
            }
            prop_assert_eq!(placed, model);
        }
    }
}
