//! The data zone that is taken out, and how far that has come.

use crate::control::Asked;
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
    /// Whether it waits until containers have come out of quarantine: all of the zone is to be
    /// free.
    pub(crate) fn awaits_quarantine(&self) -> bool {
        self.retiring.as_ref().is_some_and(|retiring| retiring.mark_bytes.is_none())
    }
}
