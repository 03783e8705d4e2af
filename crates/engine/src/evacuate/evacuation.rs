//! The data zone that leaves, and how far it has come.

use crate::control::Asked;
use crate::door::error::RequestError;
use crate::evacuate::RetireZone;

/// The zone that leaves, if one does.
#[derive(Default)]
pub(crate) struct Evacuation {
    /// Its number, and the container before which none is left that can be collected.
    pub(crate) leaving: Option<(u16, u32)>,
    pub(crate) retiring: Option<Retiring>,
}

/// A zone on its way out, before its geometry is asked for.
pub(crate) struct Retiring {
    pub(crate) asked: Asked<RetireZone>,
    /// The record that freed the last container of the zone.
    pub(crate) freed_record: u64,
    /// Where the journal ended when all of the zone was free.
    pub(crate) mark_bytes: Option<u64>,
}

impl Evacuation {
    pub(crate) fn zone(&self) -> Option<u16> {
        self.leaving.map(|(zone, _)| zone)
    }

    /// What was asked for is not done.
    pub(crate) fn fail(&mut self, error: &RequestError) {
        if let Some(retiring) = self.retiring.take() {
            retiring.asked.done.fail(error.clone());
        }
    }
}
