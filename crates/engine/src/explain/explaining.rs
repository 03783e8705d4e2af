//! Questions about addresses that are under way.

use std::collections::VecDeque;

use tables::PinSet;

use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::explain::explanation::{Address, Explanation};
use crate::read::reads::FoundFrame;

/// Questions under way, in the order in which they came.
#[derive(Default)]
pub(crate) struct Explaining {
    pub(crate) questions: VecDeque<Question>,
    /// The first one's frame is on its way.
    pub(crate) reading: bool,
}

/// A question, and how far its answer has come.
pub(crate) struct Question {
    pub(crate) volume: String,
    pub(crate) address: Address,
    pub(crate) done: Done<Explanation>,
    pub(crate) pins: PinSet,
    pub(crate) frame: Option<FoundFrame>,
}

impl Explaining {
    pub(crate) fn any(&self) -> bool {
        !self.questions.is_empty()
    }

    pub(crate) fn fail(&mut self, error: &RequestError) {
        self.questions.drain(..).for_each(|question| question.done.fail(error.clone()));
    }
}
