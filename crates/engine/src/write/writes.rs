//! What the stages of groups own.

use accelerator::{Emulated, EmulatedSettings, Offload};
use tables::PinSet;

/// Groups on their way to the tables; they themselves lie in the write buffer.
pub(crate) struct Writes {
    /// What fingerprints and compresses clients' chunks in place of the workers (decision 077).
    pub(crate) offload: Option<Offload>,
    /// Pages for the group at the head of the apply stage.
    pub(crate) pins: PinSet,
}

impl Writes {
    pub(crate) fn new(accelerator: Option<EmulatedSettings>) -> Self {
        let emulated = |settings: EmulatedSettings| Box::new(Emulated::new(settings.capacity));
        let offload = accelerator.map(|settings| Offload::new(emulated(settings)));
        Self { offload, pins: PinSet::default() }
    }
}
