//! Pages that work cannot go on without, and that cannot be had.
//!
//! A *damaged* page stays so: what needs it stops the writing. What the device *failed to give* it
//! may give a moment later, when another path has taken over or a controller has come back. So
//! that work waits and tries again at every tick ([`tables::PageStore::retry_unreadable`]); the
//! writing stops only if it fails still after some seconds. Nothing is lost by waiting: what is
//! acknowledged is in the journal or the write buffer, which bounds what is taken meanwhile. A
//! request that only looks is told at once.

use format::units::{Zone, block_offset_bytes};
use tables::PageError;

use crate::door::error::RequestError;
use crate::zone_name;

/// Ticks from a first failure on after which the next one stops the writing.
const TICKS_WAITED_MAX: u32 = 50;
/// Ticks without a failure after which the next is a first one. A bad sector takes a disk seconds
/// each time it is asked for.
const TICKS_FORGOTTEN: u32 = 300;

/// For how long work has had to wait for a page that the device fails to give.
#[derive(Default)]
pub(crate) struct Absence {
    since: Option<Since>,
}

#[derive(Default)]
struct Since {
    first_ticks: u32,
    last_ticks: u32,
}

/// What work does about such a page.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Advice {
    /// Wait: it is the first failure.
    Begin,
    Wait,
    GiveUp,
}

impl Absence {
    pub(crate) fn tick(&mut self) {
        if let Some(since) = &mut self.since {
            since.first_ticks += 1;
            since.last_ticks += 1;
            if since.last_ticks >= TICKS_FORGOTTEN {
                self.since = None;
            }
        }
    }

    /// Work has met such a page.
    pub(crate) fn met(&mut self) -> Advice {
        let Some(since) = &mut self.since else {
            self.since = Some(Since::default());
            return Advice::Begin;
        };
        since.last_ticks = 0;
        if since.first_ticks < TICKS_WAITED_MAX { Advice::Wait } else { Advice::GiveUp }
    }
}

/// What a page that cannot be had means to a request.
pub(crate) fn lacking_page(error: &PageError) -> RequestError {
    match error {
        PageError::Unreadable { block, .. } => RequestError::ReadFailed {
            zone: zone_name(Zone::Tables),
            offset_bytes: block_offset_bytes(*block),
        },
        error => {
            let id = error.page();
            RequestError::DamagedTable { tree: id.tree.0, index: id.index }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Absence, Advice, TICKS_FORGOTTEN, TICKS_WAITED_MAX};

    #[test]
    fn what_fails_for_too_long_is_given_up() {
        let mut absence = Absence::default();
        assert_eq!(absence.met(), Advice::Begin);
        for _ in 0..TICKS_WAITED_MAX {
            assert_eq!(absence.met(), Advice::Wait);
            absence.tick();
        }
        assert_eq!(absence.met(), Advice::GiveUp);
    }

    #[test]
    fn a_failure_long_after_another_is_a_first_one() {
        let mut absence = Absence::default();
        absence.met();
        (0..TICKS_FORGOTTEN).for_each(|_| absence.tick());
        assert_eq!(absence.met(), Advice::Begin);
        (1..TICKS_FORGOTTEN).for_each(|_| absence.tick());
        assert_eq!(absence.met(), Advice::GiveUp, "it is slow to fail");
    }
}
