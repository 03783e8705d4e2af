//! Room for collection: why a victim that was begun is always ended.
//!
//! What lives in a victim has another place before the victim is free: to make room takes room.
//! Collection has what clients are not promised, the rest of its open container and free ones
//! beside those that promises need (`Placement::room_beside_bytes`), counted in worst cases as in
//! `containers/src/promise.rs`; a container takes *usable* bytes of them.
//!
//! * Promises leave it [`RESERVED_BYTES`], which is more than *usable*, and it leaves alone what
//!   was promised: so commits never wait for it.
//! * A slice takes what it moves and no more; what is stale, dead or dropped needs no room.
//! * A victim is chosen if all that lives in it, with a padding behind each slice, needs no more
//!   than *usable*, nor than there is. So it is ended, and gives back no less than it took: the
//!   next finds as much, and nothing is moved round and round. Where nothing lives no room is
//!   needed.
//! * One that is taken in turn, because somebody asked, may give back less than it took. It is
//!   begun only if [`RESERVED_BYTES`] are left in the end.
//! * One that stays, because a frame in it is damaged, gives back nothing. Where there is room for
//!   that beside [`RESERVED_BYTES`], it is not promised meanwhile; where there is not, all that
//!   lives in the victim is verified before anything is moved.
//!
//! What was dead may live again while its container is collected. The reserve is for that, too:
//! a whole container fits, with paddings unless its frames have hardly 200 bytes. If there is no
//! room all the same, or an earlier release has left none, and none is on its way, the victim is
//! *let go*: what was moved has moved, the rest is as it was, and it is chosen again when that
//! fits. Nobody waits for it, and what dies as a whole brings room for all others.

use containers::room_to_move_bytes;
use format::container_page::ContainerEntry;
use format::units::ContainerId;

use crate::collect::collection::Victim;
use crate::door::error::RequestError;
use crate::engine::Engine;
use crate::notice::Notice;
use crate::placement::RESERVED_BYTES;

impl Engine {
    /// Whether all that is in a container can be moved, and what other victims need is left.
    pub(crate) fn can_be_moved_whole(&self, id: ContainerId) -> bool {
        let room_bytes = self.core.collection_room_bytes() + self.core.placement.usable_bytes();
        room_bytes >= self.room_for_whole_bytes(id) + RESERVED_BYTES
    }

    /// Room for moving all that is in a container in vain, if what victims need is left; else 0.
    pub(crate) fn room_to_risk_bytes(&self, id: ContainerId) -> u64 {
        let whole_bytes = self.room_for_whole_bytes(id);
        let can_be = self.core.collection_room_bytes() >= whole_bytes + RESERVED_BYTES;
        if can_be { whole_bytes } else { 0 }
    }

    fn room_for_whole_bytes(&self, id: ContainerId) -> u64 {
        let ContainerEntry { used_bytes, .. } = self.core.state.containers.get(id);
        room_to_move_bytes(used_bytes, used_bytes)
    }

    /// Whether what is under way may bring room for collection, which it does without any.
    pub(crate) fn room_to_collect_may_come(&self) -> bool {
        !self.core.buffer.groups.is_empty()
            || self.core.placement.space.quarantined_containers() > 0
    }

    /// What lives in the victim finds no room: it stays, and is chosen again when it fits.
    pub(crate) fn let_victim_go(&mut self, mut victim: Victim) {
        let ContainerEntry { live_bytes, used_bytes, .. } =
            self.core.state.containers.get(victim.id);
        if room_to_move_bytes(live_bytes, used_bytes) <= self.core.collection_room_bytes() {
            // It would be chosen for ever: more is in it than the tables say.
            return self.keep_victim(victim);
        }
        self.core.tell(&Notice::CollectionEnded { container: victim.id.0, freed: false });
        if let Some(order) = victim.order.take() {
            order.done.fail(RequestError::NoSpace);
        }
    }
}
