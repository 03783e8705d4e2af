//! CLOCK, as the page store has it (`tables/src/store/eviction.rs`): a hand goes round, and spares
//! once what was wanted since it last passed.
//!
//! The page store lets no dirty page leave. It writes cold ones, oldest change first, when three
//! quarters of the pages are dirty (`store/cleaning.rs`); that is [`Clock::clean_only`], with this
//! share or another. The plain form writes what is dirty when it leaves.

use std::collections::VecDeque;

use super::policy::{Moved, Policy};

const VACANT: u32 = u32::MAX;
/// Dirty pages that are written at once.
const CLEAN_PAGES: usize = 64;
/// Dirty pages that are looked at for each one that is written.
const LOOKS_PER_PAGE: usize = 4;

#[derive(Copy, Clone, Default)]
struct State {
    held: bool,
    referenced: bool,
    dirty: bool,
    place: u32,
}

pub(super) struct Clock {
    ring: Vec<u32>,
    vacant: Vec<u32>,
    hand: usize,
    states: Vec<State>,
    capacity: usize,
    /// Dirty pages by their oldest change, and none of them may leave.
    dirty: Option<VecDeque<u32>>,
    dirty_max: usize,
}

impl Clock {
    pub(super) fn new(capacity: usize, pages: usize) -> Self {
        let states = vec![State::default(); pages];
        let (ring, vacant, dirty_max) = (Vec::new(), Vec::new(), capacity);
        Self { ring, vacant, hand: 0, states, capacity, dirty: None, dirty_max }
    }

    pub(super) fn clean_only(capacity: usize, pages: usize, dirty_max: usize) -> Self {
        Self { dirty: Some(VecDeque::new()), dirty_max, ..Self::new(capacity, pages) }
    }

    fn state(&mut self, page: u32) -> &mut State {
        &mut self.states[page as usize]
    }

    /// Goes on to a page that may leave, and lets it.
    fn evict(&mut self, moved: &mut Moved) {
        loop {
            let page = self.ring[self.hand];
            self.hand = if self.hand + 1 < self.ring.len() { self.hand + 1 } else { 0 };
            if page == VACANT || self.state(page).dirty {
                continue;
            }
            if !std::mem::take(&mut self.state(page).referenced) {
                self.remove(page);
                moved.left.push(page);
                return;
            }
        }
    }

    /// Writes cold dirty pages when too many are dirty; at least one, so that not all are.
    fn clean(&mut self, moved: &mut Moved) {
        let Some(dirty) = &mut self.dirty else { return };
        if dirty.len() <= self.dirty_max {
            return;
        }
        let batch = CLEAN_PAGES.min(self.capacity / 4).max(1);
        let mut cleaned = 0;
        let mut looks = batch * LOOKS_PER_PAGE;
        while cleaned < batch
            && let Some(page) = dirty.pop_front()
        {
            let state = &mut self.states[page as usize];
            if !state.dirty {
                continue;
            }
            looks = looks.saturating_sub(1);
            if std::mem::take(&mut state.referenced) && (looks > 0 || cleaned > 0) {
                dirty.push_back(page);
                if looks == 0 {
                    break;
                }
                continue;
            }
            state.dirty = false;
            moved.cleaned.push(page);
            cleaned += 1;
        }
    }
}

impl Policy for Clock {
    fn holds(&self, page: u32) -> bool {
        self.states[page as usize].held
    }

    fn touch(&mut self, page: u32, moved: &mut Moved) -> bool {
        if self.holds(page) {
            self.state(page).referenced = true;
            return true;
        }
        if self.vacant.is_empty() && self.ring.len() == self.capacity {
            self.evict(moved);
        }
        let place = match self.vacant.pop() {
            Some(place) => place,
            None => {
                self.ring.push(VACANT);
                (self.ring.len() - 1) as u32
            }
        };
        self.ring[place as usize] = page;
        *self.state(page) = State { held: true, referenced: true, dirty: false, place };
        false
    }

    fn remove(&mut self, page: u32) {
        let State { held, place, dirty, .. } = std::mem::take(self.state(page));
        if !held {
            return;
        }
        self.ring[place as usize] = VACANT;
        self.vacant.push(place);
        if dirty && let Some(queue) = &mut self.dirty {
            queue.retain(|&other| other != page);
        }
    }

    fn changed(&mut self, page: u32, moved: &mut Moved) {
        let Some(dirty) = &mut self.dirty else { return };
        if !std::mem::replace(&mut self.states[page as usize].dirty, true) {
            dirty.push_back(page);
        }
        self.clean(moved);
    }
}
