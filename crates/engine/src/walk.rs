//! Walks over maps that people ask for: in steps, beside all else.
//!
//! Like a scrub, a walk is kept in nobody's mind: the caller asks for step after step, each
//! from where the one before ended. A step is taken up again whenever pages that it waited for have
//! come, and lets others have their turn after a few leaves: clients do not wait for it.

pub(crate) mod compare;
pub(crate) mod difference;
pub(crate) mod seeking;
pub(crate) mod walks;
pub(crate) mod weigh;
pub(crate) mod weight;

use crate::control::Asked;
use crate::core::Core;
use crate::door::error::RequestError;
use crate::pages::absence::lacking_page;
use crate::pages::wanted::Wanted;
use crate::part::Part;
use crate::walk::difference::{DifferenceRequest, DifferenceWalk};
use crate::walk::walks::{Walk, WalkUnderWay, Walks, Went};
use crate::walk::weight::{WeightRequest, WeightWalk};

impl Walks {
    /// Takes a step of a comparison up, unless it cannot be begun.
    pub(crate) fn accept_difference(&mut self, core: &Core, asked: Asked<DifferenceRequest>) {
        let Asked { verb, done } = asked;
        match DifferenceWalk::begin(core, &verb) {
            Ok(walk) => self.accept(Walk::Difference(walk, done)),
            Err(error) => done.fail(error),
        }
    }

    /// Takes a step of a weighing up, unless it cannot be begun.
    pub(crate) fn accept_weight(&mut self, core: &Core, asked: Asked<WeightRequest>) {
        let Asked { verb, done } = asked;
        match WeightWalk::begin(core, verb) {
            Ok(walk) => self.accept(Walk::Weight(walk, done)),
            Err(error) => done.fail(error),
        }
    }

    fn accept(&mut self, walk: Walk) {
        self.waiting.push_back(WalkUnderWay { walk, pins: Default::default() });
    }

    /// Moves the first walk on.
    pub(crate) fn advance(&mut self, core: &mut Core) -> bool {
        let Some(mut under_way) = self.waiting.pop_front() else { return false };
        let mut wanted = Wanted::default();
        let went = match &mut under_way.walk {
            Walk::Difference(walk, _) => walk.advance(core, &mut wanted),
            Walk::Weight(walk, _) => walk.advance(core, &mut wanted),
        };
        core.hold_in(&mut under_way.pins, wanted);
        if let Ok(Went::Waits | Went::On) = went {
            self.waiting.push_front(under_way);
            return went == Ok(Went::On);
        }
        let WalkUnderWay { walk, pins } = under_way;
        core.state.store.release_pins(pins);
        walk.finish(went.map(|_| ()).map_err(|error| lacking_page(&error)));
        true
    }
}

impl Part for Walks {
    fn fail(&mut self, error: &RequestError) {
        self.waiting.drain(..).for_each(|under_way| under_way.walk.finish(Err(error.clone())));
    }

    fn is_idle(&self, _core: &Core) -> bool {
        self.waiting.is_empty()
    }

    fn check(&self, _core: &Core) {
        let mut others = self.waiting.iter().skip(1);
        assert!(
            others.all(|walk| walk.pins.is_empty()),
            "OnePending: only the first walk holds pages"
        );
    }
}
