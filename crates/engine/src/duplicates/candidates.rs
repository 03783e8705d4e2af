//! What a chunk may be a duplicate of, and what comparing both has come to.

use format::units::Pbn;

/// What has a chunk's fingerprint.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Candidate {
    /// A chunk that is stored, or is on its way and has its PBN.
    Chunk(Pbn),
    /// An earlier slot of the same group, of a chunk that is new.
    Slot(usize),
}

/// What comparing a slot with its candidate has come to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Compared {
    pub(crate) with: Candidate,
    pub(crate) outcome: Outcome,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It has not begun.
    Due,
    /// Bytes are on their way, or workers have them.
    UnderWay,
    /// Every byte is the same.
    Equal,
    /// Some are not.
    Differs,
    /// The candidate's frame is damaged.
    Damaged,
    /// The candidate cannot be read.
    Unreadable,
    /// The candidate has as many references as can be counted.
    Full,
}
