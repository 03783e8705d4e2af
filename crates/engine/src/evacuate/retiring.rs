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

use format::superblock::Geometry;

use crate::control::Asked;
use crate::door::error::RequestError;
use crate::engine::Engine;
use crate::evacuate::evacuation::Retiring;
use crate::evacuate::{RetireZone, cannot};
use crate::grow::enlarging::Wish;

impl Engine {
    pub(crate) fn accept_retire(&mut self, asked: Asked<RetireZone>) {
        let zone = asked.verb.zone;
        if let Some(error) = &self.core.stopped {
            return asked.done.fail(error.clone());
        }
        if let Err(error) = self.check_can_retire(zone) {
            return asked.done.fail(error);
        }
        let freed_record = self.core.placement.space.last_quarantined_in(zone);
        self.evacuation.retiring = Some(Retiring { asked, freed_record, mark_bytes: None });
    }

    fn check_can_retire(&self, zone: u16) -> Result<(), RequestError> {
        if self.core.placement.leaving_zone() != Some(zone) || self.is_retiring() {
            return Err(cannot("it is not being emptied, or is being taken out already"));
        }
        match self.core.placement.space.zone_use(zone).in_use {
            0 => Ok(()),
            left => Err(cannot(&format!("{left} of its containers hold something"))),
        }
    }

    /// Whether a zone is on its way out.
    pub(crate) fn is_retiring(&self) -> bool {
        self.evacuation.retiring.is_some() || self.enlarging.takes_zone_out()
    }

    /// Moves the zone that is taken out on.
    pub(crate) fn advance_retiring(&mut self) -> bool {
        let Some(retiring) = &self.evacuation.retiring else { return false };
        let failure = self.core.stopped.clone();
        let failure = failure.or_else(|| self.core.is_closing.then_some(RequestError::Closing));
        if let Some(error) = failure {
            self.evacuation.fail(&error);
            return true;
        }
        let zone = retiring.asked.verb.zone;
        let Some(mark_bytes) = retiring.mark_bytes else {
            let space = &self.core.placement.space;
            let waits = !space.is_known_durable(retiring.freed_record)
                || space.is_zone_read(zone)
                || self.core.devices.allocation.is_under_way(zone);
            if waits {
                return false;
            }
            let mark_bytes = self.core.log.journal.next().offset_bytes;
            if let Some(retiring) = &mut self.evacuation.retiring {
                retiring.mark_bytes = Some(mark_bytes);
            }
            return true;
        };
        if self.core.log.begin_bytes() < mark_bytes {
            let asks = !self.core.table_room.is_under_way && !self.core.table_room.asked;
            if asks {
                self.core.table_room.ask();
            }
            return asks;
        }
        if let Some(Retiring { asked, .. }) = self.evacuation.retiring.take() {
            self.enlarging.wishes.push_back(Wish::Removal(asked));
        }
        true
    }

    /// Whether containers in quarantine are waited for, as room or because all of a zone is to be
    /// free.
    pub(crate) fn evacuation_waits_for_quarantine(&self) -> bool {
        let waits = |retiring: &Retiring| retiring.mark_bytes.is_none();
        let settles = self.evacuation.retiring.as_ref().is_some_and(waits);
        settles || !self.collection.evacuations.is_empty()
    }

    /// The geometry without the zone.
    pub(crate) fn geometry_without(&self, zone: u16) -> Geometry {
        let features = self.core.geometry.features.without_zone(zone);
        let gone = Geometry { features, ..self.core.geometry.clone() };
        Geometry { version: gone.version.max(gone.least_version()), ..gone }
    }

    /// Both blocks of the geometry say that the zone is gone.
    pub(crate) fn adopt_without(&mut self, zone: u16, geometry: Geometry) {
        self.core.placement.space.retire_zone(zone, &geometry);
        self.core.placement.leaving = None;
        self.core.geometry = geometry;
    }
}
