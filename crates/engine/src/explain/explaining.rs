//! Questions about addresses that are under way.

use std::collections::VecDeque;

use tables::PinSet;

use crate::core::frame::FoundFrame;
use crate::door::done::Done;
use crate::explain::explanation::{Address, Explanation};

/// Questions under way, in the order in which they came.
#[derive(Default)]
pub(crate) struct Explaining {
    pub(crate) questions: VecDeque<Question>,
}

/// A question, and how far its answer has come.
pub(crate) struct Question {
    pub(crate) volume: String,
    pub(crate) address: Address,
    pub(crate) done: Done<Explanation>,
    pub(crate) pins: PinSet,
    /// Its frame is on its way.
    pub(crate) reading: bool,
    pub(crate) frame: Option<FoundFrame>,
}

impl Question {
    pub(crate) fn new(volume: String, address: Address, done: Done<Explanation>) -> Self {
        Self { volume, address, done, pins: PinSet::default(), reading: false, frame: None }
    }
}
