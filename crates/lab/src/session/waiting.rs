//! Requests that have no answer yet, and what it has to be.

use crate::range::Range;
use crate::session::doubt::Changed;

/// A request without an answer.
pub(crate) enum Waiting {
    /// It must end well.
    Plain,
    /// The same, and it changes nothing.
    Look,
    /// It must end well; these are what it changes, or none for a flush.
    Change(Changed),
    /// The last of all: once it has ended well, all before it has.
    Close,
    /// It must be refused, for this.
    Refused(Why),
    /// A range of a volume, read after so many effects.
    Read(Range, usize),
    Extents(Range, usize),
    /// A step of a scrub, with fingerprints or without, and how many are to follow it: on a sound
    /// disk it finds nothing.
    Scrub(bool, u32),
    /// A step of collection, of either kind.
    Collect(bool),
    /// A growth to so many containers at least, which the disk may have no room for.
    Growth(u64),
    /// A step by which a data zone becomes emptier, and how many are to follow it.
    Evacuate(u16, u32),
    /// A data zone that is taken out.
    Retire(u16),
}

/// Why a request cannot be.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    ReadOnly,
    OutOfRange,
    VolumeExists,
    OtherDomain,
    Overlap,
}
