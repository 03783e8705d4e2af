//! The queue of free PBNs: forgotten at the tail, handed out again at the head.
//!
//! Entry `n`, counted since the store was made, is slot `n % SLOTS` of leaf `n / SLOTS`. Head and
//! tail only grow; leaves before the head are removed. How far the head may go (a PBN is
//! handed out only after a checkpoint in which it is forgotten) is the engine's to know.

use format::map_page::{self, SLOTS};
use format::units::{Pbn, TreeId};

use crate::error::PageError;
use crate::store::{PageRead, PageStore, PinSet};

const TREE: TreeId = TreeId::FREE_PBNS;

/// Both ends of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreePbns {
    head: u64,
    tail: u64,
}

fn place(entry: u64) -> (u64, usize) {
    (entry / SLOTS as u64, (entry % SLOTS as u64) as usize)
}

impl FreePbns {
    /// The queue as a root knows it.
    #[must_use]
    pub fn new(head: u64, tail: u64) -> Self {
        Self { head, tail }
    }

    /// Number of the entry that is handed out next.
    #[must_use]
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Number of the entry that is added next.
    #[must_use]
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// Entries in the queue.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.tail - self.head
    }

    /// Whether no PBN is free.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Asks for the leaves of the first `count` entries, as far as there are so many.
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
        let end = self.head.saturating_add(count).min(self.tail);
        want_entries(store, pins, self.head, end, reads)
    }

    /// Asks for the leaves in which the next `count` entries will stand.
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
        want_entries(store, pins, self.tail, self.tail.saturating_add(count), reads)
    }

    /// Adds a PBN; its place must have been wanted.
    pub fn push(&mut self, store: &mut PageStore, pbn: Pbn) {
        let (leaf, slot) = place(self.tail);
        map_page::set(store.page_mut(TREE, leaf), slot, pbn);
        self.tail += 1;
    }

    /// Takes the oldest PBN; its leaf must have been wanted.
    pub fn pop(&mut self, store: &mut PageStore) -> Option<Pbn> {
        let pbn = self.peek(store, 0)?;
        let (leaf, slot) = place(self.head);
        self.head += 1;
        if slot == SLOTS - 1 {
            store.remove_page(TREE, leaf);
        }
        Some(pbn)
    }

    /// The PBN that is handed out after `skip` others; its leaf must have been wanted.
    #[must_use]
    pub fn peek(&self, store: &PageStore, skip: u64) -> Option<Pbn> {
        let entry = self.head.checked_add(skip).filter(|&entry| entry < self.tail)?;
        let (leaf, slot) = place(entry);
        store.page(TREE, leaf).map(|page| map_page::get(page, slot))
    }
}

fn want_entries(
    store: &mut PageStore,
    pins: &mut PinSet,
    first: u64,
    end: u64,
    reads: &mut Vec<PageRead>,
) -> Result<bool, PageError> {
    let mut here = true;
    for leaf in place(first).0..end.div_ceil(SLOTS as u64) {
        here &= store.want(pins, TREE, leaf, reads)?;
    }
    Ok(here)
}
