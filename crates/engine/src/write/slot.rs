//! A slot: one chunk of a group, and what becomes of it.
//!
//! Every stage passes over the slots of a group, and of all groups on their way there are more than
//! a processor's near caches hold: so a slot is small, and what only some stores need of it lies
//! beside the slots ([`crate::write::buffer::Group::compared`]).

use std::sync::Arc;

use format::units::{Fingerprint, Lba, Pbn, VolumeId};
use reduce::ChunkRef;

use crate::door::error::RequestError;
use crate::write::partial::{Base, ChunkPart, Partial};
use crate::write::written::Written;

/// Slots of a group, at most. What is done once for a group (its record, jobs that are handed in,
/// system calls) is dear, so groups are large; but several should be in a write buffer at once.
pub(crate) const GROUP_SLOTS: usize = 512;
/// Bytes of a group's chunks, at most.
pub(crate) const GROUP_BYTES: usize = 2 << 20;
const SLOT_BITS: u32 = GROUP_SLOTS.ilog2();
const _: () = assert!(GROUP_SLOTS == 1 << SLOT_BITS);

/// Slots of a group of chunks of this length, at most.
pub(crate) fn group_slots(chunk_bytes: usize) -> usize {
    (GROUP_BYTES / chunk_bytes).clamp(1, GROUP_SLOTS)
}

/// One chunk of a group.
pub(crate) struct Slot {
    pub(crate) volume: VolumeId,
    pub(crate) lba: Lba,
    pub(crate) data: SlotData,
    pub(crate) fingerprint: Option<Fingerprint>,
    /// Whether it is looked for; chosen when its group's turn comes (`seeking.rs`).
    pub(crate) sought: bool,
    /// Whether its writer asked that it be not.
    pub(crate) unindexed: bool,
    /// Whether pages had to be read to know it.
    pub(crate) far: bool,
    pub(crate) plan: Plan,
}

const _: () = assert!(size_of::<Slot>() <= 88);

impl Slot {
    /// A chunk that nothing is known of.
    pub(crate) fn new(volume: VolumeId, lba: Lba, data: SlotData) -> Self {
        let (fingerprint, plan) = (None, Plan::Undecided);
        let (sought, unindexed, far) = (true, false, false);
        Self { volume, lba, data, fingerprint, sought, unindexed, far, plan }
    }

    /// Its chunk's fingerprint; none, and true, where that turned out to be zeros.
    pub(crate) fn take_fingerprint(&mut self, fingerprint: Option<Fingerprint>) -> bool {
        self.fingerprint = fingerprint;
        if fingerprint.is_none() {
            (self.plan, self.data) = (Plan::Unmap, SlotData::Zeros);
        }
        fingerprint.is_none()
    }

    /// The fingerprint that is looked up.
    pub(crate) fn sought_fingerprint(&self) -> Option<Fingerprint> {
        self.fingerprint.filter(|_| self.sought)
    }
}

/// Where a slot is, in one word: the number of its group, and its own in that.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlotPlace(u64);

impl SlotPlace {
    pub(crate) fn new(group: u64, slot: usize) -> Self {
        Self(group << SLOT_BITS | slot as u64)
    }

    pub(crate) fn group(self) -> u64 {
        self.0 >> SLOT_BITS
    }

    pub(crate) fn slot(self) -> usize {
        (self.0 & (GROUP_SLOTS as u64 - 1)) as usize
    }

    /// What tells it apart from all others that are on their way.
    pub(crate) fn low(self) -> u32 {
        self.0 as u32
    }

    /// The place that is `low` and not before `first`, where all on their way are behind that.
    pub(crate) fn from_low(low: u32, first: u64) -> Self {
        let first = first << SLOT_BITS;
        Self(first + u64::from(low.wrapping_sub(first as u32)))
    }
}

/// The bytes of a slot.
pub(crate) enum SlotData {
    Zeros,
    Whole(ChunkRef),
    Partial(Box<Partial>),
}

/// What becomes of a slot.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    Undecided,
    /// Its write failed: nothing changes.
    Void,
    Unmap,
    Duplicate(Pbn),
    /// A duplicate of a chunk whose stored frame is damaged: frame `frame` among the group's
    /// replaces it, for all who share the chunk.
    Heal {
        pbn: Pbn,
        frame: u16,
    },
    /// Frame `frame` among the group's frames.
    New {
        pbn: Pbn,
        frame: u16,
    },
    /// The same of a chunk whose fingerprint is another one's, or whose volume has no
    /// deduplication, or whose writer asked for none: no look-up will find it.
    Aside {
        pbn: Pbn,
        frame: u16,
    },
}

