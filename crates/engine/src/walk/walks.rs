//! Walks over maps that are under way.

use std::collections::VecDeque;

use tables::PinSet;

use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::walk::difference::{DifferenceStep, DifferenceWalk};
use crate::walk::weight::{WeightStep, WeightWalk};

/// Walks under way, in the order in which they were asked for.
#[derive(Default)]
pub(crate) struct Walks {
    pub(crate) waiting: VecDeque<WalkUnderWay>,
}

/// A walk, and what it holds.
pub(crate) struct WalkUnderWay {
    pub(crate) walk: Walk,
    /// What it has found resident of what it needs next.
    pub(crate) pins: PinSet,
}

/// What is walked for, and whom to tell.
pub(crate) enum Walk {
    Difference(DifferenceWalk, Done<DifferenceStep>),
    Weight(WeightWalk, Done<WeightStep>),
}

impl Walk {
    /// The step is done, or cannot be.
    pub(crate) fn finish(self, outcome: Result<(), RequestError>) {
        match self {
            Self::Difference(walk, done) => done.finish(outcome.map(|()| walk.step)),
            Self::Weight(walk, done) => done.finish(outcome.map(|()| walk.into_step())),
        }
    }
}

/// How far one turn of a walk has come.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Went {
    /// Pages are on their way.
    Waits,
    /// There is more to do, and others may do theirs first.
    On,
    /// The step has come to its end.
    Done,
}
