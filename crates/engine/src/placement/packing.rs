//! Segments of containers that workers pack.
//!
//! The core only lays large batches of frames side by side; copying them together, most of what
//! packing costs, is a job as hashing and compressing are. The write of such a segment is
//! *promised* when it is handed out ([`Devices::promise`]): what waits for all that was written
//! until then, a flush above all, waits for the packing too. Reads find the frames where they were
//! made.

use std::sync::Arc;

use containers::Unpacked;
use format::units::Zone;
use reduce::{Errand, Job, Workers};

use crate::devices::{Devices, Place, Purpose};
use crate::write::slot::GROUP_BYTES;

/// Frames of fewer bytes are copied at once: that takes less time than it takes to keep them.
const LAID_BYTES_MIN: usize = 8 << 10;

/// Memory that is held for frames is at most so many times as much as they are: what they are
/// compressed into has room for all of them uncompressed.
const HELD_PER_BYTE_MAX: usize = 3;

/// Memory that is held for a segment of frames that are half as long as their chunks.
const SEGMENT_HELD_BYTES: usize = 512 << 10;

/// Segments that may be packed at once; if workers have more to do the core packs for itself.
const UNDER_WAY_MAX: usize = 16;

/// Whether frames of `frames_bytes` are laid, for which `held_bytes` of memory are kept then.
pub(crate) fn lays(frames_bytes: usize, held_bytes: usize) -> bool {
    frames_bytes >= LAID_BYTES_MIN && held_bytes <= frames_bytes * HELD_PER_BYTE_MAX
}

/// A segment on its way to the device.
struct UnderWay {
    /// Of the write that was promised.
    tag: u64,
    place: Place,
    zone: Zone,
    offset_bytes: u64,
    segment: Arc<Unpacked>,
}

/// Those under way.
#[derive(Default)]
pub(crate) struct Packing {
    under_way: Vec<UnderWay>,
}

impl Packing {
    /// Whether another segment may be left to the workers.
    pub(crate) fn has_room(&self) -> bool {
        self.under_way.len() < UNDER_WAY_MAX
    }

    /// How many groups' share of the memory for frames is held for what is under way.
    pub(crate) fn groups_held(&self) -> usize {
        self.under_way.len() * SEGMENT_HELD_BYTES / GROUP_BYTES
    }

    /// Has a worker pack the segment at `place`, which is to be written to `zone` from
    /// `offset_bytes` on.
    pub(crate) fn begin(
        &mut self,
        place: Place,
        segment: Arc<Unpacked>,
        (zone, offset_bytes): (Zone, u64),
        devices: &mut Devices,
        workers: &Workers,
    ) {
        let tag = devices.promise(Purpose::Container(place.0));
        let packed = Arc::clone(&segment);
        self.under_way.push(UnderWay { tag, place, zone, offset_bytes, segment });
        let errand = Errand::new(move || drop(packed.packed()));
        workers.submit(Job::Pack { tag, errand });
    }

    /// A segment has been packed: it is written. Where it belongs, if it was under way.
    pub(crate) fn end(&mut self, tag: u64, devices: &mut Devices) -> Option<Place> {
        let at = self.under_way.iter().position(|one| one.tag == tag)?;
        let UnderWay { place, zone, offset_bytes, segment, .. } = self.under_way.swap_remove(at);
        devices.write_promised(tag, zone, offset_bytes, segment.packed());
        Some(place)
    }
}
