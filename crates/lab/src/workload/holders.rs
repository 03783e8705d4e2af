//! What a workload asks of vectors, hints and reservations, with chances of their own.

use super::{Believed, SECTORS, Workload};
use crate::script::{HolderVerb, Request, Verb};

/// Reservations that are written to: the last of these.
const LIVELY: u64 = 3;

impl Workload<'_> {
    /// Now and then somebody writes several things in their order, or what is not to be looked
    /// for, or holds room and writes with that.
    pub(super) fn holder_request(&mut self) -> Option<Request> {
        if !self.holders.once_in(3) {
            return None;
        }
        let verb = Verb::Holder(self.holder_verb()?);
        let steps = if self.holders.once_in(3) { 0 } else { self.holders.below(12) as u32 };
        Some(Request { verb, steps })
    }

    fn holder_verb(&mut self) -> Option<HolderVerb> {
        // What is large fills a store that is tight.
        let most = if self.shape.tight { 400 } else { 24 };
        let durable = self.holders.once_in(4);
        Some(match self.holders.below(16) {
            0..3 => {
                let (volume, first, count) = self.held_range(24)?;
                let content = self.holders.roll() % (1 << 32);
                HolderVerb::Vector { volume, first, count, content, durable }
            }
            3..6 => {
                let (volume, first, count) = self.held_range(24)?;
                let content = self.holders.roll() % (1 << 32);
                let durable = durable || self.holders.once_in(2);
                HolderVerb::Unindexed { volume, first, count, content, durable }
            }
            6..9 => {
                let (volume, ..) = self.held_range(1)?;
                let (chunks, writes) = (self.holders.below(most), 1 + self.holders.below(4));
                let number = self.reservations;
                self.reservations += 1;
                HolderVerb::Reserve {
                    number,
                    volume,
                    chunks,
                    writes,
                    release: self.holders.once_in(3),
                }
            }
            9..14 => {
                let (_, first, count) = self.held_range(if self.shape.tight { 100 } else { 16 })?;
                let content = self.holders.roll() % (1 << 32);
                HolderVerb::Held { number: self.a_reservation(), first, count, content, durable }
            }
            14 => HolderVerb::Unreserve { number: self.a_reservation() },
            _ if self.shape.tight => {
                let (volume, first, _) = self.held_range(1)?;
                let (first, content) = (first / SECTORS * SECTORS, self.holders.roll() % (1 << 32));
                HolderVerb::Full { volume, first, content }
            }
            _ => return None,
        })
    }

    fn a_reservation(&mut self) -> u32 {
        let back = self.holders.below(LIVELY) as u32;
        self.reservations.saturating_sub(1 + back)
    }

    /// Sectors of a volume that may be written, near where others write; mostly whole chunks.
    fn held_range(&mut self, chunks_max: u64) -> Option<(u32, u64, u64)> {
        let volumes: Vec<&Believed> =
            self.volumes.iter().filter(|volume| !volume.read_only).collect();
        let at = self.holders.below(volumes.len().max(1) as u64) as usize;
        let (number, sectors) = volumes.get(at).map(|volume| (volume.number, volume.sectors))?;
        let first = self.holders.below(600.min(sectors / SECTORS).max(1)) * SECTORS;
        let count = (SECTORS * (1 + self.holders.below(chunks_max))).min(sectors - first);
        if self.holders.once_in(5) && count > 1 {
            let skip = self.holders.below(count.min(SECTORS));
            return Some((number, first + skip, count - skip));
        }
        Some((number, first, count))
    }
}
