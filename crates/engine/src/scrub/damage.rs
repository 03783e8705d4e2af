//! The stored chunks that are known to be damaged, and how each leaves this list.
//!
//! ```text
//!                 scrub, collection                 a client writes the same content
//! sound or unknown ----------------> damaged ---------------------------------------> healing
//!        ^                              |  Move (healed, or moved after all), Forget      |
//!        +------------------------------+-------------------------------------------------+
//! ```
//!
//! A duplicate that hits a damaged chunk is not only counted: its frame is made again and stored at
//! a new place under the **same PBN** (`Plan::Heal`, recorded as `Move`), so every volume that
//! shares the chunk reads right again. Only the first one heals; those behind it are ordinary
//! duplicates, since groups are applied in order.
//!
//! Invariant: what is listed is placed by the tables in the container that is named here. It holds
//! because a PBN changes its place by `Move` and loses it by `Forget` only, and every record passes
//! through [`Damage::settle`].
//!
//! Bytes that were wrong before their checksum was made lie *beneath* it: only a scrub with
//! fingerprints sees them. What it lists leaves by a fingerprint that is right, by new bytes or by
//! `Forget`, and not because a checksum fits or the same bytes were moved.
//!
//! The list is in memory: a format that kept it would have to be right about damage after every
//! crash, while reading those containers again says what is true now. The caller of a scrub
//! remembers which they are (`cli`: the file `scrub.json`) and asks for them at the next opening.

use std::collections::BTreeMap;

use format::frame;
use format::record::Change;
use format::units::{ContainerId, FrameCheck, Pbn};

use crate::scrub::{DAMAGED_LISTED_MAX, DamagedChunk};

/// Chunks remembered at most: memory is bounded. More are reported, and found again by a scrub.
const CHUNKS_MAX: usize = 1 << 20;

/// What shows that a chunk is damaged.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// Its frame is not the one that is meant, or not whole.
    Checksum,
    /// Its frame is, and holds other bytes than the chunk had.
    Fingerprint,
}

impl Evidence {
    /// Of a chunk that is damaged, by whether `bytes` are the frame that is meant.
    pub(crate) fn of(bytes: &[u8], pbn: Pbn, check: FrameCheck) -> Self {
        if frame::is_meant(bytes, pbn, check) { Self::Fingerprint } else { Self::Checksum }
    }
}

struct Damaged {
    container: ContainerId,
    /// A group on its way brings its bytes.
    healing: bool,
    /// Fingerprints see more: what they have shown counts, whatever else is seen.
    evidence: Evidence,
}

impl Damaged {
    /// Whether its frame may be whole, and its bytes wrong all the same.
    fn lies_beneath_checksum(&self) -> bool {
        self.evidence == Evidence::Fingerprint
    }
}

/// The chunks that are known to be damaged.
#[derive(Default)]
pub(crate) struct Damage {
    chunks: BTreeMap<Pbn, Damaged>,
    /// How many of them lie in each container.
    containers: BTreeMap<ContainerId, u32>,
}

impl Damage {
    /// The frame of `pbn`, which the tables place in `container`, is damaged.
    pub(crate) fn note(&mut self, pbn: Pbn, container: ContainerId, evidence: Evidence) {
        if let Some(damaged) = self.chunks.get_mut(&pbn) {
            if evidence == Evidence::Fingerprint {
                damaged.evidence = evidence;
            }
        } else if self.chunks.len() < CHUNKS_MAX {
            self.chunks.insert(pbn, Damaged { container, healing: false, evidence });
            *self.containers.entry(container).or_default() += 1;
        }
    }

    /// Whether a write is to bring the bytes of `pbn` again: true once.
    pub(crate) fn begin_heal(&mut self, pbn: Pbn) -> bool {
        match self.chunks.get_mut(&pbn) {
            Some(damaged) if !damaged.healing => {
                damaged.healing = true;
                true
            }
            _ => false,
        }
    }

    /// A change has been applied; the container in which nothing is damaged any more because of it.
    pub(crate) fn settle(&mut self, change: &Change) -> Option<ContainerId> {
        if self.chunks.is_empty() {
            return None;
        }
        let container = match change {
            Change::Move { pbn, to, .. } => {
                let damaged = self.chunks.get(pbn)?;
                let stays_wrong = damaged.lies_beneath_checksum() && !damaged.healing;
                let container = self.remove(*pbn)?;
                if stays_wrong {
                    self.note(*pbn, to.container, Evidence::Fingerprint);
                }
                container
            }
            Change::Forget { pbn, .. } => self.remove(*pbn)?,
            _ => return None,
        };
        (!self.is_in(container)).then_some(container)
    }

