//! Growths of a store that runs, from their requests to their ends; and the secret of its first
//! domain, which comes into the geometry in the same way.

use std::collections::VecDeque;

use disk::FurtherFiles;
use format::superblock::Geometry;

use crate::done::Done;
use crate::error::RequestError;
use crate::grow::GrowOptions;
use crate::intake::NewVolume;

/// Another geometry that has been asked for.
pub(crate) enum Wish {
    Growth {
        options: GrowOptions,
        files: FurtherFiles,
        done: Done,
    },
    /// For a volume in the store's first keyed domain.
    Secret {
        volume: NewVolume,
        done: Done,
    },
}

impl Wish {
    fn fail(self, error: RequestError) {
        match self {
            Self::Growth { done, .. } | Self::Secret { done, .. } => done.fail(error),
        }
    }
}

/// A geometry that is being written.
pub(crate) struct Growth {
    pub(crate) grown: Geometry,
    pub(crate) done: Done,
    /// What waits for its secret.
    pub(crate) volume: Option<NewVolume>,
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

    pub(crate) fn io_ended(&mut self) {
        self.io_out = false;
    }

    pub(crate) fn fail(&mut self, error: &RequestError) {
        self.wishes.drain(..).for_each(|wish| wish.fail(error.clone()));
        if let Some(growth) = self.running.take() {
            growth.done.fail(error.clone());
        }
    }
}
