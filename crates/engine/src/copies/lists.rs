//! Chunks that need a second copy, and chunks whose frames seem damaged: what parts note, and
//! copying works off. The lists are bounded; what a full list forgets is met again.

use std::collections::BTreeSet;

use format::units::Pbn;

/// Chunks on each list at most.
const LISTED_MAX: usize = 4096;

/// What is to be copied, and what is to be looked at.
#[derive(Default)]
pub(crate) struct CopyLists {
    wanted: BTreeSet<Pbn>,
    /// Those among them that have a copy, which a device did not give.
    unread: BTreeSet<Pbn>,
    suspects: BTreeSet<Pbn>,
}

impl CopyLists {
    /// The chunk needs a second copy.
    pub(crate) fn want(&mut self, pbn: Pbn) {
        if self.wanted.len() < LISTED_MAX {
            self.wanted.insert(pbn);
        }
    }

    /// A device did not give the chunk's second copy: it needs another, and keeps this one so long.
    pub(crate) fn want_another(&mut self, pbn: Pbn) {
        self.want(pbn);
        if self.wanted.contains(&pbn) {
            self.unread.insert(pbn);
        }
    }

    /// Whether the chunk needs a second copy although it has one.
    pub(crate) fn needs_another(&self, pbn: Pbn) -> bool {
        self.unread.contains(&pbn)
    }

    /// The chunk's frame seems damaged, and it has a second copy.
    pub(crate) fn suspect(&mut self, pbn: Pbn) {
        if self.suspects.len() < LISTED_MAX {
            self.suspects.insert(pbn);
        }
    }

    /// What is listed to be stored twice is met again some time.
    pub(crate) fn want_nothing(&mut self) {
        self.wanted.clear();
        self.unread.clear();
    }

    /// Whether it is not known yet what a suspected frame is worth.
    pub(crate) fn is_suspect(&self, pbn: Pbn) -> bool {
        self.suspects.contains(&pbn)
    }

    /// Whether nothing is listed.
    pub(crate) fn is_empty(&self) -> bool {
        self.wanted.is_empty() && self.suspects.is_empty()
    }

    /// The first chunk whose frame seems damaged.
    pub(crate) fn first_suspect(&self) -> Option<Pbn> {
        self.suspects.first().copied()
    }

    /// The first chunk that needs a copy.
    pub(crate) fn first_wanted(&self) -> Option<Pbn> {
        self.wanted.first().copied()
    }

    /// It is known what the chunk's frame is worth.
    pub(crate) fn end_suspicion(&mut self, pbn: Pbn) {
        self.suspects.remove(&pbn);
    }

    /// The chunk has what it needs, or gets nothing.
    pub(crate) fn end_want(&mut self, pbn: Pbn) {
        self.wanted.remove(&pbn);
        self.unread.remove(&pbn);
    }
}
