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
use crate::engine::Engine;
use crate::pages::absence::lacking_page;
use crate::pages::wanted::Wanted;
use crate::walk::difference::DifferenceRequest;
use crate::walk::walks::{Walk, WalkUnderWay, Went};
use crate::walk::weight::WeightRequest;

impl Engine {
    /// Takes a step of a comparison up, unless it cannot be begun.
    pub(crate) fn accept_difference(&mut self, asked: Asked<DifferenceRequest>) {
        let Asked { verb, done } = asked;
        match self.begin_difference(&verb) {
            Ok(walk) => self.accept_walk(Walk::Difference(walk, done)),
            Err(error) => done.fail(error),
        }
    }

    /// Takes a step of a weighing up, unless it cannot be begun.
    pub(crate) fn accept_weight(&mut self, asked: Asked<WeightRequest>) {
        let Asked { verb, done } = asked;
        match self.begin_weighing(verb) {
            Ok(walk) => self.accept_walk(Walk::Weight(walk, done)),
            Err(error) => done.fail(error),
        }
    }

    fn accept_walk(&mut self, walk: Walk) {
        self.walks.waiting.push_back(WalkUnderWay { walk, pins: Default::default() });
    }

    /// Moves the first walk on.
    pub(crate) fn advance_walks(&mut self) -> bool {
        let Some(mut under_way) = self.walks.waiting.pop_front() else { return false };
        let mut wanted = Wanted::default();
        let went = match &mut under_way.walk {
            Walk::Difference(walk, _) => self.walk_difference(walk, &mut wanted),
            Walk::Weight(walk, _) => self.walk_weight(walk, &mut wanted),
        };
        self.hold_in(&mut under_way.pins, wanted);
        if let Ok(Went::Waits | Went::On) = went {
            self.walks.waiting.push_front(under_way);
            return went == Ok(Went::On);
        }
        let WalkUnderWay { walk, pins } = under_way;
        self.core.state.store.release_pins(pins);
        walk.finish(went.map(|_| ()).map_err(|error| lacking_page(&error)));
        true
    }
}
