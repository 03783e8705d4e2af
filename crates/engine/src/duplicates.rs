//! Finding duplicates: what is asked, of whom, and how what was found is believed.
//!
//! A chunk's fingerprint is looked for among the groups on their way ([`lookups`], [`pending`]), in
//! directories that lie beside a duplicate ([`directories`]), and in the Hash-PBN table, whose own
//! work is [`crate::merge`]. What it may be a duplicate of is a candidate ([`candidates`],
//! [`known`]); in a store that verifies, bytes decide ([`comparing`]). Then each chunk of the group
//! is a duplicate or new ([`planning`]). Volumes may do without all
//! of it ([`dedup`]), or keep to their own domain ([`domains`]).

pub(crate) mod candidates;
pub(crate) mod comparing;
pub(crate) mod comparisons;
pub(crate) mod dedup;
pub(crate) mod directories;
pub(crate) mod directory_reads;
pub(crate) mod domains;
pub(crate) mod known;
pub(crate) mod lookups;
pub(crate) mod pending;
pub(crate) mod planning;

use tables::PinSet;

use crate::duplicates::comparisons::Comparisons;
use crate::duplicates::directories::Directories;
use crate::duplicates::lookups::Lookups;

/// What look-ups of groups own: what is taken ahead, what is compared, which directories are held.
pub(crate) struct Duplicates {
    pub(crate) lookups: Lookups,
    pub(crate) comparisons: Comparisons,
    pub(crate) directories: Directories,
    /// Pages for the group at the head of the look-up stage.
    look_up_pins: PinSet,
    /// Places of the chunks that it is compared with.
    compared_pins: PinSet,
}

impl Duplicates {
    pub(crate) fn new(directories: Directories) -> Self {
        Self {
            lookups: Lookups::default(),
            comparisons: Comparisons::default(),
            directories,
            look_up_pins: PinSet::default(),
            compared_pins: PinSet::default(),
        }
    }
}
