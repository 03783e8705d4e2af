//! How many pages a deletion asks for at a time: it gives way to clients' reads.
//!
//! Where chunks lie anywhere, one leaf of a map leads to hundreds of pages of the PBN-PBA table.
//! Were all of them asked for at once, a read that a client sends next would wait for them. So a
//! few are asked for, and the next when all of those have come. Each that was asked for since a
//! client's read last waited lets one more be asked for at a time: soon that is as many as there
//! are, and a read meets no more of them than went by while nobody read. Where somebody waits for
//! room, all are asked for at once.
//!
//! While nothing is on its way, some may be asked for: a deletion goes on, whatever clients do.

use tables::{PageRead, PageStore};

/// Pages that are asked for at a time beside clients' reads.
const PAGES_BESIDE_READS: usize = 4;

/// What a deletion has asked for, and how much it may.
#[derive(Default)]
pub(crate) struct DeletionPace {
    /// What was asked for and has not been seen to come.
    asked: Vec<PageRead>,
    /// Pages asked for since a client's read last waited.
    quiet_pages: usize,
}

impl DeletionPace {
    /// How many pages may be asked for now; none while others have to come first.
    pub(crate) fn may_ask(
        &mut self,
        store: &PageStore,
        clients_read: bool,
        room_is_wanted: bool,
    ) -> Option<usize> {
        if clients_read {
            self.quiet_pages = 0;
        }
        while self.asked.last().is_some_and(|read| !store.is_coming(read)) {
            self.asked.pop();
        }
        match room_is_wanted {
            true => Some(usize::MAX),
            false => self.asked.is_empty().then_some(PAGES_BESIDE_READS + self.quiet_pages),
        }
    }

    /// These were asked for.
    pub(crate) fn note(&mut self, reads: &[PageRead]) {
        self.asked.extend(reads);
        self.quiet_pages += reads.len();
    }
}
