//! CLOCK, as the page store had it (decisions/019): a hand goes round, and spares once what was
//! wanted since it last passed.
//!
//! The page store lets no dirty page leave. It wrote cold ones, oldest change first, when three
//! quarters of the pages were dirty (`store/cleaning.rs`); that is [`Clock::clean_only`], with this
//! share or another. The plain form writes what is dirty when it leaves.

use super::dirty::DirtyPages;
use super::policy::{Moved, Policy};

const VACANT: u32 = u32::MAX;

#[derive(Copy, Clone, Default)]
struct State {
    held: bool,
    referenced: bool,
    place: u32,
}

pub(super) struct Clock {
    ring: Vec<u32>,
    vacant: Vec<u32>,
    hand: usize,
    states: Vec<State>,
    capacity: usize,
    /// Pages that may not leave.
    dirty: Option<DirtyPages>,
}

impl Clock {
    pub(super) fn new(capacity: usize, pages: usize) -> Self {
        let states = vec![State::default(); pages];
        Self { ring: Vec::new(), vacant: Vec::new(), hand: 0, states, capacity, dirty: None }
    }

    pub(super) fn clean_only(capacity: usize, pages: usize, dirty_max: usize) -> Self {
        let dirty = Some(DirtyPages::new(capacity, pages, dirty_max));
        Self { dirty, ..Self::new(capacity, pages) }
    }

    fn state(&mut self, page: u32) -> &mut State {
        &mut self.states[page as usize]
    }

    /// Goes on to a page that may leave, and lets it.
    fn evict(&mut self, moved: &mut Moved) {
        loop {
            let page = self.ring[self.hand];
            self.hand = if self.hand + 1 < self.ring.len() { self.hand + 1 } else { 0 };
            let stays = |dirty: &DirtyPages| dirty.holds(page);
            if page == VACANT || self.dirty.as_ref().is_some_and(stays) {
                continue;
            }
            if !std::mem::take(&mut self.state(page).referenced) {
                self.remove(page);
                moved.left.push(page);
                return;
            }
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
        *self.state(page) = State { held: true, referenced: true, place };
        false
    }

    fn remove(&mut self, page: u32) {
        let State { held, place, .. } = std::mem::take(self.state(page));
        if !held {
            return;
        }
        self.ring[place as usize] = VACANT;
        self.vacant.push(place);
        if let Some(dirty) = &mut self.dirty {
            dirty.remove(page);
        }
    }

    fn changed(&mut self, page: u32, moved: &mut Moved) {
        let Some(dirty) = &mut self.dirty else { return };
        dirty.add(page);
        let states = &mut self.states;
        dirty.clean(|page| std::mem::take(&mut states[page as usize].referenced), moved);
    }
}
