//! How much room there is, and how much of it clients may be promised.

use format::root::Stream;
use format::units::CONTAINER_BYTES;

use crate::core::Core;
use crate::door::error::RequestError;
use crate::door::volume::VolumeShared;
use crate::notice::Notice;
use crate::space::promises::Left;
use crate::space::space_budget::SpaceLimit;
use crate::space::write_room::PAGES_PER_CHUNK_MAX;
use crate::volumes::take_versions::makes_a_version;
use crate::write::buffer::Work;

impl Core {
    /// Used parts of the data zones and of zone tables, 0 to 1.
    pub(crate) fn used_ratios(&self) -> [f64; 2] {
        let store = &self.state.store;
        let all = store.used_blocks() + store.free_blocks() + store.quarantined_blocks();
        let (_, kept_for_release) = self.kept_for_release();
        let usable = all.saturating_sub(self.table_blocks_kept() + kept_for_release);
        let coming = self.state.hash.pages_to_come_back(self.state.totals.dead_chunks);
        let used = store.used_blocks().saturating_sub(coming);
        [self.data_ratio_without(self.placement.space.collectable_bytes()), part(used, usable)]
    }

    /// The part of the room for data that no client can be given now, 0 to 1.
    pub(crate) fn data_taken_ratio(&self) -> f64 {
        self.data_ratio_without(0)
    }

    /// What is not free of the room for data, less this.
    fn data_ratio_without(&self, coming_bytes: u64) -> f64 {
        let (kept_for_release, _) = self.kept_for_release();
        let kept_bytes = self.placement.kept_bytes() + kept_for_release;
        let room_bytes = self.geometry.capacity_bytes().saturating_sub(kept_bytes);
        let spare_bytes = self.unoccupied_bytes().saturating_sub(kept_bytes) + coming_bytes;
        part(room_bytes.saturating_sub(spare_bytes), room_bytes)
    }

    /// What is kept for releases and held by nobody: bytes of containers, and blocks of the tables.
    pub(crate) fn kept_for_release(&self) -> (u64, u64) {
        let (bytes, chunks) = self.intake.lock().space.left_alone();
        (bytes, chunks * PAGES_PER_CHUNK_MAX)
    }

    /// Containers that are free or will be, and what is left of the open ones.
    pub(crate) fn unoccupied_bytes(&self) -> u64 {
        self.room_of_containers(self.placement.space.coming_containers())
    }

    /// Room of `containers` empty containers, and what is left of the open ones.
    pub(crate) fn room_of_containers(&self, containers: u64) -> u64 {
        let open_bytes = |stream| self.placement.open_room_bytes(stream);
        containers * u64::from(CONTAINER_BYTES) + Stream::ALL.map(open_bytes).iter().sum::<u64>()
    }

    /// Table blocks of which clients are promised nothing: writes fail before these are taken.
    pub(crate) fn table_blocks_kept(&self) -> u64 {
        // What is young is going to take blocks when it is merged.
        self.table_room.reserve_blocks() + self.state.hash.pages_owed()
    }

    /// Table blocks that clients may still be promised.
    pub(crate) fn blocks_to_promise(&self) -> u64 {
        let taken = self.table_blocks_kept() + self.versions_coming();
        self.table_room.room_blocks(&self.state).saturating_sub(taken)
    }

    /// Tells doors how much may still be promised, if that has changed.
    pub(crate) fn publish_space(&mut self) {
        let bytes = self.placement.room_to_promise_bytes();
        let chunks = self.blocks_to_promise() / PAGES_PER_CHUNK_MAX;
        let limit = SpaceLimit { bytes, chunks, is_waited_for: !self.waiting.is_empty() };
        if self.published != limit {
            self.published = limit;
            self.intake.lock().space.limit = limit;
        }
        // Behind the limit: what a volume maps now is no longer in it.
        self.count_promises();
    }

    /// Has a chunk stored that no client has sent, its worst case reserved as a client's is; None,
    /// and nothing is stored, where all room is promised.
    pub(crate) fn store_reserved<T>(&mut self, store: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if !self.intake.lock().space.try_reserve(None, 1) {
            return None;
        }
        let stored = store(self);
        // First less is promised, then the reservation ends.
        self.publish_space();
        self.intake.lock().space.settle(1);
        Some(stored)
    }

    /// Versions on their way into the catalog: a page of it for each, at worst.
    pub(crate) fn versions_coming(&self) -> u64 {
        let changes = self.buffer.groups.iter().filter_map(|group| match &group.work {
            Work::Admin { changes, .. } => Some(changes),
            _ => None,
        });
        changes.flatten().filter(|change| makes_a_version(change)).count() as u64
    }

    /// Whether the catalog has room for `made` new versions, beside what clients are promised. Its
    /// pages stay, and would take for good the blocks that checkpoints need.
    pub(crate) fn has_room_for_versions(&self, made: u64) -> bool {
        let promised_chunks = self.intake.lock().space.spoken_for_chunks();
        made == 0 || self.blocks_to_promise() >= promised_chunks * PAGES_PER_CHUNK_MAX + made
    }

    /// What one is told that no room comes for.
    pub(crate) fn refuse_for_room(&mut self) -> RequestError {
        if self.is_closing {
            return RequestError::Closing;
        }
        if !std::mem::replace(&mut self.watermarks.refused, true) {
            self.tell(&Notice::WritesRefused);
        }
        RequestError::NoSpace
    }

    /// Counts anew what volumes are promised, as they map more by now, or less.
    pub(crate) fn count_promises(&self) {
        if self.volumes.promised.is_empty() {
            return;
        }
        let mut intake = self.intake.lock();
        for volume in self.volumes.promised.values() {
            let left = self.left_to_map(volume, volume.reservation_bytes().unwrap_or(0));
            intake.space.promises.set(volume.id, left);
        }
    }

    /// What a volume does not map yet of its reservation.
    pub(crate) fn left_to_map(&self, volume: &VolumeShared, reservation_bytes: u64) -> Left {
        let chunk_bytes = self.geometry.chunk_bytes;
        let volume_chunks = volume.size_bytes().div_ceil(u64::from(chunk_bytes));
        let reserved = reservation_bytes.div_ceil(u64::from(chunk_bytes)).min(volume_chunks);
        let entry = self.state.catalog.get(volume.id);
        let mapped = entry.map_or(0, |entry| entry.mapped_chunks);
        Left::of_new_chunks(reserved.saturating_sub(mapped), volume_chunks, chunk_bytes)
    }
}

fn part(of: u64, all: u64) -> f64 {
    if all == 0 { 1.0 } else { (of as f64 / all as f64).min(1.0) }
}
