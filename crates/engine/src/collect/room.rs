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

use crate::core::Core;
use crate::placement::RESERVED_BYTES;

/// Whether all that is in a container can be moved, and what other victims need is left.
pub(crate) fn can_be_moved_whole(core: &Core, id: ContainerId) -> bool {
    let room_bytes = core.collection_room_bytes() + core.placement.usable_bytes();
    room_bytes >= room_for_whole_bytes(core, id) + RESERVED_BYTES
}

/// Room for moving all that is in a container in vain, if what victims need is left; else 0.
pub(crate) fn room_to_risk_bytes(core: &Core, id: ContainerId) -> u64 {
    let whole_bytes = room_for_whole_bytes(core, id);
    let can_be = core.collection_room_bytes() >= whole_bytes + RESERVED_BYTES;
    if can_be { whole_bytes } else { 0 }
}

fn room_for_whole_bytes(core: &Core, id: ContainerId) -> u64 {
    let ContainerEntry { used_bytes, .. } = core.state.containers.get(id);
    room_to_move_bytes(used_bytes, used_bytes)
}

/// Whether what is under way may bring room for collection, which it does without any.
pub(crate) fn room_to_collect_may_come(core: &Core) -> bool {
    !core.buffer.groups.is_empty() || core.placement.space.quarantined_containers() > 0
}
