//! Data zones that are emptied while clients go on, and taken out.

use engine::{CollectStep, EvacuateZone, RequestError, RetireZone};
use format::superblock::Geometry;

use crate::failure::Broken;
use crate::session::Session;
use crate::session::waiting::Waiting;
use crate::simulation::opening::strange;

impl Session<'_> {
    /// Asks for a step by which the zone becomes emptier, and so many behind it; when nothing is
    /// left in it, the zone is taken out.
    pub(crate) fn evacuate(&mut self, zone: u16, more: u32) {
        let done = self.done(Waiting::Evacuate(zone, more), None);
        self.opening.client.administer(EvacuateZone { zone }, done);
    }

    pub(crate) fn take_evacuation(&mut self, zone: u16, more: u32, step: &CollectStep) {
        if self.is_closing {
            return;
        }
        if step.collected.is_some() {
            if more > 0 {
                self.evacuate(zone, more - 1);
            }
        } else if step.containers_used == 0 {
            let done = self.done(Waiting::Retire(zone), None);
            self.opening.client.administer(RetireZone { zone }, done);
        }
    }

    /// From now on the zone is gone, whatever happens.
    pub(crate) fn take_removal(&mut self, zone: u16, geometry: &Geometry) -> Result<(), Broken> {
        if geometry.has_data_zone(zone) {
            return Err(strange("a zone that is gone", &geometry.features));
        }
        self.oracle.zones_gone |= geometry.features.zones_gone;
        self.removed += 1;
        Ok(())
    }
}

/// Whether the store may refuse to empty or to remove a zone with this error.
pub(crate) fn zone_stays(error: &RequestError) -> bool {
    matches!(
        error,
        RequestError::CannotRemove { .. }
            | RequestError::OnlyDataFile
            | RequestError::NoRoomElsewhere { .. }
            | RequestError::NoSpace
    )
}
