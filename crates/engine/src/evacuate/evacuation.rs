//! The data zone that is taken out, and how far that has come.

use crate::control::Asked;
use crate::door::error::RequestError;
use crate::evacuate::RetireZone;

/// The zone that is taken out, if one is.
#[derive(Default)]
pub(crate) struct Evacuation {
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
    /// What was asked for is not done.
    pub(crate) fn fail(&mut self, error: &RequestError) {
        if let Some(retiring) = self.retiring.take() {
            retiring.asked.done.fail(error.clone());
        }
    }
}
