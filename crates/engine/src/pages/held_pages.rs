//! Pages that wants have found here, held from one attempt to the next: were they to leave the
//! cache while the others come, what needs many would never end.

use tables::PinSet;

/// What is held, by what it is held for.
#[derive(Default)]
pub(crate) struct HeldPages {
    /// For the group at the head of the look-up stage.
    pub(crate) look_up: PinSet,
    /// Places of the chunks that it is compared with.
    pub(crate) compared: PinSet,
    /// For the group at the head of the apply stage.
    pub(crate) apply: PinSet,
    /// For the chunk that is stored twice, or healed from its second copy.
    pub(crate) copy: PinSet,
    /// For the read that has waited longest.
    pub(crate) read: PinSet,
}
