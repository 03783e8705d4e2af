//! Room that the medium allocates as the store fills ([`disk::AllocationAhead`]).
//!
//! A client is promised only what the medium has given: containers behind that are withheld
//! ([`containers::Space::allocated_to`]). So that nobody waits for the medium as long as it has
//! room, it is asked for more while half a step, and what the write buffer may hold, is free still;
//! and whenever somebody waits for more than is free. It answers on a thread of its own.
//!
//! ```text
//! free containers fall below the mark ──> asked ──> given: free, those who wait enter
//!                                           └────> refused: waiting requests fail: no space;
//!                                                  asked again every few ticks
//! ```
//!
//! Invariants:
//! - A container that was not given is in no list from which one is opened.
//! - Somebody waits for the medium only while the answer is on its way, or is asked for with the
//!   next step: one that has refused is waited for by nobody.

use disk::{AllocationAhead, ZoneAllocation, allocation_step_bytes};
use format::root::Stream;
use format::units::{CONTAINER_BYTES, Zone};

use crate::core::Core;
use crate::notice::Notice;
use crate::space::space_budget::SpaceBudget;

/// Ticks between two attempts of a medium that has refused: half a second.
const ATTEMPT_TICKS: u32 = 5;
/// Ticks between two looks at what it has free, which is not counted but shown.
const LOOK_TICKS: u32 = 10;

/// Whether a medium that has refused is asked as well.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Attempt {
    First,
    Again,
}

/// Takes what the medium has given, and asks it for more.
pub(crate) fn advance_allocation(core: &mut Core) -> bool {
    let moved = core.devices.hear_of_allocation();
    if moved {
        for zone in core.devices.allocation.zones() {
            core.placement.space.allocated_to(zone.number, zone.allocated_bytes);
        }
        expect_of_medium(core);
        match core.devices.allocation.take_news() {
            Some(Err(reason)) => core.tell(&Notice::AllocationRefused { reason }),
            Some(Ok(())) => core.tell(&Notice::AllocationGoesOn),
            None => {}
        }
    }
    ask_medium(core, Attempt::First);
    moved
}

/// A tick has passed.
pub(crate) fn tick_allocation(core: &mut Core) {
    if core.devices.allocation_ahead().is_none() {
        return;
    }
    let ticks = core.devices.allocation.tick();
    if ticks.is_multiple_of(LOOK_TICKS) {
        core.devices.allocation_ahead().into_iter().for_each(AllocationAhead::look);
        expect_of_medium(core);
    }
    if ticks.is_multiple_of(ATTEMPT_TICKS) {
        ask_medium(core, Attempt::Again);
    }
}

/// Whether the one that has waited longest waits for room that the medium can still give.
pub(crate) fn allocation_may_come(core: &Core) -> bool {
    let more_bytes = core.placement.space.expected_containers() * core.placement.usable_bytes();
    let comes = |space: &SpaceBudget, volume, chunks| {
        let lacks = |more_bytes| space.lacks_bytes_with(volume, chunks, more_bytes);
        lacks(0) && !lacks(more_bytes)
    };
    more_bytes > 0 && may_ask_medium(core) && core.first_waits_for(comes)
}

/// Asserts that no container is open for which the medium has not given room.
pub(crate) fn check_allocation(core: &Core) {
    for zone in core.devices.allocation.zones() {
        let is_given = |id| match core.geometry.container_zone(id) {
            Some((Zone::Data(number), start_bytes)) if number == zone.number => {
                start_bytes + u64::from(CONTAINER_BYTES) <= zone.allocated_bytes
            }
            _ => true,
        };
        let open = Stream::ALL.into_iter().filter_map(|stream| core.placement.open_id(stream));
        assert!({ open }.all(is_given), "NotGivenNotOpened");
    }
}

fn may_ask_medium(core: &Core) -> bool {
    core.stopped.is_none() && !core.is_closing
}

fn ask_medium(core: &mut Core, attempt: Attempt) {
    if core.devices.allocation.zones().is_empty() || !may_ask_medium(core) {
        return;
    }
    let is_waited_for = allocation_may_come(core);
    let wanted = |zone: &ZoneAllocation| {
        let zone_bytes = core.geometry.zone_bytes(Zone::Data(zone.number));
        let is_refused = zone.refusal.is_some() && attempt == Attempt::First;
        let is_closed = core.placement.space.is_zone_closed(zone.number);
        if is_closed || zone.is_under_way || is_refused || zone.allocated_bytes >= zone_bytes {
            return None;
        }
        let step_bytes = allocation_step_bytes(zone_bytes);
        let is_due = is_waited_for || free_ahead_bytes(core, zone.number) < step_bytes / 2;
        is_due.then(|| (zone.number, step_end(zone.allocated_bytes, step_bytes, zone_bytes)))
    };
    let steps: Vec<_> = core.devices.allocation.zones().iter().filter_map(wanted).collect();
    for (number, end_bytes) in steps {
        core.devices.allocate_ahead(number, end_bytes);
    }
}

/// Free room of a data zone beside its share of what the write buffer may hold.
fn free_ahead_bytes(core: &Core, number: u16) -> u64 {
    let zones = core.devices.allocation.zones().len().max(1);
    let buffer_bytes = (core.intake.credits.total_bytes() / zones) as u64;
    let free = core.placement.space.free_containers_of(number);
    (free * u64::from(CONTAINER_BYTES)).saturating_sub(buffer_bytes)
}

fn expect_of_medium(core: &mut Core) {
    let ahead = core.devices.allocation_ahead();
    let obtainable_bytes = ahead.map_or(u64::MAX, AllocationAhead::obtainable_bytes);
    let containers = obtainable_bytes / u64::from(CONTAINER_BYTES);
    core.placement.space.expect_of_medium(containers);
}

/// Where the next step ends. What would be less than a step is added to the last one.
fn step_end(allocated_bytes: u64, step_bytes: u64, zone_bytes: u64) -> u64 {
    let end_bytes = allocated_bytes + step_bytes;
    if end_bytes + step_bytes > zone_bytes { zone_bytes } else { end_bytes }
}

#[cfg(test)]
mod tests {
    use super::step_end;

    #[test]
    fn steps_reach_the_end_and_none_is_shorter_than_a_step() {
        for zone_bytes in [1, 64, 100, 127, 128, 1000] {
            let mut ends = vec![0];
            while *ends.last().unwrap() < zone_bytes {
                ends.push(step_end(*ends.last().unwrap(), 64, zone_bytes));
            }
            assert_eq!(ends.last(), Some(&zone_bytes));
            let is_whole = |step: &[u64]| step[1] - step[0] >= 64.min(zone_bytes);
            assert!(ends.windows(2).all(is_whole), "{ends:?}");
        }
    }
}