/// What has been decided for the first slots of a group.
pub(crate) struct Planned {
    pub(crate) plans: Vec<Plan>,
    frames: u16,
}

impl Planned {
    /// Nothing yet, for a group of so many slots.
    pub(crate) fn nothing(slots: usize) -> Self {
        Self { plans: Vec::with_capacity(slots), frames: 0 }
    }

    /// One frame more is stored: which of the group's it is.
    pub(crate) fn next_frame(&mut self) -> u16 {
        self.frames += 1;
        self.frames - 1
    }
}

impl Plan {
    /// The chunk that it stores, and which of the group's frames that is.
    pub(crate) fn stores(self) -> Option<(Pbn, usize)> {
        match self {
            Self::New { pbn, frame } | Self::Aside { pbn, frame } | Self::Heal { pbn, frame } => {
                Some((pbn, usize::from(frame)))
            }
            Self::Undecided | Self::Void | Self::Unmap | Self::Duplicate(_) => None,
        }
    }
}

impl SlotData {
    /// Answers the requests that wait for a chunk which has become whole or was absorbed.
    pub(crate) fn answer(self) {
        if let Self::Partial(partial) = self {
            partial.acks.iter().for_each(|ack| ack.part_done());
        }
    }

    /// The requests that wait for this chunk fail.
    pub(crate) fn fail(&self, error: &RequestError) {
        if let Self::Partial(partial) = self {
            partial.acks.iter().for_each(|ack| ack.fail(error));
        }
    }

    /// Lays bytes over whatever the slot holds.
    pub(crate) fn lay_over(&mut self, chunk_bytes: usize, part: &ChunkPart<'_>) {
        let partial = self.make_partial(chunk_bytes);
        let ChunkPart { offset_bytes, length_bytes, source, credit, ack } = *part;
        let range = offset_bytes..offset_bytes + length_bytes;
        let target = &mut partial.overlay[range.clone()];
        match source {
            None => target.fill(0),
            Some((buf, at)) => target.copy_from_slice(&buf.bytes()[at..at + length_bytes]),
        }
        if let Some(credit) = credit {
            // One is enough: it pays for the copy, and what it pays for replaces the others.
            partial.credit.get_or_insert_with(|| Arc::clone(credit));
        }
        if let Some(ack) = ack {
            ack.hold();
            partial.acks.push(Arc::clone(ack));
        }
        partial.written.add(range);
        if partial.written.is_all(chunk_bytes) {
            partial.base = Base::Zeros;
        }
    }

    fn make_partial(&mut self, chunk_bytes: usize) -> &mut Partial {
        let whole = |overlay, written| {
            let (credit, acks) = (None, Vec::new());
            Box::new(Partial { base: Base::Zeros, overlay, written, credit, acks })
        };
        match self {
            Self::Partial(_) => {}
            Self::Zeros => *self = Self::Partial(whole(vec![0; chunk_bytes], Written::default())),
            Self::Whole(chunk) => {
                let all = Written::all(chunk_bytes);
                *self = Self::Partial(whole(chunk.bytes().to_vec(), all));
            }
        }
        match self {
            Self::Partial(partial) => partial,
            _ => unreachable!("made partial above"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{GROUP_BYTES, GROUP_SLOTS, SlotPlace, group_slots};

    #[test]
    fn groups_of_any_chunks_are_as_long() {
        for chunk_bytes in [4096, 8192, 16 << 10, 32 << 10, 64 << 10] {
            assert_eq!(group_slots(chunk_bytes) * chunk_bytes, GROUP_BYTES);
        }
    }

    /// Where the low half of the oldest group's first place is about to begin anew as well.
    #[test]
    fn a_place_is_found_again_by_its_low_half() {
        for first in [1, 77, (1 << 24) - 1, 1 << 24, (5 << 24) - 3] {
            for group in first..first + 6 {
                for slot in [0, 1, GROUP_SLOTS - 1] {
                    let place = SlotPlace::new(group, slot);
                    assert_eq!((place.group(), place.slot()), (group, slot));
                    assert_eq!(SlotPlace::from_low(place.low(), first), place);
                }
            }
        }
    }
}
