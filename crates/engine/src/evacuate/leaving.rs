//! Emptying a data zone: it is left, and its containers are collected one by one.

use containers::{ZoneUse, room_to_move_bytes};
use format::container_page::ContainerEntry;
use format::units::{CONTAINER_BYTES, ContainerId};

use crate::collect::collection::{Collection, Order};
use crate::collect::room::room_to_collect_may_come;
use crate::collect::step::{CollectPosition, CollectStep, CollectedContainer};
use crate::control::Asked;
use crate::core::Core;
use crate::core::record::CHANGE_BYTES_MAX;
use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::evacuate::{EvacuateZone, ZoneInfo, ZoneState, cannot};
use crate::placement::RESERVED_BYTES;

/// Each open container is sealed, and another opened.
const CHANGES_OF_LEAVING: usize = 4;

/// What a step of an evacuation finds.
enum Next {
    Victim(ContainerId),
    /// Something is on its way.
    Waits,
    /// Nothing that could be collected is left.
    Nothing,
}

impl Collection {
    pub(crate) fn accept_evacuation(&mut self, core: &Core, asked: Asked<EvacuateZone>) {
        match &core.stopped {
            Some(error) => asked.done.fail(error.clone()),
            None => self.evacuations.push_back((asked.verb.zone, asked.done)),
        }
    }

    /// The next container of a zone that is to be emptied, if somebody waits for it. One for which
    /// none is left is answered; `otherwise` other containers are collected, which may bring room.
    pub(crate) fn take_evacuation(
        &mut self,
        core: &mut Core,
        otherwise: bool,
    ) -> Option<(ContainerId, Order)> {
        while let Some((zone, done)) = self.evacuations.pop_front() {
            match next_to_evacuate(core, zone, otherwise) {
                Ok(Next::Victim(id)) => return Some((id, Order::of_zone(zone, done))),
                Ok(Next::Waits) => {
                    self.evacuations.push_front((zone, done));
                    return None;
                }
                Ok(Next::Nothing) => answer_evacuation(core, zone, done, None),
                Err(error) => done.fail(error),
            }
        }
        None
    }
}

pub(crate) fn list_zones(core: &Core) -> Vec<ZoneInfo> {
    let info = |zone: u16| {
        let containers = core.geometry.containers_of(zone);
        let ZoneUse { in_use, quarantined, live_bytes, .. } = core.placement.space.zone_use(zone);
        let state = match core.geometry.has_data_zone(zone) {
            false => ZoneState::Gone,
            true if core.placement.leaving_zone() == Some(zone) => ZoneState::Leaving,
            true => ZoneState::InUse,
        };
        let bytes = |containers: u64| containers * u64::from(CONTAINER_BYTES);
        let capacity_bytes = bytes(u64::from(containers.end - containers.start));
        ZoneInfo {
            zone,
            state,
            capacity_bytes,
            used_bytes: bytes(in_use + quarantined),
            live_bytes,
        }
    };
    (0..core.geometry.data.len() as u16).map(info).collect()
}

pub(crate) fn answer_evacuation(
    core: &Core,
    zone: u16,
    done: Done<CollectStep>,
    collected: Option<CollectedContainer>,
) {
    let containers = core.geometry.containers_of(zone);
    let until_sequence = core.placement.next_sequence();
    let next = CollectPosition { from_sequence: 0, until_sequence };
    done.reply(CollectStep {
        next: collected.map(|_| next),
        collected,
        containers_used: core.placement.space.zone_use(zone).in_use,
        containers: u64::from(containers.end - containers.start),
    });
}

fn next_to_evacuate(core: &mut Core, zone: u16, otherwise: bool) -> Result<Next, RequestError> {
    if core.placement.leaving_zone() != Some(zone) && !leave(core, zone)? {
        return Ok(Next::Waits);
    }
    let all = core.geometry.containers_of(zone);
    let start = core.placement.leaving.map_or(all.start, |(_, from)| from);
    let (mut from, mut waits) = (start, false);
    while let Some(id) = core.placement.space.sealed_in(from..all.end) {
        if !core.placement.is_in_memory(id) {
            if can_leave(core, id) {
                let first = if waits { start } else { id.0 };
                core.placement.leaving = Some((zone, first));
                return Ok(Next::Victim(id));
            }
            let comes = otherwise || room_to_collect_may_come(core) || medium_is_asked(core);
            return if comes { Ok(Next::Waits) } else { Err(RequestError::NoSpace) };
        }
        (from, waits) = (id.0 + 1, true);
    }
    // One before may have become sound.
    core.placement.leaving = Some((zone, all.start));
    Ok(if waits { Next::Waits } else { Next::Nothing })
}

/// Whether what lives in a container that gives back no room can be moved, and what other
/// victims need is left.
fn can_leave(core: &Core, id: ContainerId) -> bool {
    let ContainerEntry { live_bytes, used_bytes, .. } = core.state.containers.get(id);
    let needed_bytes = room_to_move_bytes(live_bytes, used_bytes) + RESERVED_BYTES;
    live_bytes == 0 || core.collection_room_bytes() >= needed_bytes
}

fn medium_is_asked(core: &Core) -> bool {
    core.devices.allocation.zones().iter().any(|zone| zone.is_under_way)
}

/// Opens no container in the zone from now on; false while what clients were promised needs it.
fn leave(core: &mut Core, zone: u16) -> Result<bool, RequestError> {
    check_can_leave(core, zone)?;
    if !core.journal_has_room(CHANGES_OF_LEAVING * CHANGE_BYTES_MAX) {
        return Ok(false);
    }
    let space = &core.placement.space;
    let elsewhere = space.free_containers() - space.free_containers_of(zone);
    let all = core.geometry.containers_of(zone);
    let usable_bytes = core.placement.usable_bytes();
    let kept = RESERVED_BYTES.div_ceil(usable_bytes) + core.placement.open_in(&all) as u64;
    let room_bytes = elsewhere.saturating_sub(kept) * usable_bytes;
    let is_promised = elsewhere < kept || !core.intake.lock().space.lower_bytes(room_bytes);
    if is_promised {
        let comes = !core.buffer.groups.is_empty()
            || space.quarantined_containers() > 0
            || medium_is_asked(core);
        return if comes { Ok(false) } else { Err(RequestError::NoSpace) };
    }
    core.published.bytes = core.published.bytes.min(room_bytes);
    core.placement.space.close_zone(zone);
    core.placement.leaving = Some((zone, all.start));
    let mut changes = Vec::new();
    core.placement.open_elsewhere(&all, &mut changes);
    if !changes.is_empty() {
        core.record(&changes);
    }
    Ok(true)
}

fn check_can_leave(core: &Core, zone: u16) -> Result<(), RequestError> {
    if !core.geometry.has_data_zone(zone) {
        return Err(cannot("the store has no such data file"));
    }
    if core.geometry.features.without_zone(zone).zones_gone.count_ones() as usize
        == core.geometry.data.len()
    {
        return Err(RequestError::OnlyDataFile);
    }
    if let Some(other) = core.placement.leaving_zone() {
        let sentence = format!("data.{other} is being removed, and one is at a time");
        return Err(cannot(&sentence));
    }
    let space = &core.placement.space;
    let elsewhere = space.reachable_containers() - space.free_containers_of(zone);
    let room_bytes = elsewhere * core.placement.usable_bytes();
    let used_bytes = space.zone_use(zone).live_bytes;
    if used_bytes <= room_bytes {
        return Ok(());
    }
    Err(RequestError::NoRoomElsewhere { used_bytes, room_bytes })
}
