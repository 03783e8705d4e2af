//! What was written into each volume since the store was opened, counted where groups are applied:
//! so an operation that has a volume of its own can report what it took, whatever others write or
//! delete meanwhile.

use std::collections::HashMap;

use format::units::VolumeId;

use crate::write::buffer::Group;
use crate::write::slot::Plan;

/// What became of the chunks that were written into one volume since the store was opened, and are
/// in the tables. Zeros, and copies between volumes, are not counted.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeWritten {
    /// Of chunks that were new, before compression.
    pub unique_bytes: u64,
    /// Of chunks that were stored already.
    pub duplicate_bytes: u64,
    /// Frames of the new chunks, and of those that replaced a damaged one.
    pub stored_bytes: u64,
}

impl VolumeWritten {
    /// What came after `before`, an earlier look at the same volume.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            unique_bytes: self.unique_bytes.saturating_sub(before.unique_bytes),
            duplicate_bytes: self.duplicate_bytes.saturating_sub(before.duplicate_bytes),
            stored_bytes: self.stored_bytes.saturating_sub(before.stored_bytes),
        }
    }

    /// Part of what was written, zeros left out, that takes no room, in percent; none before
    /// anything was written.
    ///
    /// ```
    /// # use engine::VolumeWritten;
    /// let written = VolumeWritten {
    ///     unique_bytes: 4096,
    ///     duplicate_bytes: 12288,
    ///     stored_bytes: 2048,
    /// };
    /// assert_eq!(written.saved_percent(), Some(87));
    /// assert_eq!(VolumeWritten::default().saved_percent(), None);
    /// ```
    #[must_use]
    pub fn saved_percent(&self) -> Option<u64> {
        let data_bytes = self.unique_bytes + self.duplicate_bytes;
        let saved_bytes = data_bytes.saturating_sub(self.stored_bytes);
        (saved_bytes * 100).checked_div(data_bytes)
    }

    /// `87% saved`, for people; none before anything was written.
    #[must_use]
    pub fn saved_note(&self) -> Option<String> {
        self.saved_percent().map(|percent| format!("{percent}% saved"))
    }

    fn count(&mut self, plan: Plan, frame_bytes: u64, chunk_bytes: u64) {
        match plan {
            Plan::Undecided | Plan::Void | Plan::Unmap => {}
            Plan::Duplicate(_) => self.duplicate_bytes += chunk_bytes,
            Plan::Heal { .. } => {
                self.duplicate_bytes += chunk_bytes;
                self.stored_bytes += frame_bytes;
            }
            Plan::New { .. } | Plan::Aside { .. } => {
                self.unique_bytes += chunk_bytes;
                self.stored_bytes += frame_bytes;
            }
        }
    }
}

/// The same of each volume that something was written into.
#[derive(Debug, Default)]
pub(crate) struct VolumesWritten {
    by_volume: HashMap<VolumeId, VolumeWritten>,
}

impl VolumesWritten {
    /// A group has been applied.
    pub(crate) fn count(&mut self, group: &Group, chunk_bytes: u64) {
        for slots in group.slots().chunk_by(|one, next| one.volume == next.volume) {
            let Some(volume) = slots.first().map(|slot| slot.volume) else { continue };
            let written = self.by_volume.entry(volume).or_default();
            for slot in slots {
                let frame = slot.plan.stores().and_then(|(_, frame)| group.frame(frame));
                let frame_bytes = frame.map_or(0, |(length_bytes, _)| u64::from(length_bytes));
                written.count(slot.plan, frame_bytes, chunk_bytes);
            }
        }
    }

    pub(crate) fn of(&self, volume: VolumeId) -> VolumeWritten {
        self.by_volume.get(&volume).copied().unwrap_or_default()
    }

    /// Nobody can ask about this volume any more.
    pub(crate) fn forget(&mut self, volume: VolumeId) {
        self.by_volume.remove(&volume);
    }
}
