//! What the loop does with each part of a running engine (decision 076).

use crate::core::Core;
use crate::door::error::RequestError;

/// A part of the engine: it owns its state, works on [`Core`], and calls no other part.
///
/// What a part waits for, a frame that was read or the answer of a worker, is given to it by a
/// method of its own.
pub(crate) trait Part {
    /// Does what can be done now; true if anything moved.
    fn advance(&mut self, core: &mut Core) -> bool;

    /// Answers all that is under way with `error`: the store is fenced, or the engine ends.
    fn fail(&mut self, error: &RequestError);

    /// Whether nothing is under way: a close waits for it.
    fn is_idle(&self) -> bool;

    /// Asserts the part's invariants.
    fn check(&self, _core: &Core) {}
}

/// Moves a part on. Debug builds, and so all tests and the simulator, assert its invariants then.
pub(crate) fn advance<P: Part>(part: &mut P, core: &mut Core) -> bool {
    let moved = part.advance(core);
    if cfg!(debug_assertions) {
        part.check(core);
    }
    moved
}
