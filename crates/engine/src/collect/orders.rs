//! Collection on request: which container is next, and what the asker is told of it.

use format::units::ContainerId;

use crate::collect::collection::{Order, Victim};
use crate::collect::step::{CollectPosition, CollectRequest, CollectStep, CollectedContainer};
use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::engine::Engine;
use crate::placement::Placement;

impl Engine {
    /// Takes a request for a step.
    pub(crate) fn accept_collect(&mut self, request: CollectRequest, done: Done<CollectStep>) {
        match &self.core.stopped {
            Some(error) => done.fail(error.clone()),
            None => self.collection.orders.push_back((request, done)),
        }
    }

    /// The container that the oldest request is about. One for which none is left is answered, as
    /// is one that finds no room unless that comes, perhaps from what is collected otherwise.
    pub(crate) fn take_order(&mut self, otherwise: bool) -> Option<(ContainerId, Order)> {
        if let Some(evacuated) = self.take_evacuation(otherwise) {
            return Some(evacuated);
        }
        while let Some((request, done)) = self.collection.orders.pop_front() {
            let until_sequence = self.core.placement.next_sequence();
            let first = CollectPosition { from_sequence: 0, until_sequence };
            let position = request.position.unwrap_or(first);
            let CollectRequest { recompress, .. } = request;
            let in_turn = recompress.is_some();
            match self.choose_ordered(position, in_turn) {
                Some(id) if in_turn && !self.can_be_moved_whole(id) => {
                    if otherwise || self.room_to_collect_may_come() {
                        self.collection.orders.push_front((request, done));
                        return None;
                    }
                    done.fail(RequestError::NoSpace);
                }
                Some(id) => return Some((id, Order { position, recompress, zone: None, done })),
                None => self.answer_order(done, CollectStep::default()),
            }
        }
        None
    }

    fn choose_ordered(&self, position: CollectPosition, in_turn: bool) -> Option<ContainerId> {
        let CollectPosition { from_sequence, until_sequence } = position;
        if !in_turn {
            return self.core.choose_victim(true, until_sequence);
        }
        // What is sealed but still on its way to the disk is skipped: it is of this very moment.
        let mut from = from_sequence;
        loop {
            let id = self.core.placement.space.oldest_in(from..until_sequence)?;
            if !self.core.placement.is_in_memory(id) {
                return Some(id);
            }
            from = self.core.state.containers.get(id).sequence + 1;
        }
    }

    /// The container that somebody asked for has been collected, or could not be.
    pub(crate) fn end_order(&mut self, victim: &mut Victim, freed: bool) {
        let Some(order) = victim.order.take() else { return };
        let collected = CollectedContainer {
            container: victim.id.0,
            freed,
            used_bytes: victim.entries.iter().map(|entry| u64::from(entry.length_bytes)).sum(),
            moved_bytes: victim.moved_bytes,
            written_bytes: victim.written_bytes,
        };
        if let Some(zone) = order.zone {
            return self.answer_evacuation(zone, order.done, Some(collected));
        }
        let CollectPosition { until_sequence, .. } = order.position;
        let next = CollectPosition { from_sequence: victim.sequence + 1, until_sequence };
        let step =
            CollectStep { next: Some(next), collected: Some(collected), ..CollectStep::default() };
        self.answer_order(order.done, step);
    }

    fn answer_order(&self, done: Done<CollectStep>, mut step: CollectStep) {
        let Placement { space, .. } = &self.core.placement;
        let containers = self.core.geometry.containers_present();
        step.containers = containers.saturating_sub(self.core.placement.reserved_containers(0));
        step.containers_used = (containers - space.unused_containers()).min(step.containers);
        done.reply(step);
    }
}
