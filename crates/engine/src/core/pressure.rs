//! What is short, and who waits for it: containers, blocks of the tables, and room in which
//! collection and merges work. Parts are hurried by it, and checkpoints begin for it.

use format::units::{ContainerId, VolumeId};

use crate::collect::collection::Reserve;
use crate::core::Core;
use crate::placement::Placement;
use crate::space::space_budget::SpaceBudget;
use crate::space::write_room::PAGES_PER_CHUNK_MAX;
use containers::room_to_move_bytes;

impl Core {
    /// Free containers at which collection begins, and at which all else waits for it.
    pub(crate) fn reserve(&self) -> Reserve {
        Reserve::of(self.geometry.containers_present())
    }

    /// Whether no client has anything under way; `clients_read` says whether one reads.
    pub(crate) fn clients_are_idle(&self, clients_read: bool) -> bool {
        self.buffer.groups.is_empty() && !clients_read
    }

    /// Whether everything else has to wait for containers.
    pub(crate) fn must_collect(&self) -> bool {
        let short = self.placement.space.coming_containers() < self.reserve().hurry;
        short || self.is_closing || self.waits_for_containers()
    }

    /// Whether somebody waits for what is given back, or soon will.
    pub(crate) fn room_is_wanted(&self) -> bool {
        !self.waiting.is_empty() || !self.quota_line.is_empty() || self.must_collect()
    }

    /// The version that is being given back now. A store that is being closed goes on with it when
    /// it is opened again.
    pub(crate) fn deletion_going_on(&mut self) -> Option<VolumeId> {
        if self.is_closing { None } else { self.volumes.deletions.next(&self.state.catalog) }
    }

    /// Whether containers in quarantine are needed soon.
    pub(crate) fn free_containers_are_short(&self) -> bool {
        let free = self.placement.space.reachable_containers();
        free < self.reserve().hurry || self.waits_for_containers()
    }

    /// Whether a container is being collected, or one is worth it and can be: a close begins none.
    pub(crate) fn can_collect(&self) -> bool {
        let is_worth_it = || self.choose_victim(true, u32::MAX).is_some();
        self.placement.victim.is_some() || (!self.is_closing && is_worth_it())
    }

    /// A wholly dead container, else (when `compact`) the one that is most worth it, of those that
    /// were opened before `until_sequence`. What is still being written is left alone.
    pub(crate) fn choose_victim(&self, compact: bool, until_sequence: u32) -> Option<ContainerId> {
        let Placement { space, .. } = &self.placement;
        let is_written = |id: ContainerId| !self.placement.is_in_memory(id);
        let dead = space.dead(until_sequence).filter(|&id| is_written(id));
        if dead.is_some() || !compact {
            return dead;
        }
        let room_bytes = self.collection_room_bytes();
        let next_sequence = self.placement.next_sequence();
        space.victim(next_sequence, until_sequence, |id, sealed| {
            is_written(id)
                && !self.is_leaving(id)
                && room_to_move_bytes(sealed.live_bytes, sealed.used_bytes) <= room_bytes
        })
    }

    /// Whether the container is in a zone that leaves: to collect it gives back no room.
    fn is_leaving(&self, id: ContainerId) -> bool {
        let containers = |zone| self.geometry.containers_of(zone);
        self.placement.leaving_zone().is_some_and(|zone| containers(zone).contains(&id.0))
    }

    /// Room that collection finds beside what clients were promised.
    pub(crate) fn collection_room_bytes(&self) -> u64 {
        let promised_bytes = self.intake.lock().space.reserved_bytes();
        self.placement.room_beside_bytes(promised_bytes)
    }

    /// Whether somebody waits for blocks of the tables, which checkpoints bring back, or for what
    /// neither collection nor quarantine will bring.
    pub(crate) fn waits_for_blocks(&self) -> bool {
        let containers_come = || self.can_collect() || self.containers_come_back();
        self.first_waits_for(SpaceBudget::lacks_chunks)
            || (self.waits_for_containers() && !containers_come())
    }

    pub(crate) fn containers_come_back(&self) -> bool {
        self.placement.space.quarantined_containers() > 0
    }

    /// Whether somebody waits for room in containers, or for what nothing else has brought.
    fn waits_for_containers(&self) -> bool {
        let waits_long = !self.waiting.is_empty() && !self.table_room.relief_may_come();
        waits_long || self.first_waits_for(SpaceBudget::lacks_bytes)
    }

    /// Whether there is too little of something for the one that has waited longest.
    pub(crate) fn first_waits_for(
        &self,
        lacks: impl Fn(&SpaceBudget, Option<VolumeId>, u64) -> bool,
    ) -> bool {
        self.waiting.front().is_some_and(|first| {
            let is_alone = self.buffer.groups.is_empty();
            let chunks = if is_alone { first.least_chunks() } else { first.chunks() };
            lacks(&self.intake.lock().space, first.volume(), chunks)
        })
    }

    /// Whether a merge may still give back blocks that a write waits for.
    pub(crate) fn merge_may_give_blocks(&self) -> bool {
        self.state.hash.merge_gives_pages()
            && self.state.hash.work_is_due()
            && (self.merge_has_room() || self.table_room.merge_relief_may_come())
    }

    /// Whether a step of a merge is due and may be done.
    pub(crate) fn merge_may_go_on(&self) -> bool {
        self.merge_is_next() && self.merge_has_room()
    }

    fn merge_is_next(&self) -> bool {
        self.state.hash.work_is_due()
            && !self.table_room.last_is_asked
            && !self.table_room.tables_are_behind(&self.state)
    }

    fn merge_has_room(&self) -> bool {
        let promised_blocks = self.intake.lock().space.promised_chunks() * PAGES_PER_CHUNK_MAX;
        let needed_blocks = promised_blocks + self.state.hash.pages_per_step();
        self.table_room.room_blocks(&self.state) >= needed_blocks
    }

    /// Whether a merge waits for blocks that checkpoints may bring back.
    pub(crate) fn merge_waits_for_blocks(&self) -> bool {
        self.table_room.merge_relief_may_come() && self.merge_is_next() && !self.merge_has_room()
    }

    /// Whether groups must wait for a checkpoint, or for young entries to be merged.
    pub(crate) fn groups_wait_for_tables(&self) -> bool {
        self.table_room.tables_are_behind(&self.state)
            || self.state.hash.is_behind() && self.merge_may_go_on()
    }
}
