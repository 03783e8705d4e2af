//! New chunks that are on their way to the Hash-PBN table, found by their fingerprints.
//!
//! A chunk is pending from the moment that its group is planned until that group is applied: it is
//! in the table from then on, so it is always in exactly one of both. All that is known of it
//! stands in its slot; here is only where that is, so that the look-ups of a group, nearly all in
//! vain, touch little memory.

use format::units::Fingerprint;
use tables::PlaceIndex;

use crate::write::buffer::WriteBuffer;
use crate::write::slot::SlotPlace;

/// Where pending chunks are, by the hash of their fingerprints in the Hash-PBN table.
#[derive(Default)]
pub(crate) struct PendingChunks {
    places: PlaceIndex,
}

impl PendingChunks {
    /// A chunk is pending from now on; none of its fingerprint was.
    pub(crate) fn insert(&mut self, hash: u64, place: SlotPlace) {
        self.places.insert(hash, place.low());
    }

    /// A chunk is not pending any more.
    pub(crate) fn remove(&mut self, hash: u64, place: SlotPlace) {
        self.places.remove(hash, place.low());
    }

    /// Prefetches what look-ups of these begin with.
    pub(crate) fn touch_all(&self, hashes: &[u64]) {
        self.places.touch_all(hashes.iter().copied());
    }

    /// Where the pending chunk of a fingerprint is, whose slot is in `buffer`.
    pub(crate) fn find(
        &self,
        hash: u64,
        fingerprint: &Fingerprint,
        buffer: &WriteBuffer,
    ) -> Option<SlotPlace> {
        let first = buffer.applied_group() + 1;
        self.places.places(hash).find_map(|low| {
            let place = SlotPlace::from_low(low, first);
            let slot = buffer.slot(place.group(), place.slot())?;
            (slot.fingerprint.as_ref() == Some(fingerprint)).then_some(place)
        })
    }
}
