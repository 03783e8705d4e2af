//! Sealed containers by what lives in them and how long they have.
//!
//! The collector wants the container that gives the most room for the least work, now and later:
//! one that has lost much, or one so old that what it has left will stay. The measure is that of
//! log-structured file systems (Rosenblum and Ousterhout 1992, section 3.6): room gained times age,
//! for each byte read and written. Its point: a young container is losing chunks by itself, and to
//! wait is cheaper than to move them.
//!
//! There are perhaps millions of containers, and every chunk that dies or comes back to life
//! changes the figure of one. So they are sorted coarsely, into classes by the share that lives: a
//! change rarely moves a container to another class, and in its class the oldest is always the
//! best. Only these are compared.

use crate::compaction::{SealedUse, WorthIt, is_worth_it};
use std::collections::BTreeSet;
use std::ops::Range;

/// Beside the first, which is of containers in which nothing lives.
const CLASSES: u64 = 64;
/// The class of those that are not worth it ([`crate::compaction`]). They are in no other, so that
/// none of them stands before one that is.
const NOT_WORTH_IT: usize = CLASSES as usize;

/// Which containers are in which class. Their figures are the owner's; it gives them with every
/// call.
pub(crate) struct Emptiness {
    /// By sequence, and number.
    classes: [BTreeSet<(u32, u32)>; CLASSES as usize + 1],
    /// Those of them that are worth collecting.
    worth_it: WorthIt,
    usable_bytes: u64,
}

impl Emptiness {
    /// `usable_bytes` is what an empty container surely takes.
    pub(crate) fn new(usable_bytes: u64) -> Self {
        let classes = [const { BTreeSet::new() }; CLASSES as usize + 1];
        Self { classes, worth_it: WorthIt::default(), usable_bytes }
    }

    pub(crate) fn insert(&mut self, container: u32, sealed: &SealedUse) {
        let class = self.class_of(sealed);
        self.classes[class].insert((sealed.sequence, container));
        self.add(class, sealed);
    }

    /// `sealed` is what it was inserted or moved with last.
    pub(crate) fn remove(&mut self, container: u32, sealed: &SealedUse) {
        let class = self.class_of(sealed);
        self.classes[class].remove(&(sealed.sequence, container));
        self.take_off(class, sealed);
    }

    /// The live bytes of a container have changed.
    pub(crate) fn change(&mut self, container: u32, before: &SealedUse, after: &SealedUse) {
        let class = self.class_of(before);
        if class != self.class_of(after) {
            self.remove(container, before);
            return self.insert(container, after);
        }
        self.take_off(class, before);
        self.add(class, after);
    }

    fn class_of(&self, sealed: &SealedUse) -> usize {
        class_of(sealed, self.usable_bytes)
    }

    fn add(&mut self, class: usize, sealed: &SealedUse) {
        if class != NOT_WORTH_IT {
            self.worth_it.add(sealed);
        }
    }

    fn take_off(&mut self, class: usize, sealed: &SealedUse) {
        if class != NOT_WORTH_IT {
            self.worth_it.take_off(sealed);
        }
    }

    /// What collecting all that is worth it would give back.
    pub(crate) fn gives_back_bytes(&self) -> u64 {
        self.worth_it.gives_back_bytes()
    }

    /// The oldest container in which nothing lives.
    pub(crate) fn oldest_dead(&self) -> Option<u32> {
        self.classes[0].first().map(|&(_, container)| container)
    }

    /// The oldest container, dead ones included, of those with these sequence numbers.
    pub(crate) fn oldest_in(&self, sequences: Range<u32>) -> Option<u32> {
        if sequences.is_empty() {
            return None;
        }
        let within = (sequences.start, 0)..(sequences.end, 0);
        let oldest = |class: &BTreeSet<(u32, u32)>| class.range(within.clone()).next().copied();
        self.classes.iter().filter_map(oldest).min().map(|(_, container)| container)
    }

    /// The oldest container of each class of those that are worth it, the emptiest first.
    pub(crate) fn oldest_of_classes(&self) -> impl Iterator<Item = u32> {
        let worth_it = &self.classes[..NOT_WORTH_IT];
        worth_it.iter().filter_map(|class| class.first()).map(|&(_, container)| container)
    }
}

pub(crate) fn class_of(sealed: &SealedUse, usable_bytes: u64) -> usize {
    let SealedUse { live_bytes, used_bytes, .. } = *sealed;
    if !is_worth_it(sealed, usable_bytes) {
        return NOT_WORTH_IT;
    }
    let share = (u64::from(live_bytes) * CLASSES).div_ceil(u64::from(used_bytes).max(1));
    share.min(CLASSES - 1) as usize
}

/// What collecting a container is worth: the share gained times age, by shares read and written.
/// `age` is in containers opened since.
pub(crate) fn worth(sealed: &SealedUse, age: u32) -> f64 {
    let lives = f64::from(sealed.live_bytes) / f64::from(sealed.used_bytes.max(1));
    (1.0 - lives) * (f64::from(age) + 1.0) / (1.0 + lives)
}
