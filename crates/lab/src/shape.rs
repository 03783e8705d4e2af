//! What follows from the shape of a store.

use engine::{EmulatedSettings, VolumeKind};

use crate::dice::mixed;
use crate::script::Shape;

impl Shape {
    /// Whether doors are asked before the core: in half of the seeds of each shape. In the others
    /// every read is walked through the tables.
    pub(crate) fn asks_doors(&self) -> bool {
        // Of such a number that what was found before this was asked of it is met as it was.
        !mixed(self.seed, 48).is_multiple_of(2)
    }

    /// Whether the run uses what came after format 3. In all other seeds a run is to the byte what
    /// it was before there was any of it, so that digests can be compared over releases.
    pub(crate) fn uses_new_things(&self) -> bool {
        self.seed % 8 == 5
    }

    /// Whether volumes have codecs of their own, and in tight stores room: in two of eight seeds,
    /// from 256 on, so that those before stay to the byte what they were.
    pub(crate) fn has_codecs(&self) -> bool {
        self.seed >= 256 && matches!(self.seed % 8, 4 | 6)
    }

    /// The device that compresses ahead of the look-ups (decision 077): in a quarter of the seeds,
    /// from 256 on for the same reason.
    pub(crate) fn accelerator(&self) -> Option<EmulatedSettings> {
        let drawn = mixed(self.seed, 77);
        let mut settings = EmulatedSettings::default();
        settings.capacity.queue = 1 + (drawn >> 8) as usize % 3;
        settings.capacity.hash_units = 1 + (drawn >> 16) as usize % 2;
        settings.capacity.compress_units = 1;
        (self.seed >= 256 && drawn.is_multiple_of(4)).then_some(settings)
    }

    /// The kind that a volume is made of: every other one is a bucket.
    pub(crate) fn kind_of(&self, volume: u32) -> VolumeKind {
        let is_bucket = self.uses_new_things() && volume % 2 == 1;
        if is_bucket { VolumeKind::Bucket } else { VolumeKind::Block }
    }

    /// The domain that a volume is made in.
    pub(crate) fn domain_of(&self, volume: u32) -> Option<String> {
        let domain = volume % (self.domains + 1);
        (domain > 0).then(|| format!("d{domain}"))
    }
}
