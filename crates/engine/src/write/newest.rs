//! What the write buffer knows of a chunk, or of a range of them.
//!
//! [`WriteBuffer::newest`] answers what a read must see: the newest buffered event of a chunk, if
//! any. It is exact whatever stage that event's group is in. Where that is a copy between volumes
//! the bytes are known once the copy has been applied: what needs them waits for it.

use std::ops::Range;

use format::units::{Lba, VolumeId};

use crate::write::buffer::{Group, Work, WriteBuffer};
use crate::write::partial::Base;
use crate::write::slot::{Plan, Slot, SlotData, SlotPlace};

/// The newest buffered event of a chunk.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Newest {
    /// Nothing is buffered: the map says.
    Nothing,
    /// It is unmapped.
    Unmapped,
    /// Group `group` is going to map what another version maps.
    Copied { group: u64 },
    /// It is slot `slot` of group `group`.
    Slot { group: u64, slot: usize },
}

impl Newest {
    /// Where the unwritten bytes of a chunk come from that is written in part after this.
    pub(crate) fn base(self) -> Base {
        match self {
            Self::Nothing => Base::Stored,
            Self::Unmapped => Base::Zeros,
            Self::Copied { group } => Base::Copied { group },
            Self::Slot { group, slot } => Base::Buffered { group, slot },
        }
    }
}

fn newest_at(place: SlotPlace) -> Newest {
    Newest::Slot { group: place.group(), slot: place.slot() }
}

impl Group {
    /// What a range that it changes as a whole makes of a chunk.
    fn ranged(&self, volume: VolumeId, lba: Lba) -> Option<Newest> {
        match &self.work {
            Work::Unmap { volume: of, first, end } => {
                let covers = of.id == volume && (*first..*end).contains(&lba.0);
                covers.then_some(Newest::Unmapped)
            }
            Work::Copy(range) if range.to.id == volume => {
                range.targets().contains(&lba.0).then_some(Newest::Copied { group: self.id })
            }
            _ => None,
        }
    }
}

impl WriteBuffer {
    /// Where the unwritten bytes of a chunk come from that is written in part now.
    pub(super) fn base_of(&self, volume: VolumeId, lba: Lba) -> Base {
        self.newest(volume, lba).base()
    }

    /// What is buffered of a chunk.
    pub(crate) fn newest(&self, volume: VolumeId, lba: Lba) -> Newest {
        let place = self.newest.get(&(volume, lba)).copied();
        let after = place.map_or(0, SlotPlace::group);
        let since = self.groups.iter().rev().take_while(|group| group.id > after);
        let ranged = since.filter_map(|group| group.ranged(volume, lba)).next();
        ranged.or_else(|| place.map(newest_at)).unwrap_or(Newest::Nothing)
    }

    /// The same without group `group` and those behind it. It looks at every slot before those.
    pub(crate) fn newest_before(&self, group: u64, volume: VolumeId, lba: Lba) -> Newest {
        let before = self.groups.iter().rev().skip_while(|before| before.id >= group);
        let newest_of = |group: &Group| {
            let is_it =
                |slot: &Slot| slot.volume == volume && slot.lba == lba && slot.plan != Plan::Void;
            let slot = group.slots().iter().rposition(is_it);
            let slot = slot.map(|slot| newest_at(SlotPlace::new(group.id, slot)));
            slot.or_else(|| group.ranged(volume, lba))
        };
        before.filter_map(newest_of).next().unwrap_or(Newest::Nothing)
    }

    /// Whether a group is a copy between volumes that has not been applied to its end.
    pub(crate) fn is_copying(&self, group: u64) -> bool {
        let group = self.group(group);
        group.is_some_and(|group| matches!(&group.work, Work::Copy(range) if range.chunks > 0))
    }

    /// Ranges of a volume that are still to be made copies of others.
    pub(crate) fn copies_to(&self, volume: VolumeId) -> impl Iterator<Item = Range<u64>> {
        self.groups.iter().filter_map(move |group| match &group.work {
            Work::Copy(range) if range.to.id == volume && range.chunks > 0 => Some(range.targets()),
            _ => None,
        })
    }

    /// Ranges of a volume that unapplied groups unmap.
    pub(crate) fn unmaps(&self, of: VolumeId) -> impl Iterator<Item = (u64, u64, u64)> {
        self.groups.iter().filter_map(move |group| match &group.work {
            Work::Unmap { volume, first, end } if volume.id == of => Some((group.id, *first, *end)),
            _ => None,
        })
    }

    /// Buffered chunks of a range of a volume, in order, with whether they hold data.
    pub(crate) fn slots_in(&self, of: VolumeId, first: u64, end: u64) -> Vec<(u64, bool)> {
        let mut lbas = self.lbas_with_slots(of, first..end);
        lbas.sort_unstable();
        lbas.into_iter().map(|lba| (lba, self.holds_data(of, Lba(lba)))).collect()
    }

    /// Notes the LBAs of a range of a volume of which anything is buffered.
    pub(crate) fn note_buffered(&self, of: VolumeId, lbas: Range<u64>, mut note: impl FnMut(u64)) {
        self.lbas_with_slots(of, lbas.clone()).into_iter().for_each(&mut note);
        for (_, first, end) in self.unmaps(of) {
            (first.max(lbas.start)..end.min(lbas.end)).for_each(&mut note);
        }
        for Range { start, end } in self.copies_to(of) {
            (start.max(lbas.start)..end.min(lbas.end)).for_each(&mut note);
        }
    }

    /// The LBAs of a range of a volume that have slots, in no order: the fewer of both, those of
    /// the range or those of the buffer, are gone through.
    fn lbas_with_slots(&self, of: VolumeId, lbas: Range<u64>) -> Vec<u64> {
        if (self.newest.len() as u64) < lbas.end.saturating_sub(lbas.start) {
            let inside = |key: &&(VolumeId, Lba)| key.0 == of && lbas.contains(&key.1.0);
            return self.newest.keys().filter(inside).map(|(_, lba)| lba.0).collect();
        }
        lbas.filter(|&lba| self.newest.contains_key(&(of, Lba(lba)))).collect()
    }

    fn holds_data(&self, volume: VolumeId, lba: Lba) -> bool {
        match self.newest(volume, lba) {
            Newest::Slot { group, slot } => self
                .group(group)
                .and_then(|group| group.slots().get(slot))
                .is_some_and(|slot| !matches!(slot.data, SlotData::Zeros)),
            _ => false,
        }
    }
}
