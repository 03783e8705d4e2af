//! Chunks of one version that a volume is to map: whose, from where, to where, and how many.

use std::ops::Range;
use std::sync::Arc;

use format::units::{Lba, VolumeId};
use mutants::mutant;
use tables::lba_pbn;

use crate::door::error::RequestError;
use crate::door::volume::VolumeShared;
use crate::state::mapping::leaf_start;

/// Leaves of the target's map that one reserved chunk pays for: it pays for four pages, and above
/// each leaf there may be a new inner page.
const LEAVES_PER_RESERVED_CHUNK: u64 = 2;

/// What is left of a copy, or a part of it. Nothing is left once `chunks` is 0.
#[derive(Clone)]
pub(crate) struct CopiedRange {
    pub(crate) from: Arc<VolumeShared>,
    pub(crate) from_lba: u64,
    pub(crate) to: Arc<VolumeShared>,
    pub(crate) to_lba: u64,
    pub(crate) chunks: u64,
}

impl CopiedRange {
    /// Whether it may be copied as both volumes are now.
    pub(crate) fn check(&self, chunk_bytes: u32) -> Result<(), RequestError> {
        let Self { from, from_lba, to, to_lba, chunks } = self;
        let bytes = |chunks: u64| chunks.saturating_mul(u64::from(chunk_bytes));
        from.check_range(bytes(*from_lba), bytes(*chunks))?;
        to.check_change(bytes(*to_lba), bytes(*chunks))?;
        if from.domain != to.domain && !mutant!(CopiesAcrossDomains) {
            return Err(RequestError::OtherDomain { from: from.name(), to: to.name() });
        }
        if from.id == to.id && from_lba.abs_diff(*to_lba) < *chunks {
            return Err(RequestError::OverlappingCopy { volume: to.name() });
        }
        Ok(())
    }

    /// Whether it reads or changes this volume.
    pub(crate) fn is_of(&self, volume: VolumeId) -> bool {
        self.from.id == volume || self.to.id == volume
    }

    /// The chunks of the target.
    pub(crate) fn targets(&self) -> Range<u64> {
        self.to_lba..self.to_lba + self.chunks
    }

    /// The first `chunks` are done.
    pub(crate) fn move_on(&mut self, chunks: u64) {
        self.from_lba += chunks;
        self.to_lba += chunks;
        self.chunks -= chunks;
    }

    /// Cuts the first `chunks` off.
    pub(crate) fn cut_front(&mut self, chunks: u64) -> Self {
        let front = Self { chunks, ..self.clone() };
        self.move_on(chunks);
        front
    }

    /// Chunks of which the worst case is reserved for it: no chunk is stored, but the target's map
    /// may need new pages. At least one.
    pub(crate) fn room_chunks(&self) -> u64 {
        let Range { start, end } = self.targets();
        let leaf = |lba| lba_pbn::place(Lba(lba)).0;
        let leaves = leaf(end.saturating_sub(1).max(start)) - leaf(start) + 1;
        leaves / LEAVES_PER_RESERVED_CHUNK + 1
    }

    /// How many of its chunks, from the first on, such a reservation is enough for.
    pub(crate) fn chunks_within(&self, room_chunks: u64) -> u64 {
        let leaves = room_chunks * LEAVES_PER_RESERVED_CHUNK - 1;
        let end = leaf_start(lba_pbn::place(Lba(self.to_lba)).0 + leaves);
        self.chunks.min(end - self.to_lba)
    }
}

#[cfg(test)]
mod tests {
    use format::catalog::VolumeKind;
    use format::domain::{Domain, DomainId};
    use format::map_page::SLOTS;
    use format::units::VolumeId;

    use super::CopiedRange;
    use crate::door::error::RequestError;
    use crate::door::volume::VolumeShared;

    const CHUNK_BYTES: u32 = 4096;

    /// Of volumes of 1,000 chunks.
    fn range(from: (u32, u64), to: (u32, u64), chunks: u64) -> CopiedRange {
        let volume = |id: u32| {
            let size_bytes = 1000 * u64::from(CHUNK_BYTES);
            let number = DomainId::new(id as u16 / 10).unwrap();
            let domain =
                number.is_keyed().then(|| Domain { id: number, name: number.number().to_string() });
            let name = format!("v{id}");
            let kind = VolumeKind::Block;
            VolumeShared::new(VolumeId(id), &name, size_bytes, id == 9, CHUNK_BYTES, domain, kind)
        };
        let (from, from_lba) = (volume(from.0), from.1);
        let (to, to_lba) = (volume(to.0), to.1);
        CopiedRange { from, from_lba, to, to_lba, chunks }
    }

    #[test]
    fn what_cannot_be_copied_is_refused_with_the_reason() {
        let check = |from, to, chunks| range(from, to, chunks).check(CHUNK_BYTES);
        assert_eq!(check((1, 0), (2, 990), 10), Ok(()));
        assert_eq!(check((9, 0), (1, 0), 10), Ok(()), "the source may be read-only");
        assert!(matches!(check((1, 0), (9, 0), 10), Err(RequestError::ReadOnly { .. })));
        assert!(matches!(check((1, 0), (2, 991), 10), Err(RequestError::OutOfRange { .. })));
        assert!(matches!(check((1, 991), (2, 0), 10), Err(RequestError::OutOfRange { .. })));
        let beyond = u64::MAX / u64::from(CHUNK_BYTES);
        assert!(matches!(check((1, beyond), (2, 0), 10), Err(RequestError::OutOfRange { .. })));
        let (from, to) = ("v1".to_owned(), "v10".to_owned());
        assert_eq!(check((1, 0), (10, 0), 10), Err(RequestError::OtherDomain { from, to }));
        assert!(check((10, 0), (20, 0), 10).is_err());
        assert_eq!(check((10, 0), (11, 0), 10), Ok(()));
    }

    #[test]
    fn ranges_of_one_volume_may_touch_and_not_overlap() {
        for (from, to) in [(0, 10), (10, 0)] {
            assert_eq!(range((1, from), (1, to), 10).check(CHUNK_BYTES), Ok(()));
            let overlapping = range((1, from), (1, to), 11).check(CHUNK_BYTES);
            assert_eq!(overlapping, Err(RequestError::OverlappingCopy { volume: "v1".into() }));
        }
        assert!(range((1, 5), (1, 5), 1).check(CHUNK_BYTES).is_err());
    }

    #[test]
    fn a_part_needs_no_more_than_it_was_cut_for() {
        let slots = SLOTS as u64;
        for to_lba in [0, 1, slots - 1, slots, 7 * slots + 3] {
            for chunks in [1, 2, slots - 1, slots, slots + 1, 9 * slots + 5] {
                let all = range((1, 0), (2, to_lba), chunks);
                assert!(all.chunks_within(all.room_chunks()) == chunks);
                for room in 1..all.room_chunks() {
                    let mut rest = all.clone();
                    let front = rest.cut_front(all.chunks_within(room));
                    assert!(front.chunks > 0 && front.room_chunks() <= room);
                    assert_eq!(front.chunks + rest.chunks, chunks);
                    assert_eq!(front.targets().end, rest.to_lba);
                    assert_eq!(front.from_lba + front.chunks, rest.from_lba);
                }
            }
        }
    }
}
