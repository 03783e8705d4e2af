//! How two copies meet: a table, decided by the primary.
//!
//! | the secondary | meeting |
//! |---|---|
//! | holds a mixture | compare |
//! | is in the primary's sequence, the ring has what follows | catch up |
//! | is where the primary was when it was opened, the ring has all since | catch up |
//! | is further in that sequence, and nothing was changed since | take back what the primary lost |
//! | anything else | compare |

use format::replication::Position;
use mutants::mutant;

use crate::ring::Ring;

/// What a primary has.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// What its volume held when it was opened.
    pub opened_at: Position,
    /// The record of this number may be in the volume in part; that of `opened_at`: none is.
    pub begun: u64,
    /// The sequence of this opening; none: nothing was changed since.
    pub now: Option<Position>,
    /// A write failed in a way that nobody knows what the volume holds.
    pub is_unknown: bool,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// Send what follows this record.
    CatchUp {
        /// Its number.
        behind: u64,
    },
    /// Ask for what follows this record, up to that of the secondary.
    TakeBack {
        /// Its number.
        behind: u64,
        /// The last that the secondary has.
        up_to: u64,
    },
    /// Compare everything.
    Compare,
}

/// What two copies do that meet.
#[must_use]
pub fn meet(held: &Held, ring: &Ring, secondary: &Position, is_consistent: bool) -> Meeting {
    if !is_consistent || held.is_unknown {
        return Meeting::Compare;
    }
    let behind = secondary.sequence;
    let covers = ring.covers(behind) || mutant!(CatchesUpOverAGap);
    if held.now.is_some_and(|now| now.is_beside(secondary)) {
        return if covers { Meeting::CatchUp { behind } } else { Meeting::Compare };
    }
    if !held.opened_at.is_beside(secondary) {
        return Meeting::Compare;
    }
    let Held { opened_at, begun, .. } = *held;
    match behind.cmp(&opened_at.sequence) {
        std::cmp::Ordering::Less => Meeting::Compare,
        // Part of a record may be here that the secondary never got.
        std::cmp::Ordering::Equal if begun != behind => Meeting::Compare,
        std::cmp::Ordering::Equal if covers => Meeting::CatchUp { behind },
        std::cmp::Ordering::Equal => Meeting::Compare,
        std::cmp::Ordering::Greater if held.now.is_none() && !mutant!(TakesNothingBack) => {
            Meeting::TakeBack { behind: opened_at.sequence, up_to: behind }
        }
        std::cmp::Ordering::Greater => Meeting::Compare,
    }
}

#[cfg(test)]
mod tests {
    use format::replication::{Change, Position};

    use super::{Held, Meeting, meet};
    use crate::ring::Ring;

    const OPENED: Position = Position { epoch: 1, life: 5, sequence: 10 };

    fn held(now: Option<u64>) -> Held {
        let now = now.map(|sequence| Position { epoch: 1, life: 6, sequence });
        Held { opened_at: OPENED, begun: 10, now, is_unknown: false }
    }

    #[test]
    fn each_row_of_the_table() {
        let mut ring = Ring::new(10, 1 << 20);
        let at = |life, sequence| Position { epoch: 1, life, sequence };
        let opened = held(None);
        assert_eq!(meet(&opened, &ring, &at(5, 10), true), Meeting::CatchUp { behind: 10 });
        assert_eq!(
            meet(&opened, &ring, &at(5, 12), true),
            Meeting::TakeBack { behind: 10, up_to: 12 }
        );
        assert_eq!(meet(&opened, &ring, &at(5, 9), true), Meeting::Compare);
        assert_eq!(meet(&opened, &ring, &at(5, 10), false), Meeting::Compare);
        assert_eq!(meet(&opened, &ring, &at(4, 10), true), Meeting::Compare);
        let torn = Held { begun: 11, ..opened };
        assert_eq!(meet(&torn, &ring, &at(5, 10), true), Meeting::Compare);
        assert_eq!(
            meet(&torn, &ring, &at(5, 11), true),
            Meeting::TakeBack { behind: 10, up_to: 11 }
        );
        ring.push(Change::InStep);
        let running = held(Some(11));
        for (secondary, meeting) in [
            (at(6, 10), Meeting::CatchUp { behind: 10 }),
            (at(6, 11), Meeting::CatchUp { behind: 11 }),
            (at(5, 10), Meeting::CatchUp { behind: 10 }),
            (at(6, 9), Meeting::Compare),
            (at(5, 11), Meeting::Compare),
            (Position { epoch: 2, ..at(6, 11) }, Meeting::Compare),
        ] {
            assert_eq!(meet(&running, &ring, &secondary, true), meeting, "{secondary:?}");
        }
        let unknown = Held { is_unknown: true, ..running };
        assert_eq!(meet(&unknown, &ring, &at(6, 11), true), Meeting::Compare);
    }
}
