//! How a device is built, in SSDSim's words: channels, chips, dies, planes, blocks, pages.
//!
//! Planes are numbered so that neighbours lie on different channels: channel first, then chip, then
//! die, then plane. So a walk round the planes goes round the channels.

use serde::Serialize;

/// Bytes of a page: one chunk.
pub const PAGE_BYTES: u64 = 4096;

/// How many there are of what.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Geometry {
    /// Of the device.
    pub channels: u32,
    /// Of a channel.
    pub chips: u32,
    /// Of a chip.
    pub dies: u32,
    /// Of a die.
    pub planes: u32,
    /// Of a plane.
    pub blocks: u32,
    /// Of a block.
    pub pages: u32,
}

impl Geometry {
    /// Table 5 of EaD.
    pub const EAD: Self =
        Self { channels: 18, chips: 2, dies: 2, planes: 2, blocks: 4096, pages: 64 };

    /// One die of one plane behind each channel, and room for so many pages at least: small enough
    /// that a short trace writes over it several times.
    #[must_use]
    pub fn small(pages_min: u64) -> Self {
        let one = Self { chips: 1, dies: 1, planes: 1, blocks: 1, ..Self::EAD };
        let blocks = pages_min.div_ceil(one.pages_all()).max(4);
        Self { blocks: u32::try_from(blocks).unwrap_or(u32::MAX), ..one }
    }

    /// Planes of the device.
    #[must_use]
    pub const fn planes_all(&self) -> u32 {
        self.dies_all() * self.planes
    }

    /// Dies of the device: so many things it does at once.
    #[must_use]
    pub const fn dies_all(&self) -> u32 {
        self.channels * self.chips * self.dies
    }

    /// Pages of the device.
    #[must_use]
    pub const fn pages_all(&self) -> u64 {
        self.planes_all() as u64 * self.blocks as u64 * self.pages as u64
    }

    /// Bytes of the device.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.pages_all() * PAGE_BYTES
    }

    /// The die that a plane lies on.
    pub(super) fn die_of(&self, plane: u32) -> u32 {
        plane % self.dies_all()
    }

    /// The channel that a die is behind.
    pub(super) fn channel_of(&self, die: u32) -> u32 {
        die % self.channels
    }
}

const _: () = assert!(Geometry::EAD.bytes() == 144 << 30);

#[cfg(test)]
mod tests {
    use super::Geometry;

    #[test]
    fn the_device_of_the_paper_has_144_gib() {
        assert_eq!(Geometry::EAD.bytes(), 144 << 30);
        assert_eq!((Geometry::EAD.dies_all(), Geometry::EAD.planes_all()), (72, 144));
    }

    #[test]
    fn every_die_has_its_planes_and_every_channel_its_dies() {
        let geometry = Geometry::EAD;
        let mut planes = vec![0; geometry.dies_all() as usize];
        (0..geometry.planes_all()).for_each(|plane| planes[geometry.die_of(plane) as usize] += 1);
        assert!(planes.iter().all(|&planes| planes == geometry.planes));
        let mut dies = vec![0; geometry.channels as usize];
        (0..geometry.dies_all()).for_each(|die| dies[geometry.channel_of(die) as usize] += 1);
        assert!(dies.iter().all(|&dies| dies == geometry.chips * geometry.dies));
    }

    #[test]
    fn a_small_device_has_the_room_that_was_asked_for() {
        for pages in [1, 5_000, 41_473, 1_000_000] {
            let room = Geometry::small(pages).pages_all();
            assert!(room >= pages && room <= pages.max(4 * 18 * 64) + 18 * 64);
        }
    }
}
