//! Queues of entries, linked through their numbers: an entry is in one queue, and leaves it from
//! anywhere in no time.

pub(super) const NONE: u32 = u32::MAX;

/// Neighbours of an entry in its queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    pub(super) newer: u32,
    pub(super) older: u32,
}

impl Links {
    pub(super) const ALONE: Self = Self { newer: NONE, older: NONE };
}

/// Who has the links of all entries.
pub(super) trait Linked {
    fn links(&mut self, number: u32) -> &mut Links;
}

/// Entries from the newest to the oldest.
#[derive(Debug)]
pub(super) struct Queue {
    newest: u32,
    oldest: u32,
    pub(super) bytes: usize,
}

impl Queue {
    pub(super) const EMPTY: Self = Self { newest: NONE, oldest: NONE, bytes: 0 };

    pub(super) fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// The entry, which is in no queue, is the newest.
    pub(super) fn push(&mut self, all: &mut impl Linked, number: u32, bytes: usize) {
        *all.links(number) = Links { newer: NONE, older: self.newest };
        match self.newest {
            NONE => self.oldest = number,
            newest => all.links(newest).newer = number,
        }
        self.newest = number;
        self.bytes += bytes;
    }

    /// The entry, which is in this queue, leaves it.
    pub(super) fn remove(&mut self, all: &mut impl Linked, number: u32, bytes: usize) {
        let Links { newer, older } = std::mem::replace(all.links(number), Links::ALONE);
        match newer {
            NONE => self.newest = older,
            newer => all.links(newer).older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => all.links(older).newer = newer,
        }
        self.bytes -= bytes;
    }
}
