//! Whether the kernel still takes what lies in the ring.
//!
//! ```text
//!   pushed ──> untaken ──(io_uring_enter: Ok)──> taken: the kernel answers it
//!                 │ REFUSALS_MAX refusals in a row
//!                 └──> ring lost: it is never entered again; who owns the ring does these himself
//! ```
//!
//! `io_uring_enter` may be refused for a moment (no memory) or from some moment on (a filter of
//! system calls that a service manager sets). One refusal does not tell which it is, so that they
//! are counted, with a pause after each. The invariant behind a lost ring: the kernel looks at what
//! lies in the ring only while it is entered, so what it has not taken by then it never takes, and
//! its buffers are ours again.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};

/// Refusals in a row after which the kernel is not asked again, each followed by a pause of 1 ms.
const REFUSALS_MAX: u32 = 1000;

/// What the kernel made of being asked.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entered {
    /// It took something, or waited as it was to.
    Done,
    /// It is to be asked again after a pause.
    NotNow,
    /// It is not asked again.
    Lost,
}

/// The slots whose entries the kernel has not taken yet, in the order of the ring.
#[derive(Debug, Default)]
pub(crate) struct Entering {
    untaken: VecDeque<usize>,
    refusals: u32,
}

impl Entering {
    /// The entry of this slot lies in the ring behind all others.
    pub(crate) fn pushed(&mut self, slot: usize) {
        self.untaken.push_back(slot);
    }

    /// The kernel was entered and answered so; it has left `untaken` entries in the ring.
    pub(crate) fn entered(&mut self, answer: &io::Result<usize>, untaken: usize) -> Entered {
        while self.untaken.len() > untaken {
            self.untaken.pop_front();
        }
        match answer {
            Ok(_) => {
                self.refusals = 0;
                Entered::Done
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Entered::NotNow,
            Err(_) => {
                self.refusals += 1;
                if self.is_lost() { Entered::Lost } else { Entered::NotNow }
            }
        }
    }

    /// Whether the ring must not be entered any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.refusals >= REFUSALS_MAX
    }

    /// The slots that the kernel never takes, once the ring is lost.
    pub(crate) fn never_taken(&mut self) -> VecDeque<usize> {
        assert!(self.is_lost(), "what lies in a ring that is entered is the kernel's");
        std::mem::take(&mut self.untaken)
    }

    #[cfg(test)]
    pub(crate) fn lose(&mut self) {
        self.refusals = REFUSALS_MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> io::Result<usize> {
        Err(ErrorKind::PermissionDenied.into())
    }

    #[test]
    fn a_ring_is_lost_after_refusals_in_a_row_and_interruptions_are_none() {
        let mut entering = Entering::default();
        for _ in 1..REFUSALS_MAX {
            assert_eq!(entering.entered(&refused(), 0), Entered::NotNow);
        }
        assert_eq!(entering.entered(&Ok(1), 0), Entered::Done);
        for _ in 1..REFUSALS_MAX {
            assert_eq!(entering.entered(&refused(), 0), Entered::NotNow);
            let interrupted = Err(ErrorKind::Interrupted.into());
            assert_eq!(entering.entered(&interrupted, 0), Entered::NotNow);
        }
        assert!(!entering.is_lost());
        assert_eq!(entering.entered(&refused(), 0), Entered::Lost);
        assert!(entering.is_lost());
    }

    #[test]
    fn the_slots_that_were_not_taken_are_the_last_that_were_pushed() {
        let mut entering = Entering::default();
        (0..5).for_each(|slot| entering.pushed(slot));
        assert_eq!(entering.entered(&Ok(3), 2), Entered::Done);
        entering.pushed(9);
        entering.lose();
        assert_eq!(entering.never_taken(), [3, 4, 9]);
        assert_eq!(entering.never_taken(), []);
    }
}
