//! Collection on request: which container is next, and what the asker is told of it.

use format::units::ContainerId;

use crate::collect::collection::{Collection, Order, Victim};
use crate::collect::room::{can_be_moved_whole, room_to_collect_may_come};
use crate::collect::step::{CollectPosition, CollectRequest, CollectStep, CollectedContainer};
use crate::core::Core;
use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::evacuate::leaving::answer_evacuation;
use crate::placement::Placement;

impl Collection {
    /// Takes a request for a step.
    pub(crate) fn accept(&mut self, core: &Core, request: CollectRequest, done: Done<CollectStep>) {
        match &core.stopped {
            Some(error) => done.fail(error.clone()),
            None => self.orders.push_back((request, done)),
        }
    }

    /// The container that the oldest request is about. One for which none is left is answered, as
    /// is one that finds no room unless that comes, perhaps from what is collected otherwise.
    pub(crate) fn take_order(
        &mut self,
        core: &mut Core,
        otherwise: bool,
    ) -> Option<(ContainerId, Order)> {
        if let Some(evacuated) = self.take_evacuation(core, otherwise) {
            return Some(evacuated);
        }
        while let Some((request, done)) = self.orders.pop_front() {
            let until_sequence = core.placement.next_sequence();
            let first = CollectPosition { from_sequence: 0, until_sequence };
            let position = request.position.unwrap_or(first);
            let CollectRequest { recompress, .. } = request;
            let in_turn = recompress.is_some();
            match choose_ordered(core, position, in_turn) {
                Some(id) if in_turn && !can_be_moved_whole(core, id) => {
                    if otherwise || room_to_collect_may_come(core) {
                        self.orders.push_front((request, done));
                        return None;
                    }
                    done.fail(RequestError::NoSpace);
                }
                Some(id) => return Some((id, Order { position, recompress, zone: None, done })),
                None => answer_order(core, done, CollectStep::default()),
            }
        }
        None
    }
}

fn choose_ordered(core: &Core, position: CollectPosition, in_turn: bool) -> Option<ContainerId> {
    let CollectPosition { from_sequence, until_sequence } = position;
    if !in_turn {
        return core.choose_victim(true, until_sequence);
    }
    // What is sealed but still on its way to the disk is skipped: it is of this very moment.
    let mut from = from_sequence;
    loop {
        let id = core.placement.space.oldest_in(from..until_sequence)?;
        if !core.placement.is_in_memory(id) {
            return Some(id);
        }
        from = core.state.containers.get(id).sequence + 1;
    }
}

/// The container that somebody asked for has been collected, or could not be.
pub(crate) fn end_order(core: &Core, victim: &mut Victim, freed: bool) {
    let Some(order) = victim.order.take() else { return };
    let collected = CollectedContainer {
        container: victim.id.0,
        freed,
        used_bytes: victim.entries.iter().map(|entry| u64::from(entry.length_bytes)).sum(),
        moved_bytes: victim.moved_bytes,
        written_bytes: victim.written_bytes,
    };
    if let Some(zone) = order.zone {
        return answer_evacuation(core, zone, order.done, Some(collected));
    }
    let CollectPosition { until_sequence, .. } = order.position;
    let next = CollectPosition { from_sequence: victim.sequence + 1, until_sequence };
    let step =
        CollectStep { next: Some(next), collected: Some(collected), ..CollectStep::default() };
    answer_order(core, order.done, step);
}

fn answer_order(core: &Core, done: Done<CollectStep>, mut step: CollectStep) {
    let Placement { space, .. } = &core.placement;
    let containers = core.geometry.containers_present();
    step.containers = containers.saturating_sub(core.placement.reserved_containers(0));
    step.containers_used = (containers - space.unused_containers()).min(step.containers);
    done.reply(step);
}
