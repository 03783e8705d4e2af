//! Growths of a store that runs, from their requests to their ends; and what the geometry has to
//! say before a store has its first domain, its first volume without deduplication or with a codec
//! or room of its own, or its first bucket.

use format::domain::DomainSecret;
use format::superblock::Geometry;

use crate::control::{Asked, Grow, NewVolume, SetDedup, SetReservation, SetVolumeCompression};
use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::door::outcome::VolumeInfo;
use crate::evacuate::RetireZone;

/// Another geometry that has been asked for.
pub(crate) enum Wish {
    Growth(Asked<Grow>),
    /// That the geometry says first what must be known of the store.
    Geometry(Then),
    /// That a data zone, which is empty, is gone.
    Removal(Asked<RetireZone>),
}

/// What may not be recorded before the geometry says that it may be there.
pub(crate) enum Then {
    /// A volume in a keyed domain, or of another kind than block.
    Make(NewVolume, Done<VolumeInfo>),
    /// Chunks of a volume may be aside from now on.
    LeaveAside(SetDedup, Done<VolumeInfo>),
    /// A volume has a codec of its own.
    HaveCodec(SetVolumeCompression, Done<VolumeInfo>),
    /// Room is a volume's own.
    Reserve(Asked<SetReservation>),
    /// Chunks may be aside of which some wait in the write buffer.
    GoOn,
}

impl Then {
    pub(crate) fn fail(self, error: RequestError) {
        match self {
            Self::Make(_, done) | Self::LeaveAside(_, done) | Self::HaveCodec(_, done) => {
                done.fail(error);
            }
            Self::Reserve(asked) => asked.done.fail(error),
            Self::GoOn => {}
        }
    }
}

/// What follows when a geometry has been written.
pub(crate) enum After {
    /// The store is larger.
    Grown(Done<Geometry>),
    /// What waited for it.
    Then(Then),
    /// The data zone is gone.
    Removed(Asked<RetireZone>),
}

impl After {
    pub(crate) fn fail(self, error: RequestError) {
        match self {
            Self::Grown(done) => done.fail(error),
            Self::Then(then) => then.fail(error),
            Self::Removed(asked) => asked.done.fail(error),
        }
    }
}

/// What another geometry is for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum GrowsFor {
    /// More room.
    Room,
    /// Chunks that wait in the write buffer may be aside.
    Asides,
    /// Something else may be recorded.
    Record,
    /// A data zone is gone.
    Removal,
}

impl Then {
    fn purpose(&self) -> GrowsFor {
        if matches!(self, Self::GoOn) { GrowsFor::Asides } else { GrowsFor::Record }
    }
}

impl After {
    pub(crate) fn purpose(&self) -> GrowsFor {
        match self {
            Self::Grown(_) => GrowsFor::Room,
            Self::Then(then) => then.purpose(),
            Self::Removed(_) => GrowsFor::Removal,
        }
    }
}

impl Wish {
    pub(crate) fn purpose(&self) -> GrowsFor {
        match self {
            Self::Growth(_) => GrowsFor::Room,
            Self::Geometry(then) => then.purpose(),
            Self::Removal(_) => GrowsFor::Removal,
        }
    }

    pub(crate) fn fail(self, error: RequestError) {
        match self {
            Self::Growth(asked) => asked.done.fail(error),
            Self::Geometry(then) => then.fail(error),
            Self::Removal(asked) => asked.done.fail(error),
        }
    }
}

/// A geometry that is being written.
pub(crate) struct Growth {
    pub(crate) grown: Geometry,
    pub(crate) after: After,
    /// Writes and syncs of the geometry's blocks that have ended.
    pub(crate) steps: usize,
}

/// The growth under way: one at a time. Those that wait are
/// [wishes](crate::core::superblock::Superblock::wishes).
#[derive(Default)]
pub(crate) struct Enlarging {
    pub(crate) running: Option<Growth>,
    /// A write or sync of the geometry is in flight.
    pub(crate) io_out: bool,
    /// For the store's first keyed domain.
    pub(crate) offered_secret: Option<DomainSecret>,
    /// What may be recorded now, the geometry being durable.
    pub(crate) resumed: Option<Then>,
}
