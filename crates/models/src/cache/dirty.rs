//! Dirty pages that may not leave, as in the page store (`tables/src/store/cleaning.rs`): when they
//! are too many, cold ones are written, oldest change first.

use std::collections::VecDeque;

use super::policy::Moved;

/// Dirty pages that are written at once.
const CLEAN_PAGES: usize = 64;
/// Dirty pages that are looked at for each one that is written.
const LOOKS_PER_PAGE: usize = 4;

pub(super) struct DirtyPages {
    /// By their oldest change.
    queue: VecDeque<u32>,
    dirty: Vec<bool>,
    dirty_max: usize,
    batch: usize,
}

impl DirtyPages {
    /// At most `dirty_max` of the cache's pages, which are fewer than it has room for.
    pub(super) fn new(capacity: usize, pages: usize, dirty_max: usize) -> Self {
        let batch = CLEAN_PAGES.min(capacity / 4).max(1);
        Self { queue: VecDeque::new(), dirty: vec![false; pages], dirty_max, batch }
    }

    pub(super) fn holds(&self, page: u32) -> bool {
        self.dirty[page as usize]
    }

    pub(super) fn remove(&mut self, page: u32) {
        if std::mem::take(&mut self.dirty[page as usize]) {
            self.queue.retain(|&other| other != page);
        }
    }

    pub(super) fn add(&mut self, page: u32) {
        if !std::mem::replace(&mut self.dirty[page as usize], true) {
            self.queue.push_back(page);
        }
    }

    /// Writes cold pages when too many are dirty; one that is not cold rather than none.
    pub(super) fn clean(&mut self, mut is_wanted: impl FnMut(u32) -> bool, moved: &mut Moved) {
        if self.queue.len() <= self.dirty_max {
            return;
        }
        let mut cleaned = 0;
        for look in (0..self.batch * LOOKS_PER_PAGE).rev() {
            let Some(page) = self.queue.pop_front() else { return };
            if is_wanted(page) && (look > 0 || cleaned > 0) {
                self.queue.push_back(page);
                continue;
            }
            self.dirty[page as usize] = false;
            moved.cleaned.push(page);
            cleaned += 1;
            if cleaned == self.batch {
                return;
            }
        }
    }
}
