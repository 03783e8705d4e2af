//! Taking out a data zone that is empty.
//!
//! ```text
//! quarantine over, no read -> all of it free: the journal's end is noted
//!   -> checkpoints, until the journal begins behind that
//!   -> the geometry is written (`grow/enlarge.rs`)
//! ```
//!
//! Both roots are then from after the moment at which the last container became free, and so is
//! every record that a replay may read. So no opening has anything to do with the zone.

use crate::control::Asked;
use crate::core::Core;
use crate::door::error::RequestError;
use crate::evacuate::evacuation::{Evacuation, Retiring};
use crate::evacuate::{KeepZone, RetireZone, cannot};
use crate::grow::enlarging::{GrowsFor, Wish};
use crate::part::Part;

impl Evacuation {
    pub(crate) fn accept(&mut self, core: &Core, asked: Asked<RetireZone>) {
        let zone = asked.verb.zone;
        if let Some(error) = &core.stopped {
            return asked.done.fail(error.clone());
        }
        if let Err(error) = self.check_can_retire(core, zone) {
            return asked.done.fail(error);
        }
        let freed_record = core.placement.space.last_quarantined_in(zone);
        self.retiring = Some(Retiring { asked, freed_record, mark_bytes: None });
    }

    pub(crate) fn accept_keep(&self, core: &mut Core, asked: Asked<KeepZone>) {
        let Asked { verb: KeepZone { zone }, done } = asked;
        if core.placement.leaving_zone() == Some(zone) {
            if self.is_retiring(core) {
                return done.fail(cannot("it is being taken out"));
            }
            core.placement.space.open_zone(zone);
            core.placement.leaving = None;
        }
        done.reply(());
    }

    fn check_can_retire(&self, core: &Core, zone: u16) -> Result<(), RequestError> {
        if core.placement.leaving_zone() != Some(zone) || self.is_retiring(core) {
            return Err(cannot("it is not being emptied, or is being taken out already"));
        }
        match core.placement.space.zone_use(zone).in_use {
            0 => Ok(()),
            left => Err(cannot(&format!("{left} of its containers hold something"))),
        }
    }

    /// Whether a zone is on its way out.
    pub(crate) fn is_retiring(&self, core: &Core) -> bool {
        self.retiring.is_some() || core.superblock.will_grow_for(GrowsFor::Removal)
    }

    /// Moves the zone that is taken out on.
    pub(crate) fn advance(&mut self, core: &mut Core) -> bool {
        let Some(retiring) = &mut self.retiring else { return false };
        let failure = core.stopped.clone();
        let failure = failure.or_else(|| core.is_closing.then_some(RequestError::Closing));
        if let Some(error) = failure {
            self.fail(&error);
            return true;
        }
        let zone = retiring.asked.verb.zone;
        let Some(mark_bytes) = retiring.mark_bytes else {
            let space = &core.placement.space;
            let waits = !space.is_known_durable(retiring.freed_record)
                || space.is_zone_read(zone)
                || core.devices.allocation.is_under_way(zone);
            if waits {
                return false;
            }
            let mark_bytes = core.log.journal.next().offset_bytes;
            retiring.mark_bytes = Some(mark_bytes);
            return true;
        };
        if core.log.begin_bytes() < mark_bytes {
            let asks = !core.table_room.is_under_way && !core.table_room.asked;
            if asks {
                core.table_room.ask();
            }
            return asks;
        }
        if let Some(Retiring { asked, .. }) = self.retiring.take() {
            core.superblock.wishes.push_back(Wish::Removal(asked));
        }
        true
    }
}

impl Part for Evacuation {
    fn fail(&mut self, error: &RequestError) {
        if let Some(retiring) = self.retiring.take() {
            retiring.asked.done.fail(error.clone());
        }
    }

    /// A close abandons what is under way.
    fn is_idle(&self, _core: &Core) -> bool {
        true
    }

    fn check(&self, core: &Core) {
        let Some(retiring) = &self.retiring else { return };
        let zone = retiring.asked.verb.zone;
        let is_left = core.placement.leaving_zone() == Some(zone);
        let is_empty = core.placement.space.zone_use(zone).in_use == 0;
        assert!(is_left && is_empty, "ZoneEmptyWhenGone: no container of the zone is opened");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::control::Asked;
    use crate::door::done::Done;
    use crate::door::error::RequestError;
    use crate::evacuate::RetireZone;
    use crate::evacuate::evacuation::{Evacuation, Retiring};
    use crate::grow::enlarging::GrowsFor;
    use crate::part::Part;
    use crate::small_store::{Told, store};

    fn asked(told: &Arc<Told>) -> Asked<RetireZone> {
        Asked { verb: RetireZone { zone: 0 }, done: Done::new(Arc::clone(told), 1) }
    }

    #[test]
    fn a_zone_that_is_empty_is_wished_gone_once_the_journal_begins_behind_it() {
        let (mut engine, _client) = store(Default::default());
        let (mut evacuation, told) = (Evacuation::default(), Arc::<Told>::default());
        let core = &mut engine.core;
        evacuation.accept(core, asked(&told));
        assert!(matches!(told.take()[..], [(1, Err(RequestError::CannotRemove { .. }))]));
        core.placement.leaving = Some((0, 0));
        evacuation.accept(core, asked(&told));
        evacuation.check(core);
        assert!(evacuation.awaits_quarantine());
        assert!(evacuation.advance(core) && !evacuation.awaits_quarantine());
        assert!(evacuation.advance(core) && core.table_room.asked, "it releases the journal");
        assert!(!evacuation.advance(core), "it is asked for once");
        let end_bytes = core.log.journal.next().offset_bytes;
        core.log.journal.release_to(end_bytes);
        assert!(evacuation.advance(core) && evacuation.retiring.is_none());
        assert!(core.superblock.will_grow_for(GrowsFor::Removal));
        core.superblock.fail_wishes(&RequestError::Closing);
        assert!(matches!(told.take()[..], [(1, Err(RequestError::Closing))]));
    }

    #[test]
    fn a_close_or_a_stop_ends_what_is_under_way() {
        let (mut engine, _client) = store(Default::default());
        let (mut evacuation, told) = (Evacuation::default(), Arc::<Told>::default());
        let core = &mut engine.core;
        core.placement.leaving = Some((0, 0));
        evacuation.accept(core, asked(&told));
        core.is_closing = true;
        assert!(evacuation.advance(core) && evacuation.retiring.is_none());
        assert!(matches!(told.take()[..], [(1, Err(RequestError::Closing))]));
    }

    #[test]
    #[should_panic(expected = "ZoneEmptyWhenGone")]
    fn no_zone_goes_that_was_not_left() {
        let (engine, _client) = store(Default::default());
        let told = Arc::<Told>::default();
        let retiring = Retiring { asked: asked(&told), freed_record: 0, mark_bytes: None };
        Evacuation { retiring: Some(retiring) }.check(&engine.core);
    }
}
