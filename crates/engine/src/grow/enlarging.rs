//! Growths of a store that runs, from their requests to their ends; and what the geometry has to
//! say before a store has its first domain, its first volume without deduplication or with a codec
//! or room of its own, or its first bucket.

use std::collections::VecDeque;

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

impl Wish {
    fn fail(self, error: RequestError) {
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

/// Growths in the order in which they came, one at a time.
#[derive(Default)]
pub(crate) struct Enlarging {
    pub(crate) wishes: VecDeque<Wish>,
    pub(crate) running: Option<Growth>,
    /// A write or sync of the geometry is in flight.
    pub(crate) io_out: bool,
}

impl Enlarging {
    pub(crate) fn any(&self) -> bool {
        self.running.is_some() || !self.wishes.is_empty()
    }

    /// Whether the mark for chunks that wait in the write buffer is on its way.
    pub(crate) fn marks_asides(&self) -> bool {
        let runs = |growth: &Growth| matches!(growth.after, After::Then(Then::GoOn));
        let is_wished = |wish: &Wish| matches!(wish, Wish::Geometry(Then::GoOn));
        self.running.as_ref().is_some_and(runs) || self.wishes.iter().any(is_wished)
    }

    /// Whether a data zone is on its way out.
    pub(crate) fn takes_zone_out(&self) -> bool {
        let runs = |growth: &Growth| matches!(growth.after, After::Removed(_));
        self.running.as_ref().is_some_and(runs)
            || self.wishes.iter().any(|wish| matches!(wish, Wish::Removal(_)))
    }

    pub(crate) fn io_ended(&mut self) {
        self.io_out = false;
    }

    pub(crate) fn fail(&mut self, error: &RequestError) {
        self.wishes.drain(..).for_each(|wish| wish.fail(error.clone()));
        if let Some(growth) = self.running.take() {
            growth.after.fail(error.clone());
        }
    }
}
