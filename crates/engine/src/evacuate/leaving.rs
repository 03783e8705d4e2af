//! Emptying a data zone: it is left, and its containers are collected one by one.

use containers::{ZoneUse, room_to_move_bytes};
use format::container_page::ContainerEntry;
use format::units::{CONTAINER_BYTES, ContainerId};

use crate::collect::collection::Order;
use crate::collect::step::{CollectPosition, CollectStep, CollectedContainer};
use crate::control::Asked;
use crate::core::record::CHANGE_BYTES_MAX;
use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::engine::Engine;
use crate::evacuate::{EvacuateZone, KeepZone, ZoneInfo, ZoneState, cannot};
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

impl Engine {
    pub(crate) fn accept_evacuate(&mut self, asked: Asked<EvacuateZone>) {
        match &self.core.stopped {
            Some(error) => asked.done.fail(error.clone()),
            None => self.collection.evacuations.push_back((asked.verb.zone, asked.done)),
        }
    }

    pub(crate) fn accept_keep(&mut self, asked: Asked<KeepZone>) {
        let Asked { verb: KeepZone { zone }, done } = asked;
        if self.core.placement.leaving_zone() == Some(zone) {
            if self.is_retiring() {
                return done.fail(cannot("it is being taken out"));
            }
            self.core.placement.space.open_zone(zone);
            self.core.placement.leaving = None;
        }
        done.reply(());
    }

    pub(crate) fn list_zones(&self) -> Vec<ZoneInfo> {
        let info = |zone: u16| {
            let containers = self.core.geometry.containers_of(zone);
            let ZoneUse { in_use, quarantined, live_bytes, .. } =
                self.core.placement.space.zone_use(zone);
            let state = match self.core.geometry.has_data_zone(zone) {
                false => ZoneState::Gone,
                true if self.core.placement.leaving_zone() == Some(zone) => ZoneState::Leaving,
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
        (0..self.core.geometry.data.len() as u16).map(info).collect()
    }

    /// The next container of a zone that is to be emptied, if somebody waits for it. One for which
    /// none is left is answered; `otherwise` other containers are collected, which may bring room.
    pub(crate) fn take_evacuation(&mut self, otherwise: bool) -> Option<(ContainerId, Order)> {
        while let Some((zone, done)) = self.collection.evacuations.pop_front() {
            match self.next_to_evacuate(zone, otherwise) {
                Ok(Next::Victim(id)) => return Some((id, Order::of_zone(zone, done))),
                Ok(Next::Waits) => {
                    self.collection.evacuations.push_front((zone, done));
                    return None;
                }
                Ok(Next::Nothing) => self.answer_evacuation(zone, done, None),
                Err(error) => done.fail(error),
            }
        }
        None
    }

    pub(crate) fn answer_evacuation(
        &self,
        zone: u16,
        done: Done<CollectStep>,
        collected: Option<CollectedContainer>,
    ) {
        let containers = self.core.geometry.containers_of(zone);
        let until_sequence = self.core.placement.next_sequence();
        let next = CollectPosition { from_sequence: 0, until_sequence };
        done.reply(CollectStep {
            next: collected.map(|_| next),
            collected,
            containers_used: self.core.placement.space.zone_use(zone).in_use,
            containers: u64::from(containers.end - containers.start),
        });
    }

    fn next_to_evacuate(&mut self, zone: u16, otherwise: bool) -> Result<Next, RequestError> {
        if self.core.placement.leaving_zone() != Some(zone) && !self.leave(zone)? {
            return Ok(Next::Waits);
        }
        let all = self.core.geometry.containers_of(zone);
        let start = self.core.placement.leaving.map_or(all.start, |(_, from)| from);
        let (mut from, mut waits) = (start, false);
        while let Some(id) = self.core.placement.space.sealed_in(from..all.end) {
            if !self.core.placement.is_in_memory(id) {
                if self.can_leave(id) {
                    let first = if waits { start } else { id.0 };
                    self.core.placement.leaving = Some((zone, first));
                    return Ok(Next::Victim(id));
                }
                let comes = otherwise || self.room_to_collect_may_come() || self.medium_is_asked();
                return if comes { Ok(Next::Waits) } else { Err(RequestError::NoSpace) };
            }
            (from, waits) = (id.0 + 1, true);
        }
        // One before may have become sound.
        self.core.placement.leaving = Some((zone, all.start));
        Ok(if waits { Next::Waits } else { Next::Nothing })
    }

    /// Whether what lives in a container that gives back no room can be moved, and what other
    /// victims need is left.
    fn can_leave(&self, id: ContainerId) -> bool {
        let ContainerEntry { live_bytes, used_bytes, .. } = self.core.state.containers.get(id);
        let needed_bytes = room_to_move_bytes(live_bytes, used_bytes) + RESERVED_BYTES;
        live_bytes == 0 || self.core.collection_room_bytes() >= needed_bytes
    }

    fn medium_is_asked(&self) -> bool {
        self.core.devices.allocation.zones().iter().any(|zone| zone.is_under_way)
    }

    /// Opens no container in the zone from now on; false while what clients were promised needs it.
    fn leave(&mut self, zone: u16) -> Result<bool, RequestError> {
        self.check_can_leave(zone)?;
        if !self.core.journal_has_room(CHANGES_OF_LEAVING * CHANGE_BYTES_MAX) {
            return Ok(false);
        }
        let space = &self.core.placement.space;
        let elsewhere = space.free_containers() - space.free_containers_of(zone);
        let all = self.core.geometry.containers_of(zone);
        let usable_bytes = self.core.placement.usable_bytes();
        let kept = RESERVED_BYTES.div_ceil(usable_bytes) + self.core.placement.open_in(&all) as u64;
        let room_bytes = elsewhere.saturating_sub(kept) * usable_bytes;
        let is_promised =
            elsewhere < kept || !self.core.intake.lock().space.lower_bytes(room_bytes);
        if is_promised {
            let comes = !self.core.buffer.groups.is_empty()
                || space.quarantined_containers() > 0
                || self.medium_is_asked();
            return if comes { Ok(false) } else { Err(RequestError::NoSpace) };
        }
        self.core.published.bytes = self.core.published.bytes.min(room_bytes);
        self.core.placement.space.close_zone(zone);
        self.core.placement.leaving = Some((zone, all.start));
        let mut changes = Vec::new();
        self.core.placement.open_elsewhere(&all, &mut changes);
        if !changes.is_empty() {
            self.record(&changes);
        }
        Ok(true)
    }

    fn check_can_leave(&self, zone: u16) -> Result<(), RequestError> {
        if !self.core.geometry.has_data_zone(zone) {
            return Err(cannot("the store has no such data file"));
        }
        if self.core.geometry.features.without_zone(zone).zones_gone.count_ones() as usize
            == self.core.geometry.data.len()
        {
            return Err(RequestError::OnlyDataFile);
        }
        if let Some(other) = self.core.placement.leaving_zone() {
            let sentence = format!("data.{other} is being removed, and one is at a time");
            return Err(cannot(&sentence));
        }
        let space = &self.core.placement.space;
        let elsewhere = space.reachable_containers() - space.free_containers_of(zone);
        let room_bytes = elsewhere * self.core.placement.usable_bytes();
        let used_bytes = space.zone_use(zone).live_bytes;
        if used_bytes <= room_bytes {
            return Ok(());
        }
        Err(RequestError::NoRoomElsewhere { used_bytes, room_bytes })
    }
}