    fn remove(&mut self, pbn: Pbn) -> Option<ContainerId> {
        let Damaged { container, .. } = self.chunks.remove(&pbn)?;
        if let Some(count) = self.containers.get_mut(&container) {
            *count -= 1;
            if *count == 0 {
                self.containers.remove(&container);
            }
        }
        Some(container)
    }

    /// The chunk `pbn` turned out to be sound, by evidence of this kind.
    pub(crate) fn clear(&mut self, pbn: Pbn, evidence: Evidence) {
        let refutes = |damaged: &Damaged| match evidence {
            Evidence::Checksum => !damaged.lies_beneath_checksum(),
            Evidence::Fingerprint => true,
        };
        if self.chunks.get(&pbn).is_some_and(|damaged| !damaged.healing && refutes(damaged)) {
            self.remove(pbn);
        }
    }

    /// Whether the chunk is damaged beneath a checksum that may well fit.
    pub(crate) fn lies_beneath_checksum(&self, pbn: Pbn) -> bool {
        self.chunks.get(&pbn).is_some_and(Damaged::lies_beneath_checksum)
    }

    /// Whether a chunk in this container is damaged.
    pub(crate) fn is_in(&self, container: ContainerId) -> bool {
        self.containers.contains_key(&container)
    }

    /// The same, and whether one may be that the list had no room for.
    pub(crate) fn may_be_in(&self, container: ContainerId) -> bool {
        self.is_in(container) || self.chunks.len() >= CHUNKS_MAX
    }

    pub(crate) fn contains(&self, pbn: Pbn) -> bool {
        self.chunks.contains_key(&pbn)
    }

    pub(crate) fn len(&self) -> usize {
        self.chunks.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The first of them.
    pub(crate) fn list(&self) -> Vec<DamagedChunk> {
        let all = self.chunks.iter().take(DAMAGED_LISTED_MAX);
        let chunk = |(pbn, damaged): (&Pbn, &Damaged)| DamagedChunk {
            pbn: pbn.0,
            container: damaged.container.0,
            checksum_fits: damaged.lies_beneath_checksum(),
        };
        all.map(chunk).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Damage, Evidence};
    use format::record::Change;
    use format::units::{ContainerId, Fingerprint, Pba, Pbn};

    #[test]
    fn a_chunk_heals_once_and_its_container_is_sound_with_its_last_chunk() {
        let mut damage = Damage::default();
        let container = ContainerId(4);
        damage.note(Pbn(7), container, Evidence::Checksum);
        damage.note(Pbn(8), container, Evidence::Checksum);
        assert!(damage.begin_heal(Pbn(7)));
        assert!(!damage.begin_heal(Pbn(7)) && !damage.begin_heal(Pbn(9)));
        damage.clear(Pbn(7), Evidence::Fingerprint);
        assert!(damage.contains(Pbn(7)), "what heals it is on its way");
        let moved = Change::Move { pbn: Pbn(7), to: Pba::default(), fingerprint: None };
        assert_eq!((damage.settle(&moved), damage.len()), (None, 1));
        let forgotten = Change::Forget { pbn: Pbn(8), fingerprint: Fingerprint::default() };
        assert_eq!(damage.settle(&forgotten), Some(container));
        assert!(damage.is_empty() && damage.settle(&moved).is_none());
    }
    #[test]
    fn what_lies_beneath_a_checksum_leaves_by_a_fingerprint_or_new_bytes() {
        let mut damage = Damage::default();
        let (from, to) = (ContainerId(4), ContainerId(9));
        let moved = |pbn| {
            let to = Pba { container: to, ..Pba::default() };
            Change::Move { pbn, to, fingerprint: None }
        };
        for pbn in [7, 8, 9].map(Pbn) {
            damage.note(pbn, from, Evidence::Fingerprint);
            damage.note(pbn, from, Evidence::Checksum);
            damage.clear(pbn, Evidence::Checksum);
        }
        assert_eq!(damage.settle(&moved(Pbn(7))), None);
        assert!(damage.contains(Pbn(7)) && damage.is_in(to), "the same bytes are elsewhere");
        assert!(damage.begin_heal(Pbn(7)) && damage.begin_heal(Pbn(8)));
        assert_eq!(damage.settle(&moved(Pbn(7))), Some(to));
        assert_eq!((damage.settle(&moved(Pbn(8))), damage.len()), (None, 1));
        damage.clear(Pbn(9), Evidence::Fingerprint);
        assert!(damage.is_empty() && !damage.is_in(from));
    }
}
