//! Which sealed containers are compacted, and what that gives back: one answer for the
//! choice of a victim and for the figure of how full a store is.
//!
//! A container in which something lives is compacted if enough of it is dead, and if all that lives
//! in it, with a padding behind each slice, surely fits into one empty container: so collection
//! gives back no less than it takes. What is dead in any other container stays where it is until
//! more of it dies. One in which nothing lives is freed in any case.

use format::directory::DIRECTORY_ENTRY_BYTES;
use format::frame::FRAME_BYTES_MAX;
use format::units::{BLOCK_BYTES, CONTAINER_BYTES};

/// The figures of a sealed container.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SealedUse {
    /// Bytes of frames whose chunks are referenced.
    pub live_bytes: u32,
    /// Bytes of all frames and padding.
    pub used_bytes: u32,
    /// Which life of the container this is; older ones are smaller.
    pub sequence: u32,
    /// A frame in it cannot be read, so it is never collected.
    pub damaged: bool,
}

/// A container is compacted only if at least one byte in so many is dead.
const COMPACTED_ONE_IN: u32 = 16;

/// Entries that are moved at once, and bytes of their frames: a slice of a container.
pub const SLICE_ENTRIES: usize = 128;
/// See [`SLICE_ENTRIES`].
pub const SLICE_BYTES: u64 = 1 << 20;
/// A slice with fewer entries has more bytes than this, unless it is a container's last.
const LONG_SLICE_BYTES: u64 = SLICE_BYTES - FRAME_BYTES_MAX as u64;

/// Room that a container with frames of `used_bytes` takes at most when `live_bytes` of them are
/// moved: no more entries than its directory has room for, and a padding behind each slice.
#[must_use]
pub fn room_to_move_bytes(live_bytes: u32, used_bytes: u32) -> u64 {
    let entries_bytes = u64::from(CONTAINER_BYTES.saturating_sub(used_bytes));
    let full_slices = entries_bytes / (SLICE_ENTRIES * DIRECTORY_ENTRY_BYTES) as u64;
    let long_slices = u64::from(used_bytes) / LONG_SLICE_BYTES;
    let paddings_bytes = (full_slices + long_slices + 1) * (BLOCK_BYTES as u64 - 1);
    u64::from(live_bytes) + entries_bytes + paddings_bytes
}

/// Whether a sealed container is compacted, or freed as it is, once room is wanted; `usable_bytes`
/// is what an empty one surely takes.
pub(crate) fn is_worth_it(sealed: &SealedUse, usable_bytes: u64) -> bool {
    let SealedUse { live_bytes, used_bytes, .. } = *sealed;
    let lost_bytes = used_bytes.saturating_sub(live_bytes);
    let fits = || room_to_move_bytes(live_bytes, used_bytes) <= usable_bytes;
    live_bytes == 0 || (lost_bytes >= used_bytes / COMPACTED_ONE_IN && fits())
}

/// The containers that are worth it, added up.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorthIt {
    containers: u64,
    live_bytes: u64,
    used_bytes: u64,
}

impl WorthIt {
    pub(crate) fn add(&mut self, sealed: &SealedUse) {
        self.containers += 1;
        self.live_bytes += u64::from(sealed.live_bytes);
        self.used_bytes += u64::from(sealed.used_bytes);
    }

    pub(crate) fn take_off(&mut self, sealed: &SealedUse) {
        self.containers -= 1;
        self.live_bytes -= u64::from(sealed.live_bytes);
        self.used_bytes -= u64::from(sealed.used_bytes);
    }

    /// The dead part of these containers, with its part of their directories and rests.
    pub(crate) fn gives_back_bytes(&self) -> u64 {
        let all_bytes = self.containers * u64::from(CONTAINER_BYTES);
        let live = u128::from(all_bytes) * u128::from(self.live_bytes);
        all_bytes.saturating_sub(live.div_ceil(u128::from(self.used_bytes.max(1))) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usable_bytes_per_container;

    #[test]
    fn what_a_sixteenth_is_dead_of_finds_room_in_one_container() {
        let frames = [(4112, 4096), (1100, 4096), (600, 4096), (65_552, 65_536), (16_400, 16_384)];
        for (frame_bytes, chunk_bytes) in frames {
            let entries = CONTAINER_BYTES / (frame_bytes + DIRECTORY_ENTRY_BYTES as u32);
            let used_bytes = entries * frame_bytes;
            let room_bytes = room_to_move_bytes(used_bytes / 16 * 15, used_bytes);
            assert!(room_bytes <= usable_bytes_per_container(chunk_bytes), "{frame_bytes}");
        }
    }

    #[test]
    fn what_is_worth_it_gives_back_its_dead_part_and_nothing_else_anything() {
        let sealed = |live_bytes, used_bytes| SealedUse {
            live_bytes,
            used_bytes,
            sequence: 1,
            damaged: false,
        };
        let usable_bytes = usable_bytes_per_container(4096);
        let is_worth = |live, used| is_worth_it(&sealed(live, used), usable_bytes);
        assert!(is_worth(3_750_000, 4_000_000) && !is_worth(3_750_001, 4_000_000));
        // Short frames: a sixteenth is dead, and yet what lives may need more than a container.
        assert!(is_worth(2_500_000, 3_500_000) && !is_worth(3_200_000, 3_500_000));
        assert!(is_worth(0, 1000) && !is_worth(1, 1000));

        let mut all = WorthIt::default();
        assert_eq!(all.gives_back_bytes(), 0);
        all.add(&sealed(0, 4_000_000));
        assert_eq!(all.gives_back_bytes(), u64::from(CONTAINER_BYTES));
        all.add(&sealed(2_000_000, 4_000_000));
        assert_eq!(all.gives_back_bytes(), u64::from(CONTAINER_BYTES) / 2 * 3);
        all.take_off(&sealed(0, 4_000_000));
        assert_eq!(all.gives_back_bytes(), u64::from(CONTAINER_BYTES) / 2);
    }
}
