//! The queue of PBNs that name nothing any more: first freed, first handed out.

use format::map_page::{self, SLOTS};
use format::units::{Pbn, TreeId};

use crate::error::PageError;
use crate::page_store::{PageRead, PageStore, PinSet};

/// Places from `head` up to `tail`, counted from the store's beginning.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct FreePbns {
    head: u64,
    tail: u64,
}

fn place(at: u64) -> (u64, usize) {
    (at / SLOTS as u64, (at % SLOTS as u64) as usize)
}

impl FreePbns {
    /// The queue as a root names it.
    #[must_use]
    pub fn new(head: u64, tail: u64) -> Self {
        Self { head, tail }
    }

    /// The place handed out next.
    #[must_use]
    pub fn head(&self) -> u64 {
        self.head
    }

    /// The place filled next.
    #[must_use]
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// Names the pages of the next `count` PBNs.
    ///
    /// # Errors
    /// [`PageError`] when one is damaged.
    pub fn want_pop(
        &self,
        store: &mut PageStore,
        pins: &mut PinSet,
        count: u64,
        reads: &mut Vec<PageRead>,
    ) -> Result<bool, PageError> {
        self.want_places(store, pins, self.head, (self.head + count).min(self.tail), reads)
    }

    /// Names the pages that `count` more PBNs will fill.
    ///
    /// # Errors
    /// [`PageError`] when one is damaged.
    pub fn want_push(
        &self,
        store: &mut PageStore,
        pins: &mut PinSet,
        count: u64,
        reads: &mut Vec<PageRead>,
    ) -> Result<bool, PageError> {
        self.want_places(store, pins, self.tail, self.tail + count, reads)
    }

    fn want_places(
        &self,
        store: &mut PageStore,
        pins: &mut PinSet,
        from: u64,
        to: u64,
        reads: &mut Vec<PageRead>,
    ) -> Result<bool, PageError> {
        let mut here = true;
        if from < to {
            for leaf in place(from).0..=place(to - 1).0 {
                here &= store.want(pins, TreeId::FREE_PBNS, leaf, reads)?;
            }
        }
        Ok(here)
    }

    /// The PBN `ahead` places behind the head.
    #[must_use]
    pub fn peek(&self, store: &PageStore, ahead: u64) -> Option<Pbn> {
        let at = self.head + ahead;
        let (leaf, slot) = place(at);
        let page = if at < self.tail { store.page(TreeId::FREE_PBNS, leaf)? } else { return None };
        Some(map_page::get(page, slot))
    }

    /// Takes the PBN at the head out.
    pub fn pop(&mut self, store: &mut PageStore) {
        debug_assert!(self.head < self.tail, "popped from an empty queue");
        self.head += 1;
        let (leaf, slot) = place(self.head);
        if slot == 0 {
            store.remove_page(TreeId::FREE_PBNS, leaf - 1);
        }
    }

    /// Puts a PBN in at the tail.
    pub fn push(&mut self, store: &mut PageStore, pbn: Pbn) {
        let (leaf, slot) = place(self.tail);
        map_page::set(store.page_mut(TreeId::FREE_PBNS, leaf), slot, pbn);
        self.tail += 1;
    }
}
