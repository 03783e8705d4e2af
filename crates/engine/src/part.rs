//! What the loop asks of each part of a running engine (decision 076).

use crate::core::Core;
use crate::door::error::RequestError;

/// A part of the engine: it owns its state, works on [`Core`], and calls no other part.
///
/// The loop moves it on by a method of its own, `advance`, and hands it what it waits for: a frame
/// that was read, the answer of a worker. What a part needs of another one is a parameter there.
pub(crate) trait Part {
    /// Answers all that is under way with `error`: the store is fenced, or the engine ends.
    fn fail(&mut self, error: &RequestError);

    /// Whether nothing is under way: a close waits for it.
    fn is_idle(&self, core: &Core) -> bool;

    /// Asserts the part's invariants.
    fn check(&self, core: &Core);
}
