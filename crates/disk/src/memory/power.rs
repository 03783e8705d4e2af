//! What is left after a power loss, and after the mere death of the owner.

use format::units::Zone;

use super::device::{Device, Medium};
use super::image::Image;
use crate::buffer::SharedBuf;
use crate::io::IoKind;
use crate::splitmix::SplitMix;

/// The unit in which devices write whole: less is never torn.
const SECTOR_BYTES: usize = 512;

/// What becomes of the writes that are not durable when the power goes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Each is lost, kept or torn, as the seed says.
    Mixed,
    /// Most are kept; one in eight is lost or torn.
    Few,
    /// All are lost: the whole volatile cache was.
    All,
    /// None is, those in flight included.
    None,
}

impl Device {
    /// Durable bytes, and of every other write, landed or in flight, what the seed lets survive.
    pub(super) fn after_power_loss(&self, seed: u64, loss: Loss) -> Self {
        let mut prng = SplitMix::new(seed);
        let surviving = |medium: &Medium| medium.surviving(loss, &mut prng);
        let mut media: Vec<_> = self.media.iter().map(surviving).collect();
        // What is in flight may reach the medium in any order, and after all that landed.
        let mut writes = self.writes_in_flight();
        while !writes.is_empty() {
            let (zone, offset_bytes, bytes) = writes.swap_remove(prng.below(writes.len()));
            if let Some(medium) = media.iter_mut().find(|medium| medium.zone == zone) {
                survive(&mut medium.durable, offset_bytes, &bytes, loss, &mut prng);
            }
        }
        for medium in &mut media {
            medium.current = medium.durable.clone();
        }
        self.successor(media, prng)
    }

    /// Everything that had landed is there, and of what was in flight each write is there, in part
    /// there or not at all; nothing is made durable by it.
    pub(super) fn after_kill(&self, seed: u64) -> Self {
        self.after_landing(seed, |medium, offset_bytes, bytes, prng| match prng.below(3) {
            0 => {}
            1 => medium.land_write(offset_bytes, bytes, false),
            _ => medium.land_torn(offset_bytes, &bytes, prng),
        })
    }

    /// Everything landed, nothing made durable by it.
    pub(super) fn after_owner_died(&self, seed: u64) -> Self {
        self.after_landing(seed, |medium, offset_bytes, bytes, _| {
            medium.land_write(offset_bytes, bytes, false);
        })
    }

    /// What is there once `land` has had each write in flight, in an order of the seed's.
    fn after_landing(
        &self,
        seed: u64,
        land: impl Fn(&mut Medium, u64, SharedBuf, &mut SplitMix),
    ) -> Self {
        let mut prng = SplitMix::new(seed);
        let mut media = self.media.clone();
        let mut writes = self.writes_in_flight();
        while !writes.is_empty() {
            let (zone, offset_bytes, bytes) = writes.swap_remove(prng.below(writes.len()));
            if let Some(medium) = media.iter_mut().find(|medium| medium.zone == zone) {
                land(medium, offset_bytes, bytes, &mut prng);
            }
        }
        self.successor(media, prng)
    }

    /// Writes in flight that the medium would not have refused.
    fn writes_in_flight(&self) -> Vec<(Zone, u64, SharedBuf)> {
        let possible = self.in_flight.iter().filter(|pending| {
            let medium = self.medium(pending.io.zone);
            pending.io.check(medium.map_or(0, |medium| medium.size_bytes)).is_ok()
        });
        let writes = possible.filter_map(|pending| match &pending.io.kind {
            IoKind::Write { buf, .. } => {
                Some((pending.io.zone, pending.io.offset_bytes, buf.clone()))
            }
            IoKind::Read { .. } | IoKind::Sync => None,
        });
        writes.collect()
    }

    fn successor(&self, media: Vec<Medium>, prng: SplitMix) -> Self {
        let mut successor = Self::with_media(media, prng);
        successor.faults.clone_from(&self.faults);
        successor
    }
}

impl Medium {
    /// The medium with what became of its unsynced writes: all that is left is durable.
    fn surviving(&self, loss: Loss, prng: &mut SplitMix) -> Self {
        let mut durable = self.durable.clone();
        for write in &self.unsynced {
            let loss = if write.durable { Loss::None } else { loss };
            survive(&mut durable, write.offset_bytes, &write.bytes, loss, prng);
        }
        let (zone, size_bytes) = (self.zone, self.size_bytes);
        let current = Image::default();
        Self { zone, size_bytes, current, durable, unsynced: [].into(), landed: self.landed }
    }

    /// Lands a write that failed: some of its sectors.
    pub(super) fn land_torn(&mut self, offset_bytes: u64, bytes: &SharedBuf, prng: &mut SplitMix) {
        let kept = Tear::of(bytes.len(), prng);
        for (number, start) in (0..bytes.len()).step_by(SECTOR_BYTES).enumerate() {
            if kept.keeps(number, prng) {
                let sector = bytes.slice(start..start + SECTOR_BYTES);
                self.land_write(offset_bytes + start as u64, sector, false);
            }
        }
    }
}

/// Which sectors of a torn write are kept.
enum Tear {
    /// So many from the first on: a device that writes in order was cut off.
    Beginning(usize),
    /// Each or not: one that writes in any order.
    Anywhere,
}

impl Tear {
    fn of(length_bytes: usize, prng: &mut SplitMix) -> Self {
        if prng.coin() {
            return Self::Anywhere;
        }
        Self::Beginning(prng.below(length_bytes.div_ceil(SECTOR_BYTES)))
    }

    fn keeps(&self, sector: usize, prng: &mut SplitMix) -> bool {
        match self {
            Self::Beginning(sectors) => sector < *sectors,
            Self::Anywhere => prng.coin(),
        }
    }
}

/// Loses, keeps or tears a write.
fn survive(image: &mut Image, offset_bytes: u64, bytes: &[u8], loss: Loss, prng: &mut SplitMix) {
    let fate = match loss {
        Loss::Mixed => prng.below(3),
        Loss::Few => [0, 2].get(prng.below(16)).copied().unwrap_or(1),
        Loss::All => 0,
        Loss::None => 1,
    };
    match fate {
        0 => {}
        1 => image.write(offset_bytes, bytes),
        _ => {
            let kept = Tear::of(bytes.len(), prng);
            for (sector, bytes) in bytes.chunks(SECTOR_BYTES).enumerate() {
                if kept.keeps(sector, prng) {
                    image.write(offset_bytes + (sector * SECTOR_BYTES) as u64, bytes);
                }
            }
        }
    }
}
