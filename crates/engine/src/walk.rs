//! Walks over maps that people ask for: in steps, beside all else.
//!
//! Like a scrub, a walk is kept in nobody's mind: whoever wants one asks for step after step, each
//! from where the one before ended. A step is taken up again whenever pages that it waited for have
//! come, and lets others have their turn after a few leaves: clients do not wait for it.

pub(crate) mod compare;
pub(crate) mod difference;
pub(crate) mod seeking;
pub(crate) mod walks;
pub(crate) mod weigh;
pub(crate) mod weight;

use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::door::outcome::Reply;
use crate::engine::Engine;
use crate::pages::absence::lacking_page;
use crate::pages::wanted::Wanted;
use crate::walk::walks::{Walk, WalkUnderWay, Went};

impl Engine {
    /// Takes a walk's step up, unless it cannot be begun.
    pub(crate) fn accept_walk(&mut self, begun: Result<Walk, RequestError>, done: Done) {
        match begun {
            Ok(walk) => {
                let pins = Default::default();
                self.walks.waiting.push_back(WalkUnderWay { walk, done, pins });
            }
            Err(error) => done.fail(error),
        }
    }

    /// Moves the first walk on.
    pub(crate) fn advance_walks(&mut self) -> bool {
        let Some(mut under_way) = self.walks.waiting.pop_front() else { return false };
        let mut wanted = Wanted::default();
        let went = match &mut under_way.walk {
            Walk::Difference(walk) => self.walk_difference(walk, &mut wanted),
            Walk::Weight(walk) => self.walk_weight(walk, &mut wanted),
        };
        self.hold_in(&mut under_way.pins, wanted);
        if let Ok(Went::Waits | Went::On) = went {
            self.walks.waiting.push_front(under_way);
            return went == Ok(Went::On);
        }
        let WalkUnderWay { walk, done, pins } = under_way;
        self.state.store.release_pins(pins);
        done.finish(match went {
            Err(error) => Err(lacking_page(&error)),
            Ok(_) => Ok(match walk {
                Walk::Difference(walk) => Reply::Difference(Box::new(walk.step)),
                Walk::Weight(walk) => Reply::Weight(Box::new(walk.into_step())),
            }),
        });
        true
    }
}
