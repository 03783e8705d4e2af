//! Growths of a store that runs, from their requests to their ends.

use std::collections::VecDeque;

use disk::FurtherFiles;
use format::superblock::Geometry;

use crate::done::Done;
use crate::error::RequestError;
use crate::grow::GrowOptions;

/// A growth that has been asked for.
pub(crate) struct Wish {
    pub(crate) options: GrowOptions,
    pub(crate) files: FurtherFiles,
    pub(crate) done: Done,
}

/// A growth whose geometry is being written.
pub(crate) struct Growth {
    pub(crate) grown: Geometry,
    pub(crate) done: Done,
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
        self.wishes.drain(..).for_each(|wish| wish.done.fail(error.clone()));
        if let Some(growth) = self.running.take() {
            growth.done.fail(error.clone());
        }
    }
}
