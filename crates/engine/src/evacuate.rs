//! Taking a data zone out of a store that runs (decision 058).
//!
//! ```text
//! in use -- EvacuateZone --> leaving -- EvacuateZone ... --> empty -- RetireZone --> gone
//!   ^_______ KeepZone, or the next opening ______|
//! ```
//!
//! *Leaving*: no container of the zone is opened, and the open ones in it are sealed. Nothing on
//! the medium says so. Each further [`EvacuateZone`] collects one sealed container of the zone, so
//! pace and pauses are the caller's, as those of [`crate::CollectRequest`]. [`RetireZone`] waits
//! until neither root and no record that a replay may read names a container of the zone, and
//! writes the geometry that says that it is gone.
//!
//! One zone leaves at a time. Invariants:
//!
//! * What clients were promised finds room in the other zones, before the zone is left.
//! * A zone is gone only when nothing of it is in use, in quarantine, or read.

pub(crate) mod evacuation;
pub(crate) mod leaving;
pub(crate) mod retiring;

use crate::door::error::RequestError;

/// Moves what lives in one more container of a data zone into other zones; the first time no more
/// is placed in the zone from then on. The answer counts the zone's containers: those that still
/// hold something, and all. What is left when nothing was collected is damaged, and stays.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct EvacuateZone {
    /// The data zone.
    pub zone: u16,
}

/// Uses a data zone again that was to be taken out; nothing is done to one that was not.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct KeepZone {
    /// The data zone.
    pub zone: u16,
}

/// Takes out a data zone that [`EvacuateZone`] has emptied; durable when it is answered.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RetireZone {
    /// The data zone.
    pub zone: u16,
}

/// Lists the data zones, by number.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ListZones {}

/// Where a data zone stands.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ZoneState {
    /// Takes frames.
    InUse,
    /// Is being emptied, and takes none.
    Leaving,
    /// Was taken out.
    Gone,
}

/// A data zone.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ZoneInfo {
    /// Its number.
    pub zone: u16,
    /// Where it stands.
    pub state: ZoneState,
    /// Room for frames that it has, or had.
    pub capacity_bytes: u64,
    /// Room that containers take which hold something.
    pub used_bytes: u64,
    /// Frames in them whose chunks are in use.
    pub live_bytes: u64,
}

/// Why a zone is not taken out.
pub(crate) fn cannot(reason: &str) -> RequestError {
    RequestError::CannotRemove { reason: reason.to_owned() }
}
